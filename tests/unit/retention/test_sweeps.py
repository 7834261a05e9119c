"""Sweeps of the store: what is published, what is removed, and what is not."""

import pytest

from tenure.base.errors import RetryError, SnapshotTooOld
from tenure.base.settings import GC_INTERVAL
from tenure.catalog.descriptors.definitions import DEFAULT_SCHEMA, Table
from tenure.cluster.jobs.job_states import JobState
from tenure.kv.keys import DESCRIPTORS, EXPIRATIONS
from tenure.retention.protections.protection_records import Mode, Targets
from tenure.retention.sweeping import job as gc
from tenure.retention.sweeping import removal
from tenure.retention.sweeping.file_sweeps import note_merge
from tenure.retention.sweeping.publication import Decisions, publish
from tenure.retention.sweeping.removal import HeadRemoval, finish, remove
from tenure.retention.sweeping.schedule import SweepSchedule
from tenure.retention.sweeping.sweep_records import SweepStage
from tenure.table.lake.manifests import no_base
from tests.unit.retention.protecting import OWNER
from tests.unit.retention.sweeping import MINUTE, TTL, SweptStore, T, U, two_tables

node = pytest.fixture(two_tables)


def test_minute_59_and_minute_61_of_the_document(node: SweptStore) -> None:
    before_at = node.put(T, "k", "old")
    node.put(T, "k", "new")
    node.wait(59 * MINUTE)
    node.sweep()
    assert node.get(T, "k", before_at) == "old"
    id = node.protect(before_at, Mode.AT, T)
    node.wait(2 * MINUTE)
    node.sweep()
    assert node.kept(T, "k") == ["old", "new"]
    node.release(id)
    node.sweep()
    assert node.kept(T, "k") == ["new"]
    with pytest.raises(SnapshotTooOld):
        node.get(T, "k", before_at)
    with pytest.raises(SnapshotTooOld):
        node.protect(before_at, Mode.AT, T)


def test_what_nobody_needs_goes_and_the_newest_stays(node: SweptStore) -> None:
    for number in range(5):
        node.put(T, "k", str(number))
    node.put(T, "gone", "x")
    node.put(T, "gone", None)
    node.wait(TTL + 1)
    result = node.sweep()
    assert node.kept(T, "k") == ["4"]
    assert node.kept(T, "gone") == []
    assert result.heads > 0 and result.removed >= 6
    record = node.record(node.head(T))
    assert record is not None and record.stage is SweepStage.SWEPT and record.removed == 6
    assert node.threshold(node.head(T)) == record.keep.threshold


def test_a_head_that_nobody_wrote_to_is_not_published_again(node: SweptStore) -> None:
    node.put(T, "k", "1")
    node.wait(TTL + 1)
    node.sweep()
    first = node.record(node.head(T))
    node.wait(TTL)
    node.sweep()
    assert node.record(node.head(T)) == first
    node.put(T, "k", "2")
    node.wait(TTL + 1)
    node.sweep()
    assert node.kept(T, "k") == ["2"]


def test_an_old_protection_holds_back_nothing_elsewhere(node: SweptStore) -> None:
    at = node.put(T, "k", "1")
    node.put(U, "k", "1")
    node.protect(at, Mode.AFTER, T)
    for number in range(2, 5):
        node.put(T, "k", str(number))
        node.put(U, "k", str(number))
    node.wait(2 * TTL)
    node.sweep()
    assert node.kept(U, "k") == ["4"]
    assert node.kept(T, "k") == ["1", "2", "3", "4"]
    assert node.threshold(node.head(T)) <= at
    assert node.get(T, "k", at) == "1"


def test_a_zone_that_is_changed_counts_at_the_publication(node: SweptStore) -> None:
    at = node.put(T, "k", "1")
    node.put(T, "k", "2")
    node.wait(TTL + 1)
    node.set_ttl(10 * TTL, T)
    node.sweep()
    assert node.get(T, "k", at) == "1"
    node.set_ttl(1, T)
    node.sweep()
    assert node.kept(T, "k") == ["2"]


def test_the_catalog_is_kept_for_the_longest_ttl(node: SweptStore) -> None:
    node.put(T, "k", "1")
    node.set_ttl(10 * TTL, T)
    node.wait(2 * TTL)
    node.sweep()
    assert node.threshold(node.keyspace.head(DESCRIPTORS)) <= node.ago(2 * TTL)


@pytest.mark.setting("gc.system_ttl")
def test_heartbeats_are_swept_by_the_ttl_of_system_heads(node: SweptStore) -> None:
    head = node.keyspace.head(EXPIRATIONS)
    node.wait(4 * TTL)
    before = len(node.revisions(head))
    node.sweep()
    assert before > 2 * len(node.revisions(head)) - 20
    assert node.threshold(head) > node.ago(2 * TTL + MINUTE)


def test_a_sweep_of_one_table_touches_no_other(node: SweptStore) -> None:
    for table in (T, U):
        node.put(table, "k", "1")
        node.put(table, "k", "2")
    node.wait(TTL + 1)
    node.sweep(T)
    assert (node.kept(T, "k"), node.kept(U, "k")) == (["2"], ["1", "2"])
    assert node.threshold(node.keyspace.head(EXPIRATIONS)) == 0


