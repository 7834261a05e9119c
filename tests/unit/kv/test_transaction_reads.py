"""What a transaction reads: one state, its own writes over it, and what of that is validated."""

from collections.abc import Callable

import pytest

from tenure.base.errors import BaseMoved, BelowMark, RetryError
from tenure.kv.keys import USER_TABLES, Span
from tenure.kv.snapshot import PAGE_ROWS
from tenure.kv.store import Store
from tenure.kv.thresholds import clean, publish_threshold
from tenure.kv.transaction import Transaction
from tenure.storage.engine import Stamp
from tests.unit.kv.breaking import BreakingEngine
from tests.unit.kv.rows import HEAD, KEYS, TABLE, between, named, number_rows, row, write


def test_a_missing_key_reads_as_nothing(store: Store) -> None:
    assert store.begin().get(row("a")) is None


def test_the_first_read_fixes_the_time_of_all_others(store: Store) -> None:
    write(store, a=b"1", b=b"1")
    txn = store.begin()
    assert txn.get(row("a")) == b"1"
    write(store, b=b"2")
    assert txn.get(row("b")) == b"1"
    assert named(txn.scan(TABLE)) == [("a", b"1"), ("b", b"1")]


def test_the_first_scan_fixes_the_time_of_all_others(store: Store) -> None:
    at = write(store, a=b"1", b=b"1")
    txn = store.begin()
    assert named(txn.scan(between("a", "b"))) == [("a", b"1")]
    write(store, b=b"2")
    assert txn.get(row("b")) == b"1"
    assert txn.read_at == at


def test_what_the_store_has_above_a_callers_base_is_not_kept_for_other_reads(store: Store) -> None:
    at = write(store, a=b"1")
    store.transact(lambda txn: clean(txn, KEYS, HEAD, at, limit=10))
    txn = store.begin()
    assert txn.get(row("a"), flushed_at=at) is None
    with pytest.raises(BaseMoved):
        txn.get(row("a"))


def test_own_writes_are_read_back(store: Store) -> None:
    txn = store.begin()
    txn.put(row("a"), b"1")
    assert txn.get(row("a")) == b"1"
    txn.delete(row("a"))
    assert txn.get(row("a")) is None


def test_reading_an_own_write_validates_nothing(store: Store) -> None:
    write(store, a=b"1")
    txn = store.begin()
    txn.put(row("a"), b"2")
    txn.get(row("a"))
    write(store, a=b"3")
    txn.commit()
    assert store.begin().get(row("a")) == b"2"


def test_a_write_with_a_stamped_key_is_not_read_back(store: Store) -> None:
    txn = store.begin()
    txn.put(row("a"), b"1", key_stamp=Stamp(len(row("a")) - 8))
    assert txn.get(row("a")) is None
    assert named(txn.scan(TABLE)) == []


def test_a_scan_lays_own_writes_over_the_store(store: Store) -> None:
    write(store, a=b"1", b=b"1", d=b"1")
    txn = store.begin()
    txn.put(row("b"), b"own")
    txn.put(row("c"), b"own")
    txn.delete(row("d"))
    assert named(txn.scan(TABLE)) == [("a", b"1"), ("b", b"own"), ("c", b"own")]


def test_a_reverse_scan_lays_own_writes_over_the_store(store: Store) -> None:
    write(store, a=b"1", b=b"1", d=b"1")
    txn = store.begin()
    txn.put(row("c"), b"own")
    txn.delete(row("d"))
    assert named(txn.scan(TABLE, reverse=True)) == [("c", b"own"), ("b", b"1"), ("a", b"1")]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 3, 4, 9])
def test_a_limited_scan_is_the_beginning_of_the_whole_one(store: Store, limit: int, reverse: bool) -> None:
    write(store, a=b"1", b=b"1", c=b"1", e=b"1", f=b"1")
    txn = store.begin()
    txn.delete(row("a"))
    txn.delete(row("f"))
    txn.put(row("d"), b"own")
    whole = named(txn.scan(TABLE, reverse=reverse))
    assert named(txn.scan(TABLE, reverse=reverse, limit=limit)) == whole[:limit]


def test_a_scan_with_limit_zero_gives_nothing(store: Store) -> None:
    write(store, a=b"1")
    txn = store.begin()
    txn.put(row("b"), b"own")
    assert named(txn.scan(TABLE, limit=0)) == []


def test_the_ends_of_a_span_are_half_open(store: Store) -> None:
    write(store, a=b"1", b=b"1", c=b"1")
    assert named(store.begin().scan(between("a", "c"))) == [("a", b"1"), ("b", b"1")]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("count", [PAGE_ROWS - 1, PAGE_ROWS, PAGE_ROWS + 1, 2 * PAGE_ROWS])
