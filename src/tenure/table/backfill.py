"""Filling an element that has become write_only, and emptying one that has become delete_only.

    v: delete_only ─► wait ─► v+1: write_only ─► wait ─► B ─► batch, batch, ... ─► validate ─► public

From B on, every writer keeps the element up to date; only entries of older rows are missing. A batch takes
the next keys that were visible at B and, in one short transaction, reads each row again: a newer write of the
row wins, and a deleted row gets nothing. The transaction conflicts with writers of the same rows and is then
repeated by `transact`.

A batch is bounded and can be repeated. `resume` is the key after the last one it read: the caller stores it,
in a transaction after the batch's own, and continues from there after a stop.

`source` is a snapshot at B. A transaction that is the only user of the table and has rows of its own passes
itself instead, and a `transact` that runs in it. If there are other users, the keys that it has written are
left out (`without`): it completes those rows itself, with its commit (`table.completion`).

A new primary index is filled before those that point into it.

An index of many rows is filled by a merge in the lake instead (`bulk.filling`), which calls `refill_index`
for the rows whose entries were overwritten meanwhile.

Invariant (backfill-whole): after the last batch the element is as if it had always existed, regardless of
concurrent writes and of how often batches were stopped and repeated.

Walk: the schema changer's job calls these with `Store.transact`, under its fence -> `Layout.entry`,
`TableWriter.fill`.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple, TypeVar

from tenure.base.errors import NotNullViolation, UniqueViolation
from tenure.expr.functions.function import Context
from tenure.kv.keys import KEY_BYTES_MAX, Keyspace, Span
from tenure.kv.transaction import Transaction
from tenure.table.columns import key_text
from tenure.table.compiled_index import CompiledIndex
from tenure.table.entry_makers import EntryBatch, MakeEntries, entry_maker
from tenure.table.foreign_keys import Tables
from tenure.table.read import Source, at
from tenure.table.rows import IndexEntry, Layout, Row, check_length, fits
from tenure.table.write import TableWriter

T = TypeVar("T")
Transact = Callable[[Callable[[Transaction], int]], int]
"""Runs a function in a transaction and commits, again on conflict: `Store.transact` or a fenced one."""

BATCH_ROWS = 100
"""Rows of the first transaction: few enough to conflict seldom with a writer."""

BATCH_ROWS_MIN, BATCH_ROWS_MAX = 10, 5_000
"""The least and greatest size of a batch: a commit costs as much as ten rows, and 5,000 take about 0.1 s."""


class Pace:
    """How many rows a batch has: twice as many after one without a conflict, half as many after one with."""

    def __init__(self) -> None:
        self.rows = BATCH_ROWS

    def faster(self) -> None:
        self.rows = min(BATCH_ROWS_MAX, 2 * self.rows)

    def slower(self) -> None:
        self.rows = max(BATCH_ROWS_MIN, self.rows // 2)

    def paced(self, transact: Transact) -> Transact:
        """The same, counting its attempts."""

        def run(body: Callable[[Transaction], int]) -> int:
            tries = 0

            def tried(txn: Transaction) -> int:
                nonlocal tries
                tries += 1
                return body(txn)

            try:
                return transact(tried)
            finally:
                (self.faster if tries <= 1 else self.slower)()

        return run


class FillBatch(NamedTuple):
    rows: int
    """How many rows it wrote."""
    resume: bytes | None
    """Where the next one starts; None after the last."""


def backfill_index(
    transact: Transact,
    source: Source,
    layout: Layout,
    index: int,
    context: Context,
    *,
    without: Collection[bytes] = (),
    resume: bytes = b"",
    rows_max: int = BATCH_ROWS,
) -> FillBatch:
    """Adds the entries of the next rows, except those `without`. Raises UniqueViolation if two are equal."""
    keyed = layout.indexes[index]
    span = layout.keyspace.head_span(layout.primary.head)
    make = entry_maker(layout, keyed)
    if make is not None and not isinstance(source, Transaction):
        return _fill_next(transact, source, layout, keyed, make, without, _rest(span, resume), rows_max)
    keys, following = _next_keys(source, span, resume, rows_max)
    keys = [key for key in keys if key not in without]
    return FillBatch(transact(lambda txn: _add(txn, layout, keyed, context, keys)) if keys else 0, following)


def _fill_next(
    transact: Transact,
    source: Source,
    layout: Layout,
    index: CompiledIndex,
    make: MakeEntries,
    without: Collection[bytes],
    span: Span,
    rows_max: int,
) -> FillBatch:
    """The same where rows need not be decoded: a transaction reads its rows by one scan.

    It finds rows that came after B, too. Their writers have made their entries, so they stay as they are. It
    ends with the last row of B: otherwise it might follow writers who append rows
    for ever.
    """
    last = next((key for key, _ in source.scan(span, limit=1, reverse=True)), None)
    if last is None:
        return FillBatch(0, None)
    following: bytes | None = None

    def fill(txn: Transaction) -> int:
        nonlocal following
        found = txn.rows(Span(span.lo, last + b"\0"), limit=rows_max)
        following = found[-1][0] + b"\0" if len(found) == rows_max else None
        return _add_made(txn, layout, index, make, [row for row in found if row[0] not in without])

    return FillBatch(transact(fill), following)


def refill_index(
    transact: Transact, layout: Layout, index: int, context: Context, keys: list[bytes]
) -> FillBatch:
    """Does the same for some rows, by their keys, anywhere in the table."""
    keyed = layout.indexes[index]
    return FillBatch(transact(lambda txn: _add(txn, layout, keyed, context, keys)), None)


def _add(txn: Transaction, layout: Layout, index: CompiledIndex, context: Context, keys: list[bytes]) -> int:
    make = entry_maker(layout, index)
    if make is not None:
        found = zip(keys, txn.get_many(keys), strict=True)
        stored = [(key, value) for key, value in found if value is not None]
        return _add_made(txn, layout, index, make, stored)
    added = 0
    for row, entry in _entries(txn, layout, index, context, keys):
        _check_primary(txn, layout, index, row)
        added += _add_one(txn, layout, index, row, entry)
    return added


def _add_made(
    txn: Transaction,
    layout: Layout,
    index: CompiledIndex,
    make: MakeEntries,
    stored: list[tuple[bytes, bytes]],
) -> int:
    """Adds the entries of some rows, which are decoded only if they conflict with another entry."""
    if not stored:
        return 0
    entries = make(stored)
    if _is_clear(txn, index, entries):
        txn.put_all(zip(entries.keys, entries.values, strict=True))
        return len(stored)
    txn.read_ahead(key for key in entries.keys if len(key) <= KEY_BYTES_MAX)
    added = 0
    for (key, value), (entry, values) in zip(stored, entries.entries, strict=True):
        if fits(entry) and not (index.is_primary and None in values):
            there = txn.get(entry.key)
            if there is None:
                txn.put(*entry)
                added += 1
            if there is None or there == entry.value:
                continue
        added += _add_one(txn, layout, index, layout.row(layout.primary, key, value), entry)
    return added


def _is_clear(txn: Transaction, index: CompiledIndex, entries: EntryBatch) -> bool:
    """Whether all of these entries can be added, and nothing is in the way of any."""
    if len(set(entries.keys)) < len(entries.keys) or max(map(len, entries.keys)) > KEY_BYTES_MAX:
        return False
    if index.is_primary and any(None in column for column in entries.columns):
        return False
    return txn.are_absent(entries.keys)


def _add_one(txn: Transaction, layout: Layout, index: CompiledIndex, row: Row, entry: IndexEntry) -> int:
    check_length(index, entry)
    if index.is_primary and index.has_null(row.values):
        raise _null(layout, index, row)
    stored = txn.get(entry.key)
    if stored == entry.value:
        return 0
    if stored is not None and not layout.is_of(index, stored, entry, row):
        raise duplicated(layout, index, row)
    txn.put(*entry)
    return 1


def _entries(
    txn: Transaction, layout: Layout, index: CompiledIndex, context: Context, keys: list[bytes]
) -> list[tuple[Row, IndexEntry]]:
    """The rows that still exist with their entries in the index; the entries are read ahead."""
    txn.read_ahead(keys)
    rows = [row for key in keys if (row := at(txn, layout, key)) is not None]
    entries = [(row, entry) for row in rows if (entry := layout.entry(index, row, context)) is not None]
    txn.read_ahead(entry.key for _, entry in entries if fits(entry))
    return entries


def _check_primary(txn: Transaction, layout: Layout, index: CompiledIndex, row: Row) -> None:
    """Entries that point into a new primary index identify rows only if its keys are unique: it is filled
    first.
    """
    primary = layout.indexes[index.primary]
    if index.is_primary or primary.is_public:
        return
    key = primary.head + primary.suffix(row.values)
    stored = txn.get(key)
    assert stored is not None, f'index "{primary.name}" is filled before "{index.name}"'
    if layout.row(primary, key, stored).key != row.key:
        raise duplicated(layout, primary, row)


def backfill_column(
    transact: Transact,
    source: Source,
    layout: Layout,
    column: int,
    tables: Tables,
    context: Context,
    *,
    resume: bytes = b"",
    rows_max: int = BATCH_ROWS,
) -> FillBatch:
    """Gives the next rows the column's computed value, or its default where they have none."""

    def fill(txn: Transaction) -> int:
        writer = TableWriter(layout, tables, context)
        txn.read_ahead(keys)
        rows = [row for key in keys if (row := at(txn, layout, key)) is not None]
        filled = sum(writer.fill(txn, row, column) != row for row in rows)
        writer.finish(txn)
        return filled

    keys, following = _next_keys(source, layout.keyspace.head_span(layout.primary.head), resume, rows_max)
    return FillBatch(transact(fill) if keys else 0, following)


