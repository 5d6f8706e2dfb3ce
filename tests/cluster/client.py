# SPDX-License-Identifier: MIT
"""A client of the load (load.c): a lock under a keeper. usage: client.py FOLDER NAME TTL_S URL"""
import os
import random
import sys
import time

import rowlock

folder, name, ttl, url = sys.argv[1:]
history = os.open(f"{folder}/history", os.O_WRONLY | os.O_APPEND)
load = os.getppid()


def now() -> int:
    return time.monotonic_ns() // 1000


def tell(kind: str, *numbers: int) -> None:
    os.write(history, (" ".join(map(str, (kind, name, *numbers))) + "\n").encode())


def hold(held: rowlock.Held) -> None:
    end = time.monotonic() + random.choice((0.01, 0.05, 1.0))
    while time.monotonic() < end:
        held.check()
        at = now()
        tell("H", held.token, at, at + int(held.remaining * 1e6))
        time.sleep(0.02)


db = None
while os.getppid() == load and not os.path.exists(f"{folder}/stop"):
    asked = now()
    try:
        db = db or rowlock.connect(url)
        with db.lock(name, ttl=float(ttl), wait=3) as held:
            at = now()
            tell("G", held.token, asked, at, at + int(held.remaining * 1e6))
            hold(held)
            tell("E", held.token, now())
    except rowlock.Error as error:
        os.write(history, f"# {name}: {error!r}\n".encode())
        time.sleep(0.05)
