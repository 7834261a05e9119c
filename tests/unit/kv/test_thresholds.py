"""Thresholds and cleaned marks: kept per index, moved forward only, with what they speak of."""

import pytest

from tenure.base.errors import RetryError, TenureError
from tenure.kv.keys import USER_TABLES
from tenure.kv.store import Store
from tenure.kv.thresholds import clean, cleaned_mark, publish_threshold, threshold
from tenure.storage.engine import History, Removal, Removes
from tests.unit.kv.rows import HEAD, KEYS, TABLE, changes, named, row, write

OTHER = KEYS.head(USER_TABLES, 2)


def test_an_index_without_marks_has_zero(store: Store) -> None:
    txn = store.begin()
    assert threshold(txn, KEYS, HEAD) == 0
    assert cleaned_mark(txn, KEYS, HEAD) == 0


def test_a_published_threshold_is_read_back_for_its_index_alone(store: Store) -> None:
    at = write(store, a=b"1")
    store.transact(lambda txn: publish_threshold(txn, KEYS, HEAD, at))
    assert threshold(store.begin(), KEYS, HEAD) == at
    assert threshold(store.begin(), KEYS, OTHER) == 0
    assert cleaned_mark(store.begin(), KEYS, HEAD) == 0


@pytest.mark.invariant("I29")
def test_a_threshold_does_not_go_back(store: Store) -> None:
    at = write(store, a=b"1")
    store.transact(lambda txn: publish_threshold(txn, KEYS, HEAD, at))
    store.transact(lambda txn: publish_threshold(txn, KEYS, HEAD, at - 1))
    assert threshold(store.begin(), KEYS, HEAD) == at


@pytest.mark.invariant("I29")
def test_a_cleaned_mark_does_not_go_back(store: Store) -> None:
    at = write(store, a=b"1")
    store.transact(lambda txn: clean(txn, KEYS, HEAD, at, limit=10))
    store.transact(lambda txn: clean(txn, KEYS, HEAD, at - 1, limit=10))
    assert cleaned_mark(store.begin(), KEYS, HEAD) == at


@pytest.mark.invariant("I29")
def test_of_two_publishers_at_once_the_lower_does_not_win(store: Store) -> None:
    low_at = write(store, a=b"1")
    high_at = write(store, a=b"2")
    slow = store.begin()
    publish_threshold(slow, KEYS, HEAD, low_at)
    store.transact(lambda txn: publish_threshold(txn, KEYS, HEAD, high_at))
    with pytest.raises(RetryError):
        slow.commit()
    assert threshold(store.begin(), KEYS, HEAD) == high_at


def test_a_threshold_above_the_read_time_is_a_bug(store: Store) -> None:
    at = write(store, a=b"1")
    with pytest.raises(AssertionError):
        publish_threshold(store.begin(), KEYS, HEAD, at + 1)


def test_cleaning_moves_the_mark_and_removes_in_one_commit(store: Store) -> None:
    write(store, a=b"1", b=b"1")
    at = write(store, a=b"2")
    later_at = write(store, a=b"3")
    marked_at = store.begin().read_at
    txn = store.begin()
    clean(txn, KEYS, HEAD, at, limit=10)
    assert txn.commit() > marked_at
    assert cleaned_mark(store.begin(), KEYS, HEAD) == at
    assert changes(store.history(TABLE, since_at=at).revisions) == [("a", later_at, b"3")]
    assert named(store.snapshot().scan(TABLE, flushed_at=at)) == [("a", b"3")]


def test_cleaning_is_bounded_and_goes_on_where_it_was(store: Store) -> None:
    at = write(store, **dict.fromkeys("abcde", b"1"))
    left = []
    for _ in range(3):
        store.transact(lambda txn: clean(txn, KEYS, HEAD, at, limit=2))
        left.append(store.engine.spread(*TABLE, 0, 10).keys)
    assert left == [3, 1, 0]


def test_cleaning_leaves_other_indexes_alone(store: Store) -> None:
    other = KEYS.key(USER_TABLES, ["a"], index=2)
    txn = store.begin()
    txn.put(row("a"), b"1")
    txn.put(other, b"1")
    at = txn.commit()
    store.transact(lambda txn: clean(txn, KEYS, HEAD, at, limit=10))
    assert store.begin().get(other) == b"1"


def test_a_cleaning_that_is_rolled_back_leaves_rows_and_mark(store: Store) -> None:
    at = write(store, a=b"1")
    txn = store.begin()
    clean(txn, KEYS, HEAD, at, limit=10)
    txn.rollback()
    assert store.begin().get(row("a")) == b"1"


@pytest.mark.invariant("I30")
def test_a_sweep_changes_nothing_that_can_still_be_read(store: Store) -> None:
    history: list[dict[str, bytes | None]] = [
        {"a": b"1", "b": b"1", "c": b"1"},
        {"a": b"2", "b": None},
        {"a": b"3", "d": b"3", "c": None},
        {"c": b"4", "d": None},
        {"a": None},
    ]
    ats = [write(store, **values) for values in history]
    before = {at: named(store.snapshot(at).scan(TABLE)) for at in ats}
    swept_at = ats[2]
    store.transact(lambda txn: publish_threshold(txn, KEYS, HEAD, swept_at))
    sweep = Removal(TABLE.lo, TABLE.hi, Removes.GARBAGE, swept_at, limit=100)
    store.transact(lambda txn: txn.remove(sweep))
    for at in ats:
        if at >= swept_at:
            assert named(store.snapshot(at).scan(TABLE)) == before[at]
        else:
            with pytest.raises(TenureError):
                list(store.snapshot(at).scan(TABLE))


@pytest.mark.invariant("I30")
def test_a_sweep_removes_what_nobody_can_read_any_more(store: Store) -> None:
    write(store, a=b"1", b=b"1")
    at = write(store, a=b"2", b=None)
    store.transact(lambda txn: publish_threshold(txn, KEYS, HEAD, at))
    sweep = Removal(TABLE.lo, TABLE.hi, Removes.GARBAGE, at, limit=100)
    store.transact(lambda txn: txn.remove(sweep))
    past = History(TABLE.lo, TABLE.hi, KEYS.guard(TABLE), since_at=0)
    assert changes(store.engine.history(past).revisions) == [("a", at, b"2")]
