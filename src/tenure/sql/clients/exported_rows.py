"""The rows of an exported query, read by a session of its own for the job.

Walk: `composition.job_layer` hands `rows_of` to the export job -> `SqlSessions.open` ->
`statements.dml.queries`.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Protocol

from tenure.base.errors import PlanChanged, RetryError
from tenure.bulk.exporting.records import ExportPayload
from tenure.expr.types.datatype import Datum
from tenure.sql.clients.sql_sessions import SqlSessions
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner
from tenure.sql.session.block import Block
from tenure.sql.session.session_state import SessionState
from tenure.sql.statements.dml.queries import plan_query
from tenure.sql.text import parse

BATCH_ROWS = 10_000


class ExportDoor(Protocol):
    @property
    def sessions(self) -> SqlSessions: ...


def rows_of(
    door: ExportDoor | None, export: ExportPayload, check: Callable[[], None], is_again: bool
) -> Iterator[Sequence[Sequence[Datum]]]:
    """The rows of an exported query as of the job's time, some at once."""
    if door is None:
        raise RetryError("the node is still starting")
    options = {"search_path": export.path, "TimeZone": export.writing.zone}
    if is_again:
        options["tenure.executor"] = "rows"
    session = door.sessions.open(user=export.user, database=export.database, options=options)
    state = session.state
    block = state.new_block()
    try:
        block.read_as_of(export.at)
        parsed = parse.one(export.query)
        assert parsed is not None, "it was a query when the job was created"
        select = plan_query(Planner(state, block, export.query, ()), parsed.tree)
        found = [(each.name, each.type.ref) for each in select.columns]
        if found != [(each.name, each.type) for each in export.writing.columns]:
            raise PlanChanged("the query's columns are not what they were when it was exported")
        rows = select.rows(_Watched(state, block, check))
        while batch := list(islice(rows, BATCH_ROWS)):
            yield batch
    finally:
        block.close()
        session.close()


class _Watched(Execution):
    """Also asks the job whether to go on."""

    __slots__ = ("_ask",)
    can_start_over = True

    def __init__(self, session: SessionState, block: Block, ask: Callable[[], None]) -> None:
        super().__init__(session, block, ())
        self._ask = ask

    def check(self) -> None:
        self._ask()
        super().check()
