# SPDX-License-Identifier: MIT
"""A guard through Django's cursors. It wraps them once or twice, and otherwise with DEBUG=True."""
import unittest
import warnings

import rowlock
from common import KIND, URL, Case, execute, needs, of_mysql
from rowlock.database import Names

ENGINES = {
    "postgres": "django.db.backends.postgresql",
    "mysql": "django.db.backends.mysql",
    "sqlite": "django.db.backends.sqlite3",
}


def settings():
    if KIND == "sqlite":
        return {"NAME": URL.split(":", 1)[1]}
    if KIND == "mysql":
        given = of_mysql()
        given["NAME"] = given.pop("database")
        return {name.upper(): value for name, value in given.items()}
    import psycopg2.extensions

    given = psycopg2.extensions.parse_dsn(URL)
    return {name.replace("dbname", "name").upper(): value for name, value in given.items()}


def configure():
    """Django, with this test's database as its default."""
    needs("django", "python3-django")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import django.conf

        if not django.conf.settings.configured:
            database = {"ENGINE": ENGINES[KIND], **settings()}
            django.conf.settings.configure(DATABASES={"default": database})
            django.setup()
        import django.db

        return django.db


class Django(Case):
    def setUp(self):
        super().setUp()
        self.django = configure()
        self.addCleanup(self.django.connection.close)
        engine = " ENGINE = InnoDB" if KIND == "mysql" else ""
        execute("DROP TABLE IF EXISTS django", f"CREATE TABLE django (n INTEGER){engine}")

    def for_each_cursor(self, work):
        """As with DEBUG=False, and with DEBUG=True."""
        for debug in (False, True):
            self.django.connection.force_debug_cursor = debug
            with self.subTest(debug=debug), self.django.connection.cursor() as cursor:
                work(cursor)

    def test_ours(self):
        """Django: a guard in atomic() lets it commit, of each kind of lock, by an odd name too"""
        name = f"it's \"100%\" %s ? {self.name}"

        def work(cursor):
            for options in ({}, {"shared": True}, {"permits": 2}):
                with self.db.lock(name, **options) as held, self.django.transaction.atomic():
                    held.guard(cursor)
                    cursor.execute("INSERT INTO django VALUES (%s)", [1])
                    held.guard(cursor)

        self.for_each_cursor(work)
        self.assertEqual(execute("SELECT n FROM django"), [(1,)] * 6)

    def test_lost(self):
        """Django: it raises LockLost before the commit if another client got the lock"""

        def work(cursor):
            for options in ({}, {"shared": True}):
                held = self.db.lock(self.name, on_lost="log", **options).acquire()
                self.db.break_lock(self.name)
                with self.db.lock(self.name):
                    with self.assertRaises(rowlock.LockLost), self.django.transaction.atomic():
                        if KIND != "sqlite":
                            cursor.execute("INSERT INTO django VALUES (1)")
                        held.guard(cursor)
                self.assertRaises(rowlock.LockLost, held.release)

        self.for_each_cursor(work)
        self.assertEqual(execute("SELECT n FROM django"), [])

    @unittest.skipIf(KIND != "sqlite", "it is about a file with one writer")
    def test_guard_first(self):
        """Django: a guard that is first keeps others from writing; a later one may be refused"""
        other = self.db.lock(f"{self.name} other")

        def work(cursor):
            with self.db.lock(self.name) as held:
                with self.assertRaisesRegex(self.django.OperationalError, "locked"):
                    with self.django.transaction.atomic():
                        cursor.execute("SELECT * FROM django").fetchall()
                        other.acquire().release()
                        held.guard(cursor)
                with self.django.transaction.atomic():
                    held.guard(cursor)
                    self.assertRaises(rowlock.Error, other.acquire)
                    cursor.execute("SELECT * FROM django").fetchall()
                    cursor.execute("INSERT INTO django VALUES (1)")

        self.for_each_cursor(work)
        self.assertEqual(execute("SELECT n FROM django"), [(1,)] * 2)

    def test_autocommit(self):
        """Django: outside of atomic() it is a Misuse"""

        def work(cursor):
            with self.db.lock(self.name) as held:
                self.assertRaises(rowlock.Misuse, held.guard, cursor)

        self.for_each_cursor(work)

    def test_missing_tables(self):
        """Django: a cursor of a database without the lock's tables is a SchemaError"""

        def work(cursor):
            db = self.other()
            with db.lock(self.name) as held:
                db.names = Names(URL, None, "missing_")
                with self.assertRaises(rowlock.SchemaError), self.django.transaction.atomic():
                    held.guard(cursor)

        self.for_each_cursor(work)


if __name__ == "__main__":
    unittest.main()
