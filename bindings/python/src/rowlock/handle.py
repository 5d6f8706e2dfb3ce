# SPDX-License-Identifier: MIT
"""A rowlock_db, which belongs to one user at a time, and the options of the library."""
from __future__ import annotations

import functools
import math
import os
import threading
from typing import Any, Callable, Dict, List, Optional, Sequence, TypeVar

from ._rowlock import ffi, lib
from .errors import ForkedError, Invalid, Misuse, error_of, new_error

T = TypeVar("T")

LONGEST_MS = 366 * 86_400_000


def milliseconds(what: str, seconds: Optional[float], least: int = 1) -> int:
    """An option that is a time. None is 0: the library's default. Part of a millisecond is one."""
    if seconds is None:
        return 0
    try:
        made = math.ceil(seconds * 1000)
    except (TypeError, ValueError, OverflowError):
        made = -1
    if isinstance(seconds, bool) or not least <= made <= LONGEST_MS:
        lowest = "above 0" if least else "from 0"
        raise Invalid(
            f"{what} is a number of seconds {lowest} to 366 days, and not {seconds!r}",
            action=f"take the option {what}",
        )
    return made


def wait_milliseconds(what: str, seconds: Optional[float]) -> int:
    """None is without end. 0 is not at all."""
    if seconds is None:
        return int(lib.ROWLOCK_FOREVER)
    if seconds == math.inf:
        raise Invalid(
            f"{what} is a number of seconds from 0 to 366 days, and not {seconds!r}: None is "
            "without end",
            action=f"take the option {what}",
        )
    return milliseconds(what, seconds, 0)


def flag(what: str, value: bool) -> int:
    """An option that is True or False. "no" must not be taken for True."""
    if not isinstance(value, bool):
        raise Invalid(f"{what} is True or False, and not {value!r}")
    return int(value)


def whole(what: str, value: int, bits: int = 64) -> int:
    """An option that is a whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise Invalid(f"{what} is a whole number (int), and not {value!r}")
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise Invalid(f"{what} is a whole number below 2**{bits - 1}, and not {value}")
    return value


class Options:
    """A struct of options, and the texts that it points to."""

    def __init__(self, kind: str, **members: Any) -> None:
        self.struct = ffi.new(f"rowlock_{kind} *", getattr(lib, f"rowlock_{kind}_init")())
        self.kept: List[Any] = []
        for name, value in members.items():
            if value is not None:
                self.take(name, value)

    def take(self, name: str, value: Any) -> None:
        try:
            given = self.text(value, name) if isinstance(value, str) else value
            setattr(self.struct, name, given)
        except (TypeError, OverflowError):
            member = dict(ffi.typeof(self.struct).item.fields)[name].type
            if member.kind == "pointer":
                raise Invalid(f"{name} is a text (str), and not {value!r}") from None
            whole(name, value, 8 * ffi.sizeof(member))
            raise

    def text(self, text: str, what: str) -> Any:
        made = ffi.new("char[]", to_bytes(text, what))
        self.kept.append(made)
        return made

    def texts(self, texts: Sequence[str], what: str) -> Any:
        """An array of texts that ends with NULL."""
        made = ffi.new("char *[]", [*(self.text(one, what) for one in texts), ffi.NULL])
        self.kept.append(made)
        return made


def to_bytes(text: str, what: str) -> bytes:
    """C ends a text at its first byte of 0, so there must be none."""
    if not isinstance(text, str):
        raise Invalid(f"{what} is a text (str), and not {text!r}")
    if "\0" in text:
        raise Invalid(f"{what} must not contain the character 0: {text!r}")
    return utf8(text, what)


def exact_bytes(value: Any) -> bytes:
    """A copy whose length is true. The methods of a subclass may tell anything."""
    return memoryview(value).tobytes()


def utf8(text: str, what: str) -> bytes:
    try:
        return str.encode(text, "utf-8")
    except UnicodeEncodeError:
        raise Invalid(f"{what} has a surrogate, which is no character: {text!r}") from None


INTERRUPTED = (
    "this thread is inside another call that has not ended, and would wait for itself: a signal "
    "handler should only raise, or set a flag"
)


def must_be_free(mutex: Any) -> Any:
    """The RLock, unless this thread has it. A signal handler runs inside what it interrupts."""
    if mutex._is_owned():
        raise Misuse(INTERRUPTED)
    return mutex


class Single:
    """An object that is neither copied nor pickled. A copy would close what the original uses."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            f"{type(self).__qualname__} cannot be copied or pickled: pass the object itself to "
            "other threads, and connect in each process"
        )


