"""Moving `read_at` up: allowed exactly when all that was read is unchanged."""

import pytest

from tenure.base.errors import BelowMark, RetryError
from tenure.kv.snapshot import PAGE_ROWS
from tenure.kv.store import Store
from tenure.kv.thresholds import publish_threshold
from tests.unit.kv.rows import HEAD, KEYS, TABLE, between, named, number_rows, row, write


def test_a_refresh_moves_read_at_to_the_store_clock(store: Store) -> None:
    write(store, a=b"1")
    txn = store.begin()
    txn.get(row("a"))
    at = write(store, b=b"2")
    txn.refresh()
    assert txn.read_at == at
    assert txn.get(row("b")) == b"2"


@pytest.mark.invariant("I2")
def test_a_refresh_over_a_changed_read_is_refused(store: Store) -> None:
    write(store, a=b"1")
    txn = store.begin()
    txn.get(row("a"))
    write(store, a=b"2")
    with pytest.raises(RetryError):
        txn.refresh()


@pytest.mark.invariant("I2")
def test_a_refresh_over_a_phantom_is_refused(store: Store) -> None:
    txn = store.begin()
    list(txn.scan(between("a", "c")))
    write(store, b=b"phantom")
    with pytest.raises(RetryError):
        txn.refresh()


def test_a_refresh_before_any_read_takes_the_present(store: Store) -> None:
    txn = store.begin()
    write(store, a=b"1")
    txn.refresh()
    assert txn.get(row("a")) == b"1"


@pytest.mark.invariant("I2")
def test_what_was_read_before_a_refresh_is_still_validated_after_it(store: Store) -> None:
    write(store, a=b"1")
    txn = store.begin()
    txn.get(row("a"))
    txn.refresh()
    txn.put(row("b"), b"2")
    write(store, a=b"2")
    with pytest.raises(RetryError):
        txn.commit()


def test_own_writes_stay_over_a_refresh(store: Store) -> None:
    txn = store.begin()
    txn.put(row("a"), b"own")
    write(store, b=b"1")
    txn.refresh()
    assert named(txn.scan(TABLE)) == [("a", b"own"), ("b", b"1")]


def test_a_refresh_below_the_threshold_is_refused(store: Store) -> None:
    write(store, a=b"1")
    txn = store.begin()
    txn.get(row("a"))
    later_at = write(store, b=b"1")
    store.transact(lambda other: publish_threshold(other, KEYS, HEAD, later_at))
    with pytest.raises(BelowMark):
        txn.refresh()


@pytest.mark.invariant("I8")
def test_a_refresh_goes_over_a_childs_commit(store: Store) -> None:
    txn = store.begin()
    txn.get(row("a"))
    child = txn.child()
    child.put(row("a"), b"child")
    child.commit()
    txn.refresh()
    assert txn.get(row("a")) == b"child"


@pytest.mark.invariant("I8")
def test_after_a_refresh_a_child_excuses_nothing_any_more(store: Store) -> None:
    txn = store.begin()
    txn.get(row("a"))
    child = txn.child()
    child.put(row("a"), b"child")
    child.commit()
    txn.refresh()
    write(store, a=b"stranger")
    txn.put(row("b"), b"1")
    with pytest.raises(RetryError):
        txn.commit()


def test_after_a_refresh_the_store_shows_what_others_made_of_a_childs_write(store: Store) -> None:
    txn = store.begin()
    txn.get(row("b"))
    child = txn.child()
    child.put(row("a"), b"child")
    child.commit()
    write(store, a=b"stranger")
    txn.refresh()
    assert txn.get(row("a")) == b"stranger"


@pytest.mark.invariant("I2")
def test_a_scan_under_way_goes_on_at_the_refreshed_time_or_is_validated(store: Store) -> None:
    number_rows(store, PAGE_ROWS + 500, b"old")
    txn = store.begin()
    rows = txn.scan(TABLE)
    next(rows)
    rival = store.begin()
    rival.put(row(PAGE_ROWS + 100), b"new")
    rival.commit()
    txn.refresh()
    seen = dict(rows)[row(PAGE_ROWS + 100)]
    txn.put(row("z"), b"1")
    try:
        txn.commit()
    except RetryError:
        return
    assert seen == b"new"


@pytest.mark.invariant("I2")
def test_a_childs_write_does_not_hide_a_stranger_from_a_scan_that_was_refreshed(store: Store) -> None:
    number_rows(store, PAGE_ROWS + 500, b"old")
    last = row(PAGE_ROWS + 100)
    txn = store.begin()
    txn.get(row(0))
    child = txn.child()
    child.put(last, b"child")
    child.commit()
    rows = txn.scan(TABLE)
    next(rows)
    rival = store.begin()
    rival.put(last, b"stranger")
    rival.commit()
    txn.refresh()
    seen = dict(rows)[last]
    txn.put(row("z"), b"1")
    try:
        txn.commit()
    except RetryError:
        return
    assert seen == b"stranger"
