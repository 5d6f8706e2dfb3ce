#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Asyncio workers that lock the orders they work on: many locks, two connections.

Several of these programs may run at once, also on several hosts. Each order is done once: its once
key says so. While one worker is at an order, others leave it to that one.

usage: workers.py URL [ORDERS]
"""
import asyncio
import sys

import rowlock

WORKERS = 20


async def charge(order, token):
    """What must not be done twice. A service that keeps tokens can refuse an older one."""
    await asyncio.sleep(0.001)
    return f"receipt of order {order}"


async def work_on(db, order):
    """True: it is done, by us or before."""
    try:
        async with db.alock(f"order {order}", ttl=30) as held:
            async with db.once(f"order {order}", token=held.token) as claim:
                if not claim.done:
                    receipt = await charge(order, held.token)
                    held.check()
                    await asyncio.to_thread(claim.complete, receipt)
        return True
    except rowlock.Busy:
        return False


async def worker(db, orders, done):
    while not orders.empty():
        order = orders.get_nowait()
        if await work_on(db, order):
            done.append(order)
        else:
            orders.put_nowait(order)
            await asyncio.sleep(0.01)


async def run(url, count):
    orders, done = asyncio.Queue(), []
    for order in range(count):
        orders.put_nowait(order)
    with await asyncio.to_thread(rowlock.connect, url, pool=2) as db:
        await asyncio.to_thread(db.install)
        await asyncio.gather(*(worker(db, orders, done) for _ in range(WORKERS)))
    print(f"{len(done)} orders are done")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    asyncio.run(run(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100))
