# SPDX-License-Identifier: MIT
"""What the library answers, as exceptions: one class for each result that is not OK."""
from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING, Any, Dict, Optional, Sequence, Type

from ._rowlock import ffi, lib

if TYPE_CHECKING:
    from .grants import Grant

__all__ = [
    "Busy", "Cancelled", "Conflict", "ConnectionFailed", "Constraint", "Deadlock", "Denied",
    "Done", "Error", "Exists", "Failure", "ForkedError", "Gone", "Invalid", "Lapsed",
    "LockLost", "Mismatch", "Misuse", "NotThere", "OutOfMemory", "Pending", "ReadOnly",
    "Refused", "Result", "SchemaError", "ServerError", "Stale", "Timeout", "Uncertain",
    "Undone", "Unsupported", "Violation",
]  # fmt: skip


class Result(enum.IntEnum):
    """The results of rowlock.h. 0 is done, above 0 the database said no, below 0 is an error."""

    OK = 0
    BUSY = 1
    TIMEOUT = 2
    LOST = 3
    LAPSED = 4
    MISMATCH = 5
    DEADLOCK = 6
    CANCELLED = 7
    PENDING = 8
    NONE = 9
    STALE = 20
    CONFLICT = 21
    GONE = 22
    EXISTS = 23
    UNDONE = 24
    VIOLATION = 25
    DONE = 26
    EUNCERTAIN = -1
    ECONN = -2
    ESCHEMA = -3
    EINVAL = -4
    ENOMEM = -5
    EREADONLY = -6
    EDENIED = -7
    EMISUSE = -8
    EUNSUPPORTED = -9
    ESERVER = -10


class Constraint(enum.IntEnum):
    """Which kind of constraint refused a row."""

    NONE = 0
    UNIQUE = 1
    FOREIGN_KEY = 2
    CHECK = 3
    NOT_NULL = 4
    VALUE = 5


CLASSES: Dict[int, Type["Error"]] = {}


class Error(Exception):
    """A result that is not OK.

    result     the result, as rowlock.h names it
    text       why it failed, and what to do
    action     what was being done: "acquire lock 'nightly'"
    sqlstate   five characters if the database gave them, else ""
    native     MySQL's error number or SQLite's extended code, else 0
    retryable  the same call may succeed later, with nothing changed
    transaction_over  your transaction on an adopted connection is over
    constraint which kind of constraint refused a row
    row        the index of the row that it is about, or None
    outcomes   of a change of many rows: an Outcome for each
    """

    result: Result = Result.ESERVER

    def __init_subclass__(cls, result: Optional[Result] = None) -> None:
        """The class for this result. Without one, a kind of its base."""
        super().__init_subclass__()
        if result is not None:
            cls.result = result
            CLASSES[result] = cls

    def __init__(self, text: str = "", *, action: str = "", **facts: Any) -> None:
        self.text = text
        self.action = action
        self.sqlstate: str = facts.get("sqlstate", "")
        self.native: int = facts.get("native", 0)
        self.retryable: bool = facts.get("retryable", False)
        self.transaction_over: bool = facts.get("transaction_over", False)
        self.constraint: Constraint = facts.get("constraint", Constraint.NONE)
        self.row: Optional[int] = facts.get("row")
        # What became of each row of a call for many rows.
        self.outcomes: Optional[Sequence[Any]] = None
        super().__init__()
        self.say(text)

    def say(self, text: str) -> None:
        self.text = text
        self.args = (f"{self.action}: {text}" if self.action and text else text or self.action,)


class Refused(Error):
    """The database said no. (The result is above 0.)"""


class Failure(Error):
    """An error, or the outcome is not known. (The result is below 0.)"""


class Busy(Refused, result=Result.BUSY):
    """Another owner holds the lock, or another client has claimed the key.

    holder  the grant that was met, or None
    """

    holder: Optional[Grant] = None


class Timeout(Busy, TimeoutError, result=Result.TIMEOUT):
    """The lock was not granted within the time to wait."""


class LockLost(Refused, result=Result.LOST):
    """The grant or the claim is no longer in the table. Another client may have had it."""


class Lapsed(Refused, result=Result.LAPSED):
    """The lock is held, but its lease had run out. No other client was granted the lock."""


class NotThere(Refused, LookupError, result=Result.NONE):
    """There is no such grant, key or holder."""


class Cancelled(Refused, result=Result.CANCELLED):
    """The wait was cancelled."""


