#!/usr/bin/python3
"""The systemd units: what they leave open, and that vcpulse runs with what they leave it.

usage: systemd_units_test.py VCPULSE UNITS [unittest arguments]
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

VCPULSE, UNITS = sys.argv[1:3]
NAMES = ("vcpulse-agent.service", "vcpulse-collector.service")
MOST_EXPOSED = 2.0
# Refused where they are not allowed, and gone on without: dropping capabilities that are none.
MAY_FAIL = {"capset"}


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def settings(unit, name):
    with open(os.path.join(UNITS, unit), encoding="utf-8") as file:
        return [line.split("=", 1)[1].strip() for line in file if line.startswith(name + "=")]


def calls_of(names):
    """The system calls of a list of names and @groups, all groups in them too."""
    calls = set()
    for name in names:
        if not name.startswith("@"):
            calls.add(name)
            continue
        lines = run("systemd-analyze", "syscall-filter", name).stdout.splitlines()[1:]
        calls |= calls_of(line.strip() for line in lines if line.strip() and not line.strip().startswith("#"))
    return calls


def allowed_calls(unit):
    allowed = set()
    for line in settings(unit, "SystemCallFilter"):
        if line.startswith("~"):
            allowed -= calls_of(line[1:].split())
        else:
            allowed |= calls_of(line.split())
    return allowed


class SystemdUnitsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="vcpulse-units-")
        self.addCleanup(shutil.rmtree, self.folder)

    def test_they_leave_little_open(self):
        for unit in NAMES:
            done = run("systemd-analyze", "security", "--offline=true", os.path.join(UNITS, unit))
            level = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
            self.assertTrue(level, done.stdout + done.stderr)
            print(f"{unit}: {level[1]}")
            self.assertLessEqual(float(level[1]), MOST_EXPOSED, done.stdout)

    def test_systemd_understands_them(self):
        for unit in NAMES:
            with open(os.path.join(UNITS, unit), encoding="utf-8") as file:
                text = file.read()
            self.assertIn("\nExecStart=vcpulse ", text)
            here = os.path.join(self.folder, unit)
            with open(here, "w", encoding="utf-8") as file:
                file.write(text.replace("\nExecStart=vcpulse ", f"\nExecStart={VCPULSE} "))
            done = run("systemd-analyze", "verify", "--man=no", here)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_the_agent_has_one_capability_and_the_collector_none(self):
        for name in ("AmbientCapabilities", "CapabilityBoundingSet"):
            self.assertEqual(settings("vcpulse-agent.service", name), ["CAP_PERFMON"])
            self.assertEqual(settings("vcpulse-collector.service", name), [""])

    def traced(self, *arguments):
        """The system calls that vcpulse makes."""
        trace = os.path.join(self.folder, "trace")
        done = run("strace", "-f", "-qq", "-c", "-o", trace, VCPULSE, *arguments, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(trace, encoding="utf-8") as file:
            rows = [line.split() for line in file]
        return {row[-1] for row in rows if len(row) >= 5 and row[-1] not in ("syscall", "total")
                and not row[-1].startswith("---")}

    def test_the_agent_makes_no_call_that_is_forbidden(self):
        if shutil.which("strace") is None:
            self.skipTest("strace is not there")
        calls = self.traced("record", "--all", "-d", "1s", "--metrics", "tcp:127.0.0.1:0",
                            "-o", os.path.join(self.folder, "x.vpt"))
        self.assertIn("epoll_wait", calls)
        self.assertIn("perf_event_open", calls)
        self.assertEqual(calls - allowed_calls("vcpulse-agent.service") - MAY_FAIL, set())


if __name__ == "__main__":
    if shutil.which("systemd-analyze") is None:
        print("skipped: systemd-analyze is not there (package systemd)")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
