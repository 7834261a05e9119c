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
from tenure.expr.types.time_types import InstantType, TimestampType, TimeType
from tenure.pipeline.reading import quick_times
from tenure.pipeline.reading.convert import ConvertedColumn, Fault, convert
from tenure.pipeline.reading.quick import mask, without
from tenure.table.arrays import Bools, Column
from tenure.table.arrow import arrow_type

_INTS, _FLOATS = ("int2", "int4", "int8"), ("float4", "float8")
_NUMBER_OUT = Fault("22003", "value out of range")
_NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}


def is_taken(kind: Type, source: pa.DataType) -> bool:
    """Whether a column of the type can be read from a column of the Arrow type `given`."""
    source = _plain(source)
    if pa.types.is_string(source) or pa.types.is_null(source):
        return True
    if kind.ref.is_array:
        return False
    return kind.family in _families(source)


def _families(source: pa.DataType) -> tuple[str, ...]:
    is_ = pa.types
    if is_.is_integer(source):
        return (*_INTS, *_FLOATS, "numeric")
    if is_.is_floating(source):
        return _FLOATS
    if is_.is_decimal(source):
        return ("numeric",)
    if is_.is_boolean(source):
        return ("bool",)
    if is_.is_binary(source):
        return ("bytea", "uuid")
    if is_.is_date(source):
        return ("date",)
    if is_.is_time(source):
        return ("time",)
    if is_.is_timestamp(source):
        return ("timestamptz",) if source.tz else ("timestamp",)
    return ()


def _plain(source: Column) -> Column:
    """The column in its logical type: decoded from dictionaries and other storage variants."""
    is_ = pa.types
    if isinstance(source, pa.BaseExtensionType):
        return _plain(source.storage_type)
    if is_.is_dictionary(source):
        return _plain(source.value_type)
    if is_.is_large_string(source) or is_.is_string_view(source):
        return pa.string()
    if is_.is_large_binary(source) or is_.is_fixed_size_binary(source) or is_.is_binary_view(source):
        return pa.binary()
    return source


def converted(kind: Type, source: Column, zone: tzinfo) -> ConvertedColumn:
    if isinstance(source.type, pa.BaseExtensionType):
        source = source.storage
    source = source.cast(_plain(source.type))
    to = arrow_type(kind)
    is_ = pa.types
    if is_.is_null(source.type):
        return ConvertedColumn(pa.nulls(len(source), to), {}, {})
    if is_.is_string(source.type):
        return convert(kind, source, zone)
    if is_.is_floating(source.type):
        return _float(source, to)
    if is_.is_date(source.type):
        return _date(source)
    if is_.is_time(source.type) or is_.is_timestamp(source.type):
        return _time(kind, source)
    if kind.family == "uuid":
        return _uuid(source)
    if source.type == to:
        return ConvertedColumn(source, {}, {})
    if is_.is_integer(source.type) or isinstance(kind, NumericType):
        return convert(kind, source.cast(pa.string()), zone)
    return ConvertedColumn(source.cast(to), {}, {})


def _float(source: Column, to: pa.DataType) -> ConvertedColumn:
    """Rounded to 32 bits, a number must not become infinite or zero."""
    if to != pa.float32() or source.type != pa.float64():
        return ConvertedColumn(source.cast(to), {}, {})
    values = pc.fill_null(source, 0.0).to_numpy()
    with np.errstate(over="ignore", under="ignore"):
        rounded = values.astype(np.float32)
    is_out = (np.isinf(rounded) & ~np.isinf(values)) | ((rounded == 0) & (values != 0))
    column = pa.array(rounded, to, mask=is_out | mask(source.is_null()))
    return _faulty(column, is_out, _NUMBER_OUT)


def _date(source: Column) -> ConvertedColumn:
    days = source.cast(pa.date32(), safe=False)
    column, is_out = quick_times.dates_within(days)
    return _faulty(column, is_out, Fault("22008", "date out of range"))


def _time(kind: Type, source: Column) -> ConvertedColumn:
    """In microseconds, halves rounded up; then as if it had been read from text."""
    nanos = _NANOS[source.type.unit]
    counts = source.view(pa.int32() if source.type.bit_width == 32 else pa.int64()).cast(pa.int64())
    values = pc.fill_null(counts, 0).to_numpy()
    if nanos < 1000:
        micros, is_far = (values + 500) // 1000, np.zeros(len(values), bool)
    else:
        scale = nanos // 1000
        is_far = np.abs(values) > np.iinfo(np.int64).max // scale
        micros = np.where(is_far, 0, values) * scale
    if pa.types.is_time(source.type):
        assert isinstance(kind, TimeType), "only it is read from times of day"
        column, is_out = quick_times.clock_within(kind, micros, source, is_far)
        return _faulty(column, is_out, Fault("22008", "date/time field value out of range"))
    assert isinstance(kind, TimestampType | InstantType), "only these are read from times"
    column, is_out = quick_times.timestamps_within(kind, micros, source, is_far)
    return _faulty(column, is_out, Fault("22008", "timestamp out of range"))


def _uuid(source: Column) -> ConvertedColumn:
    is_out = mask(pc.not_equal(pc.binary_length(source), 16))
    return _faulty(without(source, is_out), is_out, Fault("22P03", "a uuid has 16 bytes"))


def _faulty(column: Column, is_out: Bools, fault: Fault) -> ConvertedColumn:
    return ConvertedColumn(column, dict.fromkeys(np.flatnonzero(is_out).tolist(), fault), {})
