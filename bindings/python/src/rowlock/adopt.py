# SPDX-License-Identifier: MIT
"""Database.adopt(): connections of drivers that share our client library.

Most wheels bring their own copy of libpq, libmysqlclient or SQLite. A connection of one copy must
not be used by another. So the addresses of a function are compared: as librowlock finds it, and as
the driver's extension does. Only if they are the same is the pointer of the connection used.
"""
from __future__ import annotations

import ctypes
import functools
import os
import sys
from typing import Any, Dict, NamedTuple, Optional, Tuple

from ._rowlock import ffi, lib
from .errors import Misuse, Unsupported
from .handle import Handle, Options, opened


class Driver(NamedTuple):
    """How a driver is known."""

    kind: str
    # The call of rowlock, the type of its pointer, and a function of the client library.
    adopt: str
    pointer: str
    symbol: str
    # The extension module that is linked with the client library.
    extension: str


# These find only a library that is loaded already.
FLAGS = os.RTLD_NOLOAD | os.RTLD_NOW

POSTGRES = ("postgres", "rowlock_db_adopt_postgres", "struct pg_conn *", "PQstatus")
MYSQL = ("mysql", "rowlock_db_adopt_mysql", "struct st_mysql *", "mysql_ping")
SQLITE = ("sqlite", "rowlock_db_adopt_sqlite", "struct sqlite3 *", "sqlite3_total_changes")

# By the first part of the module of the connection's class.
DRIVERS: Dict[str, Driver] = {
    "psycopg2": Driver(*POSTGRES, "psycopg2._psycopg"),
    "psycopg": Driver(*POSTGRES, "psycopg.pq"),
    "MySQLdb": Driver(*MYSQL, "MySQLdb._mysql"),
    "sqlite3": Driver(*SQLITE, "_sqlite3"),
}


class DlInfo(ctypes.Structure):
    _fields_ = [
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    ]


def file_of(address: int) -> str:
    """The file of the loaded object that has this address."""
    info = DlInfo()
    dladdr = ctypes.CDLL(None).dladdr
    dladdr.argtypes = [ctypes.c_void_p, ctypes.POINTER(DlInfo)]
    found = dladdr(address, ctypes.byref(info))
    return os.path.realpath(os.fsdecode(info.file)) if found and info.file else "unknown"


def address_in(library: ctypes.CDLL, symbol: str) -> Optional[int]:
    """Where a loaded object, or what it is linked with, has a function."""
    try:
        return ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
    except AttributeError:
        return None


def our_address(symbol: str) -> Optional[int]:
    at = int(ffi.cast("uintptr_t", ffi.addressof(lib, "rowlock_version")))
    return address_in(ctypes.CDLL(file_of(at), FLAGS), symbol)


def their_address(driver: Driver) -> Optional[int]:
    module = sys.modules.get(driver.extension)
    if driver.extension == "psycopg.pq":
        implementation = getattr(module, "__impl__", "")
        if implementation == "python":
            # It calls libpq by ctypes.
            return address_in(sys.modules["psycopg.pq._pq_ctypes"].pq, driver.symbol)
        module = sys.modules.get(f"psycopg_{implementation}.pq")
    file = getattr(module, "__file__", None)
    if file is None:
        return None
    return address_in(ctypes.CDLL(file, FLAGS), driver.symbol)


@functools.lru_cache(maxsize=None)
def prove_same(driver: Driver) -> None:
    """Raises Unsupported, with both paths, unless both use the same loaded library."""
    ours, theirs = our_address(driver.symbol), their_address(driver)
    if ours is not None and ours == theirs:
        return
    paths = [file_of(one) if one else "none that can be found" for one in (ours, theirs)]
    raise Unsupported(
        f"the driver uses another copy of the client library: rowlock {paths[0]}, "
        f"the driver {paths[1]}. Use held.guard(cursor), or a driver that is linked with ours.",
        action="adopt a connection",
    )


# ---------------------------------------------------------------- the pointer


def pointer_now(driver: Driver, conn: Any) -> int:
    """Where the connection is, as the driver says. 0: it is closed."""
    if driver.kind == "postgres":
        return int(getattr(conn, "pgconn", conn).pgconn_ptr or 0)
    # CPython's drivers have theirs after the head of the object: a MYSQL, or a sqlite3 *.
    at = id(conn) + object.__basicsize__
    if driver.kind == "mysql":
        return at if conn.open else 0
    return ctypes.c_void_p.from_address(at).value or 0


def pointer_of(driver: Driver, conn: Any) -> int:
    """The same, proved: drivers may come to keep their connections elsewhere."""
    if driver.kind != "postgres" and sys.implementation.name != "cpython":
        raise Unsupported("only CPython's driver tells its pointer", action="adopt a connection")
    at = pointer_now(driver, conn)
    if not at:
        raise Misuse("the connection is closed", action="adopt a connection")
    if driver.kind == "mysql":
        prove_mysql(conn, at)
    elif driver.kind == "sqlite":
        prove_sqlite(conn, at)
    return at


def prove_mysql(conn: Any, at: int) -> None:
    """Its thread proves it."""
    library = ctypes.CDLL(str(sys.modules["MySQLdb._mysql"].__file__), FLAGS)
    library.mysql_thread_id.argtypes = [ctypes.c_void_p]
    library.mysql_thread_id.restype = ctypes.c_ulong
    if library.mysql_thread_id(at) != conn.thread_id():
        raise unknown_layout()


def prove_sqlite(conn: Any, at: int) -> None:
    if not is_mapped(at):
        raise unknown_layout()
    library = ctypes.CDLL(str(sys.modules["_sqlite3"].__file__), FLAGS)
    known = {"total_changes": conn.total_changes, "get_autocommit": int(not conn.in_transaction)}
    for name, value in known.items():
        call = getattr(library, f"sqlite3_{name}")
        call.argtypes = [ctypes.c_void_p]
        if call(at) != value:
            raise unknown_layout()


def is_mapped(address: int) -> bool:
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            first, last = (int(part, 16) for part in line.split(" ", 1)[0].split("-"))
            if first <= address < last:
                return line.split()[1].startswith("rw")
    return False


def unknown_layout() -> Unsupported:
    return Unsupported(
        "this version of the driver keeps its connection elsewhere: use held.guard(cursor)",
        action="adopt a connection",
    )


def adopt(conn: Any, limits: Dict[str, Any]) -> Tuple[str, Handle]:
    """A handle on the connection, and its kind of database."""
    if hasattr(conn, "fetchone"):
        kind = f"{type(conn).__module__}.{type(conn).__qualname__}"
        raise TypeError(f"adopt() takes a connection, and not a {kind}: adopt(cursor.connection)")
    roots = [base.__module__.split(".", 1)[0] for base in type(conn).__mro__]
    root = next((one for one in roots if one in DRIVERS), None)
    if root is None:
        raise Unsupported(
            f"a connection of {type(conn).__module__} has no pointer that rowlock knows: "
            "use held.guard(cursor)",
            action="adopt a connection",
        )
    driver = DRIVERS[root]
    prove_same(driver)
    at = pointer_of(driver, conn)
    options = Options("db_options", **limits)
    adopted = ffi.cast(driver.pointer, at)
    call = functools.partial(getattr(lib, driver.adopt), adopted, options.struct)
    handle = opened("db", call, Handle)
    # This keeps the connection: its driver must not free it before the handle.
    handle.is_open = lambda: pointer_now(driver, conn) == at
    return driver.kind, handle
