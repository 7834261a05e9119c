"""Rows as keys and values: the layout of one version of a table.

    primary index    key    head · key columns                  value  format · {column id: packed}
    non-unique       key    head · parts · primary key          value  format
    unique           key    head · parts                        value  format · primary key
      with a NULL    key    head · parts · primary key          value  format · primary key

A primary index holds whole rows; while one is built to replace another there are two. A column that the key
contains exactly is not repeated in the value. "Primary key" means the key columns of the primary index that
the entry points into, as encoded in its keys. So equal rows of a unique index collide on one key, and NULLs
are never equal.

A row keeps what this version does not understand: values under unknown column ids are carried over unchanged.
A column without a value in the row is `absent`: it reads as the column's `filled` value, or NULL, and stays
absent until a write gives it a value.

Invariant (row-carry): rewriting a row keeps the values of column ids that the writer's version
does not know.
Invariant (row-filled): a row written before a column existed reads as the column's `filled`,
even if its default has changed since.

Simplifications: there is one format number.

Walk: `Layouts.of` compiles a version once -> `table.write`, `table.read` and `table.backfill`
turn rows into entries (`Layout.entry`) and back (`Layout.row`); queries read some columns
(`Layout.reader`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from tenure.base.errors import CorruptData, LimitExceeded
from tenure.catalog.descriptors.definitions import EnumType, ForeignKey, Table
from tenure.expr.functions.function import Context
from tenure.expr.tree.compiled import Evaluate
from tenure.expr.types.datatype import Datum
from tenure.expr.types.type_names import EnumLookup
from tenure.kv.encoding import decode, encode
from tenure.kv.keys import KEY_BYTES_MAX, Keyspace
from tenure.storage.engine import HEAD_BYTES
from tenure.table.columns import CompiledCheck, CompiledColumn, Values, compiler, types_of
from tenure.table.compiled_index import CompiledIndex
from tenure.table.packing import pack
from tenure.table.readers import FORMAT, Read, body, check_format, entry_reader, reader

LAYOUTS_MAX = 10_000
"""Compiled table versions that are cached; beyond, all are dropped. A node rarely serves that many."""

_NONE_ABSENT: frozenset[int] = frozenset()


class Row(NamedTuple):
    key: bytes
    """Its key in the table's primary index."""
    values: Values
    """The values of all columns that the version knows, in any state."""
    absent: frozenset[int] = _NONE_ABSENT
    unknown: Mapping[int, object] = {}
    """Packed values of columns that the version does not know."""


class IndexEntry(NamedTuple):
    key: bytes
    value: bytes


class Layout:
    """A table version, compiled. Made by `Layouts.of`."""

    def __init__(self, table: Table, keyspace: Keyspace, enums: EnumLookup | None = None) -> None:
        self.table = table
        self.keyspace = keyspace
        types = types_of(table, enums)
        compiled = compiler(types, enums)
        self.columns = {
            column.id: CompiledColumn(column, types[column.id], compiled) for column in table.columns
        }
        self.indexes = {
            index.id: CompiledIndex(index, self.columns, keyspace.head(table.id, index.id), compiled)
            for index in table.indexes
        }
        self.primary = self.indexes[table.primary]
        self.checks = tuple(CompiledCheck(check, compiled) for check in table.checks)
        self.public = tuple(kept.id for kept in self.columns.values() if kept.is_public)
        self.has_enums = any(column.type.enum for column in table.columns)
        self.following = _following(self.columns.values())
        self.enforced = tuple(kept for kept in self.columns.values() if kept.is_enforced)
        """Columns that must not be NULL in written rows."""
        self._packers = {
            index.id: [
                (kept.id, kept.pack, kept.omits_null)
                for kept in self.columns.values()
                if kept.is_written and kept.id not in index.in_key
            ]
            for index in self.indexes.values()
            if index.is_primary
        }
        self._readers: dict[tuple[int, tuple[int, ...]], Read] = {}
        self._entry_readers: dict[tuple[int, tuple[int, ...]], Read | None] = {}

    def foreign_key(self, id: int) -> ForeignKey | None:
        return next((each for each in self.table.foreign_keys if each.id == id), None)

    def key(self, values: Values) -> bytes:
        """A row's key in the table's primary index."""
        return self.primary.head + self.primary.suffix(values)

    # ── rows to entries ────────────────────────────────────────────────────────────────────────

    def entry(self, index: CompiledIndex, row: Row, context: Context) -> IndexEntry | None:
        """The entry of an index for a row: None, if its predicate does not hold."""
        if index is self.primary:
            return IndexEntry(row.key, self._packed(index, row))
        if index.is_primary:
            return IndexEntry(index.head + index.suffix(row.values), self._packed(index, row))
        if index.predicate is not None and index.predicate(row.values, context) is not True:
            return None
        stem = index.head + index.suffix(row.values)
        primary = self._suffix_in(self.indexes[index.primary], row)
        if not index.is_unique:
            return IndexEntry(stem + primary, FORMAT)
        return IndexEntry(stem + primary if index.has_null(row.values) else stem, FORMAT + primary)

    def _suffix_in(self, primary: CompiledIndex, row: Row) -> bytes:
        return row.key[HEAD_BYTES:] if primary is self.primary else primary.suffix(row.values)

    def _packed(self, index: CompiledIndex, row: Row) -> bytes:
        packed = dict(row.unknown)
        values, absent = row.values, row.absent
        for id, make, omits_null in self._packers[index.id]:
            value = values[id]
            if value is None:
                if omits_null or id in absent:
                    continue
            elif id in absent:
                continue
            elif make is not None:
                value = make(value)
            packed[id] = value
        return FORMAT + pack(packed)

    def packed_columns(self, columns: Mapping[int, Sequence[Datum]]) -> list[bytes]:
        """The values in the primary index of several new rows, which are given column by column.

        All columns are to be public, and none `filled`: so NULL is left out.
        """
        packers = self._packers[self.primary.id]
        ids = [id for id, _, _ in packers]
        packed = [_packable(columns[id], make) for id, make, _ in packers]
        rows = zip(*packed, strict=True) if packed else (() for _ in next(iter(columns.values())))
        if any(None in each for each in packed):
            return [
                FORMAT + pack({id: each for id, each in zip(ids, row, strict=True) if each is not None})
                for row in rows
            ]
        return [FORMAT + pack(dict(zip(ids, row, strict=True))) for row in rows]

    def is_of(self, index: CompiledIndex, stored: bytes, entry: IndexEntry, row: Row) -> bool:
        """Whether the value stored under an entry's key is this row's, and not that of an equal one."""
        if index.id == self.primary.id or not index.is_unique:
            return True
        if index.is_primary:
            return self.row(index, entry.key, stored).key == row.key
        return stored == entry.value

    # ── entries to rows ────────────────────────────────────────────────────────────────────────

    def row(self, index: CompiledIndex, key: bytes, value: bytes) -> Row:
        """Decodes a row from a primary index."""
        packed = body(value)
        values: dict[int, Datum] = {}
        absent: list[int] = []
        in_key = _from_key(index, key)
        for id, kept in self.columns.items():
            if id in in_key:
                values[id] = in_key[id]
            elif id in packed:
                values[id] = kept.type.unpack(packed.pop(id))
            else:
                values[id] = kept.filled
                absent.append(id)
        for id in in_key:
            packed.pop(id, None)
        at = key if index is self.primary else self.key(values)
        return Row(at, values, frozenset(absent) if absent else _NONE_ABSENT, packed)

    def reader(self, index: CompiledIndex, columns: tuple[int, ...]) -> Read:
        """Returns a function that makes a tuple of some columns from an entry of a primary index; much faster
        than `row`.
        """
        read = self._readers.get((index.id, columns))
        if read is None:
            read = reader(self.columns, index.parts, index.in_key, columns)
            self._readers[index.id, columns] = read
        return read

    def entry_reader(self, index: CompiledIndex, columns: tuple[int, ...]) -> Read | None:
        """The same from the entries of a secondary index, if they contain these columns."""
        key = (index.id, columns)
        if key not in self._entry_readers:
            self._entry_readers[key] = entry_reader(index, self.indexes[index.primary], columns)
        return self._entry_readers[key]

    def primary_key(self, index: CompiledIndex, entry: IndexEntry) -> bytes:
        """The key of a secondary entry's row in its primary index."""
        primary = self.indexes[index.primary]
        if index.is_unique:
            check_format(entry.value)
            return primary.head + entry.value[len(FORMAT) :]
        elements = decode(entry.key[HEAD_BYTES:])
        return primary.head + encode(elements[len(index.parts) :])


