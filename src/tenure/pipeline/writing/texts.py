"""Columns as text, as PostgreSQL writes it: whole arrays at a time where Arrow writes the same.

    ints, dates, decimals          Arrow's own text; a decimal's with an exponent is written anew
    floats                         between these bounds Arrow's text is PostgreSQL's: the shortest digits
    times                          Arrow's, without the zeros at the end of a fraction
    all else, and odd values       the type's `render`, value by value

Invariant (texts-same): an array's texts are the results of the type's `render` for each value.

Walk: `writing.csv_rows` and `writing.ndjson_rows` -> `texts`.
"""

from datetime import UTC, tzinfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tenure.expr.types.datatype import Type
from tenure.expr.types.enums import EnumOf
from tenure.expr.types.floats import float_text
from tenure.expr.types.numbers import numeric_text
from tenure.pipeline.writing.cells import Cells
from tenure.table.arrays import Column
from tenure.table.arrow import is_opaque

_FLOAT_BOUNDS = {"float4": (1e-4, 1e6), "float8": (1e-4, 1e10)}
_STRINGS = ("text", "varchar", "char")


def texts(cells: Cells, zone: tzinfo) -> Column:
    """A string array, NULL where the value is."""
    if cells.values is not None or is_opaque(cells.kind):
        return _rendered(cells, zone)
    column = _quick(cells.kind, cells.array, zone)
    if column is None:
        return _rendered(cells, zone)
    if not cells.odd:
        return column
    return _put(column, {row: cells.kind.render(value) for row, value in cells.odd.items()})


def is_text(kind: Type) -> bool:
    """Whether a value may contain any characters."""
    return kind.family in _STRINGS


def _rendered(cells: Cells, zone: tzinfo) -> Column:
    kind = cells.kind
    values = cells.listed()
    if kind.follows_zone:
        column = [None if each is None else kind.render_in(each, zone) for each in values]
    else:
        column = [None if each is None else kind.render(each) for each in values]
    return pa.array(column, pa.string())


def _put(column: Column, at: dict[int, str]) -> Column:
    """With other texts in some rows."""
    rows = np.zeros(len(column), bool)
    rows[list(at)] = True
    return pc.replace_with_mask(
        column, pa.array(rows), pa.array([at[row] for row in sorted(at)], pa.string())
    )


def _quick(kind: Type, values: Column, zone: tzinfo) -> Column | None:
    """None if there is no quick path."""
    if isinstance(kind, EnumOf):
        return _labels(kind, values)
    match kind.family:
        case "text" | "varchar":
            return values
        case "char":
            return pc.utf8_rpad(values, kind.ref.modifiers[0])
        case "int2" | "int4" | "int8" | "date":
            return values.cast(pa.string())
        case "bool":
            return pc.if_else(values, "t", "f")
        case "numeric":
            return _decimals(values)
        case "float4" | "float8":
            return _floats(kind.family, values)
        case "timestamp":
            return _without_zeros(values.cast(pa.string()))
        case "timestamptz" if zone is UTC:
            return pc.binary_join_element_wise(_without_zeros(values.cast(pa.string())), "+00", "")
        case "time":
            return _without_zeros(values.view(pa.time64("us")).cast(pa.string()))
        case "uuid":
            return _uuids(values)
    return None


def _labels(kind: Type, values: Column) -> Column:
    coded = values.dictionary_encode()
    labels = [kind.render(kind.unpack(each)) for each in coded.dictionary.to_pylist()]
    return pa.array(labels, pa.string()).take(coded.indices)


def _decimals(values: Column) -> Column:
    """Arrow writes those near zero with an exponent if the scale is large."""
    column = values.cast(pa.string())
    if values.type.scale <= 6:
        return column
    rows = np.flatnonzero(pc.fill_null(pc.match_substring(column, "E"), False).to_numpy(zero_copy_only=False))
    return (
        _put(column, {row: numeric_text(values[row].as_py()) for row in rows.tolist()})
        if len(rows)
        else column
    )


def _floats(family: str, values: Column) -> Column:
    least, end = _FLOAT_BOUNDS[family]
    size = np.abs(pc.fill_null(values, 1.0).to_numpy(zero_copy_only=False))
    rows = np.flatnonzero(~((size >= least) & (size < end)))
    column = values.cast(pa.string())
    width = 4 if family == "float4" else 8
    return (
        _put(column, {row: float_text(values[row].as_py(), width) for row in rows.tolist()})
        if len(rows)
        else column
    )


def _without_zeros(column: Column) -> Column:
    """Arrow writes all six digits of a second's fraction."""
    return pc.utf8_rtrim(pc.utf8_rtrim(column, "0"), ".")


_HEX = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), "S2")
_DASHES = (8, 13, 18, 23)


def _uuids(values: Column) -> Column:
    data = pc.fill_null(values, bytes(16))
    raw = np.frombuffer(b"".join(data.to_pylist()), np.uint8)
    digits = _HEX[raw].view(np.uint8).reshape(-1, 32)
    written = np.full((len(values), 36), ord("-"), np.uint8)
    written[:, [place for place in range(36) if place not in _DASHES]] = digits
    offsets = pa.py_buffer(np.arange(len(values) + 1, dtype=np.int32) * 36)
    column = pa.StringArray.from_buffers(len(values), offsets, pa.py_buffer(np.ascontiguousarray(written)))
    return (
        pc.if_else(values.is_valid(), column, pa.scalar(None, pa.string())) if values.null_count else column
    )
