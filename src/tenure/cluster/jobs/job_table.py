"""Jobs as records: what was requested by whom, who may run it, how far it is.

    job        id -> kind, owner, description, payload      written by its creator
    control    id -> state, claim, run, errors              open jobs: states and claims
    ended      id -> the same, of jobs that are over        so that adopting reads open ones alone
    progress   id -> fraction, status, data                 written often, by the run alone

Three keys, so that progress does not conflict with control. A job is created in the caller's transaction: it
exists if and only if that transaction commits. What other layers hold for a job, as its protections, they
release in the transaction that ends it (`on_end`).

**The fence** is (session, run, state). Each adoption and each resume takes the next run number. Every write
of a run, and every effect it has in the store, goes through `fenced`, which reads all three in the same
transaction and observes the session; so a run whose claim is gone, or that was asked to stop, commits nothing
more, even if it notices late.

**Claims.** A claim is taken over only in a transaction that finds the claiming session absent. A session that
has expired but is not deleted still holds its claims.

Invariant (I22): a claim moves from one session to another only where the former is absent.
Invariant (I23): a run writes only under its fence.
Invariant (I24): of two runs of a job only the one with the greater run number can have effects.

Walk: statements call `create`, `request_pause`, `resume` and `request_cancel`; `cluster.jobs.adoption`
claims, `cluster.jobs.execution` calls `fenced` and `step`; `cluster.jobs.runs` calls `checkpoint`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from tenure.base.clock import Clock
from tenure.base.errors import FenceLost, UnknownJob
from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.cluster.jobs.claims import Claims, SessionClaims
from tenure.cluster.jobs.job_errors import JobError
from tenure.cluster.jobs.job_records import NOBODY, Fence, Job, JobControl, JobProgress, control_records
from tenure.cluster.jobs.job_states import CLAIMABLE, TERMINAL, JobState, check_step
from tenure.cluster.sessions.session_records import SessionId, Sessions
from tenure.kv.encoding import decode
from tenure.kv.keys import JOB_CONTROL, JOB_PROGRESS, JOBS, JOBS_ENDED, Keyspace, Span
from tenure.kv.records import Records, replace
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.storage.engine import HEAD_BYTES

ERRORS_MAX = 10
"""How many errors of earlier attempts a job's record keeps."""

ERROR_CHARS_MAX = 1_000
PAST_ERROR_CHARS_MAX = 200
"""The longest field of its error, and of each earlier error: a control record is written again with every
claim and step, and read by every node.
"""

__all__ = ["NOBODY", "Fence", "FenceLost", "Job", "JobControl", "JobProgress", "Jobs", "UnknownJob"]


