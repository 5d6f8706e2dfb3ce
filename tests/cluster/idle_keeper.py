# SPDX-License-Identifier: MIT
"""A lock whose keeper has slept since before a failover. It speaks of each step, and takes the next
when a line comes.

usage: idle_keeper.py URL
"""
import sys
import time

import rowlock


def step(done: str) -> None:
    print(done, flush=True)
    sys.stdin.readline()


with rowlock.connect(sys.argv[1]) as db:
    with db.lock("kept", ttl=4):
        time.sleep(2)
    step("the keeper is connected")
    with db.lock("kept", ttl=30, wait=None) as held:
        step("granted by the new primary")
        held.check()
    print("released", flush=True)
