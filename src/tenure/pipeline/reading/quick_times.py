"""Days and times from text, whole arrays at a time: ISO 8601 as PostgreSQL itself writes it.

    2024-02-29   12:34:56[.789]   2024-02-29[ |T]12:34[:56[.789]]   and of instants Z, +02, -05:30

Other spellings, 24:00:00, leap seconds and the years beyond 1 to 9999 are refused.

Walk: `reading.convert`.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tenure.expr.types.datatype import Type
from tenure.expr.types.time_types import InstantType, TimestampType, TimeType
from tenure.pipeline.reading.quick import Quick, cast, mask, without
from tenure.table.arrays import Bools, Column, Int64s

_DAY_MICROS = 86_400_000_000
_DAYS_TO_2000 = 10_957
_FIRST_DAY, _DAYS_END = -719_162, 2_932_897
"""The years 1 to 9999, counted from 1970-01-01."""

_LENGTHS = (10, 16, 19, 21, 22, 23, 24, 25, 26)
"""Of timestamps with a day, minutes, seconds, and up to six digits of a second's fraction."""
_CLOCK_LENGTHS = (8, 10, 11, 12, 13, 14, 15)
_ZONED = (
    r"^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?"
    r"(Z|[+-](0\d|1[0-5])(:[0-5]\d)?)$"
)


def dates(kind: Type, texts: Column) -> Quick:
    column, refused = cast(texts, pa.date32())
    column, beyond = dates_within(column)
    return Quick(column, refused | beyond)


def dates_within(column: Column) -> Quick:
    days = pc.fill_null(column.view(pa.int32()), 0).to_numpy()
    beyond = (days < _FIRST_DAY) | (days >= _DAYS_END)
    return Quick(without(column, beyond), beyond)


def times(kind: TimeType, texts: Column) -> Quick:
    odd = ~_has_length(texts, _CLOCK_LENGTHS)
    dated = pc.binary_join_element_wise("1970-01-01 ", without(texts, odd), "")
    column, refused = cast(dated, pa.timestamp("us"))
    return clock_within(kind, _micros(column), texts, refused | odd)


def clock_within(kind: TimeType, micros: Int64s, source: Column, refused: Bools) -> Quick:
    return _within(_rounded(micros, kind.precision), 0, _DAY_MICROS, source, refused, pa.int64())


def timestamps(kind: TimestampType | InstantType, texts: Column) -> Quick:
    odd = ~_has_length(texts, _LENGTHS)
    column, refused = cast(without(texts, odd), pa.timestamp("us"))
    return timestamps_within(kind, _micros(column), texts, refused | odd)


def instants(kind: InstantType, texts: Column, *, has_zone: bool = False) -> Quick:
    """In UTC, unless each text must name its zone."""
    is_zoned = mask(pc.match_substring_regex(texts, _ZONED))
    zoned, refused = cast(without(texts, ~is_zoned), pa.timestamp("us", "UTC"))
    column = zoned.cast(pa.timestamp("us"))
    others = mask(texts.is_valid()) & ~is_zoned
    if others.any() and not has_zone:
        plain, others = timestamps(kind, without(texts, is_zoned))
        column = pc.coalesce(column, plain)
    return timestamps_within(kind, _micros(column), texts, refused | others)


def timestamps_within(
    kind: TimestampType | InstantType, micros: Int64s, source: Column, refused: Bools
) -> Quick:
    """From microseconds since 1970; NULL where `given` is."""
    epoch = _DAYS_TO_2000 * _DAY_MICROS
    if kind.precision is not None:
        micros = _rounded(micros - epoch, kind.precision) + epoch
    first, end = _FIRST_DAY * _DAY_MICROS, _DAYS_END * _DAY_MICROS
    return _within(micros, first, end, source, refused, pa.timestamp("us"))


def _micros(column: Column) -> Int64s:
    micros: Int64s = pc.fill_null(column.view(pa.int64()), 0).to_numpy()
    return micros


def _has_length(texts: Column, lengths: tuple[int, ...]) -> Bools:
    sizes = pc.fill_null(pc.binary_length(texts), lengths[0]).to_numpy()
    return np.isin(sizes, lengths)


def _rounded(micros: Int64s, precision: int | None) -> Int64s:
    """Half away from where they are counted from."""
    if precision is None or precision >= 6:
        return micros
    unit = 10 ** (6 - precision)
    whole = (np.abs(micros) + unit // 2) // unit * unit
    rounded: Int64s = np.where(micros < 0, -whole, whole)
    return rounded


def _within(micros: Int64s, first: int, end: int, source: Column, refused: Bools, to: pa.DataType) -> Quick:
    refused = refused | (micros < first) | (micros >= end)
    if source.null_count:
        refused &= mask(source.is_valid())
        gone = refused | mask(source.is_null())
    else:
        gone = refused
    return Quick(pa.array(micros, pa.int64(), mask=gone if gone.any() else None).view(to), refused)
