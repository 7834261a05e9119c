"""Reading as of one time: exact, paged, and never half an answer."""

import pytest

from tenure.base.errors import BaseMoved, SnapshotTooOld
from tenure.kv.keys import USER_TABLES, Span
from tenure.kv.snapshot import PAGE_ROWS
from tenure.kv.store import Store
from tenure.kv.thresholds import clean, publish_threshold
from tests.unit.kv.breaking import BreakingEngine
from tests.unit.kv.rows import HEAD, KEYS, TABLE, between, changes, named, number_rows, row, write


@pytest.mark.invariant("I2")
def test_a_snapshot_sees_exactly_what_was_visible_at_its_time(store: Store) -> None:
    ats = [write(store, **values) for values in HISTORY]
    state: dict[str, bytes] = {}
    for at, values in zip(ats, HISTORY, strict=True):
        for name, value in values.items():
            if value is None:
                state.pop(name, None)
            else:
                state[name] = value
        snapshot = store.snapshot(at)
        assert named(snapshot.scan(TABLE)) == sorted(state.items())
        assert {name: snapshot.get(row(name)) for name in "abc"} == {name: state.get(name) for name in "abc"}


HISTORY: list[dict[str, bytes | None]] = [
    {"a": b"1", "b": b"1"},
    {"a": b"2"},
    {"c": b"3", "b": None},
    {"a": None, "b": b"4"},
    {"a": b"5", "c": None},
]


def test_before_the_first_commit_there_was_nothing(store: Store) -> None:
    at = write(store, a=b"1")
    snapshot = store.snapshot(at - 1)
    assert snapshot.get(row("a")) is None
    assert list(snapshot.scan(TABLE)) == []


def test_a_snapshot_does_not_move(store: Store) -> None:
    write(store, a=b"1")
    snapshot = store.snapshot()
    write(store, a=b"2", b=b"2")
    assert named(snapshot.scan(TABLE)) == [("a", b"1")]


@pytest.mark.parametrize("reverse", [False, True])
def test_a_limited_scan_is_the_beginning_of_the_whole_one(store: Store, reverse: bool) -> None:
    write(store, a=b"1", b=b"1", c=b"1")
    snapshot = store.snapshot()
    write(store, b=None)
    whole = named(snapshot.scan(TABLE, reverse=reverse))
    assert [len(whole)] == [3]
    assert named(snapshot.scan(TABLE, limit=2, reverse=reverse)) == whole[:2]


def test_a_scan_with_limit_zero_gives_nothing(store: Store) -> None:
    write(store, a=b"1")
    assert list(store.snapshot().scan(TABLE, limit=0)) == []


def test_a_limit_may_reach_over_several_pages(store: Store) -> None:
    number_rows(store, 3 * PAGE_ROWS)
    limit = 2 * PAGE_ROWS + 1
    assert [name for name, _ in named(store.snapshot().scan(TABLE, limit=limit))] == list(range(limit))


def test_a_diff_gives_the_keys_that_changed_and_what_they_are_now(store: Store) -> None:
    since_at = write(store, a=b"1", b=b"1", c=b"1")
    write(store, a=b"2")
    at = write(store, a=b"3", d=b"3")
    assert changes(store.snapshot().diff(TABLE, since_at=since_at)) == [("a", at, b"3"), ("d", at, b"3")]


def test_a_diff_has_tombstones(store: Store) -> None:
    since_at = write(store, a=b"1")
    at = write(store, a=None)
    assert changes(store.snapshot().diff(TABLE, since_at=since_at)) == [("a", at, None)]


def test_a_diff_has_a_key_that_came_and_went(store: Store) -> None:
    since_at = write(store, z=b"1")
    write(store, a=b"1")
    at = write(store, a=None)
    assert changes(store.snapshot().diff(TABLE, since_at=since_at)) == [("a", at, None)]


def test_a_diff_of_the_past_ignores_what_came_later(store: Store) -> None:
    since_at = write(store, a=b"1", b=b"1")
    at = write(store, a=b"2")
    snapshot = store.snapshot()
    write(store, a=b"3", b=b"3", c=b"3")
    assert changes(snapshot.diff(TABLE, since_at=since_at)) == [("a", at, b"2")]


def test_a_diff_keeps_to_its_span(store: Store) -> None:
    at = write(store, a=b"1", b=b"1", c=b"1")
    assert changes(store.snapshot().diff(between("b", "c"), since_at=0)) == [("b", at, b"1")]


@pytest.mark.invariant("I30")
def test_reads_below_the_threshold_are_refused_and_those_at_it_are_not(store: Store) -> None:
    first_at = write(store, a=b"1")
    second_at = write(store, a=b"2")
    store.transact(lambda txn: publish_threshold(txn, KEYS, HEAD, second_at))
    below, at = store.snapshot(first_at), store.snapshot(second_at)
    with pytest.raises(SnapshotTooOld) as caught:
        below.get(row("a"))
    assert caught.value.sqlstate == "72000"
    with pytest.raises(SnapshotTooOld):
        list(below.scan(TABLE))
    assert at.get(row("a")) == b"2"
    assert named(at.scan(TABLE)) == [("a", b"2")]


@pytest.mark.invariant("I30")
def test_a_missing_key_below_the_threshold_is_refused_too(store: Store) -> None:
    write(store, a=b"1")
    at = write(store, b=b"1")
    store.transact(lambda txn: publish_threshold(txn, KEYS, HEAD, at))
    with pytest.raises(SnapshotTooOld):
        store.snapshot(at - 1).get(row("missing"))


