# SPDX-License-Identifier: MIT
"""Locks, their results, and what interrupts them."""
import concurrent.futures
import copy
import datetime
import functools
import gc
import linecache
import logging
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
from decimal import Decimal as D

import rowlock
from common import KIND, LONG, TMPDIR, URL, Case, execute, script, until


class Locks(Case):
    def test_held(self):
        """a with holds the lock, and gives it back at its end"""
        with self.db.lock(self.name, ttl=20, note="for people") as held:
            (grant,) = self.db.grants(self.name)
            self.assertEqual((grant.token, grant.owner), (held.token, held.owner))
            self.assertEqual((grant.note, grant.pid), ("for people", os.getpid()))
            self.assertTrue(0 < held.remaining <= 20)
            self.assertEqual(held.state, rowlock.State.HELD)
            self.assertFalse(held.lost.is_set())
            held.check()
            held.verify()
            held.renew()
        self.assert_free()
        with self.db.lock(self.name) as again:
            self.assertGreater(again.token, held.token)

    def test_busy(self):
        """a lock that is held is Busy, and tells its holder"""
        with self.db.lock(self.name) as held:
            with self.assertRaises(rowlock.Busy) as caught:
                with self.other().lock(self.name):
                    pass
        self.assertEqual(caught.exception.holder.token, held.token)
        self.assertEqual(caught.exception.result, rowlock.Result.BUSY)
        self.assertTrue(caught.exception.retryable)
        self.assertIn(self.name, str(caught.exception))

    def test_timeout(self):
        """a wait that ends is a Timeout, and leaves no ticket"""
        with self.db.lock(self.name):
            with self.assertRaises(rowlock.Timeout) as caught:
                self.other().lock(self.name, wait=0.2).acquire()
            self.assertIsInstance(caught.exception, (rowlock.Busy, TimeoutError))
            self.assertIn("timed out after 0.2 s", str(caught.exception))
            self.assertEqual(self.db.waiters(self.name), [])

    def test_wait(self):
        """a wait is granted when the holder releases"""
        got = []
        held = self.db.lock(self.name).acquire()

        def wait():
            with self.db.lock(self.name, wait=None) as later:
                got.append(later.token)

        thread = threading.Thread(target=wait)
        thread.start()
        until(lambda: self.db.waiters(self.name))
        held.release()
        thread.join()
        self.assertEqual(len(got), 1)
        self.assertGreater(got[0], held.token)

    def test_shared(self):
        """shared and counted locks are held by as many as they say"""
        with self.db.lock(self.name, shared=True), self.db.lock(self.name, shared=True):
            with self.assertRaises((rowlock.Busy, rowlock.Mismatch)):
                self.db.lock(self.name).acquire()
        with self.db.lock(self.name, permits=2), self.db.lock(self.name, permits=2):
            with self.assertRaises(rowlock.Busy):
                self.db.lock(self.name, permits=2).acquire()
            with self.assertRaises(rowlock.Mismatch):
                self.db.lock(self.name, permits=3).acquire()

    def test_renewed(self):
        """a lease is renewed in the background, longer than it is"""

        def is_renewed():
            """On a machine that stands still a lease may end first."""
            with self.db.lock(self.name, ttl=0.6, on_lost="log") as held:
                while not held.lost:
                    if any(grant.renewals >= 3 for grant in self.db.grants(self.name)):
                        return True
                    time.sleep(0.05)
                return False

        until(is_renewed)

    def test_not_renewed(self):
        """with renew=False it is over in time, and lost says so"""
        with self.db.lock(self.name, ttl=0.3, renew=False, on_lost="log") as held:
            self.assertTrue(held.lost.wait(LONG))
            self.assertRaises(rowlock.LockLost, held.check)
            self.assertTrue(held.lost)

    def test_lost(self):
        """a lock that was broken is LockLost at the end of its with"""
        with self.assertRaises(rowlock.LockLost) as caught:
            with self.db.lock(self.name, ttl=0.5) as held:
                self.db.break_lock(self.name)
                self.assertTrue(held.lost.wait(LONG))
                with self.assertRaises(rowlock.LockLost):
                    held.check()
        self.assertEqual(caught.exception.result, rowlock.Result.LOST)
        self.assertTrue(held.lost.is_set())
        self.assertRaises(rowlock.Misuse, held.release)

    def test_lost_quietly(self):
        """or is logged, with on_lost="log\""""
        with self.assertLogs("rowlock", logging.ERROR) as logged:
            with self.db.lock(self.name, on_lost="log"):
                self.db.break_lock(self.name)
        self.assertIn(self.name, logged.output[0])

    def test_lost_in_a_wait(self):
        """a thread that waits for the loss is woken by the release too"""
        held = self.db.lock(self.name).acquire()
        told = []
        thread = threading.Thread(target=lambda: told.append(held.lost.wait()))
        with unittest.mock.patch("rowlock.lock.LOOK_UP_MS", 20):
            thread.start()
            held.release()
            thread.join()
        self.assertEqual(told, [False])

    def test_body(self):
        """an exception of the body is not replaced by the loss"""
        with self.assertLogs("rowlock", logging.ERROR):
            with self.assertRaisesRegex(KeyError, "mine"):
                with self.db.lock(self.name):
                    self.db.break_lock(self.name)
                    raise KeyError("mine")
        with self.assertRaisesRegex(KeyError, "mine"):
            with self.db.lock(self.name):
                raise KeyError("mine")
        self.assert_free()

    def test_release(self):
        """without a with, release() gives it back once"""
        held = self.db.lock(self.name).acquire()
        (grant,) = self.db.grants(self.name)
        held.release()
        self.assert_free()
        self.assertEqual(held.expires, grant.expires)
        self.assertRaises(rowlock.Misuse, held.release)
        self.assertRaises(rowlock.Misuse, held.check)
        self.assertEqual((held.state, held.remaining), (rowlock.State.NONE, 0))

    def test_released_with(self):
        """a with needs a lock that is held, and is its only one: else it is a Misuse"""
        lock = self.db.lock(self.name).acquire()
        for _ in range(3):
            if lock.state == rowlock.State.HELD:
                with lock:
                    self.assertRaises(rowlock.Misuse, lock.__enter__)
                    lock.check()
            else:
                self.assertRaises(rowlock.Misuse, lock.__enter__)
        with self.db.lock(self.name) as held:
            self.assertRaises(rowlock.Misuse, held.__enter__)
            held.check()
        self.assert_free()

    def test_reused(self):
        """a Lock object is for one with at a time, and can be used again"""
        lock = self.db.lock(self.name)
        with lock:
            self.assertRaises(rowlock.Misuse, lock.__enter__)
        with lock as held:
            held.check()
        self.assert_free()

    def test_own(self):
        """a thread does not wait for itself without end, and is told that it holds the lock"""
        lock = self.db.lock(self.name, wait=None)
        other = self.db.lock(self.name, wait=None)
        shared = self.db.lock(self.name, shared=True, wait=None)
        with lock as held:
            for one in (lock, other, shared):
                with self.assertRaisesRegex(rowlock.Deadlock, f"this thread.* {held.token},"):
                    one.acquire()
            self.assertRaises(rowlock.Deadlock, other.__enter__)
            for end in ({"blocking": False}, {"timeout": 0.1}):
                with self.assertRaisesRegex(rowlock.Busy, "this thread holds it"):
                    other.acquire(**end)
            self.assertEqual(self.in_thread(other.acquire, blocking=False), "this program")
        with shared, self.db.lock(self.name, shared=True, wait=None):
            self.assertRaises(rowlock.Deadlock, lock.acquire)
        counted = functools.partial(self.db.lock, self.name, permits=2, wait=None)
        with counted(), counted():
            self.assertRaises(rowlock.Deadlock, counted().acquire)
        held = lock.acquire()
        self.assertRaises(rowlock.Deadlock, lock.acquire)
        held.release()
        self.assertEqual((self.db._holds.by_key, self.db._holds.by_token), ({}, {}))

    def in_thread(self, call, **arguments):
        """Who holds the lock, as the error says in another thread."""
        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            with self.assertRaises(rowlock.Busy) as caught:
                executor.submit(call, **arguments).result()
        return re.search(": (.*) holds it", str(caught.exception))[1]

    def test_handed_over(self):
        """what a thread of an executor acquired may be for others, so that it may wait for it"""
        lock = self.db.lock(self.name, wait=None)
        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            held = executor.submit(lock.acquire).result()
            waits = executor.submit(lock.acquire)
            until(lambda: self.db.waiters(self.name))
            held.release()
            waits.result().release()

            def twice():
                with lock:
                    lock.acquire()

            with self.assertRaises(rowlock.Deadlock):
                executor.submit(twice).result()
        self.assert_free()

    def test_handed_over_at_once(self):
        """so is what a thread of an executor acquired while the executor still starts it"""
        lock = self.db.lock(self.name, wait=None)
        acquired, start = threading.Event(), threading.Thread.start

        def acquire():
            held = lock.acquire()
            acquired.set()
            return held

        def start_and_wait(thread):
            start(thread)
            self.assertTrue(acquired.wait(LONG))

        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            with unittest.mock.patch.object(threading.Thread, "start", start_and_wait):
                held = executor.submit(acquire).result()
            waits = executor.submit(lock.acquire)
            until(lambda: waits.done() or self.db.waiters(self.name))
            held.release()
            waits.result().release()

    def test_own_that_ends(self):
        """a lock that ends by itself, or was lost, is waited for"""
        with self.db.lock(self.name, ttl=0.2, renew=False, on_lost="log"):
            self.db.lock(self.name, wait=None).acquire().release()
        with self.db.lock(self.name, on_lost="log") as held:
            self.db.break_lock(self.name)
            self.assertRaises(rowlock.LockLost, held.verify)
            self.db.lock(self.name, wait=None).acquire().release()

    def test_acquire(self):
        """acquire() takes blocking and timeout in place of wait"""
        lock = self.db.lock(self.name)
        for wrong in ({"blocking": False, "timeout": 1}, {"blocking": 1}, {"timeout": -2}):
            self.assertRaises(rowlock.Invalid, lock.acquire, **wrong)
        for given in ((), (False,), (True,), (True, 5), (None, 5), (None, -1), (None, 0)):
            with self.subTest(given):
                lock.acquire(*given)
                lock.release()
        held = self.db.lock(self.name).acquire()
        for given in ((True,), (None, -1), (True, LONG)):
            with concurrent.futures.ThreadPoolExecutor(1) as executor:
                waits = executor.submit(lock.acquire, *given)
                until(lambda: self.db.waiters(self.name))
                held.release()
                held = waits.result()
        held.release()

    def test_locked(self):
        """locked() asks the database, and repr() has the name"""
        lock = self.db.lock(self.name)
        self.assertFalse(lock.locked())
        with self.other().lock(self.name):
            self.assertTrue(lock.locked())
        with self.db.lock(self.name, ttl=0.1, renew=False, on_lost="log") as held:
            held.lost.wait()
            until(lambda: not lock.locked())
        self.assertEqual(repr(lock), f"<Lock {self.name!r}>")

    def test_release_of_nothing(self):
        """release() without any acquire() is a Misuse; in a finally it hides no exception"""
        lock = self.db.lock(self.name)
        self.assertRaises(rowlock.Misuse, lock.release)
        with self.assertRaises(KeyError):
            try:
                raise KeyError
            finally:
                lock.release()
        lock.acquire()
        lock.release()
        lock.release()

    def test_remaining(self):
        """what is left of a lease is never more than all of it"""
        from rowlock._rowlock import ffi

        told = ffi.new("rowlock_grant *", {"remaining_ms": 1001, "ttl_ms": 1000})
        self.assertEqual(rowlock.Grant(told).remaining, 1)

    def test_progress(self):
        """without progress the keeper stops renewing"""
        with self.db.lock(self.name, ttl=0.6, progress=0.1, on_lost="log") as held:
            held.progress()
            until(lambda: held.state != rowlock.State.HELD)

    def test_owner(self):
        """an owner that comes back takes its lock over, and the older is lost"""
        first = self.other(owner="the same").lock(self.name, renew=False).acquire()
        with self.other(owner="the same").lock(self.name) as held:
            self.assertGreater(held.token, first.token)
            self.assertRaises(rowlock.LockLost, first.verify)
        self.assertRaises(rowlock.LockLost, first.release)

    def test_fence(self):
        """a fence refuses a token that is older than the newest"""
        self.db.fence(self.name, 7)
        self.db.fence(self.name, 8)
        self.assertRaises(rowlock.Stale, self.db.fence, self.name, 7)

    def test_closed(self):
        """close() releases what is held, and ends waits"""
        db = self.other()
        held = db.lock(self.name).acquire()
        ended = []

        def wait():
            try:
                db.lock(self.name, wait=None).acquire()
            except rowlock.Error as error:
                ended.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        until(lambda: self.db.waiters(self.name))
        db.close()
        thread.join()
        self.assertIsInstance(ended[0], rowlock.Error)
        self.assertRaises(rowlock.Misuse, held.check)
        self.assertEqual((held.remaining, held.expires > 0), (0, True))
        for wait in (0, None):
            self.assertRaises(rowlock.Misuse, db.lock(self.name, wait=wait).acquire)
        self.assert_free()

    def test_closed_leaks_nothing(self):
        """a lock that close() has released leaves no descriptor behind"""
        descriptors = []
        for _ in range(4):
            db = self.other()
            held = db.lock(self.name).acquire()
            held.fileno()
            other = db.lock(self.name + " other").acquire()
            other.fileno()
            del other
            db.close()
            del held, db
            gc.collect()
            descriptors.append(len(os.listdir("/proc/self/fd")))
        self.assertEqual(descriptors[-1], descriptors[0])

    def test_closed_waits_first(self):
        """no wait is granted what close() releases"""
        db = self.other()
        held = db.lock(self.name).acquire()
        ended = []

        def wait():
            try:
                ended.append(db.lock(self.name, wait=None).acquire())
            except rowlock.Misuse as error:
                ended.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        until(lambda: self.db.waiters(self.name))
        close = rowlock.handle.Handle.close

        def close_and_pause(handle):
            close(handle)
            if handle is held._handle:
                thread.join(LONG)

        db._all = dict.fromkeys(sorted(db._all, key=lambda one: one is not held._handle))
        with unittest.mock.patch.object(rowlock.handle.Handle, "close", close_and_pause):
            db.close()
        thread.join()
        self.assertIsInstance(ended[0], rowlock.Misuse)
        self.assert_free()

    def test_closed_inside(self):
        """a with whose database is closed inside ends well"""
        with self.other() as db, db.lock(self.name):
            db.close()
        with self.assertRaises(KeyError), self.other() as db, db.lock(self.name):
            db.close()
            raise KeyError
        self.assert_free()

    def test_threads(self):
        """many threads hold one lock in turn, each by itself"""
        inside, most, done = [], [], []

        def work():
            for _ in range(5):
                with self.db.lock(self.name, wait=LONG) as held:
                    inside.append(1)
                    most.append(len(inside))
                    done.append(held.token)
                    inside.pop()

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((len(done), max(most)), (30, 1))
        self.assertEqual(done, sorted(set(done)))
        self.assert_free()


