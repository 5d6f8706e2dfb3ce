# SPDX-License-Identifier: MIT
"""The guard, through a cursor of the caller's own driver: docs/GUARDING.md, in SQL.

Most drivers bring a copy of their client library, and a connection of one copy must not be used by
another. So the guard is a statement, and not a call with a pointer.
"""
from __future__ import annotations

import inspect
import re
import sys
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Generator,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
)

from .adopt import DRIVERS, prove_same
from .errors import Conflict, Invalid, LockLost, Misuse, SchemaError, Unsupported

if TYPE_CHECKING:
    from .database import Database


class Guarded(NamedTuple):
    """The grant that a guard is about."""

    database: Database
    name: str
    owner: str
    token: int
    permits: int


class Transaction:
    """A transaction on an adopted connection. The library guards it without a cursor."""

    def guard(self, grant: Any) -> None:
        raise NotImplementedError


class Ask(NamedTuple):
    """One statement. Its answer is the first row, or the number of rows that it changed.

    refused  After this error of the database the answer is None.
    """

    sql: str
    values: Dict[str, Any]
    counts: bool = False
    refused: int = 0


Plan = Generator[Ask, Any, None]

# The style of asyncpg, which has no cursors of PEP 249.
DOLLAR = "dollar"

# By the first part of a module's name. Other drivers are believed.
KINDS = {
    "psycopg": "postgres", "psycopg2": "postgres", "asyncpg": "postgres", "pg8000": "postgres",
    "MySQLdb": "mysql", "pymysql": "mysql", "mariadb": "mysql", "mysql": "mysql",
    "aiomysql": "mysql", "sqlite3": "sqlite", "aiosqlite": "sqlite",
}  # fmt: skip
TITLES = {"postgres": "PostgreSQL", "mysql": "MySQL or MariaDB", "sqlite": "SQLite"}
# How a database says that it has no such schema, table or function.
MISSING = ("3F000", "42P01", "42883", 1049, 1146, 1305)
NO_SAVEPOINT = 1305


# ---------------------------------------------------------------- what is asked


def plan(grant: Guarded, cursor: Any) -> Plan:
    kind = grant.database.names.kind
    if kind == "postgres":
        check_postgres(cursor)
        yield from plan_postgres(grant)
    elif kind == "mysql":
        yield from check_mysql(cursor)
        yield from plan_mysql(grant)
    else:
        yield from plan_sqlite(grant, cursor)
        check_sqlite(cursor)


def plan_postgres(grant: Guarded) -> Plan:
    names = grant.database.names
    if grant.permits == 0:
        row = yield Ask(
            f"SELECT token FROM {names.of('tokens')} WHERE name = {{name}} FOR SHARE",
            {"name": grant.name},
        )
        judge(grant, row and row[0], row is not None and row[0] == grant.token)
    else:
        row = yield Ask(
            f"SELECT o_token, o_stands FROM {names.of('guard')}"
            "({name}, CAST({slot} AS bigint), {owner}, CAST({token} AS bigint))",
            values_of(grant),
        )
        judge(grant, row and row[0], row is not None and bool(row[1]))


def plan_mysql(grant: Guarded) -> Plan:
    names = grant.database.names
    changes = yield from several_write(grant.database)
    if grant.permits == 0 and not changes:
        row = yield Ask(
            f"SELECT token FROM {names.of('tokens')} WHERE name = {{name}} LOCK IN SHARE MODE",
            {"name": grant.name.encode()},
        )
        judge(grant, row and row[0], row is not None and row[0] == grant.token)
    elif grant.permits == 0:
        count = yield Ask(
            f"UPDATE {names.of('tokens')} SET guards = guards + 1"
            " WHERE name = {name} AND token = {token}",
            {"name": grant.name.encode(), "token": grant.token},
            counts=True,
        )
        judge(grant, None, count == 1)
    else:
        values = values_of(grant)
        values.update(changes=int(changes), name=grant.name.encode(), owner=grant.owner.encode())
        row = yield Ask(
            f"CALL {names.of('guard')}({{name}}, {{slot}}, {{owner}}, {{token}}, {{changes}})",
            values,
        )
        judge(grant, row and row[0], row is not None and bool(row[1]))
    # A cursor of another server would have told of that one.
    grant.database._several_write = changes


def plan_sqlite(grant: Guarded, cursor: Any) -> Plan:
    names = grant.database.names
    check_copies(cursor)
    row = yield Ask(
        f"UPDATE {names.of('tokens')} SET token = token WHERE name = {{name}}"
        " RETURNING token, token = {token} OR ({slot} <> 0 AND {token} > fenced AND EXISTS ("
        f"SELECT 1 FROM {names.of('locks')} l WHERE l.name = {{name}} AND l.slot = {{slot}}"
        " AND l.owner = {owner} AND l.token = {token}))",
        values_of(grant),
    )
    judge(grant, row and row[0], row is not None and bool(row[1]))


