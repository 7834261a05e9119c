"""Savepoints of a session: what its block, variables, locks and portals were, to go back to.

Walk: `statements.session.transactions` calls `save` and `back_to`.
"""

from typing import TYPE_CHECKING

from tenure.sql.session import transaction_modes
from tenure.sql.session.block import Block, Savepoint

if TYPE_CHECKING:
    from tenure.sql.session.session import Session


def save(session: "Session", block: Block, name: str) -> None:
    marks = session.surroundings.mark_locks()
    portals = session.portals.portals.copy()
    block.savepoints.append(Savepoint(name, block.mark(), session.variables.state, marks, portals))


def back_to(session: "Session", block: Block, name: str) -> None:
    savepoint = block.back_to(name)
    session.variables.restore(savepoint.variables)
    transaction_modes.restore(session, block)
    session.surroundings.release_since(savepoint.locks)
    session.portals.keep(savepoint.portals)
