# SPDX-License-Identifier: MIT
"""Once keys, and decorators."""
import asyncio
import contextlib
import decimal
import functools
import json
import os
import subprocess
import unittest
from unittest import mock

import rowlock
from common import KIND, URL, Case, execute, script

ENGINE = " ENGINE = InnoDB" if KIND == "mysql" else ""


class Once(Case):
    def test_once(self):
        """a key is done once, and the second gets the result"""
        with self.db.once(self.name) as claim:
            self.assertFalse(claim.done)
            claim.complete("receipt \xfc")
        with self.db.once(self.name) as claim:
            self.assertTrue(claim.done)
            self.assertEqual(claim.result.decode(), "receipt \xfc")
            self.assertRaises(rowlock.Misuse, claim.complete, b"")
        self.assertRaises(rowlock.Misuse, claim.abandon)

    def test_once_without_result(self):
        """a with that ends well is done"""
        with self.db.once(self.name):
            pass
        with self.db.once(self.name) as claim:
            self.assertEqual((claim.done, claim.result), (True, b""))

    def test_once_result(self):
        """a result that is neither bytes nor text is Invalid, and the key is not done"""
        with self.db.once(self.name) as claim:
            for wrong in (7, 0, True, {"a": 1}, [1, 2], None, 1.5):
                with self.assertRaisesRegex(rowlock.Invalid, r"bytes or a str.*json\.dumps"):
                    claim.complete(wrong)
            self.assertRaisesRegex(rowlock.Invalid, "surrogate", claim.complete, "\ud800")
            self.assertRaises(rowlock.Busy, self.other().once(self.name).claim)
            claim.complete(memoryview(b"receipt"))
        self.assertEqual(claim.result, b"receipt")

    def test_once_busy(self):
        """while it is under way others are Busy, or a Mismatch"""
        with self.db.once(self.name, fingerprint="12 euros") as claim:
            self.assertRaises(rowlock.Busy, self.other().once(self.name, "12 euros").claim)
            self.assertRaises(rowlock.Mismatch, self.db.once(self.name, "13 euros").claim)
            self.assertRaises(rowlock.Misuse, claim.claim)

    def test_once_abandon(self):
        """a key given back with a pause keeps others off for so long, and tells why"""
        claim = self.db.once(self.name, ttl=600).claim()
        self.assertRaises(rowlock.Invalid, claim.abandon, -1)
        self.assertRaises(rowlock.Invalid, claim.abandon, 0, 7)
        longest = 512 * "p"  # the most that the command reads
        claim.abandon(pause=600, why=longest)
        self.assertIn(f"note         {longest}\n", self.shown())
        self.assertEqual(json.loads(self.shown("--json"))["note"], longest)
        second = self.other().once(self.name)
        self.assertRaisesRegex(rowlock.Busy, "pause is not over", second.claim)
        claim.close()

    def shown(self, *options):
        command = [f"{os.environ['ROWLOCK_TEST_BUILD']}/rowlock", "--url", URL, "once", "show"]
        command.extend([self.name, *options])
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout

    def test_once_failed(self):
        """a body that fails gives the key back"""
        with self.assertRaises(KeyError):
            with self.db.once(self.name):
                raise KeyError
        self.db.once(self.name).claim().abandon(why="no ink")
        self.assertEqual(json.loads(self.shown("--json"))["remaining_ms"], 0)
        with self.db.once(self.name) as claim:
            self.assertFalse(claim.done)

    def test_once_cancelled(self):
        """a task that is cancelled while it claims leaves no claim"""

        async def main():
            task = asyncio.create_task(self.db.once(self.name).__aenter__())
            await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        with self.db.once(self.name) as claim:
            self.assertFalse(claim.done)

    def test_once_lost(self):
        """a claim that another client took over is LockLost when it is completed"""
        slow = self.db.once(self.name, ttl=0.05).claim()
        with self.db.lock("pause", ttl=0.2, renew=False, on_lost="log") as held:
            held.lost.wait()
        with self.other().once(self.name):
            self.assertRaises(rowlock.LockLost, slow.complete)
            slow.close()

    def test_once_in_a_retry(self):
        """in a retry it is done when the transaction commits"""
        execute(
            "DROP TABLE IF EXISTS once_rows",
            f"CREATE TABLE once_rows (id INTEGER PRIMARY KEY, n INTEGER, version BIGINT NOT NULL)"
            f"{ENGINE}",
            "INSERT INTO once_rows VALUES (1, 0, 1)",
        )
        table = self.db.table("once_rows", "id", ["n"])
        numbers = []

        def work(attempt):
            row = table.read(1)
            table.update({**row, "n": row["n"] + 1})
            claim.complete(b"in the commit")
            numbers.append(attempt.number)
            if attempt.number == 1:
                raise rowlock.Stale("once more")

        with self.db.once(self.name) as claim:
            self.db.retry(work)
        self.assertEqual((numbers, table.read(1)["n"]), ([1, 2], 1))
        with self.db.once(self.name) as claim:
            self.assertEqual(claim.result, b"in the commit")


