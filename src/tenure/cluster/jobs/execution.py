"""Executing one run of a job: its function, the steps of its state, and how it ends.

    running ──► the kind's function ──► succeeded
                   │ fails          └─► reverting ──► the kind's revert ──► failed, canceled, revert-failed
                   └ fails for a passing reason ──► pending, tried again later

A run whose fence is lost just ends; its next adopter reads the job's state from the store.

Walk: `cluster.jobs.runner` calls `execute` in a task of its own; this calls `attempt` with the kind's
function, then `Jobs.step`.
"""

import logging
from collections.abc import Callable, Mapping

from tenure.base.errors import FenceLost, SessionLost, for_operator
from tenure.base.timestamp import add_seconds
from tenure.cluster.jobs.attempts import PASSING, attempt, retry_seconds
from tenure.cluster.jobs.job_errors import JobError
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import Jobs
from tenure.cluster.jobs.runs import JobKind, Lacking, Run, Stopped
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction

_log = logging.getLogger(__name__)


class JobExecution:
    def __init__(
        self, store: Store, jobs: Jobs, kinds: Mapping[str, JobKind], is_draining: Callable[[], bool]
    ) -> None:
        self._store = store
        self._jobs = jobs
        self._kinds = kinds
        self._is_draining = is_draining

    def execute(self, run: Run) -> None:
        """Runs a job as far as it goes, and writes its outcome."""
        try:
            self._carry_out(run)
        except (FenceLost, SessionLost):
            _log.info("run %d of job %d lost its claim", run.fence.run, run.job.id)
        except Stopped:
            self._give_up(run)
        except Lacking as lacking:
            needs = lacking.needs
            self._write_last(lambda txn: self._jobs.hand_over(txn, run.fence, needs))
        except PASSING as error:
            self._retry_later(run, error)
        except Exception as error:
            # A bug of ours, not the job's: retried as after a passing failure, never at once.
            _log.exception("run %d of job %d broke off", run.fence.run, run.job.id)
            self._retry_later(run, error)

    def _carry_out(self, run: Run) -> None:
        """Runs a job from its current state as far as it goes."""
        kind = self._kinds[run.job.kind]
        if run.fence.state is JobState.PAUSE_REQUESTED:
            self._step(run, JobState.PAUSED)
            return
        if run.fence.state is JobState.CANCEL_REQUESTED:
            self._step(run, JobState.REVERTING)
        if run.fence.state is JobState.RUNNING:
            error = attempt(kind.run, run, kind)
            self._step(run, JobState.SUCCEEDED if error is None else JobState.REVERTING, error)
        if run.fence.state is JobState.REVERTING:
            error = attempt(kind.revert, run)
            self._step(run, self._end(run) if error is None else JobState.REVERT_FAILED, error)

    def _step(self, run: Run, state: JobState, error: JobError | None = None) -> None:
        read_ahead, run.read_ahead = run.read_ahead, None
        fence = self._store.transact(
            lambda txn: self._jobs.step(txn, run.fence, state, error=error), read_ahead=read_ahead
        )
        run.fence = run.fence._replace(state=state) if fence is None else fence

    def _end(self, run: Run) -> JobState:
        control = self._jobs.control(self._store.snapshot(), run.job.id)
        return JobState.CANCELED if control is not None and control.canceled else JobState.FAILED

    def _retry_later(self, run: Run, error: Exception) -> None:
        _log.warning("job %d will be tried again: %s", run.job.id, for_operator(error))

        def retry(txn: Transaction) -> None:
            attempts = self._jobs.fenced(txn, run.fence).attempts
            # By the store's clock: this node's own clock may have jumped ahead.
            retry_at = add_seconds(txn.read_at, retry_seconds(attempts))
            self._jobs.retry(txn, run.fence, error=JobError.passing(error), retry_at=retry_at)

        self._write_last(retry)

    def _give_up(self, run: Run) -> None:
        """A run that stopped in good order releases its claim if the node is stopping."""
        if self._is_draining():
            self._write_last(lambda txn: self._jobs.release(txn, run.fence))

    def _write_last(self, work: Callable[[Transaction], None]) -> None:
        """Writes how a run ended. If that fails, the job is adopted again, here or elsewhere."""
        try:
            self._store.transact(work)
        except (FenceLost, SessionLost, *PASSING) as error:
            _log.info("not written: %s", error)