@pytest.mark.invariant("tombstones")
def test_tombstones_stay_while_a_merge_has_claimed_the_index(node: SweptStore) -> None:
    node.put(T, "k", "1")
    node.put(T, "k", None)
    job = node.transact(lambda txn: node.jobs.create(txn, kind="flush"))
    node.transact(lambda txn: node.merges.claim(txn, T, 1, job.id))
    node.wait(TTL + 1)
    node.sweep()
    assert node.kept(T, "k") == [None]


def test_tombstones_that_a_merge_held_back_go_when_it_has_failed(node: SweptStore) -> None:
    """Nobody writes to the index any more, so only the sweep itself knows that something is left."""
    node.put(T, "k", "1")
    node.put(T, "k", None)
    job = node.transact(lambda txn: node.jobs.create(txn, kind="flush"))
    node.transact(lambda txn: node.merges.claim(txn, T, 1, job.id))
    node.wait(TTL + 1)
    node.sweep()
    run = node.claim(job)
    node.transact(lambda txn: node.jobs.step(txn, run.fence, JobState.SUCCEEDED))
    node.wait(MINUTE)
    node.sweep()
    assert node.kept(T, "k") == []


def test_a_cursor_does_not_undo_what_a_merge_has_noted(
    node: SweptStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "CURSOR_BATCHES", 1)
    for number in range(20):
        node.put(T, "k", str(number))
    node.wait(TTL + 1)
    decisions = Decisions(node.services, node.tracker.refresh_now())
    node.transact(lambda txn: publish(txn, node.services, decisions, [node.head(T)]))
    record = node.record(node.head(T))
    assert record is not None
    run = node.claim(node.transact(lambda txn: gc.start(txn, node.services)))
    head_removal = HeadRemoval(node.services, record)
    remove(run, [head_removal], 2)
    node.transact(lambda txn: note_merge(txn, node.keyspace, T, 1, record.keep))
    while not head_removal.is_over:
        remove(run, [head_removal], 2)
    node.transact(lambda txn: finish(txn, node.services, [head_removal], node.now()))
    swept = node.record(node.head(T))
    assert swept is not None and swept.files_keep == record.keep
    assert (swept.stage, swept.removed) == (SweepStage.SWEPT, 19)


def test_tombstones_stay_while_the_index_has_a_base(node: SweptStore) -> None:
    node.put(T, "k", "1")
    node.put(T, "k", None)
    node.transact(lambda txn: node.manifests.put(txn, no_base(T, 1)))
    node.wait(TTL + 1)
    node.sweep()
    assert node.kept(T, "k") == [None]


def test_a_removal_stops_when_another_publication_has_replaced_its_pair(node: SweptStore) -> None:
    for number in range(8):
        node.put(T, "k", str(number))
    node.wait(TTL + 1)
    head = node.head(T)
    node.transact(lambda txn: publish(txn, node.services, _decisions(node), [head]))
    record = node.record(head)
    assert record is not None
    run = node.claim(node.transact(lambda txn: gc.start(txn, node.services)))
    first = HeadRemoval(node.services, record)
    assert remove(run, [first], 2) == 2
    node.transact(lambda txn: publish(txn, node.services, _decisions(node), [head]))
    assert remove(run, [first], 2) == 0 and first.is_over and not first.is_finished
    assert node.kept(T, "k") == ["2", "3", "4", "5", "6", "7"]


def test_a_removal_that_another_process_continues_uses_the_pair_that_was_published(node: SweptStore) -> None:
    at = node.put(T, "k", "1")
    node.put(T, "k", "2")
    node.wait(TTL - MINUTE)
    node.transact(lambda txn: publish(txn, node.services, _decisions(node), [node.head(T)]))
    node.wait(2 * MINUTE)
    node.sweep(T)  # goes on with that pair, by which nothing is over
    assert node.kept(T, "k") == ["1", "2"] and node.get(T, "k", at) == "1"
    node.sweep(T)
    assert node.kept(T, "k") == ["2"]


def test_a_table_that_was_moved_away_stays_covered(node: SweptStore) -> None:
    at = node.put(T, "k", "1")
    node.put(T, "k", "2")
    node.protect(at, Mode.AFTER, DEFAULT_SCHEMA)
    node.alter(T, schema=150)
    node.wait(2 * TTL)
    node.sweep()
    assert node.get(T, "k", at) == "1"


def test_an_index_that_came_later_is_covered_from_when_it_came(node: SweptStore) -> None:
    at = node.put(T, "k", "1")
    node.protect(at, Mode.AFTER, DEFAULT_SCHEMA)
    node.wait(TTL)
    came_at = node.create(202)
    node.put(202, "k", "1")
    node.put(202, "k", "2")
    node.wait(2 * TTL)
    node.sweep()
    assert node.threshold(node.head(202)) == came_at
    assert node.kept(202, "k") == ["1", "2"]


