# SPDX-License-Identifier: MIT
"""Values of columns: Python's types, and rowlock_value."""
from __future__ import annotations

import array
import datetime
import decimal
import re
import uuid
from typing import Any, Dict, List, Sequence, Tuple

from ._rowlock import ffi, lib
from .errors import Invalid
from .handle import exact_bytes

NULL, INT, REAL, DECIMAL, TEXT, BYTES, BOOL, TIME = range(8)
SECOND = datetime.timedelta(seconds=1)

# A value as a kind, a number, a floating point number, and bytes.
Parts = Tuple[int, int, float, bytes]


def parts_of(value: Any) -> Parts:
    if value is None:
        return NULL, 0, 0.0, b""
    if isinstance(value, bool):
        return BOOL, int(value), 0.0, b""
    if isinstance(value, int):
        fits = -(2**63) <= value < 2**63
        return (INT, value, 0.0, b"") if fits else (DECIMAL, 0, 0.0, str(int(value)).encode())
    if isinstance(value, float):
        return REAL, 0, value, b""
    if isinstance(value, decimal.Decimal):
        return DECIMAL, 0, 0.0, digits(value)
    if isinstance(value, str):
        return TEXT, 0, 0.0, str.encode(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return BYTES, 0, 0.0, exact_bytes(value)
    if isinstance(value, uuid.UUID):
        return TEXT, 0, 0.0, str.encode(str(value))
    return TIME, 0, 0.0, str.encode(time_text(value))


def digits(value: decimal.Decimal) -> bytes:
    """The library knows which columns can hold NaN and Infinity."""
    return str.encode(format(value, "f"))


def time_text(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        sign = "-" if value < datetime.timedelta(0) else ""
        whole, rest = divmod(abs(value), SECOND)
        fraction = f".{rest.microseconds:06d}" if rest else ""
        return f"{sign}{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}{fraction}"
    raise TypeError(
        f"is of type {type(value).__qualname__}, which no column takes: give a str, int, float, "
        "bool, Decimal, bytes, UUID, date, time, datetime, timedelta or None"
    )


def wrong_value(values: Sequence[Any], name: str) -> Invalid:
    """The error for the first of these values that no column takes."""
    for row, value in enumerate(values):
        try:
            parts_of(value)
        except UnicodeEncodeError:
            text = f"has a surrogate, which is no character: {value!r}"
            return Invalid(f"rows[{row}]: the value for {name} {text}", row=row)
        except TypeError as error:
            return Invalid(f"rows[{row}]: the value for {name} {error}", row=row)
    raise AssertionError("all are values")


class Column:
    """The values of one column for all rows, as the C code wants them."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.count = len(values)
        self.kinds = b""
        self.numbers: Any = None
        self.reals: Any = None
        self.text = b""
        self.lengths: Any = None
        types = set(map(type, values))
        if not (len(types) == 1 and self.take_alike(types.pop(), values)):
            self.take_any(values)

    def take_alike(self, kind: type, values: Sequence[Any]) -> bool:
        """Values of one type, which is much faster. False: not so."""
        if kind is int:
            try:
                self.numbers = array.array("q", values)
            except OverflowError:
                return False
            self.kinds = bytes([INT]) * self.count
        elif kind is float:
            self.reals = array.array("d", values)
            self.kinds = bytes([REAL]) * self.count
        elif kind is str or kind is bytes:
            texts = list(map(str.encode, values)) if kind is str else values
            self.take_texts(TEXT if kind is str else BYTES, texts)
        elif kind is decimal.Decimal:
            texts = ",".join(map(str, values))
            # Some are 1E+2 or NaN.
            plain = "E" not in texts and "N" not in texts and "I" not in texts
            exact = texts.encode().split(b",") if plain else list(map(digits, values))
            self.take_texts(DECIMAL, exact)
        else:
            return False
        return True

    def take_texts(self, kind: int, texts: Sequence[bytes]) -> None:
        self.kinds = bytes([kind]) * self.count
        self.text = b"".join(texts)
        self.lengths = array.array("q", map(len, texts))

    def take_any(self, values: Sequence[Any]) -> None:
        kinds, numbers, reals, texts = zip(*map(parts_of, values))
        self.kinds = bytes(kinds)
        self.numbers = array.array("q", numbers)
        self.reals = array.array("d", reals)
        self.text = b"".join(texts)
        self.lengths = array.array("q", map(len, texts))


class Values:
    """Rows of values, as an array of rowlock_value. The array is valid as long as this object."""

    def __init__(
        self, columns: Sequence[Sequence[Any]], count: int, names: Sequence[str]
    ) -> None:
        self.width = len(columns)
        self.kept: List[Any] = []
        self.array: Any = ffi.NULL
        if count * self.width == 0:
            return
        self.array = ffi.new("rowlock_value[]", count * self.width)
        for place, values in enumerate(columns):
            try:
                column = Column(values)
            except (TypeError, UnicodeEncodeError):
                raise wrong_value(values, names[place]) from None
            self.kept.append(column)
            lib.rowlock_py_column(
                self.array + place,
                self.width,
                count,
                column.kinds,
                numbers_at(column.numbers, "int64_t[]"),
                numbers_at(column.reals, "double[]"),
                ffi.from_buffer("char[]", column.text),
                numbers_at(column.lengths, "int64_t[]"),
            )


def numbers_at(numbers: Any, kind: str) -> Any:
    return ffi.NULL if numbers is None else ffi.from_buffer(kind, numbers)


# ---------------------------------------------------------------- reading

MOMENT = re.compile(
    r"(?:(\d{4})-(\d\d)-(\d\d))?[ T]?(?:(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?"
    r"(?:([+-])(\d\d):?(\d\d)?(?::?(\d\d))?)?"
)
SPAN = re.compile(r"(-?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?")


def parse_time(text: str) -> Any:
    """A date, time, datetime or timedelta; or the text, if it is none of Python's."""
    match = MOMENT.fullmatch(text)
    try:
        if match and (match[1] or match[4]):
            return moment(match)
    except ValueError:
        pass
    span = SPAN.fullmatch(text)
    if span is None:
        return text
    length = datetime.timedelta(
        hours=int(span[2]), minutes=int(span[3]), seconds=int(span[4]), microseconds=micro(span[5])
    )
    return -length if span[1] else length


def micro(fraction: Any) -> int:
    return int((fraction or "").ljust(6, "0"))


def moment(match: "re.Match[str]") -> Any:
    zone = None
    if match[8]:
        offset = datetime.timedelta(
            hours=int(match[9]), minutes=int(match[10] or 0), seconds=int(match[11] or 0)
        )
        zone = datetime.timezone(-offset if match[8] == "-" else offset)
    date = datetime.date(int(match[1]), int(match[2]), int(match[3])) if match[1] else None
    if not match[4]:
        if zone is not None:
            raise ValueError
        return date
    time = datetime.time(int(match[4]), int(match[5]), int(match[6]), micro(match[7]), zone)
    return time if date is None else datetime.datetime.combine(date, time)


def bytes_of(value: Any) -> bytes:
    return bytes(ffi.buffer(value.text, value.length)) if value.length else b""


READERS: Dict[int, Any] = {
    NULL: lambda value: None,
    INT: lambda value: value.number,
    REAL: lambda value: value.real,
    DECIMAL: lambda value: decimal.Decimal(bytes_of(value).decode()),
    TEXT: lambda value: bytes_of(value).decode("utf-8"),
    BYTES: bytes_of,
    BOOL: lambda value: bool(value.number),
    TIME: lambda value: parse_time(bytes_of(value).decode()),
}


def read_value(value: Any) -> Any:
    return READERS[value.kind](value)


def write_value(value: Any, place: Any, kept: List[Any]) -> None:
    """Puts a value at place. kept gets what it points to."""
    kind, number, real, text = parts_of(value)
    place.kind, place.number, place.real = kind, number, real
    if kind in (NULL, INT, REAL, BOOL):
        place.text, place.length = ffi.NULL, 0
        return
    made = ffi.new("char[]", text)
    kept.append(made)
    place.text, place.length = made, len(text)
