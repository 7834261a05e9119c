"""Columns of text to columns of values, as PostgreSQL's input functions read them.

    text ──▶ quick       whole arrays, where it is certain that the types' own input gives the same
               │
               └ refused ──▶ one by one     through the type: odd spellings, and what is wrong

A quick path never decides that a text is wrong: it refuses unknown spellings, and the type decides.

Invariant (convert-exact): an array is converted to the values that its texts give one by one.

Walk: `reading.batches` calls `convert` per column; `reading.quick_numbers`, `quick_times` and `quick_texts`
are the quick paths.
"""

from collections.abc import Callable
from datetime import UTC, tzinfo
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tenure.base.errors import UserError
from tenure.expr.types.datatype import Type
from tenure.expr.types.enums import EnumOf
from tenure.expr.types.numbers import NumericType
from tenure.expr.types.time_types import InstantType
from tenure.pipeline.reading import quick_numbers, quick_texts, quick_times
from tenure.pipeline.reading.quick import Quick
from tenure.table.arrays import Bools, Column
from tenure.table.arrow import array, arrow_type, is_decimal, is_opaque

REASON_LENGTH_MAX = 1024
"""Characters of a message: it may quote the text, which may be long."""


class Fault(NamedTuple):
    """The reason why a text is no value of its type."""

    sqlstate: str
    reason: str


class ConvertedColumn(NamedTuple):
    array: Any
    """In the type of `table.arrow`; NULL too where a row is in `faults` or in `rest`."""
    faults: dict[int, Fault]
    rest: dict[int, Any]
    """Packed values by row that their Arrow type cannot represent: NaN of a numeric."""


def convert(kind: Type, texts: Column, zone: tzinfo = UTC) -> ConvertedColumn:
    """Texts, NULL where there is none, as values of a type; `zone` is the session's."""
    column, refused = _quick(kind, texts, zone)
    if not refused.any():
        return ConvertedColumn(column, {}, {})
    return _one_by_one(kind, texts, zone, column, refused)


def _quick(kind: Type, texts: Column, zone: tzinfo) -> Quick:
    way = _WAYS.get(kind.family)
    if isinstance(kind, EnumOf):
        return quick_texts.enums(kind, texts)
    if isinstance(kind, NumericType) and is_decimal(kind):
        return quick_numbers.decimals(kind, texts)
    if way is None or is_opaque(kind):
        return Quick(pa.nulls(len(texts), arrow_type(kind)), _is_valid(texts))
    if isinstance(kind, InstantType) and zone is not UTC:
        return quick_times.instants(kind, texts, has_zone=True)
    return way(kind, texts)


_WAYS: dict[str, Callable[[Any, Any], Quick]] = {
    "int2": quick_numbers.ints,
    "int4": quick_numbers.ints,
    "int8": quick_numbers.ints,
    "float4": quick_numbers.floats,
    "float8": quick_numbers.floats,
    "bool": quick_texts.bools,
    "text": quick_texts.texts,
    "varchar": quick_texts.varchars,
    "char": quick_texts.chars,
    "uuid": quick_texts.uuids,
    "date": quick_times.dates,
    "time": quick_times.times,
    "timestamp": quick_times.timestamps,
    "timestamptz": quick_times.instants,
}


def _is_valid(texts: Column) -> Bools:
    is_valid: Bools = texts.is_valid().to_numpy(zero_copy_only=False)
    return is_valid


def _one_by_one(kind: Type, texts: Column, zone: tzinfo, column: Column, refused: Bools) -> ConvertedColumn:
    rows = np.flatnonzero(refused)
    packed: list[Any] = []
    faults: dict[int, Fault] = {}
    rest: dict[int, Any] = {}
    for row, text in zip(rows.tolist(), texts.take(pa.array(rows)).to_pylist(), strict=True):
        each = None
        try:
            value = kind.accept(kind.parse_in(text, zone))
            each = kind.pack(value)
            if isinstance(kind, NumericType) and is_decimal(kind) and not value.is_finite():
                rest[row], each = each, None
        except UserError as error:
            faults[row] = Fault(error.sqlstate, str(error)[:REASON_LENGTH_MAX])
        packed.append(each)
    column = pc.replace_with_mask(column, pa.array(refused), array(kind, packed))
    return ConvertedColumn(column, faults, rest)
