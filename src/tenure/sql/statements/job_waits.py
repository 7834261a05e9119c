"""Statements that are done by a job, and wait for it.

If the statement is canceled, or its client goes away, so is the job. What a job failed with is raised as if
the statement had failed with it. A job that no process can run is not waited for without end.

Walk: `statements.exporting` -> `await_job`; `statements.importing`, which knows by itself when a cancel came
too late, -> `await_end`, `cancel_job`, `failure_of`.
"""

import re
from typing import TYPE_CHECKING

from tenure.base.errors import TenureError, UserError
from tenure.cluster.job_records import DETAIL, Control
from tenure.cluster.job_states import TERMINAL, IllegalStep, State
from tenure.kv.snapshot import Snapshot
from tenure.sql.answers import QueryCanceled
from tenure.sql.errors import InsufficientPrivilege
from tenure.sql.statements.jobs import await_jobs
from tenure.sql.tables.job_status import is_lacking

if TYPE_CHECKING:
    from tenure.sql.execution import Execution
    from tenure.sql.session import Session

CANCEL_SECONDS, LOOK_SECONDS = 10.0, 0.05
"""How long a canceled statement waits for its job to take everything back."""

PATIENCE_SECONDS = 30.0
"""How long a statement waits for a process that this node cannot start: others may be able to, in turn."""

_WITH_SQLSTATE = re.compile(r"([0-9A-Z]{5}) (.*)", re.DOTALL)


class JobFailed(TenureError):
    """What the job failed with."""

    def __init__(self, described: str) -> None:
        found = _WITH_SQLSTATE.fullmatch(described)
        message, _, detail = (found[2] if found else described).partition(DETAIL)
        super().__init__(message, detail=detail)
        self.sqlstate = found[1] if found else TenureError.sqlstate


class Unprovided(TenureError):
    """The job needs what no process has, and none that has it can be started."""

    sqlstate = "58000"


def await_end(execution: "Execution", id: int) -> Snapshot:
    """Returns the store as of when the job has ended; raises Unprovided if it cannot even begin."""
    patience = _Patience(execution, id)
    return await_jobs(execution, [id], TERMINAL.__contains__, on_look=patience.look)


class _Patience:
    def __init__(self, execution: "Execution", id: int) -> None:
        self._parts = execution.session.parts
        self._id = id
        self._lost_at: float | None = None
        """When it would be lost."""

    def look(self, snapshot: Snapshot) -> None:
        control, trouble = self._parts.jobs.control(snapshot, self._id), self._parts.spark_trouble()
        if control is None or not is_lacking(control) or not trouble:
            self._lost_at = None
            return
        now = self._parts.env.monotonic()
        if self._lost_at is None:
            self._lost_at = now + PATIENCE_SECONDS
        elif now >= self._lost_at:
            needs = ", ".join(control.needs)
            raise Unprovided(f"job {self._id} waits for a process with {needs}: {trouble}")


def await_job(execution: "Execution", id: int) -> bytes:
    """Returns the progress data of a job that has succeeded; raises what it failed with."""
    parts = execution.session.parts
    try:
        snapshot = await_end(execution, id)
    except BaseException:
        cancel_job(execution, id)
        raise
    control = parts.jobs.control(snapshot, id)
    if control is None or control.state is not State.SUCCEEDED:
        raise failure_of(id, control)
    return parts.jobs.progress(snapshot, id).data


def cancel_job(execution: "Execution", id: int) -> None:
    """Cancels the job, and gives it a moment to take back what it did."""
    parts = execution.session.parts
    try:
        parts.store.transact(lambda txn: parts.jobs.request_cancel(txn, id))
    except IllegalStep:
        return  # it has ended meanwhile, or ends already
    until = parts.env.monotonic() + CANCEL_SECONDS
    while parts.jobs.is_open(parts.store.snapshot(), id) and parts.env.monotonic() < until:
        parts.env.sleep(LOOK_SECONDS)


def failure_of(id: int, control: Control | None) -> TenureError:
    if control is None:
        return UserError(f"nothing is known any more of job {id}")
    if control.canceled:
        return QueryCanceled(f"job {id} was canceled")
    return JobFailed(control.error or f"job {id} was {control.state.value}")


def require_superuser(session: "Session", what: str) -> None:
    """Files are the operator's: who may read tables may not, by that, read or write them."""
    user = session.parts.users.get(session.parts.store.snapshot(), session.user)
    if user is None or not user.is_superuser:
        raise InsufficientPrivilege(f"permission denied to {what}", hint="Only superusers may.")