@pytest.mark.invariant("I30")
def test_a_threshold_published_between_two_pages_is_noticed(store: Store) -> None:
    number_rows(store, PAGE_ROWS + 1)
    snapshot = store.snapshot()
    later_at = write(store, a=b"1")
    rows = snapshot.scan(TABLE)
    next(rows)
    store.transact(lambda txn: publish_threshold(txn, KEYS, HEAD, later_at))
    with pytest.raises(SnapshotTooOld):
        list(rows)


@pytest.mark.invariant("I30")
def test_a_diff_is_judged_by_its_start(store: Store) -> None:
    first_at = write(store, a=b"1")
    second_at = write(store, a=b"2")
    write(store, a=b"3")
    store.transact(lambda txn: publish_threshold(txn, KEYS, HEAD, second_at))
    with pytest.raises(SnapshotTooOld):
        store.snapshot().diff(TABLE, since_at=first_at)
    assert len(store.snapshot().diff(TABLE, since_at=second_at)) == 1


@pytest.mark.invariant("merge-outlasts-ttl")
def test_the_delta_of_a_merge_is_read_below_the_threshold_but_not_below_the_cleaned_mark(
    store: Store,
) -> None:
    first_at = write(store, a=b"1", b=b"1")
    flush = store.snapshot(first_at)
    later_at = write(store, a=b"2")
    store.transact(lambda txn: publish_threshold(txn, KEYS, HEAD, later_at))
    pages = flush.revisions(TABLE, since_at=0, limit=1)
    assert changes(next(pages)) == [("a", first_at, b"1")]
    store.transact(lambda txn: clean(txn, KEYS, HEAD, first_at, limit=1))
    with pytest.raises(BaseMoved):
        next(pages)


def test_a_cleaned_span_is_refused_without_the_lakes_rows(store: Store) -> None:
    at = write(store, a=b"1")
    store.transact(lambda txn: clean(txn, KEYS, HEAD, at, limit=10))
    with pytest.raises(BaseMoved):
        store.snapshot().get(row("a"))
    with pytest.raises(BaseMoved):
        list(store.snapshot().scan(TABLE))


def test_a_reader_that_has_the_lakes_rows_reads_a_cleaned_span(store: Store) -> None:
    at = write(store, a=b"1")
    store.transact(lambda txn: clean(txn, KEYS, HEAD, at, limit=10))
    write(store, b=b"2")
    snapshot = store.snapshot()
    assert snapshot.get(row("b"), flushed_at=at) == b"2"
    assert named(snapshot.scan(TABLE, flushed_at=at)) == [("b", b"2")]
    with pytest.raises(BaseMoved):
        snapshot.get(row("b"), flushed_at=at - 1)


def test_a_diff_since_the_cleaned_mark_needs_no_lake(store: Store) -> None:
    at = write(store, a=b"1")
    store.transact(lambda txn: clean(txn, KEYS, HEAD, at, limit=10))
    later_at = write(store, a=b"2")
    assert changes(store.snapshot().diff(TABLE, since_at=at)) == [("a", later_at, b"2")]
    with pytest.raises(BaseMoved):
        store.snapshot().diff(TABLE, since_at=at - 1)


@pytest.mark.parametrize("neighbour", [(USER_TABLES, 2), (USER_TABLES + 1, 1), (USER_TABLES - 1, 1)])
def test_the_marks_of_a_neighbour_do_not_count(store: Store, neighbour: tuple[int, int]) -> None:
    first_at = write(store, a=b"1")
    second_at = write(store, a=b"2")
    head = KEYS.head(*neighbour)
    store.transact(lambda txn: publish_threshold(txn, KEYS, head, second_at))
    store.transact(lambda txn: clean(txn, KEYS, head, second_at, limit=10))
    snapshot = store.snapshot(first_at)
    assert named(snapshot.scan(TABLE)) == [("a", b"1")]
    assert snapshot.get(row("a")) == b"1"


def test_the_marks_of_every_index_of_a_wide_span_count(store: Store) -> None:
    first_at = write(store, a=b"1")
    second_at = write(store, a=b"2")
    head = KEYS.head(USER_TABLES, 2)
    store.transact(lambda txn: publish_threshold(txn, KEYS, head, second_at))
    with pytest.raises(SnapshotTooOld):
        list(store.snapshot(first_at).scan(KEYS.table_span(USER_TABLES)))


def test_the_key_of_another_tenant_cannot_be_read(store: Store) -> None:
    with pytest.raises(AssertionError):
        store.snapshot().get(b"\0\0\0\2" + row("a")[4:])


def test_a_span_that_reaches_into_another_tenant_cannot_be_read(store: Store) -> None:
    span = Span(row("a"), b"\0\0\0\3")
    with pytest.raises(AssertionError):
        list(store.snapshot().scan(span))
    with pytest.raises(AssertionError):
        store.snapshot().diff(span, since_at=0)


def test_what_a_snapshot_has_read_ahead_is_as_of_its_time(store: Store, engine: BreakingEngine) -> None:
    write(store, a=b"1", b=b"1")
    at = write(store, b=None)
    snapshot = store.snapshot(at)
    write(store, a=b"2", b=b"2", c=b"2")
    snapshot.read_ahead([row(name) for name in "abcd"])
    engine.gets.clear()
    assert [snapshot.get(row(name)) for name in "abcd"] == [b"1", None, None, None]
    assert engine.gets == []