class Decorators(Case):
    def test_exclusive(self):
        """a function runs under its lock"""

        @rowlock.exclusive(self.name + " {day}", db=self.db, ttl=20)
        def report(day, more=1):
            "what it does"
            (grant,) = self.db.grants(f"{self.name} {day}")
            return grant.token > 0, more

        self.assertEqual(report("monday"), (True, 1))
        self.assertEqual(report(day="monday", more=2), (True, 2))
        self.assertEqual((report.__name__, report.__doc__), ("report", "what it does"))
        self.assert_free(self.name + " monday")

    def test_without_parentheses(self):
        """a decorator without parentheses is refused, and says how"""

        def work():
            pass

        for decorator in (rowlock.exclusive, rowlock.once):
            bare = decorator(work)
            wrong = (lambda: decorator(5), lambda: decorator(None), bare, lambda: bare(1))
            for call in wrong:
                with self.assertRaisesRegex(TypeError, rf'@rowlock.{decorator.__name__}\("name"\)'):
                    call()

    def test_names(self):
        """a name that the function's arguments cannot make is refused where it is written"""
        for decorator in (rowlock.exclusive, rowlock.once):
            for name in ("a{x}", "a{}", "a{0}", "a{x.y}", "a{day"):
                with self.assertRaisesRegex(rowlock.Invalid, "name 'a"):
                    decorator(name, db=self.db)(lambda day: None)
            for name in ("a{day}", "a{day[0]}", "a{{x}}", "a}"):
                decorator(name, db=self.db)(lambda day: None)

    def test_class(self):
        """a class is refused, and stays a class"""

        class Report:
            pass

        lock = self.db.lock(self.name)
        for decorate in (*self.decorators(), lock, self.db.alock(self.name)):
            self.assertRaises(TypeError, decorate, Report)

    def test_lock(self):
        """a lock decorates functions and coroutine functions, each call with a lock of its own"""
        lock, alock = self.db.lock(self.name), self.db.alock(self.name, wait=None)

        @lock
        def count(deep=False):
            "what it does"
            if deep:
                self.assertRaises(rowlock.Busy, count)
            return len(self.db.grants(self.name))

        @lock
        async def acount():
            return count.__wrapped__()

        @alock
        async def wait():
            await asyncio.sleep(0)
            return count.__wrapped__()

        async def main():
            return await asyncio.gather(*(wait() for _ in range(5)))

        self.assertEqual((count(), count(True), count.__doc__), (1, 1, "what it does"))
        self.assertEqual((asyncio.run(acount()), asyncio.run(main())), (1, [1] * 5))
        self.assertRaisesRegex(TypeError, "coroutine", alock, print)
        self.assert_free()

    def test_exclusive_busy(self):
        """it raises Busy, or is skipped"""
        calls = []
        raises = rowlock.exclusive(self.name, db=self.db)(calls.append)
        skips = rowlock.exclusive(lambda _: self.name, db=self.db, on_busy="skip")(calls.append)
        with self.db.lock(self.name):
            self.assertRaises(rowlock.Busy, raises, 1)
            self.assertIsNone(skips(1))
        self.assertEqual(calls, [])
        skips(2)
        self.assertEqual(calls, [2])

        def busy():
            raise rowlock.Busy("of its own")

        with self.assertRaisesRegex(rowlock.Busy, "of its own"):
            rowlock.exclusive(self.name, db=self.db, on_busy="skip")(busy)()

    def test_exclusive_held(self):
        """it gets what is held, and the loss is raised at its end"""

        @rowlock.exclusive(self.name, db=self.db, pass_held=True)
        def work(held):
            held.check()
            self.db.break_lock(self.name)

        self.assertRaises(rowlock.LockLost, work)

    def test_exclusive_coroutine(self):
        """so does a coroutine function"""

        @rowlock.exclusive(self.name + " {n}", db=self.db, pass_held=True, wait=None)
        async def work(n, held):
            await asyncio.sleep(0)
            return held.token

        async def main():
            return await asyncio.gather(*(work(1) for _ in range(5)))

        self.assertEqual(len(set(asyncio.run(main()))), 5)
        self.assert_free(self.name + " 1")

    def test_once(self):
        """a function is done once for each key, and its result is stored"""
        calls = []

        @rowlock.once(self.name + " {number}", db=self.db)
        def charge(number, cents=5):
            calls.append(number)
            return {"receipt": number, "cents": cents}

        for _ in range(2):
            self.assertEqual(charge(7), {"receipt": 7, "cents": 5})
            self.assertEqual(charge(8), {"receipt": 8, "cents": 5})
        self.assertEqual(calls, [7, 8])

    def test_once_coroutine(self):
        """so is a coroutine function, and one that raises gives its key back"""
        calls = []

        @rowlock.once(self.name, db=self.db)
        async def charge():
            calls.append(1)
            if len(calls) == 1:
                raise KeyError
            return "receipt"

        self.assertRaises(KeyError, asyncio.run, charge())
        self.assertEqual(asyncio.run(charge()), "receipt")
        self.assertEqual(asyncio.run(charge()), "receipt")
        self.assertEqual(len(calls), 2)

    def decorators(self):
        yield rowlock.exclusive(self.name, db=self.db)
        yield rowlock.once(self.name, db=self.db)

    def test_generator(self):
        """a generator is refused, for its body would run without the lock"""

        def numbers():
            yield 1

        async def anumbers():
            yield 1

        class Numbers:
            def __call__(self):
                yield 1

        for decorate in self.decorators():
            for wrong in (numbers, anumbers, Numbers(), functools.partial(numbers)):
                with self.assertRaisesRegex(TypeError, "generator"):
                    decorate(wrong)
            for wrong in (numbers, anumbers):
                with self.assertRaisesRegex(TypeError, "generator"):
                    decorate(lambda wrong=wrong: wrong())()
        self.assert_free()

    def test_context_manager(self):
        """a context manager is refused, for its body would run without the lock"""

        def opened():
            yield 1

        async def aopened():
            yield 1

        managers = contextlib.contextmanager(opened), contextlib.asynccontextmanager(aopened)
        for decorate in self.decorators():
            for manager in managers:
                for wrong in (manager, functools.partial(manager)):
                    with self.assertRaisesRegex(TypeError, "around its `yield`"):
                        decorate(wrong)
                with self.assertRaisesRegex(TypeError, "around its `yield`"):
                    decorate(lambda manager=manager: manager())()
        self.assert_free()

    def test_async_call(self):
        """an object with an async __call__ runs under its lock, and is done once"""
        seen = []
        db, name = self.db, self.name

        class Work:
            async def __call__(self):
                await asyncio.sleep(0)
                seen.append(len(db.grants(name)))
                return "result"

        work = rowlock.exclusive(name, db=db)(functools.partial(Work()))
        self.assertEqual((asyncio.run(work()), seen), ("result", [1]))
        work = rowlock.once(name, db=db)(Work())
        self.assertEqual([asyncio.run(work()) for _ in range(2)], ["result"] * 2)
        self.assertEqual(len(seen), 2)

    def test_returned_coroutine(self):
        """a coroutine that a plain function returns is closed and refused, and nothing is done"""
        calls = []

        async def work():
            calls.append(1)

        for decorate in self.decorators():
            with self.assertRaisesRegex(TypeError, "async def"):
                decorate(lambda: work())()
            # The key was given back.
            decorate(lambda: calls.append(2))()
        self.assertEqual(calls, [2, 2])

    def test_once_no_json(self):
        """a result that is not JSON raises, and the work is not repeated"""
        calls = []
        circle = []
        circle.append(circle)
        for number, value in enumerate((decimal.Decimal("12.50"), circle, "long" * 20000)):
            key = f"{self.name} {number}"

            @rowlock.once(key, db=self.db)
            def charge(value=value):
                calls.append(value)
                return value

            @rowlock.once(key + " async", db=self.db)
            async def acharge(value=value):
                calls.append(value)
                return value

            for call in (charge, lambda: asyncio.run(acharge())):
                with self.assertRaisesRegex(TypeError, "the work was done"):
                    call()
                self.assertIsNone(call())
                self.assertIsNone(call())
        self.assertEqual(len(calls), 6)

    def test_once_not_completed(self):
        """a key that cannot be completed after the work is not given back"""
        calls = []

        @rowlock.once(self.name, db=self.db)
        def charge():
            calls.append(1)

        with mock.patch.object(rowlock.Once, "complete", side_effect=rowlock.ConnectionFailed):
            self.assertRaises(rowlock.ConnectionFailed, charge)
        self.assertRaises(rowlock.Busy, charge)
        self.assertEqual(calls, [1])

    def test_default(self):
        """without a database they use ROWLOCK_URL, and nothing else"""
        text = """
            @rowlock.exclusive(arguments[0])
            def work():
                return rowlock.decorators.default_database().names.kind
            print(work())
        """
        os.environ["ROWLOCK_URL"] = URL
        self.addCleanup(os.environ.pop, "ROWLOCK_URL", None)
        self.assertEqual(self.finished(script(text, self.name)), f"{KIND}\n")
        del os.environ["ROWLOCK_URL"]
        with self.assertRaisesRegex(rowlock.Invalid, "Set ROWLOCK_URL, or give db="):
            rowlock.exclusive(self.name)(print)()
        with self.assertRaisesRegex(rowlock.Invalid, "Set ROWLOCK_URL, or give db="):
            rowlock.once(self.name)(print)()


if __name__ == "__main__":
    unittest.main()
