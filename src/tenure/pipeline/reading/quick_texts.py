"""Texts, words and uuids, whole arrays at a time.

Walk: `reading.convert`.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tenure.expr.types.datatype import Type
from tenure.expr.types.enums import EnumOf
from tenure.expr.types.strings import CharType, VarcharType
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


def texts(kind: Type | None, source: Column) -> Quick:
    """A text with a zero byte in it is refused."""
    if not has_byte(source, 0):
        return Quick(source, np.zeros(len(source), bool))
    refused = mask(pc.match_substring(source, "\0"))
    return Quick(without(source, refused), refused)


def varchars(kind: VarcharType, source: Column) -> Quick:
    return texts(kind, source) if kind.length is None else _up_to(kind.length, source)


def chars(kind: CharType, source: Column) -> Quick:
    """Arrow holds char(n) without trailing spaces."""
    assert kind.length is not None, "char has a length"
    return _up_to(kind.length, pc.utf8_rtrim(source, characters=" "))


def _up_to(length: int, source: Column) -> Quick:
    column, refused = texts(None, source)
    if (pc.max(pc.binary_length(column)).as_py() or 0) <= length:
        return Quick(column, refused)
    is_long = mask(pc.greater(pc.utf8_length(column), length))
    return Quick(without(column, is_long), refused | is_long)


def bools(kind: Type, source: Column) -> Quick:
    return _looked_up(source, pa.array([*_TRUE, *_FALSE]), _BOOLS)


def enums(kind: EnumOf, source: Column) -> Quick:
    labels = kind.labels
    physical = pa.array([kind.pack(label) for label in labels], pa.binary())
    return _looked_up(source, pa.array(labels, pa.string()), physical)


def _looked_up(source: Column, words: Column, values: Column) -> Quick:
    places = pc.index_in(source, value_set=words)
    refused = mask(pc.and_(places.is_null(), source.is_valid()))
    return Quick(values.take(places), refused)


def uuids(kind: Type, source: Column) -> Quick:
    """In their usual form, with dashes."""
    is_usual = mask(pc.equal(pc.binary_length(source), _UUID_LENGTH))
    usual = source if is_usual.all() else source.filter(pa.array(is_usual))
    data, _ = laid_out(usual)
    characters = data.reshape(-1, _UUID_LENGTH)
    digits = _HEX[characters[:, _DIGITS]]
    is_good = (digits != _NO_DIGIT).all(axis=1) & (characters[:, _DASHES] == ord("-")).all(axis=1)
    raw = np.ascontiguousarray(digits[:, ::2] << 4 | digits[:, 1::2] & 0x0F)
    column = pa.Array.from_buffers(pa.binary(16), len(raw), [None, pa.py_buffer(raw)]).cast(pa.binary())
    column = without(column, ~is_good)
    if not is_usual.all():
        column = pc.replace_with_mask(pa.nulls(len(source), pa.binary()), pa.array(is_usual), column)
    return Quick(column, mask(pc.and_(column.is_null(), source.is_valid())))
