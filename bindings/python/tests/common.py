# SPDX-License-Identifier: MIT
"""What the tests share: the database that they run on, its drivers, and other processes."""
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
import urllib.parse

import rowlock

KIND = os.environ["ROWLOCK_TEST_KIND"]
TMPDIR = pathlib.Path(tempfile.gettempdir())
# For what must come. It comes much earlier on a machine that is not busy.
LONG = 300


def find_url():
    if KIND == "sqlite":
        return os.environ.get("ROWLOCK_TEST_SQLITE_URL") or f"sqlite:{TMPDIR}/rowlock.db"
    return os.environ[f"ROWLOCK_TEST_{KIND.upper()}_URL"]


URL = find_url() if KIND != "static" else ""


def connect_psycopg(**how):
    import psycopg

    return psycopg.connect(URL, **how)


def connect_psycopg2():
    import psycopg2

    return psycopg2.connect(URL)


def of_mysql():
    parts = urllib.parse.urlsplit(URL)
    return {"host": parts.hostname, "port": parts.port, "user": parts.username,
            "database": parts.path.lstrip("/")}  # fmt: skip


def connect_mysqlclient():
    import MySQLdb

    return MySQLdb.connect(**of_mysql())


def connect_pymysql():
    import pymysql

    return pymysql.connect(**of_mysql())


def connect_sqlite3():
    import sqlite3

    return sqlite3.connect(URL.split(":", 1)[1])


# A driver that is missing is an error, and not a skip.
DRIVERS = {
    "postgres": [connect_psycopg, connect_psycopg2],
    "mysql": [connect_mysqlclient, connect_pymysql],
    "sqlite": [connect_sqlite3],
    "static": [],
}[KIND]


def needs(module, package):
    """Skips this test aloud without the module. In `make check` that is a failure."""
    if importlib.util.find_spec(module):
        return
    missing = f"{package} is missing: tools/install-deps.sh installs it"
    print(f"# SKIPPED: {missing}", file=sys.stderr)
    if os.environ.get("SKIPS_AS_FAILS") == "1":
        raise AssertionError(missing)
    raise unittest.SkipTest(missing)


def driver():
    """A connection of the first driver."""
    return DRIVERS[0]()


def execute(*statements):
    """Each statement in a commit of its own. The rows of the last."""
    conn = driver()
    try:
        cursor = conn.cursor()
        rows = []
        for statement in statements:
            cursor.execute(statement)
            rows = list(cursor.fetchall()) if cursor.description else []
            conn.commit()
        return [tuple(row) for row in rows]
    finally:
        conn.close()


def until(condition):
    """Waits until condition() is true."""
    end = time.monotonic() + LONG
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it did not come")
        time.sleep(0.01)


def script(text, *arguments):
    """A program of its own, with `url` and `arguments` defined, under -X dev.

    Python 3.12 warns of each fork() beside threads.
    """
    head = f"import sys\nimport rowlock\nurl = {URL!r}\narguments = sys.argv[1:]\n"
    forks = "ignore:This process:DeprecationWarning"
    command = [sys.executable, "-X", "dev", "-W", forks, "-c", head + textwrap.dedent(text)]
    command.extend(arguments)
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


class Case(unittest.TestCase):
    """A test with a database in self.db, and names of its own."""

    pool = False

    @classmethod
    def setUpClass(cls):
        with rowlock.connect(URL, connect_timeout=LONG) as db:
            db.install()

    def setUp(self):
        self.db = rowlock.connect(URL, pool=self.pool, connect_timeout=LONG)
        self.addCleanup(self.db.close)
        # A server that the user brings keeps the once keys of earlier runs.
        self.name = f"{self.id()} {os.getpid()} {time.time_ns()}"

    def other(self, **how):
        db = rowlock.connect(URL, **{"connect_timeout": LONG, **how})
        self.addCleanup(db.close)
        return db

    def finished(self, process):
        """Its output. It must have ended well, and have warned of nothing."""
        try:
            out, err = process.communicate(timeout=LONG)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        # asyncio tells so of a busy machine.
        err = re.sub(r"^Executing <.*> took .* seconds\n", "", err, flags=re.M)
        self.assertEqual((process.returncode, err), (0, ""), out)
        return out

    def assert_free(self, name=None):
        """Neither a grant nor a waiter is in the tables."""
        self.assertEqual(self.db.grants(name or self.name), [])
        self.assertEqual(self.db.waiters(name or self.name), [])
