# SPDX-License-Identifier: MIT
"""Once keys: rowlock/once.h."""
from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any, Optional, Union

from ._rowlock import ffi, lib
from .aio import finished
from .errors import Invalid, Misuse, Result, error_of
from .handle import (
    Handle, Options, Single, check_pid, exact_bytes, milliseconds, to_bytes, utf8,
)
from .lock import finish_soon, in_daemon, when_dropped

if TYPE_CHECKING:
    from .database import Database


def give_back(database: Database, handle: Handle, out: Any) -> None:
    """Gives the key back, unless it was completed, and then the handle. Once: out is NULL then."""
    with handle.mutex:
        once = out[0]
        if once == ffi.NULL:
            return
        lib.rowlock_once_abandon(once, 0, ffi.NULL, 0)
        out[0] = ffi.NULL
        lib.rowlock_once_close(once)
    database._give(handle)


def give_back_soon(database: Database, handle: Handle, out: Any) -> None:
    """Now. While the server hangs, a thread goes on."""
    if out[0] == ffi.NULL:
        database._give(handle)
    else:
        work = functools.partial(give_back, database, handle, out)
        finish_soon(functools.partial(in_daemon, work))


def stored_form(result: Union[bytes, str], what: str = "the result") -> bytes:
    """bytes(7) would be seven bytes of 0."""
    if isinstance(result, str):
        return utf8(result, what)
    if isinstance(result, (bytes, bytearray, memoryview)):
        return exact_bytes(result)
    raise Invalid(
        f"{what} is bytes or a str, and not of type {type(result).__qualname__}: give "
        "json.dumps(result), for example",
        action="store it with a once key",
    )


class Once(Single):
    """A key that says what was asked for: `with db.once("order 1234") as claim`.

    done    it was done before. result has what was stored then.
    result  bytes
    """

    def __init__(self, database: Database, key: str, options: Any) -> None:
        self.database = database
        self.key = key
        self.done = False
        self.result = b""
        self._options = options
        self._handle: Optional[Handle] = None
        self._out: Any = None
        self._settled = False

    def claim(self) -> "Once":
        """Claims the key. Raises Busy while another client does it; Mismatch: another request."""
        if self._handle is not None:
            raise Misuse("this object has claimed its key already")
        options = Options("once_options", **self._options)
        handle = self.database._take()
        out = ffi.new("rowlock_once **")
        try:
            with handle.mutex:
                db = handle.use()
                key = to_bytes(self.key, "key")
                result = lib.rowlock_once_claim(db, key, options.struct, out)
                if result not in (0, Result.DONE):
                    raise error_of(result, db)
            self._handle, self._out = handle, out
            self._settled = False
            self.done = result == Result.DONE
            self.result = self._stored() if self.done else b""
            return self
        except BaseException:
            # A signal handler may also raise when the key is claimed.
            self._handle = None
            give_back_soon(self.database, handle, out)
            raise

    @property
    def _once(self) -> Any:
        return self._out[0]

    def _stored(self) -> bytes:
        length = ffi.new("size_t *")
        at = lib.rowlock_once_result(self._once, length)
        return bytes(ffi.buffer(at, length[0])) if length[0] else b""

    def _use(self) -> Handle:
        check_pid(self.database._pid, f"once key '{self.key}'")
        if self._handle is None:
            raise Misuse(f"once key '{self.key}' is not claimed by this object")
        return self._handle

    def complete(self, result: Union[bytes, str] = b"", tx: Optional[Database] = None) -> None:
        """Says that the work is done, and stores a result. Raises LockLost if the claim is gone.

        tx  an adopted connection: "done" is then a part of its transaction. In Database.retry() of
            the same database it is a part of that transaction.
        """
        mine = self._use()
        stored = stored_form(result)

        def work(handle: Handle) -> None:
            db = handle.use()
            outcome = lib.rowlock_once_complete(self._once, db, stored, len(stored))
            if outcome != 0:
                raise error_of(outcome, db)

        within = getattr(self.database._within, "handle", None)
        if tx is not None:
            tx._call(work)
        elif within is not None:
            work(within)
        else:
            with mine.mutex:
                work(mine)
        self.result = stored
        self._settled = True

    def abandon(self, pause: float = 0, why: Union[bytes, str] = b"") -> None:
        """Gives the key back: the next client may claim it.

        pause  for how many seconds others get Busy
        why    is kept, and `rowlock once show` prints it
        """
        handle = self._use()
        pause_ms = milliseconds("pause", pause, 0)
        reason = stored_form(why, "why")
        with handle.mutex:
            kept = reason or ffi.NULL
            handle.check(lib.rowlock_once_abandon(self._once, pause_ms, kept, len(reason)))
        self._settled = True

    def close(self) -> None:
        """Ends the use of this object. A claim that was not completed ends with its time."""
        handle, self._handle = self._handle, None
        if handle is None or handle.pid != os.getpid():
            return
        with handle.mutex:
            once, self._out[0] = self._out[0], ffi.NULL
            lib.rowlock_once_close(once)
        self.database._give(handle)

    def _give_back(self) -> None:
        """After an exception between two steps."""
        handle, self._handle = self._handle, None
        if handle is not None:
            give_back_soon(self.database, handle, self._out)

    async def __aenter__(self) -> "Once":
        """For asyncio. complete() blocks: call it with asyncio.to_thread()."""
        try:
            return await finished(self.database, self.claim)
        except BaseException:
            # A task that is cancelled leaves no claim.
            await finished(self.database, self._give_back)
            raise

    async def __aexit__(self, kind: object, error: Optional[BaseException], trace: object) -> None:
        await finished(self.database, self.__exit__, kind, error, trace)

    def __enter__(self) -> "Once":
        try:
            self.claim()
            handle = self._use()
            work = functools.partial(give_back, self.database, handle, self._out)
            when_dropped(handle, self, work)
            return self
        except BaseException:
            self._give_back()
            raise

    def __exit__(self, kind: object, error: Optional[BaseException], trace: object) -> None:
        """What was not completed is completed, or given back if the body failed."""
        if error is None:
            check_pid(self.database._pid, f"once key '{self.key}'")
        elif self.database._pid != os.getpid():
            return
        try:
            if not self.done and not self._settled:
                self.abandon() if error is not None else self.complete()
        except Exception:
            # An exception of the body is not replaced. The claim ends by itself.
            if error is None:
                raise
        except BaseException:
            self._give_back()
            raise
        finally:
            self.close()