class Handle(Single):
    """One rowlock_db. The mutex makes sure that it is used by one thread at a time."""

    __slots__ = ("out", "rlock", "pid", "tables", "lock", "spent", "is_open", "dropped",
                 "walker", "stop", "turn", "__weakref__")  # fmt: skip

    def __init__(self, out: Any) -> None:
        # Where the library has put the rowlock_db. NULL: it was closed.
        self.out = out
        self.rlock = threading.RLock()
        self.pid = os.getpid()
        self.tables: Dict[Any, Any] = {}
        # Where the library has put the rowlock_lock of the last acquire.
        self.lock: Any = ffi.new("rowlock_lock **")
        # It must not be used again for another lock.
        self.spent = False
        # Tells that the Lock was dropped in its with.
        self.dropped: Any = None
        # The thread of a loop over Database.walk(), while the walk's own thread has the mutex.
        self.walker: Optional[int] = None
        # Ends the walk or the wait of a task, before the handle may be closed.
        self.stop: Optional[Callable[[], None]] = None
        # Counts its users.
        self.turn = 0
        # Whether the owner of an adopted connection has left it open. The library cannot know.
        self.is_open: Optional[Callable[[], bool]] = None

    @property
    def db(self) -> Any:
        """The rowlock_db, or None after close()."""
        return self.out[0] or None

    @property
    def mutex(self) -> Any:
        return must_be_free(self.rlock)

    def use(self) -> Any:
        """The rowlock_db. Call it with the mutex, or where no other thread knows the handle."""
        db = self.db
        if db is None:
            raise Misuse("the database was closed")
        if self.is_open is not None and not self.is_open():
            raise Misuse("the adopted connection was closed by its owner; adopt one that is open")
        return db

    def check(self, result: int) -> None:
        if result != 0:
            raise error_of(result, self.use())

    def close(self) -> None:
        """Releases what is held. In a forked child it does nothing: the handle is the parent's.

        After an exception of a signal handler the next call goes on.
        """
        if self.pid != os.getpid():
            return
        with self.mutex:
            for out in self.tables.values():
                lib.rowlock_py_close_table(out)
            lib.rowlock_py_close_db(self.out)
            lib.rowlock_py_close_lock(self.lock)


def check_pid(pid: int, what: str) -> None:
    if pid != os.getpid():
        raise ForkedError(
            f"{what} belongs to the process that forked this one; connect after forking"
        )


def same(out: Any) -> Any:
    return out


def opened(kind: str, call: Callable[[Any, Any], int], make: Callable[[Any], T]) -> T:
    """What make(out) makes, after call(out, err) has opened it.

    After an exception, also of a signal handler between the two, nothing stays open.
    """
    out = ffi.new(f"rowlock_{kind} **")
    err = ffi.new("rowlock_error *", lib.rowlock_error_init())
    try:
        result = call(out, err)
        if result != 0:
            raise new_error(result, err)
        return make(out)
    except BaseException:
        getattr(lib, f"rowlock_py_close_{kind}")(out)
        raise


class Target(Single):
    """Where handles are opened: one URL, the members of a quorum, or a pool."""

    def __init__(self, urls: Sequence[str], limits: Dict[str, Any], pool: int) -> None:
        self.urls = urls
        self.limits = limits
        self.pooled = pool
        # Where the library has put the rowlock_pool. NULL: it was closed.
        self.pool: Any = ffi.new("rowlock_pool **")
        # A pool is not closed while a handle of it is opened, which takes no round trip.
        self.rlock = threading.RLock()

    def open_pool(self) -> None:
        if self.pooled:
            limits = self.limits
            of_pool = Options("db_options", **{**limits, "owner": None})
            options = Options("pool_options", connections=self.pooled, db=of_pool.struct)
            url = to_bytes(self.urls[0], "url")
            call = functools.partial(lib.rowlock_pool_open, url, options.struct)
            self.pool = opened("pool", call, same)

    def open_handle(self) -> Handle:
        if not self.pooled:
            return self._open_now()
        with must_be_free(self.rlock):
            if not self.pool[0]:
                raise Misuse("the database was closed")
            return self._open_now()

    def _open_now(self) -> Handle:
        pool, limits = self.pool[0], self.limits
        if pool:
            limits = {**limits, "pool": pool, "schema": None, "prefix": None}
        options = Options("db_options", **limits)
        url = ffi.NULL if pool else to_bytes(" ".join(self.urls), "url")
        return opened("db", functools.partial(lib.rowlock_db_open, url, options.struct), Handle)

    def close(self) -> None:
        with must_be_free(self.rlock):
            lib.rowlock_py_close_pool(self.pool)
