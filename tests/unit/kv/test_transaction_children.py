"""Child transactions: what they see, when they end, and exactly what a parent is excused."""

import pytest

from tenure.base.errors import OutcomeUnknown, RetryError
from tenure.kv.scope import TransactionState
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tests.unit.kv.breaking import BreakingEngine, cut_before_landing
from tests.unit.kv.rows import TABLE, between, named, row, write


@pytest.mark.invariant("I7")
def test_a_child_sees_its_parents_buffered_writes(store: Store) -> None:
    write(store, a=b"1", b=b"1")
    parent = store.begin()
    parent.put(row("a"), b"parent")
    parent.delete(row("b"))
    child = parent.child()
    assert child.get(row("a")) == b"parent"
    assert child.get(row("b")) is None
    assert named(child.scan(TABLE)) == [("a", b"parent")]


@pytest.mark.invariant("I7")
def test_a_child_that_reads_committed_rows_sees_none_of_its_parents_writes(store: Store) -> None:
    write(store, a=b"1")
    parent = store.begin()
    parent.put(row("a"), b"parent")
    child = parent.child(committed_only=True)
    assert child.get(row("a")) == b"1"
    assert named(child.scan(TABLE)) == [("a", b"1")]


@pytest.mark.invariant("I7")
def test_a_grandchild_sees_all_its_ancestors_writes(store: Store) -> None:
    parent = store.begin()
    parent.put(row("a"), b"parent")
    parent.put(row("b"), b"parent")
    child = parent.child()
    child.put(row("c"), b"child")
    grandchild = child.child()
    assert named(grandchild.scan(TABLE)) == [("a", b"parent"), ("b", b"parent"), ("c", b"child")]
    assert grandchild.get(row("a")) == b"parent"


@pytest.mark.invariant("I7")
def test_nobody_else_sees_a_parents_or_an_open_childs_writes(store: Store) -> None:
    parent = store.begin()
    parent.put(row("a"), b"parent")
    child = parent.child()
    child.put(row("b"), b"child")
    assert named(store.begin().scan(TABLE)) == []
    assert parent.get(row("b")) is None


@pytest.mark.invariant("I7")
def test_a_child_reads_at_a_time_of_its_own(store: Store) -> None:
    write(store, a=b"1")
    parent = store.begin()
    parent.get(row("a"))
    write(store, a=b"2")
    assert parent.child().get(row("a")) == b"2"
    assert parent.get(row("a")) == b"1"


@pytest.mark.invariant("I7")
def test_a_child_commits_before_its_parent(store: Store) -> None:
    parent = store.begin()
    parent.put(row("a"), b"parent")
    child = parent.child()
    child.put(row("b"), b"child")
    child_at = child.commit()
    assert store.begin().get(row("b")) == b"child"
    assert child_at < parent.commit()


@pytest.mark.invariant("I7")
def test_a_committed_child_stays_when_its_parent_is_rolled_back(store: Store) -> None:
    parent = store.begin()
    parent.put(row("a"), b"parent")
    child = parent.child()
    child.put(row("b"), b"child")
    child.commit()
    parent.rollback()
    assert named(store.begin().scan(TABLE)) == [("b", b"child")]


@pytest.mark.invariant("I7")
def test_a_parent_with_an_open_child_cannot_commit(store: Store) -> None:
    parent = store.begin()
    parent.child()
    with pytest.raises(AssertionError):
        parent.commit()


@pytest.mark.invariant("I7")
def test_a_rollback_ends_the_open_children_too(store: Store) -> None:
    parent = store.begin()
    child = parent.child()
    grandchild = child.child()
    parent.rollback()
    assert child.state is TransactionState.ENDED
    assert grandchild.state is TransactionState.ENDED


@pytest.mark.invariant("I7")
@pytest.mark.parametrize("committed_only", [False, True])
def test_a_child_may_not_write_a_key_its_parent_has_written(store: Store, committed_only: bool) -> None:
    parent = store.begin()
    parent.put(row("a"), b"parent")
    with pytest.raises(AssertionError):
        parent.child(committed_only=committed_only).put(row("a"), b"child")


@pytest.mark.invariant("I7")
def test_a_grandchild_may_not_write_a_key_its_grandparent_has_written(store: Store) -> None:
    parent = store.begin()
    parent.put(row("a"), b"parent")
    with pytest.raises(AssertionError):
        parent.child().child().delete(row("a"))


