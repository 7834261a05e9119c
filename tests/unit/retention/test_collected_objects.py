"""Sweeps of dropped tables and indexes: when they end, what keeps them, and what is left of them."""

import pytest

from tenure.base.errors import SnapshotTooOld
from tenure.base.timestamp import to_bytes
from tenure.catalog.descriptors.definitions import Table
from tenure.retention.protections.protection_records import Mode
from tenure.retention.sweeping import collection
from tenure.retention.sweeping import job as gc
from tenure.retention.sweeping.collection import HeadCollection
from tenure.retention.sweeping.publication import Decisions
from tenure.retention.sweeping.sweep_records import SweepStage
from tests.unit.retention.sweeping import MINUTE, TTL, SweptStore, T, U, two_tables

node = pytest.fixture(two_tables)


@pytest.mark.invariant("collected")
def test_a_dropped_table_goes_when_its_ttl_has_passed_since_its_end(node: SweptStore) -> None:
    at = node.put(T, "k", "1")
    node.drop(T)
    node.wait(TTL - MINUTE)
    node.sweep()
    assert node.kept(T, "k") == ["1"]
    node.wait(2 * MINUTE)
    result = node.sweep()
    assert result.objects == 1
    assert node.revisions(node.head(T)) == []
    assert node.catalog.get(node.store.snapshot(), T) is None
    with pytest.raises(SnapshotTooOld):
        node.protect(at, Mode.AT, T)


def test_a_table_whose_names_drain_has_not_ended(node: SweptStore) -> None:
    node.put(T, "k", "1")
    node.drop(T)
    node.alter(T, draining=node.draining(T))
    node.wait(3 * TTL)
    node.sweep()
    assert node.kept(T, "k") == ["1"]
    node.end_drop(T)
    node.wait(TTL / 2)
    node.sweep()
    assert node.kept(T, "k") == ["1"]


def test_a_protection_keeps_a_dropped_table(node: SweptStore) -> None:
    at = node.put(T, "k", "1")
    id = node.protect(at, Mode.AT, T)
    node.drop(T)
    node.wait(2 * TTL)
    node.sweep()
    assert node.kept(T, "k") == ["1"]
    node.release(id)
    node.sweep()
    assert node.revisions(node.head(T)) == []


@pytest.mark.invariant("I30")
def test_history_of_a_dropped_table_goes_that_its_protection_does_not_need(node: SweptStore) -> None:
    node.put(T, "k", "1")
    node.put(T, "k", "2")
    at = node.put(T, "k", "3")
    id = node.protect(at, Mode.AT, T)
    node.put(T, "k", "4")
    node.put(T, "k", "5")
    node.drop(T)
    node.wait(2 * TTL)
    node.sweep()
    assert node.kept(T, "k") == ["3", "5"]  # UNDROP brings back the newest
    record = node.record(node.head(T))
    assert record is not None and dict(record.pinned)[id] > 0
    node.release(id)
    node.sweep()
    assert node.revisions(node.head(T)) == []


def test_thresholds_of_a_collected_table_stay_until_the_catalog_has_passed_its_end(node: SweptStore) -> None:
    node.put(T, "k", "1")
    node.set_ttl(4 * TTL, U)
    node.drop(T)
    node.wait(TTL + MINUTE)
    node.sweep()
    assert node.catalog.get(node.store.snapshot(), T) is None
    assert node.threshold(node.head(T)) > 0 and node.record(node.head(T)) is not None
    node.wait(4 * TTL)
    node.sweep()
    node.sweep()
    assert node.threshold(node.head(T)) == 0 and node.record(node.head(T)) is None
    assert node.head(T) not in node.engine.written_heads().written_at


