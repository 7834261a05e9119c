"""What a portal may do, and the rows that it gives: some at a time.

    bound ──run──► rows to come ──all given──► at its end: gives no more rows, and is no error
      │                └──error──► failed                 │
      └──run, and it has no rows──► over ◄────────────────┘ 55000 for one that was run or has failed

In a block that has failed no portal runs but one that ends the block (25P02).

Walk: `sql.session.session` asks `check_may_run` and `batch` at each Execute; FETCH and MOVE `open_portal`.
"""

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from tenure.base.errors import NotSupported, WrongState
from tenure.expr.types.datatype import Datum
from tenure.sql.session import result_size
from tenure.sql.session.answers import Answer, Pending
from tenure.sql.session.portals import Portal
from tenure.sql.statement import Control

if TYPE_CHECKING:
    from tenure.sql.session.block import Block
    from tenure.sql.session.execution import Execution
    from tenure.sql.session.session import Session

BATCH_ROWS = 1_000
"""Rows given at once: enough to make the cost of a turn small, few enough to bound what waits."""

PIECE_ROWS, LARGE_ROW_BYTES = 32, 16 * 1024
BATCH_BYTES_MAX = 1 << 20
"""A batch of large rows ends early: looked at after every so many rows, or each of those that are large."""


def check_may_run(session: "Session", name: str, portal: Portal) -> None:
    if session.block is not None and session.block.is_failed:
        session.preparing.check_not_failed(portal.prepared.text)
    if portal.is_failed or (portal.is_done and portal.columns is None):
        raise WrongState(f'portal "{name}" cannot be run')


def open_portal(session: "Session", name: str, portal: Portal, block: "Block") -> None:
    """FETCH and MOVE take the rows of a portal that need not have been executed yet."""
    if portal is session.active_portal:
        raise WrongState(f'portal "{name}" cannot be run')
    check_may_run(session, name, portal)
    if portal.rows is not None or portal.is_done:
        return
    if portal.columns is None:
        raise NotSupported(
            "unsupported portal strategy", hint=f'The statement of portal "{name}" returns no rows.'
        )
    result = session.run(portal, block, inline=False)
    portal.tag, portal.counts, portal.rows = result.tag, result.counts, result.rows or iter(())


def control(execution: "Execution", statement: Control, portal: Portal, limit: int) -> "Answer | Pending":
    answer = statement.control(execution)
    if portal.columns is None or not isinstance(answer, Answer):
        portal.is_done = True
        return answer
    portal.tag, portal.counts, portal.rows = answer.tag, answer.counts, iter(answer.rows)
    # What it did is done: a client that cancels now is told what came of it.
    return batch(execution.session, portal, limit, can_stop=False)


def batch(session: "Session", portal: Portal, limit: int, *, can_stop: bool = True) -> Answer:
    assert portal.rows is not None
    wanted = min(limit, BATCH_ROWS) if limit else BATCH_ROWS
    rows: list[Sequence[Datum]] = []
    size_bytes = 0
    while len(rows) < wanted and size_bytes < BATCH_BYTES_MAX and not portal.is_done:
        are_large = size_bytes > len(rows) * LARGE_ROW_BYTES or not rows
        asked = min(1 if are_large else PIECE_ROWS, wanted - len(rows))
        piece = list(islice(portal.rows, asked))
        portal.is_done = len(piece) < asked
        if are_large and can_stop:
            session.check()  # such rows take their time to be made, and to be written
        size_bytes += result_size.bytes_of(piece, portal.columns or ())
        if are_large and portal.account is not None:
            portal.account.settle()
        rows += piece
    portal.position += len(rows)
    portal.is_at_end = portal.is_done
    portal.given_bytes += size_bytes
    if can_stop:
        result_size.check(portal.given_bytes, session.parts.settings.current())
    session.memory.hold_result(size_bytes)
    return Answer(rows, portal.tag, is_done=portal.is_done, counts=portal.counts, size_bytes=size_bytes)
