# SPDX-License-Identifier: MIT
"""The same for asyncio. Waits use descriptors. What blocks in the library runs in threads."""
from __future__ import annotations

import asyncio
import collections
import functools
import math
import os
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Callable, Deque, Dict, List, Optional, Tuple, TypeVar

from . import guard as guards
from .errors import Misuse
from .functions import is_coroutine_function
from .handle import Single, check_pid
from .holds import this_task
from .lock import (
    ABANDON_S, LOOK_UP_MS, Acquiring, Held, Lock, State, abandon_in_thread, ending, in_daemon, log,
)  # fmt: skip

if TYPE_CHECKING:
    from .database import Database

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


async def settled(
    future: "asyncio.Future[Any]", longest_s: float = math.inf
) -> Optional[asyncio.CancelledError]:
    """Waits for the end of what cannot be interrupted. The cancel that came meanwhile, or None."""
    cancelled = None
    end = time.monotonic() + longest_s
    while not future.done() and time.monotonic() < end:
        try:
            left = None if longest_s == math.inf else end - time.monotonic()
            await asyncio.wait([future], timeout=left)
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled


def in_thread(database: Database, work: Callable[..., T], *args: Any) -> "asyncio.Future[T]":
    loop = asyncio.get_running_loop()
    check_pid(database._pid, "this database")
    return loop.run_in_executor(database._threads(), functools.partial(work, *args))


async def finished(database: Database, work: Callable[..., T], *args: Any) -> T:
    """Runs work in a thread and to its end, also when the task is cancelled."""
    if asyncio._get_running_loop() is None:
        # The loop was closed before the task had ended, and the task is dropped.
        return work(*args)
    try:
        future = in_thread(database, work, *args)
    except (Misuse, RuntimeError):
        if not database._closed:
            raise
        # No thread, and no round trip.
        return work(*args)
    cancelled = await settled(future)
    if cancelled is None:
        return future.result()
    hidden = future.exception()
    if hidden is not None:
        log.error("a task was cancelled, and meanwhile: %s", hidden)
    raise cancelled


class Turns:
    """Starts of acquires in one loop. Each takes a moment, so the loop goes on between some."""

    AT_ONCE = 32

    def __init__(self) -> None:
        self.started = 0
        self.waiting: "Deque[asyncio.Future[None]]" = collections.deque()

    async def take(self) -> None:
        loop = asyncio.get_running_loop()
        if self.started == 0:
            loop.call_soon(self.begin)
        if self.started >= self.AT_ONCE or self.waiting:
            turn = loop.create_future()
            self.waiting.append(turn)
            await turn
        else:
            self.started += 1

    def begin(self) -> None:
        """The loop has gone round once."""
        self.started = 0
        while self.waiting and self.started < self.AT_ONCE:
            turn = self.waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self.started += 1
        if self.started > 0:
            asyncio.get_running_loop().call_soon(self.begin)


turns: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Turns]" = weakref.WeakKeyDictionary()


class Requests:
    """The acquires of one loop whose tasks have no result yet.

    The loop alone has a reference to this object, as the reader of a pipe. A loop that is closed
    drops its readers: then no task gets these results any more.
    """

    def __init__(self) -> None:
        self.open: Dict[Acquiring, None] = {}
        self.pid = os.getpid()
        self.ends: Tuple[int, ...] = ()
        self.ends = os.pipe()
        asyncio.get_running_loop().add_reader(self.ends[0], self)

    def __call__(self) -> None:
        """Nothing is written into the pipe."""

    def __del__(self) -> None:
        for fd in self.ends:
            os.close(fd)
        if self.open and self.pid == os.getpid() and not ending.is_set():
            in_daemon(functools.partial(abandon_all, list(self.open)), 0)


def abandon_all(orphans: List[Acquiring]) -> None:
    for acquiring in orphans:
        acquiring.abandon()


requests: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Any]" = weakref.WeakKeyDictionary()


