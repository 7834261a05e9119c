"""Statements that run a job, and wait for it.

    create_job ──► await_end ──► its result, or what it failed with
                      └── canceled, or the client is gone ──► cancel_job ──► it was too late: its result

If the statement is canceled, or its client disconnects, the job is canceled. The error of a failed job is
raised as the statement's own. The wait for a job that no process can run ends after `PATIENCE_SECONDS`. After
the job was created, an error of the store means that the outcome is unknown (40003).

Walk: `statements.jobs.exporting` -> `create_job`, `await_job`; `statements.jobs.importing` -> `create_job`,
`await_end`; all wait by `cluster.jobs.job_waits`.
"""

from collections.abc import Callable

from tenure.base.errors import (
    IllegalStep,
    NoSuitableProcess,
    OutcomeUnknown,
    TenureError,
)
from tenure.cluster.jobs.job_states import TERMINAL, JobState
from tenure.cluster.jobs.job_table import Job
from tenure.cluster.jobs.job_waits import ends_within, failure_of, outcome_of, unknown
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.pipeline.masters import is_about_master
from tenure.sql.execution.execution import Execution
from tenure.sql.session.services import BulkServices
from tenure.sql.statements.jobs.job_statements import await_jobs
from tenure.sql.tables.job_status import is_lacking

CANCEL_SECONDS = 0.6
"""How long a canceled statement waits for its job to take everything back. The job may hang, at an object
store or at Spark's master, and the client is to be told within a second. It publishes nothing any more.
"""

PATIENCE_SECONDS = 30.0
"""How long a statement waits for a process that this node cannot start: others may be able to, in turn."""


def create_job(execution: Execution, start: Callable[[Transaction], Job]) -> int:
    """Creates the job of a statement; returns its id."""
    ids: list[int] = []

    def started(txn: Transaction) -> int:
        ids.append(start(txn).id)
        return ids[-1]

    try:
        return execution.session.locks.transact(started)
    except OutcomeUnknown as error:
        raise OutcomeUnknown(
            f"whether job {ids[-1]} was created is not known: {error}",
            hint=f"SHOW JOB {ids[-1]} tells, once the store can be reached; if it was, it goes on by itself.",
        ) from error


def await_end(
    bulk: BulkServices, execution: Execution, id: int, is_done: Callable[[Snapshot], bool]
) -> Snapshot:
    """Returns the store as of when the job has ended, well or not; OutcomeUnknown if that is not seen.

    If the wait has to end before, the job is canceled; `is_done` says whether that came too late.
    """
    with outcome_of(id):
        try:
            patience = _Patience(bulk, id)
            return await_jobs(bulk, execution, [id], TERMINAL.__contains__, on_look=patience.look)
        except OutcomeUnknown:
            raise
        except BaseException as stop:
            try:
                has_ended = cancel_job(bulk, id)
                snapshot = bulk.store.snapshot()
            except TenureError as error:  # told to stop once more, for the store does not answer
                raise unknown([id], error) from error
            if is_done(snapshot):
                return snapshot
            if not has_ended and isinstance(stop, TenureError):
                stop.detail = f"Job {id} is still taking back what it did: SHOW JOB {id} tells when it has."
            raise


class _Patience:
    def __init__(self, bulk: BulkServices, id: int) -> None:
        self._bulk = bulk
        self._id = id
        self._began = self._bulk.env.monotonic()
        self._lost_at: float | None = None
        """When the wait ends if no process can run the job."""

    def look(self, snapshot: Snapshot) -> None:
        control, trouble = self._bulk.jobs.control(snapshot, self._id), self._bulk.spark_trouble()
        if control is not None and control.attempts and is_about_master(control.errors[-1].message):
            if self._bulk.env.monotonic() >= self._began + PATIENCE_SECONDS:
                raise NoSuitableProcess(f"job {self._id} waits for Spark: {control.errors[-1].message}")
            return
        if control is None or not is_lacking(control) or not trouble:
            self._lost_at = None
            return
        now = self._bulk.env.monotonic()
        if self._lost_at is None:
            self._lost_at = now + PATIENCE_SECONDS
        elif now >= self._lost_at:
            needs = ", ".join(control.needs)
            raise NoSuitableProcess(f"job {self._id} waits for a process with {needs}: {trouble}")


def await_job(bulk: BulkServices, execution: Execution, id: int) -> bytes:
    """Returns the progress data of a job that has succeeded; raises what it failed with."""
    jobs = bulk.jobs

    def succeeded(snapshot: Snapshot) -> bool:
        control = jobs.control(snapshot, id)
        return control is not None and control.state is JobState.SUCCEEDED

    snapshot = await_end(bulk, execution, id, succeeded)
    with outcome_of(id):
        if succeeded(snapshot):
            return jobs.progress(snapshot, id).data
        control = jobs.control(snapshot, id)
    raise failure_of(id, control)


def cancel_job(bulk: BulkServices, id: int) -> bool:
    """Cancels the job, and gives it a moment to take back what it did; returns whether it has."""
    try:
        bulk.store.transact(lambda txn: bulk.jobs.request_cancel(txn, id))
    except IllegalStep:
        return True  # it has ended, or is being canceled already
    return ends_within(bulk.store, bulk.jobs, id, CANCEL_SECONDS)
