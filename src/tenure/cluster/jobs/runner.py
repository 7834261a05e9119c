"""The runner: adopts open jobs and runs each exactly once at a time.

    watch of open jobs ──► _open (in memory) ──► claim ──► a task of its own: Run
    a claim's session expires ─► delete it ─► claim what it held
    a control record changes under a run ─► the run is told to stop

What is open is kept in memory by a follower, so that a step reads only what has changed. Its watch spaces
its looks, which bounds the number of steps in a second.

A job is adopted if nobody claims it, if its claiming session is proved gone, or if this very
session claims it but no run of it is under way here (its task ended without a word, or a request
came). The runner wakes by watch, at the earliest expiry of a session that holds a claim, when a
retry is due, and at the slow poll.

Jobs that nobody holds are claimed several in one transaction, which starts from what the watch knows
of them: its commit is refused if another node was first with one. Then none is claimed; the next try
is for half as many and begins anywhere among the oldest, until nobody has been in the way for a while.
What a claim's commit knows its runs know too: the last step of a run that did nothing else needs no
read. In either case the fence is read and validated like everything else.

A run whose fence is lost just ends; what the job is now, its next adopter reads from the store.

Invariant (I24): in this process a job is not started before its former run here has ended.
Invariant (I26): a runnable job whose claimant died is adopted once the session has expired.

Walk: `node.py` runs `step` in a loop; `step` -> `jobs.claim` -> `_run` -> the kind's function with
its `Run`.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from tenure.base.errors import (
    RetryError,
    SessionLost,
    TooEarly,
    for_operator,
)
from tenure.base.settings import JOBS_ADOPT_INTERVAL, Settings
from tenure.base.timestamp import MAX_AT, Timestamp, add_seconds, seconds_between
from tenure.cluster.jobs.attempts import PASSING, attempt, retry_seconds
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import NOBODY, Fence, FenceLost, Job, JobControl, JobProgress, Jobs
from tenure.cluster.jobs.open_jobs import JobHolder, OpenJobs
from tenure.cluster.jobs.runs import JobKind, Lacking, Run, Stopped
from tenure.cluster.sessions.deaths import Deaths
from tenure.cluster.sessions.expiring_liveness import OldHeartbeats, OldLiveness
from tenure.cluster.sessions.liveness import Liveness, NodeSession
from tenure.cluster.sessions.session_records import SessionId
from tenure.kv.follower import Follower
from tenure.kv.scope import ReadAhead
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.engine import Revision

ADOPTED_MAX = 16
"""Claims per step, so that one node does not take a whole backlog while others are idle."""

WINDOW = 64 * ADOPTED_MAX
"""Among how many of the oldest free jobs a node begins anywhere: room for as many nodes as clusters have."""

UNCONTESTED = 16
"""After so many claims in a row that nobody contested, a node begins with the oldest again."""

SPACING_SECONDS = 0.01
"""Between two steps. Runs that end meanwhile are replaced together, a hundred steps a second are plenty."""

RUNS_MAX = 32
"""Runs at a time in one process."""

DRAIN_SECONDS = 0.02
"""How often a drain looks whether the runs have ended."""

BURY_SECONDS = 0.05
"""Between two looks at a session that has expired by this node's clock, but not by the store's."""

_log = logging.getLogger(__name__)

__all__ = ["JobKind", "JobRunner", "Lacking", "Run", "Stopped"]


class JobRunner:
    def __init__(
        self,
        store: Store,
        liveness: Liveness | OldLiveness,
        deaths: Deaths,
        jobs: Jobs,
        kinds: Mapping[str, JobKind],
        settings: Callable[[], Settings],
        *,
        has: Iterable[str] = (),
    ) -> None:
        self._store = store
        self._liveness = liveness
        self._deaths = deaths
        self._jobs = jobs
        self._has = frozenset(has)
        self._kinds = dict(kinds)
        self._settings = settings
        self._lock = store.env.lock()
        self._open = OpenJobs(self._kinds, has=self._has)
        self._runs: dict[int, Run] = {}
        self._left: set[int] = set()
        """Jobs that a transaction of this node claims and walks itself."""
        self._follower = Follower(
            store, [jobs.open_span()], self._load, self._apply, spacing_seconds=SPACING_SECONDS
        )
        self._draining = False
        self._due = 0.0
        self._claims_max = ADOPTED_MAX
        self._contested = 0
        """How many claims that nobody contests are left until it begins with the oldest again."""
        self._heartbeats = OldHeartbeats(store.keyspace)
        self._expiries: dict[SessionId, Timestamp] = {}
        self._lease_ends: dict[int, Timestamp] = {}
        """When claims and leases of others end, as read last. That time only moves up: until it has come
        there is no need to look again."""

    def step(self) -> float:
        """Waits for news or for what is due, takes it in, and adopts what is to be had.

        Bounded by the slow poll; a loop calls it again at once.
        """
        # Taken before the look: what had ended by then, the look shows as ended.
        busy = frozenset(id for id, _ in self._running())
        self._follow(max(0.0, self._due - self._store.env.monotonic()))
        pause_seconds: float = self._settings()[JOBS_ADOPT_INTERVAL]
        if not self._draining:
            session = self._liveness.session()
            due = self._look_at_holders(session)
            held, free = self._candidates(session, busy)
            for control in held:
                self._adopt(session, control)
            self._adopt_free(session, free)
            pause_seconds = min(pause_seconds, self._pause(session, busy, due))
        self._due = self._store.env.monotonic() + pause_seconds
        return 0.0

    # ── what is open ───────────────────────────────────────────────────────────────────────────

    def _follow(self, seconds: float) -> None:
        self._follower.step(seconds)
        self._stop_outdated()

    def _load(self, snapshot: Snapshot) -> None:
        self._open = OpenJobs(self._kinds, self._jobs.open(snapshot), has=self._has)

    def _apply(self, revisions: Sequence[Revision]) -> None:
        for key, _, value in revisions:
            control = None if value is None else self._jobs.decode_control(value)
            self._open.note(self._jobs.id_of(key), control)

    def _stop_outdated(self) -> None:
        """Tells runs to stop whose fence the store no longer grants; their writes fail anyway."""
        for id, run in self._running():
            if _is_outdated(run.fence, self._open.get(id)):
                run.stop()

    # ── adopting ───────────────────────────────────────────────────────────────────────────────

    def _candidates(
        self, session: NodeSession, busy: frozenset[int]
    ) -> tuple[list[JobControl], list[JobControl]]:
        """What may be adopted now: held by somebody who is gone or by this session, and free."""
        room = min(ADOPTED_MAX, RUNS_MAX - len(self._runs))
        held = list(islice(self._idle(self._held(session), busy), room))
        first = 0
        if self._contested:
            first = int(self._store.env.rng.random() * min(WINDOW, self._open.count_free()))
        free = self._idle(self._open.free(first=first, window=WINDOW), busy)
        return held, list(islice(free, min(self._claims_max, room - len(held))))

    def _held(self, session: NodeSession) -> Iterator[JobControl]:
        now_at = self._store.clock.now()
        for holder in self._open.holders():
            if self._is_available(holder, session, now_at):
                yield from self._open.of(holder).values()

    def _is_available(self, holder: JobHolder, session: NodeSession, now_at: Timestamp) -> bool:
        claim, lease = self._as_held(holder)
        if claim not in (NOBODY, session.id) and not self._deaths.is_dead(claim):
            return False
        held_until_at = self._lease_ends.get(lease, MAX_AT)  # what was not looked at counts as held
        return lease in (NOBODY.instance, session.id.instance) or held_until_at < now_at

    def _as_held(self, holder: JobHolder) -> JobHolder:
        """The holder as far as this cluster's way of holding jobs knows it."""
        claims, control = self._jobs.claims(), next(iter(self._open.of(holder).values()))
        return JobHolder(claims.claim_of(control), claims.lease_of(control))

    def _idle(self, controls: Iterable[JobControl], busy: frozenset[int]) -> Iterator[JobControl]:
        taken = busy | self._left | self._runs.keys()
        return (each for each in controls if each.id not in taken)

    def _adopt(self, session: NodeSession, control: JobControl) -> None:
        txn = self._store.begin()
        try:
            fence = self._jobs.claim(txn, control.id, session.id)
            job = self._jobs.get(txn, control.id)
            progress = self._jobs.progress(txn, control.id)
            if fence is None:
                return  # somebody else was first; the watch will say
            assert job is not None, "a control record has no job"
            txn.commit()
        except (RetryError, TooEarly):
            return
        finally:
            txn.rollback()
        self._start(session, self._made_run(control, job, progress, fence))

    def _adopt_free(self, session: NodeSession, controls: list[JobControl]) -> None:
        """Claims jobs that nobody holds in one transaction, from what the watch knows of them."""
        if not controls:
            return
        jobs = self._jobs.among(self._store.snapshot(), [control.id for control in controls])
        # One without a record has ended and was forgotten meanwhile; the watch will say.
        controls = [control for control in controls if control.id in jobs]
        known = ReadAhead(self._follower.resolved_at, dict(map(self._jobs.encode_control, controls)))

        def claim(txn: Transaction) -> tuple[Transaction, list[Fence | None]]:
            return txn, [self._jobs.claim(txn, control.id, session.id) for control in controls]

        try:
            txn, fences = self._store.transact(claim, attempts=1, known=known)
        except RetryError:
            self._claims_max, self._contested = max(1, self._claims_max // 2), UNCONTESTED
            return
        self._claims_max = min(ADOPTED_MAX, 2 * self._claims_max)
        self._contested = max(0, self._contested - 1)
        for control, fence in zip(controls, fences, strict=True):
            if fence is not None:
                # A job that never ran has got nowhere.
                progress = self._progress(control.id) if control.run else JobProgress(control.id)
                run = self._made_run(control, jobs[control.id], progress, fence, txn.known())
                self._start(session, run)

    def _made_run(
        self,
        control: JobControl,
        job: Job,
        progress: JobProgress,
        fence: Fence,
        known: ReadAhead | None = None,
    ) -> Run:
        needs, attempts = control.needs, control.attempts
        return Run(self._store, self._jobs, job, progress, fence, needs=needs, attempts=attempts, known=known)

    def _progress(self, id: int) -> JobProgress:
        return self._jobs.progress(self._store.snapshot(), id)

    def _start(self, session: NodeSession, run: Run) -> None:
        with self._lock:
            assert run.job.id not in self._runs, "the former run has not ended"
            self._runs[run.job.id] = run
        if session.done.is_set():
            run.stop()  # `lost` may have looked before this run was there
        try:
            self._store.env.spawn(f"job {run.job.id}", lambda: self._run(run))
        except BaseException:
            with self._lock:
                self._runs.pop(run.job.id, None)
            raise

    def _pause(self, session: NodeSession, busy: frozenset[int], due: list[Timestamp]) -> float:
        """Seconds to the next step: none if there is more to adopt, or a run has ended since the look."""
        if any(self._candidates(session, busy)) or any(id not in self._runs for id in busy):
            return 0.0
        now_at = self._store.clock.now()
        return min((seconds_between(now_at, at) for at in due), default=float("inf"))

    # ── waiting for others ─────────────────────────────────────────────────────────────────────

    def _look_at_holders(self, session: NodeSession) -> list[Timestamp]:
        """Learns what is to be had by now; returns when to look again, for retries and for others to expire.

        Whoever waits for an expiry does the deleting; sessions found gone are remembered, and
        what they claimed is a candidate from then on.
        """
        now_at = self._store.clock.now()
        self._open.take_due(now_at)
        held = [self._as_held(holder) for holder in self._open.holders()]
        due = self._look_at_leases({lease for _, lease in held} - {session.id.instance}, now_at)
        due += self._look_at_claims({claim for claim, _ in held} - {session.id}, now_at)
        retry_at = self._open.next_retry_at()
        return due if retry_at is None else [*due, retry_at]

    def _look_at_claims(self, claims: set[SessionId], now_at: Timestamp) -> list[Timestamp]:
        """Learns when the sessions of others expire, and deletes those that have."""
        self._expiries = {claim: at for claim, at in self._expiries.items() if claim in claims}
        due = []
        for claim in sorted(claims - {NOBODY}):
            expires_at = self._expiries.get(claim)
            if self._deaths.is_dead(claim):
                continue
            if expires_at is None or expires_at < now_at:
                expires_at = self._deaths.expiry(claim)
                if expires_at is None or (expires_at < now_at and self._deaths.bury(claim)):
                    continue
                self._expiries[claim] = expires_at
            due.append(max(expires_at, add_seconds(now_at, BURY_SECONDS)))
        return due

    def _look_at_leases(self, leases: set[int], now_at: Timestamp) -> list[Timestamp]:
        """Learns when the leases of the older way end; those that have ended are to be had."""
        known = {lease: at for lease, at in self._lease_ends.items() if lease in leases and at >= now_at}
        unknown = sorted(leases - {NOBODY.instance} - known.keys())
        snapshot = self._store.snapshot() if unknown else None
        if snapshot is not None:
            known |= {lease: self._heartbeats.expiry(snapshot, lease) for lease in unknown}
        self._lease_ends = known
        return [at for at in known.values() if at >= now_at]

    # ── running ────────────────────────────────────────────────────────────────────────────────

    def _run(self, run: Run) -> None:
        try:
            self._carry_out(run)
        except (FenceLost, SessionLost):
            _log.info("run %d of job %d lost its claim", run.fence.run, run.job.id)
        except Stopped:
            self._give_up(run)
        except Lacking as lacking:
            needs = lacking.needs
            self._finally(lambda txn: self._jobs.hand_over(txn, run.fence, needs))
        except PASSING as error:
            self._retry_later(run, error)
        except Exception as error:
            # A bug of ours, not the job's: tried again like after a passing failure, never at once.
            _log.exception("run %d of job %d broke off", run.fence.run, run.job.id)
            self._retry_later(run, error)
        finally:
            with self._lock:
                del self._runs[run.job.id]
            self.wake()

    def wake(self) -> None:
        """Ends a step's wait: a run has ended, or the node is stopping."""
        self._due = 0.0
        self._follower.wake()

    def _carry_out(self, run: Run) -> None:
        """Takes a job from the state it was found in as far as it goes."""
        kind = self._kinds[run.job.kind]
        if run.fence.state is JobState.PAUSE_REQUESTED:
            self._step(run, JobState.PAUSED)
            return
        if run.fence.state is JobState.CANCEL_REQUESTED:
            self._step(run, JobState.REVERTING)
        if run.fence.state is JobState.RUNNING:
            error = attempt(kind.run, run, kind)
            self._step(run, JobState.SUCCEEDED if error is None else JobState.REVERTING, error or "")
        if run.fence.state is JobState.REVERTING:
            error = attempt(kind.revert, run)
            self._step(run, self._end(run) if error is None else JobState.REVERT_FAILED, error or "")

    def _step(self, run: Run, state: JobState, error: str = "") -> None:
        known, run.known = run.known, None
        fence = self._store.transact(
            lambda txn: self._jobs.step(txn, run.fence, state, error=error), known=known
        )
        run.fence = run.fence._replace(state=state) if fence is None else fence

    def _end(self, run: Run) -> JobState:
        control = self._jobs.control(self._store.snapshot(), run.job.id)
        return JobState.CANCELED if control is not None and control.canceled else JobState.FAILED

    def _retry_later(self, run: Run, error: Exception) -> None:
        _log.warning("job %d will be tried again: %s", run.job.id, for_operator(error))

        def retry(txn: Transaction) -> None:
            attempts = self._jobs.fenced(txn, run.fence).attempts
            # By the store's clock: this node's own may once have jumped ahead.
            retry_at = add_seconds(txn.read_at, retry_seconds(attempts))
            self._jobs.retry(txn, run.fence, error=str(error), retry_at=retry_at)

        self._finally(retry)

    def _give_up(self, run: Run) -> None:
        """A run that stopped in good order leaves its claim to others if the node is going."""
        if self._draining:
            self._finally(lambda txn: self._jobs.release(txn, run.fence))

    def _finally(self, work: Callable[[Transaction], None]) -> None:
        """A last word that may stay unsaid: the claim is then taken up again, here or elsewhere."""
        try:
            self._store.transact(work)
        except (FenceLost, SessionLost, *PASSING) as error:
            _log.info("not written: %s", error)

    def is_idle(self) -> bool:
        return not self._running()

    def lacks(self, need: str) -> bool:
        """Whether a job waits for a process that has this, as far as the watch has told."""
        return self._open.lack(need)

    def leave(self, id: int) -> None:
        """Leaves a job alone that a transaction here claims under this node's session."""
        with self._lock:
            self._left.add(id)

    def take(self, id: int) -> None:
        """The transaction is over: what became of the job is to be seen like of any other."""
        with self._lock:
            self._left.discard(id)
        self.wake()

    def _running(self) -> list[tuple[int, Run]]:
        with self._lock:
            return list(self._runs.items())

    # ── ending ─────────────────────────────────────────────────────────────────────────────────

    def lost(self, session: NodeSession) -> None:
        """The session is gone: everything claimed under it stops."""
        for _, run in self._running():
            if run.fence.session == session.id:
                run.stop()

    def drain(self, *, timeout: float) -> bool:
        """Stops adopting, stops all runs and waits for them; says whether all have ended."""
        self._draining = True
        self.wake()
        env = self._store.env
        deadline = env.monotonic() + timeout
        while running := self._running():
            for _, run in running:
                run.stop()
            if env.monotonic() >= deadline:
                return False
            env.sleep(DRAIN_SECONDS)
        return True


def _is_outdated(fence: Fence, control: JobControl | None) -> bool:
    """Whether a run must stop, by what the watch says of its job.

    The watch may be ahead of the run or behind it: what the run did itself is no reason to stop,
    nor is a control record from before its claim.
    """
    if control is None or control.run != fence.run:
        return control is None or control.run > fence.run
    return fence.state is JobState.RUNNING and control.state not in (JobState.RUNNING, JobState.REVERTING)