class PooledLocks(Locks):
    """The same with handles of a pool."""

    pool = True

    def shortDescription(self):
        return f"pool: {super().shortDescription()}"

    def test_renewed(self):
        """a lease is renewed through the pool"""
        super().test_renewed()


def interrupt():
    raise KeyboardInterrupt


class Steps:
    """Calls a signal handler before the given step of the package."""

    HERE = os.path.dirname(rowlock.__file__)

    def __init__(self, left, handler=interrupt):
        self.left = left
        self.handler = handler

    @classmethod
    def between(cls, run, tries=20):
        """How far apart the steps are that a test tries, of all that run(steps) goes through.

        With ROWLOCK_TEST_LONG=1 each of them is tried, otherwise about so many.
        """
        most = cls(sys.maxsize)
        run(most)
        count = sys.maxsize - most.left
        assert count > 30, count
        return 1 if os.environ.get("ROWLOCK_TEST_LONG") == "1" else max(1, count // tries)

    def trace(self, frame, event, _):
        code = frame.f_code
        if not code.co_filename.startswith(self.HERE) or code.co_name == "dropped":
            return None
        source = linecache.getline(code.co_filename, frame.f_lineno).strip()
        # Python lets no handler run between the body of a with and the end of its lock.
        # Python before 3.11 lets a handler run where a function has returned, too.
        if event in ("call", "return") or (event == "line" and not source.startswith("with ")):
            self.left -= 1
            if self.left == 0:
                self.handler()
        return self.trace


class Anywhere(Case):
    def ended(self, steps, use, *arguments):
        """Whether it came to its end."""
        sys.settrace(steps.trace)
        try:
            use(*arguments)
        except KeyboardInterrupt:
            return False
        finally:
            sys.settrace(None)
        return True

    def check_each_step(self, pool, make, use):
        db = self.other(pool=pool)
        with db.lock("other than it"):
            pass
        stride = Steps.between(lambda steps: self.ended(steps, use, make(db)))
        step, ended = 1, False
        while not ended:
            made = make(db)
            ended = self.ended(Steps(step), use, made)
            del made
            step += stride
            until(lambda: not self.db.grants(self.name))
            with db.lock(self.name, wait=LONG):
                pass
        self.assert_free()

    def lock_of(self, db):
        return db.lock(self.name)

    @staticmethod
    def use_with(lock):
        with lock:
            pass

    def test_own(self):
        """an interrupt before any step of a with leaves no grant, and the database can be used"""
        self.check_each_step(False, self.lock_of, self.use_with)

    def test_pool(self):
        """and so with a pool"""
        self.check_each_step(True, self.lock_of, self.use_with)

    def test_acquire(self):
        """after an interrupt of acquire(), release() of the lock object leaves no grant"""

        def use(lock):
            try:
                lock.acquire()
            finally:
                sys.settrace(None)
                lock.release()

        for pool in (False, True):
            self.check_each_step(pool, self.lock_of, use)

    def test_exclusive(self):
        """an interrupt of a decorated function leaves no grant"""

        def decorated(db):
            return rowlock.exclusive(self.name, db=db)(lambda: None)

        self.check_each_step(False, decorated, lambda function: function())

    def test_once(self):
        """an interrupt before any step of a claim leaves the key free, or done"""

        def use(once):
            with once:
                pass

        def is_free(name):
            try:
                self.db.once(name).claim().close()
                return True
            except rowlock.Busy:
                return False

        for pool in (False, True):
            db = self.other(pool=pool)
            first = db.once(f"{self.name} {pool}")
            stride = Steps.between(lambda steps: self.ended(steps, use, first))
            step, ended = 1, False
            while not ended:
                name = f"{self.name} {pool} {step}"
                # The next begins with a connection that is idle.
                db.grants(name)
                ended = self.ended(Steps(step), use, db.once(name, ttl=3600))
                until(lambda: is_free(name))
                step += stride

    def handle_at(self, steps, pool, use, handler):
        """Whether the handler was called. What it may not do must be Misuse."""
        with self.other(pool=pool) as db:
            held = db.lock(self.name).acquire()

            def handle():
                try:
                    handler(db, held)
                except rowlock.Misuse as error:
                    self.assertRegex(str(error), "signal handler|no longer held")

            steps.handler = handle
            sys.settrace(steps.trace)
            try:
                use(db, held)
            except rowlock.Misuse:
                pass
            finally:
                sys.settrace(None)
        self.assert_free()
        return steps.left <= 0

    def test_handler(self):
        """a signal handler that calls into what it interrupts gets Misuse, and does not hang"""
        uses = (
            lambda db, held: held.renew(),
            lambda db, held: db.lock(self.name + " b", wait=1).acquire(),
            lambda db, held: held.release(),
        )
        handlers = (lambda db, held: held.release(), lambda db, held: db.close())
        for use in uses:
            for handler in handlers:
                for pool in (False, True):
                    at = functools.partial(self.handle_at, pool=pool, use=use, handler=handler)
                    step, stride = 1, Steps.between(at, tries=8)
                    while at(Steps(step)):
                        step += stride

    def test_close_inside(self):
        """a database is not closed inside of its own retry"""
        self.assertRaisesRegex(rowlock.Misuse, "inside", self.db.retry, lambda _: self.db.close())

    def test_memory(self):
        """an acquire leaves no memory behind: one that was refused, and one that was released"""
        process = script(
            """
            import ctypes
            names = "arena ordblks smblks hblks hblkhd usmblks fsmblks used free keep".split()

            class Info(ctypes.Structure):
                _fields_ = [(name, ctypes.c_size_t) for name in names]

            info = ctypes.CDLL(None).mallinfo2
            info.restype = Info

            def refused(times):
                for _ in range(times):
                    try:
                        db.lock(arguments[0]).acquire()
                    except rowlock.Busy:
                        pass

            def released(times):
                # Its keeper sleeps for a third of the lease.
                for _ in range(times):
                    db.lock(arguments[0] + " free", ttl=86400).acquire().release()

            db = rowlock.connect(url, pool=True)
            for use in (refused, released):
                use(200)
                before = info().used
                use(1000)
                print((info().used - before) // 1000 < 300)
            db.close()
            """,
            self.name,
        )
        with self.db.lock(self.name):
            self.assertEqual(self.finished(process), "True\n" * 2)


class Errors(Case):
    def test_url(self):
        """what cannot be opened is refused with the reason"""
        self.assertRaisesRegex(rowlock.Invalid, ".", rowlock.connect, "nosuch:thing")
        with self.assertRaises(ValueError):
            rowlock.connect("nosuch:thing")

    def test_no_url(self):
        """where a URL is required, no file is made in its place"""
        for variables, said in (
            ({"ROWLOCK_REQUIRE_URL": "1"}, "Set ROWLOCK_URL"),
            ({"ROWLOCK_URL": " "}, "ROWLOCK_URL is empty"),
        ):
            folder = tempfile.mkdtemp()
            self.addCleanup(shutil.rmtree, folder)
            with unittest.mock.patch.dict(os.environ, {"XDG_STATE_HOME": folder, **variables}):
                if "ROWLOCK_URL" not in variables:
                    os.environ.pop("ROWLOCK_URL", None)
                self.assertRaisesRegex(rowlock.Invalid, said, rowlock.connect)
            self.assertEqual(os.listdir(folder), [])

    def test_away(self):
        """a server that is away is a ConnectionError"""
        if KIND == "sqlite":
            with self.assertRaises(rowlock.Failure):
                rowlock.connect("sqlite:/no/such/folder/at/all.db")
            return
        for pool in (False, True):
            with self.assertRaises(ConnectionError) as caught:
                rowlock.connect(URL.split(":", 1)[0] + "://127.0.0.1:1/none", pool=pool)
            self.assertEqual(caught.exception.result, rowlock.Result.ECONN)

    def test_tables(self):
        """tables that are missing are a SchemaError"""
        db = self.other(prefix="missing_")
        with self.assertRaises(rowlock.SchemaError) as caught:
            db.lock("a").acquire()
        self.assertIn("db.install()", str(caught.exception))

    def test_options(self):
        """options that make no sense are Invalid"""
        for wrong in ({"ttl": 0}, {"wait": -1}, {"on_lost": "?"}, {"ttl": 0.01}, {"permits": -7}):
            with self.assertRaises(rowlock.Invalid, msg=str(wrong)):
                self.db.lock(self.name, **wrong).acquire()
        for name in ("", "x" * 256):
            self.assertRaises(rowlock.Invalid, self.db.lock(name).acquire)
        self.assertRaises(ValueError, self.db.lock, "a\0b")

    def test_wrong_options(self):
        """a time that is none, and permits that would be left out, are refused and named"""
        for wrong in (
            {"permits": -1}, {"shared": True, "permits": 2}, {"ttl": float("nan")}, {"ttl": 1e30},
            {"ttl": -1e308}, {"wait": 1e17}, {"wait": float("nan")}, {"max_hold": 1e300},
        ):  # fmt: skip
            with self.assertRaisesRegex(rowlock.Invalid, "permits|number of seconds", msg=wrong):
                self.db.lock(self.name, **wrong)
        for wrong in ({"name": 5}, {"permits": 1.5}, {"ttl": "5"}, {"wait": b"5"}):
            with self.assertRaisesRegex(rowlock.Invalid, next(iter(wrong)), msg=wrong):
                self.db.lock(**{"name": self.name, **wrong})
        self.assert_free()

    def test_kinds_of_options(self):
        """an option of another type is Invalid, and its text has the option's name"""

        def lock(**option):
            self.db.lock(**{"name": self.name, **option}).acquire().release()

        def connect(**option):
            rowlock.connect(**{"url": URL, **option}).close()

        def once(**option):
            self.db.once(**{"key": self.name, **option}).claim()

        def walk(**option):
            self.db.walk(self.db.table("none", "id"), **{"name": self.name, **option}).run()

        def fence(**option):
            self.db.fence(**{"resource": self.name, "token": 1, **option})

        for call, wrong in (
            (lock, {"name": 5}), (lock, {"name": "\ud800"}), (lock, {"note": 5}),
            (lock, {"note": "\ud800"}), (lock, {"shared": "no"}), (lock, {"shared": 1}),
            (lock, {"renew": 0}), (lock, {"unfair": "no"}), (lock, {"permits": True}),
            (lock, {"permits": 10**10}), (lock, {"wait": float("inf")}),
            (connect, {"url": 5}), (connect, {"url": b"sqlite:a"}), (connect, {"url": []}),
            (connect, {"url": [URL, 5]}), (connect, {"owner": 5}), (connect, {"program": 5}),
            (connect, {"pool": 2.5}), (connect, {"pool": -1}), (connect, {"pool": 10**10}),
            (connect, {"pool": 10**6}), (connect, {"pool": "no"}), (connect, {"schema": 5}),
            (once, {"key": 5}), (once, {"fingerprint": 5}), (once, {"token": 1.5}),
            (walk, {"name": 5}), (walk, {"chunk": 0.5}), (walk, {"restart": "no"}),
            (fence, {"resource": 5}), (fence, {"token": "5"}), (fence, {"token": 2**63}),
        ):  # fmt: skip
            (name,) = wrong
            with self.subTest(wrong=wrong):
                with self.assertRaisesRegex(rowlock.Invalid, rf"\b{name}\b"):
                    call(**wrong)
        self.assert_free()

    def test_seconds(self):
        """a time that the library refuses is told in seconds, with the option's name"""
        with self.assertRaisesRegex(rowlock.Invalid, "ttl is 0.001 seconds; .* between 0.1 and"):
            self.db.lock(self.name, ttl=0.0001).acquire()

    def test_durations(self):
        """each option that is a time is refused with its name, if it is none"""
        nan, inf = float("nan"), float("inf")
        table = self.db.table("none", "id")
        held = self.db.lock(self.name).acquire()

        def walk(**option):
            self.db.walk(table, self.name, **option).run()

        def retry(**option):
            self.db.retry(print, **option)

        def connect(**option):
            rowlock.connect(URL, **option).close()

        def once(**option):
            self.db.once(self.name, **option).claim()

        calls = [
            (connect, "connect_timeout", inf, 0), (connect, "statement_timeout", inf, 0),
            (connect, "reconnect", inf), (once, "ttl", inf, 0), (walk, "ttl", inf, 0),
            (walk, "wait", inf), (retry, "deadline", inf, 0), (retry, "pause", inf, 0),
            (retry, "longest_pause", inf, 0), (held.renew, "ttl", inf, 0),
        ]  # fmt: skip
        for call in (self.db.lock, self.db.alock):
            lock = functools.partial(call, self.name)
            calls += [(lock, name, inf, 0) for name in ("ttl", "max_hold", "progress", "margin")]
            calls.append((lock, "wait", inf))
        for call, name, *more in calls:
            for wrong in (nan, -1, -inf, True, False, 1e30, 10**30, D("NaN"), *more):
                with self.subTest(call=call, name=name, wrong=wrong):
                    with self.assertRaisesRegex(rowlock.Invalid, f"{name} is a number of seconds"):
                        call(**{name: wrong})
            with self.assertRaisesRegex(rowlock.Invalid, f"{name} is a number of seconds"):
                call(**{name: "5"})
        held.release()

    def test_lost_timeout(self):
        """a wait for the loss takes any time to wait, and refuses what is none"""
        with self.db.lock(self.name, on_lost="log") as held:
            for timeout in (0, -5, 0.001):
                self.assertFalse(held.lost.wait(timeout))
            for wrong in (float("nan"), float("inf"), True):
                with self.assertRaisesRegex(rowlock.Invalid, "timeout"):
                    held.lost.wait(wrong)
            self.db.break_lock(self.name)
            with self.assertRaises(rowlock.LockLost):
                held.verify()
            self.assertTrue(held.lost.wait(None))

    def test_never_reconnect(self):
        """reconnect=0 is never, and None is the library's default"""
        for given, wanted in ((0, -1), (0.0, -1), (None, 0), (0.0001, 1), (2, 2000)):
            db = self.other(reconnect=given)
            self.assertEqual(db._target.limits["reconnect_ms"], wanted)

    def test_old_library(self):
        """a library that lacks a function is an ImportError that says to upgrade it"""
        with tempfile.TemporaryDirectory() as folder:
            command = ["cc", "-shared", "-fPIC", "-Wl,-soname,librowlock.so.0", "-x", "c", "-"]
            subprocess.run(
                [*command, "-o", f"{folder}/librowlock.so.0"],
                input="int old;", text=True, check=True,
            )  # fmt: skip
            ran = subprocess.run(
                [sys.executable, "-c", "import rowlock"],
                env={**os.environ, "LD_LIBRARY_PATH": folder},
                stderr=subprocess.PIPE,
                text=True,
            )
        self.assertEqual(ran.returncode, 1)
        self.assertRegex(ran.stderr.splitlines()[-1], "^ImportError: .*upgrade librowlock")

    def test_copied(self):
        """what has a connection is neither copied nor pickled, and goes on as before"""
        lock = self.db.lock(self.name)
        with lock as held:
            alock = self.db.alock(self.name)
            once, table = self.db.once(self.name), self.db.table("none", "id")
            walk = self.db.walk(table, self.name)
            for one in (self.db, lock, held, held.lost, alock, once, table, walk):
                for copy_of in (copy.copy, copy.deepcopy, pickle.dumps):
                    with self.assertRaisesRegex(TypeError, "cannot be copied or pickled"):
                        copy_of(one)
            gc.collect()
            self.assertEqual(len(self.db.grants(self.name)), 1)
            held.verify()

    def test_names(self):
        """names and notes are any UTF-8"""
        name = f"schlüssel 鍵 {self.name}"
        with self.db.lock(name, note="ñ") as held:
            (grant,) = self.db.grants(name)
            self.assertEqual((grant.name, grant.note, held.name), (name, "ñ", name))

    def test_pickled(self):
        """an exception can be pickled, as multiprocessing does"""
        with self.db.lock(self.name):
            with self.assertRaises(rowlock.Busy) as caught:
                self.db.lock(self.name).acquire()
        for made in (caught.exception, rowlock.Timeout("text", action="acquire", row=3)):
            again = pickle.loads(pickle.dumps(made))
            self.assertEqual((type(again), str(again)), (type(made), str(made)))
            self.assertEqual((again.text, again.result), (made.text, made.result))

    def test_classes(self):
        """each result that is not OK has a class of its own"""
        from rowlock.errors import CLASSES

        for result in rowlock.Result:
            if result == rowlock.Result.OK:
                continue
            made = CLASSES[result]
            self.assertEqual(made.result, result)
            self.assertTrue(issubclass(made, rowlock.Refused if result > 0 else rowlock.Failure))
        self.assertEqual(len(set(CLASSES.values())), len(rowlock.Result) - 1)


@unittest.skipIf(KIND != "sqlite", "members of one kind are enough")
class Quorum(unittest.TestCase):
    def test_quorum(self):
        """three databases are a quorum: one lock over all of them, without a guard"""
        from rowlock._rowlock import ffi, lib

        urls = [f"sqlite:{TMPDIR}/member{number}.db" for number in range(3)]
        for url in urls:
            with rowlock.connect(url) as db:
                db.install()
        members = " ".join(urls).encode()
        self.assertEqual(lib.rowlock_quorum_join(members, 0, ffi.NULL, ffi.NULL), 0)
        with rowlock.connect(urls) as db:
            with db.lock("a", ttl=20) as held:
                held.check()
                with self.assertRaises(rowlock.Busy):
                    db.lock("a").acquire()
                self.assertRaises(rowlock.Unsupported, held.guard, None, "qmark")
            db.lock("a", wait=1).acquire().release()
        self.assertRaises(rowlock.Invalid, rowlock.connect, urls, pool=True)


class Interrupts(Case):
    def interrupt(self, process):
        until(lambda: self.db.waiters(self.name))
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finished(process), "interrupted 0\n")
        self.assertEqual(self.db.waiters(self.name), [])

    WAIT = """
        import os, time
        db = rowlock.connect(url, pool=arguments[1] == "pool")
        db.lock("other than it").acquire().release()
        # Threads of a pool begin when they are needed.
        count = lambda: 0 if arguments[1] == "pool" else len(os.listdir("/proc/self/task"))
        before = count()
        try:
            db.lock(arguments[0], wait=None).acquire()
        except KeyboardInterrupt:
            # The system takes a moment to remove a thread that has ended.
            for _ in range(500):
                if count() <= before:
                    break
                time.sleep(0.01)
            print("interrupted", max(count() - before, 0))
        db.close()
    """

    def test_interrupt(self):
        """Ctrl-C ends a wait, and leaves no ticket, no grant and no thread"""
        for pool in ("own", "pool"):
            with self.db.lock(self.name) as held:
                self.interrupt(script(self.WAIT, self.name, pool))
                held.check()
            self.assert_free()

    def test_exit(self):
        """a lock that is held when the interpreter ends is released"""
        process = script(
            """
            db = rowlock.connect(url)
            held = db.lock(arguments[0], ttl=3600).acquire()
            print(held.token > 0)
            """,
            self.name,
        )
        self.assertEqual(self.finished(process), "True\n")
        self.assert_free()

    def test_exit_and_release(self):
        """what is held is Misuse in a __del__ that runs when the interpreter ends"""
        process = script(
            """
            db = rowlock.connect(url)
            class Owner:
                def __init__(self):
                    self.held = db.lock(arguments[0], ttl=3600).acquire()
                def __del__(self):
                    try:
                        self.held.release()
                    except rowlock.Misuse as error:
                        print(error)
            owner = Owner()
            """,
            self.name,
        )
        said = f"lock '{self.name}' is no longer held by this object\n"
        self.assertEqual(self.finished(process), said)
        self.assert_free()

    def test_exit_beside_daemons(self):
        """and so it is while a daemon thread waits"""
        process = script(
            """
            import threading, time
            db = rowlock.connect(url)
            held = db.lock(arguments[0], ttl=3600).acquire()
            waits = lambda: db.lock(arguments[0], ttl=3600, wait=None).acquire()
            threading.Thread(target=waits, daemon=True).start()
            while not db.waiters(arguments[0]):
                time.sleep(0.01)
            """,
            self.name,
        )
        self.assertEqual(self.finished(process), "")
        self.assert_free()

    def test_unclosed(self):
        """a database that is forgotten is closed with a ResourceWarning"""
        process = script(
            """
            import warnings
            warnings.simplefilter("error", ResourceWarning)
            def work():
                db = rowlock.connect(url)
                db.lock(arguments[0], ttl=3600).acquire()
            sys.unraisablehook = lambda about: print(about.exc_type.__name__)
            import gc
            work()
            gc.collect()
            """,
            self.name,
        )
        self.assertEqual(self.finished(process), "ResourceWarning\n")
        until(lambda: not self.db.grants(self.name))

    @unittest.skipIf(KIND == "sqlite", "a child must not open a file of its parent")
    def test_fork_and_connect(self):
        """a child connects by itself, and holds what its parent does not"""
        process = script(
            """
            import os
            db = rowlock.connect(url)
            held = db.lock(arguments[0]).acquire()
            if os.fork() == 0:
                with rowlock.connect(url) as mine:
                    with mine.lock(arguments[0] + " of the child") as more:
                        print("child", more.token > 0, flush=True)
                sys.exit(0)
            os.wait()
            held.check()
            held.release()
            db.close()
            """,
            self.name,
        )
        self.assertEqual(self.finished(process), "child True\n")

    def test_fork(self):
        """a child of fork() gets ForkedError, and takes nothing from its parent"""
        process = script(
            """
            import gc, os
            db = rowlock.connect(url, pool=arguments[1] == "pool")
            held = db.lock(arguments[0]).acquire()
            if os.fork() == 0:
                said = []
                for call in (held.check, held.release, held.renew, lambda: held.remaining,
                             lambda: db.lock("another").acquire(), db.grants):
                    try:
                        call()
                    except rowlock.ForkedError:
                        said.append("forked")
                print(len(said), flush=True)
                db.close()
                del held, db
                gc.collect()
                sys.exit(0)
            os.wait()
            held.verify()
            with db.lock(arguments[0] + " later"):
                pass
            held.release()
            db.close()
            print("parent", flush=True)
            """,
            self.name,
            "own",
        )
        self.assertEqual(self.finished(process), "6\nparent\n")
        self.assert_free()

    def test_finished(self):
        """a child that does not end in time is killed"""
        process = script("import signal; signal.pause()")
        self.addCleanup(process.kill)
        with unittest.mock.patch("common.LONG", 0.1):
            self.assertRaises(subprocess.TimeoutExpired, self.finished, process)
        self.assertEqual(process.returncode, -signal.SIGKILL)
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()

    def test_fork_inside(self):
        """a child that leaves what its parent has begun gets ForkedError, and ends nothing of it"""
        engine = " ENGINE = InnoDB" if KIND == "mysql" else ""
        execute(
            "DROP TABLE IF EXISTS forked",
            f"CREATE TABLE forked (id INTEGER PRIMARY KEY, n INTEGER, version BIGINT NOT NULL)"
            f"{engine}",
            "INSERT INTO forked VALUES (1, 0, 1)",
        )
        process = script(
            """
            import contextlib, os
            db = rowlock.connect(url)
            table = db.table("forked", "id", ["n"])
            parent = os.getpid()

            def lock(raised):
                with db.lock(arguments[0]) as held:
                    fork(raised)
                    held.verify()

            def held(raised):
                with db.lock(arguments[0]).acquire() as held:
                    fork(raised)
                    held.verify()

            def once(raised):
                with db.once(arguments[0] + str(raised)) as claim:
                    fork(raised)
                    claim.complete("parent")

            def retry(raised):
                def work(attempt):
                    row = table.read(1)
                    table.update({**row, "n": row["n"] + 1})
                    fork(raised)
                db.retry(work)

            def walk(raised):
                for row in db.walk(table, arguments[0], restart=True):
                    row["n"] += 10
                    fork(raised)

            def fork(raised):
                if os.fork() == 0:
                    if raised:
                        raise raised
                else:
                    os.wait()

            for call in (lock, held, once, retry, walk):
                for raised in (None, KeyError("child")):
                    error = None
                    try:
                        call(raised)
                    except Exception as caught:
                        error = caught
                    if os.getpid() != parent:
                        print(call.__name__, type(error).__name__, flush=True)
                        os._exit(0)
            print(table.read(1)["n"])
            db.close()
            """,
            self.name,
        )
        said = self.finished(process).splitlines()
        names = ("lock", "held", "once", "retry", "walk")
        wanted = [f"{name} {kind}" for name in names for kind in ("ForkedError", "KeyError")]
        self.assertEqual(said, [*wanted, "22"])
        self.assert_free()


if __name__ == "__main__":
    unittest.main()
