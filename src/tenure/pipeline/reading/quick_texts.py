"""Texts, words and uuids, whole arrays at a time.

Walk: `reading.convert`.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tenure.expr.types.datatype import Type
from tenure.expr.types.enums import EnumOf
from tenure.pipeline.reading.quick import Quick, has_byte, laid_out, mask, without
from tenure.table.arrays import Column

_TRUE = ("t", "true", "T", "TRUE", "True", "1", "y", "yes", "Y", "YES", "on")
_FALSE = ("f", "false", "F", "FALSE", "False", "0", "n", "no", "N", "NO", "off")
_BOOLS = pa.array([each in _TRUE for each in (*_TRUE, *_FALSE)])

_UUID_LENGTH = 36
_DASHES = (8, 13, 18, 23)
_DIGITS = [place for place in range(_UUID_LENGTH) if place not in _DASHES]
_NO_DIGIT = 0xFF
_HEX = np.full(256, _NO_DIGIT, np.uint8)
_HEX[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
_HEX[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)


def texts(kind: Type | None, given: Column) -> Quick:
    """A text with a zero byte in it is refused."""
    if not has_byte(given, 0):
        return Quick(given, np.zeros(len(given), bool))
    refused = mask(pc.match_substring(given, "\0"))
    return Quick(without(given, refused), refused)


def varchars(kind: Any, given: Column) -> Quick:
    return texts(kind, given) if kind.length is None else _up_to(kind.length, given)


def chars(kind: Any, given: Column) -> Quick:
    """Arrow holds char(n) without trailing spaces."""
    return _up_to(kind.length, pc.utf8_rtrim(given, characters=" "))


def _up_to(length: int, given: Column) -> Quick:
    made, refused = texts(None, given)
    if (pc.max(pc.binary_length(made)).as_py() or 0) <= length:
        return Quick(made, refused)
    is_long = mask(pc.greater(pc.utf8_length(made), length))
    return Quick(without(made, is_long), refused | is_long)


def bools(kind: Type, given: Column) -> Quick:
    return _looked_up(given, pa.array([*_TRUE, *_FALSE]), _BOOLS)


def enums(kind: EnumOf, given: Column) -> Quick:
    labels = kind.labels
    physical = pa.array([kind.pack(label) for label in labels], pa.binary())
    return _looked_up(given, pa.array(labels, pa.string()), physical)


def _looked_up(given: Column, words: Column, values: Column) -> Quick:
    places = pc.index_in(given, value_set=words)
    refused = mask(pc.and_(places.is_null(), given.is_valid()))
    return Quick(values.take(places), refused)


def uuids(kind: Type, given: Column) -> Quick:
    """In their usual form, with dashes."""
    is_usual = mask(pc.equal(pc.binary_length(given), _UUID_LENGTH))
    usual = given if is_usual.all() else given.filter(pa.array(is_usual))
    data, _ = laid_out(usual)
    characters = data.reshape(-1, _UUID_LENGTH)
    digits = _HEX[characters[:, _DIGITS]]
    is_good = (digits != _NO_DIGIT).all(axis=1) & (characters[:, _DASHES] == ord("-")).all(axis=1)
    raw = np.ascontiguousarray(digits[:, ::2] << 4 | digits[:, 1::2] & 0x0F)
    made = pa.Array.from_buffers(pa.binary(16), len(raw), [None, pa.py_buffer(raw)]).cast(pa.binary())
    made = without(made, ~is_good)
    if not is_usual.all():
        made = pc.replace_with_mask(pa.nulls(len(given), pa.binary()), pa.array(is_usual), made)
    return Quick(made, mask(pc.and_(made.is_null(), given.is_valid())))
