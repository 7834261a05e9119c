"""Keys of many rows at once: the bytes of `kv.encoding.encode`, made from whole Arrow columns.

    columns   c1 int8   [1, 300, NULL]     c2 text   ["a", "b", "c"]
    keys                19 01 │ 38 "a" 00 01
                        1A 01 2C │ 38 "b" 00 01
                        7F │ 38 "c" 00 01

Each key column is first encoded for all rows: whole numbers, times, uuids and floats as a matrix of bytes of
which each row uses as many as it needs; texts unchanged, between their tag and their end. Then the columns
are joined row by row. Other types are encoded value by value.

A value that its Arrow type cannot represent is NULL in its column and packed in the row's `rest`: keys of
such rows are made from their values. Keys are without the ten bytes of head.

Invariant (key-arrays): a key made here equals, byte for byte, the `CompiledIndex.suffix` of the row.

Simplifications: the keys of one call together have less than 2 GB.

Walk: `bulk.ingest.run_chunks` calls `key_array` and `entry_arrays` per batch; `bulk.filling.entries` asks
what is `too_long`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.enums import EnumOf
from tenure.kv.encoding import INT_TAG, Descending, KeyValue, encode
from tenure.kv.keys import KEY_BYTES_MAX
from tenure.storage.engine import HEAD_BYTES
from tenure.table.arrays import Bytes, Column, Int64s, Keys, Numbers, UInt64s
from tenure.table.arrow import is_opaque
from tenure.table.compiled_index import CompiledIndex
from tenure.table.packing import Packed, unpack, unpack_columns

Columns = Mapping[int, Any]
"""Arrow arrays by column id, in the types of `table.arrow`."""

_BLOCK_ROWS = 1 << 16
"""Rows whose matrix of bytes is made at a time: it fits into the processor's cache."""

_NUMBERS = ("int2", "int4", "int8", "date", "time", "timestamp", "timestamptz")
"""Families whose values are whole numbers in Arrow, in their order."""

_NULL = 0x7F
_DAY_MICROS = 86_400_000_000
_DAYS_TO_2000 = 10_957
"""The epoch of packed days and times, counted from 1970-01-01."""
_DAYS_FROM_YEAR_1 = 719_162
"""The epoch of days and times in keys."""


Lengths: TypeAlias = Any
"""How many bytes of each row count: an array, or one number for all."""


class KeyColumn(NamedTuple):
    """A key column of an index; unlike `CompiledIndex`, it can be sent to another process."""

    column: int
    type: Type
    is_descending: bool = False


class Entries(NamedTuple):
    """The entries of a secondary index for rows."""

    keys: Any
    primary: Any
    """The primary key of each: the value of a unique index's entry, after its format."""


def key_columns(index: CompiledIndex) -> tuple[KeyColumn, ...]:
    return tuple(KeyColumn(kept.id, kept.type, is_descending) for kept, is_descending in index.parts)


def number_column(index: CompiledIndex) -> int | None:
    """The column whose values have the order of a primary index's keys: whole numbers, days or times, if it
    is the only key column.
    """
    (kept, is_descending), *others = index.parts
    is_number = kept.type.family in _NUMBERS and not is_opaque(kept.type)
    return kept.id if index.is_primary and is_number and not is_descending and not others else None


def key_array(parts: Sequence[KeyColumn], columns: Columns, rest: Column | None = None) -> Keys:
    """The keys of rows, as a binary array; `rest` has the values that the columns could not represent."""
    arrays = [_part(part, _whole(columns[part.column])) for part in parts]
    keys = arrays[0] if len(arrays) == 1 else pc.binary_join_element_wise(*arrays, b"")
    if rest is None or rest.null_count == len(rest):
        return keys
    return _with_rest(parts, columns, _whole(rest), keys)


def entry_arrays(
    parts: Sequence[KeyColumn],
    primary: Sequence[KeyColumn],
    columns: Columns,
    rest: Column | None = None,
    *,
    is_unique: bool,
) -> Entries:
    """The entries of a secondary index for rows that its predicate holds for."""
    stems = key_array(parts, columns, rest)
    suffixes = key_array(primary, columns, rest)
    whole = pc.binary_join_element_wise(stems, suffixes, b"")
    if is_unique:
        whole = pc.if_else(_has_null(parts, columns, rest), whole, stems)
    return Entries(whole, suffixes)


def too_long(keys: Keys) -> Int64s:
    """The positions of keys that are too long for an index, as a numpy array."""
    lengths = pc.binary_length(keys).to_numpy(zero_copy_only=False)
    return np.flatnonzero(lengths > KEY_BYTES_MAX - HEAD_BYTES)


def _has_null(parts: Sequence[KeyColumn], columns: Columns, rest: Column | None) -> Column:
    masks = [np.array(_whole(columns[part.column]).is_null()) for part in parts]
    if rest is not None and rest.null_count < len(rest):
        for row, values in _rests(_whole(rest)):
            for part, mask in zip(parts, masks, strict=True):
                mask[row] &= part.column not in values
    return pa.array(np.logical_or.reduce(masks))


