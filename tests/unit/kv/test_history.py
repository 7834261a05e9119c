"""History: every revision of an interval, in time order, whole timestamps only."""

import pytest

from tenure.base.errors import BaseMoved, SnapshotTooOld
from tenure.base.timestamp import add_seconds
from tenure.kv.keys import USER_TABLES
from tenure.kv.store import Store
from tenure.kv.thresholds import clean, publish_threshold
from tenure.storage.engine import Revision
from tests.unit.kv.rows import HEAD, KEYS, TABLE, between, changes, row, write


def test_every_revision_is_there_in_the_order_of_time_then_key(store: Store) -> None:
    first_at = write(store, b=b"1", a=b"1")
    second_at = write(store, a=b"2")
    third_at = write(store, a=b"3")
    assert changes(store.history(TABLE, since_at=0).revisions) == [
        ("a", first_at, b"1"),
        ("b", first_at, b"1"),
        ("a", second_at, b"2"),
        ("a", third_at, b"3"),
    ]


def test_deletions_are_there_as_tombstones(store: Store) -> None:
    first_at = write(store, a=b"1")
    second_at = write(store, a=None)
    assert changes(store.history(TABLE, since_at=first_at).revisions) == [("a", second_at, None)]


def test_the_interval_is_open_below_and_closed_above(store: Store) -> None:
    ats = [write(store, a=b"%d" % number) for number in range(4)]
    found = store.history(TABLE, since_at=ats[0], until_at=ats[2])
    assert [revision.at for revision in found.revisions] == ats[1:3]
    assert found.through_at == ats[2]


def test_only_the_keys_of_the_span_are_there(store: Store) -> None:
    at = write(store, a=b"1", b=b"1", c=b"1")
    assert changes(store.history(between("b", "c"), since_at=0).revisions) == [("b", at, b"1")]


def test_a_span_over_several_tables_is_still_in_time_order(store: Store) -> None:
    ats = []
    for table in (USER_TABLES + 2, USER_TABLES, USER_TABLES + 1, USER_TABLES):
        txn = store.begin()
        txn.put(KEYS.key(table, ["a"]), b"1")
        ats.append(txn.commit())
    found = store.history(KEYS.all(), since_at=0)
    assert [revision.at for revision in found.revisions] == ats


def test_a_limit_cuts_between_timestamps(store: Store) -> None:
    first_at = write(store, a=b"1", b=b"1")
    write(store, c=b"1", d=b"1")
    found = store.history(TABLE, since_at=0, limit=3)
    assert {revision.at for revision in found.revisions} == {first_at}
    assert len(found.revisions) == 2


def test_one_transaction_larger_than_the_limit_comes_whole(store: Store) -> None:
    write(store, a=b"1", b=b"1", c=b"1")
    write(store, d=b"1")
    assert len(store.history(TABLE, since_at=0, limit=1).revisions) == 3


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_asking_on_from_through_at_gives_everything_once(store: Store, limit: int) -> None:
    for number in range(5):
        write(store, **dict.fromkeys("abc"[: number % 3 + 1], b"%d" % number))
    whole = store.history(TABLE, since_at=0)
    gathered: list[Revision] = []
    since_at = 0
    while since_at < whole.through_at:
        part = store.history(TABLE, since_at=since_at, limit=limit)
        gathered += part.revisions
        since_at = part.through_at
    assert gathered == list(whole.revisions)


def test_an_interval_that_reaches_beyond_the_clock_is_complete_up_to_the_clock(store: Store) -> None:
    at = write(store, a=b"1")
    assert store.history(TABLE, since_at=0, until_at=add_seconds(at, 60)).through_at == at


@pytest.mark.invariant("I30")
def test_history_that_starts_below_the_threshold_is_refused(store: Store) -> None:
    first_at = write(store, a=b"1")
    second_at = write(store, a=b"2")
    store.transact(lambda txn: publish_threshold(txn, KEYS, HEAD, second_at))
    with pytest.raises(SnapshotTooOld):
        store.history(TABLE, since_at=first_at)
    assert store.history(TABLE, since_at=second_at).revisions == []


def test_history_that_starts_below_the_cleaned_mark_is_refused(store: Store) -> None:
    first_at = write(store, a=b"1")
    second_at = write(store, a=b"2")
    store.transact(lambda txn: clean(txn, KEYS, HEAD, second_at, limit=10))
    with pytest.raises(BaseMoved):
        store.history(TABLE, since_at=first_at)
    assert store.history(TABLE, since_at=second_at).revisions == []


def test_the_history_of_another_tenant_cannot_be_asked_for(store: Store) -> None:
    with pytest.raises(AssertionError):
        store.history(TABLE._replace(lo=b"\0\0\0\2" + row("a")[4:]), since_at=0)
