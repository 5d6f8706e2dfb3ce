# SPDX-License-Identifier: MIT
"""A guard through a cursor of the caller's own driver, for each driver of the database."""
import asyncio
import sqlite3
import unittest
from unittest import mock

import rowlock
from common import DRIVERS, KIND, URL, Case, connect_psycopg, execute
from rowlock.database import Names


class Wrapper:
    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)


class Guards(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        engine = " ENGINE = InnoDB" if KIND == "mysql" else ""
        execute("DROP TABLE IF EXISTS guarded", f"CREATE TABLE guarded (n INTEGER){engine}")

    def setUp(self):
        super().setUp()
        execute("DELETE FROM guarded")

    def for_each_driver(self, work):
        for connect in DRIVERS:
            with self.subTest(connect.__name__):
                conn = connect()
                try:
                    work(conn)
                finally:
                    conn.close()

    def count(self):
        return execute("SELECT count(*) FROM guarded")[0][0]

    def test_ours(self):
        """it lets a transaction commit that writes under our lock"""

        def work(conn):
            with self.db.lock(self.name) as held:
                cursor = conn.cursor()
                cursor.execute("INSERT INTO guarded VALUES (1)")
                held.guard(cursor)
                cursor.execute("INSERT INTO guarded VALUES (2)")
                held.guard(cursor)
                conn.commit()
            self.assertEqual(self.count() % 2, 0)

        self.for_each_driver(work)
        self.assertEqual(self.count(), 2 * len(DRIVERS))

    def test_lost(self):
        """it raises LockLost before the commit if another client got the lock"""

        def work(conn):
            held = self.db.lock(self.name, on_lost="log").acquire()
            self.db.break_lock(self.name)
            with self.db.lock(self.name):
                cursor = conn.cursor()
                cursor.execute("INSERT INTO guarded VALUES (1)")
                with self.assertRaises(rowlock.LockLost):
                    held.guard(cursor)
                conn.rollback()
            with self.assertRaises(rowlock.LockLost):
                held.guard(conn.cursor())
            conn.rollback()
            self.assertRaises(rowlock.LockLost, held.release)

        self.for_each_driver(work)
        self.assertEqual(self.count(), 0)

    @unittest.skipIf(KIND == "sqlite", "a file has one writer, so a break waits for it")
    def test_until_commit(self):
        """until the commit no other client gets the lock, and renewals go on"""

        def work(conn):
            with self.db.lock(self.name, on_lost="log", renew=False) as held:
                held.guard(conn.cursor())
                held.renew()
                held.release()
                for wait in (0, 0.1):
                    with self.assertRaisesRegex(rowlock.Busy, "free, but .* not ended") as caught:
                        self.db.lock(self.name, wait=wait).acquire()
                    self.assertIsNone(caught.exception.holder)
                    self.assertEqual(type(caught.exception) is rowlock.Timeout, wait > 0)
                conn.rollback()
                self.db.lock(self.name).acquire().release()

        self.for_each_driver(work)

    def test_shared(self):
        """a shared grant is ours beside newer shared ones, until it is broken"""

        def work(conn):
            held = self.db.lock(self.name, shared=True, on_lost="log").acquire()
            with self.db.lock(self.name, shared=True):
                held.guard(conn.cursor())
                conn.commit()
            self.db.break_lock(self.name, held.token)
            with self.db.lock(self.name):
                with self.assertRaises(rowlock.LockLost):
                    held.guard(conn.cursor())
                conn.rollback()
            self.assertRaises(rowlock.LockLost, held.release)

        self.for_each_driver(work)

    def test_odd_name(self):
        """the driver quotes the name, whatever it is"""
        name = "it's \"100%\" `so` {name} %s ? :1 $1 \\ schlüssel 鍵"

        def work(conn):
            with self.db.lock(name) as held:
                held.guard(conn.cursor())
                conn.commit()
            with self.db.lock(name, permits=2) as held:
                held.guard(conn.cursor())
                conn.commit()

        self.for_each_driver(work)

    def test_prefix(self):
        """it uses the schema and the prefix of the locks"""
        db = self.other(prefix="odd_")
        db.install()

        def work(conn):
            with db.lock(self.name) as held:
                held.guard(conn.cursor())
                conn.rollback()

        self.for_each_driver(work)

    def test_autocommit(self):
        """outside a transaction it is a Misuse"""

        def work(conn):
            if KIND == "mysql":
                conn.autocommit(True)
            elif KIND == "sqlite":
                conn.isolation_level = None
            else:
                conn.autocommit = True
            with self.db.lock(self.name) as held:
                cursor = conn.cursor()
                self.assertRaises(rowlock.Misuse, held.guard, cursor)
                cursor.execute("BEGIN")
                held.guard(cursor)
                cursor.execute("ROLLBACK")

        self.for_each_driver(work)

    def test_rows(self):
        """it reads rows of any shape"""
        cursors = []
        if KIND == "postgres":
            import psycopg2.extras
            from psycopg.rows import dict_row, namedtuple_row

            first, second = DRIVERS[0](), DRIVERS[1]()
            cursors = [first.cursor(row_factory=dict_row), first.cursor(row_factory=namedtuple_row)]
            cursors.append(second.cursor(cursor_factory=psycopg2.extras.RealDictCursor))
            cursors.append(second.cursor(cursor_factory=psycopg2.extras.DictCursor))
        elif KIND == "mysql":
            import MySQLdb.cursors
            import pymysql.cursors

            first, second = DRIVERS[0](), DRIVERS[1]()
            cursors = [first.cursor(MySQLdb.cursors.DictCursor)]
            cursors.append(second.cursor(pymysql.cursors.DictCursor))
            cursors.append(second.cursor(pymysql.cursors.SSCursor))
        else:
            import sqlite3

            first = second = DRIVERS[0]()
            first.row_factory = sqlite3.Row
            cursors = [first.cursor()]
        for options in ({}, {"shared": True}):
            for cursor in cursors:
                with self.subTest(cursor), self.db.lock(self.name, **options) as held:
                    held.guard(cursor)
                    cursor.connection.rollback()
        first.close()
        second.close()

    def test_paramstyle(self):
        """a cursor of an unknown module needs its paramstyle"""

        def work(conn):
            style = "qmark" if KIND == "sqlite" else "format"
            with self.db.lock(self.name) as held:
                cursor = Wrapper(conn.cursor())
                self.assertRaises(rowlock.Invalid, held.guard, cursor)
                self.assertRaises(rowlock.Invalid, held.guard, cursor, "wrong")
                held.guard(cursor, paramstyle=style)
                conn.rollback()

        self.for_each_driver(work)

    def test_missing_tables(self):
        """a cursor of a database without the lock's tables is a SchemaError that says what to do"""
        # As the tables are called, and how the database then answers.
        names = [Names(URL, None, "missing_")]
        names += [Names(URL, "missing", None)] if KIND != "sqlite" else []

        def work(conn):
            for options in ({}, {"shared": True}):
                for wrong in names:
                    db = self.other()
                    with db.lock(self.name, **options) as held:
                        db.names = wrong
                        with self.assertRaisesRegex(rowlock.SchemaError, "cursor of the database"):
                            held.guard(conn.cursor())
                        conn.rollback()
                        self.assertIsNone(db._several_write)

        self.for_each_driver(work)

    def test_other_kind(self):
        """a cursor of another kind of database is a SchemaError, and nothing is sent"""

        class Cursor:
            __module__ = "psycopg2.extensions"
            execute = fetchone = mock.Mock()

        with self.db.lock(self.name) as held:
            cursor = Cursor()
            if KIND != "sqlite":
                conn = sqlite3.connect(":memory:")
                self.addCleanup(conn.close)
                cursor = conn.cursor()
                with self.assertRaisesRegex(rowlock.SchemaError, "cursor of SQLite"):
                    held.guard(Wrapper(cursor), paramstyle="qmark")
                cursor = mock.Mock(sqlite3.Cursor, wraps=cursor)
                cursor.cursor = conn.cursor()
            with self.assertRaisesRegex(rowlock.SchemaError, "a cursor of (SQLite|Postgre)"):
                held.guard(cursor)
            cursor.execute.assert_not_called()

    @unittest.skipIf(KIND == "sqlite", "it has no connection to be lost")
    def test_lost_connection(self):
        """a connection that was lost is the driver's own error"""
        pid, kill = {
            "postgres": ("pg_backend_pid()", "SELECT pg_terminate_backend({})"),
            "mysql": ("connection_id()", "KILL {}"),
        }[KIND]

        def work(conn):
            with self.db.lock(self.name) as held:
                cursor = conn.cursor()
                cursor.execute(f"SELECT {pid}")
                execute(kill.format(cursor.fetchone()[0]))
                with self.assertRaises(Exception) as caught:
                    held.guard(cursor)
                self.assertNotIsInstance(caught.exception, (rowlock.Error, AssertionError))

        self.for_each_driver(work)

    def test_after_release(self):
        """a lock that was released guards nothing"""
        conn = DRIVERS[0]()
        held = self.db.lock(self.name).acquire()
        held.release()
        self.assertRaises(rowlock.Misuse, held.guard, conn.cursor())
        conn.close()

    @unittest.skipIf(KIND != "postgres", "no driver of it has coroutines here")
    def test_async(self):
        """a cursor with coroutines guards too"""
        import psycopg

        async def main():
            conn = await psycopg.AsyncConnection.connect(URL)
            async with self.db.alock(self.name, on_lost="log") as held:
                async with conn.cursor() as cursor:
                    with self.assertRaisesRegex(TypeError, "alock"):
                        held.held.guard(cursor)
                    await held.guard(cursor)
                    await conn.commit()
                    self.db.break_lock(self.name)
                    async with self.db.alock(self.name):
                        with self.assertRaises(rowlock.LockLost):
                            await held.guard(cursor)
            await conn.close()

        with self.assertLogs("rowlock"):
            asyncio.run(main())

    @unittest.skipIf(KIND != "postgres", "it is about PostgreSQL")
    def test_asyncpg(self):
        """a connection of asyncpg guards too"""
        import asyncpg

        async def main():
            conn = await asyncpg.connect(URL)
            for options in ({}, {"shared": True}):
                held = await self.db.alock(self.name, **options).acquire()
                async with conn.transaction():
                    await conn.execute("INSERT INTO guarded VALUES ($1)", 1)
                    await held.guard(conn)
                self.db.break_lock(self.name)
                async with self.db.alock(self.name):
                    with self.assertRaises(rowlock.LockLost):
                        async with conn.transaction():
                            await conn.execute("INSERT INTO guarded VALUES ($1)", 2)
                            await held.guard(conn)
                with self.assertRaises(rowlock.LockLost):
                    await held.release()
            await conn.close()

        asyncio.run(main())
        self.assertEqual(execute("SELECT n FROM guarded"), [(1,), (1,)])

    def test_connection(self):
        """a connection in place of a cursor is refused, and nothing is sent"""

        def work(conn):
            with self.db.lock(self.name) as held:
                for wrong in (conn, None, "cursor"):
                    with self.assertRaisesRegex(TypeError, "takes a cursor"):
                        held.guard(wrong, "qmark")
            self.assertFalse(getattr(conn, "in_transaction", False))

        async def wait():
            async with self.db.alock(self.name) as held:
                await held.guard(None, "qmark")

        self.for_each_driver(work)
        with self.assertRaisesRegex(TypeError, "takes a cursor"):
            asyncio.run(wait())

    @unittest.skipIf(KIND != "mysql", "it is about Galera and Group Replication")
    def test_several_writers(self):
        """where several nodes take writes, the guard changes the token's row"""

        def work(conn):
            for options in ({}, {"shared": True}):
                held = self.db.lock(self.name, **options).acquire()
                self.db._several_write = True
                cursor = conn.cursor()
                before = execute("SELECT sum(guards) FROM rowlock_tokens")[0][0]
                held.guard(cursor)
                conn.commit()
                after = execute("SELECT sum(guards) FROM rowlock_tokens")[0][0]
                self.assertEqual(after, before + 1)
                self.db.break_lock(self.name)
                with self.db.lock(self.name):
                    self.assertRaises(rowlock.LockLost, held.guard, cursor)
                    conn.rollback()
                self.assertRaises(rowlock.LockLost, held.release)

        self.for_each_driver(work)

    @unittest.skipIf(KIND != "postgres", "it is about PostgreSQL")
    def test_snapshot(self):
        """a snapshot that is older than the grant is the driver's serialization failure"""
        import psycopg

        conn = connect_psycopg()
        conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        self.db.lock(self.name).acquire().release()
        cursor = conn.cursor()
        cursor.execute("SELECT 1 FROM guarded")
        with self.db.lock(self.name) as held:
            with self.assertRaises(psycopg.errors.SerializationFailure):
                held.guard(cursor)
        conn.close()


if __name__ == "__main__":
    unittest.main()