class Jobs:
    """The jobs of one tenant; every function belongs to the caller's transaction."""

    def __init__(
        self,
        keyspace: Keyspace,
        sessions: Sessions,
        clock: Clock,
        claims: Callable[[], Claims] | None = None,
    ) -> None:
        by_session = SessionClaims(sessions)
        self.claims: Callable[[], Claims] = claims or (lambda: by_session)
        """The current way of holding jobs: changes once, when an upgrade is finalized."""
        self.on_end: list[Callable[[Transaction, int], None]] = []
        """Called in the transaction that ends a job; the layers built later add what they hold for jobs."""
        self._clock = clock
        self._jobs = Records(keyspace, JOBS, Job, key=("id",))
        self._control = control_records(keyspace, JOB_CONTROL)
        self._ended = control_records(keyspace, JOBS_ENDED)
        self._progress = Records(keyspace, JOB_PROGRESS, JobProgress, key=("id",))

    def open_span(self) -> Span:
        """The span of the control records of open jobs, which runners watch."""
        return self._control.span()

    def id_of(self, key: bytes) -> int:
        (id,) = decode(key[HEAD_BYTES:])
        assert isinstance(id, int)
        return id

    def decode_control(self, value: bytes) -> JobControl:
        return self._control.decode(value)

    def encode_control(self, control: JobControl) -> tuple[bytes, bytes]:
        """A control record as it is stored: key and value."""
        return self._control.key_of(control), self._control.encode(control)

    # ── called for users ────────────────────────────────────────────────────────────────────────

    def create(
        self,
        txn: Transaction,
        *,
        kind: str,
        id: int | None = None,
        payload: bytes = b"",
        owner: str = "",
        description: str = "",
        needs: Iterable[str] = (),
    ) -> Job:
        """Creates a job; processes that have what it `needs` adopt it. `id` is one of `fresh_id`, or None."""
        if id is None:
            id = self.fresh_id(txn)
        job = Job(id, kind, owner, description, payload, self._clock.now())
        self._jobs.put(txn, job)
        self._control.put(txn, JobControl(id, kind, needs=tuple(needs)))
        return job

    def fresh_id(self, txn: Transaction) -> int:
        """Draws an id for a job whose payload contains it.

        Ids follow the time of creation; if two nodes draw the same one, the second finds it in use.
        """
        while True:
            id = self._clock.now()
            if self._jobs.get(txn, id) is None:
                return id

    def rename_owner(self, txn: Transaction, owner: str, new_owner: str) -> None:
        """Called with the new name of a role: its jobs stay its own."""
        for job in list(self._jobs.scan(txn)):
            if job.owner == owner:
                self._jobs.put(txn, replace(job, owner=new_owner))

    def change_payload(self, txn: Transaction, id: int, payload: bytes) -> None:
        """A job is told something new: a run that goes on reads it by itself."""
        job = self._jobs.get(txn, id)
        assert job is not None, "the caller has found it"
        self._jobs.put(txn, replace(job, payload=payload))

    def request_pause(self, txn: Transaction, id: int) -> None:
        self._request(txn, id, JobState.PAUSE_REQUESTED)

    def request_cancel(self, txn: Transaction, id: int, error: JobError | None = None) -> None:
        """`error` says why, if it was not a user."""
        self._request(txn, id, JobState.CANCEL_REQUESTED, error)

    def resume(self, txn: Transaction, id: int) -> None:
        """Lets a paused job go on, or withdraws a request to pause; the next run is a new one."""
        control = self._open(txn, id)
        if control.state in (JobState.PENDING, JobState.RUNNING):
            return
        check_step(id, control.state, JobState.PENDING)
        self._control.put(txn, replace(control, state=JobState.PENDING, retry_at=ZERO_AT))

    def _request(self, txn: Transaction, id: int, state: JobState, error: JobError | None = None) -> None:
        control = self._open(txn, id)
        if control.state is state:
            return
        check_step(id, control.state, state)
        self._control.put(txn, replace(_with_error(control, error), state=state, retry_at=ZERO_AT))

    def _open(self, txn: Transaction, id: int) -> JobControl:
        control = self.control(txn, id)
        if control is None:
            raise UnknownJob(f"job {id} does not exist")
        return control

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    def get(self, txn: Transaction | Snapshot, id: int) -> Job | None:
        return self._jobs.get(txn, id)

    def among(self, snapshot: Snapshot, ids: Sequence[int]) -> dict[int, Job]:
        """Those of these jobs that exist; jobs whose ids lie close together are read by one scan."""
        if not ids:
            return {}
        span = Span(self._jobs.key(min(ids)), self._jobs.key(max(ids)) + b"\0")
        near = [self._jobs.decode(value) for _, value in snapshot.scan(span, limit=2 * len(ids))]
        found = {job.id: job for job in near if job.id in ids}
        is_whole = len(near) < 2 * len(ids)
        others = [] if is_whole else [self._jobs.get(snapshot, id) for id in ids if id not in found]
        return found | {job.id: job for job in others if job is not None}

    def control(self, txn: Transaction | Snapshot, id: int) -> JobControl | None:
        return self._control.get(txn, id) or self._ended.get(txn, id)

    def progress(self, txn: Transaction | Snapshot, id: int) -> JobProgress:
        return self._progress.get(txn, id) or JobProgress(id)

    def list(self, txn: Transaction | Snapshot) -> Iterator[tuple[Job, JobControl, JobProgress]]:
        for job in self._jobs.scan(txn):
            control = self.control(txn, job.id)
            assert control is not None, "a job has no control record"
            yield job, control, self.progress(txn, job.id)

    def open(self, txn: Transaction | Snapshot) -> Iterator[JobControl]:
        return self._control.scan(txn)

    def is_open(self, txn: Transaction | Snapshot, id: int) -> bool:
        """Whether the job exists and has not ended."""
        return bool(id) and self._control.get(txn, id) is not None

    # ── called by the claiming node ─────────────────────────────────────────────────────────────

    def claim(self, txn: Transaction, id: int, session: SessionId) -> Fence | None:
        """Claims a job for a session, as its next run; None if it cannot be claimed."""
        control = self._control.get(txn, id)
        if control is None or control.state not in CLAIMABLE:
            return None
        claims = self.claims()
        if not claims.is_free(txn, control, session):
            return None
        state = JobState.RUNNING if control.state is JobState.PENDING else control.state
        claimed = replace(
            claims.with_holder(control, session),
            state=state,
            run=control.run + 1,
            started_at=control.started_at or self._clock.now(),
        )
        self._control.put(txn, claimed)
        return Fence(id, session, claimed.run, state)

    def fenced(self, txn: Transaction, fence: Fence) -> JobControl:
        """Makes a run's transaction commit only while the run may write."""
        control = self._control.get(txn, fence.job)
        if (
            control is None
            or (control.run, control.state) != (fence.run, fence.state)
            or not self.claims().holds(txn, control, fence.session)
        ):
            raise FenceLost(f"run {fence.run} of job {fence.job} may no longer write")
        return control

    def checkpoint(self, txn: Transaction, fence: Fence, progress: JobProgress) -> None:
        """Saves a run's progress, together with the effects of the transaction."""
        control = self.fenced(txn, fence)
        # A run that starts over each time gets equally far each time: only progress that the next run
        # continues from counts, or the pauses between attempts would never grow.
        if control.attempts and progress.data != self.progress(txn, fence.job).data:
            self._control.put(txn, replace(control, attempts=0))
        self._progress.put(txn, progress)

    def step(
        self, txn: Transaction, fence: Fence, state: JobState, *, error: JobError | None = None
    ) -> Fence | None:
        """Moves a run to its next state; returns the fence to continue with, None if the run is over."""
        control = self.fenced(txn, fence)
        check_step(fence.job, control.state, state)
        canceled = control.canceled or control.state is JobState.CANCEL_REQUESTED
        control = replace(_with_error(control, error), state=state, canceled=canceled)
        if state in TERMINAL:
            self._end(txn, control)
            return None
        if state is JobState.REVERTING:
            self._control.put(txn, replace(control, attempts=0))
            return fence._replace(state=state)
        self._control.put(txn, _unclaimed(control))
        return None

    def retry(self, txn: Transaction, fence: Fence, *, error: JobError, retry_at: Timestamp) -> None:
        """Releases a run's claim for now: it may be claimed again after `retry_at`."""
        control = _with_error(self.fenced(txn, fence), error)
        state = JobState.PENDING if control.state is JobState.RUNNING else control.state
        again = replace(control, state=state, attempts=control.attempts + 1, retry_at=retry_at)
        self._control.put(txn, _unclaimed(again))

    def release(self, txn: Transaction, fence: Fence) -> None:
        """Releases a run's claim because its node stops: the job waits for the next adopter."""
        control = self.fenced(txn, fence)
        state = JobState.PENDING if control.state is JobState.RUNNING else control.state
        self._control.put(txn, _unclaimed(replace(control, state=state)))

    def hand_over(self, txn: Transaction, fence: Fence, needs: Iterable[str]) -> None:
        """Releases a run's claim because the run needs more resources: it waits for a process that has
        them.
        """
        control = self.fenced(txn, fence)
        state = JobState.PENDING if control.state is JobState.RUNNING else control.state
        self._control.put(txn, _unclaimed(replace(control, state=state, needs=tuple(needs))))

    def _end(self, txn: Transaction, control: JobControl) -> None:
        self._control.delete(txn, control.id)
        self._ended.put(txn, _unclaimed(replace(control, finished_at=self._clock.now())))
        for release in self.on_end:
            release(txn, control.id)

    # ── upkeep ─────────────────────────────────────────────────────────────────────────────────

    def forget_succeeded(self, txn: Transaction, id: int) -> None:
        """Deletes a job that has succeeded: for those that are started by themselves, again and again."""
        ended = self._ended.get(txn, id)
        if ended is not None and ended.state is JobState.SUCCEEDED:
            for records in (self._jobs, self._ended, self._progress):
                records.delete(txn, id)

    def forget_ended(
        self, txn: Transaction, before_at: Timestamp, *, after: int = 0, limit: int
    ) -> int | None:
        """Checks so many ended jobs above the id `after` and deletes those that ended before a time.

        Returns the id to continue after, None when all have been checked: they are ordered by id, so old ones
        may come after any number of young ones.
        """
        span = Span(self._ended.key(after) + b"\0", self._ended.span().hi)
        looked = [self._ended.decode(value) for _, value in txn.scan(span, limit=limit)]
        for control in looked:
            if control.finished_at < before_at:
                for records in (self._jobs, self._ended, self._progress):
                    records.delete(txn, control.id)
        return looked[-1].id if len(looked) == limit else None


def _unclaimed(control: JobControl) -> JobControl:
    return replace(
        control,
        claim_instance=NOBODY.instance,
        claim_epoch_at=NOBODY.epoch_at,
        lease_instance=NOBODY.instance,
    )


def _with_error(control: JobControl, error: JobError | None) -> JobControl:
    if error is None:
        return control
    errors = (*control.errors, error.cut(PAST_ERROR_CHARS_MAX))[-ERRORS_MAX:]
    return replace(control, error=error.cut(ERROR_CHARS_MAX), errors=errors)
