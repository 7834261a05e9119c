"""Wrong versions of upgrades, settings, retention and tenants, each as somebody might have written it.

Walk: `mutants.MUTANTS` has `ALL` beside the others; a swap replaces the function of the same place.
"""

from collections.abc import Iterable
from typing import Any

from tenure.base.errors import RetryError, TooEarly
from tenure.base.settings import LIVENESS_TTL, VERSION
from tenure.base.timestamp import Timestamp, add_seconds
from tenure.cluster import settings as settings_module
from tenure.cluster.jobs.job_records import JobControl
from tenure.cluster.jobs.job_table import Jobs
from tenure.cluster.sessions.liveness import Liveness, NodeSession
from tenure.cluster.sessions.session_records import Instance, SessionId, Sessions
from tenure.cluster.sessions.versions import Versions
from tenure.cluster.settings import ClusterSettings, StoredSetting
from tenure.kv.follower import Follower
from tenure.kv.gaps import Gap
from tenure.kv.keys import Keyspace, Span
from tenure.kv.records import replace
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.version_one import old_liveness
from tenure.version_one.old_claims import MixedClaims, OldClaims
from tenure.version_one.old_heartbeats import OldHeartbeats
from tests.simulation.job_knobs import JobKnobs
from tests.simulation.job_mistakes import ANY_HOLDER, changing_settings, often, sweeping
from tests.simulation.knobs import Knobs

_init_sessions = Sessions.__init__
_claim = Jobs.claim
_step = Follower.step

# ── upgrades ─────────────────────────────────────────────────────────────────────────────────────


def free_by_session(self: MixedClaims, txn: Transaction, control: JobControl, holder: SessionId) -> bool:
    """Nodes of version 1, it is thought, have died out."""
    return self._new.is_free(txn, control, holder)


def taken_by_session(self: MixedClaims, control: JobControl, holder: SessionId) -> JobControl:
    return self._new.with_holder(control, holder)


def free_of_the_living(self: OldClaims, txn: Transaction, control: JobControl, holder: SessionId) -> bool:
    return True


def claim_keeps_run_of_others(self: Jobs, txn: Transaction, id: int, session: SessionId) -> Any:
    """A run number, it is thought, is for runs of one node; a claim of a lease needs none."""
    control = self._control.get(txn, id)
    fence = _claim(self, txn, id, session)
    if fence is None or control is None or not isinstance(self.claims(), OldClaims) or not control.run:
        return fence
    claimed = self._control.get(txn, id)
    assert claimed is not None
    self._control.put(txn, replace(claimed, run=control.run))
    return fence._replace(run=control.run)


def beat_by_session_alone(self: Liveness, session: NodeSession) -> float:
    ttl_seconds = self._settings()[LIVENESS_TTL]
    txn = self._store.begin(urgent=True)
    try:
        self._sessions.extend(txn, session.id, ttl_seconds=ttl_seconds)
        commit_at = txn.commit()
    except (TooEarly, RetryError):
        return 0.05
    finally:
        txn.rollback()
    session.acknowledged(add_seconds(commit_at, ttl_seconds))
    return self._pause(ttl_seconds)


def finalize_at_once(self: Versions, txn: Transaction, version: int) -> None:
    self._settings.put(txn, StoredSetting(VERSION.name, VERSION.render(version)))


def finalize_by_a_look(self: Versions, txn: Transaction, version: int) -> None:
    """Counts the sessions: whoever is alive, it is thought, has one."""
    if all(present.id.epoch_at for present in self._sessions.list(txn)):
        self._settings.put(txn, StoredSetting(VERSION.name, VERSION.render(version)))


def join_always(self: Versions, txn: Transaction, program: int) -> None:
    if self.cluster(txn) is None:
        self._settings.put(txn, StoredSetting(VERSION.name, VERSION.render(program)))


def forget_by_a_look(store: Store, sessions: Sessions, heartbeats: OldHeartbeats, instance: Instance) -> None:
    """The heartbeat was seen to have run out: it is not looked at again."""
    txn = store.begin()
    try:
        sessions.instances.delete(txn, instance.id)
        heartbeats.stop(txn, instance.id)
        txn.commit()
    except (TooEarly, RetryError):
        pass
    finally:
        txn.rollback()


# ── settings ─────────────────────────────────────────────────────────────────────────────────────


def follow_nothing(self: ClusterSettings) -> float:
    watch = self._follower._watch
    assert watch is not None
    watch.next(settings_module.FOLLOW_SECONDS, changes_only=True)
    return 0.0


def step_over_gaps(self: Follower, seconds: float | None = None) -> bool:
    """Goes on after a gap as if nothing had changed in it."""
    if self._watch is not None and self._is_current:
        change = self._watch.next(0.0, changes_only=True)
        if isinstance(change, Gap):
            self._watch.resume(self._store.snapshot().at)
    return _step(self, seconds)


def over_what_was(self: ClusterSettings, snapshot: Snapshot) -> None:
    """Lays what is stored over what it had: a setting that was reset stays as it was."""
    self._current = settings_module._over(self._current, self._records.scan(snapshot))


