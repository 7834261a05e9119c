"""Statements that are done by a job, and wait for it.

If the statement is canceled, or its client goes away, so is the job. What a job failed with is raised as if
the statement had failed with it.

Walk: `statements.exporting` -> `await_job`; `statements.importing`, which knows by itself when a cancel came
too late, -> `cancel_job`, `failure_of`.
"""

import re
from typing import TYPE_CHECKING

from tenure.base.errors import TenureError, UserError
from tenure.cluster.job_records import DETAIL, Control
from tenure.cluster.job_states import TERMINAL, IllegalStep, State
from tenure.sql.answers import QueryCanceled
from tenure.sql.errors import InsufficientPrivilege
from tenure.sql.statements.jobs import await_jobs

if TYPE_CHECKING:
    from tenure.sql.execution import Execution
    from tenure.sql.session import Session

CANCEL_SECONDS, LOOK_SECONDS = 10.0, 0.05
"""How long a canceled statement waits for its job to take everything back."""

_WITH_SQLSTATE = re.compile(r"([0-9A-Z]{5}) (.*)", re.DOTALL)


class JobFailed(TenureError):
    """What the job failed with."""

    def __init__(self, described: str) -> None:
        found = _WITH_SQLSTATE.fullmatch(described)
        message, _, detail = (found[2] if found else described).partition(DETAIL)
        super().__init__(message, detail=detail)
        self.sqlstate = found[1] if found else TenureError.sqlstate


def await_job(execution: "Execution", id: int) -> bytes:
    """Returns the progress data of a job that has succeeded; raises what it failed with."""
    parts = execution.session.parts
    try:
        snapshot = await_jobs(execution, [id], TERMINAL.__contains__)
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
