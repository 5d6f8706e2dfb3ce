# SPDX-License-Identifier: MIT
"""A server that hangs: what calls do, and what is left when it goes on."""
import asyncio
import os
import subprocess
import threading
import unittest

import rowlock
from common import KIND, LONG, Case, until

LIMITS = {"connect_timeout": 1, "statement_timeout": 1, "reconnect": 0.1}


def control(what):
    subprocess.run(["tests/lib/server-ctl.sh", KIND, what], check=True)


def cleaners():
    """The threads that go on while the server hangs."""
    return [one for one in threading.enumerate() if one.name == "rowlock"]


@unittest.skipIf(KIND == "sqlite", "it has no server")
@unittest.skipIf(not os.environ.get(f"ROWLOCK_TEST_{KIND.upper()}_DIR"), "not a private server")
class Frozen(Case):
    frozen = False

    def freeze(self):
        self.frozen = True
        control("freeze")
        self.addCleanup(control, "thaw")

    def limited(self, **more):
        """A database with LIMITS. A machine that stands still may keep it from being opened."""
        while True:
            try:
                db = self.other(**{**LIMITS, **more})
                with db.lock(self.name, ttl=2):
                    return db
            except rowlock.Error:
                continue

    def is_free_later(self):
        until(lambda: not cleaners())
        control("thaw")
        with self.other().lock(self.name, wait=LONG):
            pass

    def test_with(self):
        """the end of a with is told of a server that hangs, and a thread goes on"""
        db = self.limited()
        with self.assertRaises((rowlock.ConnectionFailed, rowlock.Uncertain)):
            while not self.frozen:
                try:
                    held = db.lock(self.name, ttl=2).acquire()
                except rowlock.Error:
                    # As limited().
                    continue
                with held:
                    self.freeze()
        self.assertTrue(cleaners())
        self.is_free_later()

    def test_wait(self):
        """a wait is told so too"""
        db = self.limited()
        held = self.db.lock(self.name, wait=LONG).acquire()
        lock = db.lock(self.name, wait=1, ttl=2)

        def freeze():
            until(lambda: self.db.waiters(self.name))
            self.freeze()

        freezing = threading.Thread(target=freeze)
        freezing.start()
        with self.assertRaises(rowlock.Failure):
            while True:
                try:
                    lock.acquire()
                except rowlock.Error as error:
                    # The server was not frozen in time, or the machine stood still.
                    if self.frozen and not isinstance(error, rowlock.Timeout):
                        raise
        self.assertTrue(cleaners())
        freezing.join()
        control("thaw")
        held.release()
        self.is_free_later()

    def cancel(self, pool):
        db = self.limited(pool=pool, reconnect=2)
        held = self.db.lock(self.name, wait=LONG).acquire()

        async def main():
            task = None
            while not await asyncio.to_thread(self.db.waiters, self.name):
                if task is None or task.done():
                    task = asyncio.create_task(db.alock(self.name, wait=None).acquire())
                await asyncio.sleep(0.01)
            self.freeze()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertTrue(pool or cleaners())

        asyncio.run(main())
        until(lambda: not cleaners())
        control("thaw")
        if pool:
            # A request that hung, too, may be done after that. Its ticket ends with its lease, and
            # has the position 0 then.
            until(lambda: not any(one.position for one in self.db.waiters(self.name)))
        held.release()

    def test_cancelled(self):
        """a task that is cancelled ends, and a thread goes on"""
        self.cancel(False)

    def test_cancelled_of_pool(self):
        """and a pool removes its ticket when the server goes on"""
        self.cancel(True)


if __name__ == "__main__":
    unittest.main()