def _packable(values: Sequence[Datum], make: Callable[[Datum], object] | None) -> Sequence[object]:
    if make is None:
        return values
    return [None if value is None else make(value) for value in values]


def _following(columns: Iterable[CompiledColumn]) -> list[list[tuple[CompiledColumn, Evaluate]]]:
    """Computed columns, group by group: each may depend on those before it."""
    written = [kept for kept in columns if kept.is_written]
    computed = [(kept, kept.computed) for kept in written if kept.computed is not None]
    generated = [(kept, kept.generated) for kept in written if kept.generated is not None]
    return [group for group in (computed, generated) if group]


def _from_key(index: CompiledIndex, key: bytes) -> dict[int, Datum]:
    elements = decode(key[HEAD_BYTES:])
    if len(elements) != len(index.parts):
        raise CorruptData(f'a key of index "{index.name}" has {len(elements)} columns')
    return {
        kept.id: kept.from_key(element)
        for (kept, _), element in zip(index.parts, elements, strict=True)
        if kept.id in index.in_key
    }


def key_values(index: CompiledIndex, key: bytes) -> dict[int, Datum]:
    """The columns of an index from a key without its head."""
    pairs = zip(index.parts, decode(key), strict=False)
    return {kept.id: kept.from_key(element) for (kept, _), element in pairs}


def check_length(index: CompiledIndex, entry: IndexEntry) -> None:
    if not fits(entry):
        raise LimitExceeded(
            f'index row size {len(entry.key)} exceeds maximum {KEY_BYTES_MAX} for index "{index.name}"',
            hint="Index a shorter value, such as a hash of the column.",
        )


def fits(entry: IndexEntry) -> bool:
    return len(entry.key) <= KEY_BYTES_MAX


class Layouts:
    """Compiled layouts by (id, version), for one tenant; for all threads of a node."""

    def __init__(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace
        self._kept: dict[tuple[int, int], tuple[Layout, tuple[EnumType, ...]]] = {}

    def of(self, table: Table, enums: EnumLookup | None = None) -> Layout:
        """The layout of a version, with the enums as the caller sees them.

        A transaction's own, uncommitted copy has the same version as another's: so the table itself
        is compared too.
        """
        kept = self._kept.get((table.id, table.version))
        if kept is not None and kept[0].table is table and not kept[1] and not kept[0].has_enums:
            return kept[0]
        used = tuple(enums(column.type.enum) for column in table.columns if enums and column.type.enum)
        if kept is not None:
            layout, with_enums = kept
            if (layout.table is table or layout.table == table) and with_enums == used:
                return layout
        if len(self._kept) >= LAYOUTS_MAX:
            self._kept.clear()
        layout = Layout(table, self._keyspace, enums)
        self._kept[table.id, table.version] = layout, used
        return layout
