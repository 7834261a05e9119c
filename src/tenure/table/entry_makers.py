"""Entries of an index straight from the stored rows of the primary one: what is not needed is not made.

    make = entry_maker(layout, index)       once per table version and index
    make(key, value)                        the index's entry for that row, and the values of its columns

An entry of a secondary index needs the index's own columns; of a new primary index it needs those, and all
others packed as they are. `Layout.row` and `Layout.entry` take a row apart and put it together again, which
costs several times as much.

Invariant (maker-same): a maker gives, byte for byte, what `Layout.entry` gives for `Layout.row`.

Walk: `table.backfill` fills indexes with these; `table.validate` proves them with `key_maker`.
"""

from collections.abc import Callable
from typing import TypeAlias

from tenure.expr.types.datatype import Datum
from tenure.storage.engine import HEAD_BYTES
from tenure.table.compiled_index import CompiledIndex
from tenure.table.packing import pack
from tenure.table.readers import FORMAT, body, key_elements
from tenure.table.rows import IndexEntry, Layout

Values: TypeAlias = tuple[Datum, ...]
MakeEntry: TypeAlias = Callable[[bytes, bytes], tuple[IndexEntry, Values]]
MakeKey: TypeAlias = Callable[[bytes, bytes], tuple[bytes, Values]]


def entry_maker(layout: Layout, index: CompiledIndex) -> MakeEntry | None:
    """None if only the whole row tells: the index has a condition, or points into another primary one."""
    if index.predicate is not None or index is layout.primary:
        return None
    if index.is_primary:
        return _primary_maker(layout, index)
    return _secondary_maker(layout, index) if index.primary == layout.primary.id else None


def key_maker(layout: Layout, index: CompiledIndex) -> MakeKey | None:
    """The same for the keys of a unique index alone, as they are where none of the values is NULL."""
    if index.predicate is not None or not index.is_unique:
        return None
    read, prefix = layout.reader(layout.primary, index.columns), index.prefix

    def make(key: bytes, value: bytes) -> tuple[bytes, Values]:
        values = read(key, value)
        return prefix(values), values

    return make


def _secondary_maker(layout: Layout, index: CompiledIndex) -> MakeEntry:
    read, prefix, is_unique = layout.reader(layout.primary, index.columns), index.prefix, index.is_unique

    def make(key: bytes, value: bytes) -> tuple[IndexEntry, Values]:
        values = read(key, value)
        stem, primary = prefix(values), key[HEAD_BYTES:]
        if not is_unique:
            return IndexEntry(stem + primary, FORMAT), values
        return IndexEntry(stem + primary if None in values else stem, FORMAT + primary), values

    return make


def _primary_maker(layout: Layout, index: CompiledIndex) -> MakeEntry:
    former, columns = layout.primary, layout.columns
    read, prefix, size = layout.reader(former, index.columns), index.prefix, len(former.parts)
    places = {kept.id: place for place, (kept, _) in enumerate(former.parts) if kept.id in former.in_key}
    copied = [
        (id, places.get(id), kept)
        for id, kept in columns.items()
        if kept.is_written and id not in index.in_key
    ]

    def make(key: bytes, value: bytes) -> tuple[IndexEntry, Values]:
        packed = body(value)
        elements = key_elements(key, size)
        entry = {id: each for id, each in packed.items() if id not in columns}
        for id, place, kept in copied:
            if place is not None:
                copy = kept.type.pack(kept.from_key(elements[place]))
            elif id in packed:
                copy = packed[id]
            else:
                continue
            if copy is not None or not kept.omits_null:
                entry[id] = copy
        values = read(key, value)
        return IndexEntry(prefix(values), FORMAT + pack(entry)), values

    return make
