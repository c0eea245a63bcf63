#!/usr/bin/python3
"""Reads one timeline as jsonl, csv and delimited records with Python's own parsers and holds them
against each other: other_parsers.py VCPULSE PROTO_FOLDER FILE. Knows of the records only what
vcpulse/v1/timeline.proto says."""

import csv
import io
import json
import os
import subprocess
import sys
import tempfile


def main(vcpulse, proto_folder, path):
    def run(*arguments):
        return subprocess.run([vcpulse, *arguments], check=True, stdout=subprocess.PIPE).stdout

    rows = [json.loads(line, parse_constant=refuse)
            for line in run("export", path, "--format", "jsonl").decode().splitlines()]
    table = list(csv.DictReader(io.StringIO(
        run("export", path, "--format", "csv").decode(), newline=""), strict=True))
    data = run("replay", path, "--speed", "max", "--format", "delimited")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["protoc", "--python_out=" + folder, "-I", proto_folder,
                        "vcpulse/v1/timeline.proto"], check=True)
        sys.path.insert(0, folder)
        os.environ.setdefault("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")
        from vcpulse.v1 import timeline_pb2
        compare_rows(rows, list(intervals(timeline_pb2, data)))
    compare_table(rows, table)
    print(f"{len(rows)} rows agree")


def refuse(constant):
    raise ValueError(constant + " is no JSON")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def records(pb, data):
    at = 0
    while at < len(data):
        length, at = varint(data, at)
        yield pb.TimelineRecord.FromString(data[at:at + length])
        at += length


def intervals(pb, data):
    """One dictionary per vCPU and tick that has something to be subtracted from."""
    sets = {}
    for number, record in enumerate(records(pb, data), 1):
        assert record.sequence == number, "a hole in the sequence"
        if record.HasField("vcpu_set"):
            sets[record.vcpu_set.vm, record.vcpu_set.epoch] = record.vcpu_set
        if not record.HasField("tick") or record.tick.first_of_epoch:
            continue
        tick = record.tick
        vcpu_set = sets[tick.vm, tick.epoch]
        for vcpu, did in zip(vcpu_set.vcpus, tick.vcpus, strict=True):
            begin, end = did.read_begin_mono_ns, did.read_end_mono_ns
            row = {
                "t_mono_ns": begin + (end - begin) // 2, "tick": tick.tick, "vm": tick.vm,
                "epoch": tick.epoch, "vm_name": vcpu_set.instance.name, "vcpu": vcpu.index,
                "interval_s": did.interval_ns / 1e9, "time_enabled_ns": did.time_enabled_ns,
                "run_ns": did.run_ns if did.HasField("run_ns") else None,
                "run_delay_ns": did.run_delay_ns if did.HasField("run_delay_ns") else None,
                "state": name(pb.ThreadState, did.state, "THREAD_STATE_", "not_read"),
                "band": name(pb.Band, did.band, "BAND_", "unspecified"),
                "rule": name(pb.Rule, did.rule, "RULE_", "") if did.band else None,
                "confidence": did.confidence_pct / 100 if did.HasField("confidence_pct") else None,
            }
            never_ran = did.time_enabled_ns > 0 and did.time_running_ns == 0
            if vcpu_set.core_pmus <= 1:
                row["time_running_ns"] = did.time_running_ns
                for event, count in zip(vcpu_set.events, did.counts, strict=True):
                    row[event] = None if never_ran else count
            yield row


def name(enum, value, prefix, absent):
    text = enum.Name(value).removeprefix(prefix).lower()
    return None if text == absent else text.replace("_", "-")


def compare_rows(rows, seen):
    assert len(rows) == len(seen), (len(rows), len(seen))
    assert rows, "nothing was compared"
    for row, other in zip(rows, seen):
        for key, value in other.items():
            assert row[key] == value, (key, row[key], value)


def compare_table(rows, table):
    names = {"t_mono_ns": "t_ns", "vm": "vm_number", "branch-misses": "branch_misses",
             "cache-misses": "cache_misses", "ref-cycles": "ref_cycles",
             "cpu_clk_unhalted.pause": "pause_cycles"}
    elsewhere = {"interval_s", "vm_name", "vm_start_time", "counted_share"}
    assert len(rows) == len(table)
    for row, cells in zip(rows, table):
        assert None not in cells and None not in cells.values(), "a row of another width"
        assert round(row["interval_s"] * 1e9) == int(cells["dt_ns"])
        for key, value in row.items():
            if key in elsewhere:
                continue
            cell = cells[names.get(key, key)]
            text = "" if value is None else str(value).lower() if value in (True, False) and \
                isinstance(value, bool) else str(value)
            same = cell == text or (isinstance(value, float) and float(cell) == value)
            assert same, (key, value, cell)


if __name__ == "__main__":
    main(*sys.argv[1:])
