#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A nightly job that runs on one host at a time, and whose writes are guarded.

usage: nightly.py [URL]      else ROWLOCK_URL, else the embedded database
"""
import contextlib
import sys

import rowlock


def connect_driver(url):
    """A connection of the driver of your choice, to the database that has the locks."""
    if url.startswith("sqlite:"):
        import sqlite3

        return sqlite3.connect(url.split(":", 1)[1])
    if url.startswith(("mysql:", "mariadb:")):
        import urllib.parse

        import pymysql

        at = urllib.parse.urlsplit(url)
        return pymysql.connect(
            host=at.hostname, port=at.port or 3306, user=at.username, password=at.password or "",
            database=at.path.lstrip("/"),
        )  # fmt: skip
    import psycopg

    return psycopg.connect(url)


def make_report(conn, held):
    """One transaction: the work, and then the guard. A holder that is too late writes nothing."""
    with contextlib.closing(conn.cursor()) as cursor:
        for step in ("DELETE FROM reports", "INSERT INTO reports VALUES (0), (1), (2)"):
            # Do not begin what would be in vain.
            held.check()
            cursor.execute(step)
        held.guard(cursor)
    conn.commit()


def main():
    url = sys.argv[1] if len(sys.argv) > 1 else None
    with rowlock.connect(url) as db:
        db.install()
        with contextlib.closing(connect_driver(db.url)) as conn:
            with contextlib.closing(conn.cursor()) as cursor:
                cursor.execute("CREATE TABLE IF NOT EXISTS reports (number INTEGER)")
            conn.commit()
            try:
                with db.lock("nightly", ttl=60) as held:
                    make_report(conn, held)
                    print(f"reported, with token {held.token}")
            except rowlock.Busy as busy:
                print(f"another host is at it: {busy.holder and busy.holder.host}")
            except rowlock.LockLost as lost:
                conn.rollback()
                sys.exit(f"nothing was written: {lost}")


if __name__ == "__main__":
    main()
