"""The order of many keys: sorting, and finding duplicates.

Keys are sorted by eight bytes at a time, as numbers: first all of them by the first eight that differ
anywhere, then those that are still equal by the next eight. Most keys differ in the first. A shorter key is
padded with zeros, which changes nothing: no key is a prefix of another. Keys of one length may also be given
as values of fixed size. Numbers are sorted by counting, sixteen bits at a time. Decision 0045 compares it
with the sorts of Arrow and numpy.

Walk: import and merge call `argsort` per run of keys, or `argsort_numbers`, then `doubled` on the sorted
keys.
"""

from bisect import bisect_left

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tenure.table.arrays import Bytes, Column, Int64s, Keys, UInt64s

_WORD = 8
_DIGIT_BITS = 16
_WORDS_MAX = 8
"""Keys that are equal for longer are compared whole."""

_KEPT = np.array([(1 << 64) - (1 << 64 - 8 * length) for length in range(_WORD + 1)], np.uint64)
"""Masks a word by how many bytes of it a key has."""

_SIGN = np.uint64(1 << 63)


def argsort(keys: Keys) -> Int64s:
    """The positions of the keys in sorted order; the sort is stable."""
    data, starts, ends = _laid_out(keys)
    if len(starts) < 2:
        return np.arange(len(starts))
    starts = starts + _shared(data, starts, ends)
    words = _words(data, starts, ends)
    order = _by_number(words)
    words = words.take(order)
    if not (words[1:] == words[:-1]).any():
        return order
    places, groups = np.arange(len(order)), np.zeros(len(order), np.int64)
    for depth in range(1, _WORDS_MAX + 1):
        places, groups = _ties(places, groups, words)
        rows = order[places]
        if not len(rows):
            break
        at = starts[rows] + _WORD * depth
        words = _words(data, at, ends[rows]) if depth < _WORDS_MAX else _ranks(keys, rows)
        inner = np.lexsort((rows, words, groups))
        order[places], words = rows[inner], words[inner]
        if (at >= ends[rows]).all():
            break
    return order


