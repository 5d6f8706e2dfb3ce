# SPDX-License-Identifier: MIT
"""A lock to be held, and a lock that is held."""
from __future__ import annotations

import enum
import functools
import logging
import os
import select
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Tuple, TypeVar

from . import guard as guards
from ._rowlock import ffi, lib
from .errors import Busy, Error, Invalid, LockLost, Mismatch, Misuse, Timeout, error_of, text_of
from .grants import Grant
from .handle import (
    Handle, Options, Single, check_pid, flag, milliseconds, to_bytes, wait_milliseconds,
)  # fmt: skip
from .holds import Hold

if TYPE_CHECKING:
    from .database import Database

log = logging.getLogger("rowlock")
F = TypeVar("F", bound=Callable[..., Any])

# A wait looks up so often, in case its descriptor was closed by another thread.
LOOK_UP_MS = 1000
# So long an interrupted wait waits until its ticket is given back.
ABANDON_S = 1.0
# The server did not answer, or took no writes, in all the time that the call had. More time would
# not help.
AWAY = (int(lib.ROWLOCK_ECONN), int(lib.ROWLOCK_EUNCERTAIN), int(lib.ROWLOCK_EREADONLY))

# Why a lock without a holder is not granted.
NO_HOLDER = (
    "it is free, but others are ahead in the queue, or a transaction that has not ended guards or "
    "changes it"
)


class State(enum.IntEnum):
    """What a holder has to know."""

    NONE = 0
    HELD = 1
    # The lease still runs, but the keeper could not renew it.
    JEOPARDY = 2
    # The grant is gone, or its lease is about to end. Stop working.
    LOST = 3


class Acquiring(Single):
    """An acquire that was started. Its owner polls fd() and calls step()."""

    def __init__(self, database: Database, handle: Handle, name: str) -> None:
        self.database = database
        self.handle = handle
        self.name = name
        # Where the library puts the rowlock_lock.
        self.out = ffi.new("rowlock_lock **")
        self.wait_ms = 0
        # The handle was given back, and may be another user's.
        self.over = False
        # A thread gives it back.
        self.left = False
        # Who got the lock.
        self.hold: Optional[Hold] = None

    def start(self, options: Dict[str, Any]) -> None:
        """A signal handler may raise after each step: until the end the handle counts as spent."""
        handle = self.handle
        self.wait_ms = options["wait_ms"]
        given = Options("acquire_options", **options)
        with handle.mutex:
            db, name = handle.use(), to_bytes(self.name, "name")
            handle.spent = True
            handle.lock = self.out
            opened = lib.rowlock_lock_open(db, name, self.out)
            handle.spent = opened == 0
            handle.check(opened)
            result = lib.rowlock_acquire_start(self.lock, given.struct)
            failed = error_of(result, handle.db) if result != 0 else None
        if failed is not None:
            self.close()
            raise failed

    @property
    def lock(self) -> Any:
        return self.out[0]

    def fd(self) -> int:
        with self.handle.mutex:
            self.handle.use()
            return int(lib.rowlock_acquire_fd(self.lock))

    def step(self) -> Optional[int]:
        """The result, or None as long as there is none. It does not block."""
        with self.handle.mutex:
            self.handle.use()
            result = int(lib.rowlock_acquire_step(self.lock))
        # Database.close() may have released what this wait then got: close() ends it.
        self.database._check()
        return None if result == lib.ROWLOCK_PENDING else result

    def cancel(self) -> None:
        """Ends the wait soon. The cancel may also come too late, and would end the next wait."""
        with self.handle.mutex:
            if self.handle.db is not None:
                lib.rowlock_cancel(self.handle.db)

    def abandon(self) -> None:
        """Leaves no ticket and no grant, whatever was done. It may take a round trip."""
        self.database._holds.remove(self)
        if not self.over:
            self.database._give(self.handle, self)

    def end(self, result: int) -> None:
        """Closes the lock after this result. While the server hangs, a thread goes on."""
        if result in AWAY and not ending.is_set():
            abandon_in_thread(self, 0)
        else:
            self.close()

    def close(self) -> None:
        """Closes the lock. The handle is good for another one."""
        self.database._holds.remove(self)
        with self.handle.mutex:
            if self.handle.db is not None:
                lib.rowlock_py_close_lock(self.out)
                self.handle.spent = False
        self.database._give(self.handle, self)

    def failed(self, result: int, task: Any = None) -> Error:
        """The exception for a result that is not OK. It closes the lock."""
        with self.handle.mutex:
            error = error_of(result, self.handle.use())
            holder = None
            grant = ffi.new("rowlock_grant *", lib.rowlock_grant_init())
            if isinstance(error, (Busy, Mismatch)):
                if lib.rowlock_lock_holder(self.lock, grant) == 0:
                    error.holder = holder = Grant(grant)
        self.end(result)
        if isinstance(error, Busy):
            # The library's own text does not name the holder.
            said = NO_HOLDER
            if holder is not None:
                whose = self.database._holds.whose(self.name, holder.token, task)
                said = f"{whose} holds it: {holder}"
            waited = f"timed out after {self.wait_ms / 1000:g} s: "
            error.say(waited + said if isinstance(error, Timeout) else said)
        return error