# ── retention ────────────────────────────────────────────────────────────────────────────────────


def forget_by_age(
    self: Jobs, txn: Transaction, before_at: Timestamp, *, after: int = 0, limit: int
) -> int | None:
    """Goes by the time of creation, open or not."""
    span = Span(self._jobs.key(after) + b"\0", self._jobs.span().hi)
    looked = [self._jobs.decode(value) for _, value in txn.scan(span, limit=limit)]
    for job in looked:
        if job.created_at < before_at:
            for records in (self._jobs, self._control, self._ended, self._progress):
                records.delete(txn, job.id)
    return looked[-1].id if len(looked) == limit else None


def _forget_ended(since: str, records: Iterable[str]) -> Any:
    def forget(
        self: Jobs, txn: Transaction, before_at: Timestamp, *, after: int = 0, limit: int
    ) -> int | None:
        span = Span(self._ended.key(after) + b"\0", self._ended.span().hi)
        looked = [self._ended.decode(value) for _, value in txn.scan(span, limit=limit)]
        for control in looked:
            if getattr(control, since) < before_at:
                for name in records:
                    getattr(self, name).delete(txn, control.id)
        return looked[-1].id if len(looked) == limit else None

    return forget


def forget_first_batch(
    self: Jobs, txn: Transaction, before_at: Timestamp, *, after: int = 0, limit: int
) -> int | None:
    """Looks at the oldest alone: once those are young, nothing is ever forgotten again."""
    for control in list(self._ended.scan(txn))[:1]:
        if control.finished_at < before_at:
            for records in (self._jobs, self._ended, self._progress):
                records.delete(txn, control.id)
    return None


# ── tenants ──────────────────────────────────────────────────────────────────────────────────────


def sessions_of_all(self: Sessions, keyspace: Keyspace) -> None:
    """A node is a node, whoever it works for."""
    _init_sessions(self, Keyspace(1))


def owns_all(self: Keyspace, key: object) -> bool:
    return True


# ── what makes them likely ───────────────────────────────────────────────────────────────────────


def upgrading(knobs: Knobs) -> None:
    assert isinstance(knobs, JobKnobs)
    knobs.upgrades = True
    often(knobs)


def forgetting(knobs: Knobs) -> None:
    assert isinstance(knobs, JobKnobs)
    knobs.retention_seconds = 4.0


def sharing(knobs: Knobs) -> None:
    assert isinstance(knobs, JobKnobs)
    knobs.tenants = 2


_RECORDS = ("_jobs", "_ended", "_progress")

ALL: tuple[tuple[Any, ...], ...] = (
    (
        "mixed claim ignores the old lease",
        ((MixedClaims, "is_free", free_by_session), *ANY_HOLDER),
        "jobs",
        upgrading,
    ),
    ("mixed claim writes no lease", ((MixedClaims, "with_holder", taken_by_session),), "jobs", upgrading),
    (
        "lease taken from the living",
        ((OldClaims, "lease_is_free", free_of_the_living), *ANY_HOLDER),
        "jobs",
        upgrading,
    ),
    ("old claim keeps the run number", ((Jobs, "claim", claim_keeps_run_of_others),), "jobs", upgrading),
    ("no heartbeat of the older way", ((Liveness, "_beat", beat_by_session_alone),), "jobs", upgrading),
    ("finalized beside older nodes", ((Versions, "finalize", finalize_at_once),), "jobs", upgrading),
    ("finalized by counting sessions", ((Versions, "finalize", finalize_by_a_look),), "jobs", upgrading),
    ("older node joins a newer cluster", ((Versions, "join", join_always),), "jobs", upgrading),
    (
        "older instance removed by a look",
        ((old_liveness, "_forget", forget_by_a_look),),
        "jobs",
        upgrading,
    ),
    ("settings never read again", ((ClusterSettings, "follow", follow_nothing),), "jobs", changing_settings),
    ("a follower steps over a gap", ((Follower, "step", step_over_gaps),), "jobs", sweeping),
    ("reset setting stays", ((ClusterSettings, "_load", over_what_was),), "jobs", changing_settings),
    ("retention forgets open jobs", ((Jobs, "forget_ended", forget_by_age),), "jobs", forgetting),
    (
        "retention counts from the start",
        ((Jobs, "forget_ended", _forget_ended("started_at", _RECORDS)),),
        "jobs",
        forgetting,
    ),
    (
        "retention leaves progress behind",
        ((Jobs, "forget_ended", _forget_ended("finished_at", _RECORDS[:2])),),
        "jobs",
        forgetting,
    ),
    ("retention stops at the first batch", ((Jobs, "forget_ended", forget_first_batch),), "jobs", forgetting),
    (
        "sessions shared by tenants",
        (
            (Sessions, "__init__", sessions_of_all),
            (Keyspace, "owns", owns_all),
            (Keyspace, "owns_span", owns_all),
        ),
        "jobs",
        sharing,
    ),
)
