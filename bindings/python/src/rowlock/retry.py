# SPDX-License-Identifier: MIT
"""Database.retry() and Database.walk()."""
from __future__ import annotations

import functools
import os
import queue
import threading
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Generic,
    Iterator,
    List,
    NamedTuple,
    Optional,
    TypeVar,
)

from ._rowlock import ffi, lib
from .callbacks import Call, callback
from .errors import Error, Invalid, Misuse, Result, error_of, text_of
from .functions import ended, is_coroutine_function
from .handle import Handle, Options, Single, check_pid
from .values import write_value

if TYPE_CHECKING:
    from .database import Database
    from .table import Table

T = TypeVar("T")

# These mean: roll back, pause, and attempt again. Others end it.
AGAIN = (
    Result.STALE, Result.CONFLICT, Result.BUSY, Result.EXISTS, Result.GONE, Result.ECONN,
)  # fmt: skip
# Results from 100 on are the caller's.
ENDED = 100
# A walk's each() stops it so.
STOPPED = -1000


class Attempt(NamedTuple):
    """One run of the function of a retry.

    number  1, 2, …
    lock    True after conflicts: read with lock=attempt.lock
    """

    number: int
    lock: bool


class Retrying(Generic[T]):
    """The function of a retry, and how its last attempt ended."""

    def __init__(self, function: Callable[[Attempt], T]) -> None:
        self.function = function
        self.handle: Optional[Handle] = None
        self.value: List[T] = []
        self.ended: Optional[BaseException] = None
        self.call = Call(self)

    def attempt(self, number: int, lock: bool) -> int:
        result = self._attempt(number, lock)
        assert self.handle is not None
        try:
            self.handle.use()
        except Misuse as error:
            self.ended = self.ended or error
            return int(lib.ROWLOCK_CLOSED)
        return result

    def _attempt(self, number: int, lock: bool) -> int:
        self.ended = None
        try:
            self.value = [ended(self.function(Attempt(number, lock)))]
        except Error as error:
            self.ended = error
            return int(error.result) if error.result in AGAIN else ENDED
        except BaseException as error:
            self.ended = error
            return ENDED
        return 0


@callback(stop=ENDED)  # type: ignore[misc]
def rowlock_py_attempt(context: Any, attempt: Any) -> int:
    retrying: Retrying[Any] = ffi.from_handle(context)
    return retrying.attempt(attempt.number, bool(attempt.lock))


def retry(database: Database, function: Callable[[Attempt], T], **limits: Any) -> T:
    if is_coroutine_function(function):
        raise TypeError(
            f"{function!r} is a coroutine function, and would run after the transaction: give "
            "retry() a plain function, and call retry() with asyncio.to_thread()"
        )
    retrying = Retrying(function)
    options = Options("retry_options", **limits)

    def work(handle: Handle) -> T:
        if getattr(database._within, "handle", None) is not None:
            raise Misuse("a retry inside a retry: its outer transaction would be repeated too")
        report = ffi.new("rowlock_retry_report *", lib.rowlock_retry_report_init())
        database._within.handle = retrying.handle = handle
        try:
            call, attempt = retrying.call, lib.rowlock_py_attempt
            result = call.run(
                lib.rowlock_retry, handle.use(), attempt, call.context, options.struct, report
            )
        finally:
            database._within.handle = None
        return conclude(retrying, handle, result)

    return database._call(work)


def conclude(retrying: Retrying[T], handle: Handle, result: int) -> T:
    ended = retrying.ended
    if ended is None:
        check_pid(handle.pid, "the transaction of this retry")
    if result == 0:
        return retrying.value[0]
    # Misuse: the function has forked, or closed an adopted connection.
    mine = result in (ENDED, Result.EMISUSE, getattr(ended, "result", None))
    if ended is not None and mine:
        raise ended
    raise error_of(result, handle.use()) from ended


# ---------------------------------------------------------------- a walk


class WalkReport(NamedTuple):
    """How far a walk is. Times are in seconds. total and left may be None: not known."""

    rows: int
    written: int
    unchanged: int
    conflicts: int
    failed: int
    total: Optional[int]
    elapsed: float
    left: Optional[float]
    rate: float
    resumed: bool


class WalkFailure(NamedTuple):
    """A row that could not be written, also not later."""

    row: Dict[str, Any]
    result: Result
    text: str


def report_of(report: Any) -> WalkReport:
    return WalkReport(
        report.rows,
        report.written,
        report.left,
        report.conflicts,
        report.failed,
        report.total if report.total >= 0 else None,
        report.elapsed_ms / 1e3,
        report.left_ms / 1e3 if report.left_ms >= 0 else None,
        report.rate,
        bool(report.resumed),
    )


