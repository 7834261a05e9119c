"""Locks between nodes over every engine, as several processes have it: one store, opened twice."""

from collections.abc import Iterator
from threading import Barrier

import pytest

from tenure.base.env import SystemEnv
from tenure.base.errors import DeadlockDetected, LockNotAvailable
from tenure.base.settings import DEFINITIONS, LIVENESS_HEARTBEAT, LIVENESS_TTL, Settings
from tenure.cluster.locks.advisory_locks import AdvisoryKey
from tenure.cluster.locks.lock_table import LockMode
from tenure.cluster.locks.lock_waits import WaitPolicy
from tests.contract.conftest import OpenEngine
from tests.unit.cluster.lockers import Ask, Locker
from tests.unit.kv.rows import row
from tests.unit.kv.waiting import PATIENCE_SECONDS, Call

A, B = row("a"), row("b")
KEY = AdvisoryKey(1, (1, 2))
SHORT = Settings(DEFINITIONS).with_value(LIVENESS_TTL, 0.5).with_value(LIVENESS_HEARTBEAT, 0.1)


@pytest.fixture
def nodes(open_engine: OpenEngine) -> Iterator[tuple[Locker, Locker]]:
    lockers = Locker(open_engine(), SystemEnv()), Locker(open_engine(), SystemEnv())
    yield lockers
    for locker in lockers:
        locker.store.close()


def test_another_node_waits_and_is_woken(nodes: tuple[Locker, Locker]) -> None:
    one, two = nodes
    holder = one.owner()
    one.rows.acquire(holder, [A])
    ask = Ask(two.rows.acquire, two.owner(), [A]).waits()
    one.rows.release(holder)
    assert ask.result() == ([A], True)


def test_nobody_waits_for_shared_locks(nodes: tuple[Locker, Locker]) -> None:
    for node in nodes:
        assert node.rows.acquire(node.owner(), [A], mode=LockMode.SHARE, wait=WaitPolicy.NOWAIT).keys == [A]


def test_nowait_and_skip_locked_do_not_wait(nodes: tuple[Locker, Locker]) -> None:
    one, two = nodes
    one.rows.acquire(one.owner(), [A])
    with pytest.raises(LockNotAvailable):
        two.rows.acquire(two.owner(), [A], wait=WaitPolicy.NOWAIT)
    assert two.rows.acquire(two.owner(), [A, B], wait=WaitPolicy.SKIP).keys == [B]


@pytest.mark.invariant("lock-order")
def test_nodes_take_turns_in_the_order_they_came(nodes: tuple[Locker, Locker]) -> None:
    one, two = nodes
    holder, second, third = one.owner(), two.owner(), one.owner()
    one.rows.acquire(holder, [A])
    there = Ask(two.rows.acquire, second, [A]).waits()
    here = Ask(one.rows.acquire, third, [A]).waits()
    one.rows.release(holder)
    there.result()
    two.rows.release(second)
    here.result()


@pytest.mark.invariant("I9")
def test_the_younger_of_two_that_wait_for_each_other_gives_way(nodes: tuple[Locker, Locker]) -> None:
    one, two = nodes
    older, younger = one.owner(), two.owner()
    one.rows.acquire(older, [A])
    two.rows.acquire(younger, [B])
    waits = Ask(one.rows.acquire, older, [B]).waits()
    gives_way = Ask(two.rows.acquire, younger, [A])
    assert isinstance(gives_way.error(), DeadlockDetected)
    two.rows.release(younger)
    waits.result()


@pytest.mark.invariant("lock-death")
def test_what_a_dead_node_has_locked_is_free_within_its_ttl(open_engine: OpenEngine) -> None:
    dead = Locker(open_engine(), SystemEnv(), settings=SHORT)
    alive = Locker(open_engine(), SystemEnv())
    dead.rows.acquire(dead.owner(), [A])
    dead.advisory.acquire(dead.owner(), KEY)
    rows = Ask(alive.rows.acquire, alive.owner(), [A])
    advisory = Ask(alive.advisory.acquire, alive.owner(), KEY)
    assert rows.result().keys == [A]
    assert advisory.result() is True
    alive.store.close()


def test_writers_of_a_hot_row_queue_and_none_is_refused(nodes: tuple[Locker, Locker]) -> None:
    """Each locks, moves its read time up, reads and writes: no 40001, and no increment is lost."""
    threads, rounds = 4, 6
    start = Barrier(2 * threads)

    def increment(node: Locker) -> None:
        start.wait(PATIENCE_SECONDS)
        for _ in range(rounds):
            owner, txn = node.owner(), node.store.begin()
            assert txn.read_at  # it began before it got the lock
            node.rows.acquire(owner, [A])
            txn.refresh()
            txn.put(A, b"%d" % (int(txn.get(A) or b"0") + 1))
            txn.commit()
            node.rows.release(owner)

    calls = [Call(lambda node=node: increment(node)) for node in nodes for _ in range(threads)]  # type: ignore[misc]
    for call in calls:
        call.result()
    assert nodes[0].store.begin().get(A) == b"%d" % (2 * threads * rounds)
    for node in nodes:
        node.settle()
    assert nodes[0].records() == 0


@pytest.mark.invariant("lock-exclusion")
def test_an_advisory_lock_alone_keeps_counts_exact(nodes: tuple[Locker, Locker]) -> None:
    """What is read and written in two transactions is right only if nobody else comes between."""
    threads, rounds = 3, 4
    start = Barrier(2 * threads)

    def increment(node: Locker) -> None:
        owner = node.owner()
        start.wait(PATIENCE_SECONDS)
        for _ in range(rounds):
            node.advisory.acquire(owner, KEY)
            found = int(node.store.snapshot().get(B) or b"0")
            node.transact(lambda txn, found=found: txn.put(B, b"%d" % (found + 1)))
            node.advisory.unlock(owner, KEY)

    calls = [Call(lambda node=node: increment(node)) for node in nodes for _ in range(threads)]  # type: ignore[misc]
    for call in calls:
        call.result()
    assert nodes[0].store.begin().get(B) == b"%d" % (2 * threads * rounds)
