"""Settings of the cluster: set once, known everywhere."""

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import InvalidParameter
from tenure.base.settings import DEFINITIONS, LIVENESS_TTL, Settings
from tenure.cluster.settings import ClusterSettings, StoredSetting
from tenure.kv.keys import SETTINGS
from tenure.kv.records import Records
from tenure.kv.store import Store
from tenure.storage.sqlite.sqlite_engine import SqliteEngine
from tests.unit.base.changed_settings import changed_texts


@pytest.fixture
def store() -> Store:
    env = ManualEnv()
    return Store(SqliteEngine(":memory:", env), env)


@pytest.fixture
def settings(store: Store) -> ClusterSettings:
    return ClusterSettings(store, Settings(DEFINITIONS))


@pytest.mark.invariant("settings-watched")
def test_a_setting_made_by_one_node_is_taken_in_by_another(store: Store, settings: ClusterSettings) -> None:
    other = ClusterSettings(store, Settings(DEFINITIONS))
    store.transact(lambda txn: settings.set(txn, "liveness.ttl", "10s"))
    other.follow()
    assert other.current()[LIVENESS_TTL] == 10.0


def test_a_node_that_starts_later_finds_what_was_set(store: Store, settings: ClusterSettings) -> None:
    store.transact(lambda txn: settings.set(txn, "liveness.ttl", "10s"))
    assert ClusterSettings(store, Settings(DEFINITIONS)).current()[LIVENESS_TTL] == 10.0


def test_a_reset_brings_back_what_the_command_line_gave(store: Store) -> None:
    settings = ClusterSettings(store, Settings(DEFINITIONS).with_value(LIVENESS_TTL, 7.0))
    store.transact(lambda txn: settings.set(txn, "liveness.ttl", "10s"))
    settings.follow()
    store.transact(lambda txn: settings.reset(txn, "liveness.ttl"))
    settings.follow()
    assert settings.current()[LIVENESS_TTL] == 7.0


@pytest.mark.parametrize(("name", "text"), [("liveness.tttl", "10s"), ("liveness.ttl", "1ms")])
def test_what_does_not_exist_or_is_out_of_limits_is_refused(
    store: Store, settings: ClusterSettings, name: str, text: str
) -> None:
    with pytest.raises(InvalidParameter):
        store.transact(lambda txn: settings.set(txn, name, text))
    settings.load()
    assert changed_texts(settings.current()) == {}


def test_what_a_newer_version_has_set_is_passed_over_and_kept(store: Store) -> None:
    records = Records(store.keyspace, SETTINGS, StoredSetting, key=("name",))
    store.transact(lambda txn: records.put(txn, StoredSetting("from.the.future", "1")))
    settings = ClusterSettings(store, Settings(DEFINITIONS))
    assert changed_texts(settings.current()) == {}
    assert records.get(store.snapshot(), "from.the.future") == StoredSetting("from.the.future", "1")


def test_a_step_without_changes_changes_nothing(settings: ClusterSettings) -> None:
    before = settings.current()
    settings.follow()
    assert settings.current() is before
