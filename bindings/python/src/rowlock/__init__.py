# SPDX-License-Identifier: MIT
"""Lease locks kept in a table of the PostgreSQL, MySQL, MariaDB or SQLite that you have.

    import rowlock

    db = rowlock.connect("postgresql://app@db1/prod")     # or mysql://…, sqlite:/path/to/file
    db.install()                                          # once: creates rowlock's tables
    try:
        with db.lock("nightly", ttl=30, wait=5) as held:  # renewed in the background
            held.check()                                  # before a step: is it still ours?
            print("token", held.token)
    except rowlock.Busy as busy:                          # not granted in 5 seconds
        print("another host is at it:", busy.holder)

connect()            returns a Database
Database             lock(), alock() for asyncio; table(), retry(), walk() for rows under versions;
                     once() for work that is done once; adopt() for a connection of yours
Held, AsyncHeld      a lock that is held: check(), lost, remaining, guard(cursor)
exclusive(), once()  decorators
Error                and a class for each result that is not OK:
  Refused            Busy, Timeout, LockLost, Lapsed, Stale, Gone, Exists, Violation, Undone,
                     Conflict, Mismatch, Deadlock, Cancelled, NotThere, Done, Pending
  Failure            ConnectionFailed, Uncertain, SchemaError, Invalid, Misuse, ForkedError,
                     Denied, Unsupported, ReadOnly, ServerError, OutOfMemory

help(rowlock.Database), help(rowlock.Held) and help(rowlock.Error) tell more. docs/PYTHON.md of
rowlock has the rest.
"""
from ._version import __version__ as __version__

try:
    from . import _rowlock
except ImportError as error:
    # The loader says so of a library that it does not find, and of one that lacks a function.
    if "librowlock.so" in str(error) and "cannot open" in str(error):
        _advice = (
            "librowlock was not found: install it, and run ldconfig as root; or build this package "
            "again, since the library may have moved"
        )
    elif "undefined symbol" in str(error):
        _advice = (
            f"the librowlock that is installed is older than this package, {__version__}: "
            "upgrade librowlock"
        )
    else:
        raise
    raise ImportError(f"{_advice} ({error})", name=error.name, path=error.path) from error

from .aio import AsyncHeld as AsyncHeld, AsyncLock as AsyncLock, AsyncLost as AsyncLost
from .claims import Once as Once
from .database import Adopted as Adopted, Database as Database, connect
from .decorators import exclusive, once
from .errors import *
from .grants import Grant as Grant, Waiter as Waiter
from .lock import Held as Held, Lock as Lock, Lost as Lost, State as State
from .retry import Attempt as Attempt, Walk as Walk
from .retry import WalkFailure as WalkFailure, WalkReport as WalkReport
from .table import Outcome as Outcome, Outcomes as Outcomes, Table as Table

# What help(rowlock) shows. `from . import X as X` makes the other names public too.
__all__ = ["connect", "exclusive", "once"]

# Users know the classes by these names.
for _one in list(vars().values()):
    if isinstance(_one, type) or _one in (connect, exclusive, once):
        _one.__module__ = __name__
del _one
