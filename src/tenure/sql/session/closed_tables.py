"""Tables that a transaction is about to empty: other statements wait for it, and then start over.

Between the version that closes a table and the one that has its new indexes nobody may read or write it: see
`schema_change.in_transaction`. A statement that meets such a table gives up its pins, waits for the job of
that change, and is run again (40001, if it is not the first of a block).

Reads of the past are not concerned: the table has its former indexes until the commit that empties it.

Walk: `sql.names.session_names` and `statements.dml.writing` call `await_open` for each table that they find.
"""

from tenure.catalog.descriptors.definitions import Table
from tenure.schema_change.changer import Requester
from tenure.sql.session.answers import NotShort
from tenure.sql.session.block import Block
from tenure.sql.session.session_state import SessionState


def await_open(session: SessionState, block: Block, table: Table) -> None:
    """Returns if the table may be used; raises RetryError when it is worth another try."""
    if not table.is_closed or block.past is not None:
        return
    if session.is_inline:
        raise NotShort
    asked = Requester(check=session.interrupts.check_time)
    session.services.changer.await_change(block.use, table, asked)