def wait_readable(fd: int, longest_ms: int) -> None:
    """Waits for a descriptor. A signal handler of Python runs meanwhile, and may raise."""
    if fd < 0:
        time.sleep(min(longest_ms, 50) / 1000)
        return
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    poller.poll(longest_ms)


# The interpreter is about to end, and has released all locks.
ending = threading.Event()


def sleep_until_the_end() -> None:
    """A daemon thread must neither start threads nor print while the interpreter ends."""
    while threading.current_thread() is not threading.main_thread():
        time.sleep(LOOK_UP_MS)


def abandon_soon(acquiring: Acquiring) -> None:
    """Abandons it now. While the server hangs, a thread goes on, so that Ctrl-C ends the wait."""
    if acquiring.left:
        return
    if acquiring.over or not acquiring.handle.spent:
        acquiring.abandon()
        return
    finish_soon(functools.partial(abandon_in_thread, acquiring))


def finish_soon(work: Callable[[], None]) -> None:
    if ending.is_set():
        sleep_until_the_end()
    try:
        work()
    except BaseException:
        # Another signal. The first thread may not have begun.
        work()
        raise


def abandon_in_thread(acquiring: Acquiring, longest_s: float = ABANDON_S) -> None:
    acquiring.database._holds.remove(acquiring)
    in_daemon(acquiring.abandon, longest_s)
    acquiring.left = True


