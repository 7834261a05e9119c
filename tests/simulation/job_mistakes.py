"""Wrong versions of what sessions and jobs do, each as somebody might really have written it.

Walk: `mutants.MUTANTS` has `ALL` beside the store's; a swap replaces the function of the same place.
"""

from collections.abc import Callable
from typing import Any

from tenure.base.errors import FenceLost, RetryError, SessionLost, StoreError, TooEarly
from tenure.base.settings import LIVENESS_TTL
from tenure.base.timestamp import ZERO_AT, add_seconds
from tenure.cluster.jobs import attempts as attempts_module
from tenure.cluster.jobs import execution, open_jobs
from tenure.cluster.jobs import job_table as jobs_module
from tenure.cluster.jobs.active_runs import ActiveRuns, is_outdated
from tenure.cluster.jobs.attempts import ENDLESS
from tenure.cluster.jobs.claims import SessionClaims
from tenure.cluster.jobs.execution import JobExecution
from tenure.cluster.jobs.job_errors import JobError
from tenure.cluster.jobs.job_holders import JobHolders
from tenure.cluster.jobs.job_states import STEPS, JobState, check_step
from tenure.cluster.jobs.job_table import NOBODY, Fence, JobControl, JobProgress, Jobs
from tenure.cluster.jobs.open_jobs import JobHolder, OpenJobs
from tenure.cluster.jobs.runner import JobRunner
from tenure.cluster.jobs.runs import JobKind, Run, Stopped
from tenure.cluster.sessions.deaths import Deaths
from tenure.cluster.sessions.liveness import RETRY_SECONDS, Liveness, NodeSession
from tenure.cluster.sessions.session_records import Existence, Expiration, SessionId, Sessions
from tenure.kv.records import replace
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tests.simulation.job_knobs import JobKnobs
from tests.simulation.job_trace import TracingJobs
from tests.simulation.knobs import Knobs

_create = Liveness._create
_step = Liveness.step
_extend = Sessions.extend
_delete = Sessions._delete
_claim = Jobs.claim
_fenced = Jobs.fenced
_attempt = attempts_module.attempt
_get = Transaction.get

# ── sessions ─────────────────────────────────────────────────────────────────────────────────────


def frontier_before_ack(self: Liveness, session: NodeSession) -> float:
    ttl_seconds = self._settings()[LIVENESS_TTL]
    session.acknowledged(add_seconds(self._store.clock.now(), ttl_seconds))
    txn = self._store.begin(urgent=True)
    try:
        self._sessions.extend(txn, session.id, ttl_seconds=ttl_seconds)
        txn.commit()
    except (TooEarly, RetryError):
        return RETRY_SECONDS
    finally:
        txn.rollback()
    return self._pause(ttl_seconds)


def frontier_of_former_epoch(self: Liveness, wanted: int | None) -> NodeSession:
    """The node's expiration, it is thought, only ever moves up: whichever session it was of."""
    former = self._session
    session = _create(self, wanted)
    if former is not None:
        session._expires_at = max(session._expires_at, former._expires_at)
    return session


def extend_blindly(self: Sessions, txn: Transaction, session: SessionId, *, ttl_seconds: float) -> None:
    record = Expiration(session.instance, session.epoch_at, ZERO_AT)
    self._expiration.put(txn, record, stamp="expires_at", plus=add_seconds(ZERO_AT, ttl_seconds))


def extend_and_revive(self: Sessions, txn: Transaction, session: SessionId, *, ttl_seconds: float) -> None:
    if self.find(txn, session) is None:
        self._existence.put(txn, Existence(session.instance, session.epoch_at, ttl_seconds, ()))
    _extend(self, txn, session, ttl_seconds=ttl_seconds)


def extend_downwards(self: Sessions, txn: Transaction, session: SessionId, *, ttl_seconds: float) -> None:
    _extend(self, txn, session, ttl_seconds=ttl_seconds)
    txn.not_before_at = None


def extend_frozen(self: Sessions, txn: Transaction, session: SessionId, *, ttl_seconds: float) -> None:
    present = self.find(txn, session)
    if present is None:
        raise SessionLost("gone")
    txn.not_before_at = add_seconds(present.expires_at, -ttl_seconds) - 1
    extend_blindly(self, txn, session, ttl_seconds=ttl_seconds)


