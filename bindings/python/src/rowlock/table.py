# SPDX-License-Identifier: MIT
"""Rows under versions: rowlock/versions.h."""
from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Union,
    overload,
)

from ._rowlock import ffi, lib
from .callbacks import Call, callback
from .errors import Error, Invalid, Result, error_of
from .handle import Handle, Options, Single, flag, to_bytes, whole
from .values import Values, read_value

if TYPE_CHECKING:
    from .database import Database

# A row: names and values, or the values alone, in the order key, columns, version.
Row = Union[Mapping[str, Any], Sequence[Any]]
# An argument of this type is one row, and any other is many.
OneRow = Union[Mapping[str, Any], Tuple[Any, ...]]

RESULTS: Dict[int, Result] = {int(one): one for one in Result}
# A call returns these if a row was not changed. Each row tells its own.
OF_ROWS = (Result.STALE, Result.GONE, Result.EXISTS, Result.VIOLATION, Result.UNDONE)


class Outcome(NamedTuple):
    """What became of one row, and its version now (0: no row, or unknown)."""

    result: Result
    version: int


class Outcomes(List[Outcome]):
    """An Outcome for each row, in the order of the rows.

    error  the exception for the first row that was not changed, or None
    """

    error: Optional[Error] = None

    def check(self) -> "Outcomes":
        """Raises the error of the first row that was not changed."""
        if self.error is not None:
            raise self.error
        return self


def names_of(what: str, names: Sequence[str]) -> Tuple[str, ...]:
    """A str is a sequence too, of letters."""
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise Invalid(f'{what} is a list of names, as ["price", "note"], and not {names!r}')
    made = tuple(names)
    for name in made:
        to_bytes(name, what)
    return made