def argsort_numbers(column: Column) -> Int64s:
    """The same by the values that such keys are made of (`key_arrays.number_column`); NULL comes last."""
    if len(column) < 2:
        return np.arange(len(column))
    is_null = np.asarray(column.is_null()) if column.null_count else None
    if pa.types.is_temporal(column.type):
        column = column.view(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    numbers = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
    order = _by_number(numbers.view(np.uint64) ^ _SIGN)
    return order if is_null is None else order[np.argsort(is_null[order], kind="stable")]


def _by_number(words: UInt64s) -> Int64s:
    """By sixteen bits at a time, the last first, which numpy counts instead of comparing; stable."""
    if (words[1:] >= words[:-1]).all():
        return np.arange(len(words))  # imported rows are often in order
    above = words - words.min()
    used = int(np.bitwise_or.reduce(above))
    first_bit = (used & -used).bit_length() - 1  # bits to the right are zero everywhere, after short keys
    order = np.arange(len(words))
    for shift in range(max(first_bit, 0), used.bit_length(), _DIGIT_BITS):
        digits = (above >> np.uint64(shift)).astype(np.uint16)
        order = order.take(np.argsort(digits.take(order), kind="stable"))
    return order


def _ties(places: Int64s, groups: Int64s, words: UInt64s) -> tuple[Int64s, Int64s]:
    """Of sorted keys those that equal a neighbour so far: their positions and groups."""
    same = (words[1:] == words[:-1]) & (groups[1:] == groups[:-1])
    is_tied = np.zeros(len(words), bool)
    is_tied[1:] = same
    is_tied[:-1] |= same
    begins = np.ones(len(words), bool)
    begins[1:] = ~same
    return places[is_tied], np.cumsum(begins)[is_tied]


def _ranks(keys: Keys, rows: Int64s) -> UInt64s:
    """The ranks of the whole keys of some rows: equal ones have equal ranks."""
    ranks: UInt64s = pc.rank(keys.take(pa.array(rows)), tiebreaker="min").to_numpy()
    return ranks


def doubled(keys: Keys) -> Int64s:
    """Of sorted keys, the positions of those that are equal to the one before."""
    if len(keys) < 2:
        return np.empty(0, np.int64)
    equal = pc.equal(keys.slice(0, len(keys) - 1), keys.slice(1))
    return np.flatnonzero(equal.to_numpy(zero_copy_only=False)) + 1


def reordered(column: Column, order: Int64s) -> Column:
    """The values of a column in another order."""
    is_uneven = pa.types.is_string(column.type) or pa.types.is_binary(column.type)
    even_column = even(column) if is_uneven and not column.null_count else column
    values = even_column.take(pa.array(order))
    if even_column is column:
        return values
    ends = np.arange(len(values) + 1, dtype=np.int32) * np.int32(even_column.type.byte_width)
    return pa.Array.from_buffers(column.type, len(values), [None, pa.py_buffer(ends), values.buffers()[1]])


def even(keys: Keys) -> Keys:
    """The same keys as values of fixed size, if all have one length: those are moved five times as fast."""
    places = _places(keys)
    width = int(places[1] - places[0]) if len(keys) else 0
    if not width or not (np.diff(places) == width).all():
        return keys
    data = keys.buffers()[2].slice(int(places[0]), width * len(keys))
    return pa.Array.from_buffers(pa.binary(width), len(keys), [None, data])


def plain(keys: Keys) -> Keys:
    """Reverses `even`."""
    return keys.cast(pa.binary())


def _laid_out(keys: Keys) -> tuple[Bytes, Int64s, Int64s]:
    """The bytes of all keys, with a spare word, and where each starts and ends."""
    places = _places(keys)
    first, last = (int(places[0]), int(places[-1])) if len(keys) else (0, 0)
    spared = np.zeros(last - first + _WORD, np.uint8)
    data = keys.buffers()[-1]
    if data is not None:
        spared[: last - first] = np.frombuffer(data, np.uint8)[first:last]
    places -= first
    return spared, places[:-1], places[1:]


def _places(keys: Keys) -> Int64s:
    """Where in their data keys begin, and the last one ends."""
    if pa.types.is_fixed_size_binary(keys.type):
        width: int = keys.type.byte_width
        return np.arange(keys.offset, keys.offset + len(keys) + 1, dtype=np.int64) * width
    offsets = np.frombuffer(keys.buffers()[1], np.int32)
    return offsets[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)


def _shared(data: Bytes, starts: Int64s, ends: Int64s) -> int:
    """How many bytes at the start all keys have in common."""
    first = data[starts[0] : ends[0]]
    shortest = int((ends - starts).min())
    for place in range(min(shortest, len(first))):
        if not (data[starts + place] == first[place]).all():
            return place
    return shortest


def _words(data: Bytes, starts: Int64s, ends: Int64s) -> UInt64s:
    """Eight bytes of each key as a number; beyond its end are zeros."""
    at_any_place = np.ndarray(len(data) - _WORD + 1, "<u8", data, strides=(1,))
    words = at_any_place[np.minimum(starts, len(data) - _WORD)].byteswap()
    lengths = ends - starts
    return words if lengths.min() >= _WORD else words & _KEPT.take(lengths, mode="clip")


def bounds_within(keys: Keys, lo: bytes, hi: bytes | None) -> tuple[int, int]:
    """Of sorted keys: the start and the number of those from `lo` to below `hi` (None: to the end)."""
    first = _seek(keys, lo)
    return first, (len(keys) if hi is None else _seek(keys, hi)) - first


def _seek(keys: Keys, key: bytes) -> int:
    return bisect_left(range(len(keys)), key, key=lambda row: keys[row].as_py())
