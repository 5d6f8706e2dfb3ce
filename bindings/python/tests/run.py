#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the tests of the package and prints the Test Anything Protocol.

usage: run.py sqlite|postgres|mysql|static [WORD]…    only tests with one of the words in their name
"""
import logging
import os
import pathlib
import sys
import traceback
import unittest

HERE = pathlib.Path(__file__).resolve().parent


class Tap(unittest.TestResult):
    """A line for each test: its sentence is the first line of its docstring."""

    def report(self, passed, test, more=""):
        name = test.shortDescription() or test.id()
        print(f"{'ok' if passed else 'not ok'} {self.testsRun} - {name}{more}", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.report(True, test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.report(True, test, f" # SKIP {reason}")

    def tell(self, test, error):
        self.report(False, test)
        for line in "".join(traceback.format_exception(*error)).splitlines():
            print(f"#   {line}", file=sys.stderr)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.tell(test, error)

    def addError(self, test, error):
        super().addError(test, error)
        self.tell(test, error)

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            print(f"#   {subtest}", file=sys.stderr)
            self.faulty.append((test, error))

    def startTest(self, test):
        super().startTest(test)
        self.faulty = []

    def stopTest(self, test):
        super().stopTest(test)
        if self.faulty:
            self.tell(*self.faulty[0])


def chosen(suite, words):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from chosen(test, words)
        elif not words or any(word in test.id() for word in words):
            yield test


def main():
    kind, words = sys.argv[1], sys.argv[2:]
    os.environ["ROWLOCK_TEST_KIND"] = kind
    sys.path.insert(0, str(HERE))
    # What busy machines and lost locks log is not for the report. assertLogs() sees it.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    logging.getLogger("rowlock").addHandler(logging.NullHandler())
    pattern = "static_*.py" if kind == "static" else "test_*.py"
    suite = unittest.defaultTestLoader.discover(str(HERE), pattern, str(HERE))
    tests = unittest.TestSuite(chosen(suite, words))
    result = Tap()
    tests.run(result)
    failed = len(result.failures) + len(result.errors)
    print(f"1..{result.testsRun}")
    return 0 if failed == 0 and result.testsRun > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
