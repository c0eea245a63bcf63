#!/usr/bin/python3
"""What tests/gate/skips and failures find in ctest's JUnit files, and what skips lets pass."""

import os
import subprocess
import sys
import tempfile
import unittest
from xml.sax.saxutils import escape

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPS, FAILURES = os.path.join(HERE, "skips"), os.path.join(HERE, "failures")
GTEST = "[ RUN      ] A.B\n/x/a_test.cc:5: Skipped\nthis machine\nhas a PMU\n\n[  SKIPPED ] A.B (0 ms)\n"
UNITTEST = "test_a ... ok\ntest_b ... skipped \"strace's not there\"\n\nOK (expected failures=1, skipped=1)\n"


def case(name, output, status="run", skipped=False):
    inside = "<skipped message='SKIP'/>" if skipped else ""
    return f"<testcase name='{name}' status='{status}'>{inside}<system-out>{escape(output)}</system-out></testcase>"


class SkipsTest(unittest.TestCase):
    def run_on(self, cases, allowed=None):
        with tempfile.TemporaryDirectory() as folder:
            junit, rules = os.path.join(folder, "junit.xml"), os.path.join(folder, "allowed")
            with open(junit, "w", encoding="utf-8") as file:
                file.write(f"<testsuite>{''.join(cases)}</testsuite>")
            arguments = [junit]
            if allowed is not None:
                with open(rules, "w", encoding="utf-8") as file:
                    file.write(allowed)
                arguments = ["--allowed", rules, junit]
            done = subprocess.run([SKIPS, *arguments], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout, done.stderr

    def test_what_ran_is_no_skip(self):
        code, out, _ = self.run_on([case("a", "[       OK ] A.B\n  pause: skipped: not measured\n")], "")
        self.assertEqual((code, out), (0, "skips: 0, not allowed: 0\n"))

    def test_each_kind_is_refused_with_its_reason(self):
        for one, reason in ((case("a", GTEST, "notrun", True), "this machine has a PMU"),
                            (case("a", "x.cc:5: Skipped\nno perf: \n[  SKIPPED ] A.B\n", "notrun", True), "no perf:"),
                            (case("a", "skipped: no root\n", "notrun", True), "no root"),
                            (case("a", "", "notrun", True), "no reason printed"),
                            (case("a", "", "disabled"), "disabled"),
                            (case("a", GTEST), "this machine has a PMU"),
                            (case("a", UNITTEST), "strace's not there"),
                            (case("a", "tool: skipped: a part\n"), "a part")):
            code, out, _ = self.run_on([one], "b: *\n")
            self.assertEqual((code, out), (1, f"SKIPPED  a: {reason}\nskips: 1, not allowed: 1\n"), one)

    def test_an_allowed_one_needs_its_name_and_its_reason(self):
        one = case("A.B", GTEST, "notrun", True)
        self.assertEqual(self.run_on([one], "# PMU\nA.*: this machine has*\n")[0], 0)
        self.assertEqual(self.run_on([one], "A.*: another reason\n")[0], 1)
        self.assertEqual(self.run_on([one])[0], 0)

    def test_a_program_of_many_tests_names_those_it_skipped(self):
        program = ("[==========] Running 4 tests.\n[ RUN      ] A.BC\n[       OK ] A.BC (1 ms)\n" +
                   GTEST.replace("A.B", "A.BCD") + GTEST + "[ RUN      ] A.Z\nno line end[       OK ] A.Z (1 ms)\n"
                   "[ RUN      ] A.Y\nskipped: half of it\n[       OK ] A.Y (1 ms)\n"
                   "\n[----------] Global test environment tear-down\n[==========] 4 tests ran.\n[  PASSED  ] 2 tests.\n"
                   "[  SKIPPED ] 2 tests, listed below:\n[  SKIPPED ] A.BCD\n[  SKIPPED ] A.B\n")
        code, out, _ = self.run_on([case("unit_a", program)], "A.B: this machine*\n")
        self.assertEqual((code, out), (1, "SKIPPED  A.BCD: this machine has a PMU\nskipped  A.B: this machine has a PMU\n"
                                          "SKIPPED  A.Y: half of it\nskips: 3, not allowed: 2\n"))
        code, _, err = self.run_on([case("unit_a", program.replace("SKIPPED ] 2 tests", "SKIPPED ] 3 tests"))])
        self.assertEqual(code, 2)
        self.assertIn("unit_a: 3 tests were skipped, and its output has 2 of them", err)

    def test_every_reason_must_be_allowed(self):
        one = case("a", "skipped: fine\nskipped: not fine\n", "notrun", True)
        self.assertEqual(self.run_on([one], "a: fine\n")[0], 1)
        self.assertEqual(self.run_on([one], "a: fine\na: not fine\n")[0], 0)

    def test_what_cannot_be_read_is_one_line(self):
        for cases, rules in (([], ""), (["<a>"], ""), ([case("a", "")], "a rule without a reason\n")):
            code, _, err = self.run_on(cases, rules)
            self.assertEqual((code, err.count("\n")), (2, 1), err)


class FailuresTest(unittest.TestCase):
    def test_each_has_the_end_of_its_output(self):
        failed = case("b", "long ago\n" + "more\n" * 39 + "lab: gave up\n", "fail")
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as junit:
            junit.write(f"<testsuite>{case('a', 'fine')}{failed}{case('c', '', 'notrun')}</testsuite>")
            junit.flush()
            out = subprocess.run([FAILURES, junit.name], capture_output=True, text=True, check=True).stdout
        self.assertEqual(out, "\nfailed: b\n" + "  more\n" * 39 + "  lab: gave up\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv, verbosity=2)
