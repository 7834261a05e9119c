"""A node's copy of the protections: the list as of its time, read only when it has changed."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.settings import PROTECTED_REFRESH_INTERVAL
from tenure.kv.keys import ZONES, Span
from tenure.retention.protections.protection_records import Mode, Protection, Targets
from tenure.retention.tracking.span_index import SpanIndex
from tenure.retention.tracking.tracker import TrackedState, Tracker
from tests.unit.retention.protecting import OWNER, ProtectedStore

TABLE = 200


@pytest.fixture
def tracker(node: ProtectedStore) -> Tracker:
    return Tracker(node.store, lambda: node.settings)


@pytest.mark.invariant("I31")
def test_the_state_is_the_list_as_of_its_time(node: ProtectedStore, tracker: Tracker) -> None:
    at = node.create(TABLE)
    assert tracker.state.records == ()
    ids = [node.protect(at, Mode.AT, TABLE) for _ in range(3)]
    node.release(ids[1])
    state = tracker.refresh_now()
    listed = node.listing.list_all(node.store.snapshot(state.read_at))
    assert (state.version, state.records) == (listed.meta.version, listed.records)
    assert {each.id for each in state.records} == {ids[0], ids[2]}


def test_an_unchanged_version_reads_the_meta_record_alone(node: ProtectedStore, tracker: Tracker) -> None:
    at = node.create(TABLE)
    node.protect(at, Mode.AT, TABLE)
    state = tracker.refresh_now()
    node.create(201)
    later = tracker.refresh_now()
    assert later.records is state.records
    assert later.read_at > state.read_at


def test_a_state_says_how_old_it_is(node: ProtectedStore, tracker: Tracker) -> None:
    node.create(TABLE)
    tracker.refresh_now()
    node.env.advance(7)
    assert tracker.age_seconds() == pytest.approx(7, abs=0.01)


def seconds_until_refreshed(node: ProtectedStore, tracker: Tracker) -> float:
    """How long its loop takes to learn of what has just been protected."""
    before = node.env.monotonic()
    while not tracker.state.records:
        tracker.step()
    return node.env.monotonic() - before


@pytest.mark.setting("kv.protected_timestamp.refresh_interval")
def test_the_state_is_read_again_after_the_interval(node: ProtectedStore, tracker: Tracker) -> None:
    at = node.create(TABLE)
    node.settings = node.settings.with_value(PROTECTED_REFRESH_INTERVAL, 20.0)
    tracker.step()
    node.protect(at, Mode.AT, TABLE)
    assert seconds_until_refreshed(node, tracker) == pytest.approx(20, abs=2)


def test_a_changed_zone_refreshes_at_once(node: ProtectedStore, tracker: Tracker) -> None:
    at = node.create(TABLE)
    tracker.step()
    node.protect(at, Mode.AT, TABLE)
    node.set_ttl(60, TABLE)
    assert seconds_until_refreshed(node, tracker) < 1


def test_a_swept_zone_is_a_change_too(node: ProtectedStore, tracker: Tracker) -> None:
    at = node.create(TABLE)
    tracker.step()
    node.protect(at, Mode.AT, TABLE)
    node.raise_threshold(node.keyspace.head(ZONES), node.now())
    assert seconds_until_refreshed(node, tracker) < 1


def test_protections_are_found_by_span_and_by_object(node: ProtectedStore, tracker: Tracker) -> None:
    at = node.create(TABLE)
    head = node.head(TABLE)
    by_object = node.protect(at, Mode.AFTER, TABLE, 101)
    span = Span(head + b"k", head + b"m")
    by_span = node.transact(
        lambda txn: node.protections.protect(txn, at, Mode.AT, *OWNER, Targets((), (span,)))
    )
    state = tracker.refresh_now()
    assert [each.id for each in state.records_of([TABLE, 101, 7])] == [by_object]
    assert state.records_of([7]) == []
    assert [each.id for each in state.records_over(*node.keyspace.head_span(head))] == [by_span]
    assert state.records_over(head + b"m", head + b"z") == []
    assert state.oldest_at == at
    assert TrackedState(0, 0, ()).oldest_at is None


KEYS = st.binary(max_size=3)
SPANS = st.lists(
    st.tuples(KEYS, KEYS).map(sorted).map(tuple).filter(lambda span: span[0] < span[1]), max_size=30
)


@given(SPANS, KEYS, KEYS)
def test_the_index_finds_exactly_the_spans_that_overlap(
    spans: list[tuple[bytes, bytes]], first: bytes, second: bytes
) -> None:
    lo, hi = sorted((first, second))
    index = SpanIndex((*span, number) for number, span in enumerate(spans))
    overlapping = [number for number, span in enumerate(spans) if span[0] < hi and lo < span[1]]
    assert sorted(index.over(lo, hi)) == overlapping


def test_a_lookup_visits_few_of_many_spans() -> None:
    rng = random.Random(1)
    records = []
    for _ in range(5_000):
        lo = rng.randrange(1 << 40).to_bytes(5, "big")
        records.append(Protection(b"", 1, Mode.AT, "", b"", (), ((lo, lo + b"\xff"),)))
    records.append(Protection(b"", 1, Mode.AT, "", b"", (), ((b"\0", b"\xff" * 9),)))  # covers all the others
    state = TrackedState(1, 1, records)
    for record in rng.sample(records[:-1], 100):
        ((lo, hi),) = record.spans
        assert records[-1] in state.records_over(lo, hi)
        assert record in state.records_over(lo, hi)
