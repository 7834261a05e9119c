"""Rows of which only counts that they are there: until the commit they may change, but not go."""

import pytest

from tenure.base.errors import RetryError
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tests.unit.kv.breaking import BreakingEngine
from tests.unit.kv.rows import between, named, row, write


@pytest.fixture
def txn(store: Store) -> Transaction:
    """It has found "parent", and is about to write "child"."""
    write(store, parent=b"1")
    txn = store.begin()
    before = txn.proof.mark()
    assert txn.get(row("parent")) == b"1"
    txn.proof.relax(before)
    txn.put(row("child"), b"refers to it")
    return txn


def test_a_row_that_changed_is_still_there(store: Store, txn: Transaction) -> None:
    write(store, parent=b"2")
    txn.refresh()
    txn.commit()
    rows = named(store.snapshot().scan(between("a", "z")))
    assert rows == [("child", b"refers to it"), ("parent", b"2")]


@pytest.mark.invariant("I2")
def test_a_row_that_is_gone_fails_the_commit(store: Store, txn: Transaction) -> None:
    write(store, parent=None)
    txn.refresh()
    with pytest.raises(RetryError):
        txn.commit()
    assert store.snapshot().get(row("child")) is None


@pytest.mark.invariant("I2")
def test_a_row_that_goes_after_the_refresh_fails_the_commit(store: Store, txn: Transaction) -> None:
    txn.refresh()
    write(store, parent=None)
    with pytest.raises(RetryError):
        txn.commit()


@pytest.mark.invariant("I2")
def test_a_row_that_was_not_found_stays_read(store: Store) -> None:
    write(store, parent=b"1")
    txn = store.begin()
    before = txn.proof.mark()
    assert [txn.get(row(name)) for name in ("parent", "missing")] == [b"1", None]
    txn.proof.relax(before, without=row("missing"))
    txn.put(row("child"), b"refers to one of them")
    write(store, parent=b"2")
    txn.refresh()
    write(store, missing=b"1")
    with pytest.raises(RetryError):
        txn.refresh()


def test_rows_that_are_counted_on_are_looked_at_again_together(engine: BreakingEngine, store: Store) -> None:
    write(store, **dict.fromkeys("abcdef", b"1"))
    txn = store.begin()
    before = txn.proof.mark()
    for name in "abcdef":
        txn.get(row(name))
    txn.proof.relax(before)
    txn.put(row("child"), b"refers to them")
    write(store, c=b"2")
    txn.refresh()
    engine.lookups = 0
    txn.commit()
    assert engine.lookups == 1


@pytest.mark.invariant("I2")
def test_a_row_that_goes_without_a_refresh_fails_the_commit(store: Store, txn: Transaction) -> None:
    write(store, parent=None)
    with pytest.raises(RetryError):
        txn.commit()


@pytest.mark.invariant("I2")
@pytest.mark.parametrize("is_before", [False, True], ids=["after", "before"])
def test_a_row_that_was_also_read_must_not_change(store: Store, is_before: bool) -> None:
    write(store, parent=b"1")
    txn = store.begin()
    if is_before:
        txn.get(row("parent"))
    before = txn.proof.mark()
    txn.get(row("parent"))
    txn.proof.relax(before)
    if not is_before:
        txn.get(row("parent"))
    write(store, parent=b"2")
    with pytest.raises(RetryError):
        txn.refresh()


def test_what_was_submitted_is_held_to_the_same(store: Store, txn: Transaction) -> None:
    write(store, parent=None)
    txn.refresh()
    with pytest.raises(RetryError):
        txn.submit(lambda: None)
    assert store.snapshot().get(row("child")) is None


def test_a_child_s_row_must_not_change(store: Store) -> None:
    write(store, parent=b"1")
    child = store.begin().child()
    before = child.proof.mark()
    child.get(row("parent"))
    child.proof.relax(before)
    write(store, parent=b"2")
    with pytest.raises(RetryError):
        child.refresh()


def test_a_row_that_it_deletes_itself_need_not_be_there(store: Store, txn: Transaction) -> None:
    txn.delete(row("child"))
    txn.delete(row("parent"))
    write(store, other=b"1")
    txn.refresh()
    txn.commit()
    assert store.snapshot().get(row("parent")) is None
