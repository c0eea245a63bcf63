#!/usr/bin/python3
"""Reads a .vpt timeline without vcpulse: the steps of docs/timeline.md in Python.

  protoc --python_out=DIR -I proto vcpulse/v1/timeline.proto
  PYTHONPATH=DIR read_timeline.py FILE.vpt

Prints a JSON object per vCPU and tick: what was counted since the tick before. Needs the packages
python3-protobuf and python3-zstandard. Made to be read, not to be fast.
"""

import json
import struct
import sys

import zstandard
from vcpulse.v1 import timeline_pb2

MAGIC = b"\x89VPT\r\n\x1a\n"
HEADER = struct.Struct("<8sHHIII16sQQqqII")  # 80 bytes
ZSTD, CORE_PMUS = 1, 2  # required features that this reader knows
U64 = (1 << 64) - 1


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def chunks(data):
    """The ChunkPayload of each whole chunk. Damage ends the reading: a fuller reader goes on."""
    at = 0
    while at < len(data):
        fields = HEADER.unpack_from(data, at)
        magic, version, header_bytes, features, payload_bytes, content_bytes = fields[:6]
        if magic != MAGIC or crc32c(data[at : at + header_bytes - 4]) != fields[-1]:
            raise ValueError(f"no chunk at byte {at}")
        if version != 1 or features & ~(ZSTD | CORE_PMUS):
            raise ValueError("written by a later vcpulse")
        payload = data[at + header_bytes : at + header_bytes + payload_bytes]
        if crc32c(payload) != fields[-2]:
            raise ValueError(f"the chunk at byte {at} is damaged")
        if features & ZSTD:
            payload = zstandard.decompress(payload, max_output_size=content_bytes)
        content = timeline_pb2.ChunkPayload()
        content.ParseFromString(payload)
        yield content
        at += header_bytes + payload_bytes


def progress(value):
    """Arithmetic is modulo 2^64; a value that went backwards is not progress."""
    return value if value < 1 << 63 else 0


def follow(before, whole_before, whole):
    return (before + whole - whole_before) & U64 if before >= whole_before // 2 else before


def proportion(before, leader_before, leader):
    expected = before * (1.0 if leader_before == 0 else leader / leader_before)
    return int(expected) if expected < 2.0**63 else before


def counts_of(columns, entry, leader_before, leader, before):
    """Progress of each event of a group in this row."""
    counts = []
    for event, column in enumerate(columns):
        count = (proportion(before[event], leader_before, leader) + column.count[entry]) & U64
        if event == 0:
            leader_before, leader = before[0], count
        counts.append(count)
    return counts