def test_a_rolled_back_child_leaves_nothing_to_its_parent(store: Store) -> None:
    parent = store.begin()
    parent.get(row("b"))
    child = parent.child()
    child.put(row("a"), b"child")
    child.rollback()
    assert parent.get(row("a")) is None


def test_a_parent_sees_a_childs_commit_over_its_own_read_time(store: Store) -> None:
    write(store, a=b"1", b=b"1", c=b"1")
    parent = store.begin()
    parent.get(row("a"))
    child = parent.child()
    child.put(row("a"), b"child")
    child.delete(row("b"))
    child.commit()
    write(store, c=b"stranger")
    assert parent.get(row("a")) == b"child"
    assert named(parent.scan(TABLE)) == [("a", b"child"), ("c", b"1")]


def test_a_parent_that_has_not_read_finds_a_childs_commit_in_the_store(store: Store) -> None:
    parent = store.begin()
    child = parent.child()
    child.put(row("a"), b"child")
    child.commit()
    write(store, a=b"stranger")
    assert parent.get(row("a")) == b"stranger"
    parent.put(row("b"), b"1")
    parent.commit()


def test_a_parents_own_write_lies_over_its_childs(store: Store) -> None:
    parent = store.begin()
    parent.get(row("a"))
    child = parent.child()
    child.put(row("a"), b"child")
    child.commit()
    parent.put(row("a"), b"parent")
    assert parent.get(row("a")) == b"parent"
    assert named(parent.scan(TABLE)) == [("a", b"parent")]
    parent.commit()
    assert store.begin().get(row("a")) == b"parent"


@pytest.mark.invariant("I8")
def test_a_childs_write_over_what_its_parent_read_is_excused(store: Store) -> None:
    write(store, a=b"1")
    parent = store.begin()
    parent.get(row("a"))
    list(parent.scan(TABLE))
    child = parent.child()
    child.put(row("a"), b"child")
    child.put(row("b"), b"child")
    child.commit()
    parent.put(row("c"), b"parent")
    parent.commit()


@pytest.mark.invariant("I8")
def test_a_grandchilds_write_is_excused_too(store: Store) -> None:
    parent = store.begin()
    parent.get(row("a"))
    child = parent.child()
    child.get(row("b"))
    grandchild = child.child()
    grandchild.put(row("a"), b"grandchild")
    grandchild.commit()
    child.put(row("b"), b"child")
    child.commit()
    assert parent.get(row("a")) == b"grandchild"
    parent.put(row("c"), b"parent")
    parent.commit()


@pytest.mark.invariant("I8")
def test_a_grandchild_is_excused_although_the_child_between_was_rolled_back(store: Store) -> None:
    parent = store.begin()
    parent.get(row("a"))
    child = parent.child()
    child.get(row("b"))
    grandchild = child.child()
    grandchild.put(row("a"), b"grandchild")
    grandchild.commit()
    child.rollback()
    parent.put(row("c"), b"parent")
    parent.commit()


@pytest.mark.invariant("I8")
def test_a_stranger_above_a_childs_write_refuses_the_parent(store: Store) -> None:
    parent = store.begin()
    parent.get(row("a"))
    child = parent.child()
    child.put(row("a"), b"child")
    child.commit()
    write(store, a=b"stranger")
    parent.put(row("c"), b"parent")
    with pytest.raises(RetryError):
        parent.commit()


@pytest.mark.invariant("I8")
def test_a_stranger_beneath_a_childs_write_refuses_the_parent(store: Store) -> None:
    parent = store.begin()
    parent.get(row("a"))
    write(store, a=b"stranger")
    child = parent.child()
    child.put(row("a"), b"child")
    child.commit()
    parent.put(row("c"), b"parent")
    with pytest.raises(RetryError):
        parent.commit()


@pytest.mark.invariant("I8")
def test_a_stranger_between_two_childrens_writes_refuses_the_parent(store: Store) -> None:
    parent = store.begin()
    parent.get(row("a"))
    for value in (b"first", b"second"):
        child = parent.child()
        child.put(row("a"), value)
        child.commit()
        if value == b"first":
            write(store, a=b"stranger")
    parent.put(row("c"), b"parent")
    with pytest.raises(RetryError):
        parent.commit()