def values_of(grant: Guarded) -> Dict[str, Any]:
    slot = 0 if grant.permits == 0 else grant.token
    return {"name": grant.name, "slot": slot, "owner": grant.owner, "token": grant.token}


def judge(grant: Guarded, newest: Optional[int], stands: bool) -> None:
    action = f"guard by lock '{grant.name}'"
    if stands:
        return
    if newest is not None and newest < grant.token:
        raise Conflict(
            "your transaction's snapshot is older than the grant, or the cursor is of another "
            "database: roll back, and begin after acquiring",
            action=action,
        )
    elsewhere = ", or the cursor is of another database" if newest is None else ""
    raise LockLost(
        f"the lock has been granted again, or was broken, since token {grant.token}{elsewhere}: "
        "roll back",
        action=action,
    )


def several_write(database: Database) -> Generator[Ask, Any, bool]:
    """Whether several nodes take writes. A row lock is local to its node there."""
    if database._several_write is not None:
        return database._several_write
    galera = yield Ask("SHOW GLOBAL VARIABLES LIKE 'wsrep_on'", {})
    group = yield Ask("SHOW GLOBAL VARIABLES LIKE 'group_replication_single_primary_mode'", {})
    on = galera is not None and str(galera[1]).upper() in ("ON", "1")
    return on or (group is not None and str(group[1]).upper() == "OFF")


# ---------------------------------------------------------------- is there a transaction?

NO_TRANSACTION = (
    "the cursor is not inside a transaction, so a guard would end with its own statement: "
    "begin one, or switch autocommit off"
)


def no_transaction() -> Misuse:
    return Misuse(NO_TRANSACTION, action="guard")


def check_postgres(cursor: Any) -> None:
    """psycopg and psycopg2 tell both. Other drivers are believed."""
    conn = getattr(cursor, "connection", None)
    if not getattr(conn, "autocommit", False):
        return
    status = getattr(getattr(conn, "info", None), "transaction_status", None)
    if status is not None and int(status) == 0:
        raise no_transaction()


def check_mysql(cursor: Any) -> Plan:
    conn = getattr(cursor, "connection", None)
    automatic = getattr(conn, "get_autocommit", None)
    if automatic is None or not automatic():
        return
    # Only MariaDB tells. Outside a transaction a savepoint is gone with its own statement.
    yield Ask("SAVEPOINT rowlock_guard", {}, counts=True)
    if (yield Ask("RELEASE SAVEPOINT rowlock_guard", {}, True, NO_SAVEPOINT)) is None:
        raise no_transaction()


def check_copies(cursor: Any) -> None:
    """Two copies of SQLite in one process end the locks of one another."""
    if "sqlite3" in modules_of(cursor):
        prove_same(DRIVERS["sqlite3"])


def check_sqlite(cursor: Any) -> None:
    if not getattr(getattr(cursor, "connection", None), "in_transaction", True):
        raise no_transaction()


# ---------------------------------------------------------------- is it the lock's database?


# Django wraps a cursor of MySQLdb twice.
WRAPPED_AT_MOST = 4


def modules_of(cursor: Any) -> Iterator[str]:
    """The first part of each module of its class, and of the cursors that it wraps."""
    for _ in range(WRAPPED_AT_MOST):
        for base in type(cursor).__mro__:
            yield base.__module__.split(".", 1)[0]
        cursor = getattr(cursor, "cursor", None)


def check_kind(grant: Guarded, one: Any) -> None:
    """Raises SchemaError if this cursor or exception is of another kind of database."""
    mine = grant.database.names.kind
    kind = next((KINDS[root] for root in modules_of(one) if root in KINDS), mine)
    if kind != mine:
        raise other_database(grant, f"a cursor of {TITLES[kind]}, and not of {TITLES[mine]}")


def other_database(grant: Guarded, wrong: str) -> SchemaError:
    return SchemaError(
        f"the lock is not in the database of this cursor ({wrong}): guard with a cursor of the "
        "database that has the lock, or fence what you write elsewhere with held.token",
        action=f"guard by lock '{grant.name}'",
    )


def code_of(error: BaseException) -> Any:
    """The SQLSTATE of PostgreSQL, or the number of MySQL and MariaDB."""
    for name in ("pgcode", "errno", "sqlstate"):
        if getattr(error, name, None):
            return getattr(error, name)
    return error.args[0] if error.args else None


def judge_error(grant: Guarded, error: BaseException) -> None:
    """Raises SchemaError if the lock's tables are not there. Other errors are the driver's."""
    missing = f"no such table: {grant.database.names.prefix}"
    # Some that wrap a cursor wrap its exceptions too.
    for one in filter(None, (error, error.__cause__)):
        check_kind(grant, one)
        if code_of(one) in MISSING or str(one).startswith(missing):
            raise other_database(grant, str(one).split("\n", 1)[0]) from error


