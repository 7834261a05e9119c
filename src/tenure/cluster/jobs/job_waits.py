"""Waiting for jobs: the one place where statements and schema changes wait for a job's outcome.

    await_jobs ──► look ──► as wanted: the store as of then
                    ▲  │
                    └──┴── not yet: until the watch tells of a change
                       ├── the store is away: look again, for AWAY_SECONDS_MAX, then OutcomeUnknown (40003)
                       └── it cannot revert: after REVERTS_MAX attempts, the error of the job

A job goes on if the statement that waits for it ends. So an error of the wait says nothing about the job: a
statement that lost sight of it must not report that it failed. An unknown outcome is 40003, with the job's
number and how to look it up.

Invariant (job-outcome): a statement that waited for a job reports the job's outcome, or that it is unknown.

Walk: `sql.statements.jobs.waiting_statements`, `sql.statements.jobs.job_statements` and
`schema_change.changer` call `await_jobs`, inside `outcome_of`, then `failure_of` if the job did not succeed;
`sql.statements.jobs.waiting_statements` calls `ends_within` after it has canceled a job.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tenure.base.errors import (
    BaseMoved,
    JobFailed,
    OutcomeUnknown,
    QueryCanceled,
    RetryError,
    SessionLost,
    SnapshotTooOld,
    StoreError,
    TenureError,
    UserError,
)
from tenure.cluster.jobs.job_records import JobControl
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import Jobs
from tenure.kv.follower import ChangeWait
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store

AWAY_SECONDS_MAX = 30.0
"""How long a wait outlasts an unreachable store: a restart of PostgreSQL takes some seconds."""

AWAY_PAUSE_SECONDS = 0.2

REVERTS_MAX = 5
"""After so many attempts to revert, a job is not waited for any more: the disk may stay full. There are 15 s
of pauses between them. The job goes on trying, so that its tables come back when there is space.
"""


def await_jobs(
    store: Store,
    jobs: Jobs,
    ids: Sequence[int],
    is_done: Callable[[JobState], bool],
    *,
    check: Callable[[], None],
    look_seconds: float,
    on_look: Callable[[Snapshot], None] = lambda snapshot: None,
) -> Snapshot:
    """Returns when all of these jobs are as wanted, with the store as of then; a deleted job is done.

    `check` is called often and raises to end the wait; `on_look` receives the store as of each look.
    """
    return _Wait(store, jobs, ids, is_done, check, look_seconds, on_look).run()


class _Wait:
    def __init__(
        self,
        store: Store,
        jobs: Jobs,
        ids: Sequence[int],
        is_done: Callable[[JobState], bool],
        check: Callable[[], None],
        look_seconds: float,
        on_look: Callable[[Snapshot], None],
    ) -> None:
        self._store = store
        self._jobs = jobs
        self._ids = ids
        self._is_done = is_done
        self._check = check
        self._look_seconds = look_seconds
        self._on_look = on_look
        self._away_since: float | None = None

    def run(self) -> Snapshot:
        while True:
            try:
                return self._follow()
            except (SnapshotTooOld, BaseMoved):
                continue  # the snapshot has fallen below a threshold: looks again at a later one
            except StoreError as error:
                self._outlast(error)

    def _follow(self) -> Snapshot:
        snapshot = self._store.snapshot()
        changes = ChangeWait(self._store, [self._jobs.open_span()], since_at=snapshot.at)
        try:
            while not self._all_done(snapshot):
                self._away_since = None
                self._check()
                self._on_look(snapshot)
                with self._store.env.waiting():
                    changes.wait(self._look_seconds)
                snapshot = self._store.snapshot()
            return snapshot
        finally:
            changes.close()

    def _all_done(self, snapshot: Snapshot) -> bool:
        controls = [self._jobs.control(snapshot, id) for id in self._ids]
        pending = [each for each in controls if each is not None and not self._is_done(each.state)]
        for control in pending:
            if control.state is JobState.REVERTING and control.attempts >= REVERTS_MAX:
                raise _stuck(control)
        return not pending

    def _outlast(self, error: StoreError) -> None:
        now = self._store.env.monotonic()
        if self._away_since is None:
            self._away_since = now
        if now - self._away_since >= AWAY_SECONDS_MAX:
            raise unknown(self._ids, error) from error
        self._check()
        with self._store.env.waiting():
            self._store.env.sleep(AWAY_PAUSE_SECONDS)


def ends_within(store: Store, jobs: Jobs, id: int, seconds: float) -> bool:
    """Waits for a job to end, for so long at most; returns whether it has ended."""
    until = store.env.monotonic() + seconds
    snapshot = store.snapshot()
    changes = ChangeWait(store, [jobs.open_span()], since_at=snapshot.at)
    try:
        while jobs.is_open(snapshot, id):
            seconds_left = until - store.env.monotonic()
            if seconds_left <= 0:
                return False
            with store.env.waiting():
                changes.wait(seconds_left)
            snapshot = store.snapshot()
        return True
    finally:
        changes.close()


def _stuck(control: JobControl) -> TenureError:
    """The error of a job that cannot revert."""
    failures = [each for each in control.errors if not each.is_passing]
    failure = failures[0].failed() if failures and not control.canceled else failure_of(control.id, control)
    failure.detail = (
        f"Job {control.id} could not take back what it did, in {control.attempts} attempts: "
        f"{control.error_text}. It is tried again by itself; SHOW JOB {control.id} tells when it has."
    )
    return failure


def failure_of(id: int, control: JobControl | None) -> TenureError:
    """The error for a statement that waited for a job which did not succeed."""
    if control is None:
        return UserError(f"nothing is known any more of job {id}")
    if control.canceled:
        return QueryCanceled(f"job {id} was canceled")
    failures = [each for each in control.errors if not each.is_passing]
    if len(failures) > 1:
        return failures[0].failed()  # the others are errors of the revert
    if control.error is not None:
        return control.error.failed()
    return JobFailed(f"job {id} was {control.state.value}", sqlstate=TenureError.sqlstate)


@contextmanager
def outcome_of(*ids: int) -> Iterator[None]:
    """An error in here comes after the jobs were created, so it must not look like a refusal."""
    try:
        yield
    except (StoreError, RetryError, SessionLost) as error:
        raise unknown(ids, error) from error


def unknown(ids: Sequence[int], error: Exception) -> OutcomeUnknown:
    which = f"job {ids[0]}" if len(ids) == 1 else f"jobs {', '.join(map(str, ids))}"
    ask = f"SHOW JOB {ids[0]}" if len(ids) == 1 else f"SHOW JOBS VALUES ({'), ('.join(map(str, ids))})"
    return OutcomeUnknown(
        f"what came of {which} is not known: {error}",
        detail="The job goes on by itself, and may have ended already.",
        hint=f"{ask} tells, once the store can be reached; look before you run the statement again.",
    )
