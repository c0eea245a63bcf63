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
import time
import unittest

VCPULSE, UNITS = sys.argv[1:3]
NAMES = ("vcpulse-agent.service", "vcpulse-collector.service")
MOST_EXPOSED = 2.0
PATIENCE_S = 60  # never reached
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


class Traced:
    """A vcpulse that runs, as strace sees it."""

    def __init__(self, trace, arguments):
        self.trace = trace
        # -D: the process is ours, not strace's.
        self.process = subprocess.Popen(["strace", "-D", "-f", "-qq", "-c", "-o", trace, VCPULSE, *arguments],
                                        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def calls(self):
        """The system calls that it made, once it has ended well."""
        _, said = self.process.communicate(timeout=PATIENCE_S)
        if self.process.returncode != 0:
            raise RuntimeError(said)
        give_up = time.monotonic() + PATIENCE_S  # strace writes after that
        while time.monotonic() < give_up:
            with open(self.trace, encoding="utf-8") as file:
                rows = [line.split() for line in file]
            if rows and rows[-1][-1] == "total":
                return {row[-1] for row in rows[2:-2]}
            time.sleep(0.05)
        raise TimeoutError("strace has not written its table")


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

    def test_the_agent_has_two_capabilities_and_the_collector_none(self):
        for name in ("AmbientCapabilities", "CapabilityBoundingSet"):
            self.assertEqual(settings("vcpulse-agent.service", name), ["CAP_PERFMON CAP_BPF"])
            self.assertEqual(settings("vcpulse-collector.service", name), [""])

    def test_the_examples_are_options_of_their_commands(self):
        os.environ["STATE_DIRECTORY"] = self.folder
        for command, certificate in ((["record", "--all"], "/etc/vcpulse/agent.pem"),
                                     (["collect", "--dir", self.folder], "/etc/vcpulse/collector.pem")):
            example = os.path.basename(certificate).replace(".pem", ".conf")
            done = run(VCPULSE, *command, "--config", os.path.join(UNITS, example))
            # All of it was understood: the files that it names are missing.
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(certificate, done.stderr)
            self.assertNotIn("--config", done.stderr)

    def test_they_make_no_call_that_is_forbidden(self):
        if shutil.which("strace") is None:
            self.skipTest("strace is not there")
        listen = "unix:" + os.path.join(self.folder, "socket")
        collector = Traced(os.path.join(self.folder, "collector"),
                           ["collect", "--listen", listen, "--dir", os.path.join(self.folder, "d"),
                            "--status", "tcp:127.0.0.1:0"])
        agent = Traced(os.path.join(self.folder, "agent"),
                       ["record", "--all", "-d", "1s", "--metrics", "tcp:127.0.0.1:0", "--to", listen,
                        "--spool-dir", os.path.join(self.folder, "spool"), "--require-collector"])
        agent_calls = agent.calls()
        collector.process.terminate()
        collector_calls = collector.calls()
        self.assertIn("perf_event_open", agent_calls)
        self.assertIn("fdatasync", collector_calls)
        self.assertEqual(agent_calls - allowed_calls("vcpulse-agent.service") - MAY_FAIL, set())
        self.assertEqual(collector_calls - allowed_calls("vcpulse-collector.service") - MAY_FAIL, set())


if __name__ == "__main__":
    if shutil.which("systemd-analyze") is None:
        print("skipped: systemd-analyze is not there (package systemd)")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
