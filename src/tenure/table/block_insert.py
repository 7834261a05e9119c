"""Inserting many rows that are given column by column: what an INSERT of one after the other would write.

    columns ──► defaults ──► keys, values: a column at a time ──► no row there? ──► the transaction's buffer

Only a table without foreign keys, partial indexes and columns that follow from the row is written this way.
If anything is wrong with a row, nothing of the block is written: the caller inserts its rows by
`TableWriter.insert_all`, which says what is wrong with which.

Invariant (block-same): a block writes, byte for byte, what `TableWriter.insert_all` writes for its rows.

Walk: `sql.statements.dml.copy_blocks` -> `insert_block` -> `Layout.packed_columns` and the transaction.
"""

from collections.abc import Mapping, Sequence
from itertools import chain

from tenure.expr.types.datatype import Datum
from tenure.kv.keys import KEY_BYTES_MAX
from tenure.kv.transaction import Transaction
from tenure.table.compiled_index import CompiledIndex
from tenure.table.entry_makers import EntryBatch, secondary_entries
from tenure.table.rows import Layout
from tenure.table.write import TableWriter


def takes_blocks(layout: Layout) -> bool:
    """Whether rows of a table can be inserted in blocks."""
    return (
        not layout.following
        and not layout.table.foreign_keys
        and all(kept.is_public and kept.omits_null for kept in layout.columns.values())
        and all(_is_plain(layout, index) for index in layout.indexes.values() if index.is_written)
    )


def _is_plain(layout: Layout, index: CompiledIndex) -> bool:
    """Whether its entries follow from its columns and the table's primary key."""
    is_below = not index.is_primary and index.primary == layout.primary.id
    return index is layout.primary or (is_below and index.predicate is None)


def insert_block(
    txn: Transaction, writer: TableWriter, inserted: Mapping[int, Sequence[Datum]], rows: int
) -> bool:
    """Inserts rows of columns as their types accept them; False if one of the rows cannot be inserted."""
    layout = writer.layout
    columns = {id: inserted[id] if id in inserted else writer.defaults(id, rows) for id in layout.columns}
    needed = {kept.id for kept in layout.enforced} | set(layout.primary.columns)
    if any(None in columns[id] for id in needed):
        return False
    if writer.breaks_check(columns):
        return False
    keys = layout.primary.keys(columns)
    others = [index for index in layout.indexes.values() if index.is_written and index is not layout.primary]
    entries = [secondary_entries(index, columns, keys) for index in others]
    uniques = [_colliding(new) for index, new in zip(others, entries, strict=True) if index.is_unique]
    if not all(_can_add(txn, each) for each in (keys, *uniques)):
        return False
    if any(max(map(len, new.keys)) > KEY_BYTES_MAX for new in entries):
        return False
    pairs = [zip(new.keys, new.values, strict=True) for new in entries]
    txn.put_all(chain(zip(keys, layout.packed_columns(columns), strict=True), *pairs))
    return True


def _colliding(entries: EntryBatch) -> Sequence[bytes]:
    """The keys of rows without NULL: no other row may have them."""
    if not any(None in column for column in entries.columns):
        return entries.keys
    rows = zip(*entries.columns, strict=True)
    return [key for key, values in zip(entries.keys, rows, strict=True) if None not in values]


def _can_add(txn: Transaction, keys: Sequence[bytes]) -> bool:
    """Whether all of these keys differ, fit, and are free."""
    if not keys:
        return True
    return max(map(len, keys)) <= KEY_BYTES_MAX and len(set(keys)) == len(keys) and txn.are_absent(keys)