def delete_any_time(self: Sessions, txn: Transaction, session: SessionId) -> Any:
    present = self.find(txn, session)
    if present is not None:
        self._delete(txn, session, present.lanes)
    return present


def bury_by_a_look(self: Deaths, session: SessionId) -> bool:
    """Looks at the expiration first and deletes in a transaction that has not read it."""
    present = self._sessions.find(self._store.snapshot(), session)
    txn = self._store.begin()
    try:
        if present is not None:
            txn.not_before_at = present.expires_at
            self._sessions._delete(txn, session, present.lanes)
        txn.commit()
    except (TooEarly, RetryError):
        return False
    finally:
        txn.rollback()
    self._remember(session)
    self._close_lanes(session, () if present is None else present.lanes)
    return True


def delete_existence_alone(
    self: Sessions, txn: Transaction, session: SessionId, lanes: tuple[bytes, ...]
) -> None:
    self._existence.delete(txn, *session)


def delete_without_a_note(
    self: Sessions, txn: Transaction, session: SessionId, lanes: tuple[bytes, ...]
) -> None:
    _delete(self, txn, session, ())


def note_removed_first(self: Deaths, session: SessionId, lanes: tuple[bytes, ...]) -> None:
    self._store.transact(lambda txn: self._sessions.forget_lanes(txn, session))
    for lane in lanes:
        self._store.engine.close_lane(lane)


def create_as_wanted(self: Sessions, txn: Transaction, *, wanted: int | None = None, **named: Any) -> int:
    """Takes the id it had before without looking who has it now."""
    instance = wanted or 1
    self._existence.put(
        txn, Existence(instance, ZERO_AT, named["ttl_seconds"], named["lanes"]), stamp="epoch_at"
    )
    return instance


def bury_with_lanes_open(self: Deaths, session: SessionId) -> bool:
    txn = self._store.begin()
    try:
        self._sessions.delete_expired(txn, session)
        txn.commit()
    except (TooEarly, RetryError):
        return False
    finally:
        txn.rollback()
    self._remember(session)
    return True


def lanes_kept(self: Store) -> None:
    return None


def guess_of_death(self: Deaths, session: SessionId) -> bool:
    """What has expired will be deleted soon: as good as dead."""
    if session in self._dead:
        return True
    present = self._sessions.find(self._store.snapshot(), session)
    if present is None or present.expires_at < self._store.clock.now():
        self._remember(session)
        return True
    return False


def miss_is_death(self: Deaths, session: SessionId) -> bool:
    return session in self._dead or bool(self._dead)


def expired_is_lost(self: Sessions, txn: Transaction, session: SessionId) -> None:
    present = self.find(txn, session)
    if present is None or present.expires_at < txn.read_at:
        raise SessionLost("expired")


def wait_on_cache(self: Deaths, session: SessionId, *, timeout: float | None = None) -> bool:
    env = self._store.env
    deadline = env.monotonic() + (timeout or 0.0)
    while not self.is_dead(session):
        if env.monotonic() >= deadline:
            return False
        env.sleep(0.2)
    return True


def look_at_cache(self: JobHolders, claims: set[SessionId], now_at: int) -> list[int]:
    """Trusts that whoever dies will be heard of."""
    return []


def heartbeat_gives_up(self: Liveness) -> float | None:
    try:
        return _step(self)
    except StoreError:
        self._released = True  # the store is away: no use
        raise


# ── jobs ─────────────────────────────────────────────────────────────────────────────────────────


def free_if_expired(self: SessionClaims, txn: Transaction, control: JobControl, holder: SessionId) -> bool:
    if control.claim not in (NOBODY, holder):
        present = self._sessions.find(txn, control.claim)
        if present is not None and present.expires_at >= txn.read_at:
            return False
    self._sessions.observe(txn, holder)
    return True


def free_for_all(self: SessionClaims, txn: Transaction, control: JobControl, holder: SessionId) -> bool:
    """The cache has said that the former one is dead, and it is asked no more."""
    self._sessions.observe(txn, holder)
    return True


