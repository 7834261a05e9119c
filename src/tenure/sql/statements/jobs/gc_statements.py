"""RUN GC NOW [FOR TABLE t] and SHOW GC STATUS [FOR TABLE t].

RUN GC NOW makes a job that sweeps everything, or one table, and waits for it; SHOW JOBS tells how far it is.
If the statement is canceled, or its client goes away, the job is canceled: what was removed stays removed.
Superusers may run it; a table's owner may for that table. SHOW GC STATUS shows the last sweep of each index.

Walk: `statements.statement_table` -> `statements` -> `retention.sweeping.job.start`.
"""

from dataclasses import dataclass
from functools import partial

from tenure.base.errors import (
    NotSupported,
    UndefinedTable,
    WrongState,
)
from tenure.base.settings import VERSION
from tenure.catalog.descriptors.definitions import Table, TypeRef
from tenure.cluster.sessions.versions import PROGRAM
from tenure.expr.types.type_names import type_of
from tenure.kv.records import unpack
from tenure.retention.sweeping.job import start
from tenure.retention.sweeping.rounds import RoundResult
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner, WordsPlanner
from tenure.sql.execution.statement import Control, Statement
from tenure.sql.session.answers import Answer, ResultColumn
from tenure.sql.session.services import BulkServices
from tenure.sql.statements.jobs.waiting_statements import await_job, create_job
from tenure.sql.statements.show.shows import query
from tenure.sql.text.tenure_statements import TokenReader

_INT8 = type_of(TypeRef("int8"))
RESULT = (
    ResultColumn("job_id", _INT8),
    ResultColumn("indexes_swept", _INT8),
    ResultColumn("revisions_removed", _INT8),
    ResultColumn("objects_collected", _INT8),
)


@dataclass(frozen=True, slots=True)
class RunGc(Control):
    bulk: BulkServices
    table: int = 0
    name: str = ""
    owner: str = ""
    """Of the table."""
    columns = RESULT
    is_short = False

    def control(self, execution: Execution) -> Answer:
        session = execution.session
        session.require_no_block("RUN GC NOW")
        sweeps = self.bulk.sweeps
        if sweeps is None:
            raise NotSupported("this process does not sweep")
        if sweeps.settings()[VERSION] < PROGRAM:
            raise WrongState(
                "history is not removed before the cluster is finalized",
                hint=f"Upgrade all nodes first, then SET CLUSTER SETTING version = {PROGRAM}.",
            )
        if not self.table or not session.rights().has_rights_of(self.owner):
            session.rights().require_superuser(
                "permission denied to run garbage collection",
                hint="Superusers may; the owner of a table may for that table.",
            )
        id = create_job(
            execution, lambda txn: start(txn, sweeps, table=self.table, owner=session.user, name=self.name)
        )
        result = unpack(await_job(self.bulk, execution, id), RoundResult)
        return Answer([(id, result.heads, result.removed, result.objects)], "RUN GC")


def plan_run(bulk: BulkServices, planner: Planner, reader: TokenReader) -> Control:
    table = _table(planner, reader)
    reader.end()
    return RunGc(bulk) if table is None else RunGc(bulk, table.id, table.name, table.owner)


def plan_status(planner: Planner, reader: TokenReader) -> Statement:
    table = _table(planner, reader)
    reader.end()
    where = "" if table is None else f"WHERE table_id = {table.id}"
    return query(
        planner,
        "SELECT database_name, schema_name, table_name, index_name, stage, threshold, ttl_seconds, held_by, "
        "kept_points, revisions_removed, garbage_rows, finished "
        f"FROM tenure_internal.gc_status {where} ORDER BY table_id, index_id",
    )


def _table(planner: Planner, reader: TokenReader) -> Table | None:
    if not reader.take("for", "table"):
        return None
    name = reader.names()
    found = planner.names.object(name)
    if not isinstance(found, Table):
        raise UndefinedTable(f'table "{".".join(name)}" does not exist')
    planner.names.require_permanent("GC")
    return found


def statements(bulk: BulkServices) -> dict[tuple[str, ...], WordsPlanner]:
    return {("run", "gc", "now"): partial(plan_run, bulk), ("show", "gc", "status"): plan_status}
