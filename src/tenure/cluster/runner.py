"""The runner: adopts open jobs and runs each exactly once at a time.

    watch of open jobs ──► _open (in memory) ──► claim ──► a task of its own: Run
    a claim's session expires ─► delete it ─► claim what it held
    a control record changes under a run ─► the run is told to stop

What is open is kept in memory by a watch, so that a step reads what changed. (Simplification: it
walks all that is open in memory, and asks the store for the expiry of each session that claims a
job it could run.)

A job is adopted if nobody claims it, if its claiming session is proved gone, or if this very
session claims it but no run of it is under way here (its task ended without a word, or a request
came). The runner wakes by watch, at the earliest expiry of a session that holds a claim, when a
retry is due, and at the slow poll.

A run whose fence is lost just ends; what the job is now, its next adopter reads from the store.

Invariant (I24): in this process a job is not started before its former run here has ended.
Invariant (I26): a runnable job whose claimant died is adopted once the session has expired.

Walk: `node.py` runs `step` in a loop; `step` -> `jobs.claim` -> `Run.run` -> the kind's function.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from tenure.base.errors import (
    BaseMoved,
    OutcomeUnknown,
    RetryError,
    SessionLost,
    SnapshotTooOld,
    StoreError,
    TooEarly,
)
from tenure.base.settings import JOBS_ADOPT_INTERVAL, Settings
from tenure.base.timestamp import MAX_AT, Timestamp, add_seconds, seconds_between
from tenure.cluster.deaths import Deaths
from tenure.cluster.job_states import CLAIMABLE, State
from tenure.cluster.jobs import NOBODY, Control, Fence, FenceLost, Job, Jobs, Progress
from tenure.cluster.liveness import Liveness, Session
from tenure.cluster.old_way import OldHeartbeats, OldLiveness
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.kv.watch import Watch

ADOPTED_MAX = 16
"""Claims per step, so that one node does not take a whole backlog while others are idle."""

RUNS_MAX = 32
"""Runs at a time in one process."""

DRAIN_SECONDS = 0.02
"""How often a drain looks whether the runs have ended."""

BURY_SECONDS = 0.05
"""Between two looks at a session that has expired by this node's clock, but not by the store's."""

RETRY_SECONDS, RETRY_SECONDS_MAX = 1.0, 300.0
"""Pauses after an attempt that failed for a passing reason: doubled each time, up to the second."""

PASSING = (RetryError, StoreError, OutcomeUnknown)
"""Failures that say nothing about the job: the store was away, or somebody was in the way."""

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Stopped(Exception):
    """Raised inside a run that was told to stop."""


class Kind(NamedTuple):
    """What a kind of job does, and what a process needs to have for it."""

    run: Callable[["Run"], None]
    revert: Callable[["Run"], None] = lambda run: None
    needs: frozenset[str] = frozenset()


class Run:
    """One run of a job, as its function sees it: restartable from `progress` at any point."""

    def __init__(self, store: Store, jobs: Jobs, job: Job, progress: Progress, fence: Fence) -> None:
        self._store = store
        self._jobs = jobs
        self._stop = store.env.event()
        self.fence = fence
        self.job = job
        self.progress = progress

    def transact(self, work: Callable[[Transaction], T]) -> T:
        """Runs a transaction that commits only while this run may write."""

        def fenced(txn: Transaction) -> T:
            self._jobs.fenced(txn, self.fence)
            return work(txn)

        self.check()
        return self._store.transact(fenced)

    def checkpoint(
        self,
        *,
        fraction: float,
        status: str = "",
        data: bytes = b"",
        also: Callable[[Transaction], object] = lambda txn: None,
    ) -> None:
        """Saves progress, and what `also` writes, in one fenced transaction: both or neither."""
        progress = Progress(self.job.id, fraction, status, data)

        def save(txn: Transaction) -> None:
            self._jobs.checkpoint(txn, self.fence, progress)
            also(txn)

        self.check()
        self._store.transact(save)
        self.progress = progress

    def check(self) -> None:
        """Raises Stopped if the run was told to stop: for long stretches without a transaction."""
        if self._stop.is_set():
            raise Stopped

    def sleep(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise Stopped

    def stop(self) -> None:
        self._stop.set()

    def is_stopped(self) -> bool:
        return self._stop.is_set()


class Runner:
    def __init__(
        self,
        store: Store,
        liveness: Liveness | OldLiveness,
        deaths: Deaths,
        jobs: Jobs,
        kinds: Mapping[str, Kind],
        settings: Callable[[], Settings],
        *,
        has: Iterable[str] = (),
    ) -> None:
        self._store = store
        self._liveness = liveness
        self._deaths = deaths
        self._jobs = jobs
        self._kinds = {name: kind for name, kind in kinds.items() if kind.needs <= frozenset(has)}
        self._settings = settings
        self._lock = store.env.lock()
        self._open: dict[int, Control] = {}
        self._runs: dict[int, Run] = {}
        self._left: set[int] = set()
        """Jobs that a transaction of this node claims and walks itself."""
        self._watch: Watch | None = None
        self._draining = False
        self._due = 0.0
        self._heartbeats = OldHeartbeats(store.keyspace)
        self._lease_ends: dict[int, Timestamp] = {}

    def step(self) -> float:
        """Waits for news or for what is due, takes it in, and adopts what is to be had.

        Bounded by the slow poll; a loop calls it again at once.
        """
        self._follow(max(0.0, self._due - self._store.env.monotonic()))
        pause_seconds: float = self._settings()[JOBS_ADOPT_INTERVAL]
        if not self._draining:
            session = self._liveness.session()
            for control in self._candidates(session):
                self._adopt(session, control)
            pause_seconds = min(pause_seconds, self._pause(session))
        self._due = self._store.env.monotonic() + pause_seconds
        return 0.0

    # ── what is open ───────────────────────────────────────────────────────────────────────────

    def _follow(self, seconds: float) -> None:
        if self._watch is None:
            snapshot = self._store.snapshot()
            self._watch = self._store.watch([self._jobs.open_span()], since_at=snapshot.at)
            self._open = {control.id: control for control in self._jobs.open(snapshot)}
            seconds = 0.0
        try:
            for revision in self._watch.next(seconds, changes_only=True).revisions:
                self._note(revision.key, revision.value)
        except (SnapshotTooOld, BaseMoved):
            self._watch.close()
            self._watch = None  # the next step starts over from all that is open
        self._stop_outdated()

    def _note(self, key: bytes, value: bytes | None) -> None:
        id = self._jobs.id_of(key)
        if value is None:
            self._open.pop(id, None)
        else:
            self._open[id] = self._jobs.decode_control(value)

    def _stop_outdated(self) -> None:
        """Tells runs to stop whose fence the store no longer grants; their writes fail anyway."""
        for id, run in self._running():
            if _is_outdated(run.fence, self._open.get(id)):
                run.stop()

    # ── adopting ───────────────────────────────────────────────────────────────────────────────

    def _candidates(self, session: Session) -> list[Control]:
        now_at = self._store.clock.now()
        room = min(ADOPTED_MAX, RUNS_MAX - len(self._runs))
        candidates: list[Control] = []
        for control in self._open.values():
            if len(candidates) >= room:
                break
            if self._is_candidate(control, session, now_at):
                candidates.append(control)
        return candidates

    def _is_candidate(self, control: Control, session: Session, now_at: Timestamp) -> bool:
        if control.retry_at > now_at or not self._is_wanted(control):
            return False
        claims = self._jobs.claims()
        claim, lease = claims.claim_of(control), claims.lease_of(control)
        if claim not in (NOBODY, session.id) and not self._deaths.is_dead(claim):
            return False
        # A lease that was never looked at counts as held; `_pause` looks.
        held_until_at = self._lease_ends.get(lease, MAX_AT)
        return lease in (NOBODY.instance, session.id.instance) or held_until_at < now_at

    def _is_wanted(self, control: Control) -> bool:
        """Whether this process would run it, if it were to be had."""
        is_runnable = control.kind in self._kinds and control.state in CLAIMABLE
        return is_runnable and control.id not in self._runs and control.id not in self._left

    def _adopt(self, session: Session, control: Control) -> None:
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
        self._start(session, Run(self._store, self._jobs, job, progress, fence))

    def _start(self, session: Session, run: Run) -> None:
        with self._lock:
            assert run.job.id not in self._runs, "the former run has not ended"
            self._runs[run.job.id] = run
        if session.done.is_set():
            run.stop()  # `lost` may have looked before this run was there
        self._store.env.spawn(f"job {run.job.id}", lambda: self._run(run))

    def _pause(self, session: Session) -> float:
        """Seconds to the earliest expiry of a session that claims a wanted job, or the next retry.

        Whoever waits for an expiry does the deleting; sessions found gone are remembered, and
        what they claimed is a candidate from then on.
        """
        now_at = self._store.clock.now()
        wanted = [control for control in self._open.values() if self._is_wanted(control)]
        due = [control.retry_at for control in wanted if control.retry_at > now_at]
        due += self._look_at_leases(session, wanted, now_at)
        claims = self._jobs.claims()
        for claim in sorted({claims.claim_of(control) for control in wanted} - {NOBODY, session.id}):
            expires_at = self._deaths.expiry(claim)
            if expires_at is None or (expires_at < now_at and self._deaths.bury(claim)):
                continue
            due.append(max(expires_at, add_seconds(now_at, BURY_SECONDS)))
        if self._candidates(session):
            return 0.0  # of the dead just found, more than one step takes, or lost to a passing conflict
        return min((seconds_between(now_at, at) for at in due), default=float("inf"))

    def _look_at_leases(self, session: Session, wanted: list[Control], now_at: Timestamp) -> list[Timestamp]:
        """Learns when the leases of the older way end; those that have ended are to be had."""
        lease_of = self._jobs.claims().lease_of
        leases = {lease_of(control) for control in wanted} - {NOBODY.instance, session.id.instance}
        if not leases:
            return []
        snapshot = self._store.snapshot()
        self._lease_ends = {lease: self._heartbeats.expiry(snapshot, lease) for lease in sorted(leases)}
        return [at for at in self._lease_ends.values() if at >= now_at]

    # ── running ────────────────────────────────────────────────────────────────────────────────

    def _run(self, run: Run) -> None:
        try:
            self._carry_out(run)
        except (FenceLost, SessionLost):
            _log.info("run %d of job %d lost its claim", run.fence.run, run.job.id)
        except Stopped:
            self._give_up(run)
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
        watch = self._watch
        if watch is not None:
            self._due = 0.0
            watch.wake()

    def _carry_out(self, run: Run) -> None:
        """Takes a job from the state it was found in as far as it goes."""
        kind = self._kinds[run.job.kind]
        if run.fence.state is State.PAUSE_REQUESTED:
            self._step(run, State.PAUSED)
            return
        if run.fence.state is State.CANCEL_REQUESTED:
            self._step(run, State.REVERTING)
        if run.fence.state is State.RUNNING:
            error = _attempt(kind.run, run)
            self._step(run, State.SUCCEEDED if error is None else State.REVERTING, error or "")
        if run.fence.state is State.REVERTING:
            error = _attempt(kind.revert, run)
            self._step(run, self._end(run) if error is None else State.REVERT_FAILED, error or "")

    def _step(self, run: Run, state: State, error: str = "") -> None:
        fence = self._store.transact(lambda txn: self._jobs.step(txn, run.fence, state, error=error))
        run.fence = run.fence._replace(state=state) if fence is None else fence

    def _end(self, run: Run) -> State:
        control = self._jobs.control(self._store.snapshot(), run.job.id)
        return State.CANCELED if control is not None and control.canceled else State.FAILED

    def _retry_later(self, run: Run, error: Exception) -> None:
        _log.warning("job %d will be tried again: %s", run.job.id, error)

        def retry(txn: Transaction) -> None:
            attempts = self._jobs.fenced(txn, run.fence).attempts
            retry_at = add_seconds(self._store.clock.now(), retry_seconds(attempts))
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

    def lost(self, session: Session) -> None:
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


def retry_seconds(attempts: int) -> float:
    # The exponent is bounded as well: after days of failures the power would not fit a float.
    return min(RETRY_SECONDS_MAX, RETRY_SECONDS * 2.0 ** min(attempts, 30))


def _is_outdated(fence: Fence, control: Control | None) -> bool:
    """Whether a run must stop, by what the watch says of its job.

    The watch may be ahead of the run or behind it: what the run did itself is no reason to stop,
    nor is a control record from before its claim.
    """
    if control is None or control.run != fence.run:
        return control is None or control.run > fence.run
    return fence.state is State.RUNNING and control.state not in (State.RUNNING, State.REVERTING)


def _attempt(work: Callable[[Run], None], run: Run) -> str | None:
    """Runs a job's function; returns what is wrong with the job itself, if anything."""
    try:
        work(run)
        return None
    except (FenceLost, SessionLost, Stopped, *PASSING):
        raise
    except Exception as error:
        if run.is_stopped():
            raise Stopped from error  # whatever a stopped function ends in says nothing about the job
        _log.exception("job %d failed", run.job.id)
        return f"{type(error).__name__}: {error}"