def free_for_the_dead(self: SessionClaims, txn: Transaction, control: JobControl, holder: SessionId) -> bool:
    return control.claim in (NOBODY, holder) or self._sessions.find(txn, control.claim) is None


def any_holder(
    self: JobHolders, open_jobs: OpenJobs, holder: JobHolder, session: NodeSession, now_at: int
) -> bool:
    return True


def short_pause(self: JobRunner, session: NodeSession, busy: frozenset[int], due: list[int]) -> float:
    return 0.3


def known_is_no_read(self: Transaction, key: bytes, *, flushed_at: int = ZERO_AT) -> bytes | None:
    """What is known need not be asked for; so, it is thought, it need not be validated."""
    values = self._store.values
    if values is not None and key in values and key not in self._writes:
        return values[key]
    return _get(self, key, flushed_at=flushed_at)


def _fenced_by(
    *checked: int, observes: bool = True
) -> Callable[[TracingJobs, Transaction, Fence], JobControl]:
    """A fence that compares only some of (session, run, state)."""

    def fenced(self: TracingJobs, txn: Transaction, fence: Fence) -> JobControl:
        if not fence.session.epoch_at:
            return _fenced(self, txn, fence)  # version 1 has another
        control = self._control.get(txn, fence.job)
        if control is None:
            raise FenceLost("it is over")
        held = (control.claim, control.run, control.state)
        if any(held[n] != fence[1:][n] for n in checked):
            raise FenceLost("lost")
        if observes and self.sessions.find(txn, fence.session) is None:
            raise FenceLost("lost")
        return control

    return fenced


def end_stays_open(self: Jobs, txn: Transaction, control: JobControl) -> None:
    self._control.put(txn, jobs_module._unclaimed(replace(control, finished_at=self._clock.now())))


def stop_and_forget(self: ActiveRuns, open_jobs: OpenJobs) -> None:
    """Takes a run that was told to stop for ended."""
    for run in self.all():
        if is_outdated(run.fence, open_jobs.get(run.job.id)):
            run.stop()
            del self._runs[run.job.id]


def remove_if_there(self: ActiveRuns, run: Run) -> None:
    if self._runs.get(run.job.id) is run:
        del self._runs[run.job.id]


def checkpoint_first(self: Run, *, also: Callable[[Transaction], object] = bool, **named: Any) -> None:
    progress = JobProgress(self.job.id, named["fraction"], named.get("status", ""), named.get("data", b""))
    self.check()
    self._store.transact(lambda txn: self._jobs.checkpoint(txn, self.fence, progress))
    self.transact(also)
    self.progress = progress


def effect_first(self: Run, *, also: Callable[[Transaction], object] = bool, **named: Any) -> None:
    progress = JobProgress(self.job.id, named["fraction"], named.get("status", ""), named.get("data", b""))
    self.transact(also)
    self._store.transact(lambda txn: self._jobs.checkpoint(txn, self.fence, progress))
    self.progress = progress


def retry_keeps_claim(self: Jobs, txn: Transaction, fence: Fence, *, error: str, retry_at: int) -> None:
    control = self._control.get(txn, fence.job)
    if control is not None and control.state is JobState.RUNNING:
        session = {"claim_instance": fence.session.instance, "claim_epoch_at": fence.session.epoch_at}
        again = replace(control, state=JobState.PENDING, retry_at=retry_at, **session)
        self._control.put(txn, again)


def retry_unfenced(self: JobExecution, run: Run, error: Exception) -> None:
    retry_at = self._store.clock.now()
    self._write_last(
        lambda txn: self._jobs.retry(txn, run.fence, error=JobError.passing(error), retry_at=retry_at)
    )


def request_lets_go(self: Jobs, txn: Transaction, id: int, state: JobState) -> None:
    """Takes the job out of its claimant's hands at once."""
    control = self._open(txn, id)
    if control.state is not state:
        check_step(id, control.state, state)
        self._control.put(txn, jobs_module._unclaimed(replace(control, state=state, retry_at=ZERO_AT)))


