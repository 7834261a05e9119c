"""Columns as Arrow arrays: how packed values become arrays, and which types are opaque.

    type                        in Arrow             plain: its order and equality are PostgreSQL's
    bool, int2/4/8, float4/8    itself               yes
    numeric(p <= 38, s)         decimal128(p, s)     yes
    text, varchar, char(n)      string               yes (char without its spaces)
    bytea, uuid, enums          binary               yes (enums by their physical bytes)
    date; timestamp, -tz        date32; timestamp    yes (in UTC)
    time                        int64, microseconds  yes
    all else                    binary               no: the packed value, which only passes through

NaN and infinite values of numeric cannot be represented in a decimal: converting one raises Unrepresentable,
and the caller reads the table by rows.

Simplification: a column is decoded from all its rows' maps one by one.

Walk: `table.columnar` fills chunks with these; readers and writers of files ask `arrow_type`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.types.datatype import Type
from tenure.expr.types.enums import EnumOf
from tenure.expr.types.numbers import NumericType
from tenure.expr.types.type_names import type_of
from tenure.table.arrays import Column
from tenure.table.packing import Packed, pack, unpack

DECIMAL_DIGITS_MAX = 38
_DAYS_TO_2000 = 10_957
_MICROS_TO_2000 = _DAYS_TO_2000 * 86_400_000_000
"""Packed days and times count from 2000-01-01, Arrow's from 1970-01-01."""

_SAME: dict[str, Any] = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "text": pa.string(),
    "varchar": pa.string(),
    "bytea": pa.binary(),
    "uuid": pa.binary(),
    "time": pa.int64(),
}
"""Families whose packed values Arrow takes unchanged."""


class Unrepresentable(Exception):
    """A value that its Arrow type cannot represent."""


def arrow_type(kind: Type) -> pa.DataType:
    if isinstance(kind, EnumOf) or is_opaque(kind):
        return pa.binary()
    if isinstance(kind, NumericType):
        return pa.decimal128(kind.precision, kind.scale)
    if kind.family == "char":
        return pa.string()
    if kind.family == "date":
        return pa.date32()
    if kind.family in ("timestamp", "timestamptz"):
        return pa.timestamp("us")
    return _SAME[kind.family]


def is_opaque(kind: Type) -> bool:
    """Whether its values are only passed through."""
    if isinstance(kind, EnumOf):
        return False
    if isinstance(kind, NumericType):
        return not is_decimal(kind)
    if kind.ref.is_array:
        return True
    if kind.family == "char":
        return not kind.ref.modifiers
    return kind.family not in _SAME and kind.family not in ("date", "timestamp", "timestamptz")


def is_decimal(kind: NumericType) -> bool:
    precision = kind.precision
    return precision is not None and precision <= DECIMAL_DIGITS_MAX and 0 <= kind.scale <= precision


def array(kind: Type, packed: Sequence[Packed]) -> Column:
    """Packed values, None where NULL, as one array."""
    try:
        return _array(kind, packed)
    except (pa.ArrowException, ValueError, OverflowError, UnicodeError) as error:
        raise Unrepresentable(f"a value of type {kind.sql_name}: {error}") from error


def _array(kind: Type, packed: Sequence[Packed]) -> Column:
    to = arrow_type(kind)
    if pa.types.is_decimal(to):
        return _decimals(kind, packed, to)
    if pa.types.is_date(to):
        return _shifted(packed, pa.int32(), _DAYS_TO_2000).view(to)
    if pa.types.is_timestamp(to):
        return _shifted(packed, pa.int64(), _MICROS_TO_2000).view(to)
    if is_opaque(kind):
        packed = [None if each is None else pack(each) for each in packed]
    return pa.array(packed, to)


def _shifted(packed: Sequence[Packed], to: pa.DataType, by: int) -> Column:
    import pyarrow.compute as pc

    return pc.add(pa.array(packed, to), pa.scalar(by, to))


def _decimals(kind: Type, packed: Sequence[Packed], to: pa.DataType) -> Column:
    """Packed as (scale, digits), as digits where the scale is 0, or as text where there are many."""
    is_plain = set(map(type, packed)) <= {list if to.scale else int, type(None)}
    if not is_plain or (to.scale and {each[0] for each in packed if each is not None} - {to.scale}):
        values = [None if each is None else kind.unpack(each) for each in packed]
        if any(each is not None and not each.is_finite() for each in values):
            raise ValueError("not a finite number")
        return pa.array(values, to)
    digits = [None if each is None else each[1] for each in packed] if to.scale else packed
    return decimals_of(pa.array(digits, pa.int64()), to)


def decimals_of(whole: Column, to: pa.DataType) -> Column:
    """Numbers of a decimal type from their unscaled digits."""
    low = np.asarray(whole.fill_null(0))
    words = np.empty((len(low), 2), dtype=np.int64)
    words[:, 0] = low
    words[:, 1] = low >> 63
    validity = whole.buffers()[0] if whole.null_count else None
    return pa.Array.from_buffers(to, len(low), [validity, pa.py_buffer(words)], null_count=whole.null_count)


# ── back ───────────────────────────────────────────────────────────────────────────────────────


def packed(ref: TypeRef, array: Column) -> list[Packed]:
    """The packed values that `array` was made of, None where NULL."""
    if ref.enum and not ref.is_array:
        members: list[Any] = array.to_pylist()
        return members
    kind = type_of(TypeRef("text", is_array=True) if ref.enum else ref)
    to = array.type
    if pa.types.is_decimal(to):
        return [kind.pack(each) for each in array.to_pylist()]
    if pa.types.is_date(to):
        return _shifted_back(array.cast(pa.int32()), _DAYS_TO_2000)
    if pa.types.is_timestamp(to):
        return _shifted_back(array.cast(pa.int64()), _MICROS_TO_2000)
    values: list[Any] = array.to_pylist()
    return [None if each is None else unpack(each) for each in values] if is_opaque(kind) else values


def _shifted_back(array: Column, by: int) -> list[Packed]:
    return [None if each is None else each - by for each in array.to_pylist()]
