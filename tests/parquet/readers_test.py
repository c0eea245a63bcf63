#!/usr/bin/python3
"""Parquet files as DuckDB and hyparquet read them: every value, null and statistic.

usage: readers_test.py VCPULSE DRAW_ROWS MAKE_TIMELINE DRAW_TIMELINE DRAW_FLEET FOLDER_FOR_NPM [unittest arguments]
"""

import glob
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

VCPULSE, DRAW_ROWS, MAKE_TIMELINE, DRAW_TIMELINE, DRAW_FLEET, NPM = sys.argv[1:7]
HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "../data")
DOCUMENTS = os.path.join(HERE, "../../docs")
EXAMPLE = re.compile(r"^```sql\n(.*?)^```\n+```\n(.*?)^```$", re.M | re.S)
DRAWN = 40  # files of random rows


def skip(reason):
    print("skipped: " + reason, flush=True)
    sys.exit(77)


def fetch_readers():
    """DuckDB and hyparquet, as the lock file says."""
    if shutil.which("npm") is None:
        skip("npm is not there")
    shutil.copytree(os.path.join(HERE, "npm"), NPM, dirs_exist_ok=True)
    fetched = subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=NPM, check=False,
                             capture_output=True, text=True)
    if fetched.returncode != 0:
        skip("npm could not fetch DuckDB and hyparquet: " + " ".join(fetched.stderr.split())[:300])


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True)


class Readers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def compare(self, mode, pairs):
        read = subprocess.run(["node", "compare.mjs", mode, *[path for pair in pairs for path in pair]], cwd=NPM,
                              check=False, capture_output=True, text=True)
        self.assertEqual((read.returncode, read.stderr), (0, ""))
        self.assertEqual(len(read.stdout.splitlines()), len(pairs))
        return [int(line.split(": ")[1].split()[0]) for line in read.stdout.splitlines()]

    def export(self, timeline, *options):
        """As both formats; their names."""
        name = self.path(os.path.basename(timeline))
        for form in ("csv", "parquet"):
            run(VCPULSE, "export", timeline, "--format", form, "-o", f"{name}.{form}", *options)
        return name + ".parquet", name + ".csv"

    def make(self, name, **options):
        path = self.path(name)
        run(MAKE_TIMELINE, path, *[f"--{key.replace('_', '-')}={value}" for key, value in options.items()])
        return path


    def query(self, sql):
        answer = subprocess.run(["node", "query.mjs", sql, self.folder.name], cwd=NPM, check=True, capture_output=True,
                                text=True)
        return [line.split("\t") for line in answer.stdout.splitlines()]

    def check_examples(self, document, count, instead=("", "")):
        """Each block of SQL answers what the block below it shows; `instead`: a text in it, and what stands there now."""
        with open(os.path.join(DOCUMENTS, document), encoding="utf-8") as file:
            examples = EXAMPLE.findall(file.read())
        self.assertEqual(len(examples), count)
        for sql, shown in examples:
            sql = sql.replace(*instead)
            self.assertEqual([re.split("  +", line) for line in shown.splitlines()], self.query(sql), sql)

    def expect_no_terminal(self, command, timeline):
        master, terminal = pty.openpty()
        self.addCleanup(os.close, master)
        shown = subprocess.run([VCPULSE, command, timeline, "--format", "parquet"], check=False, stdout=terminal,
                               stderr=subprocess.PIPE, text=True)
        os.close(terminal)
        self.assertEqual(shown.returncode, 2)
        self.assertIn("--output: - is a terminal, and a Parquet file is binary", shown.stderr)


