"""Reading some columns of many rows, without decoding the others.

    read = reader(layout, index, columns)       once per table version, index and columns
    read(key, value)                            a tuple, in the order of the columns

A column comes from the value, unchanged or unpacked by its type, or from the key where that contains it
exactly. The key is decoded only if a column comes from it.

Invariant (reader-same): for any columns, a reader returns the values of `Layout.row`; so does one of the
entries of a secondary index.

Walk: `Layout.reader` keeps them; `sql.rows.scan` reads tables with them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from tenure.base.errors import CorruptData, NewerFormat
from tenure.expr.types.datatype import Datum, Type
from tenure.kv.encoding import decode
from tenure.kv.quick_decoding import decode_one
from tenure.storage.engine import HEAD_BYTES
from tenure.table.columns import CompiledColumn
from tenure.table.compiled_index import CompiledIndex
from tenure.table.packing import Packed, unpack_all_columns, unpack_columns

FORMAT = b"\x01"
"""The first byte of every value here."""

Read: TypeAlias = Callable[[bytes, bytes], tuple[Datum, ...]]


def reader(
    columns: Mapping[int, CompiledColumn],
    parts: tuple[tuple[CompiledColumn, bool], ...],
    in_key: frozenset[int],
    wanted: tuple[int, ...],
) -> Read:
    """`parts` and `in_key` are those of a primary index."""
    places = {kept.id: place for place, (kept, _) in enumerate(parts) if kept.id in in_key}
    kept = [columns[id] for id in wanted]
    of_key = [
        (at, places[each.id], _key_reader(each, parts[places[each.id]][1]))
        for at, each in enumerate(kept)
        if each.id in places
    ]
    rest = [(at, each) for at, each in enumerate(kept) if each.id not in places]
    fixes = [fix for at, each in rest if (fix := _fix(at, each)) is not None]
    if not wanted:
        return lambda key, value: ()
    if len(of_key) == len(wanted):
        return _of_key([(place, read) for _, place, read in of_key], len(parts))
    if not of_key:
        return _of_value(wanted, fixes)
    return _of_both(wanted, fixes, of_key, len(parts))


def entry_reader(index: CompiledIndex, primary: CompiledIndex, wanted: tuple[int, ...]) -> Read | None:
    """The same from entries of a secondary index alone; None if they do not contain these columns.

    A unique index has the primary key in the value, another one at the end of the key.
    """
    parts = (*index.parts, *primary.parts)
    places: dict[int, tuple[int, Callable[[Any], Datum] | None]] = {}
    for place, (kept, is_descending) in enumerate(parts):
        if kept.type.key_is_exact:
            places.setdefault(kept.id, (place, _key_reader(kept, is_descending)))
    if not set(wanted) <= places.keys():
        return None
    picked, count, is_unique = [places[id] for id in wanted], len(index.parts), index.is_unique

    def read(key: bytes, value: bytes) -> tuple[Datum, ...]:
        check_format(value)
        elements = decode(key[HEAD_BYTES:])
        if is_unique:
            elements = (*elements[:count], *decode(value[len(FORMAT) :]))
        if len(elements) != len(parts):
            raise CorruptData(f'an entry of index "{index.name}" has {len(elements)} columns')
        return tuple([elements[place] if make is None else make(elements[place]) for place, make in picked])

    return read


Fix: TypeAlias = Callable[[list[Datum], dict[int, Any]], None]
"""Corrects a value that differs from its packed form: called with the values and the packed ones."""


def _of_value(ids: tuple[int, ...], fixes: list[Fix]) -> Read:
    if not fixes:
        return lambda key, value: tuple(map(body(value).get, ids))

    def read(key: bytes, value: bytes) -> tuple[Datum, ...]:
        packed = body(value)
        values = list(map(packed.get, ids))
        for fix in fixes:
            fix(values, packed)
        return tuple(values)

    return read


def _of_key(wanted: list[tuple[int, Callable[[Any], Datum] | None]], size: int) -> Read:
    def read(key: bytes, value: bytes) -> tuple[Datum, ...]:
        check_format(value)
        elements = key_elements(key, size)
        return tuple([elements[place] if make is None else make(elements[place]) for place, make in wanted])

    return read


def _of_both(
    ids: tuple[int, ...],
    fixes: list[Fix],
    of_key: list[tuple[int, int, Callable[[Any], Datum] | None]],
    size: int,
) -> Read:
    def read(key: bytes, value: bytes) -> tuple[Datum, ...]:
        packed = body(value)
        values = list(map(packed.get, ids))
        for fix in fixes:
            fix(values, packed)
        elements = key_elements(key, size)
        for at, place, make in of_key:
            values[at] = elements[place] if make is None else make(elements[place])
        return tuple(values)

    return read


def _key_reader(kept: CompiledColumn, is_descending: bool) -> Callable[[Any], Datum] | None:
    """None if the key contains it unchanged."""
    is_plain = type(kept.type)._from_key is Type._from_key
    return None if is_plain and not is_descending else kept.from_key


def _fix(at: int, kept: CompiledColumn) -> Fix | None:
    """None if a value is packed as itself, and NULL where there is none."""
    id, filled, kind = kept.id, kept.filled, kept.type
    is_as_packed = type(kind)._unpack is Type._unpack
    unpack = kind._unpack

    def unpacked(values: list[Datum], packed: dict[int, Packed]) -> None:
        if values[at] is not None:
            values[at] = unpack(values[at])

    def filled_in(values: list[Datum], packed: dict[int, Packed]) -> None:
        if id not in packed:
            values[at] = filled
        elif values[at] is not None:
            values[at] = unpack(values[at])

    if filled is not None:
        return filled_in
    return None if is_as_packed else unpacked


def key_elements(key: bytes, size: int) -> Sequence[Datum]:
    if size == 1:
        return (decode_one(key, HEAD_BYTES),)
    elements = decode(key[HEAD_BYTES:])
    if len(elements) != size:
        raise CorruptData(f"a key has {len(elements)} columns where {size} are expected")
    return elements


def body(value: bytes) -> dict[int, Packed]:
    check_format(value)
    return unpack_columns(value[len(FORMAT) :])


def all_bodies(values: Sequence[bytes]) -> list[dict[int, Packed]]:
    """As `body` of each, by one call."""
    for value in values:
        if value[:1] != FORMAT:
            check_format(value)
    return unpack_all_columns([value[len(FORMAT) :] for value in values])


def check_format(value: bytes) -> None:
    if value[:1] == FORMAT:
        return
    if value[:1] > FORMAT:
        raise NewerFormat(
            f"a row has format {value[0]}; this version reads {FORMAT[0]}",
            hint="Run the newer version that wrote it.",
        )
    raise CorruptData("a row has no format number")
