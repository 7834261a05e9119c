"""Entries of an index made directly from the stored rows of the primary one, without decoding other columns.

    make = entry_maker(layout, index)       once per table version and index
    make([(key, value), ...])               the index's entries for those rows, and the values of its columns:
                                            keys, values and columns, each by itself

An entry of a secondary index needs the index's own columns; of a new primary index it needs those, and all
others packed as they are. `Layout.row` and `Layout.entry` take a row apart and put it together again, which
costs several times as much. The keys of many rows are made together, column by column.

Invariant (maker-same): a maker returns, byte for byte, the result of `Layout.entry` for `Layout.row`.

Walk: `table.backfill` fills indexes with these; `table.validate` proves them with `key_maker`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import add
from typing import Any, NamedTuple, TypeAlias

from tenure.expr.types.datatype import Datum
from tenure.storage.engine import HEAD_BYTES
from tenure.table.columns import CompiledColumn
from tenure.table.compiled_index import CompiledIndex
from tenure.table.packing import pack
from tenure.table.readers import FORMAT, all_bodies, key_elements
from tenure.table.rows import IndexEntry, Layout

Values: TypeAlias = tuple[Datum, ...]
Stored: TypeAlias = Sequence[tuple[bytes, bytes]]
"""Keys and values of rows, as the primary index has them."""


class EntryBatch(NamedTuple):
    """The entries of some rows, in their order."""

    keys: Sequence[bytes]
    values: Sequence[bytes]
    columns: Sequence[Sequence[Datum]]
    """The values of the index's columns, column by column."""

    @property
    def entries(self) -> "Iterable[tuple[IndexEntry, Values]]":
        return zip(map(IndexEntry, self.keys, self.values), zip(*self.columns, strict=True), strict=True)


MakeEntries: TypeAlias = Callable[[Stored], EntryBatch]
MakeKeys: TypeAlias = Callable[[Stored], Iterable[tuple[bytes, Values]]]


def entry_maker(layout: Layout, index: CompiledIndex) -> MakeEntries | None:
    """None if the whole row is needed: the index has a condition, or points into another primary one."""
    if index.predicate is not None or index is layout.primary:
        return None
    if index.is_primary:
        return _primary_maker(layout, index)
    return _secondary_maker(layout, index) if index.primary == layout.primary.id else None


def key_maker(layout: Layout, index: CompiledIndex) -> MakeKeys | None:
    """The same for the keys of a unique index alone, where none of the values is NULL."""
    if index.predicate is not None or not index.is_unique:
        return None
    read, columns = layout.reader(layout.primary, index.columns), index.columns

    def make(stored: Stored) -> Iterable[tuple[bytes, Values]]:
        rows = [read(key, value) for key, value in stored]
        return zip(index.keys(dict(zip(columns, zip(*rows, strict=True), strict=False))), rows, strict=True)

    return make


def _secondary_maker(layout: Layout, index: CompiledIndex) -> MakeEntries:
    read, columns = layout.reader(layout.primary, index.columns), index.columns

    def make(stored: Stored) -> EntryBatch:
        by_column = zip(*[read(key, value) for key, value in stored], strict=True)
        return secondary_entries(
            index, dict(zip(columns, by_column, strict=True)), [key for key, _ in stored]
        )

    return make


def secondary_entries(
    index: CompiledIndex, columns: Mapping[int, Sequence[Datum]], keys: Sequence[bytes]
) -> EntryBatch:
    """The entries of a secondary index for rows that are given column by column, with their primary keys."""
    wanted = [columns[id] for id in index.columns]
    stems = index.keys(columns)
    primaries = [key[HEAD_BYTES:] for key in keys]
    if not index.is_unique:
        return EntryBatch(list(map(add, stems, primaries)), [FORMAT] * len(stems), wanted)
    if any(None in column for column in wanted):
        stems = [
            stem + primary if None in values else stem
            for stem, primary, values in zip(stems, primaries, zip(*wanted, strict=True), strict=True)
        ]
    return EntryBatch(stems, [FORMAT + primary for primary in primaries], wanted)


def _primary_maker(layout: Layout, index: CompiledIndex) -> MakeEntries:
    former = layout.primary
    places = {kept.id: place for place, (kept, _) in enumerate(former.parts) if kept.id in former.in_key}
    written = [kept for kept in layout.columns.values() if kept.is_written and kept.id not in index.in_key]

    def make(stored: Stored) -> EntryBatch:
        elements = [key_elements(key, len(former.parts)) for key, _ in stored]
        bodies = all_bodies([value for _, value in stored])
        columns = {kept.id: _read(kept, places.get(kept.id), elements, bodies) for kept, _ in index.parts}
        copied = [_Copied(kept, _from_key(kept, places.get(kept.id), elements)) for kept in written]
        packed = list(_packed(bodies, copied, layout.columns))
        return EntryBatch(index.keys(columns), packed, [columns[id] for id in index.columns])

    return make


class _Copied(NamedTuple):
    """A column that a new primary index has in its values."""

    column: CompiledColumn
    from_key: Sequence[Any] | None
    """Packed, where the former one has it in its keys."""


def _read(
    kept: CompiledColumn,
    place: int | None,
    elements: Sequence[Sequence[Any]],
    bodies: Sequence[dict[int, Any]],
) -> Sequence[Datum]:
    if place is not None:
        return [kept.from_key(each[place]) for each in elements]
    id, unpack, filled = kept.id, kept.type.unpack, kept.filled
    return [unpack(each[id]) if id in each else filled for each in bodies]


def _from_key(
    kept: CompiledColumn, place: int | None, elements: Sequence[Sequence[Any]]
) -> Sequence[Any] | None:
    return None if place is None else [kept.type.pack(kept.from_key(each[place])) for each in elements]


def _packed(
    bodies: Sequence[dict[int, Any]], copied: Sequence[_Copied], columns: Mapping[int, CompiledColumn]
) -> Iterable[bytes]:
    """The values of the new index; what this version does not know comes first, as it is."""
    steps = [(column.id, from_key, column.omits_null) for column, from_key in copied]
    for at, packed in enumerate(bodies):
        is_known = packed.keys() <= columns.keys()
        entry = {} if is_known else {id: each for id, each in packed.items() if id not in columns}
        for id, from_key, omits_null in steps:
            if from_key is not None:
                copy = from_key[at]
            elif id in packed:
                copy = packed[id]
            else:
                continue
            if copy is not None or not omits_null:
                entry[id] = copy
        yield FORMAT + pack(entry)
