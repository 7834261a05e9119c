"""The rows of an exported query, read by a session of its own for the job.

Walk: `composition.job_layer` hands `rows_of` to the export job -> `SqlSessions.open` ->
`statements.dml.queries`.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Protocol

from tenure.base.errors import PlanChanged, RetryError
from tenure.base.interruptible import Check, checked_by
from tenure.bulk.exporting.records import ExportPayload
from tenure.expr.types.datatype import Datum
from tenure.kv.protected_reads import ProtectedRead
from tenure.sql.clients.sql_sessions import SqlSessions
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner
from tenure.sql.statements.dml.queries import plan_query
from tenure.sql.text import parse

BATCH_ROWS = 10_000


class ExportDoor(Protocol):
    @property
    def sessions(self) -> SqlSessions: ...


def rows_of(
    door: ExportDoor | None,
    export: ExportPayload,
    protected: Sequence[ProtectedRead],
    check: Check,
    is_again: bool,
) -> Iterator[Sequence[Sequence[Datum]]]:
    """The rows of an exported query as of the job's time, some at once."""
    if door is None:
        raise RetryError("the node is still starting")
    options = {"search_path": export.path, "TimeZone": export.writing.zone}
    if is_again:
        options["tenure.executor"] = "rows"
    session = door.sessions.open(user=export.user, database=export.database, options=options)
    state = session.state
    state.interrupts.watch(check)
    block = state.new_block()
    try:
        block.read_as_of(export.at, protected)
        parsed = parse.one(export.query)
        assert parsed is not None, "it was a query when the job was created"
        planner = Planner(state, block, export.query, ())
        select = plan_query(planner, parsed.tree)
        planner.names.needs.require(state, block)
        found = [(each.name, each.type.ref) for each in select.columns]
        if found != [(each.name, each.type) for each in export.writing.columns]:
            raise PlanChanged("the query's columns are not what they were when it was exported")
        rows = select.rows(_Export(state, block, ()))
        while batch := _batch(rows, state.interrupts.check):
            yield batch
    finally:
        block.close()
        session.close()


def _batch(rows: Iterator[Sequence[Datum]], check: Check) -> list[Sequence[Datum]]:
    with checked_by(check):  # functions over long values ask it
        return list(islice(rows, BATCH_ROWS))


class _Export(Execution):
    __slots__ = ()
    can_start_over = True
