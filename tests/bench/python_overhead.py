# SPDX-License-Identifier: MIT
"""The overhead of Python: turns of C calls and of the package, one after the other, in one run."""
import asyncio
import os
import statistics
import sys
import time
from decimal import Decimal

import rowlock
from rowlock._rowlock import ffi, lib
from rowlock.handle import Options
from rowlock.table import Changes, by_column

TURNS, ROWS = 5, 10000
PAIRS = int(sys.argv[1])
URLS = {
    "SQLite": os.environ["ROWLOCK_BENCH_SQLITE_URL"],
    "PostgreSQL": os.environ["ROWLOCK_TEST_POSTGRES_URL"],
    "MariaDB": os.environ["ROWLOCK_TEST_MYSQL_URL"],
}


def timed(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def medians(*works):
    """The median of each, by turns, so that a busy moment meets all of them."""
    times = [[timed(work) for work in works] for _ in range(TURNS)]
    return [statistics.median(column) for column in zip(*times)]


def c_pairs(db):
    """rowlock_acquire() and rowlock_release(), with a keeper, on a handle of their own."""
    handle = db._take()
    options = Options("acquire_options", keep=1, ttl_ms=30000)
    out = ffi.new("rowlock_lock **")
    handle.check(lib.rowlock_lock_open(handle.db, b"from C", out))

    def work():
        for _ in range(PAIRS):
            if lib.rowlock_acquire(out[0], options.struct) or lib.rowlock_release(out[0]):
                raise SystemExit("a C call failed")

    return work


def python_pairs(db):
    def work():
        for _ in range(PAIRS):
            with db.lock("from Python"):
                pass

    return work


def task_pairs(db):
    async def main():
        for _ in range(PAIRS):
            async with db.alock("from a task"):
                pass

    return lambda: asyncio.run(main())


def make_table(db, kind):
    import subprocess

    sql = (
        "CREATE TABLE bench_rows (id INTEGER PRIMARY KEY, price NUMERIC(12, 2), note VARCHAR(50),"
        " version BIGINT NOT NULL)"
    )
    if kind == "SQLite":
        import sqlite3

        sqlite3.connect(db.url.split(":", 1)[1]).execute(sql)
    elif kind == "PostgreSQL":
        subprocess.run(["psql", "-q", db.url, "-c", sql], check=True)
    else:
        import pymysql
        from urllib.parse import urlsplit

        at = urlsplit(db.url)
        pymysql.connect(
            host=at.hostname, port=at.port, user=at.username, database=at.path[1:]
        ).cursor().execute(sql)
    table = db.table("bench_rows", "id", ["price", "note"])
    table.insert([(n, Decimal(n), f"note {n}") for n in range(ROWS)]).check()
    return table


def updates(db, table):
    """One call of C with its array made before; and the package, from dicts and to outcomes."""
    rows = table.read_many(range(ROWS))
    handle = db._take()
    options = Options("change_options")
    names = (*table.key, *table.columns, table.version)

    def refresh():
        for row, new in zip(rows, table.read_many(range(ROWS))):
            row["version"] = new["version"]

    spent = {"c": [], "python": []}
    for _ in range(TURNS):
        refresh()
        changes = Changes(by_column(rows, names), names, 1, True, ROWS)
        opened = table._open(handle)
        one = [opened, lib.ROWLOCK_UPDATE, changes.array, ROWS, ffi.sizeof("rowlock_change"), options.struct]
        spent["c"].append(timed(lambda: lib.rowlock_apply(*one)))
        refresh()
        spent["python"].append(timed(lambda: table.update(rows).check()))
    return [statistics.median(spent[one]) for one in ("c", "python")]


def main():
    print(f"{PAIRS} pairs, {TURNS} turns, medians\n")
    print("| database | C: µs a pair | Python | of C | a task of a pool |")
    print("|---|---|---|---|---|")
    for kind, url in URLS.items():
        with rowlock.connect(url) as db, rowlock.connect(url, pool=True) as pool:
            db.install()
            c, py, task = medians(c_pairs(db), python_pairs(db), task_pairs(pool))
            each = [round(one / PAIRS * 1e6) for one in (c, py, task)]
            print(f"| {kind} | {each[0]} | {each[1]} | {py / c:.2f} | {each[2]} |", flush=True)
    print(f"\n| database | C: ms for {ROWS} rows | Python | of C |\n|---|---|---|---|")
    for kind, url in URLS.items():
        with rowlock.connect(url) as db:
            c, py = updates(db, make_table(db, kind))
            print(f"| {kind} | {c * 1e3:.0f} | {py * 1e3:.0f} | {py / c:.2f} |", flush=True)


main()
