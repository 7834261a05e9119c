"""Deferred foreign keys of a block: checked before it commits, or when SET CONSTRAINTS says so.

Walk: `sql.execution.session_transactions` calls `check_deferred` before a commit;
`statements.session.constraint_modes` calls it for SET CONSTRAINTS ... IMMEDIATE.
"""

from tenure.catalog.descriptors.definitions import Table, is_dropped
from tenure.sql.session.block import Block
from tenure.sql.session.closed_tables import await_open
from tenure.sql.session.session_state import SessionState
from tenure.table.deferred_references import ModeChange
from tenure.table.rows import Layout


def check_deferred(session: SessionState, block: Block, of: ModeChange | None = None) -> None:
    """Raises ForeignKeyViolation (23503). `of`: only those that it concerns."""
    if not block.deferred:
        return

    def layout_of(id: int) -> Layout | None:
        found = block.descriptor(id)
        if not isinstance(found, Table) or is_dropped(found):
            return None
        await_open(session, block, found)
        return block.layout(found)

    block.deferred.check(block.use.txn, layout_of, session.check, of=of, looks_again=block.is_read_committed)