def remove_index(
    transact: Transact,
    keyspace: Keyspace,
    table: int,
    index: int,
    *,
    resume: bytes = b"",
    rows_max: int = BATCH_ROWS,
) -> FillBatch:
    """Removes the next keys of an index that no writer adds to any more; its descriptor may be gone."""
    last = b""

    def remove(txn: Transaction) -> int:
        nonlocal last
        span = _rest(keyspace.index_span(table, index), resume)
        keys = [key for key, _ in txn.scan(span, limit=rows_max)]
        for key in keys:
            txn.delete(key)
        last = keys[-1] if keys else b""
        return len(keys)

    removed = transact(remove)
    return FillBatch(removed, last + b"\0" if removed == rows_max else None)


def duplicated(layout: Layout, index: CompiledIndex, row: Row) -> UniqueViolation:
    return UniqueViolation(
        f'could not create unique index "{index.name}"',
        detail=f"Key {key_text(layout.columns, index.columns, row.values)} is duplicated.",
        table=layout.table,
        constraint=index.name,
    )


def _null(layout: Layout, index: CompiledIndex, row: Row) -> NotNullViolation:
    kept = next(kept for kept, _ in index.parts if row.values[kept.id] is None)
    return NotNullViolation(
        f'column "{kept.name}" of relation "{layout.table.name}" contains null values',
        table=layout.table,
        column=kept.name,
    )


def _next_keys(source: Source, span: Span, resume: bytes, rows_max: int) -> tuple[list[bytes], bytes | None]:
    keys = [key for key, _ in source.scan(_rest(span, resume), limit=rows_max)]
    return keys, keys[-1] + b"\0" if len(keys) == rows_max else None


def _rest(span: Span, resume: bytes) -> Span:
    return Span(max(span.lo, resume), span.hi)