def in_daemon(work: Callable[[], None], longest_s: float = ABANDON_S) -> None:
    """Runs what takes a round trip in a thread, and waits at most so long for it."""
    # A thread that is started now never runs, and start() waits for it (Python before 3.12).
    if sys.is_finalizing():
        work()
        return
    thread = threading.Thread(target=work, name="rowlock", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        # The interpreter is about to end.
        work()
        return
    thread.join(longest_s)


def when_dropped(handle: Handle, user: Any, work: Callable[[], None]) -> None:
    """Runs work when the user goes before the handle: a signal handler raised as a with ended."""

    def dropped(_: object) -> None:
        if handle.pid == os.getpid() and not ending.is_set():
            in_daemon(work, 0)

    handle.dropped = weakref.ref(user, dropped)


class Lock(Single):
    """What Database.lock() returns: `with` it, or acquire() it. It can be used again."""

    def __init__(
        self, database: Database, name: str, options: Dict[str, Any], renew: bool, on_lost: str
    ) -> None:
        self.database = database
        self.name = name
        self.options = options
        self.renew = renew
        self.on_lost = on_lost
        self._held: Optional[Held] = None
        # What acquire() gave, and whether it was called.
        self._acquired: Optional[Held] = None
        self._asked = False

    def _start(self, acquiring: Acquiring) -> None:
        options = dict(self.options)
        if self.renew:
            options["keep"] = 1
        acquiring.start(options)

    def _acquire(self, acquiring: Acquiring) -> Held:
        try:
            self._start(acquiring)
            result = None
            while result is None:
                wait_readable(acquiring.fd(), LOOK_UP_MS)
                result = acquiring.step()
            if result == 0:
                return Held(self, acquiring)
            raise acquiring.failed(result)
        except BaseException:
            abandon_soon(acquiring)
            raise

    def _again(self, blocking: Optional[bool] = None, timeout: Optional[float] = None) -> Lock:
        """The same lock, as another object that waits so long."""
        options = dict(self.options)
        if blocking is not None and not flag("blocking", blocking):
            if timeout is not None:
                raise Invalid("timeout goes without blocking=False")
            options["wait_ms"] = 0
        elif timeout is not None and timeout != -1:
            options["wait_ms"] = wait_milliseconds("timeout", timeout)
        elif timeout is not None or blocking:
            options["wait_ms"] = wait_milliseconds("timeout", None)
        return Lock(self.database, self.name, options, self.renew, self.on_lost)

    def acquire(self, blocking: Optional[bool] = None, timeout: Optional[float] = None) -> Held:
        """Gets the lock. Raises Busy, Timeout and others, as rowlock_acquire().

        Without arguments it waits as the argument wait of Database.lock() says. A signal handler
        may raise before you have the result: release() of this object knows it.

        blocking  False: try once. True: wait until timeout.
        timeout   wait so many seconds. -1, or None with blocking=True: without end.
        """
        self._asked = True
        asked = self._again(blocking, timeout)
        self.database._holds.check(asked, False)
        acquiring = Acquiring(self.database, self.database._take(), self.name)
        try:
            self._acquired = asked._acquire(acquiring)
            return self._acquired
        except BaseException:
            abandon_soon(acquiring)
            raise

    def release(self) -> None:
        """Gives back what the last acquire() of this object got, if it is still held.

        Misuse: acquire() was never called. It is not raised while another exception is handled.
        """
        if self._acquired is not None and self._acquired._is_open():
            self._acquired.release()
        elif not self._asked and sys.exc_info()[0] is None:
            raise Misuse(
                f"acquire() of this object was never called, so lock '{self.name}' has nothing to "
                "release; the end of a with releases by itself"
            )

    def locked(self) -> bool:
        """Asks the database whether anybody holds the lock. The answer may be old at once."""
        return any(grant.remaining > 0 for grant in self.database.grants(self.name))

    def __call__(self, function: F) -> F:
        """Decorates a function, or a coroutine function: each call of it holds the lock.

        The function and its calls are as under rowlock.exclusive().
        """
        from .decorators import under

        return under(function, "lock", lambda args, kwargs: self._again())

    def __repr__(self) -> str:
        return f"<Lock {self.name!r}>"

    def __enter__(self) -> Held:
        if self._held is not None:
            raise Misuse("this Lock object is in use; make another one for each with")
        self.database._holds.check(self, False)
        acquiring = Acquiring(self.database, self.database._take(), self.name)
        try:
            self._held = self._acquire(acquiring)
            self._held._entered = True
            when_dropped(acquiring.handle, self, acquiring.abandon)
            return self._held
        except BaseException:
            # A signal handler may also raise when the lock is held, and the with has not begun.
            self._held = None
            abandon_soon(acquiring)
            raise

    def __exit__(self, kind: object, error: Optional[BaseException], trace: object) -> None:
        held = self._held
        if held is not None:
            try:
                held._leave(error)
            except BaseException:
                abandon_soon(held._acquiring)
                raise
            finally:
                self._held = None


class Lost(Single):
    """Like an Event that is set when the lock is lost: also while the server hangs."""

    def __init__(self, held: Held) -> None:
        self._held = held

    def is_set(self) -> bool:
        return self._held.state == State.LOST

    __bool__ = is_set

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until the lock is lost. False: it was released, or the time is over."""
        longest_ms = wait_milliseconds("timeout", timeout and max(timeout, 0))
        end = None if longest_ms < 0 else time.monotonic() + longest_ms / 1000
        while True:
            state = self._held.state
            left = LOOK_UP_MS if end is None else int((end - time.monotonic()) * 1000) + 1
            if state in (State.LOST, State.NONE) or left <= 0:
                return state == State.LOST
            wait_readable(self._held._fd(), min(left, LOOK_UP_MS))


class Held(Single):
    """A lock that is held. Its properties take no round trip. Any thread may use it."""

    def __init__(self, lock: Lock, acquiring: Acquiring) -> None:
        self.name = lock.name
        self._database = lock.database
        self._handle = acquiring.handle
        self._lock = acquiring.lock
        self._acquiring = acquiring
        self._on_lost = lock.on_lost
        self._permits: int = lock.options["permits"]
        self._pid = os.getpid()
        self._was_lost = False
        self._open = True
        # A with will release it.
        self._entered = False
        self._expires = 0.0
        self.token: int = lib.rowlock_lock_token(self._lock)
        self.owner: str = text_of(lib.rowlock_lock_owner(self._lock))
        self.lost = Lost(self)
        self._see_expires()
        lock.database._holds.add(acquiring, Hold(self, lock))

    def _is_open(self) -> bool:
        return self._open and self._handle.db is not None

    def _see_expires(self) -> None:
        """0 is that of a grant that is gone."""
        if self._is_open():
            self._expires = lib.rowlock_lock_expires_us(self._lock) / 1e6 or self._expires

    def _use(self) -> Any:
        """The rowlock_lock. Call it with the mutex."""
        if not self._is_open():
            raise Misuse(f"lock '{self.name}' is no longer held by this object")
        return self._lock

    def _check_pid(self) -> None:
        check_pid(self._pid, f"lock '{self.name}'")

    # ---- without a round trip

    @property
    def state(self) -> State:
        """HELD, JEOPARDY or LOST; NONE after the release."""
        self._check_pid()
        with self._handle.mutex:
            if not self._is_open():
                return State.LOST if self._was_lost else State.NONE
            state = State(lib.rowlock_lock_state(self._lock))
            self._was_lost = self._was_lost or state == State.LOST
            return state

    @property
    def remaining(self) -> float:
        """How many seconds of the lease are left. It never tells too many. 0 after the release."""
        self._check_pid()
        with self._handle.mutex:
            left_ms = lib.rowlock_lock_remaining_ms(self._lock) if self._is_open() else 0
            return float(left_ms / 1000)

    @property
    def expires(self) -> float:
        """When the lease ends by the database's clock, in seconds since 1970.

        After the release: the last time that this object has seen.
        """
        self._check_pid()
        with self._handle.mutex:
            self._see_expires()
            return self._expires

    def check(self) -> None:
        """Raises LockLost if the lock is lost: before a step that must not be done twice."""
        if self.state != State.LOST:
            with self._handle.mutex:
                self._use()
            return
        raise LockLost(
            f"the grant with token {self.token} is gone, or its lease ends: stop working",
            action=f"check lock '{self.name}'",
        )

    def _fd(self) -> int:
        """-1: another thread has released the lock."""
        try:
            return self.fileno()
        except Misuse:
            return -1

    def _copy_fd(self) -> int:
        """A copy of the descriptor, to be closed. -1: another thread has released the lock."""
        self._check_pid()
        try:
            with self._handle.mutex:
                return os.dup(lib.rowlock_lock_state_fd(self._use()))
        except Misuse:
            return -1

    def fileno(self) -> int:
        """A descriptor that is readable when the state gets worse. Reading state clears it."""
        self._check_pid()
        with self._handle.mutex:
            return int(lib.rowlock_lock_state_fd(self._use()))

    def progress(self) -> None:
        """Tells the keeper that the work goes on. See the argument progress of Database.lock()."""
        self._check_pid()
        with self._handle.mutex:
            lib.rowlock_progress(self._use())

    # ---- with one

    def renew(self, ttl: Optional[float] = None) -> None:
        """Renews the lease by hand. Raises LockLost, or Lapsed if it had run out before."""
        self._check_pid()
        with self._handle.mutex:
            self._handle.check(lib.rowlock_renew(self._use(), milliseconds("ttl", ttl)))

    def verify(self) -> None:
        """Asks the database whether the grant stands. Raises LockLost or Lapsed."""
        self._check_pid()
        with self._handle.mutex:
            self._handle.check(lib.rowlock_verify(self._use()))

    def guard(self, cursor: Any, paramstyle: Optional[str] = None) -> None:
        """Proves inside the transaction of your cursor that the lock is yours until it ends.

        Raises LockLost if it is not: roll back. See docs/GUARDING.md.

        cursor      of psycopg, psycopg2, mysqlclient, PyMySQL, MariaDB, sqlite3 or another driver
                    of PEP 249, connected to the database that has the lock; or what
                    Database.adopt() returned
        paramstyle  for a cursor whose module does not tell it
        """
        grant = self._guarded()
        if isinstance(cursor, guards.Transaction):
            with self._handle.mutex:
                cursor.guard(self._use())
        else:
            guards.guard(grant, cursor, paramstyle)

    def _guarded(self) -> guards.Guarded:
        self._check_pid()
        with self._handle.mutex:
            self._use()
        return guards.Guarded(self._database, self.name, self.owner, self.token, self._permits)

    # ---- the end

    def _release(self) -> Tuple[Optional[Error], bool]:
        """Releases and closes. What the release said, and whether the lease had run out."""
        self._check_pid()
        self._database._must_be_free(self._handle)
        try:
            with self._handle.mutex:
                lock = self._use()
                self._see_expires()
                lapsed = lib.rowlock_lock_state(lock) == State.LOST
                result = lib.rowlock_release(lock)
                error = error_of(result, self._handle.db) if result != 0 else None
                self._open = False
                self._was_lost = result == lib.ROWLOCK_LOST
            self._acquiring.end(result)
            return error, lapsed
        except BaseException:
            abandon_soon(self._acquiring)
            raise

    def release(self) -> None:
        """Gives the lock back. Raises LockLost if it was not ours any more."""
        error, lapsed = self._release()
        self._tell(error, lapsed)
        if error is not None:
            raise error

    def _tell(self, error: Optional[Error], lapsed: bool) -> None:
        if error is None and lapsed:
            log.warning(
                "lock '%s': the lease had run out before the release; no other client got the lock",
                self.name,
            )

    def _leave(self, body: Optional[BaseException]) -> None:
        """The end of a with. An exception of its body is not replaced."""
        if body is None:
            self._check_pid()
        if self._pid != os.getpid() or not self._is_open():
            return
        error, lapsed = self._release()
        self._conclude(error, lapsed, body)

    def _conclude(
        self, error: Optional[Error], lapsed: bool, body: Optional[BaseException]
    ) -> None:
        self._tell(error, lapsed)
        if error is None:
            return
        if body is None and self._on_lost == "raise":
            raise error
        log.error("lock '%s': %s", self.name, error)
        if body is not None and hasattr(body, "add_note"):
            body.add_note(f"rowlock: {error}")

    def _enter(self) -> None:
        """The body must not run without the lock: neither later nor to its end."""
        self._check_pid()
        if self._entered and self._is_open():
            raise Misuse(f"lock '{self.name}' is in a with already, which will release it")
        self._use()
        self._entered = True

    def __enter__(self) -> Held:
        self._enter()
        when_dropped(self._handle, self, self._acquiring.abandon)
        return self

    def __exit__(self, kind: object, error: Optional[BaseException], trace: object) -> None:
        try:
            self._leave(error)
        except BaseException:
            abandon_soon(self._acquiring)
            raise

    def __repr__(self) -> str:
        return f"<Held {self.name!r} token {self.token}>"