@pytest.mark.invariant("I8")
def test_two_children_one_after_the_other_are_both_excused(store: Store) -> None:
    parent = store.begin()
    list(parent.scan(between("a", "b")))
    for value in (b"first", b"second"):
        child = parent.child()
        child.put(row("a"), value)
        child.commit()
    assert parent.get(row("a")) == b"second"
    parent.put(row("c"), b"parent")
    parent.commit()


@pytest.mark.invariant("I8")
def test_a_stranger_in_the_same_span_as_a_child_refuses_the_parent(store: Store) -> None:
    parent = store.begin()
    list(parent.scan(TABLE))
    child = parent.child()
    child.put(row("a"), b"child")
    child.commit()
    write(store, b=b"stranger")
    parent.put(row("c"), b"parent")
    with pytest.raises(RetryError):
        parent.commit()


@pytest.mark.invariant("I2")
def test_a_parent_that_only_reads_is_validated_once_it_saw_a_childs_commit(store: Store) -> None:
    write(store, a=b"1")
    parent = store.begin()
    parent.get(row("a"))
    write(store, a=b"stranger")
    child = parent.child()
    child.put(row("b"), b"child")
    child.commit()
    assert parent.get(row("b")) == b"child"
    with pytest.raises(RetryError):
        parent.commit()


@pytest.mark.invariant("I2")
def test_a_child_is_validated_against_everybody_its_siblings_too(store: Store) -> None:
    parent = store.begin()
    slow, fast = parent.child(), parent.child()
    slow.get(row("a"))
    fast.put(row("a"), b"fast")
    fast.commit()
    slow.put(row("b"), b"slow")
    with pytest.raises(RetryError):
        slow.commit()


@pytest.mark.invariant("I8")
def test_a_child_with_an_unknown_outcome_excuses_nothing(store: Store, engine: BreakingEngine) -> None:
    parent = store.begin()
    parent.get(row("a"))
    child = parent.child()
    child.put(row("a"), b"child")
    engine.on_commit = cut_before_landing
    engine.settle_errors = [OutcomeUnknown("nobody can tell")]
    with pytest.raises(OutcomeUnknown):
        child.commit()
    engine.on_commit = None
    write(store, a=b"as if it had landed")
    parent.put(row("b"), b"parent")
    with pytest.raises(RetryError):
        parent.commit()


def test_a_child_that_was_refused_leaves_its_parent_open(store: Store) -> None:
    parent = store.begin()
    child = parent.child()
    child.get(row("a"))
    child.put(row("b"), b"child")
    write(store, a=b"stranger")
    with pytest.raises(RetryError):
        child.commit()
    parent.put(row("c"), b"parent")
    parent.commit()
    assert store.begin().get(row("b")) is None


def test_a_retried_parent_finds_its_childs_effects(store: Store) -> None:
    seen: list[bytes | None] = []

    def attempt(parent: Transaction) -> None:
        seen.append(parent.get(row("a")))
        if len(seen) == 1:
            child = parent.child()
            child.put(row("a"), b"child")
            child.commit()
            write(store, a=b"stranger")
        parent.put(row("b"), b"parent")

    store.transact(attempt)
    assert seen == [None, b"stranger"]


@pytest.mark.invariant("I2")
def test_a_grandchilds_write_does_not_hide_what_the_parents_read_time_shows(store: Store) -> None:
    parent = store.begin()
    child = parent.child()
    child.get(row("z"))
    grandchild = child.child()
    grandchild.put(row("a"), b"grandchild")
    grandchild.commit()
    write(store, a=b"stranger")
    parent.get(row("y"))
    child.rollback()
    assert parent.get(row("a")) == b"stranger"


@pytest.mark.invariant("I2")
def test_of_two_descendants_writes_the_parent_sees_the_newer(store: Store) -> None:
    parent = store.begin()
    parent.get(row("z"))
    slow = parent.child()
    slow.get(row("z"))
    grandchild = slow.child()
    grandchild.put(row("a"), b"older")
    grandchild.commit()
    fast = parent.child()
    fast.put(row("a"), b"newer")
    fast.commit()
    slow.rollback()
    assert parent.get(row("a")) == b"newer"


def test_get_and_scan_of_a_child_agree_on_what_lies_on_top(store: Store) -> None:
    parent = store.begin()
    child = parent.child()
    child.get(row("z"))
    grandchild = child.child()
    grandchild.put(row("a"), b"grandchild")
    grandchild.commit()
    parent.put(row("a"), b"parent")
    assert named(child.scan(TABLE)) == [("a", child.get(row("a")))]
