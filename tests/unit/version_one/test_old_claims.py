"""Version 1 beside version 2: a job has one holder, whichever way it is held."""

from collections.abc import Callable

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import FenceLost, TooEarly
from tenure.base.settings import DEFINITIONS, LIVENESS_TTL, Settings
from tenure.cluster.jobs.claims import Claims
from tenure.cluster.jobs.job_table import JobProgress, Jobs
from tenure.cluster.sessions.liveness import Liveness
from tenure.cluster.sessions.session_records import SessionId, Sessions
from tenure.cluster.sessions.versions import Versions
from tenure.kv.store import Store
from tenure.storage.sqlite.sqlite_engine import SqliteEngine
from tenure.version_one.old_claims import MixedClaims, OldClaims
from tenure.version_one.old_heartbeats import OldHeartbeats
from tenure.version_one.old_liveness import OldLiveness, reap_old

SETTINGS = Settings(DEFINITIONS)
TTL_SECONDS = SETTINGS[LIVENESS_TTL]


class Mixed:
    """A cluster of version 1 with a node of each version."""

    def __init__(self) -> None:
        self.env = ManualEnv()
        self.store = Store(SqliteEngine(":memory:", self.env), self.env)
        self.sessions = Sessions(self.store.keyspace)
        self.heartbeats = OldHeartbeats(self.store.keyspace)
        self.versions = Versions(self.store.keyspace, self.sessions)
        self.old = OldLiveness(
            self.store, self.sessions, self.heartbeats, self.versions, lambda: SETTINGS, address=""
        )
        self.old.step()
        self.new = Liveness(
            self.store,
            self.sessions,
            lambda: SETTINGS,
            address="",
            version=2,
            join=lambda txn: self.versions.join(txn, 2),
            beside=lambda txn, instance: self.heartbeats.beat(txn, instance, ttl_seconds=TTL_SECONDS),
        )
        self.new.step()
        self.old_jobs = self._jobs(lambda: OldClaims(self.sessions, self.heartbeats))
        self.new_jobs = self._jobs(lambda: MixedClaims(self.sessions, self.heartbeats))
        self.job = self.store.transact(lambda txn: self.new_jobs.create(txn, kind="work")).id

    def _jobs(self, claims: Callable[[], Claims]) -> Jobs:
        return Jobs(self.store.keyspace, self.sessions, self.store.clock, claims)

    @property
    def old_id(self) -> SessionId:
        return self.old.session().id

    @property
    def new_id(self) -> SessionId:
        return self.new.session().id

    def checkpoint(self, jobs: Jobs, fence: object) -> None:
        progress = JobProgress(self.job, 0.5)
        self.store.transact(lambda txn: jobs.checkpoint(txn, fence, progress))  # type: ignore[arg-type]


@pytest.fixture
def mixed() -> Mixed:
    return Mixed()


def test_nodes_of_both_versions_have_ids_of_their_own(mixed: Mixed) -> None:
    assert mixed.old_id.instance != mixed.new_id.instance


@pytest.mark.invariant("old-lease")
def test_a_newer_node_leaves_a_job_to_a_living_older_one(mixed: Mixed) -> None:
    fence = mixed.store.transact(lambda txn: mixed.old_jobs.claim(txn, mixed.job, mixed.old_id))
    assert fence is not None
    with pytest.raises(TooEarly):
        mixed.store.transact(lambda txn: mixed.new_jobs.claim(txn, mixed.job, mixed.new_id))
    mixed.checkpoint(mixed.old_jobs, fence)


@pytest.mark.invariant("old-lease")
def test_an_older_node_leaves_a_job_to_a_living_newer_one(mixed: Mixed) -> None:
    fence = mixed.store.transact(lambda txn: mixed.new_jobs.claim(txn, mixed.job, mixed.new_id))
    assert fence is not None
    with pytest.raises(TooEarly):
        mixed.store.transact(lambda txn: mixed.old_jobs.claim(txn, mixed.job, mixed.old_id))
    mixed.checkpoint(mixed.new_jobs, fence)


@pytest.mark.invariant("I24")
def test_a_newer_node_takes_over_from_a_dead_older_one_whose_run_then_writes_nothing(mixed: Mixed) -> None:
    former = mixed.store.transact(lambda txn: mixed.old_jobs.claim(txn, mixed.job, mixed.old_id))
    mixed.env.advance(TTL_SECONDS + 1)
    mixed.new.step()
    fence = mixed.store.transact(lambda txn: mixed.new_jobs.claim(txn, mixed.job, mixed.new_id))
    assert fence is not None and fence.run == 2
    with pytest.raises(FenceLost):
        mixed.checkpoint(mixed.old_jobs, former)
    mixed.checkpoint(mixed.new_jobs, fence)


@pytest.mark.invariant("I24")
def test_an_older_node_takes_over_from_a_silent_newer_one_whose_run_then_writes_nothing(mixed: Mixed) -> None:
    former = mixed.store.transact(lambda txn: mixed.new_jobs.claim(txn, mixed.job, mixed.new_id))
    mixed.env.advance(TTL_SECONDS + 1)
    mixed.old.step()
    fence = mixed.store.transact(lambda txn: mixed.old_jobs.claim(txn, mixed.job, mixed.old_id))
    assert fence is not None and fence.run == 2
    # The newer node's session is expired but still there: its fence is lost by the lease alone.
    with pytest.raises(FenceLost):
        mixed.checkpoint(mixed.new_jobs, former)
    mixed.checkpoint(mixed.old_jobs, fence)


def test_a_dead_older_instance_is_removed_and_a_living_one_is_not(mixed: Mixed) -> None:
    reap_old(mixed.store, mixed.sessions, mixed.heartbeats)
    assert mixed.sessions.instances.get(mixed.store.snapshot(), mixed.old_id.instance) is not None
    mixed.env.advance(TTL_SECONDS + 1)
    reap_old(mixed.store, mixed.sessions, mixed.heartbeats)
    assert mixed.sessions.instances.get(mixed.store.snapshot(), mixed.old_id.instance) is None


def test_an_older_node_that_was_removed_gets_a_new_id_and_stops_what_it_did(mixed: Mixed) -> None:
    former = mixed.old.session()
    mixed.env.advance(TTL_SECONDS + 1)
    reap_old(mixed.store, mixed.sessions, mixed.heartbeats)
    with pytest.raises(Exception, match="given to another"):
        mixed.old.step()
    assert former.done.is_set()
    mixed.old.step()
    assert not mixed.old.session().done.is_set()


def test_an_older_node_that_leaves_makes_finalizing_possible(mixed: Mixed) -> None:
    mixed.old.release()
    mixed.store.transact(lambda txn: mixed.versions.finalize(txn, 2))
    assert mixed.versions.cluster(mixed.store.snapshot()) == 2
