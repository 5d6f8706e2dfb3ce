# SPDX-License-Identifier: MIT
"""Grants and waiters as they are in the tables."""
from __future__ import annotations

from typing import Any, Callable, List

from ._rowlock import ffi
from .callbacks import Call, callback
from .errors import text_of


class Grant:
    """A grant as it is in the table. Times are of the database's clock."""

    __slots__ = ("name", "owner", "token", "host", "program", "note", "pid", "permits", "renewals",
                 "acquired", "expires", "remaining", "ttl")  # fmt: skip

    def __init__(self, grant: Any) -> None:
        self.name: str = text_of(grant.name)
        self.owner: str = text_of(grant.owner)
        self.token: int = grant.token
        self.host: str = text_of(grant.host)
        self.program: str = text_of(grant.program)
        self.note: str = text_of(grant.note)
        self.pid: int = grant.pid
        self.permits: int = grant.permits
        self.renewals: int = grant.renewals
        self.acquired: float = grant.acquired_us / 1e6
        self.expires: float = grant.expires_us / 1e6
        # The database's clock may have gone back since, or tells whole milliseconds.
        self.remaining: float = min(grant.remaining_ms, grant.ttl_ms) / 1e3
        self.ttl: float = grant.ttl_ms / 1e3

    def __repr__(self) -> str:
        return f"<Grant {self.name!r} token {self.token} of {self.owner!r} on {self.host!r}>"


class Waiter:
    """A client that waits in a queue."""

    __slots__ = ("name", "owner", "ticket", "host", "program", "note", "pid", "position", "waited")

    def __init__(self, waiter: Any) -> None:
        self.name: str = text_of(waiter.name)
        self.owner: str = text_of(waiter.owner)
        self.ticket: int = waiter.ticket
        self.host: str = text_of(waiter.host)
        self.program: str = text_of(waiter.program)
        self.note: str = text_of(waiter.note)
        self.pid: int = waiter.pid
        self.position: int = waiter.position
        self.waited: float = waiter.waited_ms / 1e3

    def __repr__(self) -> str:
        return f"<Waiter {self.name!r} ticket {self.ticket} of {self.owner!r}>"


class Collector:
    """Makes an object of each struct that a callback of the library gets."""

    def __init__(self, make: Any) -> None:
        self.make = make
        self.items: List[Any] = []
        self.call = Call(self)


@callback(stop=-1)  # type: ignore[misc]
def rowlock_py_each_grant(context: Any, grant: Any) -> int:
    collector = ffi.from_handle(context)
    collector.items.append(collector.make(grant))
    return 0


@callback(stop=-1)  # type: ignore[misc]
def rowlock_py_each_waiter(context: Any, waiter: Any) -> int:
    collector = ffi.from_handle(context)
    collector.items.append(collector.make(waiter))
    return 0