@pytest.mark.parametrize("mode", Mode)
def test_a_span_of_an_index_that_has_left_its_table_stays_covered(node: SweptStore, mode: Mode) -> None:
    """The newest version of the table, and all that objects' protections need, no longer name the index."""
    at = node.put(T, "k", "1", index=3)
    span = node.keyspace.head_span(node.head(T, 3))
    id = node.transact(lambda txn: node.protections.protect(txn, at, mode, *OWNER, Targets((), (span,))))
    table = node.catalog.get(node.store.snapshot(), T)
    assert isinstance(table, Table)
    node.alter(T, indexes=tuple(each for each in table.indexes if each.id != 3))
    node.wait(2 * TTL)
    node.sweep()
    assert [value for _, _, value in node.revisions(node.head(T, 3))] == [b"1"]
    node.release(id)
    node.wait(MINUTE)
    node.sweep()
    assert node.revisions(node.head(T, 3)) == []


def test_a_round_that_another_has_overtaken_is_tried_again(
    node: SweptStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its protection is gone, and with it the catalog of that time, which only it has kept."""
    id = node.protect(node.put(T, "k", "1"), Mode.AT, T)
    state = node.tracker.refresh_now()
    node.release(id)
    node.put(T, "k", "2")
    node.raise_threshold(node.keyspace.head(DESCRIPTORS), node.now())
    monkeypatch.setattr(node.tracker, "refresh_now", lambda: state)
    run = node.claim(node.transact(lambda txn: gc.start(txn, node.services)))
    with pytest.raises(RetryError, match="another sweep"):
        gc.sweep(node.services, run)


@pytest.mark.invariant("publish-meta")
def test_a_publication_from_an_older_state_of_the_protections_does_not_commit(node: SweptStore) -> None:
    at = node.put(T, "k", "1")
    node.put(T, "k", "2")
    node.wait(TTL - MINUTE)
    decisions = Decisions(node.services, node.tracker.refresh_now())
    node.protect(at, Mode.AFTER, T)
    head = node.head(T)
    assert not node.transact(lambda txn: publish(txn, node.services, decisions, [head]))
    assert node.threshold(head) == 0


def test_a_protection_and_a_publication_that_do_not_see_each_other_cannot_both_commit(
    node: SweptStore,
) -> None:
    node.put(T, "k", "1")
    at = node.put(T, "k", "2")
    node.set_ttl(1, T)
    node.wait(2)
    node.put(T, "k", "3")
    decisions = Decisions(node.services, node.tracker.refresh_now())
    node.set_ttl(TTL, T)
    txn = node.store.begin()
    node.set_ttl(1, T)
    assert publish(txn, node.services, decisions, [node.head(T)])
    node.set_ttl(TTL, T)
    node.protect(at, Mode.AFTER, T)
    with pytest.raises(RetryError):
        txn.commit()


@pytest.mark.setting("gc.interval")
def test_of_all_nodes_one_starts_a_round_each_interval(node: SweptStore) -> None:
    node.settings = node.settings.with_value(GC_INTERVAL, 30.0)
    one, other = (SweepSchedule(node.services, lambda: True) for _ in range(2))
    opened = []
    for _ in range(90):
        node.env.advance(1.0)
        node.member.liveness.step()
        one.step()
        other.step()
        for control in list(node.jobs.open(node.store.snapshot())):
            job = node.jobs.get(node.store.snapshot(), control.id)
            assert job is not None
            opened.append(job.id)
            run = node.claim(job)
            gc.sweep(node.services, run)
            node.transact(lambda txn, run=run: node.jobs.step(txn, run.fence, JobState.SUCCEEDED))  # type: ignore[misc]
    assert len(opened) in (2, 3)
    ended = [job.id for job, _, _ in node.jobs.list(node.store.snapshot())]
    assert ended == opened[-1:]  # those before are forgotten


def test_nothing_is_swept_before_the_cluster_is_finalized(node: SweptStore) -> None:
    schedule = SweepSchedule(node.services, lambda: False)
    node.env.advance(3_600.0)
    schedule.step()
    assert list(node.jobs.open(node.store.snapshot())) == []


def _decisions(node: SweptStore) -> Decisions:
    node.transact(lambda txn: txn.put(node.key(99, "tick"), b""))
    return Decisions(node.services, node.tracker.refresh_now())


def test_a_sweep_counts_the_bytes_that_each_protection_pins(node: SweptStore) -> None:
    node.put(T, "k", "x" * 100)
    at = node.put(T, "k", "y" * 200)
    node.put(T, "k", "z" * 400)
    node.put(T, "k", "now")
    point, later = node.protect(at, Mode.AT, T), node.protect(at, Mode.AFTER, T)
    node.put(U, "k", "1")
    node.wait(2 * TTL)
    node.sweep()
    record = node.record(node.head(T))
    assert record is not None
    size = len(node.key(T, "k"))
    assert dict(record.pinned) == {point: 200 + size, later: 600 + 2 * size}
    other = node.record(node.head(U))
    assert other is not None and other.pinned == ()