def _whole(array: Column) -> Column:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


# ── one part, all rows ─────────────────────────────────────────────────────────────────────────────


def _part(part: KeyColumn, column: Column) -> Keys:
    kind = part.type
    if column.null_count == len(column):
        encoded = pa.repeat(pa.scalar(bytes((_NULL,)), pa.binary()), len(column))
    elif is_opaque(kind) or pa.types.is_decimal(column.type):
        return _one_by_one(part, column)
    elif pa.types.is_string(column.type) or isinstance(kind, EnumOf) or kind.family == "bytea":
        encoded = _strings(column)
    else:
        encoded = _fixed(kind.family, column)
    return _complement(encoded) if part.is_descending else encoded


def _one_by_one(part: KeyColumn, column: Column) -> Keys:
    keys = [encode([_element(part, value)]) for value in _values(part.type, column)]
    return pa.array(keys, pa.binary())


def _values(kind: Type, column: Column) -> list[Datum]:
    """The values that `table.arrow.array` made the array of."""
    if pa.types.is_decimal(column.type):
        return list(column.to_pylist())
    if is_opaque(kind):
        return [None if each is None else kind.unpack(unpack(each)) for each in column.to_pylist()]
    if pa.types.is_date(column.type):
        packed = pc.subtract(column.view(pa.int32()), pa.scalar(_DAYS_TO_2000, pa.int32()))
    elif pa.types.is_timestamp(column.type):
        packed = pc.subtract(column.view(pa.int64()), _DAYS_TO_2000 * _DAY_MICROS)
    else:
        packed = column
    return [kind.unpack(each) for each in packed.to_pylist()]


def _element(part: KeyColumn, value: Datum) -> KeyValue:
    key = part.type.key(value)
    return Descending(key) if part.is_descending else key


def _strings(column: Column) -> Keys:
    """A zero byte inside is followed by FF, so that the end, 00 01, is found, and sorts first."""
    tag = b"\x38" if pa.types.is_string(column.type) else b"\x39"
    raw = column.cast(pa.binary())
    if _has_zero(raw):
        raw = pc.replace_substring(raw, pattern=b"\x00", replacement=b"\x00\xff")
    encoded = pc.binary_join_element_wise(tag, raw, b"\x00\x01", b"")
    return pc.fill_null(encoded, bytes((_NULL,))) if raw.null_count else encoded


def _has_zero(raw: Column) -> bool:
    _, offsets, data = raw.buffers()
    if data is None:
        return False
    start, end = np.frombuffer(offsets, np.int32)[[raw.offset, raw.offset + len(raw)]]
    return not np.frombuffer(data, np.uint8)[start:end].all()


def _complement(keys: Keys) -> Keys:
    validity, offsets, data = keys.buffers()
    flipped = pa.py_buffer(~np.frombuffer(data, np.uint8))
    return pa.Array.from_buffers(pa.binary(), len(keys), [validity, offsets, flipped], offset=keys.offset)


# ── values of few bytes: a tag and eight or sixteen ────────────────────────────────────────────────


def _fixed(family: str, column: Column) -> Keys:
    """Block by block: each row's bytes are left-aligned in a matrix, with a count for each."""
    is_null = np.asarray(column.is_null()) if column.null_count else None
    blocks: list[Any] = []
    sizes: list[Any] = []
    for start in range(0, len(column), _BLOCK_ROWS):
        matrix, lengths = _matrix(family, column.slice(start, _BLOCK_ROWS))
        if is_null is not None:
            gone = is_null[start : start + _BLOCK_ROWS]
            matrix[gone, 0] = _NULL
            lengths = np.where(gone, 1, lengths)
        blocks.append(_gathered(matrix, lengths))
        sizes.append(np.broadcast_to(lengths, len(matrix)))
    offsets = np.zeros(len(column) + 1, np.int32)
    np.cumsum(np.concatenate(sizes), out=offsets[1:])
    data = pa.py_buffer(np.concatenate(blocks))
    return pa.Array.from_buffers(pa.binary(), len(column), [None, pa.py_buffer(offsets), data])


def _gathered(matrix: Bytes, lengths: Lengths) -> Bytes:
    """The first bytes of each row, one row after the other."""
    least, most = int(np.min(lengths)), int(np.max(lengths))
    if least == most:
        return matrix[:, :most].reshape(-1)
    starts = np.cumsum(lengths) - lengths
    gathered = np.empty(int(starts[-1]) + most, np.uint8)
    for place in reversed(range(most)):  # surplus bytes are overwritten by later rows
        gathered[starts + place] = matrix[:, place]
    return gathered[: int(starts[-1]) + int(lengths[-1])]


