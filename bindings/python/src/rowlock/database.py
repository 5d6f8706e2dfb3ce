# SPDX-License-Identifier: MIT
"""rowlock.connect() and what it returns."""
from __future__ import annotations

import atexit
import concurrent.futures
import contextlib
import os
import pathlib
import re
import sys
import threading
import urllib.parse
import warnings
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, TypeVar, Union

from ._rowlock import ffi, lib
from .adopt import adopt
from .aio import AsyncLock
from .errors import Invalid, Misuse, Unsupported
from .grants import Collector, Grant, Waiter
from .guard import Transaction
from .handle import (
    Handle, Single, Target, check_pid, flag, milliseconds, must_be_free, to_bytes,
    wait_milliseconds, whole,
)  # fmt: skip
from .holds import Holds
from .lock import Acquiring, Lock, ending
from .claims import Once
from .retry import Attempt, Walk, WalkReport, retry
from .table import Table

if TYPE_CHECKING:
    import types

T = TypeVar("T")

# Connections that wait for the next lock. Handles of a pool have none, and cost little.
IDLE_CONNECTIONS = 4
IDLE_OF_POOL = 256
# Threads for the calls that block, made for asyncio.
THREADS = 16


def connect(
    url: Union[str, Sequence[str], None] = None,
    *,
    pool: Union[bool, int] = False,
    owner: Optional[str] = None,
    program: Optional[str] = None,
    schema: Optional[str] = None,
    prefix: Optional[str] = None,
    connect_timeout: Optional[float] = None,
    statement_timeout: Optional[float] = None,
    reconnect: Optional[float] = None,
) -> "Database":
    """Connects to the database that has the locks.

    url      postgresql://…, mysql://… or mariadb://…, sqlite:/path/to/file, as rowlock.h says;
             or three or five of them: a quorum. None: ROWLOCK_URL, else the embedded database of
             this user, as the command `rowlock`. With ROWLOCK_REQUIRE_URL that is Invalid.
    pool     True or a number of connections: all locks share a few connections. False: each lock
             that is held or waited for has one.
    reconnect  how long a call tries to reconnect, in seconds. 0: never.
    The others are those of rowlock_db_options, with times in seconds.
    """
    embedded = False
    if url is None:
        urls, embedded = default_urls()
    else:
        urls = urls_of(url)
    reconnect_ms = milliseconds("reconnect", reconnect, 0)
    limits: Dict[str, Any] = {
        "owner": owner,
        "program": program or os.path.basename(sys.argv[0] if sys.argv else "") or None,
        "schema": schema,
        "prefix": prefix,
        "connect_timeout_ms": milliseconds("connect_timeout", connect_timeout),
        "statement_timeout_ms": milliseconds("statement_timeout", statement_timeout),
        # To the library 0 is its default, and below 0 is never.
        "reconnect_ms": reconnect_ms if reconnect is None else reconnect_ms or -1,
    }
    connections = 2 * pool if isinstance(pool, bool) else whole("pool", pool, 32)
    if connections < 0:
        raise Invalid(f"pool is True, False or a number of connections, and not {pool}")
    if connections and len(urls) > 1:
        raise Invalid("a quorum has no pool")
    made = Database(Target(urls, limits, connections))
    if embedded:
        made.install()
    return made


def urls_of(url: Union[str, Sequence[str]]) -> List[str]:
    urls = [url] if isinstance(url, str) else url
    # bytes are a sequence too, of numbers.
    if not isinstance(urls, Sequence) or not urls or not all(isinstance(u, str) for u in urls):
        raise Invalid(
            "url is a str, as sqlite:/path/to/file or postgresql://host/database, or a list of "
            f"them for a quorum, and not {url!r}",
            action="connect",
        )
    return list(urls)


def default_urls() -> "tuple[List[str], bool]":
    value = os.environ.get("ROWLOCK_URL")
    if value is not None and not value.strip():
        raise Invalid("ROWLOCK_URL is empty; set it to a URL, or unset it", action="connect")
    if value is not None:
        # White space does not end a URL by itself: the path of a file may have some.
        return re.split(r"\s+(?=[a-z]+:)", value.strip()), False
    if os.environ.get("ROWLOCK_REQUIRE_URL"):
        raise Invalid(
            "which database? Set ROWLOCK_URL, or give a URL: ROWLOCK_REQUIRE_URL is set",
            action="connect",
        )
    state = os.environ.get("XDG_STATE_HOME", "")
    if not state.startswith("/"):
        state = os.path.expanduser("~/.local/state")
    folder = pathlib.Path(state, "rowlock")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return [f"sqlite:{folder}/locks.db"], True


