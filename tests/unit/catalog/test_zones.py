"""Zones: inheritance, changes, and their place in the chain with protections."""

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import InvalidParameter, RetryError
from tenure.catalog.bootstrap import bootstrap
from tenure.catalog.changes.zone_changes import configure, discard
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.protection_meta import ProtectionMeta, protection_meta
from tenure.catalog.descriptors.zones import (
    DEFAULT_ZONE,
    GC_TTL_SECONDS,
    GC_TTL_SECONDS_MAX,
    EffectiveTtl,
    Zone,
    ZoneKey,
    all_zones,
    effective_ttl,
    longest_ttl_seconds,
)
from tenure.kv.store import Store
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine

DATABASE, SCHEMA, TABLE, INDEX = 100, 101, 200, 2
PLACE = (DATABASE, SCHEMA, TABLE, INDEX)


@pytest.fixture
def store() -> Store:
    env = ManualEnv()
    store = Store(SqliteEngine(MEMORY, env), env)
    store.transact(lambda txn: bootstrap(txn, store.keyspace, Catalog(store.keyspace)))
    return store


def listed(*keys: ZoneKey) -> dict[ZoneKey, Zone]:
    """Zones whose ttls are 10, 20, ..."""
    return {key: Zone(*key, 10 * number) for number, key in enumerate(keys, 1)}


def test_an_index_inherits_from_what_contains_it() -> None:
    chain: list[ZoneKey] = [DEFAULT_ZONE, (DATABASE, 0), (SCHEMA, 0), (TABLE, 0), (TABLE, INDEX)]
    for length in range(1, 6):
        assert effective_ttl(listed(*chain[:length]), *PLACE) == EffectiveTtl(10 * length, chain[length - 1])


def test_databases_schemas_and_tables_have_zones_in_force_too() -> None:
    zones = listed(DEFAULT_ZONE, (DATABASE, 0), (SCHEMA, 0), (TABLE, 0), (TABLE, INDEX))
    found = [effective_ttl(zones, *PLACE[:length]).source for length in range(5)]
    assert found == [DEFAULT_ZONE, (DATABASE, 0), (SCHEMA, 0), (TABLE, 0), (TABLE, INDEX)]


def test_a_zone_that_sets_nothing_is_passed_over() -> None:
    zones = listed(DEFAULT_ZONE, (SCHEMA, 0)) | {(TABLE, 0): Zone(TABLE, 0)}
    assert effective_ttl(zones, *PLACE) == EffectiveTtl(20, (SCHEMA, 0))


def test_zones_of_other_objects_do_not_count() -> None:
    zones = listed(DEFAULT_ZONE, (SCHEMA, 2), (DATABASE, 1), (TABLE, 3), (999, 0))
    assert effective_ttl(zones, *PLACE) == EffectiveTtl(10, DEFAULT_ZONE)
    assert effective_ttl(listed(DEFAULT_ZONE, (TABLE, 0)), DATABASE, SCHEMA) == EffectiveTtl(10, DEFAULT_ZONE)


def test_without_any_zone_the_default_of_a_new_store_holds() -> None:
    assert effective_ttl({}, *PLACE) == EffectiveTtl(GC_TTL_SECONDS, DEFAULT_ZONE)
    assert longest_ttl_seconds({}) == GC_TTL_SECONDS
    assert longest_ttl_seconds(listed(DEFAULT_ZONE, (TABLE, 0))) == 20


def test_a_zone_is_configured_and_discarded(store: Store) -> None:
    keyspace = store.keyspace
    store.transact(lambda txn: configure(txn, keyspace, (TABLE, INDEX), gc_ttl_seconds=60))
    assert all_zones(store.snapshot(), keyspace)[TABLE, INDEX] == Zone(TABLE, INDEX, 60)
    assert store.transact(lambda txn: discard(txn, keyspace, (TABLE, INDEX)))
    assert list(all_zones(store.snapshot(), keyspace)) == [DEFAULT_ZONE]
    assert not store.transact(lambda txn: discard(txn, keyspace, (TABLE, INDEX)))


def test_the_default_is_not_discarded(store: Store) -> None:
    with pytest.raises(InvalidParameter, match="default zone"):
        store.transact(lambda txn: discard(txn, store.keyspace, DEFAULT_ZONE))


@pytest.mark.parametrize("seconds", [0, -1, GC_TTL_SECONDS_MAX + 1])
def test_a_ttl_is_at_least_a_second(store: Store, seconds: int) -> None:
    with pytest.raises(InvalidParameter, match=r"gc\.ttlseconds must be between 1"):
        store.transact(lambda txn: configure(txn, store.keyspace, DEFAULT_ZONE, gc_ttl_seconds=seconds))


@pytest.mark.invariant("zone-chain")
@pytest.mark.parametrize("is_discarded", [False, True])
def test_a_protection_that_comes_meanwhile_refuses_a_zone_change(store: Store, is_discarded: bool) -> None:
    keyspace = store.keyspace
    store.transact(lambda txn: configure(txn, keyspace, (TABLE, 0), gc_ttl_seconds=60))
    txn = store.begin()
    if is_discarded:
        discard(txn, keyspace, (TABLE, 0))
    else:
        configure(txn, keyspace, (TABLE, 0), gc_ttl_seconds=1)
    store.transact(lambda txn: protection_meta(keyspace).put(txn, ProtectionMeta(version=1)))
    with pytest.raises(RetryError):
        txn.commit()
