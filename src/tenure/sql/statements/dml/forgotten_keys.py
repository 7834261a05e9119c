"""Rows that violate a primary key which the same block has dropped are refused with an error that says so.

    BEGIN; ALTER TABLE t DROP CONSTRAINT t_pkey; INSERT INTO t ...  -- a key that is there

A row's place in the store is its primary key. Until the block commits, the rows of the table lie under the
former key, and two of one key cannot. It would have to write the whole table anew before it could take them:
that is done at COMMIT, of committed rows, and not in a block that has written some itself.

Walk: `statements.dml.writing` and `statements.dml.copy` ask when a row is in the way of another.
"""

from tenure.base.errors import NotSupported, UniqueViolation, UserError
from tenure.catalog.changes.index_changes import forgets_key
from tenure.catalog.descriptors.definitions import Table
from tenure.sql.execution.execution import Execution


def check_key_stays(execution: Execution, table: int, constraint: str | None = None) -> None:
    """NotSupported if the block has declared that a table's primary key goes, and this is its name."""
    use = execution.block.begun
    declared = None if use is None else use.draft.declared.get(table)
    if not isinstance(declared, Table) or not forgets_key(declared):
        return
    key = declared.index(declared.primary)
    if constraint is None or constraint == key.name:
        raise NotSupported(
            f'the primary key "{key.name}" of "{declared.name}" is dropped when the transaction commits: '
            "until then no equal keys can be written",
            hint="COMMIT first, and write the rows then.",
        )


def explain_violation(execution: Execution, error: UserError) -> None:
    """Raises the other error instead of a unique violation, if it is one of such a key."""
    if isinstance(error, UniqueViolation):
        check_key_stays(execution, error.table_id, error.constraint)