def test_a_scan_goes_over_the_borders_of_its_pages(store: Store, count: int, reverse: bool) -> None:
    number_rows(store, count)
    numbers = [name for name, _ in named(store.begin().scan(TABLE, reverse=reverse))]
    assert numbers == sorted(range(count), reverse=reverse)


def test_later_pages_are_read_at_the_time_of_the_first(store: Store) -> None:
    number_rows(store, PAGE_ROWS + 1, b"old")
    rows = store.begin().scan(TABLE)
    next(rows)
    number_rows(store, PAGE_ROWS + 2, b"new")
    assert [value for _, value in rows] == [b"old"] * PAGE_ROWS


def test_what_a_scan_is_not_asked_for_is_not_read(store: Store, engine: BreakingEngine) -> None:
    number_rows(store, 3 * PAGE_ROWS)
    rows = store.begin().scan(TABLE)
    next(rows)
    assert len(engine.scans) == 1


def test_a_scan_that_is_never_begun_reads_nothing(store: Store) -> None:
    txn = store.begin()
    txn.scan(TABLE)
    write(store, a=b"1")
    txn.put(row("b"), b"2")
    txn.commit()


@pytest.mark.invariant("I2")
def test_a_changed_key_that_was_read_refuses_the_commit(store: Store) -> None:
    write(store, a=b"1")
    txn = store.begin()
    txn.get(row("a"))
    txn.put(row("b"), b"2")
    write(store, a=b"2")
    with pytest.raises(RetryError):
        txn.commit()
    assert store.begin().get(row("b")) is None


@pytest.mark.invariant("I2")
def test_a_key_that_was_read_as_missing_and_appears_refuses_the_commit(store: Store) -> None:
    txn = store.begin()
    txn.get(row("a"))
    txn.put(row("b"), b"2")
    write(store, a=b"1")
    with pytest.raises(RetryError):
        txn.commit()


@pytest.mark.invariant("I2")
def test_a_key_written_and_deleted_since_refuses_the_commit(store: Store) -> None:
    txn = store.begin()
    txn.get(row("a"))
    txn.put(row("b"), b"2")
    write(store, a=b"1")
    write(store, a=None)
    with pytest.raises(RetryError):
        txn.commit()


@pytest.mark.invariant("I2")
def test_a_row_that_appears_in_a_scanned_span_refuses_the_commit(store: Store) -> None:
    write(store, a=b"1", c=b"1")
    txn = store.begin()
    list(txn.scan(between("a", "d")))
    txn.put(row("z"), b"2")
    write(store, b=b"phantom")
    with pytest.raises(RetryError):
        txn.commit()


@pytest.mark.parametrize("name", ["a", "e"])
def test_a_row_beside_a_scanned_span_is_of_no_concern(store: Store, name: str) -> None:
    txn = store.begin()
    list(txn.scan(between("b", "e")))
    txn.put(row("z"), b"2")
    write(store, **{name: b"beside"})
    txn.commit()


@pytest.mark.invariant("I2")
def test_a_row_before_the_last_one_of_a_limited_scan_refuses_the_commit(store: Store) -> None:
    write(store, a=b"1", c=b"1", e=b"1")
    txn = store.begin()
    assert named(txn.scan(TABLE, limit=2)) == [("a", b"1"), ("c", b"1")]
    txn.put(row("z"), b"2")
    write(store, b=b"phantom")
    with pytest.raises(RetryError):
        txn.commit()


def test_a_row_after_the_last_one_of_a_limited_scan_is_of_no_concern(store: Store) -> None:
    write(store, a=b"1", c=b"1", e=b"1")
    txn = store.begin()
    list(txn.scan(TABLE, limit=2))
    txn.put(row("z"), b"2")
    write(store, d=b"beyond")
    txn.commit()


@pytest.mark.parametrize(("name", "is_refused"), [("b", False), ("d", True)])
@pytest.mark.invariant("I2")
def test_a_limited_reverse_scan_is_validated_from_its_end(store: Store, name: str, is_refused: bool) -> None:
    write(store, a=b"1", c=b"1", e=b"1")
    txn = store.begin()
    list(txn.scan(TABLE, limit=2, reverse=True))
    txn.put(row("z"), b"2")
    write(store, **{name: b"new"})
    if is_refused:
        with pytest.raises(RetryError):
            txn.commit()
    else:
        txn.commit()


@pytest.mark.invariant("I2")
def test_many_single_reads_are_validated_too(store: Store) -> None:
    number_rows(store, 200)
    txn = store.begin()
    for number in range(0, 200, 2):
        txn.get(row(number))
    txn.put(row("z"), b"2")
    write_number(store, 198)
    with pytest.raises(RetryError):
        txn.commit()


