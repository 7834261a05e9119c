"""Columns that have Arrow types already, converted to a table's columns.

    the file has                  the column may be
    whole numbers                 whole numbers, numeric, floats
    floats                        floats
    decimals                      numeric
    bool                          bool
    texts                         anything, as from text
    bytes                         bytea; uuid
    days                          date
    times of day                  time
    timestamps without, with zone timestamp, timestamptz

A value that the column cannot represent is a fault of its row. Fractions below microseconds are rounded.

Walk: `reading.parquet_rows` calls `is_taken` for each column of a file, then `converted` per batch.
"""

from datetime import tzinfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tenure.expr.types.datatype import Type
from tenure.expr.types.numbers import NumericType
from tenure.pipeline.reading import quick_times
from tenure.pipeline.reading.convert import ConvertedColumn, Fault, convert
from tenure.pipeline.reading.quick import mask, without
from tenure.table.arrays import Bools, Column
from tenure.table.arrow import arrow_type

_INTS, _FLOATS = ("int2", "int4", "int8"), ("float4", "float8")
_NUMBER_OUT = Fault("22003", "value out of range")
_NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}


def is_taken(kind: Type, given: pa.DataType) -> bool:
    """Whether a column of the type can be read from a column of the Arrow type `given`."""
    given = _plain(given)
    if pa.types.is_string(given) or pa.types.is_null(given):
        return True
    if kind.ref.is_array:
        return False
    return kind.family in _families(given)


def _families(given: pa.DataType) -> tuple[str, ...]:
    is_ = pa.types
    if is_.is_integer(given):
        return (*_INTS, *_FLOATS, "numeric")
    if is_.is_floating(given):
        return _FLOATS
    if is_.is_decimal(given):
        return ("numeric",)
    if is_.is_boolean(given):
        return ("bool",)
    if is_.is_binary(given):
        return ("bytea", "uuid")
    if is_.is_date(given):
        return ("date",)
    if is_.is_time(given):
        return ("time",)
    if is_.is_timestamp(given):
        return ("timestamptz",) if given.tz else ("timestamp",)
    return ()


def _plain(given: Column) -> Column:
    """The column in its logical type: decoded from dictionaries and other storage variants."""
    is_ = pa.types
    if isinstance(given, pa.BaseExtensionType):
        return _plain(given.storage_type)
    if is_.is_dictionary(given):
        return _plain(given.value_type)
    if is_.is_large_string(given) or is_.is_string_view(given):
        return pa.string()
    if is_.is_large_binary(given) or is_.is_fixed_size_binary(given) or is_.is_binary_view(given):
        return pa.binary()
    return given


def converted(kind: Type, given: Column, zone: tzinfo) -> ConvertedColumn:
    if isinstance(given.type, pa.BaseExtensionType):
        given = given.storage
    given = given.cast(_plain(given.type))
    to = arrow_type(kind)
    is_ = pa.types
    if is_.is_null(given.type):
        return ConvertedColumn(pa.nulls(len(given), to), {}, {})
    if is_.is_string(given.type):
        return convert(kind, given, zone)
    if is_.is_floating(given.type):
        return _float(given, to)
    if is_.is_date(given.type):
        return _date(given)
    if is_.is_time(given.type) or is_.is_timestamp(given.type):
        return _time(kind, given)
    if kind.family == "uuid":
        return _uuid(given)
    if given.type == to:
        return ConvertedColumn(given, {}, {})
    if is_.is_integer(given.type) or isinstance(kind, NumericType):
        return convert(kind, given.cast(pa.string()), zone)
    return ConvertedColumn(given.cast(to), {}, {})


def _float(given: Column, to: pa.DataType) -> ConvertedColumn:
    """Rounded to 32 bits, a number must not become infinite or zero."""
    if to != pa.float32() or given.type != pa.float64():
        return ConvertedColumn(given.cast(to), {}, {})
    values = pc.fill_null(given, 0.0).to_numpy()
    with np.errstate(over="ignore", under="ignore"):
        rounded = values.astype(np.float32)
    is_out = (np.isinf(rounded) & ~np.isinf(values)) | ((rounded == 0) & (values != 0))
    made = pa.array(rounded, to, mask=is_out | mask(given.is_null()))
    return _faulty(made, is_out, _NUMBER_OUT)


def _date(given: Column) -> ConvertedColumn:
    days = given.cast(pa.date32(), safe=False)
    made, is_out = quick_times.dates_within(days)
    return _faulty(made, is_out, Fault("22008", "date out of range"))


def _time(kind: Type, given: Column) -> ConvertedColumn:
    """In microseconds, halves rounded up; then as if it had been read from text."""
    nanos = _NANOS[given.type.unit]
    counts = given.view(pa.int32() if given.type.bit_width == 32 else pa.int64()).cast(pa.int64())
    values = pc.fill_null(counts, 0).to_numpy()
    if nanos < 1000:
        micros, is_far = (values + 500) // 1000, np.zeros(len(values), bool)
    else:
        scale = nanos // 1000
        is_far = np.abs(values) > np.iinfo(np.int64).max // scale
        micros = np.where(is_far, 0, values) * scale
    if pa.types.is_time(given.type):
        made, is_out = quick_times.clock_within(kind, micros, given, is_far)
        return _faulty(made, is_out, Fault("22008", "date/time field value out of range"))
    made, is_out = quick_times.timestamps_within(kind, micros, given, is_far)
    return _faulty(made, is_out, Fault("22008", "timestamp out of range"))


def _uuid(given: Column) -> ConvertedColumn:
    is_out = mask(pc.not_equal(pc.binary_length(given), 16))
    return _faulty(without(given, is_out), is_out, Fault("22P03", "a uuid has 16 bytes"))


def _faulty(made: Column, is_out: Bools, fault: Fault) -> ConvertedColumn:
    return ConvertedColumn(made, dict.fromkeys(np.flatnonzero(is_out).tolist(), fault), {})
