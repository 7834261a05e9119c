"""Reading some columns of many rows: what is not asked for is not made.

    read = reader(layout, index, columns)       once per table version, index and columns
    read(key, value)                            a tuple, in the order of the columns

A column comes from the value, as it is or unpacked by its type, or from the key where that holds it
exactly. The key is taken apart only if a column comes from it.

Invariant (reader-same): for any columns, a reader gives what `Layout.row` gives.

Walk: `Layout.reader` keeps them; `sql.rows_scan` reads tables with them.
"""

from collections.abc import Callable, Mapping
from itertools import repeat
from typing import Any, TypeAlias

from tenure.base.errors import CorruptData, NewerFormat
from tenure.expr.datatype import Datum, Type
from tenure.kv.encoding import decode
from tenure.storage.engine import HEAD_BYTES
from tenure.table.columns import Kept
from tenure.table.packing import unpack_columns

FORMAT = b"\x01"
"""The first byte of every value here."""

Read: TypeAlias = Callable[[bytes, bytes], tuple[Datum, ...]]


class _Missing:
    """Stands for a value that a row does not have."""


_MISSING = _Missing()


def reader(
    columns: Mapping[int, Kept],
    parts: tuple[tuple[Kept, bool], ...],
    in_key: frozenset[int],
    wanted: tuple[int, ...],
) -> Read:
    """`parts` and `in_key` are those of a primary index."""
    from_key = {kept.id: place for place, (kept, _) in enumerate(parts) if kept.id in in_key}
    if not wanted:
        return lambda key, value: ()
    if not from_key.keys() & set(wanted):
        return _of_value([columns[id] for id in wanted])
    if all(id in from_key for id in wanted):
        return _of_key([(from_key[id], columns[id]) for id in wanted], len(parts))
    return _of_both([(from_key.get(id), columns[id]) for id in wanted], len(parts))


def _of_value(wanted: list[Kept]) -> Read:
    ids = [kept.id for kept in wanted]
    if all(_is_as_packed(kept.type) and kept.filled is None for kept in wanted):

        def plain(key: bytes, value: bytes) -> tuple[Datum, ...]:
            return tuple(map(body(value).get, ids))

        return plain
    made = _unpackers(wanted)

    def unpacked(key: bytes, value: bytes) -> tuple[Datum, ...]:
        packed = map(body(value).get, ids, repeat(_MISSING))
        return tuple([make(each) for make, each in zip(made, packed, strict=True)])

    return unpacked


def _of_key(wanted: list[tuple[int, Kept]], size: int) -> Read:
    def read(key: bytes, value: bytes) -> tuple[Datum, ...]:
        check_format(value)
        elements = key_elements(key, size)
        return tuple([kept.from_key(elements[place]) for place, kept in wanted])

    return read


def _of_both(wanted: list[tuple[int | None, Kept]], size: int) -> Read:
    ids = [kept.id for _, kept in wanted]
    made = _unpackers([kept for _, kept in wanted])
    in_key = [(at, place, kept.from_key) for at, (place, kept) in enumerate(wanted) if place is not None]

    def read(key: bytes, value: bytes) -> tuple[Datum, ...]:
        packed = map(body(value).get, ids, repeat(_MISSING))
        values = [make(each) for make, each in zip(made, packed, strict=True)]
        elements = key_elements(key, size)
        for at, place, from_key in in_key:
            values[at] = from_key(elements[place])
        return tuple(values)

    return read


def _unpackers(wanted: list[Kept]) -> list[Callable[[Any], Datum]]:
    return [_unpacker(kept.type, kept.filled) for kept in wanted]


def _unpacker(kind: Type, filled: Datum) -> Callable[[Any], Datum]:
    if _is_as_packed(kind):
        return lambda packed: filled if packed is _MISSING else packed
    unpack = kind.unpack
    return lambda packed: filled if packed is _MISSING else unpack(packed)


def _is_as_packed(kind: Type) -> bool:
    """Whether a value is packed as itself."""
    return type(kind)._unpack is Type._unpack and type(kind).unpack is Type.unpack


def key_elements(key: bytes, size: int) -> tuple[Any, ...]:
    elements = decode(key[HEAD_BYTES:])
    if len(elements) != size:
        raise CorruptData(f"a key has {len(elements)} columns where {size} are expected")
    return elements


def body(value: bytes) -> dict[int, Any]:
    check_format(value)
    return unpack_columns(memoryview(value)[len(FORMAT) :])


def check_format(value: bytes) -> None:
    if value[:1] == FORMAT:
        return
    if value[:1] > FORMAT:
        raise NewerFormat(
            f"a row has format {value[0]}; this version reads {FORMAT[0]}",
            hint="Run the newer version that wrote it.",
        )
    raise CorruptData("a row has no format number")
