# SPDX-License-Identifier: MIT
"""Connections of drivers that share our client library, and those that do not."""
import glob
import shutil
import unittest

import rowlock
from common import DRIVERS, KIND, TMPDIR, URL, Case, driver, execute, script

ENGINE = " ENGINE = InnoDB" if KIND == "mysql" else ""
SHARING = [one for one in DRIVERS if one.__name__ != "connect_pymysql"]


class Adopted(Case):
    def setUp(self):
        super().setUp()
        execute(
            "DROP TABLE IF EXISTS adopted",
            f"CREATE TABLE adopted (id INTEGER PRIMARY KEY, n INTEGER, version BIGINT NOT NULL)"
            f"{ENGINE}",
            "INSERT INTO adopted VALUES (1, 10, 1)",
        )

    def for_each_driver(self, work):
        for connect in SHARING:
            with self.subTest(connect.__name__):
                conn = connect()
                try:
                    with self.db.adopt(conn) as tx:
                        work(conn, tx)
                finally:
                    conn.close()

    def test_transaction(self):
        """tables and fences are a part of the caller's transaction"""

        def work(conn, tx):
            table = tx.table("adopted", "id", ["n"])
            cursor = conn.cursor()
            for end in (conn.rollback, conn.commit):
                before = execute("SELECT n, version FROM adopted")
                cursor.execute("UPDATE adopted SET n = n + 1")
                row = table.read(1)
                table.update({**row, "n": row["n"] + 1})
                tx.fence(self.name, 1)
                end()
                changed = execute("SELECT n, version FROM adopted") != before
                self.assertEqual(changed, end == conn.commit)

        self.for_each_driver(work)

    def test_guard(self):
        """a guard takes it in place of a cursor"""

        def work(conn, tx):
            held = self.db.lock(self.name, on_lost="log").acquire()
            conn.cursor().execute("UPDATE adopted SET n = 1")
            held.guard(tx)
            conn.rollback()
            self.db.break_lock(self.name)
            with self.db.lock(self.name):
                conn.cursor().execute("UPDATE adopted SET n = 1")
                self.assertRaises(rowlock.LockLost, held.guard, tx)
                conn.rollback()
            # Without autocommit, a session of MySQL is always inside a transaction.
            if KIND != "mysql":
                self.assertRaises(rowlock.Misuse, held.guard, tx)
            self.assertRaises(rowlock.LockLost, held.release)

        self.for_each_driver(work)

    def test_once(self):
        """a claim is completed in it"""

        def work(conn, tx):
            with self.db.once(self.name + str(conn)) as claim:
                conn.cursor().execute("UPDATE adopted SET n = 2")
                if KIND == "sqlite":
                    conn.rollback()
                claim.complete(b"with the work", tx=tx)
                conn.commit()
            with self.db.once(self.name + str(conn)) as claim:
                self.assertEqual(claim.result, b"with the work")

        self.for_each_driver(work)

    def test_locks(self):
        """it gives no locks of its own"""
        self.for_each_driver(lambda conn, tx: self.assertRaises(rowlock.Unsupported, tx.lock, "a"))

    def test_others(self):
        """what is no connection, or has no pointer, is refused"""
        self.assertRaises(rowlock.Unsupported, self.db.adopt, object())
        if KIND == "mysql":
            conn = DRIVERS[1]()
            self.assertRaises(rowlock.Unsupported, self.db.adopt, conn)
            conn.close()
        if KIND != "sqlite":
            import sqlite3

            other = sqlite3.connect(":memory:")
            self.assertRaises(rowlock.Invalid, self.db.adopt, other)
            other.close()

    def test_cursor(self):
        """a cursor is refused, and the error says what to give"""
        for connect in DRIVERS:
            conn = connect()
            with self.assertRaisesRegex(TypeError, "adopt\\(cursor.connection"):
                self.db.adopt(conn.cursor())
            conn.close()

    def test_closed(self):
        """a connection that is closed is refused"""
        for connect in SHARING:
            conn = connect()
            conn.close()
            with self.assertRaisesRegex(rowlock.Misuse, "closed"):
                self.db.adopt(conn)

    def test_closed_by_its_owner(self):
        """one that its owner closes later is an exception, whatever it is used for"""
        for connect in SHARING:
            conn = connect()
            tx = self.db.adopt(conn)
            self.addCleanup(tx.close)
            table, new = (tx.table("adopted", "id", columns) for columns in (["n"], []))
            held = self.db.lock(self.name).acquire()
            row = table.read(1)
            conn.rollback()
            conn.close()
            with self.db.once(self.name + str(conn)) as claim:
                for call in (
                    lambda: table.read(1), lambda: table.update(row), lambda: new.read(1),
                    lambda: tx.fence(self.name, 1), lambda: held.guard(tx), tx.grants,
                    lambda: claim.complete(b"", tx=tx), lambda: tx.retry(print),
                    lambda: tx.once("a").claim(), lambda: tx.walk(table, self.name).run(),
                ):  # fmt: skip
                    with self.assertRaisesRegex(rowlock.Misuse, "closed by its owner"):
                        call()
            held.release()

    def test_closed_in_retry(self):
        """one that is closed inside a retry is not used again, and nothing is done"""
        for connect in SHARING:
            for raised in (None, KeyError("mine")):
                conn = connect()
                if KIND == "mysql":
                    conn.autocommit(True)
                tx = self.db.adopt(conn)
                self.addCleanup(tx.close)
                table = tx.table("adopted", "id", ["n"])

                def work(attempt):
                    table.update({**table.read(1), "n": 77})
                    conn.close()
                    if raised:
                        raise raised

                with self.subTest(connect.__name__, raised=raised):
                    error = (KeyError, "mine") if raised else (rowlock.Misuse, "by its owner")
                    with self.assertRaisesRegex(*error):
                        tx.retry(work)
                    self.assertRaises(rowlock.Misuse, table.read, 1)
                    execute("UPDATE adopted SET version = version + 1")
                    self.assertEqual(execute("SELECT n FROM adopted"), [(10,)])

    @unittest.skipIf(KIND != "postgres", "psycopg loads the copy that it is told")
    def test_two_copies(self):
        """a driver with another copy of libpq is refused, with both paths"""
        (original, *_) = glob.glob("/usr/lib/*/libpq.so.5") + glob.glob("/usr/lib*/libpq.so.5")
        copy = TMPDIR / "libpq-copy.so.5"
        shutil.copyfile(original, copy)
        process = script(
            """
            import ctypes.util
            ctypes.util.find_library = lambda name: arguments[0]
            db = rowlock.connect(url)
            import psycopg
            conn = psycopg.connect(url)
            try:
                db.adopt(conn)
            except rowlock.Unsupported as error:
                print(arguments[0] in str(error), "/libpq.so.5" in str(error))
            with db.lock("two copies") as held:
                held.guard(conn.cursor())
            conn.close()
            db.close()
            """,
            str(copy),
        )
        self.assertEqual(self.finished(process), "True True\n")


if __name__ == "__main__":
    unittest.main()
