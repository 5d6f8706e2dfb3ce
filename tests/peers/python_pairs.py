# SPDX-License-Identifier: MIT
"""Acquire and release in Python, in 32 threads and in 500 tasks, each on a lock of its own: a pool
of rowlock beside the Lock of redis-py. They take turns. Its figures are added to a JSON of peers.

usage: python_pairs.py FILE.json     normally by run.sh
  PEERS, PEERS_SECONDS: see main.c. The servers are those of the environment.
"""
import asyncio
import json
import os
import statistics
import sys
import threading
import time

import redis
import redis.asyncio
import rowlock

THREADS, TASKS, ROUNDS = 32, 500, 5
SECONDS = float(os.environ.get("PEERS_SECONDS") or 1)
# The Lock of redis-py stores a value for each thread, and asks for a lease in seconds.
LEASE_S = 60


def in_threads(make):
    """How many pairs so many threads make in a second. make(number): a function that makes one."""
    counts, start = [0] * THREADS, threading.Barrier(THREADS + 1)
    steps = [make(number) for number in range(THREADS)]

    def work(number):
        start.wait()
        while time.monotonic() < until[0]:
            steps[number]()
            counts[number] += 1

    threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
    until = [time.monotonic() + 3600]
    for thread in threads:
        thread.start()
    began = time.monotonic()
    until[0] = began + SECONDS
    start.wait()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.monotonic() - began)


async def in_tasks(make):
    """The same for tasks. make(number): a function that gives a coroutine."""
    count, began = 0, time.monotonic()

    async def work(step):
        nonlocal count
        while time.monotonic() < began + SECONDS:
            await step()
            count += 1

    await asyncio.gather(*(work(make(number)) for number in range(TASKS)))
    return count / (time.monotonic() - began)


def pair(lock):
    def step():
        with lock:
            pass

    return step


def async_pair(lock):
    async def step():
        async with lock:
            pass

    return step


def rowlock_in(url, mode):
    with rowlock.connect(url, pool=True) as db:
        if mode == "threads":
            return in_threads(lambda number: pair(db.lock(f"python {number}", ttl=LEASE_S)))
        return asyncio.run(
            in_tasks(lambda number: async_pair(db.alock(f"python {number}", ttl=LEASE_S))))


def redis_in(port, mode):
    if mode == "threads":
        with redis.Redis(port=port) as client:
            return in_threads(lambda number: pair(client.lock(f"python {number}", LEASE_S)))

    async def run():
        async with redis.asyncio.Redis(port=port) as client:
            return await in_tasks(
                lambda number: async_pair(client.lock(f"python {number}", LEASE_S)))

    return asyncio.run(run())


def contenders():
    words = os.environ.get("PEERS", "").replace(",", " ").split()
    for id_, label, variable in (("pool-postgres", "PostgreSQL", "ROWLOCK_TEST_POSTGRES_URL"),
                                 ("pool-mysql", "MariaDB", "ROWLOCK_TEST_MYSQL_URL")):
        if not words or any(word in id_ for word in words):
            url = os.environ[variable]
            with rowlock.connect(url) as db:
                db.install()
            yield f"rowlock's pool, {label}", rowlock_in, url
    for policy in ("everysec", "always"):
        if not words or any(word in f"redis-{policy}" for word in words):
            with open(f"{os.environ['ROWLOCK_PEERS_DIR']}/redis-{policy}/port") as file:
                yield f"redis-py, {policy}", redis_in, int(file.read())


def main(path):
    ours = list(contenders())
    rounds = {(label, mode): [] for label, *_ in ours for mode in ("threads", "tasks")}
    for _ in range(ROUNDS):
        for label, run, where in ours:
            for mode in ("threads", "tasks"):
                rounds[label, mode].append(run(where, mode))
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    print(f"\nPython: acquire + release, {THREADS} threads and {TASKS} tasks, each on a lock of its "
          f"own: {ROUNDS} turns of {SECONDS:.1f} s each")
    for (label, mode), rates in rounds.items():
        print(f"  {label:32} {mode:8} {statistics.median(rates):9.0f} pairs/s "
              f"({min(rates):.0f} to {max(rates):.0f})")
        content["figures"].append(
            {"database": "peers", "what": "python", "contender": label, "mode": mode,
             "per_second": statistics.median(rates), "least": min(rates), "most": max(rates),
             "rounds": rates})
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=2)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    main(sys.argv[1])
