"""The common part of the quick conversions: an array, and which of its rows were refused.

Walk: `reading.convert` calls `quick_numbers`, `quick_texts` and `quick_times`, which call this.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tenure.table.arrays import Bools, Bytes, Column, Int32s

_ROWS_MIN = 16
"""With so few rows all are refused if one cannot be cast."""


class Quick(NamedTuple):
    array: Column
    """NULL where refused."""
    refused: Bools
    """A mask; rows without text are never refused."""


def cast(texts: Column, to: pa.DataType) -> Quick:
    """As Arrow parses text; it refuses whole arrays, so the parts that it accepts are found by bisection."""
    try:
        return Quick(texts.cast(to), np.zeros(len(texts), bool))
    except pa.ArrowInvalid:
        if len(texts) <= _ROWS_MIN:
            return Quick(pa.nulls(len(texts), to), mask(texts.is_valid()))
    half = len(texts) // 2
    left, right = cast(texts.slice(0, half), to), cast(texts.slice(half), to)
    return Quick(
        pa.concat_arrays([left.array, right.array]),
        np.concatenate([left.refused, right.refused]),
    )


def without(texts: Column, refused: Bools) -> Column:
    """NULL where refused."""
    return pc.if_else(pa.array(refused), pa.scalar(None, texts.type), texts) if refused.any() else texts


def mask(booleans: Column) -> Bools:
    """As a numpy array; NULL is false."""
    is_true: Bools = pc.fill_null(booleans, False).to_numpy(zero_copy_only=False)
    return is_true


def laid_out(texts: Column) -> tuple[Bytes, Int32s]:
    """The bytes of all texts, and where each starts, with the end of the last."""
    _, offsets, data = texts.buffers()
    places = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    if data is None or not len(texts):
        return np.empty(0, np.uint8), places - places[:1]
    return np.frombuffer(data, np.uint8)[places[0] : places[-1]], places - places[0]


def has_byte(texts: Column, *bytes: int) -> bool:
    data, _ = laid_out(texts)
    view = data.tobytes()
    return any(view.find(each) >= 0 for each in bytes)