class Walk(Single):
    """A walk through a table: Database.walk(). Loop over it once.

    report    the newest WalkReport
    failures  the rows that could not be written
    """

    def __init__(
        self,
        table: Table,
        progress: Optional[Callable[[WalkReport], object]],
        options: Dict[str, Any],
    ) -> None:
        self.table = table
        self.progress = progress
        self.options = options
        self.report: Optional[WalkReport] = None
        self.failures: List[WalkFailure] = []
        # The walk's thread gives rows and reports. The loop answers each row: was it changed?
        self._given: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        self._answers: "queue.SimpleQueue[int]" = queue.SimpleQueue()
        self._kept: List[Any] = []
        self._stopped = False
        self._stopping = threading.RLock()
        self._ended = False
        self._call = Call(self)

    # ---- in the thread of the walk

    def _run(self, handle: Handle) -> None:
        try:
            with handle.mutex:
                # A signal handler may raise before the loop knows that this thread runs.
                self._given.put(None if self._stopped else self._walk(handle))
        except BaseException as error:
            self._given.put(error)

    def _walk(self, handle: Handle) -> Optional[Error]:
        given = dict(self.options)
        options = Options("walk_options")
        name = options.text(given.pop("name"), "name")
        for member, value in given.items():
            options.take(member, value)
        options.struct.progress = lib.rowlock_py_walk_progress
        options.struct.failed = lib.rowlock_py_walk_failed
        report = ffi.new("rowlock_walk_report *", lib.rowlock_walk_report_init())
        table = self.table._open(handle)
        each, context = lib.rowlock_py_walk_each, self._call.context
        result = self._call.run(
            lib.rowlock_walk, table, name, each, context, options.struct, report
        )
        self._given.put(report_of(report))
        if self._stopped:
            return Misuse("the database was closed")
        return error_of(result, handle.use()) if result != 0 else None

    def _each(self, row: Any, values: Any) -> int:
        if self._stopped:
            return STOPPED
        mine = self.table._row(row)
        before = dict(mine)
        self._given.put(mine)
        answer = self._answers.get()
        if answer == STOPPED or mine == before:
            return answer or 1
        self._check(mine, before)
        self._kept = []
        for place, name in enumerate(self.table.columns):
            if mine[name] is not before[name]:
                write_value(mine[name], values[place], self._kept)
        return 0

    def _check(self, mine: Dict[str, Any], before: Dict[str, Any]) -> None:
        """Only columns are written. Any other change must not be left out in silence."""
        table = self.table
        table._check_names(mine)
        for name in (*table.key, table.version):
            if mine.get(name) != before[name]:
                key = ", ".join(f"{part} {before[part]!r}" for part in table.key)
                raise Invalid(
                    f"the loop changed {name!r} of the row with {key}: a walk writes columns only; "
                    "for another key, insert a new row and remove the old one",
                    action=f"walk table '{table.name}'",
                )

    # ---- in the thread of the loop

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        """Each row, as a dict. It is written if the loop changes a column of it."""
        database = self.table.database
        handle = database._take()
        try:
            # At the end of the interpreter the database stops the walk of a loop that was left.
            thread = threading.Thread(
                target=self._run, args=(handle,), name="rowlock walk", daemon=True
            )
            handle.walker = threading.get_ident()
            handle.stop = functools.partial(self._stop, handle)
            thread.start()
            yield from self._rows(handle.pid)
        finally:
            # The walk of a forked child is its parent's.
            if handle.pid == os.getpid():
                self._end(handle)

    def _stop(self, handle: Handle) -> None:
        """Once, and before the handle may be closed: by the loop, or by Database.close()."""
        with self._stopping:
            if self._stopped:
                return
            self._answers.put(STOPPED)
            if not self._ended:
                handle.spent = True
                lib.rowlock_cancel(handle.db)
            self._stopped = True

    def _end(self, handle: Handle) -> None:
        self._stop(handle)
        # The thread has it until the walk has ended.
        with handle.mutex:
            handle.walker = handle.stop = None
        self.table.database._give(handle)

    def _rows(self, pid: int) -> Iterator[Dict[str, Any]]:
        while True:
            item = self._given.get()
            if isinstance(item, dict):
                yield item
                check_pid(pid, f"the walk of table '{self.table.name}'")
                self._answers.put(0)
            elif isinstance(item, WalkReport):
                self.report = item
                if self.progress is not None:
                    self.progress(item)
            else:
                self._ended = True
                if item is not None:
                    raise item
                return

    def run(self) -> WalkReport:
        """Loops to the end, for tables whose rows are all left as they are. The last report."""
        for _ in self:
            pass
        assert self.report is not None
        return self.report


@callback(stop=STOPPED)  # type: ignore[misc]
def rowlock_py_walk_each(context: Any, row: Any, values: Any) -> int:
    walk: Walk = ffi.from_handle(context)
    return walk._each(row, values)


@callback()  # type: ignore[misc]
def rowlock_py_walk_progress(context: Any, so_far: Any) -> None:
    walk: Walk = ffi.from_handle(context)
    walk._given.put(report_of(so_far))


@callback()  # type: ignore[misc]
def rowlock_py_walk_failed(context: Any, row: Any, result: int, text: Any) -> None:
    walk: Walk = ffi.from_handle(context)
    failed = WalkFailure(walk.table._row(row), Result(result), text_of(text))
    walk.failures.append(failed)
