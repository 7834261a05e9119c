"""Locks in memory, stepped by hand: who is granted, in which order, and who may not begin to wait."""

import random

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import DeadlockDetected
from tenure.cluster.locks.lock_table import LockMode, LockOwner, LockTable, LockWaiter, Name

A, B = Name(1, b"a"), Name(1, b"b")
ONE, TWO, THREE, FOUR = (LockOwner(number, number) for number in range(1, 5))


@pytest.fixture
def table() -> LockTable:
    return LockTable(ManualEnv())


def is_granted(*waiters: LockWaiter) -> list[bool]:
    return [waiter.is_granted.is_set() for waiter in waiters]


def test_an_exclusive_lock_keeps_others_out(table: LockTable) -> None:
    assert table.try_acquire(ONE, A, LockMode.EXCLUSIVE)
    assert not table.try_acquire(TWO, A, LockMode.EXCLUSIVE)
    assert not table.try_acquire(TWO, A, LockMode.SHARE)
    assert table.try_acquire(TWO, B, LockMode.EXCLUSIVE)


def test_shared_locks_go_together(table: LockTable) -> None:
    assert table.try_acquire(ONE, A, LockMode.SHARE)
    assert table.try_acquire(TWO, A, LockMode.SHARE)
    assert not table.try_acquire(THREE, A, LockMode.EXCLUSIVE)


def test_what_an_owner_has_it_gets_again(table: LockTable) -> None:
    table.try_acquire(ONE, A, LockMode.EXCLUSIVE)
    assert table.try_acquire(ONE, A, LockMode.EXCLUSIVE)
    assert table.try_acquire(ONE, A, LockMode.SHARE)
    table.release(ONE, [A])
    assert table.is_free()


@pytest.mark.invariant("lock-order")
def test_waiters_are_granted_in_the_order_they_came(table: LockTable) -> None:
    table.try_acquire(ONE, A, LockMode.EXCLUSIVE)
    waiters = [table.join(owner, A, LockMode.EXCLUSIVE) for owner in (TWO, THREE, FOUR)]
    table.release(ONE, [A])
    assert is_granted(*waiters) == [True, False, False]
    table.release(TWO, [A])
    assert is_granted(*waiters) == [True, True, False]


@pytest.mark.invariant("lock-order")
def test_a_shared_request_does_not_pass_a_writer_in_line(table: LockTable) -> None:
    table.try_acquire(ONE, A, LockMode.SHARE)
    writer = table.join(TWO, A, LockMode.EXCLUSIVE)
    assert not table.try_acquire(THREE, A, LockMode.SHARE)
    reader = table.join(THREE, A, LockMode.SHARE)
    table.release(ONE, [A])
    assert is_granted(writer, reader) == [True, False]


def test_readers_in_line_are_granted_together(table: LockTable) -> None:
    table.try_acquire(ONE, A, LockMode.EXCLUSIVE)
    readers = [table.join(owner, A, LockMode.SHARE) for owner in (TWO, THREE)]
    table.release(ONE, [A])
    assert is_granted(*readers) == [True, True]


def test_who_leaves_lets_those_behind_go_on(table: LockTable) -> None:
    table.try_acquire(ONE, A, LockMode.SHARE)
    writer = table.join(TWO, A, LockMode.EXCLUSIVE)
    reader = table.join(THREE, A, LockMode.SHARE)
    assert table.leave(writer)
    assert is_granted(reader) == [True]


def test_who_leaves_too_late_holds_the_lock(table: LockTable) -> None:
    table.try_acquire(ONE, A, LockMode.EXCLUSIVE)
    waiter = table.join(TWO, A, LockMode.EXCLUSIVE)
    table.release(ONE, [A])
    assert not table.leave(waiter)
    assert not table.try_acquire(ONE, A, LockMode.EXCLUSIVE)


def test_who_joins_what_has_become_free_is_granted_at_once(table: LockTable) -> None:
    assert is_granted(table.join(ONE, A, LockMode.EXCLUSIVE)) == [True]


def test_the_only_reader_becomes_the_writer_past_those_in_line(table: LockTable) -> None:
    table.try_acquire(ONE, A, LockMode.SHARE)
    table.join(TWO, A, LockMode.EXCLUSIVE)
    assert table.try_acquire(ONE, A, LockMode.EXCLUSIVE)


