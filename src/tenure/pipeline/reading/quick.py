"""What the quick ways of conversion share: an array, and which of its rows were refused.

Walk: `reading.convert` calls the ways in `quick_numbers`, `quick_texts` and `quick_times`, which call this.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_ROWS_MIN = 16
"""Of so few rows all are refused if one cannot be cast."""


class Quick(NamedTuple):
    array: Any
    """NULL where refused."""
    refused: Any
    """A mask; rows without text are never refused."""


def cast(texts: Any, to: Any) -> Quick:
    """As Arrow reads text; it refuses whole arrays, so the parts that it accepts are sought by halving."""
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


def without(texts: Any, refused: Any) -> Any:
    """NULL where refused."""
    return pc.if_else(pa.array(refused), pa.scalar(None, texts.type), texts) if refused.any() else texts


def mask(booleans: Any) -> Any:
    """As numpy has it; NULL is false."""
    return pc.fill_null(booleans, False).to_numpy(zero_copy_only=False)


def laid_out(texts: Any) -> tuple[Any, Any]:
    """The bytes of all texts, and where each starts, with the end of the last."""
    _, offsets, data = texts.buffers()
    places = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    if data is None or not len(texts):
        return np.empty(0, np.uint8), places - places[:1]
    return np.frombuffer(data, np.uint8)[places[0] : places[-1]], places - places[0]


def has_byte(texts: Any, *bytes: int) -> bool:
    data, _ = laid_out(texts)
    view = data.tobytes()
    return any(view.find(each) >= 0 for each in bytes)
