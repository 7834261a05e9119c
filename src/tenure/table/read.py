"""Reading rows: by primary key, along an index, or by the values of some columns.

All functions take a transaction, a view of one or a snapshot, and the layout of the version to read with.
Only public indexes are relied upon. A `Row` has all columns, for writers; `visible` returns those that
readers see.

    secondary entry ──► primary key ──► row

Simplifications: an index scan looks up its rows one by one.

Walk: `sql.statements.dml.writing` calls `at`, `table.foreign_keys` calls `find` and `exists` ->
`CompiledIndex.span` gives the keys, `Layout.row` decodes.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from tenure.base.errors import CorruptData
from tenure.expr.types.datatype import Datum
from tenure.kv.encoding import encode
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.kv.view import ReadView
from tenure.table.compiled_index import CompiledIndex, ScanBound
from tenure.table.rows import IndexEntry, Layout, Row

Source: TypeAlias = Transaction | Snapshot | ReadView


def get(source: Source, layout: Layout, key: Sequence[Datum]) -> Row | None:
    """The row with these values in the columns of the primary key."""
    assert len(key) == len(layout.primary.parts), "a value for each column of the primary key"
    return at(source, layout, layout.primary.prefix(key))


def at(source: Source, layout: Layout, key: bytes) -> Row | None:
    """The row under a key of the primary index."""
    value = source.get(key)
    return None if value is None else layout.row(layout.primary, key, value)


def rows(source: Source, layout: Layout, *, reverse: bool = False, limit: int | None = None) -> Iterator[Row]:
    """All rows, in the order of the primary key."""
    return scan(source, layout, layout.primary.id, reverse=reverse, limit=limit)


def scan(
    source: Source,
    layout: Layout,
    index: int,
    *,
    prefix: tuple[Datum, ...] = (),
    start: ScanBound | None = None,
    end: ScanBound | None = None,
    reverse: bool = False,
    limit: int | None = None,
) -> Iterator[Row]:
    """The rows along an index whose first columns are `prefix`, and the next between the bounds."""
    keyed = layout.indexes[index]
    assert keyed.is_public, f'index "{keyed.name}" cannot be relied upon'
    span = keyed.span(prefix, start=start, end=end)
    for key, value in source.scan(span, reverse=reverse, limit=limit):
        yield row_of(source, layout, keyed, IndexEntry(key, value))


def row_of(
    source: Source,
    layout: Layout,
    index: CompiledIndex,
    entry: IndexEntry,
    told: Callable[[int], None] | None = None,
) -> Row:
    """The row of an entry; `told` receives its size before it is decoded."""
    if index.is_primary:
        if told is not None:
            told(len(entry.value))
        return layout.row(index, *entry)
    key = layout.primary_key(index, entry)
    value = source.get(key)
    if value is None:
        raise CorruptData(f'index "{index.name}" of table "{layout.table.name}" points to a row that is gone')
    if told is not None:
        told(len(value))
    return layout.row(layout.indexes[index.primary], key, value)


def find(
    source: Source,
    layout: Layout,
    columns: Sequence[int],
    values: Sequence[Datum],
    *,
    limit: int | None = None,
) -> Iterator[Row]:
    """The rows that have these non-NULL values, by the best index."""
    wanted = dict(zip(columns, values, strict=True))
    index = index_on(layout, columns)
    if index is not None:
        prefix = tuple(wanted[id] for id in index.columns[: len(columns)])
        yield from _below(source, layout, index, prefix, limit)
        return
    left = limit
    for row in rows(source, layout):
        if left == 0:
            return
        if _has(layout, row, wanted):
            yield row
            left = None if left is None else left - 1


def exists(source: Source, layout: Layout, columns: Sequence[int], values: Sequence[Datum]) -> bool:
    """Whether a row has these non-NULL values: an index entry is enough."""
    index = index_on(layout, columns)
    if index is None:
        return next(find(source, layout, columns, values, limit=1), None) is not None
    wanted = dict(zip(columns, values, strict=True))
    prefix = tuple(wanted[id] for id in index.columns[: len(columns)])
    if index.is_unique and len(prefix) == len(index.parts):
        return source.get(index.prefix(prefix)) is not None
    return next(source.scan(index.span(prefix), limit=1), None) is not None


def find_any(
    source: Source, layout: Layout, columns: Sequence[int], keys: Sequence[Sequence[Datum]]
) -> Iterator[Row]:
    """The rows that have one of these keys, which have no NULLs; without an index, one scan for all."""
    if not keys:
        return
    if index_on(layout, columns) is not None:
        for values in keys:
            yield from find(source, layout, columns, values)
        return
    kept = [layout.columns[id] for id in columns]

    def comparable(values: Sequence[Datum]) -> bytes:
        return encode([each.type.key(value) for each, value in zip(kept, values, strict=True)])

    wanted = {comparable(values) for values in keys}
    for row in rows(source, layout):
        if comparable([row.values[id] for id in columns]) in wanted:
            yield row


def _below(
    source: Source, layout: Layout, index: CompiledIndex, prefix: tuple[Datum, ...], limit: int | None
) -> Iterator[Row]:
    if not (index.is_unique and len(prefix) == len(index.parts)):
        yield from scan(source, layout, index.id, prefix=prefix, limit=limit)
        return
    key = index.prefix(prefix)
    value = source.get(key)
    if value is not None:
        yield row_of(source, layout, index, IndexEntry(key, value))


def index_on(layout: Layout, columns: Sequence[int]) -> CompiledIndex | None:
    """A public index whose keys begin with these columns in any order; a unique one if there is."""
    fit = [
        index
        for index in layout.indexes.values()
        if index.is_public and index.predicate is None and set(index.columns[: len(columns)]) == set(columns)
    ]
    return min(fit, key=lambda index: (not index.is_unique, len(index.parts), index.id), default=None)


def _has(layout: Layout, row: Row, wanted: dict[int, Datum]) -> bool:
    """Compares as keys do: 1.0 is 1.00."""
    return all(
        layout.columns[id].type.key(row.values[id]) == layout.columns[id].type.key(value)
        for id, value in wanted.items()
    )


def visible(layout: Layout, row: Row) -> dict[int, Datum]:
    """What readers see of a row: the public columns, by id."""
    return {id: row.values[id] for id in layout.public}
