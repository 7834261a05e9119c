"""Running portals: whether one may run, and its rows, a batch at a time.

    bound ──run──► rows to come ──all given──► at its end: gives no more rows, and is no error
      │                └──error──► failed                 │
      └──run, and it has no rows──► over ◄────────────────┘ 55000 for one that was run or has failed

In a block that has failed no portal runs but one that ends the block (25P02).

Walk: `sql.clients.session` asks `check_may_run`, `run` and `batch` at each Execute; FETCH and MOVE `open`.
"""

from collections.abc import Sequence
from itertools import islice

from tenure.base.errors import NotSupported, WrongState
from tenure.expr.types.datatype import Datum
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.portals import Portal, Portals
from tenure.sql.execution.preparing import Preparing
from tenure.sql.execution.statement import Control, Result
from tenure.sql.session import result_size
from tenure.sql.session.answers import Answer, NotShort, Pending, RowStream
from tenure.sql.session.block import Block
from tenure.sql.session.client_facts import check_text
from tenure.sql.session.session_state import SessionState

BATCH_ROWS = 1_000
"""Rows given at once: enough to make the cost of a turn small, few enough to bound what waits."""

PIECE_ROWS, LARGE_ROW_BYTES = 32, 16 * 1024
BATCH_BYTES_MAX = 1 << 20
"""A batch of large rows ends early: looked at after every so many rows, or each of those that are large."""


class PortalRuns:
    def __init__(self, session: SessionState, portals: Portals, preparing: Preparing) -> None:
        self._session = session
        self._portals = portals
        self._preparing = preparing

    def check_may_run(self, name: str, portal: Portal) -> None:
        block = self._session.activity.block
        if block is not None and block.is_failed:
            self._preparing.check_not_failed(portal.prepared.text)
        if portal.is_failed or (portal.is_done and portal.columns is None):
            raise WrongState(f'portal "{name}" cannot be run')
        if portal.role and portal.is_at_rest and not portal.is_committed:
            # A cursor WITH HOLD whose transaction is over has its rows: it reads no more of the tables.
            assert portal.prepared.plan is not None, "what has begun was planned"
            portal.prepared.plan.needs.require_still(self._session, block, portal.role)

    def run(self, portal: Portal, block: Block, inline: bool) -> Result:
        session = self._session
        block.begin_statement(session.activity.statement)
        statement = self._preparing.statement_for(portal.prepared, block)
        if portal.stays:
            portal.role = session.user
        if inline:
            far_tables = session.services.far_tables
            if not statement.is_short or (far_tables and portal.prepared.reads(far_tables)):
                raise NotShort  # the new plan is not short, or reads rows in an object store
        execution = Execution(
            session, block, portal.values, inline=inline, stays=portal.stays, account=portal.account
        )
        return statement.run(execution)

    def open(self, name: str, portal: Portal, block: Block) -> None:
        """FETCH and MOVE take the rows of a portal that need not have been executed yet."""
        if portal is self._portals.active:
            raise WrongState(f'portal "{name}" cannot be run')
        self.check_may_run(name, portal)
        if portal.rows is not None or portal.is_done:
            return
        if portal.columns is None:
            raise NotSupported(
                "unsupported portal strategy", hint=f'The statement of portal "{name}" returns no rows.'
            )
        result = self.run(portal, block, inline=False)
        portal.tag, portal.counts, portal.rows = result.tag, result.counts, result.rows or iter(())

    def control(
        self, execution: Execution, statement: Control, portal: Portal, limit: int
    ) -> "Answer | Pending":
        plan = portal.prepared.plan
        assert plan is not None, "a statement that runs was planned"
        plan.needs.require(execution.session, execution.block)
        execution.block.start_writing()
        answer = statement.control(execution)
        if portal.columns is None or not isinstance(answer, Answer):
            portal.is_done = True
            return answer
        portal.tag, portal.counts, portal.rows = answer.tag, answer.counts, iter(answer.rows)
        if answer.stream is not None:
            portal.stream = answer.stream
            return self.batch(portal, limit)
        # The statement is done: a cancel that comes now does not change its outcome.
        return self.batch(portal, limit, can_stop=False)

    def answer(self, portal: Portal, result: Result, limit: int) -> Answer:
        portal.tag, portal.counts = result.tag, result.counts
        if result.copy is not None:
            return Answer((), result.tag, copy=result.copy)
        if result.rows is None:
            portal.is_done = True
            return Answer((), result.tag)
        portal.rows = result.rows
        return self.batch(portal, limit)

    def batch(self, portal: Portal, limit: int, *, can_stop: bool = True) -> Answer:
        assert portal.rows is not None
        session = self._session
        wanted = min(limit, BATCH_ROWS) if limit else BATCH_ROWS
        if portal.stream is not None:
            return self._streamed(portal, portal.stream, wanted)
        rows: list[Sequence[Datum]] = []
        size_bytes = 0
        while len(rows) < wanted and size_bytes < BATCH_BYTES_MAX and not portal.is_done:
            are_large = size_bytes > len(rows) * LARGE_ROW_BYTES or not rows
            count = min(1 if are_large else PIECE_ROWS, wanted - len(rows))
            piece = list(islice(portal.rows, count))
            portal.is_done = len(piece) < count
            if are_large and can_stop:
                session.check()  # making and writing such rows takes long
            size_bytes += result_size.bytes_of(piece, portal.columns or ())
            if are_large and portal.account is not None:
                portal.account.settle()
            rows += piece
        check_text(session.variables.encoding, portal.columns or (), rows)
        portal.position += len(rows)
        portal.is_at_end = portal.is_done
        portal.result_bytes += size_bytes
        if can_stop:
            result_size.check(portal.result_bytes, session.services.settings.current())
        session.memory.hold_result(size_bytes)
        return Answer(rows, portal.tag, is_done=portal.is_done, counts=portal.counts, size_bytes=size_bytes)

    def _streamed(self, portal: Portal, stream: RowStream, wanted: int) -> Answer:
        """The rows that are there now; what was sent does not count, as the stream may go on for ever."""
        self._session.check()
        rows = stream.take(wanted, portal.account)
        portal.is_done = portal.is_at_end = stream.is_done
        portal.position += len(rows)
        size_bytes = result_size.bytes_of(rows, portal.columns or ())
        self._session.memory.hold_result(size_bytes)
        pause = None if portal.is_done else stream.pause
        return Answer(rows, portal.tag, is_done=portal.is_done, size_bytes=size_bytes, pause=pause)
