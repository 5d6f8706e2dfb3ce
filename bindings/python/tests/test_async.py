# SPDX-License-Identifier: MIT
"""Locks of tasks."""
import asyncio
import gc
import os
import random
import resource
import threading
import unittest
from unittest import mock

import rowlock
from rowlock import aio
from common import LONG, URL, Case, until

TASKS = 1000


class Tasks(Case):
    pool = True

    def setUp(self):
        super().setUp()
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def test_held(self):
        """an async with holds the lock, and gives it back at its end"""

        async def main():
            async with self.db.alock(self.name, ttl=20) as held:
                (grant,) = self.db.grants(self.name)
                self.assertEqual((grant.token, held.state), (held.token, rowlock.State.HELD))
                self.assertTrue(0 < held.remaining <= 20)
                held.check()
                await held.renew()
                await held.verify()
                with self.assertRaises(rowlock.Busy):
                    await self.db.alock(self.name).acquire()
                with self.assertRaises(rowlock.Timeout):
                    await self.db.alock(self.name, wait=0.1).acquire()

        asyncio.run(main())
        self.assert_free()

    def test_lost(self):
        """a lock that was broken tells each task that waits for it, and is LockLost at the end"""

        async def main():
            with self.assertRaises(rowlock.LockLost):
                async with self.db.alock(self.name, ttl=0.5) as held:
                    waits = [asyncio.create_task(held.lost.wait()) for _ in range(3)]
                    await asyncio.sleep(0)
                    self.db.break_lock(self.name)
                    self.assertEqual(await asyncio.gather(*waits), [True] * 3)
                    self.assertRaises(rowlock.LockLost, held.check)

        asyncio.run(main())

    def test_closed_inside(self):
        """an async with whose database is closed inside ends well"""

        async def main():
            db = self.other()
            async with db.alock(self.name):
                db.close()

        asyncio.run(main())
        self.assert_free()

    def test_closed_waits(self):
        """a wait ends when its database is closed, in another thread too, also a cancelled one"""

        async def main(db, close):
            waits = [asyncio.create_task(db.alock(self.name, wait=None).acquire()) for _ in "ab"]
            while len(self.db.waiters(self.name)) < 2:
                await asyncio.sleep(0.01)
            await close()
            waits[0].cancel()
            ends = await asyncio.gather(*waits, return_exceptions=True)
            self.assertEqual([type(end) for end in ends], [cancelled, rowlock.Misuse])

        async def here():
            db.close()

        with self.db.lock(self.name):
            for pool in (False, True):
                db = self.other(pool=pool)
                cancelled = asyncio.CancelledError
                asyncio.run(main(db, here))
                db = self.other(pool=pool)
                cancelled = rowlock.Misuse
                asyncio.run(main(db, lambda: asyncio.to_thread(db.close)))
            self.assertEqual(self.db.waiters(self.name), [])

    def test_released_with(self):
        """an async with needs a lock that is held, and is its only one: else it is a Misuse"""

        async def main():
            held = await self.db.alock(self.name).acquire()
            async with held:
                with self.assertRaises(rowlock.Misuse):
                    async with held:
                        self.fail("it is held by the outer with")
                held.check()
            with self.assertRaises(rowlock.Misuse):
                async with held:
                    self.fail("it was released")

        asyncio.run(main())

    def test_own(self):
        """a task does not wait for itself without end; another task waits, and blocks nothing"""

        async def main():
            lock = self.db.alock(self.name, wait=None)
            self.assertEqual(repr(lock), f"<AsyncLock {self.name!r}>")
            async with lock as held:
                self.assertEqual(repr(held), f"<AsyncHeld {self.name!r} token {held.token}>")
                self.assertTrue(await lock.locked())
                for again in (lock.acquire(), self.db.alock(self.name).acquire(blocking=True)):
                    with self.assertRaisesRegex(rowlock.Deadlock, "this task"):
                        await again
                for blocks in (self.db.lock(self.name, wait=None), self.db.lock(self.name)):
                    with self.assertRaisesRegex(rowlock.Deadlock, "this thread"):
                        blocks.acquire(blocking=True)
                for end in ({"blocking": False}, {"timeout": 0.1}):
                    with self.assertRaisesRegex(rowlock.Busy, "this task holds it"):
                        await lock.acquire(**end)
                waits = asyncio.create_task(lock.acquire())
                while not self.db.waiters(self.name):
                    await asyncio.sleep(0.01)
            await (await waits).release()
            self.assertFalse(await lock.locked())

        asyncio.run(main())

    def test_closed_loop(self):
        """a task whose loop is closed waits no more, gets no lock, and its database is closed"""
        for pool in (False, True):
            for granted in (False, True):
                with self.subTest(pool=pool, granted=granted):
                    self.closed_loop(pool, granted)

    def closed_loop(self, pool, granted):
        db = self.other(pool=pool)
        loop = asyncio.new_event_loop()
        held = self.db.lock(self.name).acquire()
        # What the program keeps, garbage collection does not end.
        task = loop.create_task(db.alock(self.name, wait=None).acquire())
        while not self.db.waiters(self.name):
            loop.run_until_complete(asyncio.sleep(0.01))
        if granted:
            held.release()
            # The library's part is done, and the task has not seen it.
            (acquiring,) = aio.requests[loop]().open
            until(lambda: acquiring.step() == 0)
            del acquiring
        loop.close()
        until(lambda: not self.db.waiters(self.name))
        if not granted:
            held.release()
        with self.other().lock(self.name, wait=LONG):
            pass
        db.close()
        with self.assertLogs("asyncio") as logged:
            del task
            gc.collect()
        self.assertIn("destroyed but it is pending", logged.output[0])
        self.assert_free()

    def test_cancelled_at_its_end(self):
        """a loss that a cancel would hide is logged"""

        async def main():
            entered = asyncio.Event()

            async def work():
                async with self.db.alock(self.name):
                    self.db.break_lock(self.name)
                    entered.set()

            task = asyncio.create_task(work())
            await entered.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        with self.assertLogs("rowlock") as logged:
            asyncio.run(main())
        self.assertIn(self.name, logged.output[-1])

    def test_body(self):
        """an exception of the body is not replaced by the loss"""

        async def main():
            async with self.db.alock(self.name):
                self.db.break_lock(self.name)
                raise KeyError("mine")

        with self.assertLogs("rowlock"), self.assertRaises(KeyError):
            asyncio.run(main())

    def test_in_turn(self):
        """tasks get a lock one after the other, and the loop goes on meanwhile"""
        inside, tokens, beats = [], [], []

        async def work():
            async with self.db.alock(self.name, wait=None) as held:
                inside.append(1)
                self.assertEqual(len(inside), 1)
                tokens.append(held.token)
                seen = len(beats)
                while len(beats) == seen:
                    await asyncio.sleep(0)
                inside.pop()

        async def beat():
            while True:
                beats.append(1)
                await asyncio.sleep(0.001)

        async def main():
            beating = asyncio.create_task(beat())
            await asyncio.gather(*(work() for _ in range(30)))
            beating.cancel()

        asyncio.run(main())
        self.assertEqual(len(tokens), 30)
        self.assertEqual(tokens, sorted(set(tokens)))

    def test_many_at_once(self):
        """many that begin at once let the loop go on between them"""
        rounds, started = [0], []
        start = rowlock.Lock._start

        def counted(lock, acquiring):
            started.append(rounds[0])
            start(lock, acquiring)

        async def count():
            while True:
                rounds[0] += 1
                await asyncio.sleep(0)

        async def work(number):
            async with self.db.alock(f"{self.name} {number}"):
                pass

        async def main():
            counting = asyncio.create_task(count())
            await work(0)
            await asyncio.gather(*(work(number) for number in range(200)))
            counting.cancel()

        with mock.patch.object(rowlock.Lock, "_start", counted):
            asyncio.run(main())
        self.assertEqual(len(started), 201)
        self.assertLess(max(started.count(one) for one in set(started)), 50)

    def test_without_pool(self):
        """without a pool each has a connection, and a cancelled one leaves no thread"""
        db = self.other()

        async def main():
            async with db.alock(self.name) as held:
                task = asyncio.create_task(db.alock(self.name, wait=None).acquire())
                while not await asyncio.to_thread(self.db.waiters, self.name):
                    await asyncio.sleep(0.01)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.assertEqual(self.db.waiters(self.name), [])
                held.check()

        asyncio.run(main())
        db.close()
        until(lambda: "rowlock" not in " ".join(one.name for one in threading.enumerate()))
        self.assert_free()

    def test_cancelled(self):
        """1,000 tasks that are cancelled at random leave no grant, no ticket and no thread"""
        db = self.other(pool=True)
        done = {"held": 0, "cancelled": 0}

        async def work(number):
            name = f"{self.name} {number % (TASKS // 10)}"
            try:
                async with db.alock(name, wait=None, ttl=LONG) as held:
                    held.check()
                    await asyncio.sleep(random.random() * 0.02)
                    done["held"] += 1
            except asyncio.CancelledError:
                done["cancelled"] += 1
                raise

        async def cancel(task):
            await asyncio.sleep(random.random())
            task.cancel()

        async def main():
            running = [asyncio.create_task(work(number)) for number in range(TASKS)]
            await asyncio.gather(*(cancel(task) for task in running if random.random() < 0.7))
            ends = await asyncio.gather(*running, return_exceptions=True)
            for end in ends:
                self.assertTrue(end is None or isinstance(end, asyncio.CancelledError), end)

        # The debug mode of -X dev keeps a traceback for each task and handle.
        asyncio.run(main(), debug=False)
        self.assertGreater(done["held"], 0)
        self.assertGreater(done["cancelled"], 0)
        self.assertEqual(self.db.grants(), [])
        self.assertEqual(self.db.waiters(), [])
        db.close()
        until(lambda: not [one for one in threading.enumerate() if one.name.startswith("rowlock")])
        with self.other(pool=True) as again:
            for number in range(TASKS // 10):
                with again.lock(f"{self.name} {number}"):
                    pass


if __name__ == "__main__":
    unittest.main()