def test_the_threshold_of_a_collected_index_stays_until_the_catalog_has_passed_its_end(
    node: SweptStore,
) -> None:
    node.put(T, "k", "1", index=2)
    node.set_ttl(4 * TTL, U)
    table = node.catalog.get(node.store.snapshot(), T)
    assert isinstance(table, Table)
    node.alter(T, indexes=tuple(each for each in table.indexes if each.id != 2))
    head = node.head(T, 2)
    node.wait(TTL + MINUTE)
    node.sweep()
    assert node.revisions(head) == [] and node.threshold(head) > 0
    node.wait(4 * TTL)
    node.sweep()
    node.sweep()
    assert node.threshold(head) == 0
    record = node.record(head)
    # That it is collected is known still, so that the next round need not look.
    assert record is not None and record.stage is SweepStage.COLLECTED and record.is_forgotten
    assert head not in node.engine.written_heads().written_at
    node.wait(TTL)
    node.sweep()
    assert node.record(head) == record


def test_an_index_that_is_gone_is_collected_once(node: SweptStore) -> None:
    node.put(T, "k", "1", index=2)
    table = node.catalog.get(node.store.snapshot(), T)
    assert isinstance(table, Table)
    node.alter(T, indexes=tuple(each for each in table.indexes if each.id != 2))
    head = node.head(T, 2)
    node.transact(lambda txn: txn.put(node.keyspace.cleaned_key(head), to_bytes(1)))
    node.wait(TTL + MINUTE)
    node.sweep()
    record = node.record(head)
    assert record is not None and record.stage is SweepStage.COLLECTED
    node.wait(MINUTE)
    node.sweep()
    again = node.record(head)
    assert again is not None and again.published_at == record.published_at


def test_the_zone_of_an_index_that_is_gone_goes_with_its_data(node: SweptStore) -> None:
    node.put(T, "k", "1", index=2)
    node.set_ttl(2 * TTL, T, 2)
    table = node.catalog.get(node.store.snapshot(), T)
    assert isinstance(table, Table)
    node.alter(T, indexes=tuple(each for each in table.indexes if each.id != 2))
    node.wait(TTL + MINUTE)
    node.sweep()
    assert node.revisions(node.head(T, 2)) and (T, 2) in node.zones()
    node.wait(TTL)
    node.sweep()
    assert not node.revisions(node.head(T, 2)) and (T, 2) not in node.zones()


def test_what_is_written_late_to_a_collected_index_goes_too(node: SweptStore) -> None:
    table = node.catalog.get(node.store.snapshot(), T)
    assert isinstance(table, Table)
    node.alter(T, indexes=tuple(each for each in table.indexes if each.id != 2))
    head = node.head(T, 2)
    for _ in range(2):
        node.put(T, "k", "late", index=2)
        node.wait(2 * TTL)
        node.sweep()
        node.sweep()
        assert node.revisions(head) == []
    record = node.record(head)
    assert record is not None and record.stage is SweepStage.COLLECTED


def test_a_collection_that_another_round_has_finished_writes_nothing(node: SweptStore) -> None:
    """Its table is forgotten by then: a record, a claim or a threshold of it would stay."""
    node.put(T, "k", "1")
    ended_at, head = node.drop(T), node.head(T)
    node.wait(TTL + MINUTE)
    decisions = Decisions(node.services, node.tracker.refresh_now())
    table = node.catalog.get(node.store.snapshot(), T)
    assert isinstance(table, Table)
    settled = {T: table.modified_at}
    assert node.transact(
        lambda txn: collection.begin_table(txn, node.services, decisions, table, ended_at, settled)
    )
    record = node.record(head)
    assert record is not None and record.stage is SweepStage.COLLECTING
    job = node.transact(lambda txn: gc.start(txn, node.services))
    late = HeadCollection(node.services, node.claim(job), record)
    for _ in range(3):
        node.wait(TTL)
        node.sweep()
    assert node.record(head) is None
    assert late.step() == 0 and late.is_over
    assert node.record(head) is None
    assert node.merges.holder(node.store.snapshot(), T, 1) == 0
