"""Which versions run together, and when a version can be finalized."""

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import InvalidParameter, NewerFormat, OlderInstances
from tenure.base.settings import DEFINITIONS, VERSION, Settings
from tenure.base.timestamp import ZERO_AT
from tenure.cluster.sessions.session_records import Instance, Sessions
from tenure.cluster.sessions.versions import Versions
from tenure.cluster.settings import ClusterSettings
from tenure.kv.store import Store
from tenure.storage.sqlite.sqlite_engine import SqliteEngine


@pytest.fixture
def store() -> Store:
    env = ManualEnv()
    return Store(SqliteEngine(":memory:", env), env)


@pytest.fixture
def sessions(store: Store) -> Sessions:
    return Sessions(store.keyspace)


@pytest.fixture
def versions(store: Store, sessions: Sessions) -> Versions:
    return Versions(store.keyspace, sessions)


def _join(store: Store, versions: Versions, program: int) -> None:
    store.transact(lambda txn: versions.join(txn, program))


def test_the_first_node_gives_the_cluster_its_version(store: Store, versions: Versions) -> None:
    assert versions.cluster(store.snapshot()) is None
    _join(store, versions, 2)
    assert versions.cluster(store.snapshot()) == 2


def test_a_newer_node_joins_and_leaves_the_version_as_it_is(store: Store, versions: Versions) -> None:
    _join(store, versions, 1)
    _join(store, versions, 2)
    assert versions.cluster(store.snapshot()) == 1


@pytest.mark.invariant("version-join")
def test_a_node_older_than_the_cluster_cannot_join(store: Store, versions: Versions) -> None:
    _join(store, versions, 2)
    with pytest.raises(NewerFormat, match="version 1"):
        _join(store, versions, 1)


def test_a_node_two_versions_ahead_cannot_join(store: Store, versions: Versions) -> None:
    _join(store, versions, 1)
    with pytest.raises(NewerFormat, match="from version 2 on"):
        _join(store, versions, 3)


@pytest.mark.invariant("version-join")
def test_a_version_is_not_finalized_past_an_older_instance(
    store: Store, sessions: Sessions, versions: Versions
) -> None:
    _join(store, versions, 1)
    store.transact(lambda txn: sessions.instances.put(txn, Instance(7, ZERO_AT, "", ZERO_AT, 1)))
    with pytest.raises(OlderInstances, match="7"):
        store.transact(lambda txn: versions.finalize(txn, 2))
    store.transact(lambda txn: sessions.instances.delete(txn, 7))
    store.transact(lambda txn: versions.finalize(txn, 2))
    assert versions.cluster(store.snapshot()) == 2


@pytest.mark.invariant("version-join")
def test_joining_and_finalizing_at_once_is_one_after_the_other(
    store: Store, sessions: Sessions, versions: Versions
) -> None:
    _join(store, versions, 1)
    joining = store.begin()
    versions.join(joining, 1)
    sessions.instances.put(joining, Instance(7, ZERO_AT, "", ZERO_AT, 1))
    store.transact(lambda txn: versions.finalize(txn, 2))
    with pytest.raises(Exception, match="another transaction changed"):
        joining.commit()


def test_a_version_never_goes_back(store: Store, versions: Versions) -> None:
    _join(store, versions, 2)
    with pytest.raises(OlderInstances):
        store.transact(lambda txn: versions.finalize(txn, 1))


def test_setting_the_version_finalizes_and_every_node_hears_of_it(store: Store, versions: Versions) -> None:
    _join(store, versions, 1)
    settings = ClusterSettings(store, Settings(DEFINITIONS), versions.finalize)
    store.transact(lambda txn: settings.set(txn, "version", "2"))
    settings.follow()
    assert settings.current()[VERSION] == 2
    with pytest.raises(InvalidParameter):
        store.transact(lambda txn: settings.reset(txn, "version"))


@pytest.mark.parametrize(("program", "is_kept"), [(1, False), (2, True)])
def test_the_first_node_starts_the_head_clock_if_no_older_one_can_join(
    store: Store, versions: Versions, program: int, is_kept: bool
) -> None:
    _join(store, versions, program)
    assert (store.engine.moved_heads(store.engine.clock_at()).heads is not None) is is_kept


def test_finalizing_starts_the_head_clock(store: Store, versions: Versions) -> None:
    _join(store, versions, 1)
    _join(store, versions, 2)
    assert store.engine.moved_heads(store.engine.clock_at()).heads is None
    before_at = store.engine.clock_at()
    store.transact(lambda txn: versions.finalize(txn, 2))
    assert store.engine.moved_heads(before_at).heads is None
    assert store.engine.moved_heads(store.engine.clock_at()).heads == frozenset()