def rows_of(ticks, vcpus):
    """The progress of each vCPU in each row: rows[t][v] is a dict."""
    height = len(ticks.sequence)
    absent, at = set(), 0
    for distance in ticks.scheduler_absent:
        at += distance
        absent.add(at)
    tick = deadline = 0
    wakes, numbers = [], []
    for t in range(height):
        tick += ticks.tick[t]
        deadline += ticks.deadline_mono_ns[t]
        numbers.append(tick)
        wakes.append(deadline + ticks.lateness_ns[t])
    rows = [[] for _ in range(height)]
    ends = list(wakes)  # the read end of the vCPU before
    for v in range(vcpus):
        last_end = interval_before = enabled_before = read = not_running = running = 0
        off_cpu_before = delay = 0
        counts = [0] * len(ticks.counts)
        groups = [{"not": 0, "running": 0, "counts": [0] * len(g.counts)} for g in ticks.further_groups]
        for t in range(height):
            i = v * height + t
            begin = ends[t] + ticks.read_begin_ns[i]
            read = (read + ticks.read_ns[i]) & U64
            end = begin + read
            interval = end - last_end if t > 0 else 0
            enabled = (follow(enabled_before, interval_before, interval) + ticks.time_enabled_ns[i]) & U64
            not_running = ((not_running if t > 1 else 0) + ticks.not_running_ns[i]) & U64
            running_before, running = running, (enabled - not_running) & U64
            off_cpu = interval - enabled if t > 0 else 0
            run_ns = run_delay = None
            if i not in absent:
                run_ns = (enabled + ticks.run_ns[i]) & U64
                run_delay = (follow(delay, off_cpu_before, off_cpu & U64) + ticks.run_delay_ns[i]) & U64
                delay = run_delay
            counts = counts_of(ticks.counts, i, running_before, running, counts)
            further = []
            for state, columns in zip(groups, ticks.further_groups):
                group_enabled = (enabled + columns.time_enabled_ns[i]) & U64
                state["not"] = ((state["not"] if t > 1 else 0) + columns.not_running_ns[i]) & U64
                before, state["running"] = state["running"], (group_enabled - state["not"]) & U64
                state["counts"] = counts_of(columns.counts, i, before, state["running"], state["counts"])
                further.append({"enabled": group_enabled, "running": state["running"], "counts": [progress(count) for count in state["counts"]]})
            rows[t].append({"tick": numbers[t], "middle": begin + read // 2, "begin": begin, "end": end,
                            "enabled": enabled, "running": running, "run": run_ns, "delay": run_delay,
                            "counts": [progress(count) for count in counts], "further": further,
                            "band": ticks.band[i], "starved": ticks.starved[i]})
            last_end, interval_before, off_cpu_before = end, interval, off_cpu & U64
            enabled_before = enabled if t > 0 else 0
            if t == 0:
                delay = 0
            ends[t] = end
    return rows


def events_of(vcpu_set, row):
    """{event: count}, or None where its group was never on the PMU."""
    groups = [{"enabled": row["enabled"], "running": row["running"], "counts": row["counts"]}] + row["further"]
    pmus = max(vcpu_set.core_pmus, 1)
    names = [vcpu_set.events] + [group.events for group in vcpu_set.further_groups]
    running = sum(group["running"] for group in groups[:pmus])
    counted = {}
    for g, group in enumerate(groups):
        ran = (running if g < pmus else group["running"]) > 0 or group["enabled"] == 0
        for name, count in zip(names[g], group["counts"]):
            if g < pmus:
                count += counted.get(name) or 0
            elif name in counted:
                continue
            counted[name] = count if ran else None
    for absent in vcpu_set.absent_events:
        counted.setdefault(absent.event, None)
    return counted


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: read_timeline.py FILE.vpt")
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    band_name = timeline_pb2.Band.Name
    for content in chunks(data):
        sets = {(s.vm, s.epoch): s for s in content.vcpu_sets}
        lines = []
        for ticks in content.ticks:
            vcpu_set = sets[ticks.vm, ticks.epoch]
            rows = rows_of(ticks, len(vcpu_set.vcpus))
            sequence = ticks.sequence[0]
            for t in range(1, len(rows)):
                sequence += ticks.sequence[t]
                for v, (before, row) in enumerate(zip(rows[t - 1], rows[t])):
                    interval = row["middle"] - before["middle"]
                    if interval <= 0:
                        continue
                    line = {"t_mono_ns": row["middle"], "tick": row["tick"], "vm": ticks.vm,
                            "vcpu": vcpu_set.vcpus[v].index, "interval_s": interval / 1e9}
                    line.update(events_of(vcpu_set, row))
                    line.update(time_enabled_ns=progress(row["enabled"]))
                    if before["run"] is not None and row["run"] is not None:
                        line.update(run_ns=progress(row["run"]), run_delay_ns=progress(row["delay"]))
                    band = band_name(row["band"]).removeprefix("BAND_").lower()
                    line["band"] = None if band == "unspecified" else band
                    lines.append((sequence, line))
        for _, line in sorted(lines, key=lambda pair: pair[0]):
            print(json.dumps(line))


if __name__ == "__main__":
    main()
