"""READ COMMITTED at the store: each statement has its own time, and each proof the time of its own read."""

from collections.abc import Callable

import pytest

from tenure.base.errors import CardinalityViolation, RetryError
from tenure.base.interruptible import Check
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.engine import Outcome
from tests.unit.kv.rows import between, row, write

pytestmark = pytest.mark.invariant("statement-proofs")


def begun(store: Store) -> Transaction:
    txn = store.begin()
    txn.proof.keep_times()
    return txn


def test_each_statement_reads_at_a_time_of_its_own(store: Store) -> None:
    txn = begun(store)
    write(store, a=b"1")
    txn.start_finding()
    assert txn.get(row("a")) == b"1"
    write(store, a=b"2")
    assert txn.get(row("a")) == b"1"
    txn.renew()
    assert txn.get(row("a")) == b"2"


def test_what_a_statement_found_is_not_proved(store: Store) -> None:
    write(store, a=b"1")
    txn = begun(store)
    txn.start_finding()
    list(txn.scan(between("a", "z")))
    txn.start_writing()
    txn.put(row("y"), b"1")
    write(store, a=b"2", b=b"1")
    txn.commit()


def test_a_row_that_was_held_is_proved_from_its_own_time_on(store: Store) -> None:
    write(store, a=b"1", b=b"1")
    txn = begun(store)
    txn.get(row("a"))
    txn.put(row("a"), b"2")
    write(store, b=b"2")
    txn.renew()
    assert txn.get(row("b")) == b"2"
    txn.put(row("b"), b"3")
    txn.commit()
    assert store.snapshot().get(row("b")) == b"3"


def test_a_held_row_that_changed_before_a_later_statement_fails_the_commit(store: Store) -> None:
    write(store, a=b"1", b=b"1")
    txn = begun(store)
    txn.get(row("a"))
    txn.put(row("a"), b"2")
    write(store, a=b"9")
    txn.renew()
    txn.get(row("b"))
    txn.put(row("b"), b"2")
    with pytest.raises(RetryError):
        txn.commit()
    assert store.snapshot().get(row("b")) == b"1"


def test_a_held_row_that_changed_fails_a_commit_without_writes(store: Store) -> None:
    write(store, a=b"1")
    txn = begun(store)
    txn.get(row("a"))
    write(store, a=b"9")
    txn.renew()
    with pytest.raises(RetryError):
        txn.commit()


def test_rows_that_were_found_are_compared_with_now(store: Store) -> None:
    write(store, a=b"1", b=b"1")
    txn = begun(store)
    txn.start_finding()
    txn.get(row("a"))
    write(store, b=b"2")
    assert txn.proof.are_unchanged([row("a")])
    assert not txn.proof.are_unchanged([row("a"), row("b")])


def absent(txn: Transaction, name: str, looked: list[str]) -> Callable[[], None]:
    """A unique key: looked at again, it must be absent still."""

    def look() -> None:
        looked.append(name)
        before = txn.proof.mark()
        if txn.proof.get_committed(row(name)) is not None:
            raise CardinalityViolation("taken")
        txn.proof.guard(before, look)

    return look


def test_a_constraint_that_changed_ends_in_its_own_error(store: Store) -> None:
    txn = begun(store)
    absent(txn, "a", [])()
    txn.put(row("a"), b"1")
    txn.renew()
    write(store, a=b"9")
    with pytest.raises(CardinalityViolation):
        txn.commit()
    assert store.snapshot().get(row("a")) == b"9"


def test_a_constraint_that_holds_again_is_no_obstacle(store: Store) -> None:
    txn, looked = begun(store), list[str]()
    absent(txn, "a", looked)()
    txn.put(row("a"), b"1")
    write(store, a=b"9")
    write(store, a=None)
    txn.commit()
    assert looked == ["a", "a"]
    assert store.snapshot().get(row("a")) == b"1"