def claim_keeps_run(self: Jobs, txn: Transaction, id: int, session: SessionId) -> Fence | None:
    fence = _claim(self, txn, id, session)
    if fence is None:
        return None
    control = self._control.get(txn, id)
    assert control is not None
    self._control.put(txn, replace(control, run=max(1, control.run - 1)))
    return fence._replace(run=max(1, fence.run - 1))


def stopped_is_done(work: Callable[[Run], None], run: Run, kind: JobKind = ENDLESS) -> JobError | None:
    try:
        return _attempt(work, run, kind)
    except Stopped:
        return None


def passing_is_failure(work: Callable[[Run], None], run: Run, kind: JobKind = ENDLESS) -> JobError | None:
    try:
        return _attempt(work, run, kind)
    except (RetryError, StoreError) as error:
        return JobError.of(error)


def revert_is_skipped(self: JobExecution, run: Run) -> None:
    kind = self._kinds[run.job.kind]
    if run.fence.state is JobState.PAUSE_REQUESTED:
        self._step(run, JobState.PAUSED)
        return
    if run.fence.state is JobState.CANCEL_REQUESTED:
        self._step(run, JobState.REVERTING)
    if run.fence.state is JobState.RUNNING:
        error = _attempt(kind.run, run, kind)
        self._step(run, JobState.SUCCEEDED if error is None else JobState.REVERTING, error)
    if run.fence.state is JobState.REVERTING:
        self._step(run, self._end(run))


def unchecked_step(job: int, former: JobState, state: JobState) -> None:
    return None


def often(knobs: Knobs) -> None:
    """What several mistakes need: sessions that die while their node lives on."""
    assert isinstance(knobs, JobKnobs)
    for fault in ("long pause", "heartbeat stalled", "session frozen"):
        knobs.rates[fault] = max(0.2, knobs.rates.get(fault, 0.0))


def changing_settings(knobs: Knobs) -> None:
    often(knobs)
    knobs.rates["setting changed"] = 0.3


def sweeping(knobs: Knobs) -> None:
    """Nodes that stand still while settings change and the history of that goes."""
    changing_settings(knobs)
    knobs.rates["heads swept"] = 0.5


def skewed(knobs: Knobs) -> None:
    """Nodes whose clocks are ahead, but not so far that their commits are refused."""
    knobs.skew = "within max_offset"
    often(knobs)


def late(knobs: Knobs) -> None:
    """Commits on their way while their node dies."""
    for fault in ("crash before commit", "cut, commit late", "power cut"):
        knobs.rates[fault] = max(0.06, knobs.rates.get(fault, 0.0))


def crashing(knobs: Knobs) -> None:
    """Nodes that die in the middle of what they do for the dead."""
    often(knobs)
    knobs.rates["crash after commit"] = max(0.06, knobs.rates.get("crash after commit", 0.0))


def dawdling(knobs: Knobs) -> None:
    """A long time between the deletion of a session and the closing of its lanes."""
    often(knobs)
    for fault in ("cut, commit done", "slow settle"):
        knobs.rates[fault] = max(0.3, knobs.rates.get(fault, 0.0))


def twins(knobs: Knobs) -> None:
    knobs.rates["started twice"] = 0.3


ANY_HOLDER = ((JobHolders, "is_available", any_holder), (JobRunner, "_pause", short_pause))
_EVERY_STATE = frozenset(STEPS) - {JobState.PAUSED}