def requests_of_loop() -> Dict[Acquiring, None]:
    loop = asyncio.get_running_loop()
    found = requests.get(loop)
    known: Optional[Requests] = found and found()
    if known is None:
        known = Requests()
        requests[loop] = weakref.ref(known)
    return known.open


async def take_turn() -> None:
    await turns.setdefault(asyncio.get_running_loop(), Turns()).take()


class Waiting:
    """Waits in the loop for the result of an acquire that was started."""

    def __init__(self, acquiring: Acquiring) -> None:
        self.acquiring = acquiring
        self.loop = asyncio.get_running_loop()
        self.result: "asyncio.Future[Optional[int]]" = self.loop.create_future()
        self.thread = threading.get_ident()
        self.watch()
        acquiring.handle.stop = self.close

    def watch(self) -> None:
        self.fd = self.acquiring.fd()
        self.loop.add_reader(self.fd, self.step)

    def step(self) -> None:
        # The step may close the descriptor, so it is removed first.
        self.loop.remove_reader(self.fd)
        try:
            result = self.acquiring.step()
            if result is None:
                self.watch()
            else:
                self.end(result)
        except BaseException as error:
            self.acquiring.handle.stop = None
            if not self.result.done():
                self.result.set_exception(error)

    def end(self, result: Optional[int]) -> None:
        """None: another thread goes on with the acquire, or closes the database."""
        if not self.result.done():
            self.loop.remove_reader(self.fd)
            self.acquiring.handle.stop = None
            self.result.set_result(result)

    def close(self) -> None:
        """By Database.close(), before the descriptor is closed: another file may get its number."""
        if self.loop.is_closed():
            return
        if threading.get_ident() == self.thread:
            self.end(None)
            return
        ended = threading.Event()
        try:
            self.loop.call_soon_threadsafe(self.end, None)
            self.loop.call_soon_threadsafe(ended.set)
        except RuntimeError:
            # The loop was closed.
            return
        ended.wait(ABANDON_S)


class AsyncLock(Single):
    """What Database.alock() returns: `async with` it, or await acquire()."""

    def __init__(self, lock: Lock) -> None:
        self._lock = lock
        self._database = lock.database
        self._held: Optional[AsyncHeld] = None

    async def _handle(self) -> Any:
        database = self._database
        handle = database._take_idle()
        if handle is not None:
            return handle
        future = in_thread(database, database._take)
        cancelled = await settled(future)
        if cancelled is None:
            return future.result()
        if future.exception() is None:
            database._give(future.result())
        raise cancelled

    async def acquire(
        self, blocking: Optional[bool] = None, timeout: Optional[float] = None
    ) -> AsyncHeld:
        """Gets the lock. A cancelled task leaves no grant, no ticket and no thread behind.

        blocking and timeout are those of Lock.acquire(). The loop is never blocked.
        """
        database, lock = self._database, self._lock._again(blocking, timeout)
        database._holds.check(lock, True)
        await take_turn()
        open_requests = requests_of_loop()
        acquiring = Acquiring(database, await self._handle(), lock.name)
        open_requests[acquiring] = None
        try:
            lock._start(acquiring)
            waiting = Waiting(acquiring)
        except BaseException:
            del open_requests[acquiring]
            acquiring.abandon()
            raise
        try:
            return await self._wait(acquiring, waiting)
        except GeneratorExit:
            # The task was dropped before its end.
            waiting.close()
            in_daemon(acquiring.abandon, 0)
            raise
        finally:
            del open_requests[acquiring]

    async def _wait(self, acquiring: Acquiring, waiting: Waiting) -> AsyncHeld:
        try:
            await asyncio.wait([waiting.result])
        except asyncio.CancelledError:
            acquiring.cancel()
            # While the server hangs, a thread goes on.
            await settled(waiting.result, ABANDON_S)
            waiting.end(None)
            # A cancel that came too late finds a grant. abandon() releases it.
            await finished(self._database, abandon_in_thread, acquiring)
            raise
        result = waiting.result.result()
        self._database._check()
        assert result is not None
        if result == 0:
            return AsyncHeld(Held(self._lock, acquiring))
        raise await finished(self._database, acquiring.failed, result, this_task())

    async def locked(self) -> bool:
        """As Lock.locked()."""
        return await finished(self._database, self._lock.locked)

    def __call__(self, function: F) -> F:
        """Decorates a coroutine function: each call of it holds the lock."""
        if not is_coroutine_function(function):
            raise TypeError(f"{function!r} is no coroutine function: decorate it with db.lock(…)")
        return self._lock(function)

    def __repr__(self) -> str:
        return f"<AsyncLock {self._lock.name!r}>"

    async def __aenter__(self) -> AsyncHeld:
        if self._held is not None:
            raise Misuse("this lock object is in use; make another one for each with")
        self._held = await self.acquire()
        self._held.held._entered = True
        return self._held

    async def __aexit__(self, kind: object, error: Optional[BaseException], trace: object) -> None:
        held, self._held = self._held, None
        if held is not None:
            await held._leave(error)


