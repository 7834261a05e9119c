"""Tables that a transaction is about to empty, and names that it gives to other objects: others wait for it.

Between the version that closes a table and the one that has its new indexes nobody may read or write it: see
`schema_change.in_transaction`. A statement that meets such a table gives up its pins, waits for the job of
that change, and is run again (40001, if it is not the first of a block).

A name that the transaction takes from one object and gives to another is closed likewise: a statement that
looks it up would use the former object.

Reads of the past are not concerned: the table has its former indexes, and the name its former object, until
the transaction commits.

Walk: `sql.names.session_names` and `statements.dml.writing` call `await_open` for each table that they find;
the former calls `await_name` for each name.
"""

from tenure.catalog.descriptors.definitions import AnyDescriptor, Table
from tenure.schema_change.declared_changes import Requester
from tenure.sql.session.answers import NotShort
from tenure.sql.session.block import Block
from tenure.sql.session.session_state import SessionState


def await_open(session: SessionState, block: Block, table: Table) -> None:
    """Returns if the table may be used; raises RetryError when it is worth another try."""
    if table.is_closed:
        _await(session, block, table)


def await_name(session: SessionState, block: Block, found: AnyDescriptor) -> None:
    """The same for an object that was found by its name."""
    if found.closed_by:
        _await(session, block, found)


def _await(session: SessionState, block: Block, changing: AnyDescriptor) -> None:
    if block.past is not None:
        return
    if session.is_inline:
        raise NotShort
    requester = Requester(check=session.interrupts.check_time)
    session.services.changer.await_change(block.use, changing, requester)
