"""Values in DuckDB: the type there, whether DuckDB may compare them, and how they are decoded.

    numeric(10,2)   DECIMAL(10,2)   plain
    timestamptz     TIMESTAMP       plain: UTC, its zone put back on the way out
    uuid            BLOB            plain: its bytes sort as it does
    jsonb           BLOB            opaque: packed, passes through untouched

A plain value's equality and order are PostgreSQL's. Of an opaque one only NULL can be asked. Shapes are
those of `table.arrow`; this module says the same without needing Arrow, so that plans can be rendered
before the first analytical query has brought the libraries in.

A decimal's shape is more exact than its type: the sum of two numeric(10,2) is "numeric" to PostgreSQL,
but its values have two digits after the point, and so has DECIMAL(11,2).

Invariant (duck-exact): a value that went into DuckDB and comes back is the same to the last digit.

Walk: `duck.expressions` and `duck.rendering` give each column a shape; `duck.engine` decodes by it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from tenure.expr.functions.arithmetic import numeric_divide
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.enums import EnumOf
from tenure.expr.types.numbers import NumericType, rounded
from tenure.table.packing import pack, unpack

DIGITS_MAX = 38
"""Of a DECIMAL."""

Decode: TypeAlias = Callable[[Any], Datum]


class NotShared(Exception):
    """A part of the plan has, or may have, another meaning in DuckDB."""


@dataclass(frozen=True, slots=True)
class DuckType:
    sql: str
    is_plain: bool = True
    precision: int = 0
    scale: int = 0
    """Of a DECIMAL."""
    decode: Decode | None = None
    """From what Arrow gives for a value that is not NULL; None: it is the value."""


class Value(NamedTuple):
    """An expression in DuckDB's SQL."""

    sql: str
    type: Type
    shape: DuckType
    digits: str = ""
    """For a numeric whose values have different scales: SQL for the scale of each value."""


_SAME = {
    "bool": DuckType("BOOLEAN"),
    "int2": DuckType("SMALLINT"),
    "int4": DuckType("INTEGER"),
    "int8": DuckType("BIGINT"),
    "float4": DuckType("FLOAT"),
    "float8": DuckType("DOUBLE"),
    "text": DuckType("VARCHAR"),
    "varchar": DuckType("VARCHAR"),
    "bytea": DuckType("BLOB"),
    "date": DuckType("DATE"),
    "timestamp": DuckType("TIMESTAMP"),
    "timestamptz": DuckType("TIMESTAMP", decode=lambda value: value.replace(tzinfo=UTC)),
    "uuid": DuckType("BLOB", decode=lambda value: UUID(bytes=value)),
}


@lru_cache(maxsize=4096)
def shape_of(kind: Type) -> DuckType:
    """The shape of a table's column of this type."""
    if isinstance(kind, EnumOf):
        return DuckType("BLOB", decode=kind.unpack)
    if kind.ref.is_array:
        return _opaque(kind)
    if isinstance(kind, NumericType):
        precision = kind.precision
        is_decimal = precision is not None and precision <= DIGITS_MAX and 0 <= kind.scale <= precision
        return decimal(precision or 0, kind.scale) if is_decimal else _opaque(kind)
    if kind.family == "time":
        return DuckType("BIGINT", decode=kind.unpack)
    if kind.family == "char":
        return DuckType("VARCHAR", decode=kind.unpack) if kind.ref.modifiers else _opaque(kind)
    return _SAME.get(kind.family) or _opaque(kind)


def _opaque(kind: Type) -> DuckType:
    return DuckType("BLOB", is_plain=False, decode=lambda value: kind.unpack(unpack(value)))


def decimal(precision: int, scale: int) -> DuckType:
    """Raises NotShared if DuckDB has no decimal that wide."""
    if not 0 <= scale <= precision <= DIGITS_MAX:
        raise NotShared(f"a decimal of {precision} digits, {scale} after the point")
    return DuckType(f"DECIMAL({max(precision, 1)},{scale})", precision=max(precision, 1), scale=scale)


MEAN = DuckType("VARCHAR", is_plain=False, decode=lambda value: _mean(value))
"""An average of exact numbers on its way: sum and count, divided as PostgreSQL divides when it is out."""


def _mean(value: str) -> Decimal:
    total, count, *digits = value.split("/")
    return numeric_divide(_with_digits(total, *digits), Decimal(count))


MIXED_SUM = DuckType("VARCHAR", is_plain=False, decode=lambda value: _with_digits(*value.split("/")))
"""A sum of numbers with different digits after the point, and the most that one of them had."""


def _with_digits(number: str, digits: str | None = None) -> Decimal:
    return Decimal(number) if digits is None else rounded(Decimal(number), int(digits))


def literal(kind: Type, value: Datum) -> Value:
    """A value as SQL; text is quoted, all else is made of digits."""
    if value is None:
        shape = DuckType("DECIMAL(1,0)", precision=1) if kind.family == "numeric" else shape_of(kind)
        return Value(f"CAST(NULL AS {shape.sql})", kind, shape)
    if isinstance(kind, NumericType):
        return _number(kind, value)
    shape = shape_of(kind)
    return Value(f"CAST({_written(kind, shape, value)} AS {shape.sql})", kind, shape)


def _number(kind: NumericType, value: Decimal) -> Value:
    if not value.is_finite():
        raise NotShared("a number that is not finite")
    _, digits, exponent = value.as_tuple()
    scale = -int(exponent)
    shape = decimal(max(len(digits), scale), scale)
    return Value(f"CAST('{value:f}' AS {shape.sql})", kind, shape)


def _written(kind: Type, shape: DuckType, value: Datum) -> str:
    match shape.sql:
        case "BOOLEAN":
            return "TRUE" if value else "FALSE"
        case "FLOAT" | "DOUBLE":
            return f"'{value!r}'"
        case "VARCHAR":
            return quoted(kind.pack(value))
        case "DATE":
            return f"'{_date(value)}'"
        case "TIMESTAMP":
            return f"'{_timestamp(value)}'"
        case "BLOB":
            packed = kind.pack(value)
            data = packed if shape.is_plain else pack(packed)
            return f"from_hex('{data.hex()}')"
        case _:
            return str(int(kind.pack(value)))


def _date(value: date) -> str:
    return f"{value.year:04d}-{value.month:02d}-{value.day:02d}"


def _timestamp(value: datetime) -> str:
    clock = f"{value.hour:02d}:{value.minute:02d}:{value.second:02d}.{value.microsecond:06d}"
    return f"{_date(value)} {clock}"


def quoted(text: str) -> str:
    """DuckDB's string literal: only the quote is special."""
    if "\0" in text or not _is_utf8(text):
        raise NotShared("text that DuckDB cannot read")
    return "'" + text.replace("'", "''") + "'"


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
