"""Numbers from text, whole arrays at a time: digits with a sign before and at most one point.

Arrow parses whole numbers and floats as PostgreSQL does except for a few spellings, which are refused here:
0x10 (two's complement in Arrow), and floats that come out as zero, infinite or NaN, which may be out of range
or spelled otherwise. A decimal is read as a whole number without its point, then moved to its column's scale,
rounding half away from zero.

Walk: `reading.convert`.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tenure.expr.types.datatype import Type
from tenure.expr.types.numbers import NumericType
from tenure.pipeline.reading.quick import Quick, cast, has_byte, laid_out, mask, without
from tenure.table.arrays import Bools, Column, Int32s, Int64s
from tenure.table.arrow import arrow_type, decimals_of

_DIGITS_MAX = 18
"""Any number of so many digits fits into 64 bits."""

_POWERS = 10 ** np.arange(_DIGITS_MAX + 1, dtype=np.int64)
_POINT, _MINUS = ord("."), ord("-")


def ints(kind: Type, texts: Column) -> Quick:
    return _whole(texts, arrow_type(kind))


def _whole(texts: Column, to: pa.DataType) -> Quick:
    if not has_byte(texts, ord("x"), ord("X")):
        return cast(texts, to)
    refused = mask(pc.match_substring(texts, "x", ignore_case=True))
    column, others = cast(without(texts, refused), to)
    return Quick(column, refused | others)


def floats(kind: Type, texts: Column) -> Quick:
    column, refused = cast(texts, arrow_type(kind))
    values = pc.fill_null(column, 1).to_numpy()
    doubted = ~np.isfinite(values)
    is_zero = values == 0
    if is_zero.any():
        doubted |= is_zero & mask(pc.match_substring_regex(texts, "[^0.]"))
    return Quick(without(column, doubted), refused | doubted)


def decimals(kind: NumericType, texts: Column) -> Quick:
    to = arrow_type(kind)
    filled = pc.fill_null(texts, "0") if texts.null_count else texts
    bare, fraction, refused = _without_points(filled)
    column, others = _whole(without(bare, refused), pa.int64())
    refused |= others
    values, is_far = _rescaled(pc.fill_null(column, 0).to_numpy(), kind.scale - fraction)
    refused |= is_far
    if kind.precision is not None and kind.precision <= _DIGITS_MAX:
        refused |= np.abs(values) >= _POWERS[kind.precision]
    if texts.null_count:
        refused &= mask(texts.is_valid())
    gone = refused | mask(texts.is_null()) if texts.null_count else refused
    return Quick(decimals_of(pa.array(values, pa.int64(), mask=gone), to), refused)


def _without_points(texts: Column) -> tuple[Column, Int64s, Bools]:
    """The texts without their points, the number of digits after each point, and which are refused."""
    data, places = laid_out(texts)
    points = np.flatnonzero(data == _POINT)
    rows = _rows_of(points, places)
    counts = np.bincount(rows, minlength=len(texts))
    fraction = np.zeros(len(texts), np.int64)
    fraction[rows] = places[rows + 1] - 1 - points
    refused = counts > 1
    if len(points):
        behind = data[np.minimum(points + 1, len(data) - 1)]
        refused[rows[behind == _MINUS]] = True  # ".-5" must not become "-5"
    moved = (places - np.concatenate([[0], np.cumsum(counts)])).astype(np.int32)
    refused |= np.diff(moved) > _DIGITS_MAX
    kept = pa.py_buffer(data[data != _POINT]) if len(points) else pa.py_buffer(data)
    bare = pa.Array.from_buffers(pa.string(), len(texts), [None, pa.py_buffer(moved), kept])
    return bare, fraction, refused


def _rows_of(points: Int64s, places: Int32s) -> Int64s:
    """The text that contains each point: mostly each has one."""
    if len(points) == len(places) - 1 and (points >= places[:-1]).all() and (points < places[1:]).all():
        return np.arange(len(points))
    return np.searchsorted(places[1:], points, side="right")


def _rescaled(values: Int64s, shifts: Int64s) -> tuple[Int64s, Bools]:
    """Multiplied by 10 to the power of a shift, rounded half away from zero; and where that overflows."""
    if (shifts == 0).all():
        return values, np.zeros(len(values), bool)
    size = np.abs(values)
    up = _POWERS[np.clip(shifts, 0, _DIGITS_MAX)]
    down = _POWERS[np.clip(-shifts, 0, _DIGITS_MAX)]
    is_far = (np.abs(shifts) > _DIGITS_MAX) | (size > np.iinfo(np.int64).max // 10 // up)
    size = np.where(is_far, 0, size)
    size = np.where(shifts >= 0, size * up, (size + down // 2) // down)
    return np.where(values < 0, -size, size), is_far
