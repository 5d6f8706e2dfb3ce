# SPDX-License-Identifier: MIT
# What the code of docs/PYTHON.md takes for granted. test_examples.py puts it before each block.
# URL becomes that of the test's database.
import asyncio  # noqa: F401
import sys
from decimal import Decimal  # noqa: F401

sys.path.insert(0, "bindings/python/tests")
import os

os.environ.setdefault("ROWLOCK_URL", URL)  # noqa: F821
import common

import rowlock

common.execute(
    "DROP TABLE IF EXISTS stock",
    "CREATE TABLE stock (id INTEGER PRIMARY KEY, n INTEGER, price NUMERIC(12, 2),"
    " version BIGINT NOT NULL)" + (" ENGINE = InnoDB" if common.KIND == "mysql" else ""),
    "INSERT INTO stock VALUES (1, 10, 5.25, 1), (2, 20, 6.25, 1), (42, 30, 7.25, 1)",
)
db = rowlock.connect(URL)  # noqa: F821
db.install()
connect_driver = common.driver


def work(*_):
    pass


charge = write = show = work
