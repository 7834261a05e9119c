"""Inserting many rows that are given column by column: what an INSERT of one after the other would write.

    columns ──► defaults ──► keys, values: a column at a time ──► no row there? ──► the transaction's buffer

Only a table without other indexes, checks, foreign keys and columns that follow from the row is written this
way. If anything is wrong with a row, nothing of the block is written: the caller inserts its rows by
`TableWriter.insert_all`, which says what is wrong with which.

Invariant (block-same): a block writes, byte for byte, what `TableWriter.insert_all` writes for its rows.

Walk: `sql.statements.dml.copy_blocks` -> `insert_block` -> `Layout.packed_columns` and the transaction.
"""

from collections.abc import Mapping, Sequence

from tenure.expr.types.datatype import Datum
from tenure.kv.keys import KEY_BYTES_MAX
from tenure.kv.transaction import Transaction
from tenure.table.rows import Layout
from tenure.table.write import TableWriter


def takes_blocks(layout: Layout) -> bool:
    """Whether rows of a table can be inserted in blocks."""
    return (
        not layout.following
        and not layout.checks
        and not layout.table.foreign_keys
        and all(kept.is_public and kept.omits_null for kept in layout.columns.values())
        and [index for index in layout.indexes.values() if index.is_written] == [layout.primary]
    )


def insert_block(
    txn: Transaction, writer: TableWriter, given: Mapping[int, Sequence[Datum]], rows: int
) -> bool:
    """Inserts rows of columns as their types accept them; False if one of the rows cannot be inserted."""
    layout = writer.layout
    columns = {id: given[id] if id in given else _defaults(writer, id, rows) for id in layout.columns}
    needed = {kept.id for kept in layout.enforced} | set(layout.primary.columns)
    if any(None in columns[id] for id in needed):
        return False
    keys = layout.primary.keys(columns)
    if max(map(len, keys)) > KEY_BYTES_MAX or len(set(keys)) < rows or not txn.are_absent(keys):
        return False
    txn.put_all(zip(keys, layout.packed_columns(columns), strict=True))
    return True


def _defaults(writer: TableWriter, column: int, rows: int) -> Sequence[Datum]:
    if writer.layout.columns[column].default is None:
        return (None,) * rows
    return [writer.default(column) for _ in range(rows)]