def test_a_constraint_that_nobody_touched_is_not_looked_at_again(store: Store) -> None:
    txn, looked = begun(store), list[str]()
    for name in ("a", "b"):
        absent(txn, name, looked)()
        txn.put(row(name), b"1")
        txn.renew()
    write(store, z=b"9")
    txn.commit()
    assert looked == ["a", "b"]


def test_of_constraints_of_one_time_only_the_touched_are_looked_at_again(store: Store) -> None:
    txn, looked = begun(store), list[str]()
    for name in ("a", "b"):
        absent(txn, name, looked)()
        txn.put(row(name), b"1")
    txn.renew()
    write(store, b=b"9")
    write(store, b=None)
    txn.commit()
    assert looked == ["a", "b", "b"]


def test_a_constraint_that_others_touch_while_it_commits_is_looked_at_again(store: Store) -> None:
    txn, looked = begun(store), list[str]()
    look = absent(txn, "a", looked)
    look()
    txn.put(row("a"), b"1")

    decided = txn._decided

    def meddled(check: Check) -> Outcome:
        if len(looked) < 3:
            write(store, a=b"9")
            write(store, a=None)
        return decided(check)

    txn._decided = meddled  # type: ignore[method-assign]
    txn.commit()
    assert len(looked) == 3


def test_a_constraint_may_write_when_it_is_looked_at_again(store: Store) -> None:
    txn = begun(store)

    def delete_children() -> None:
        before = txn.proof.mark()
        for key, _ in list(txn.scan(between("c", "d"))):
            txn.delete(key)
        txn.proof.guard(before, delete_children)

    write(store, p=b"1", c1=b"1")
    txn.get(row("p"))
    txn.delete(row("p"))
    delete_children()
    write(store, c2=b"1")
    txn.commit()
    assert list(store.snapshot().scan(between("a", "z"))) == []


def test_what_a_savepoint_gave_up_is_not_proved(store: Store) -> None:
    write(store, a=b"1", b=b"1")
    txn = begun(store)
    txn.get(row("a"))
    txn.put(row("a"), b"2")
    txn.renew()
    mark, proofs = txn.mark(), txn.proof.mark()
    for name in ("b", "c"):
        txn.get(row(name))
        txn.put(row(name), b"2")
        txn.renew()
    absent(txn, "d", [])()
    txn.put(row("d"), b"2")
    txn.back_to(mark)
    txn.proof.forget(proofs)
    write(store, b=b"9", c=b"9", d=b"9")
    txn.commit()
    assert [store.snapshot().get(row(name)) for name in "abcd"] == [b"2", b"9", b"9", b"9"]


def test_what_was_held_before_a_savepoint_stays_proved(store: Store) -> None:
    write(store, a=b"1", b=b"1")
    txn = begun(store)
    txn.get(row("a"))
    txn.put(row("a"), b"2")
    mark, proofs = txn.mark(), txn.proof.mark()
    txn.get(row("b"))
    txn.renew()
    txn.get(row("c"))
    txn.back_to(mark)
    txn.proof.forget(proofs)
    write(store, a=b"9")
    with pytest.raises(RetryError):
        txn.commit()


def test_a_view_of_such_a_transaction_need_not_hold_at_the_commit(store: Store) -> None:
    write(store, a=b"1")
    txn = begun(store)
    view = txn.view()
    assert view.get(row("a")) == b"1"
    txn.put(row("b"), b"1")
    write(store, a=b"2")
    assert view.get(row("a")) == b"1"
    txn.commit()


def test_a_refresh_proves_rows_and_constraints(store: Store) -> None:
    txn = begun(store)
    absent(txn, "a", [])()
    txn.put(row("b"), b"1")
    txn.refresh()
    write(store, a=b"9")
    with pytest.raises(RetryError):
        txn.refresh()


def test_the_earliest_time_is_that_of_the_first_proof(store: Store) -> None:
    first_at = write(store, a=b"1")
    txn = begun(store)
    txn.get(row("a"))
    write(store, b=b"1")
    txn.renew()
    txn.get(row("b"))
    assert txn.earliest_at == first_at < txn.read_at
