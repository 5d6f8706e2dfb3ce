#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A table that rowlock and an object mapper write, by the models and the SQL of docs/VERSIONS.md.
Prices are counters here, so that lost writes can be counted.

usage: sharing.py KIND [WRITER COLUMN]     the test, or a writer like sharing.rb, which reads lines:
         insert ID   read ID   save (one more than was read, under its version)
         add ID (a statement that passes by the version)   overwrite (a save without a version)
  ROWLOCK_TEST_CONFLICTS   how many conflicts a mapper and rowlock must meet (60)
"""
import os
import pathlib
import random
import re
import subprocess
import sys
import threading
import time

os.environ["ROWLOCK_TEST_KIND"] = KIND = sys.argv[1]
sys.path.insert(0, "bindings/python/tests")
import rowlock
from common import LONG, URL, execute
from test_django import configure

CONFLICTS = int(os.environ.get("ROWLOCK_TEST_CONFLICTS", "60"))
results = []


def block(head):
    document = pathlib.Path("docs/VERSIONS.md").read_text()
    return re.search(rf"^```{head}\n(.*?)^```", document, re.M | re.S)[1]


class Rowlock:
    def __init__(self, version):
        db = rowlock.connect(URL, connect_timeout=LONG, statement_timeout=LONG)
        self.table = db.table("prices", key="id", columns=["price"], version=version)
    def insert(self, key):
        self.table.insert((key, 0))
    def read(self, key):
        self.row = self.table.read(key)
    def save(self):
        self.table.update({**self.row, "price": self.row["price"] + 1})


class SQLAlchemy:
    def __init__(self, _):
        import sqlalchemy.orm

        url = URL.replace("mysql:", "mysql+mysqldb:").replace("sqlite:", "sqlite:///")
        patient = {"connect_args": {"timeout": LONG}} if KIND == "sqlite" else {}
        self.session = sqlalchemy.orm.Session(sqlalchemy.create_engine(url, **patient))
        names = {**vars(sqlalchemy), "Base": sqlalchemy.orm.declarative_base()}
        exec(block("python sqlalchemy"), names)
        self.Price = names["Price"]
    def insert(self, key):
        self.session.add(self.Price(id=key, price=0))
        self.session.commit()
    def read(self, key):
        self.session.rollback()
        self.row = self.session.get(self.Price, key)
    def save(self):
        self.row.price += 1
        self.session.commit()
    def add(self, key):
        self.session.rollback()
        self.session.query(self.Price).filter_by(id=key).update({"price": self.Price.price + 1})
        self.session.commit()


class Django:
    def __init__(self, _):
        options = {"timeout": LONG} if KIND == "sqlite" else {}
        configure().connection.settings_dict["OPTIONS"] = options
        from django.db import models

        code = block("python django").replace("Meta:", "Meta:\n        app_label = 'shop'")
        exec(code, names := {"models": models, "F": models.F, "__name__": "shop"})
        self.one_more = models.F("price") + 1
        self.prices, self.update = names["Price"].objects, names["save"]
    def insert(self, key):
        self.prices.create(id=key, price=0)
    def read(self, key):
        self.row = self.prices.get(id=key)
    def save(self):
        self.row.price += 1
        if not self.update(self.row):
            raise LookupError
    def add(self, key):
        self.prices.filter(id=key).update(price=self.one_more)
    def overwrite(self):
        self.row.price += 1
        self.row.save()


class Client(subprocess.Popen):
    """A writer in a process of its own. told: what it says if another one was faster."""
    def __init__(self, told, *writer):
        python = [sys.executable, "-W", "ignore", __file__, KIND, *writer]
        program = ["ruby", "tests/python/sharing.rb", URL] if writer[0] == "rails" else python
        super().__init__(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.told, self.adds = told, writer[0] != "rowlock"
        self.conflicts, self.done = 0, {1: 0, 2: 0}

    def __call__(self, *words):
        print(*words, file=self.stdin, flush=True)
        answer = self.stdout.readline()
        # MariaDB 11.6.2 and newer says so before the mapper does.
        answer = self.told if "(1020, " in answer else answer
        assert answer == "ok\n" or answer.startswith(self.told), f"{words}: {answer}"
        return answer.split("(")[0].strip()

    def contend(self, ended):
        while not ended.is_set():
            row = random.choice((1, 2))
            verb = "add" if self.adds and random.random() < 0.25 else "read"
            self(verb, row)
            time.sleep(random.random() / 500)
            if verb == "add" or self("save") == "ok":
                self.done[row] += 1
            else:
                self.conflicts += 1


def run_sql(text):
    execute(*filter(None, re.split(r";\n+(?!END| )", text)))


def prices():
    return [int(price) for price, in execute("SELECT price FROM prices ORDER BY id")]


def same(sentence, got, wanted):
    results.append(got == wanted)
    print(f"{'' if results[-1] else 'not '}ok {len(results)} - {sentence}", flush=True)
    print("" if results[-1] else f"# got {got}, expected {wanted}\n", end="", file=sys.stderr)


def share(name, told, version):
    run_sql("DROP TABLE IF EXISTS prices")
    run_sql("CREATE TABLE prices (id BIGINT PRIMARY KEY, price NUMERIC(12, 2))")
    if name != "rails":
        run_sql(block(f"sql {KIND} column"))
    theirs = Client(told, name, version)
    theirs("insert", 1)
    ours = Client("Stale", "rowlock", version)
    ours("insert", 2), ours("read", 1)
    same(f"rowlock updates what {name} inserted", ours("save"), "ok")
    is_large = execute(f"SELECT {version} FROM prices WHERE id = 2")[0][0] > 10**15
    theirs("read", 2)
    same(f"{name} saves what rowlock inserted", (is_large, theirs("save")), (True, "ok"))
    theirs("read", 1), ours("read", 1)
    same(f"{name} is told if rowlock was faster", (ours("save"), theirs("save")), ("ok", told))
    theirs("read", 1), ours("read", 1)
    same(f"rowlock is told if {name} was", (theirs("save"), ours("save")), ("ok", "Stale"))
    ours("read", 1), theirs("add", 1)
    same(f"{name}: what passes by is lost", (ours("save"), prices()), ("ok", [4, 1]))
    trigger = block(f"sql {KIND} trigger").replace("CREATE F", "CREATE OR REPLACE F")
    run_sql(re.sub(r"\bversion\b", version, trigger))
    ours("read", 1), theirs("add", 1)
    same(f"{name}: not with a trigger", (ours("save"), prices()), ("Stale", [5, 1]))
    if name == "django":
        theirs("read", 1), ours("read", 1), ours("save")
        same("django: save() overwrites", (theirs("overwrite"), prices()), ("ok", [6, 1]))
    clients = [theirs, ours, Client(told, name, version), Client("Stale", "rowlock", version)]
    before, ended, met = prices(), threading.Event(), (0, 0)
    threads = [threading.Thread(target=one.contend, args=(ended,)) for one in clients]
    [thread.start() for thread in threads]
    while sum(met) < CONFLICTS or (min(met) < CONFLICTS / 20 and sum(met) < CONFLICTS * 5):
        if not all(thread.is_alive() for thread in threads):
            break
        time.sleep(0.05)
        met = [sum(one.conflicts for one in side) for side in (clients[::2], clients[1::2])]
    ended.set()
    [thread.join() for thread in threads]
    print(f"# {KIND}: {name} met {met[0]} conflicts, rowlock {met[1]}", file=sys.stderr)
    made = [was + sum(one.done[i] for one in clients) for i, was in enumerate(before, 1)]
    same(f"{name} and rowlock lose no write", prices(), made)
    enough = sum(met) >= CONFLICTS and min(met) >= CONFLICTS / 20
    same(f"in {CONFLICTS} conflicts of both", enough, True)
    [one.__exit__(None, None, None) for one in clients]


if len(sys.argv) > 2:
    of_name = {"rowlock": Rowlock, "sqlalchemy": SQLAlchemy, "django": Django}
    writer = of_name[sys.argv[2]](sys.argv[3])
    for verb, *given in map(str.split, sys.stdin):
        try:
            getattr(writer, verb)(*map(int, given))
            print("ok", flush=True)
        except Exception as error:
            print(repr(error).replace("\n", " "), flush=True)
    sys.exit()
share("sqlalchemy", "StaleDataError", "version")
share("django", "LookupError", "version")
if subprocess.call(["sh", "-c", "ruby -r active_record -e ''"], stderr=subprocess.DEVNULL) == 0:
    share("rails", "StaleObjectError", "lock_version")
else:
    same("rails # SKIP tools/install-deps.sh more installs Active Record", True, True)
run_sql("DROP TABLE prices")
print(f"1..{len(results)}")
sys.exit(not all(results))