def test_among_many_single_reads_the_keys_between_are_of_no_concern(store: Store) -> None:
    number_rows(store, 200)
    txn = store.begin()
    for number in range(0, 200, 2):
        txn.get(row(number))
    txn.put(row("z"), b"2")
    write_number(store, 199)
    txn.commit()


@pytest.mark.invariant("I2")
def test_a_span_over_several_tables_is_validated_in_each(store: Store) -> None:
    txn = store.begin()
    list(txn.scan(KEYS.all()))
    txn.put(row("z"), b"2")
    other = store.begin()
    other.put(KEYS.key(USER_TABLES + 7, ["a"]), b"1")
    other.commit()
    with pytest.raises(RetryError):
        txn.commit()


def test_a_transaction_that_only_read_needs_no_validation(store: Store) -> None:
    at = write(store, a=b"1")
    txn = store.begin()
    txn.get(row("a"))
    write(store, a=b"2")
    assert txn.commit() == at


@pytest.mark.invariant("I4")
def test_a_transaction_that_only_read_keeps_its_deadline_too(store: Store) -> None:
    at = write(store, a=b"1")
    txn = store.begin()
    txn.get(row("a"))
    txn.deadline_at = at
    with pytest.raises(RetryError):
        txn.commit()


def test_a_blind_write_is_never_refused(store: Store) -> None:
    txn = store.begin()
    txn.put(row("a"), b"2")
    write(store, a=b"1")
    txn.commit()
    assert store.begin().get(row("a")) == b"2"


def test_a_read_below_the_threshold_is_retryable(store: Store) -> None:
    write(store, a=b"1")
    txn = store.begin()
    assert txn.read_at
    later_at = write(store, a=b"2")
    store.transact(lambda other: publish_threshold(other, KEYS, HEAD, later_at))
    with pytest.raises(BelowMark):
        txn.get(row("a"))


def test_a_commit_below_the_threshold_is_retryable(store: Store) -> None:
    write(store, a=b"1")
    txn = store.begin()
    txn.get(row("a"))
    txn.put(row("b"), b"1")
    later_at = write(store, c=b"2")
    store.transact(lambda other: publish_threshold(other, KEYS, HEAD, later_at))
    with pytest.raises(BelowMark):
        txn.commit()


def test_the_key_of_another_tenant_cannot_be_read(store: Store) -> None:
    with pytest.raises(AssertionError):
        store.begin().get(b"\0\0\0\2" + row("a")[4:])


def test_a_span_that_reaches_into_another_tenant_cannot_be_read(store: Store) -> None:
    with pytest.raises(AssertionError):
        list(store.begin().scan(Span(row("a"), b"\0\0\0\3")))


def write_number(store: Store, number: int) -> None:
    txn = store.begin()
    txn.put(row(number), b"changed")
    txn.commit()


def test_what_was_read_ahead_is_not_asked_for_again(store: Store, engine: BreakingEngine) -> None:
    write(store, a=b"1", b=b"2")
    txn = store.begin()
    txn.read_ahead([row("a"), row("b"), row("c")])
    engine.gets.clear()
    assert [txn.get(row(name)) for name in "abc"] == [b"1", b"2", None]
    assert engine.gets == []


@pytest.mark.invariant("I2")
def test_what_was_read_ahead_counts_as_read_once_it_is_asked_for(store: Store) -> None:
    write(store, a=b"1", b=b"1")
    one, other = store.begin(), store.begin()
    for txn in (one, other):
        txn.read_ahead([row("a"), row("b")])
        txn.put(row("c"), b"1")
    assert one.get(row("a")) == b"1"
    write(store, a=b"2")
    other.commit()
    with pytest.raises(RetryError):
        one.commit()


def test_own_writes_lie_over_what_was_read_ahead(store: Store) -> None:
    write(store, a=b"1")
    txn = store.begin()
    txn.put(row("a"), b"2")
    txn.read_ahead([row("a")])
    assert txn.get(row("a")) == b"2"


def test_a_refresh_forgets_what_was_read_ahead(store: Store) -> None:
    write(store, a=b"1")
    txn = store.begin()
    txn.read_ahead([row("a")])
    write(store, a=b"2")
    txn.refresh()
    assert txn.get(row("a")) == b"2"


@pytest.mark.parametrize("ending", [Transaction.commit, Transaction.rollback])
def test_a_transaction_that_is_over_keeps_nothing_of_what_it_read_in_memory(
    store: Store, ending: Callable[[Transaction], object]
) -> None:
    write(store, a=b"1")
    txn = store.begin()
    txn.get(row("a"))
    list(txn.scan(TABLE))
    txn.put(row("b"), b"1")
    ending(txn)
    assert txn._reads.is_empty
    assert not txn._store.ahead
