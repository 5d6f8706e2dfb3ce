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
    def freeze(self):
        control("freeze")
        self.addCleanup(control, "thaw")

    def is_free_later(self):
        until(lambda: not cleaners())
        control("thaw")
        with self.other().lock(self.name, wait=LONG):
            pass

    def test_with(self):
        """the end of a with is told of a server that hangs, and a thread goes on"""
        with self.assertRaises((rowlock.ConnectionFailed, rowlock.Uncertain)):
            with self.other(**LIMITS).lock(self.name, ttl=2):
                self.freeze()
        self.assertTrue(cleaners())
        self.is_free_later()

    def test_wait(self):
        """a wait is told so too"""
        held = self.db.lock(self.name).acquire()
        lock = self.other(**LIMITS).lock(self.name, wait=1, ttl=2)

        def freeze():
            until(lambda: self.db.waiters(self.name))
            self.freeze()

        freezing = threading.Thread(target=freeze)
        freezing.start()
        with self.assertRaises(rowlock.Failure):
            while True:
                try:
                    lock.acquire()
                except rowlock.Timeout:
                    # The server was not frozen in time.
                    continue
        self.assertTrue(cleaners())
        freezing.join()
        control("thaw")
        held.release()
        self.is_free_later()

    def cancel(self, pool):
        db = self.other(pool=pool, **{**LIMITS, "reconnect": 2})
        held = self.db.lock(self.name, wait=LONG).acquire()

        async def main():
            task = asyncio.create_task(db.alock(self.name, wait=None).acquire())
            while not await asyncio.to_thread(self.db.waiters, self.name):
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
            until(lambda: not self.db.waiters(self.name))
        held.release()

    def test_cancelled(self):
        """a task that is cancelled ends, and a thread goes on"""
        self.cancel(False)

    def test_cancelled_of_pool(self):
        """and a pool removes its ticket when the server goes on"""
        self.cancel(True)


if __name__ == "__main__":
    unittest.main()