ALL: tuple[tuple[Any, ...], ...] = (
    ("frontier extended before the ack", ((Liveness, "_beat", frontier_before_ack),), "sessions"),
    (
        "frontier of a former epoch",
        ((Liveness, "_create", frontier_of_former_epoch),),
        "sessions",
        changing_settings,
    ),
    ("heartbeat writes blindly", ((Sessions, "extend", extend_blindly),), "sessions", often),
    ("heartbeat revives a session", ((Sessions, "extend", extend_and_revive),), "sessions", dawdling),
    ("expiration may go down", ((Sessions, "extend", extend_downwards),), "sessions", changing_settings),
    ("frozen mark ignored", ((Sessions, "extend", extend_frozen),), "sessions", often),
    (
        "session deleted before its expiration",
        ((Sessions, "delete_expired", delete_any_time),),
        "sessions",
        skewed,
    ),
    ("expiration read outside the deletion", ((Deaths, "bury", bury_by_a_look),), "sessions", often),
    ("rows of the dead left behind", ((Sessions, "_delete", delete_existence_alone),), "sessions"),
    ("lanes of the dead not noted", ((Sessions, "_delete", delete_without_a_note),), "sessions", crashing),
    ("note removed before its lanes", ((Deaths, "_close_lanes", note_removed_first),), "sessions", crashing),
    ("instance id taken twice", ((Sessions, "create", create_as_wanted),), "sessions", twins),
    ("lanes of the dead not closed", ((Deaths, "bury", bury_with_lanes_open),), "jobs", late),
    ("lanes kept by the next session", ((Store, "renew_lanes", lanes_kept),), "sessions", often),
    ("death cached from a guess", ((Deaths, "is_dead", guess_of_death),), "sessions"),
    ("a miss taken for death", ((Deaths, "is_dead", miss_is_death),), "sessions"),
    ("expired taken for gone by observers", ((Sessions, "observe", expired_is_lost),), "sessions"),
    ("wait that trusts the cache", ((Deaths, "await_death", wait_on_cache),), "sessions"),
    ("adoption that trusts the cache", ((JobHolders, "_look_at_claims", look_at_cache),), "jobs"),
    ("heartbeat ends with a store error", ((Liveness, "step", heartbeat_gives_up),), "sessions"),
    (
        "claim taken from the expired",
        ((SessionClaims, "is_free", free_if_expired), *ANY_HOLDER),
        "jobs",
        often,
    ),
    (
        "claim taken from the living",
        ((SessionClaims, "is_free", free_for_all), *ANY_HOLDER),
        "jobs",
    ),
    ("known values not validated", ((Transaction, "get", known_is_no_read),), "jobs"),
    ("claim without observing", ((SessionClaims, "is_free", free_for_the_dead),), "jobs", often),
    ("claim keeps the run number", ((Jobs, "claim", claim_keeps_run),), "jobs"),
    (
        "fence without the session's row",
        ((Jobs, "fenced", _fenced_by(0, 1, 2, observes=False)),),
        "jobs",
        often,
    ),
    ("fence without the claim", ((Jobs, "fenced", _fenced_by(1, 2, observes=False)),), "jobs", often),
    ("fence without the run number", ((Jobs, "fenced", _fenced_by(0, 2)),), "busy jobs"),
    ("fence without the state", ((Jobs, "fenced", _fenced_by(0, 1)),), "busy jobs"),
    ("no fence", ((Jobs, "fenced", _fenced_by(observes=False)),), "jobs"),
    (
        "terminal job claimed again",
        (
            (Jobs, "_end", end_stays_open),
            (jobs_module, "CLAIMABLE", _EVERY_STATE),
            (open_jobs, "CLAIMABLE", _EVERY_STATE),
        ),
        "jobs",
    ),
    (
        "stopped run taken for ended",
        ((ActiveRuns, "stop_outdated", stop_and_forget), (ActiveRuns, "remove", remove_if_there)),
        "busy jobs",
    ),
    ("checkpoint before effect", ((Run, "checkpoint", checkpoint_first),), "jobs"),
    ("effect before checkpoint", ((Run, "checkpoint", effect_first),), "jobs"),
    (
        "retry keeps the claim of the dead",
        ((Jobs, "retry", retry_keeps_claim), (JobExecution, "_retry_later", retry_unfenced)),
        "late failures",
        often,
    ),
    ("request takes the claim away", ((Jobs, "_request", request_lets_go),), "busy jobs"),
    ("stopped run reported as done", ((execution, "attempt", stopped_is_done),), "jobs"),
    ("passing reason fails the job", ((execution, "attempt", passing_is_failure),), "jobs"),
    ("nothing taken back", ((JobExecution, "_carry_out", revert_is_skipped),), "jobs"),
    ("steps not checked", ((jobs_module, "check_step", unchecked_step),), "jobs"),
)