class Stale(Refused, result=Result.STALE):
    """The row has another version, or the resource has seen a newer token."""


class Conflict(Refused, result=Result.CONFLICT):
    """Another transaction won against yours. Roll back, and run the transaction again."""


class Mismatch(Refused, result=Result.MISMATCH):
    """Others hold the lock as another kind, or the key has another fingerprint."""

    holder: Optional[Grant] = None


class Deadlock(Refused, result=Result.DEADLOCK):
    """Clients wait for one another in a circle."""


class Pending(Refused, result=Result.PENDING):
    """Not decided yet."""


class Gone(Refused, LookupError, result=Result.GONE):
    """There is no such row."""


class Exists(Refused, result=Result.EXISTS):
    """There is such a row already."""


class Undone(Refused, result=Result.UNDONE):
    """The row was not changed because of another row."""


class Done(Refused, result=Result.DONE):
    """The work was done before."""


class Violation(Refused, result=Result.VIOLATION):
    """The row would break a constraint, or a value does not fit its column."""


class Uncertain(Failure, result=Result.EUNCERTAIN):
    """The statement was sent and the answer was lost. It may have happened or not."""


class ConnectionFailed(Failure, ConnectionError, result=Result.ECONN):
    """The database cannot be reached."""


class SchemaError(Failure, result=Result.ESCHEMA):
    """rowlock's tables are missing, too old or too new, or of something else."""


class Invalid(Failure, ValueError, result=Result.EINVAL):
    """A name, a URL, an option or a value is not acceptable."""


class OutOfMemory(Failure, MemoryError, result=Result.ENOMEM):
    """No memory, thread or file descriptor was left."""


class ReadOnly(Failure, result=Result.EREADONLY):
    """The server takes no writes."""


class Denied(Failure, PermissionError, result=Result.EDENIED):
    """The database refuses this user."""


class Misuse(Failure, result=Result.EMISUSE):
    """The object is closed, or is in the wrong state for this call."""


class ForkedError(Misuse):
    """The object belongs to the process that forked this one. Connect after forking."""


class Unsupported(Failure, result=Result.EUNSUPPORTED):
    """Not built in, or not possible with this server, driver or connection."""


class ServerError(Failure, result=Result.ESERVER):
    """Another failure of the database. The text is the database's."""


def text_of(chars: Any) -> str:
    """The text in an array of char, or at a pointer to char."""
    return str(ffi.string(chars).decode("utf-8", "replace")) if chars else ""


def new_error(result: int, err: Any) -> Error:
    """The exception for a result, with what the library says about it."""
    other: Type[Error] = Refused if result > 0 else Failure
    made = CLASSES.get(result, other)
    fallback = text_of(lib.rowlock_result_name(result))
    told = err.code == result
    error = made(
        in_python(result, text_of(err.text) if told else "") or fallback,
        action=text_of(err.action) if told else "",
        sqlstate=text_of(err.sqlstate),
        native=err.native,
        retryable=bool(err.retryable) if told else result in (Result.BUSY, Result.TIMEOUT),
        transaction_over=bool(err.transaction_over),
        constraint=constraint_of(err.constraint),
        row=err.row if err.row >= 0 else None,
    )
    return error


# The options of the library that have another name here.
NAMES = {"base": "pause", "cap": "longest_pause", "connections": "pool"}
BOUNDS = re.compile(r"\b(\w+?)(_ms)? is (-?\d+); it must be between (-?\d+) and (\d+)")
INSTALL = "`rowlock install`"


def in_python(result: int, text: str) -> str:
    """A text of the library, with the calls, options and units of this package."""
    if result == Result.EINVAL:
        return BOUNDS.sub(bounds_in_python, text)
    if result == Result.ESCHEMA:
        return text.replace(INSTALL, f"db.install() or {INSTALL}", 1)
    return text


def bounds_in_python(found: "re.Match[str]") -> str:
    name, in_ms, *numbers = found.groups()
    value, least, most = (f"{int(n) / 1000:.15g}" if in_ms else n for n in numbers)
    unit = " seconds" if in_ms else ""
    return f"{NAMES.get(name, name)} is {value}{unit}; it must be between {least} and {most}"


def constraint_of(number: int) -> Constraint:
    return Constraint(number) if number in list(Constraint) else Constraint.NONE


def error_of(result: int, db: Any) -> Error:
    """The exception for the last call on a rowlock_db."""
    return new_error(result, lib.rowlock_db_error(db or ffi.NULL))