def test_a_reader_that_wants_to_write_stands_before_those_who_wait_for_it(table: LockTable) -> None:
    table.try_acquire(ONE, A, LockMode.SHARE)
    table.try_acquire(TWO, A, LockMode.SHARE)
    writer = table.join(THREE, A, LockMode.EXCLUSIVE)
    upgrade = table.join(ONE, A, LockMode.EXCLUSIVE)
    table.release(TWO, [A])
    assert is_granted(upgrade, writer) == [True, False]


def test_what_is_lowered_is_shared_again(table: LockTable) -> None:
    table.try_acquire(ONE, A, LockMode.EXCLUSIVE)
    reader = table.join(TWO, A, LockMode.SHARE)
    table.lower(ONE, A, LockMode.SHARE)
    assert is_granted(reader) == [True]


@pytest.mark.invariant("I9")
def test_whoever_would_close_a_cycle_does_not_begin_to_wait(table: LockTable) -> None:
    table.try_acquire(ONE, A, LockMode.EXCLUSIVE)
    table.try_acquire(TWO, B, LockMode.EXCLUSIVE)
    waiter = table.join(ONE, B, LockMode.EXCLUSIVE)
    with pytest.raises(DeadlockDetected) as caught:
        table.join(TWO, A, LockMode.EXCLUSIVE)
    assert caught.value.sqlstate == "40P01"
    table.release(TWO, [B])
    assert is_granted(waiter) == [True]


@pytest.mark.invariant("I9")
def test_a_cycle_by_way_of_the_line_is_found(table: LockTable) -> None:
    """Three waits for Two, who only stands in line before it, and Two would wait for Three."""
    table.try_acquire(ONE, A, LockMode.SHARE)
    table.try_acquire(THREE, B, LockMode.EXCLUSIVE)
    table.join(TWO, A, LockMode.EXCLUSIVE)
    table.join(THREE, A, LockMode.SHARE)
    with pytest.raises(DeadlockDetected):
        table.join(ONE, B, LockMode.EXCLUSIVE)


@pytest.mark.invariant("I9")
def test_two_readers_that_both_want_to_write_do_not_wait_for_each_other(table: LockTable) -> None:
    table.try_acquire(ONE, A, LockMode.SHARE)
    table.try_acquire(TWO, A, LockMode.SHARE)
    table.join(ONE, A, LockMode.EXCLUSIVE)
    with pytest.raises(DeadlockDetected):
        table.join(TWO, A, LockMode.EXCLUSIVE)


def test_readers_in_line_wait_for_no_cycle_of_their_own(table: LockTable) -> None:
    table.try_acquire(ONE, A, LockMode.EXCLUSIVE)
    table.try_acquire(TWO, B, LockMode.SHARE)
    table.join(THREE, A, LockMode.SHARE)
    table.join(TWO, A, LockMode.SHARE)
    table.try_acquire(THREE, B, LockMode.SHARE)
    table.release(ONE, [A])


@pytest.mark.parametrize("seed", range(30))
def test_nobody_holds_what_conflicts_and_nobody_waits_for_nothing(seed: int) -> None:
    rng = random.Random(seed)
    table = LockTable(ManualEnv())
    owners = [LockOwner(number, number) for number in range(6)]
    names = [Name(1, bytes([number])) for number in range(3)]
    held: dict[LockOwner, dict[Name, LockMode]] = {owner: {} for owner in owners}
    waiting: dict[LockOwner, LockWaiter] = {}

    def settle() -> None:
        for owner, waiter in list(waiting.items()):
            if waiter.is_granted.is_set():
                held[owner][waiter.name] = max(waiter.mode, held[owner].get(waiter.name, waiter.mode))
                del waiting[owner]
        for name in names:
            modes = [held[owner][name] for owner in owners if name in held[owner]]
            assert len(modes) <= 1 or set(modes) == {LockMode.SHARE}

    for _ in range(400):
        owner, name, mode = rng.choice(owners), rng.choice(names), rng.choice(list(LockMode))
        if rng.random() < 0.3:
            if owner in waiting:
                table.leave(waiting.pop(owner))
            table.release(owner, held[owner])
            held[owner].clear()
        elif owner not in waiting:
            if table.try_acquire(owner, name, mode):
                held[owner][name] = max(mode, held[owner].get(name, mode))
            else:
                try:
                    waiting[owner] = table.join(owner, name, mode)
                except DeadlockDetected:
                    table.release(owner, held[owner])
                    held[owner].clear()
        settle()
        assert len(waiting) < len(owners), "all wait, so some wait in a cycle"
    for owner in owners:
        settle()
        if owner in waiting:
            table.leave(waiting.pop(owner))
        table.release(owner, held[owner])
        held[owner].clear()
    assert table.is_free()
