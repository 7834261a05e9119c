"""Completes the rows that a transaction has written itself, for elements that come with its commit.

Other processes fill and prove committed rows for a new element, except those that the transaction has
written: they cannot know the final state of these. The transaction completes them here, right before it
commits.

    a row that it wrote        gets its entries in new indexes; where they are unique they must be free.
                               It satisfies new checks and NOT NULLs; targets of new foreign keys exist
    a row that it removed, or  no row refers to it by a new foreign key
    whose key it changed

A foreign key does not act on a row that was deleted before the key was declared, regardless of ON DELETE or
ON UPDATE: so references are checked here, and the referring rows are not changed.

Invariant (completion-checks): completing writes entries of new indexes and nothing else.
Invariant (completion-read): everything looked at counts as read: the commit proves that it still holds.

Walk: `schema_change.work` calls `complete_rows` in the transaction -> `table.backfill.refill_index`,
`table.references`.
"""

from collections.abc import Iterable, Iterator, Sequence

from tenure.catalog.descriptors.definitions import ForeignKey
from tenure.catalog.descriptors.elements import is_adding
from tenure.expr.functions.function import Context
from tenure.kv.transaction import Transaction
from tenure.table.backfill import refill_index
from tenure.table.foreign_keys import Tables
from tenure.table.read import at, exists, find_any
from tenure.table.references import Lookups, together
from tenure.table.rows import Layout, Row
from tenure.table.validate import broken_check


def complete_rows(txn: Transaction, layout: Layout, tables: Tables, context: Context) -> None:
    """Brings new elements up to date with the transaction's rows of a table.

    Their states in `layout` are write_only; `tables` returns the other ends of foreign keys.
    """
    keys = written_keys(txn, layout)
    if not keys:
        return
    rows = [row for key in keys if (row := at(txn, layout, key)) is not None]
    _check_rows(layout, rows, context)
    for index in layout.table.indexes:
        if is_adding(index):
            refill_index(lambda run: run(txn), layout, index.id, context, keys)
    for foreign_key in filter(is_adding, layout.table.foreign_keys):
        _check_references(txn, layout, foreign_key, tables(foreign_key.target), rows)
    inbound = list(_inbound(layout, tables))
    if inbound:
        former = _committed(txn, layout, keys)
        for foreign_key, referencing in inbound:
            _check_lost(txn, layout, foreign_key, referencing, former)


def written_keys(txn: Transaction, layout: Layout) -> list[bytes]:
    """The primary keys that a transaction has written: of rows that exist now, or that are deleted."""
    return txn.written(layout.keyspace.head_span(layout.primary.head))


def _check_rows(layout: Layout, rows: Iterable[Row], context: Context) -> None:
    checks = [each for each in layout.checks if is_adding(each.check)]
    for row in rows:
        for check in checks:
            if check.is_broken_by(row.values, context):
                raise broken_check(layout, check)


def _check_references(
    txn: Transaction, layout: Layout, foreign_key: ForeignKey, target: Layout, rows: Iterable[Row]
) -> None:
    before = txn.proof.mark()
    lookups = Lookups(layout, foreign_key, target)
    for lookup in together(txn, (each for row in rows for each in lookups.of(row))):
        error = lookup.error(txn)
        if error is not None:
            raise error
    txn.proof.relax(before)


def _inbound(layout: Layout, tables: Tables) -> Iterator[tuple[ForeignKey, Layout]]:
    for inbound in layout.table.inbound:
        referencing = layout if inbound.table == layout.table.id else tables(inbound.table)
        foreign_key = referencing.foreign_key(inbound.constraint)
        if foreign_key is not None and is_adding(foreign_key):
            yield foreign_key, referencing


def _committed(txn: Transaction, layout: Layout, keys: Sequence[bytes]) -> list[Row]:
    """The rows as they were before the transaction. It has read them all: its commit proves them."""
    committed = txn.child(committed_only=True)
    try:
        committed.read_ahead(keys)
        return [row for key in keys if (row := at(committed, layout, key)) is not None]
    finally:
        committed.rollback()


def _check_lost(
    txn: Transaction, target: Layout, foreign_key: ForeignKey, referencing: Layout, former: Iterable[Row]
) -> None:
    columns = foreign_key.target_columns
    values = (tuple(row.values[id] for id in columns) for row in former)
    lost = [each for each in values if None not in each and not exists(txn, target, columns, each)]
    lookups = Lookups(referencing, foreign_key, target)
    for row in find_any(txn, referencing, foreign_key.columns, lost):
        for lookup in lookups.of(row):
            error = lookup.error(txn)
            assert error is not None, "what is lost is there after all"
            raise error
