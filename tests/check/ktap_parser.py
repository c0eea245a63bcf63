#!/usr/bin/env python3
"""Reads KTAP, version 1, and prints its tests, one a line: outcome, name, what follows '#'.

Written from Documentation/dev-tools/ktap.rst of Linux, for the tests of `vcpulse check --ktap`; stricter
than a reader needs to be: a plan is required, unknown lines are refused, and a parent may not pass
where a subtest failed. Exit code 1, with the line, where the input is no such KTAP.
"""

import re
import sys

VERSION = "KTAP version 1"
PLAN = re.compile(r"1\.\.(\d+)")
RESULT = re.compile(r"(ok|not ok) (\d+)(?: (?:- )?([^#]*?))?(?: # ?(.*))?")
DIRECTIVES = ("SKIP", "TODO", "XFAIL", "TIMEOUT", "ERROR")


class Invalid(Exception):
    pass


class Parser:
    def __init__(self, text):
        if text and not text.endswith("\n"):
            raise Invalid("the last line has no end")
        self.lines = text.split("\n")[:-1]
        self.at = 0

    def fail(self, what):
        raise Invalid(f"line {self.at + 1}: {what}")

    def peek(self, indent):
        """The next line of this level without its indentation; None where the level ends."""
        if self.at == len(self.lines):
            return None
        line = self.lines[self.at]
        return line[len(indent):] if line.startswith(indent) else None

    def results(self, indent=""):
        """One level: [(outcome, name, said, subtests)]."""
        if self.peek(indent) != VERSION:
            self.fail(f"'{VERSION}' is missing")
        self.at += 1
        plan = PLAN.fullmatch(self.peek(indent) or "")
        if not plan:
            self.fail("no plan follows the version")
        self.at += 1
        tests, subtests = [], None
        while (line := self.peek(indent)) is not None:
            if line.startswith("# ") or line == "#":
                self.at += 1
            elif line == "  " + VERSION:
                if subtests is not None:
                    self.fail("subtests without a result of their parent")
                subtests = self.results(indent + "  ")
            else:
                tests.append(self.result(line, len(tests) + 1, subtests))
                subtests = None
                self.at += 1
        if subtests is not None:
            self.fail("subtests without a result of their parent")
        if len(tests) != int(plan[1]):
            self.fail(f"{plan[1]} tests were planned, {len(tests)} came")
        return tests

    def result(self, line, number, subtests):
        match = RESULT.fullmatch(line)
        if not match:
            self.fail(f"no line of KTAP: '{line}'")
        ok, name, said = match[1] == "ok", match[3] or "", match[4] or ""
        if int(match[2]) != number:
            self.fail(f"number {match[2]} comes where {number} is due")
        directive = said.split(" ")[0] if said.split(" ")[0] in DIRECTIVES else None
        if directive in ("ERROR", "TIMEOUT") and ok:
            self.fail(f"ok with {directive}")
        outcome = {None: "pass" if ok else "fail"}.get(directive, (directive or "").lower())
        if ok and any(test[0] in ("fail", "error", "timeout") for test in subtests or []):
            self.fail("ok, though a subtest is not")
        return outcome, name, said, subtests or []


def show(tests, indent=""):
    for outcome, name, said, subtests in tests:
        print(f"{indent}{outcome}: {name}" + (f" | {said}" if said else ""))
        show(subtests, indent + "  ")


def main():
    try:
        parser = Parser(sys.stdin.buffer.read().decode())
        tests = parser.results()
        if parser.at != len(parser.lines):
            parser.fail("a line of no level")
    except Invalid as error:
        sys.exit(f"ktap_parser: {error}")
    show(tests)


main()