class Table(Single):
    """One of your tables: Database.table(). It holds nothing, and need not be closed."""

    def __init__(
        self,
        database: Database,
        name: str,
        key: Union[str, Sequence[str]],
        columns: Sequence[str],
        version: str,
        schema: Optional[str],
        set: Optional[str],
        parameters: Sequence[str],
        first_version: int,
    ) -> None:
        self.database = database
        to_bytes(name, "name")
        self.name = name
        self.key = names_of("key", (key,) if isinstance(key, str) else key)
        self.columns = names_of("columns", columns)
        self.version = version
        self.schema = schema
        self.set = set
        self.first_version = first_version
        # What an update gives: the columns, or the parameters of set.
        self.given: Tuple[str, ...] = self.columns
        if set is not None:
            self.given = names_of("parameters", parameters)
        self._names = frozenset((*self.key, *self.columns, *self.given, version))
        # A handle opens each definition once, also for programs that make an object for each call.
        self._definition = (
            name, self.key, self.columns, version, schema, set, first_version,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"<rowlock.Table {self.name!r}>"

    def _open(self, handle: Handle) -> Any:
        """The rowlock_table of this handle."""
        db = handle.use()
        # A signal handler may raise when it is open: the handle has the place before.
        out = handle.tables.get(self._definition)
        if out is None:
            out = handle.tables[self._definition] = ffi.new("rowlock_table **")
        if not out[0]:
            options = Options(
                "table_options",
                schema=self.schema,
                version=self.version,
                set=self.set,
                first_version=self.first_version,
            )
            name, key = options.text(self.name, "name"), options.texts(self.key, "key")
            if self.columns:
                options.struct.columns = options.texts(self.columns, "columns")
            handle.check(lib.rowlock_table_open(db, name, key, options.struct, out))
        return out[0]

    def reopen(self) -> None:
        """Looks the table up again, after it was altered."""

        def work(handle: Handle) -> None:
            if self._definition in handle.tables:
                lib.rowlock_py_close_table(handle.tables[self._definition])

        with self.database._mutex:
            idle = list(self.database._idle)
        for handle in idle:
            with handle.mutex:
                work(handle)
        self.database._call(work)

    # ---- reading

    def _row(self, row: Any) -> Dict[str, Any]:
        made = {name: read_value(row.key[i]) for i, name in enumerate(self.key)}
        made.update((name, read_value(row.values[i])) for i, name in enumerate(self.columns))
        made[self.version] = row.version
        return made

    def _check_names(self, row: Mapping[str, Any]) -> None:
        """A name that is mistyped must not be left out in silence."""
        if not self._names.issuperset(row):
            wrong = next(name for name in row if name not in self._names)
            names = ", ".join(dict.fromkeys((*self.key, *self.columns, *self.given, self.version)))
            raise Invalid(
                f"a row has {wrong!r}, and the definition of the table does not: {names}",
                action=f"change table '{self.name}'",
            )

    def _parts(self, key: Any) -> Sequence[Any]:
        parts = key if isinstance(key, (tuple, list)) else (key,)
        if isinstance(key, Mapping):
            parts = [key[name] for name in self.key if name in key]
        # The length that a subclass tells may be another.
        parts = tuple(parts)
        if len(parts) != len(self.key):
            raise Invalid(
                f"a key has the columns {', '.join(self.key)}, and not {key!r}",
                action=f"read table '{self.name}'",
            )
        return parts

    def read(self, key: Any, *, lock: bool = False) -> Dict[str, Any]:
        """The row with this key: its key, columns and version, by name. Raises Gone.

        lock  keeps the row locked until the transaction ends. For attempts of Database.retry().
        """
        values = Values([[part] for part in self._parts(key)], 1, self.key)
        locked = flag("lock", lock)

        def work(handle: Handle) -> Dict[str, Any]:
            row = ffi.new("rowlock_row *", lib.rowlock_row_init())
            handle.check(lib.rowlock_read(self._open(handle), values.array, locked, row))
            return self._row(row)

        return self.database._call(work)

    def read_many(
        self, keys: Iterable[Any], *, lock: bool = False
    ) -> List[Optional[Dict[str, Any]]]:
        """A row for each key, in the order of the keys. None: there is no such row."""
        parts = [self._parts(key) for key in keys]
        if not parts:
            return []
        values = Values(list(zip(*parts)), len(parts), self.key)
        reading = Reading(self, len(parts))
        locked = flag("lock", lock)

        def work(handle: Handle) -> List[Optional[Dict[str, Any]]]:
            result = reading.call.run(
                lib.rowlock_read_many,
                self._open(handle),
                values.array,
                len(parts),
                locked,
                lib.rowlock_py_each_row,
                reading.call.context,
            )
            if result != Result.GONE:
                handle.check(result)
            return reading.rows

        return self.database._call(work)

    # ---- changes

    @overload
    def update(  # type: ignore
        self, rows: OneRow, *, all_or_nothing: bool = False, chunk: int = 0
    ) -> int: ...

    @overload
    def update(
        self, rows: Iterable[Row], *, all_or_nothing: bool = False, chunk: int = 0
    ) -> Outcomes: ...

    def update(self, rows: Any, *, all_or_nothing: bool = False, chunk: int = 0) -> Any:
        """Writes rows that have the version you give, and moves the version on.

        One row (a dict or a tuple): returns its new version. Raises Stale, Gone, Violation, …
        Many (a list or an iterable of rows): returns Outcomes, an Outcome for each row. Raises what
        is about the call as a whole. Outcomes.check() raises what is about a row.

        A dict has the names of the columns, as read() returns it; Invalid for any other name. A
        tuple has the key, the columns and the version, in this order.
        """
        names = (*self.key, *self.given)
        return self._change(lib.ROWLOCK_UPDATE, rows, names, True, all_or_nothing, chunk)

    @overload
    def insert(  # type: ignore
        self, rows: OneRow, *, all_or_nothing: bool = False, chunk: int = 0
    ) -> int: ...

    @overload
    def insert(
        self, rows: Iterable[Row], *, all_or_nothing: bool = False, chunk: int = 0
    ) -> Outcomes: ...

    def insert(self, rows: Any, *, all_or_nothing: bool = False, chunk: int = 0) -> Any:
        """Makes new rows: key and columns. Otherwise as update(); Exists if a row is there."""
        names = (*self.key, *self.columns)
        return self._change(lib.ROWLOCK_INSERT, rows, names, False, all_or_nothing, chunk)

    @overload
    def touch(  # type: ignore
        self, rows: OneRow, *, all_or_nothing: bool = False, chunk: int = 0
    ) -> int: ...

    @overload
    def touch(
        self, rows: Iterable[Row], *, all_or_nothing: bool = False, chunk: int = 0
    ) -> Outcomes: ...

    def touch(self, rows: Any, *, all_or_nothing: bool = False, chunk: int = 0) -> Any:
        """Sets nothing but the version. A tuple has the key and the version."""
        return self._change(lib.ROWLOCK_TOUCH, rows, self.key, True, all_or_nothing, chunk)

    @overload
    def expect(  # type: ignore
        self, rows: OneRow, *, all_or_nothing: bool = False, chunk: int = 0
    ) -> int: ...

    @overload
    def expect(
        self, rows: Iterable[Row], *, all_or_nothing: bool = False, chunk: int = 0
    ) -> Outcomes: ...

    def expect(self, rows: Any, *, all_or_nothing: bool = False, chunk: int = 0) -> Any:
        """Changes nothing: the rows have these versions, until the transaction ends."""
        return self._change(lib.ROWLOCK_EXPECT, rows, self.key, True, all_or_nothing, chunk)

    @overload
    def remove(  # type: ignore
        self, rows: OneRow, *, all_or_nothing: bool = False, chunk: int = 0
    ) -> int: ...

    @overload
    def remove(
        self, rows: Iterable[Row], *, all_or_nothing: bool = False, chunk: int = 0
    ) -> Outcomes: ...

    def remove(self, rows: Any, *, all_or_nothing: bool = False, chunk: int = 0) -> Any:
        """Deletes rows that have the version you give."""
        return self._change(lib.ROWLOCK_REMOVE, rows, self.key, True, all_or_nothing, chunk)

    def _change(
        self, op: int, rows: Any, names: Sequence[str], versioned: bool, all: bool, chunk: int
    ) -> Any:
        one = isinstance(rows, (Mapping, tuple))
        many: List[Row] = [rows] if one else list(rows)
        for row in many:
            if isinstance(row, Mapping):
                self._check_names(row)
        columns = by_column(many, (*names, self.version) if versioned else names)
        changes = Changes(columns, names, len(self.key), versioned, len(many))
        options = Options("change_options", all_or_nothing=flag("all_or_nothing", all), chunk=chunk)

        def work(handle: Handle) -> Outcomes:
            table, size = self._open(handle), ffi.sizeof("rowlock_change")
            result = lib.rowlock_apply(table, op, changes.array, len(many), size, options.struct)
            outcomes = changes.outcomes()
            if result != 0:
                outcomes.error = error_of(result, handle.use())
                outcomes.error.outcomes = outcomes
                if result not in OF_ROWS:
                    raise outcomes.error
            return outcomes

        if not many:
            return Outcomes()
        outcomes = self.database._call(work)
        return outcomes.check()[0].version if one else outcomes


class Reading:
    """Collects the rows of rowlock_read_many()."""

    def __init__(self, table: Table, count: int) -> None:
        self.table = table
        self.rows: List[Optional[Dict[str, Any]]] = [None] * count
        self.call = Call(self)


@callback(stop=1)  # type: ignore[misc]
def rowlock_py_each_row(context: Any, index: int, row: Any) -> int:
    reading: Reading = ffi.from_handle(context)
    reading.rows[index] = reading.table._row(row) if row else None
    return 0


def by_column(rows: Sequence[Row], names: Sequence[str]) -> List[Sequence[Any]]:
    """The values of each name. Rows may be of either shape."""
    try:
        if all(isinstance(row, dict) for row in rows):
            return [[row[name] for row in rows] for name in names]  # type: ignore[call-overload]
        tuples = [
            tuple(row[name] for name in names) if isinstance(row, Mapping) else exact_row(row)
            for row in rows
        ]
        if all(len(row) == len(names) for row in tuples):
            return list(zip(*tuples))
    except (KeyError, TypeError):
        pass
    for index, row in enumerate(rows):
        check_row(index, row, names)
    raise Invalid("rows are dicts or tuples")


def exact_row(row: Any) -> Sequence[Any]:
    """A copy whose length is true. The methods of a subclass may tell anything."""
    if isinstance(row, (str, bytes)) or not hasattr(row, "__len__"):
        raise TypeError
    return tuple(row)


def check_row(index: int, row: Any, names: Sequence[str]) -> None:
    wanted = ", ".join(names)
    if isinstance(row, Mapping):
        missing = [name for name in names if name not in row]
        wrong = f"has no {missing[0]!r}" if missing else ""
    elif isinstance(row, (str, bytes)) or not hasattr(row, "__len__"):
        wrong = f"is of type {type(row).__qualname__}, and not a dict or a tuple"
    else:
        wrong = f"has {len(row)} values and not {len(names)}" if len(row) != len(names) else ""
    if wrong:
        raise Invalid(f"rows[{index}] {wrong}; give {wanted}", row=index)


def versions_of(versions: Sequence[Any]) -> Any:
    """The array of int64_t."""
    try:
        return ffi.new("int64_t[]", list(versions))
    except (TypeError, OverflowError):
        for row, version in enumerate(versions):
            try:
                whole("version", version)
            except Invalid as error:
                error.row = row
                error.say(f"rows[{row}]: {error.text}; give the version as it was read")
                raise error from None
        raise


class Changes:
    """The array of rowlock_change for some rows."""

    def __init__(
        self,
        columns: List[Sequence[Any]],
        names: Sequence[str],
        width: int,
        versioned: bool,
        count: int,
    ) -> None:
        self.count = count
        versions = versions_of(columns[-1]) if versioned and count else ffi.NULL
        given = columns[width:-1] if versioned else columns[width:]
        self.keys = Values(columns[:width], count, names)
        self.values = Values(given, count, names[width:])
        self.array = ffi.new("rowlock_change[]", count)
        lib.rowlock_py_changes(
            self.array,
            count,
            self.keys.array,
            self.keys.width,
            self.values.array,
            self.values.width,
            versions,
        )

    def outcomes(self) -> Outcomes:
        results = ffi.new("int32_t[]", self.count)
        currents = ffi.new("int64_t[]", self.count)
        lib.rowlock_py_outcomes(self.array, self.count, results, currents)
        kinds = map(RESULTS.__getitem__, ffi.unpack(results, self.count))
        return Outcomes(map(Outcome, kinds, ffi.unpack(currents, self.count)))
