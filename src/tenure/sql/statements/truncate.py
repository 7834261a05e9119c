"""TRUNCATE: all rows of some tables, as one change of the transaction.

Rows are deleted one by one within the transaction's bounds: a table that is too large for one
commit is refused (54000). Sequences restart at once, whatever becomes of the transaction.

Walk: `sql.planning` -> `truncate` -> `table.write.Writer.delete`.
"""

from tenure.catalog.changes import owned_sequences, referring_to
from tenure.catalog.descriptors import Table
from tenure.expr.errors import NotSupported
from tenure.sql.parse import Tree, items, option
from tenure.sql.statements.definitions import Definer, path_of
from tenure.sql.statements.writing import CHECKED_ROWS, writer_of
from tenure.table import read
from tenure.table.rows import Layout, Row


def truncate(definer: Definer, tree: Tree) -> str | None:
    tables = {each.id: each for each in _named(definer, tree)}
    _follow(definer, tables, is_cascade=option(tree, "behavior") == "DROP_CASCADE")
    txn, block, session = definer.use.txn, definer.execution.block, definer.session
    writers = []
    for id in tables:
        seen = block.descriptor(id)
        assert isinstance(seen, Table), "the table was found a moment ago"
        writer = writer_of(definer.execution, seen)
        writers.append(writer)
        for row in _rows(definer, writer.layout):
            definer.execution.check()
            writer.delete(txn, row)
    for writer in writers:
        writer.finish(txn, definer.execution.check)
    if tree.restart_seqs:
        for table in tables.values():
            for sequence in owned_sequences(definer.draft, definer.known, table):
                session.parts.sequences.restart(sequence, fence=session.surroundings.fence)
    return None


def _rows(definer: Definer, layout: Layout) -> list[Row]:
    """All of them; too many are refused before any is deleted."""
    found: list[Row] = []
    for row in read.rows(definer.use.txn, layout):
        found.append(row)
        if not len(found) % CHECKED_ROWS:
            definer.execution.check()
            definer.use.txn.check_rows(len(found))
    definer.use.txn.check_rows(len(found))
    return found


def _named(definer: Definer, tree: Tree) -> list[Table]:
    return [definer.table(path_of(each), each.location + 1) for each in items(tree.relations)]


def _follow(definer: Definer, tables: dict[int, Table], *, is_cascade: bool) -> None:
    """Adds the tables that refer to these, or refuses."""
    left = list(tables.values())
    while left:
        table = left.pop(0)
        for referring in referring_to(definer.draft, definer.known, table):
            if referring.table in tables:
                continue
            if not is_cascade:
                raise NotSupported(
                    "cannot truncate a table referenced in a foreign key constraint",
                    detail=f'Table "{referring.table_name}" references "{table.name}".',
                    hint=f'Truncate table "{referring.table_name}" at the same time, '
                    "or use TRUNCATE ... CASCADE.",
                )
            definer.notice(f'truncate cascades to table "{referring.table_name}"')
            tables[referring.table] = definer.declared(referring.table)
            left.append(tables[referring.table])
