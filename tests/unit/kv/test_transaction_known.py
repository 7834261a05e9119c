"""Transactions that start from what is known: fewer reads, the same proof."""

import pytest

from tenure.base.errors import InvalidParameter, RetryError
from tenure.kv.scope import ReadAhead
from tenure.kv.store import Store
from tenure.kv.thresholds import publish_threshold
from tenure.kv.transaction import Transaction
from tests.unit.kv.breaking import BreakingEngine
from tests.unit.kv.rows import HEAD, KEYS, row, write


def known_now(store: Store, **values: bytes | None) -> ReadAhead:
    """Writes rows and knows them."""
    at = write(store, **values)
    return ReadAhead(at, {row(name): value for name, value in values.items()})


def test_what_is_known_is_not_asked_for(store: Store, engine: BreakingEngine) -> None:
    known = known_now(store, a=b"1", b=None)
    engine.gets.clear()
    txn = store.begin(read_ahead=known)
    assert (txn.get(row("a")), txn.get(row("b"))) == (b"1", None)
    txn.put(row("c"), b"2")
    txn.commit()
    assert engine.gets == []


def test_what_is_not_known_is_read_as_of_the_same_time_and_once(store: Store, engine: BreakingEngine) -> None:
    write(store, b=b"1")
    known = known_now(store, a=b"1")
    write(store, b=b"2")
    engine.gets.clear()
    txn = store.begin(read_ahead=known)
    assert (txn.get(row("b")), txn.get(row("b"))) == (b"1", b"1")
    assert engine.gets == [row("b")]


@pytest.mark.invariant("known")
@pytest.mark.parametrize("value", [b"2", None])
def test_a_known_value_that_was_read_and_has_changed_refuses_the_commit(
    store: Store, value: bytes | None
) -> None:
    known = known_now(store, a=b"1")
    write(store, a=value)
    txn = store.begin(read_ahead=known)
    txn.get(row("a"))
    txn.put(row("b"), b"1")
    with pytest.raises(RetryError):
        txn.commit()
    assert store.snapshot().get(row("b")) is None


@pytest.mark.invariant("known")
def test_a_key_known_to_be_absent_that_was_written_since_refuses_the_commit(store: Store) -> None:
    known = known_now(store, a=None)
    write(store, a=b"1")
    txn = store.begin(read_ahead=known)
    txn.get(row("a"))
    txn.put(row("b"), b"1")
    with pytest.raises(RetryError):
        txn.commit()


def test_a_known_value_that_was_never_read_may_change(store: Store) -> None:
    known = known_now(store, a=b"1", b=b"1")
    write(store, b=b"2")
    txn = store.begin(read_ahead=known)
    txn.get(row("a"))
    txn.put(row("c"), b"1")
    txn.commit()


@pytest.mark.invariant("known")
def test_one_that_only_read_proves_it_too(store: Store) -> None:
    known = known_now(store, a=b"1")
    txn = store.begin(read_ahead=known)
    txn.get(row("a"))
    at = write(store, b=b"1")
    assert txn.commit() == at
    late = store.begin(read_ahead=known)
    late.get(row("a"))
    write(store, a=b"2")
    with pytest.raises(RetryError):
        late.commit()


def test_known_from_below_a_threshold_is_refused_as_retryable(store: Store) -> None:
    known = known_now(store, a=b"1")
    at = write(store, b=b"1")
    store.transact(lambda txn: publish_threshold(txn, KEYS, HEAD, at))
    txn = store.begin(read_ahead=known)
    txn.get(row("a"))
    txn.put(row("c"), b"1")
    with pytest.raises(RetryError):
        txn.commit()


def test_after_a_refresh_what_was_given_but_not_read_counts_no_more(store: Store) -> None:
    known = known_now(store, a=b"1", b=b"1")
    write(store, b=b"2")
    txn = store.begin(read_ahead=known)
    txn.get(row("a"))
    txn.refresh()
    assert txn.get(row("b")) == b"2"


# ── what a commit knows ────────────────────────────────────────────────────────────────────────


def test_a_commit_knows_what_it_read_and_wrote(store: Store) -> None:
    write(store, b=b"1")
    txn = store.begin(read_ahead=known_now(store, a=b"1", unread=b"1"))
    txn.get(row("a"))
    txn.get(row("b"))
    txn.put(row("a"), b"2")
    txn.delete(row("c"))
    at = txn.commit()
    assert txn.values_at_commit() == ReadAhead(at, {row("a"): b"2", row("b"): b"1", row("c"): None})


def test_a_transaction_that_started_from_nothing_keeps_no_account(store: Store) -> None:
    txn = store.begin()
    txn.get(row("a"))
    txn.put(row("a"), b"1")
    txn.commit()
    assert txn.values_at_commit() is None


def test_a_transaction_whose_child_wrote_gives_no_account(store: Store) -> None:
    txn = store.begin(read_ahead=known_now(store, a=b"1"))
    child = txn.child()
    child.put(row("a"), b"2")
    child.commit()
    assert txn.get(row("a")) == b"2"
    txn.put(row("b"), b"1")
    txn.commit()
    assert txn.values_at_commit() is None


# ── the transaction runner ─────────────────────────────────────────────────────────────────────


def test_an_error_that_came_of_what_is_no_longer_so_is_not_believed(store: Store) -> None:
    known = known_now(store, a=b"shut")
    write(store, a=b"open")

    def enter(txn: Transaction) -> str:
        if txn.get(row("a")) == b"shut":
            raise InvalidParameter("it is shut")
        txn.put(row("b"), b"1")
        return "in"

    assert store.transact(enter, attempts=1, read_ahead=known) == "in"


def test_an_error_that_holds_is_raised(store: Store) -> None:
    found: list[bytes | None] = []

    def enter(txn: Transaction) -> None:
        found.append(txn.get(row("a")))
        raise InvalidParameter("it is shut")

    with pytest.raises(InvalidParameter):
        store.transact(enter, read_ahead=known_now(store, a=b"shut"))
    assert found == [b"shut", b"shut"]


def test_a_conflict_with_what_is_known_counts_as_an_attempt(store: Store) -> None:
    known = known_now(store, a=b"1")
    write(store, a=b"2")

    def add(txn: Transaction) -> None:
        txn.put(row("a"), (txn.get(row("a")) or b"") + b"!")

    with pytest.raises(RetryError):
        store.transact(add, attempts=1, read_ahead=known)
    store.transact(add, attempts=2, read_ahead=known)
    assert store.snapshot().get(row("a")) == b"2!"
