"""TRUNCATE: new, empty indexes take the place of all indexes of some tables.

No row and no key is read, so the cost does not depend on the number of rows, and a damaged table can be
emptied. The transaction's own writes to the table are dropped; the committed rows stay in the former indexes,
which reads of the past use. Other transactions must not write to those once the new ones exist:
`schema_change.in_transaction` closes the tables to them until this transaction has ended.

Sequences restart at once, also if the transaction is rolled back.

Walk: `statements.ddl.ddl_statements` -> `truncate` -> `catalog.changes.table_changes.empty`; the commit hands
all to the schema changer.
"""

from tenure.base.errors import NotSupported
from tenure.catalog.accounts.privileges import TRUNCATE
from tenure.catalog.changes.table_changes import empty, owned_sequences, referring_to
from tenure.catalog.descriptors.definitions import Table
from tenure.sql.statements.ddl.definition import Definer, path_of
from tenure.sql.text.parse import Tree, items, option


def truncate(definer: Definer, tree: Tree) -> str | None:
    tables = {each.id: each for each in _named(definer, tree)}
    for each in tables.values():
        _require(definer, each)
    _follow(definer, tables, is_cascade=option(tree, "behavior") == "DROP_CASCADE")
    restarted = [
        sequence
        for table in (tables.values() if tree.restart_seqs else ())
        for sequence in owned_sequences(definer.draft, definer.use, table)
    ]
    for sequence in restarted:
        definer.require_owner(sequence)
    txn, fence = definer.use.txn, definer.session.locks.fence
    for id in tables:
        empty(definer.draft, definer.use, id)
        txn.forget_writes(definer.node.store.keyspace.table_span(id))
    for sequence in restarted:
        definer.node.sequences.restart(sequence, fence=fence)
    return None


def _require(definer: Definer, table: Table) -> None:
    if not definer.names.is_temporary(table):
        definer.rights.require(table, TRUNCATE)


def _named(definer: Definer, tree: Tree) -> list[Table]:
    return [definer.table(path_of(each), each.location + 1) for each in items(tree.relations)]


def _follow(definer: Definer, tables: dict[int, Table], *, is_cascade: bool) -> None:
    """Adds the tables that refer to these, or refuses."""
    left = list(tables.values())
    while left:
        table = left.pop(0)
        for referring in referring_to(definer.draft, definer.use, table):
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
            _require(definer, tables[referring.table])
            left.append(tables[referring.table])
