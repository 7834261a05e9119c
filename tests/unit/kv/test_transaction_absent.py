"""What a transaction needs to be absent when it commits, and does not look for."""

from collections.abc import Sequence

import pytest

from tenure.base.errors import BelowMark, RetryError, UserError
from tenure.base.timestamp import Timestamp
from tenure.kv.bases import Row
from tenure.kv.keys import Span
from tenure.kv.store import Store
from tenure.kv.thresholds import clean
from tenure.kv.transaction import Transaction
from tests.unit.kv.breaking import BreakingEngine
from tests.unit.kv.rows import HEAD, KEYS, row, write


class Taken(UserError):
    pass


def _insert(txn: Transaction, name: str, value: bytes = b"new") -> None:
    txn.expect_absent(row(name), lambda: Taken(name))
    txn.put(row(name), value)


def test_a_key_that_is_free_at_commit_is_written(store: Store) -> None:
    write(store, a=b"1")
    txn = store.begin()
    _insert(txn, "a")
    write(store, a=None)
    txn.commit()
    assert store.begin().get(row("a")) == b"new"


@pytest.mark.invariant("absent")
def test_a_key_that_is_taken_at_commit_raises_what_was_to_be_told_and_nothing_is_written(
    store: Store,
) -> None:
    txn = store.begin()
    txn.put(row("b"), b"1")
    _insert(txn, "a")
    write(store, a=b"1")
    with pytest.raises(Taken):
        txn.commit()
    assert [store.begin().get(row(name)) for name in "ab"] == [b"1", None]


def test_what_was_submitted_is_told_when_it_is_finished(store: Store) -> None:
    write(store, a=b"1")
    txn = store.begin()
    _insert(txn, "a")
    txn.submit(lambda: None)
    with pytest.raises(Taken):
        txn.finish()


def test_nothing_is_read_before_the_commit(store: Store) -> None:
    txn = store.begin()
    _insert(txn, "a")
    assert not txn.has_read


def test_reads_that_no_longer_hold_come_first(store: Store) -> None:
    write(store, a=b"1", b=b"1")
    txn = store.begin()
    txn.get(row("b"))
    _insert(txn, "a")
    write(store, b=b"2")
    with pytest.raises(RetryError):
        txn.commit()


def test_the_first_of_several_that_are_taken_is_told(store: Store) -> None:
    write(store, b=b"1", c=b"1")
    txn = store.begin()
    for name in "acb":
        _insert(txn, name)
    with pytest.raises(Taken, match="c"):
        txn.commit()


def test_a_key_that_the_transaction_has_written_itself_is_taken_at_once(store: Store) -> None:
    txn = store.begin()
    _insert(txn, "a")
    with pytest.raises(Taken):
        _insert(txn, "a")


def test_a_write_that_was_taken_back_needs_no_room(store: Store) -> None:
    write(store, a=b"1")
    txn = store.begin()
    savepoint = txn.mark()
    _insert(txn, "a")
    txn.back_to(savepoint)
    txn.put(row("b"), b"1")
    txn.commit()
    assert store.begin().get(row("a")) == b"1"


def test_whoever_fails_for_another_reason_can_look_first(store: Store) -> None:
    write(store, b=b"1")
    txn = store.begin()
    _insert(txn, "a")
    txn.proof.check_absent()
    _insert(txn, "b")
    with pytest.raises(Taken, match="b"):
        txn.proof.check_absent()


@pytest.mark.invariant("absent")
def test_rows_that_have_left_the_store_meanwhile_are_not_proved_absent(store: Store) -> None:
    at = write(store, a=b"1")
    txn = store.begin()
    _insert(txn, "a")
    store.transact(lambda cleaning: clean(cleaning, KEYS, HEAD, at, limit=10))
    with pytest.raises(BelowMark):
        txn.commit()


class _Lake:
    """A base that has one row."""

    flushed_at = 1 << 62
    described = ""

    def of(self, head: bytes) -> "_Lake":
        return self

    def newer(self, head: bytes, base: object) -> "_Lake":
        raise AssertionError

    def get(self, key: bytes, at: Timestamp) -> bytes | None:
        return b"in the lake" if key == row("a") else None

    def present(self, keys: Sequence[bytes], at: Timestamp) -> set[bytes]:
        return set(self.get_many(keys, at))

    def get_many(self, keys: Sequence[bytes], at: Timestamp) -> dict[bytes, bytes]:
        return {key: value for key in keys if (value := self.get(key, at)) is not None}

    def page(self, span: Span, at: Timestamp, limit: int, *, reverse: bool) -> list[Row]:
        return []

    def rows_within(self, span: Span) -> int:
        return 1


def test_where_there_is_a_base_it_is_looked_at_at_once(engine: BreakingEngine, store: Store) -> None:
    at = write(store, a=b"1", b=b"1")
    store.transact(lambda cleaning: clean(cleaning, KEYS, HEAD, at, limit=10))
    store.use_bases(_Lake())
    txn = store.begin()
    with pytest.raises(Taken):
        _insert(txn, "a")
    _insert(txn, "c")
    txn.commit()


def test_a_child_looks_at_once_and_sees_what_its_parent_has_written(store: Store) -> None:
    parent = store.begin()
    parent.put(row("a"), b"1")
    with pytest.raises(Taken):
        parent.child().expect_absent(row("a"), lambda: Taken("a"))
    parent.rollback()


def test_a_row_left_below_the_mark_is_looked_for_in_the_lake_before_it_is_called_taken(store: Store) -> None:
    """What is still in the store below the mark may have been deleted by an import."""
    write(store, a=b"1")
    txn = store.begin()
    _insert(txn, "a")
    store.transact(lambda other: clean(other, store.keyspace, HEAD, other.read_at, limit=0))
    with pytest.raises(BelowMark):
        txn.commit()
