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
import time
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
        """Each block of SQL answers what the block below it shows. `instead`: a text of it and its replacement."""
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


class CollectorTest(Readers):
    MAGIC = b"\x89VPT\r\n\x1a\n"

    def store(self, timeline, agent, files):
        """As a collector has it, in so many files."""
        with open(timeline, "rb") as file:
            chunks = [self.MAGIC + chunk for chunk in file.read().split(self.MAGIC)[1:]]
        stream = chunks[0][24:40].hex()
        folder = self.path(f"store/{agent}/20260101T000000Z-{stream}")
        os.makedirs(folder)
        for i in range(files):
            part = chunks[len(chunks) * i // files:len(chunks) * (i + 1) // files]
            first = int.from_bytes(part[0][40:48], "little")
            with open(f"{folder}/{first:020}.vpt", "wb") as file:
                file.writelines(part)
            a_minute_ago = time.time() - 60  # not as one that still grows
            os.utime(f"{folder}/{first:020}.vpt", (a_minute_ago, a_minute_ago))

    def collect(self, expected):
        """Until there are so many Parquet files; their names."""
        collector = subprocess.Popen([VCPULSE, "collect", "--listen", "unix:" + self.path("socket"), "--dir",
                                      self.path("store"), "--parquet", self.path("ticks")], stderr=subprocess.PIPE)
        try:
            until = time.monotonic() + 60
            while len(glob.glob(self.path("ticks/*/*/*"))) < expected and time.monotonic() < until:
                time.sleep(0.1)
        finally:
            collector.terminate()
            said = collector.communicate()[1].decode()
        self.assertEqual((collector.returncode, [line for line in said.splitlines() if "--parquet" in line]), (0, []))
        names = sorted(glob.glob(self.path("ticks/**"), recursive=True, include_hidden=True))
        return [name for name in names if os.path.isfile(name)]

    def test_its_files_together_are_the_export(self):
        timelines = {"made": self.make("made.vpt", vms=3, vcpus=4, ticks=3000),
                     "drawn": self.path("scene.vpt"), "spiffe=3A=2F=2Fgolden": os.path.join(DATA, "timeline-v5.vpt")}
        run(DRAW_TIMELINE, timelines["drawn"], "web")
        files = {"made": 7, "drawn": 2, "spiffe=3A=2F=2Fgolden": 1}
        for agent, timeline in timelines.items():
            self.store(timeline, agent, files[agent])
        names = self.collect(sum(files.values()))
        self.assertEqual(len(names), sum(files.values()))
        self.assertRegex(names[0], r"/ticks/date=\d{4}-\d\d-\d\d/host=[a-z0-9A-F%]+/[0-9a-f]{32}-\d{20}\.parquet$")
        for agent, timeline in timelines.items():
            whole = f"'{self.export(timeline)[0]}'"
            partition = "host=" + agent.replace("=", "%")
            parts = f"read_parquet('{self.path('ticks')}/*/{partition}/*.parquet', hive_partitioning = false)"
            count = int(self.query(f"SELECT count(*) FROM {whole}")[1][0])
            self.assertGreater(count, 0)
            self.assertEqual(self.query(f"SELECT count(*) FROM {parts}")[1][0], str(count), agent)
            for one, other in ((whole, parts), (parts, whole)):
                sql = f"SELECT count(*) FROM (SELECT * FROM {one} EXCEPT ALL SELECT * FROM {other})"
                self.assertEqual(self.query(sql)[1], ["0"], agent)
        # As docs/parquet.md says: the host of each row, as the agent is called.
        ticks = f"read_parquet('{self.path('ticks')}/*/*/*.parquet', union_by_name = true, "
        hosts = ["drawn", "made", "spiffe://golden"]
        sql = f"SELECT DISTINCT host FROM {ticks} hive_partitioning = true) ORDER BY host"
        self.assertEqual([row[0] for row in self.query(sql)[1:]], hosts)
        host = "url_decode(regexp_extract(filename, 'host=([^/]+)', 1))"
        sql = f"SELECT DISTINCT {host} AS host FROM {ticks} hive_partitioning = false, filename = true) ORDER BY host"
        self.assertEqual([row[0] for row in self.query(sql)[1:]], hosts)
        # A file that is not there is made again with the same bytes, and no other one is.
        gone = sorted(glob.glob(self.path("ticks/*/host=made/*")))[3]
        kept = {name: os.stat(name).st_ino for name in names if name != gone}
        with open(gone, "rb") as file:
            content = file.read()
        os.remove(gone)
        self.assertEqual(self.collect(len(names)), names)
        self.assertEqual({name: os.stat(name).st_ino for name in kept}, kept)
        with open(gone, "rb") as file:
            self.assertEqual(file.read(), content)


class LargeTest(Readers):
    def test_ten_million_rows(self):
        pair = self.export(self.make("large.vpt", vms=5, vcpus=64, ticks=31_251))
        self.assertEqual(self.compare("csv", [pair]), [10_000_000])


if __name__ == "__main__":
    fetch_readers()
    unittest.main(argv=[sys.argv[0], *sys.argv[7:]])