def finish(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


class AsyncLost(Single):
    """Like an asyncio.Event that is set when the lock is lost."""

    def __init__(self, held: Held) -> None:
        self._held = held

    def is_set(self) -> bool:
        return self._held.lost.is_set()

    __bool__ = is_set

    async def wait(self) -> bool:
        """Waits until the lock is lost (True) or released (False)."""
        loop = asyncio.get_running_loop()
        while self._held.state not in (State.LOST, State.NONE):
            changed: "asyncio.Future[None]" = loop.create_future()
            # A copy of the descriptor, since several tasks may wait for the same lock.
            mine = self._held._copy_fd()
            if mine < 0:
                await asyncio.sleep(0.05)
                continue
            loop.add_reader(mine, finish, changed)
            try:
                await asyncio.wait([changed], timeout=LOOK_UP_MS / 1000)
            finally:
                if not loop.is_closed():
                    loop.remove_reader(mine)
                os.close(mine)
        return self._held.state == State.LOST


class AsyncHeld(Single):
    """A lock that is held by a task. Properties and check() take no round trip."""

    def __init__(self, held: Held) -> None:
        self.held = held
        self.name = held.name
        self.token = held.token
        self.owner = held.owner
        self.lost = AsyncLost(held)

    @property
    def state(self) -> State:
        return self.held.state

    @property
    def remaining(self) -> float:
        return self.held.remaining

    @property
    def expires(self) -> float:
        return self.held.expires

    def check(self) -> None:
        """Raises LockLost if the lock is lost."""
        self.held.check()

    def progress(self) -> None:
        self.held.progress()

    def fileno(self) -> int:
        return self.held.fileno()

    async def renew(self, ttl: Optional[float] = None) -> None:
        await finished(self.held._database, self.held.renew, ttl)

    async def verify(self) -> None:
        await finished(self.held._database, self.held.verify)

    async def guard(self, cursor: Any, paramstyle: Optional[str] = None) -> None:
        """As Held.guard(), for cursors whose methods are coroutines, and connections of asyncpg."""
        await guards.guard_async(self.held._guarded(), cursor, paramstyle)

    async def release(self) -> None:
        """Gives the lock back. Raises LockLost if it was not ours any more."""
        await finished(self.held._database, self.held.release)

    async def _leave(self, body: Optional[BaseException]) -> None:
        await finished(self.held._database, self.held._leave, body)

    async def __aenter__(self) -> AsyncHeld:
        self.held._enter()
        return self

    async def __aexit__(self, kind: object, error: Optional[BaseException], trace: object) -> None:
        await self._leave(error)

    def __repr__(self) -> str:
        return f"<AsyncHeld {self.name!r} token {self.token}>"