def _matrix(family: str, column: Column) -> tuple[Bytes, Lengths]:
    """The bytes of each row, tag first, and how many count: an array, or one number for all."""
    match family:
        case "int2" | "int4" | "int8":
            return _ints(_numbers(column, pa.int64()))
        case "bool":
            return _numbers(column, pa.uint8()).reshape(-1, 1) + np.uint8(2), 1
        case "uuid":
            return _uuids(column), 17
        case "float4" | "float8":
            return _words(0x30, _ordered_bits(_numbers(column, pa.float64()))), 9
        case "date":
            days = _numbers(column, pa.int32()).astype(np.uint64) + np.uint64(_DAYS_FROM_YEAR_1 + 1)
            return _words(0x40, days << np.uint64(40)), 4
        case "time":
            return _words(0x41, _numbers(column, pa.int64()).view(np.uint64) << np.uint64(24)), 6
        case "timestamp" | "timestamptz":
            micros = _numbers(column, pa.int64()) + _DAYS_FROM_YEAR_1 * _DAY_MICROS
            return _words(0x42 if family == "timestamp" else 0x43, micros.view(np.uint64)), 9
    raise NotImplementedError(f"keys of {family}")


def _numbers(column: Column, to: pa.DataType) -> Numbers:
    """Values as a numpy array; the placeholder of a NULL is overwritten later."""
    if pa.types.is_temporal(column.type):
        column = column.view(to)
    column = pc.fill_null(column.cast(to), 0) if column.null_count else column.cast(to)
    numbers: Numbers = column.to_numpy(zero_copy_only=False)
    return numbers


def _words(tags: Bytes | int, words: UInt64s) -> Bytes:
    """A tag and the eight bytes of a word, big-endian."""
    matrix = np.empty((len(words), 9), np.uint8)
    matrix[:, 0] = tags
    matrix[:, 1:] = words.astype(">u8").view(np.uint8).reshape(-1, 8)
    return matrix


def _ints(values: Int64s) -> tuple[Bytes, Lengths]:
    """18 + n and n bytes; of a negative 18 - n, and with 2^8n - 1 added."""
    is_negative = values < 0
    magnitude = np.abs(values).view(np.uint64)  # of -2^63 too: it wraps to itself, which is 2^63
    sizes = np.zeros(len(values), np.uint8)
    for size in range(8):
        above = magnitude >= np.uint64(1 << 8 * size)
        if not above.any():
            break
        sizes += above
    words = values.view(np.uint64)
    if is_negative.any():
        words = np.where(is_negative, words - np.uint64(1), words)  # 2^8n goes with the shift below
        tags = np.where(is_negative, np.uint8(INT_TAG) - sizes, np.uint8(INT_TAG) + sizes)
    else:
        tags = np.uint8(INT_TAG) + sizes
    shifts = (8 - sizes.astype(np.uint64)) * np.uint64(8)
    shifts[shifts == 64] = 0  # for 0, which has no bytes
    return _words(tags, words << shifts), sizes.astype(np.int32) + 1


def _ordered_bits(values: Numbers) -> UInt64s:
    values = np.where(np.isnan(values), np.nan, values + 0.0)  # one NaN, one zero
    bits = values.view(np.uint64)
    sign = np.uint64(1 << 63)
    return np.where(bits & sign, ~bits, bits | sign)


def _uuids(column: Column) -> Bytes:
    raw = (pc.fill_null(column, bytes(16)) if column.null_count else column).cast(pa.binary(16))
    start = raw.offset * 16
    data = np.frombuffer(raw.buffers()[1], np.uint8)[start : start + 16 * len(raw)]
    matrix = np.empty((len(raw), 17), np.uint8)
    matrix[:, 0] = 0x3A
    matrix[:, 1:] = data.reshape(-1, 16)
    return matrix


# ── rows with values that have no place in their columns ───────────────────────────────────────────


def _with_rest(parts: Sequence[KeyColumn], columns: Columns, rest: Column, keys: Keys) -> Keys:
    mask = np.zeros(len(keys), bool)
    replaced = []
    for row, values in _rests(rest):
        if any(part.column in values for part in parts):
            mask[row] = True
            replaced.append(encode([_at(part, columns, row, values) for part in parts]))
    if not replaced:
        return keys
    return pc.replace_with_mask(keys, pa.array(mask), pa.array(replaced, pa.binary()))


def _rests(rest: Column) -> list[tuple[int, dict[int, Packed]]]:
    rows = np.flatnonzero(np.asarray(rest.is_valid()))
    return [(int(row), unpack_columns(rest[row].as_py())) for row in rows]


def _at(part: KeyColumn, columns: Columns, row: int, values: Mapping[int, Packed]) -> KeyValue:
    if part.column in values:
        return _element(part, part.type.unpack(values[part.column]))
    (value,) = _values(part.type, _whole(columns[part.column]).slice(row, 1))
    return _element(part, value)
