# SPDX-License-Identifier: MIT
"""A lock whose keeper has slept since before a failover: see postgres_idle.t. usage: … URL"""
import sys
import time

import rowlock


def step(done: str) -> None:
    print(done, flush=True)
    sys.stdin.readline()


with rowlock.connect(sys.argv[1]) as db:
    with db.lock("kept", ttl=4) as held:
        last = held.remaining
        while held.remaining <= last:  # until its keeper has renewed it
            last = held.remaining
            time.sleep(0.01)
    step("the keeper is connected")
    with db.lock("kept", ttl=30, wait=None) as held:
        step("granted by the new primary")
        held.check()
    print("released", flush=True)