class ReadersTest(Readers):
    def test_random_rows(self):
        pairs = []
        for seed in range(1, DRAWN + 1):
            pair = self.path(f"{seed}.parquet"), self.path(f"{seed}.jsonl")
            run(DRAW_ROWS, str(seed), *pair)
            pairs.append(pair)
        rows = self.compare("drawn", pairs)
        self.assertGreater(max(rows), 1000)

    def test_golden_timelines_agree_with_their_csv(self):
        timelines = sorted(glob.glob(os.path.join(DATA, "timeline-v*.vpt")))
        self.assertGreaterEqual(len(timelines), 5)
        rows = self.compare("csv", [self.export(timeline) for timeline in timelines])
        self.assertGreater(min(rows), 0)

    def test_made_timelines_agree_with_their_csv(self):
        # Two row groups; one vCPU; many VMs.
        timelines = [self.make("groups.vpt", vcpus=16, ticks=9000), self.make("one.vpt", vcpus=1, ticks=2000),
                     self.make("vms.vpt", vms=40, vcpus=2, ticks=50)]
        rows = self.compare("csv", [self.export(timeline) for timeline in timelines])
        self.assertEqual(rows, [16 * 8999, 1999, 80 * 49])

    def test_a_part_and_no_row(self):
        timeline = self.make("part.vpt", vcpus=2, ticks=1000)
        part = self.export(timeline, "--from", "2s", "--until", "3s")
        self.assertEqual(self.compare("csv", [part]), [200])
        single = self.make("single.vpt", vcpus=2, ticks=1)
        self.assertEqual(self.compare("csv", [self.export(single)]), [0])

    def test_metadata(self):
        timeline = self.make("one.vpt", vcpus=1, ticks=50)
        parquet, _ = self.export(timeline)
        metadata = dict(self.query(f"SELECT decode(key), decode(value) FROM parquet_kv_metadata('{parquet}')"))
        version = run(VCPULSE, "--version").stdout.split()[1]
        self.assertEqual({key: metadata.get("vcpulse." + key) for key in
                          ("exported_by", "recorded_by", "host_name", "classifier", "classifiers", "interval_ns")},
                         {"exported_by": version, "recorded_by": "0.1.0", "host_name": "bench",
                          "classifier": "ipc-bands", "classifiers": "ipc-bands", "interval_ns": "10000000"})
        written_by = self.query(f"SELECT created_by FROM parquet_file_metadata('{parquet}')")
        self.assertEqual(written_by[1:], [["vcpulse version " + version]])

    def test_examples_of_the_document(self):
        run(DRAW_TIMELINE, self.path("all.vpt"), "scene")
        run(VCPULSE, "export", self.path("all.vpt"), "--format", "parquet", "-o", self.path("all.parquet"))
        self.check_examples("parquet.md", 3)

    def test_standard_output(self):
        timeline = os.path.join(DATA, "timeline-v5.vpt")
        piped = subprocess.run([VCPULSE, "export", timeline, "--format", "parquet"], check=True, capture_output=True)
        with open(self.export(timeline)[0], "rb") as file:
            self.assertEqual(piped.stdout, file.read())
        self.expect_no_terminal("export", timeline)

    def test_a_file_that_cannot_be_finished_does_not_appear(self):
        path = self.path("never.parquet")
        limited = subprocess.run(["bash", "-c", 'ulimit -f 64; trap "" XFSZ; exec "$@"', "bash", VCPULSE, "export",
                                  self.make("large.vpt", vcpus=16, ticks=16_000), "--format", "parquet", "-o", path],
                                 check=False, capture_output=True, text=True)
        self.assertEqual(limited.returncode, 2)
        self.assertIn("never.parquet", limited.stderr)
        self.assertEqual(glob.glob(self.path("never*")), [])

    def test_a_wrong_value_is_found(self):
        parquet, csv = self.export(self.make("one.vpt", vcpus=1, ticks=50))
        with open(csv, encoding="utf-8") as file:
            lines = file.read().splitlines()
        lines[20] = lines[20].replace(lines[20].split(",")[0], "1")
        with open(csv, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        with self.assertRaisesRegex(AssertionError, "row 19, t_ns"):
            self.compare("csv", [(parquet, csv)])


class RollupsTest(Readers):
    def roll_up(self, name, timelines, window="1s"):
        """As both formats; their names."""
        for form in ("csv", "parquet"):
            run(VCPULSE, "rollup", *timelines, "--window", window, "--format", form, "-o", self.path(f"{name}.{form}"))
        return self.path(name + ".parquet"), self.path(name + ".csv")

    def test_agree_with_their_csv(self):
        pairs = [self.roll_up(os.path.basename(timeline), [timeline])
                 for timeline in sorted(glob.glob(os.path.join(DATA, "timeline-v*.vpt")))]
        made = self.make("vms.vpt", vms=40, vcpus=2, ticks=1000)
        run(DRAW_TIMELINE, self.path("degraded.vpt"), "degraded")
        pairs += [self.roll_up("made", [made], "100ms"), self.roll_up("two", [made], "1s,5s"),
                  self.roll_up("degraded", [self.path("degraded.vpt")])]
        self.assertGreater(min(self.compare("csv", pairs)), 0)

    def test_two_row_groups(self):
        pair = self.roll_up("groups", [self.make("groups.vpt", vcpus=16, ticks=9000)], "10ms")
        self.assertGreater(self.compare("csv", [pair])[0], 122_880)

    def test_metadata(self):
        parquet, _ = self.roll_up("two", [self.make("one.vpt", vcpus=1, ticks=50)], "1s,60s")
        metadata = self.query(f"SELECT decode(key), decode(value) FROM parquet_kv_metadata('{parquet}')")
        version = run(VCPULSE, "--version").stdout.split()[1]
        self.assertEqual(dict(metadata[1:]), {"vcpulse.exported_by": version, "vcpulse.window": "1s,1m"})

    def test_a_folder_takes_a_file_per_window(self):
        timeline = os.path.join(DATA, "timeline-v5.vpt")
        run(VCPULSE, "rollup", timeline, "--window", "1s,1m", "--format", "parquet", "-o", self.path("out/"))
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["1m.parquet", "1s.parquet"])
        for window in ("1s", "1m"):
            _, csv = self.roll_up(window, [timeline], window)
            self.assertGreater(self.compare("csv", [(self.path(f"out/{window}.parquet"), csv)])[0], 0)

    def test_standard_output(self):
        timeline = os.path.join(DATA, "timeline-v5.vpt")
        piped = subprocess.run([VCPULSE, "rollup", timeline, "--window", "1s", "--format", "parquet"], check=True,
                               capture_output=True)
        with open(self.roll_up("file", [timeline])[0], "rb") as file:
            self.assertEqual(piped.stdout, file.read())
        self.expect_no_terminal("rollup", timeline)

    def test_a_wrong_value_is_found(self):
        parquet, csv = self.roll_up("one", [self.make("one.vpt", vcpus=1, ticks=500)])
        with open(csv, encoding="utf-8") as file:
            text = file.read()
        with open(csv, "w", encoding="utf-8") as file:
            file.write(text.replace(",bench,", ",branch,", 1))
        with self.assertRaisesRegex(AssertionError, "row 0, host"):
            self.compare("csv", [(parquet, csv)])

    def test_queries_of_the_document(self):
        os.mkdir(self.path("fleet"))
        run(DRAW_FLEET, self.path("fleet"))
        self.roll_up("fleet", [self.path("fleet/" + name) for name in sorted(os.listdir(self.path("fleet")))], "1m")
        self.check_examples("queries.md", 5)
        # The same of CSV files in the folders of a collector.
        folder = "1m/date=2026-01-05/host=agent"
        os.makedirs(self.path(folder))
        os.rename(self.path("fleet.csv"), self.path(folder + "/fleet.csv"))
        with open(os.path.join(DOCUMENTS, "queries.md"), encoding="utf-8") as file:
            read_csv = re.search(r"^read_csv\(.*\)$", file.read(), re.M)[0]
        self.check_examples("queries.md", 5, ("'fleet.parquet'", read_csv.replace("/srv/vcpulse/.rollup/", "")))


class LargeTest(Readers):
    def test_ten_million_rows(self):
        pair = self.export(self.make("large.vpt", vms=5, vcpus=64, ticks=31_251))
        self.assertEqual(self.compare("csv", [pair]), [10_000_000])


if __name__ == "__main__":
    fetch_readers()
    unittest.main(argv=[sys.argv[0], *sys.argv[7:]])