# ---------------------------------------------------------------- how it is asked


def paramstyle_of(cursor: Any, given: Optional[str]) -> str:
    """As the cursor's module tells it (PEP 249), or the module of the cursor that it wraps."""
    if given is not None:
        return given
    roots = list(modules_of(cursor))
    if "django" in roots:
        # Django has one style for all databases. Its debug cursor formats the statement by itself.
        return "format"
    for root in roots:
        if root == "asyncpg":
            return DOLLAR
        style = getattr(sys.modules.get(root), "paramstyle", None)
        if isinstance(style, str):
            return style
    raise Invalid(
        f"the module of {type(cursor).__qualname__} does not tell its paramstyle: give it, as "
        'guard(cursor, paramstyle="format")'
    )


def spell(ask: Ask, style: str) -> "tuple[str, Any]":
    """The statement with markers, and the values as the driver takes them. It quotes nothing."""
    order: List[str] = []
    numbers: Dict[str, int] = {}

    def marker(match: "re.Match[str]") -> str:
        name = match.group(1)
        number = numbers.setdefault(name, len(numbers) + 1)
        order.append(name)
        return {
            "pyformat": f"%({name})s", "format": "%s", "qmark": "?", "named": f":{name}",
            "numeric": f":{number}", DOLLAR: f"${number}",
        }[style]  # fmt: skip

    if style not in ("pyformat", "format", "qmark", "named", "numeric", DOLLAR):
        raise Invalid(f"no such paramstyle: {style}")
    text = ask.sql.replace("%", "%%") if style in ("pyformat", "format") and ask.values else ask.sql
    text = re.sub(r"\{(\w+)\}", marker, text)
    if style in ("pyformat", "named"):
        return text, ask.values
    if style in ("numeric", DOLLAR):
        return text, [ask.values[name] for name in numbers]
    return text, [ask.values[name] for name in order]


def cells(row: Any) -> Optional[Sequence[Any]]:
    """The columns of a row, whatever its type is."""
    if row is None:
        return None
    if isinstance(row, Mapping):
        return list(row.values())
    return list(row) if hasattr(row, "__iter__") else list(vars(row).values())


def check(grant: Guarded, cursor: Any) -> None:
    """A connection is refused before anything is sent. Some have execute() too."""
    if len(grant.database._target.urls) > 1:
        raise Unsupported("one member's transaction proves nothing about a quorum: fence by token")
    methods = ["fetchrow"] if hasattr(cursor, "fetchrow") else ["execute", "fetchone"]
    if not all(callable(getattr(cursor, name, None)) for name in methods):
        kind = f"{type(cursor).__module__}.{type(cursor).__qualname__}"
        raise TypeError(f"guard() takes a cursor, and not a {kind}: guard(connection.cursor())")


async def ask_all(
    grant: Guarded, cursor: Any, paramstyle: Optional[str], settle: Callable[[Any], Any]
) -> None:
    check(grant, cursor)
    check_kind(grant, cursor)
    style = paramstyle_of(cursor, paramstyle)
    asking = plan(grant, cursor)
    answer: Any = None
    while True:
        try:
            ask = asking.send(answer)
        except StopIteration:
            return
        text, values = spell(ask, style)
        try:
            if style == DOLLAR:
                answer = cells(await settle(cursor.fetchrow(text, *values)))
                continue
            await settle(cursor.execute(text, values) if ask.values else cursor.execute(text))
            answer = cursor.rowcount if ask.counts else cells(await settle(cursor.fetchone()))
        except Exception as error:
            if not ask.refused or code_of(error) != ask.refused:
                judge_error(grant, error)
                raise
            answer = None
        # A statement is over when its rows are fetched, and a procedure's further results.
        if not ask.counts:
            await settle(cursor.fetchall())
        while ask.sql.startswith("CALL") and await settle(cursor.nextset()):
            pass


async def settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def at_once(value: Any) -> Any:
    """For cursors whose methods are no coroutines."""
    if not inspect.isawaitable(value):
        return value
    if inspect.iscoroutine(value):
        value.close()
    raise TypeError("the methods of this cursor are coroutines: take the lock with db.alock()")


def guard(grant: Guarded, cursor: Any, paramstyle: Optional[str]) -> None:
    try:
        # It awaits nothing, so it ends here.
        ask_all(grant, cursor, paramstyle, at_once).send(None)
    except StopIteration:
        pass


async def guard_async(grant: Guarded, cursor: Any, paramstyle: Optional[str]) -> None:
    """The same with a cursor whose methods are coroutines, or a connection of asyncpg."""
    await ask_all(grant, cursor, paramstyle, settled)
