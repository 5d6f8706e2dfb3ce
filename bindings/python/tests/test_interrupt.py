# SPDX-License-Identifier: MIT
"""Signal handlers that raise inside of callbacks, of opening, and of a walk."""
import gc
import linecache
import os
import sys
import unittest
import warnings

import rowlock
from common import KIND, URL, Case, execute
from test_lock import Steps

ENGINE = " ENGINE = InnoDB" if KIND == "mysql" else ""


class Lines(Steps):
    """Where Python from 3.11 on lets a handler run: not as a function returns, nor at a `try:`."""

    def trace(self, frame, event, more):
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        if event == "return" or line == "try:":
            return self.trace
        return super().trace(frame, event, more)


def descriptors():
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


class Raising(Case):
    def setUp(self):
        super().setUp()
        execute(
            "DROP TABLE IF EXISTS stock",
            f"CREATE TABLE stock (id INTEGER PRIMARY KEY, n INTEGER, version BIGINT NOT NULL)"
            f"{ENGINE}",
            "INSERT INTO stock VALUES (1, 10, 1), (2, 20, 1), (3, 30, 1)",
        )
        self.stock = self.db.table("stock", "id", ["n"])

    def ignore_unclosed(self):
        """A database may be dropped as connect() or close() is interrupted."""
        ignored = warnings.catch_warnings()
        ignored.__enter__()
        self.addCleanup(ignored.__exit__, None, None, None)
        warnings.simplefilter("ignore", ResourceWarning)

    def interrupted(self, name, event, use):
        """A signal handler raises at this event of the function.."""
        calls = []

        def trace(frame, now, _):
            if frame.f_code.co_name != name:
                return None
            if now == event:
                calls.append(now)
                if len(calls) == 1:
                    raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            with self.assertRaises(KeyboardInterrupt):
                use()
        finally:
            sys.settrace(None)
        self.assertEqual(len(calls), 1)

    def test_callbacks(self):
        """Ctrl-C as a callback begins or ends is raised, and ends the call"""

        def work(attempt):
            self.stock.update({**self.stock.read(1), "n": 0})

        for event in ("call", "line", "return"):
            with self.db.lock(self.name):
                self.interrupted("rowlock_py_each_grant", event, self.db.grants)
            self.interrupted("rowlock_py_each_row", event, lambda: self.stock.read_many([1, 2, 3]))
            self.interrupted("rowlock_py_attempt", event, lambda: self.db.retry(work))
        self.assertEqual([row["n"] for row in self.stock.read_many([1, 2, 3])], [10, 20, 30])
        self.db.retry(work)
        self.assertEqual(self.stock.read(1)["n"], 0)

    def each_step(self, prepare, use, check):
        """Calls use(), interrupted before its steps, and then check()."""
        # Then garbage collection looks only at what comes now.
        gc.freeze()
        self.addCleanup(gc.unfreeze)

        def ended(steps):
            made = prepare()
            sys.settrace(steps.trace)
            try:
                made = use(made)
                return True
            except KeyboardInterrupt:
                return False
            finally:
                sys.settrace(None)
                check(made)

        step, stride = 1, Lines.between(ended)
        while not ended(Lines(step)):
            step += stride

    def test_opening(self):
        """Ctrl-C before any step of connect() leaves no connection"""

        def check(db):
            if db is not None:
                db.close()
            self.assertEqual(descriptors(), before)

        self.ignore_unclosed()
        for pool in (False, True):
            before = descriptors()
            self.each_step(lambda: None, lambda _: rowlock.connect(URL, pool=pool), check)

    def test_closing(self):
        """what an interrupt of close() leaves open is closed by the next call or with the object"""

        def prepare():
            db = rowlock.connect(URL, pool=pool)
            db.table("stock", "id", ["n"]).read(1)
            db.lock(self.name, ttl=3600).acquire()
            return db

        def use(db):
            db.close()
            return db

        def check(db):
            again(db)
            self.assertEqual(descriptors(), before)

        self.ignore_unclosed()
        for pool, again in ((False, rowlock.Database.close), (True, rowlock.Database.__del__)):
            # SQLite keeps the descriptor of a file that another connection has locked.
            use(prepare())
            before = descriptors()
            self.each_step(prepare, use, check)
            self.assert_free()

    def test_taking(self):
        """Ctrl-C before any step of a call keeps no connection and no table"""

        def read(db):
            db.table("stock", "id", ["n"]).read(1)
            return db

        def prepare():
            db = rowlock.connect(URL)
            if without_idle:
                db._idle.clear()
            return db

        def check(db):
            self.assertEqual(len(db._idle), len(db._all) - without_idle)
            read(db).close()

        for without_idle in (False, True):
            self.each_step(prepare, read, check)


if __name__ == "__main__":
    unittest.main()