class Names:
    """How rowlock's tables are called in SQL that goes through another connection."""

    def __init__(self, url: str, schema: Optional[str], prefix: Optional[str]) -> None:
        scheme = url.split(":", 1)[0].lower()
        kinds = {"mysql": "mysql", "mariadb": "mysql", "sqlite": "sqlite"}
        self.kind = kinds.get(scheme, "postgres")
        parts = urllib.parse.urlsplit(url) if "://" in url else None
        query = urllib.parse.parse_qs(parts.query) if parts else {}
        self.prefix = prefix or query.get("rowlock_prefix", ["rowlock_"])[0]
        schema = schema or next(iter(query.get("rowlock_schema", [])), None)
        if self.kind == "postgres":
            schema = schema or "public"
        elif self.kind == "mysql" and parts:
            schema = schema or urllib.parse.unquote(parts.path.lstrip("/")) or None
        self.schema = None if self.kind == "sqlite" else schema

    def of(self, name: str) -> str:
        """The name of one of rowlock's tables, quoted. Schema and prefix have no quotes."""
        quote = "`" if self.kind == "mysql" else '"'
        parts = [part for part in (self.schema, self.prefix + name) if part]
        return ".".join(quote + part.replace(quote, quote * 2) + quote for part in parts)


class Database(Single):
    """A database with locks. It may be used by any number of threads and tasks."""

    _closed = True
    # Nothing is open any more.
    _ended = True

    def __init__(self, target: Target, first: Optional[Handle] = None) -> None:
        self._pid = os.getpid()
        self._rlock = threading.RLock()
        self._target = target
        self._idle: List[Handle] = []
        self._all: Dict[Handle, None] = {}
        self._executor: Optional[concurrent.futures.ThreadPoolExecutor] = None
        self._most_idle = IDLE_OF_POOL if target.pooled else IDLE_CONNECTIONS
        self.names = Names(target.urls[0], target.limits["schema"], target.limits["prefix"])
        # The first, if there are several.
        self.url = target.urls[0]
        # MySQL, MariaDB: whether several nodes take writes, once it was asked.
        self._several_write: Optional[bool] = None
        # The handle of the retry or the walk that this thread or task is in.
        self._within = threading.local()
        self._holds = Holds()
        try:
            target.open_pool()
            first = first or target.open_handle()
            self._all[first] = None
            self._idle.append(first)
            open_databases.add(self)
            self._closed = self._ended = False
        except BaseException:
            self._closed = True
            if first is not None:
                first.close()
            target.close()
            raise

    # ---- handles

    @property
    def _mutex(self) -> Any:
        return must_be_free(self._rlock)

    def _must_be_free(self, *handles: Handle) -> None:
        """Raises Misuse before anything is done, in place of waiting for the own thread."""
        for rlock in (self._rlock, self._target.rlock):
            must_be_free(rlock)
        for handle in handles:
            must_be_free(handle.rlock)
            if handle.walker == threading.get_ident() and not ending.is_set():
                raise Misuse("this thread is inside a walk of this database: leave its loop first")

    def _check(self) -> None:
        check_pid(self._pid, "this database")
        if self._closed:
            raise Misuse("the database was closed")

    def _take_idle(self) -> Optional[Handle]:
        """A handle without a round trip, or None."""
        self._check()
        with self._mutex:
            if self._idle:
                handle = self._idle.pop()
                handle.turn += 1
                return handle
        return self._take() if self._target.pooled else None

    def _take(self) -> Handle:
        """A handle for one user, until _give(). After an exception it is not taken."""
        self._check()
        handle = None
        try:
            with self._mutex:
                if self._idle:
                    # A signal handler may raise after a pop(), but not between these two.
                    handle = self._idle[-1]
                    handle.turn += 1
                    del self._idle[-1]
                    return handle
            handle = self._target.open_handle()
            with self._mutex:
                if not self._closed:
                    self._all[handle] = None
                    return handle
            raise Misuse("the database was closed")
        except BaseException:
            if handle is not None and handle not in self._idle:
                self._all[handle] = None
                self._give(handle)
            raise

    def _give(
        self, handle: Handle, user: Optional[Acquiring] = None, turn: Optional[int] = None
    ) -> None:
        """Gives a handle back, once for each user. One that is spent is closed."""
        if handle.pid != os.getpid():
            return
        with self._mutex:
            if handle in self._idle or turn not in (None, handle.turn):
                return
            handle.dropped = None
            if user is not None and not handle.spent:
                if user.over:
                    return
                user.over = True
            full = len(self._idle) >= self._most_idle
            if not (handle.spent or handle.db is None or full or self._closed):
                self._idle.append(handle)
                return
        # Until it is closed, close() must know it.
        handle.close()
        with self._mutex:
            self._all.pop(handle, None)
        if user is not None:
            user.over = True

    def _call(self, work: Callable[[Handle], T]) -> T:
        """Runs work with a handle: that of the retry that we are in, or another."""
        self._check()
        inner: Optional[Handle] = getattr(self._within, "handle", None)
        if inner is not None:
            return work(inner)
        handle = self._take()
        try:
            turn = handle.turn
            with handle.mutex:
                return work(handle)
        finally:
            try:
                self._give(handle)
            except BaseException:
                # A signal handler raised. The handle may have been given back, and taken again.
                self._give(handle, turn=turn)
                raise

    def _threads(self) -> concurrent.futures.ThreadPoolExecutor:
        with self._mutex:
            self._check()
            if self._executor is None:
                self._executor = concurrent.futures.ThreadPoolExecutor(THREADS, "rowlock")
            return self._executor

    # ---- the end

    def close(self) -> None:
        """Releases the locks that are still held, and closes the connections.

        Misuse in a signal handler that interrupts a call of this database, in a function of its
        retry(), and in the loop of a walk. If a signal handler raises meanwhile, the next close()
        goes on, and so does the end of the interpreter.
        """
        if self._ended or self._pid != os.getpid():
            return
        self._must_be_free(*list(self._all))
        with self._mutex:
            self._closed = True
            self._idle = []
            handles = list(self._all)
        for handle in handles:
            stop = handle.stop
            if stop is not None:
                stop()
            handle.close()
        if self._executor is not None:
            self._executor.shutdown(wait=False)
        self._target.close()
        self._ended = True

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not self._ended and self._pid == os.getpid():
            try:
                if not self._closed:
                    warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self)
            finally:
                self.close()

    def __repr__(self) -> str:
        state = "closed " if self._closed else ""
        return f"<{state}rowlock.Database of {self.names.kind}>"

    # ---- locks

    def lock(
        self,
        name: str,
        *,
        ttl: float = 30,
        wait: Optional[float] = 0,
        shared: bool = False,
        permits: int = 0,
        note: Optional[str] = None,
        renew: bool = True,
        max_hold: Optional[float] = None,
        progress: Optional[float] = None,
        margin: Optional[float] = None,
        unfair: bool = False,
        on_lost: str = "raise",
    ) -> Lock:
        """A lock to be held: `with db.lock("nightly") as held`.

        ttl       how long the lease is, in seconds. A keeper renews it in the background.
        wait      0: try once (Busy). Above 0: wait so long (Timeout). None: without end.
        shared    all who ask for it so may hold it. permits: so many may. One of the two.
        renew     False: no keeper. You call held.renew().
        max_hold, progress, margin, unfair, note   as rowlock_acquire_options, in seconds
        on_lost   "raise": a lock that was lost is LockLost at the end of the with. "log": it is
                  logged (logger "rowlock").
        """
        if on_lost not in ("raise", "log"):
            raise Invalid('on_lost is "raise" or "log"')
        to_bytes(name, "name")
        flag("renew", renew)
        if whole("permits", permits, 32) < 0 or (flag("shared", shared) and permits):
            raise Invalid("permits is above 0, or 0 for none; shared=True goes without permits")
        options: Dict[str, Any] = {
            "ttl_ms": milliseconds("ttl", ttl),
            "wait_ms": wait_milliseconds("wait", wait),
            "note": note,
            "permits": int(lib.ROWLOCK_SHARED) if shared else permits,
            "unfair": flag("unfair", unfair),
            "max_hold_ms": milliseconds("max_hold", max_hold),
            "progress_ms": milliseconds("progress", progress),
            "margin_ms": milliseconds("margin", margin),
        }
        return Lock(self, name, options, renew, on_lost)

    def alock(
        self,
        name: str,
        *,
        ttl: float = 30,
        wait: Optional[float] = 0,
        shared: bool = False,
        permits: int = 0,
        note: Optional[str] = None,
        renew: bool = True,
        max_hold: Optional[float] = None,
        progress: Optional[float] = None,
        margin: Optional[float] = None,
        unfair: bool = False,
        on_lost: str = "raise",
    ) -> AsyncLock:
        """The same for asyncio: `async with db.alock("nightly", wait=None) as held`."""
        lock = self.lock(
            name, ttl=ttl, wait=wait, shared=shared, permits=permits, note=note, renew=renew,
            max_hold=max_hold, progress=progress, margin=margin, unfair=unfair, on_lost=on_lost,
        )  # fmt: skip
        return AsyncLock(lock)

    def adopt(self, conn: Any) -> "Adopted":
        """Uses a connection that you have, of a driver that shares our client library.

        Its tables, fences and claims become a part of your transaction, and held.guard() takes it
        in place of a cursor. Drivers: psycopg, psycopg2, mysqlclient, sqlite3. Raises Unsupported,
        with both paths, if the driver has another copy of the library. Close it before conn.
        """
        self._check()
        names = self.names
        limits = {"schema": names.schema, "prefix": names.prefix}
        kind, handle = adopt(conn, {**self._target.limits, **limits})
        if kind != names.kind:
            handle.close()
            raise Invalid(f"the connection is of {kind}, and this database of {names.kind}")
        return Adopted(self._target, handle)

    # ---- rows under versions

    def table(
        self,
        name: str,
        key: Union[str, Sequence[str]],
        columns: Sequence[str] = (),
        *,
        version: str = "version",
        schema: Optional[str] = None,
        set: Optional[str] = None,
        parameters: Sequence[str] = (),
        first_version: int = 0,
    ) -> Table:
        """One of your tables, for reads and updates under versions (rowlock/versions.h).

        key         the column of a unique key, or all of them
        columns     what reads return, updates set, and inserts give
        set         your own SQL that updates use in place of the columns. Each ? is a parameter.
                    Never make it of data.
        parameters  a name for each parameter of set
        """
        return Table(self, name, key, columns, version, schema, set, parameters, first_version)

    def retry(
        self,
        function: Callable[[Attempt], T],
        *,
        attempts: int = 0,
        deadline: Optional[float] = None,
        lock_after: int = 0,
        pause: Optional[float] = None,
        longest_pause: Optional[float] = None,
    ) -> T:
        """Runs function(attempt) in a transaction of this database, and again after a conflict.

        Tables of this database are a part of the transaction, in this thread. When the function
        raises Stale, Conflict, Busy, Exists, Gone or ConnectionFailed, all of it is rolled back and
        attempted again. Other exceptions roll back, and go on to the caller. TypeError: a coroutine
        function or a generator.

        attempts, deadline, lock_after   as rowlock_retry_options: at most 20 attempts in 10 s
        """
        return retry(
            self,
            function,
            attempts=attempts,
            deadline_ms=milliseconds("deadline", deadline),
            lock_after=lock_after,
            base_ms=milliseconds("pause", pause),
            cap_ms=milliseconds("longest_pause", longest_pause),
        )

    def walk(
        self,
        table: Table,
        name: str,
        *,
        progress: Optional[Callable[[WalkReport], object]] = None,
        chunk: int = 0,
        restart: bool = False,
        wait: Optional[float] = 0,
        ttl: float = 30,
    ) -> Walk:
        """Every row of a table, in a loop that may change it, beside live users (rowlock/walk.h).

            for row in db.walk(prices, "reprice"):
                row["price"] *= 2

        A row that the loop changed is written with its chunk, under its version. A row that another
        client changed meanwhile comes again. A loop that was left goes on there the next time.

        name      of the walk's lock and checkpoint
        progress  is called with a WalkReport after each chunk
        """
        options: Dict[str, Any] = {
            "name": name,
            "chunk": chunk,
            "restart": flag("restart", restart),
            "wait_ms": wait_milliseconds("wait", wait),
            "ttl_ms": milliseconds("ttl", ttl),
        }
        return Walk(table, progress, options)

    def once(
        self,
        key: str,
        fingerprint: Optional[str] = None,
        *,
        ttl: float = 60,
        token: int = 0,
    ) -> Once:
        """A key that is done once: `with db.once("order 1234") as claim` (rowlock/once.h).

        The body does the work unless claim.done, and calls claim.complete(result). A body that
        raises gives the key back.

        fingerprint  what is asked for. The same key with another one is a Mismatch.
        ttl          how long the claim counts as in progress if it is not completed
        token        of a lock that every client holds when it claims this key
        """
        options = {"fingerprint": fingerprint, "ttl_ms": milliseconds("ttl", ttl), "token": token}
        return Once(self, key, options)

    def fence(self, resource: str, token: int) -> None:
        """Remembers the newest token that a resource has seen. Raises Stale for an older one."""
        name = to_bytes(resource, "resource")
        whole("token", token)
        self._call(lambda handle: handle.check(lib.rowlock_fence(handle.use(), name, token)))

    # ---- administration

    def install(self) -> None:
        """Creates rowlock's tables, if they are not there."""
        self._call(lambda handle: handle.check(lib.rowlock_install(handle.use())))

    def grants(self, name: Optional[str] = None) -> List[Grant]:
        """The grants in the table, also those that have expired."""

        def work(handle: Handle) -> List[Grant]:
            found = Collector(Grant)
            wanted = ffi.NULL if name is None else to_bytes(name, "name")
            each = lib.rowlock_py_each_grant
            call = found.call
            handle.check(call.run(lib.rowlock_list, handle.use(), wanted, each, call.context))
            return found.items

        return self._call(work)

    def waiters(self, name: Optional[str] = None) -> List[Waiter]:
        """The clients that wait for locks."""

        def work(handle: Handle) -> List[Waiter]:
            found = Collector(Waiter)
            wanted = ffi.NULL if name is None else to_bytes(name, "name")
            each = lib.rowlock_py_each_waiter
            call, db = found.call, handle.use()
            handle.check(call.run(lib.rowlock_list_waiters, db, wanted, each, call.context))
            return found.items

        return self._call(work)

    def break_lock(self, name: str, if_token: int = 0) -> Grant:
        """Takes a grant away from its holder. Raises NotThere if there is none."""

        def work(handle: Handle) -> Grant:
            broken = ffi.new("rowlock_grant *", lib.rowlock_grant_init())
            wanted = to_bytes(name, "name")
            token = whole("if_token", if_token)
            handle.check(lib.rowlock_break(handle.use(), wanted, token, broken))
            return Grant(broken)

        return self._call(work)


class Adopted(Database, Transaction):
    """A connection of yours: Database.adopt(). One thread at a time may use it."""

    def __init__(self, target: Target, handle: Handle) -> None:
        super().__init__(Target(target.urls, target.limits, 0), handle)

    def _take(self) -> Handle:
        self._check()
        with self._mutex:
            if self._idle:
                handle = self._idle.pop()
                handle.turn += 1
                return handle
        raise Misuse("another thread or task is using this connection")

    _take_idle = _take

    def lock(self, name: str, **options: Any) -> Lock:
        """Not here: a lock belongs to the database that was connected to."""
        raise Unsupported("take locks from rowlock.connect(), and guard them with this connection")

    def guard(self, grant: Any) -> None:
        self._call(lambda handle: handle.check(lib.rowlock_guard(grant, handle.use())))


open_databases: "weakref.WeakSet[Database]" = weakref.WeakSet()


@atexit.register
def close_all() -> None:
    """Releases what is held when the interpreter ends."""
    ending.set()
    with contextlib.ExitStack() as stack:
        for database in list(open_databases):
            # A signal handler may raise in the first. The others are called then too.
            stack.callback(database.close)
            stack.callback(database.close)
