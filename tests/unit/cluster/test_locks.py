"""Row locks of one node and of two: who waits, who is woken, and who is told to give up."""

from collections.abc import Callable, Iterator

import pytest

from tenure.base.env import ManualEnv, SystemEnv
from tenure.base.errors import DeadlockDetected, LockNotAvailable, RetryError, SessionLost, Unavailable
from tenure.cluster.locks.lock_table import LockMode
from tenure.cluster.locks.lock_waits import DEADLOCK_SECONDS, WaitPolicy
from tenure.cluster.locks.row_locks import NAME_BYTES_MAX
from tenure.storage.engine import Group, Outcome
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.cluster.lockers import Ask, Canceled, Locker
from tests.unit.cluster.members import expire
from tests.unit.kv.breaking import BreakingEngine, Deliver
from tests.unit.kv.rows import row

A, B, C = row("a"), row("b"), row("c")


@pytest.fixture
def threaded() -> Iterator[SqliteEngine]:
    engine = SqliteEngine(MEMORY, SystemEnv())
    yield engine
    engine.close()


@pytest.fixture
def alone(threaded: SqliteEngine) -> Iterator[Locker]:
    locker = Locker(threaded, SystemEnv(), is_alone=True)
    yield locker
    locker.store.close()


@pytest.fixture
def one(threaded: SqliteEngine) -> Iterator[Locker]:
    locker = Locker(threaded, SystemEnv())
    yield locker
    locker.store.close()


@pytest.fixture
def two(threaded: SqliteEngine, one: Locker) -> Iterator[Locker]:
    locker = Locker(threaded, SystemEnv())
    yield locker
    locker.store.close()


# ── one node ───────────────────────────────────────────────────────────────────────────────────


def test_a_node_that_is_alone_writes_no_record(alone: Locker) -> None:
    owner = alone.owner()
    assert alone.rows.acquire(owner, [A, B]).keys == [A, B]
    assert alone.records() == 0


def test_what_is_held_is_got_again_at_once(alone: Locker) -> None:
    owner = alone.owner()
    alone.rows.acquire(owner, [A])
    assert alone.rows.acquire(owner, [A, B]) == ([A, B], False)
    assert alone.rows.held(owner) == 2


def test_a_waiter_gets_the_lock_when_it_is_released(alone: Locker) -> None:
    first, second = alone.owner(), alone.owner()
    alone.rows.acquire(first, [A])
    ask = Ask(alone.rows.acquire, second, [A]).waits()
    alone.rows.release(first)
    assert ask.result() == ([A], True)


@pytest.mark.invariant("lock-order")
def test_waiters_go_on_in_the_order_they_came(alone: Locker) -> None:
    holder, order = alone.owner(), list[int]()
    alone.rows.acquire(holder, [A])

    def pass_through(number: int, canceled: Callable[[], None]) -> None:
        owner = alone.owner()
        alone.rows.acquire(owner, [A], canceled=canceled)
        order.append(number)
        alone.rows.release(owner)

    asks = [Ask(pass_through, number).waits() for number in range(5)]
    alone.rows.release(holder)
    for ask in asks:
        ask.result()
    assert order == [0, 1, 2, 3, 4]


def test_shared_locks_are_had_together(alone: Locker) -> None:
    first, second, third = alone.owner(), alone.owner(), alone.owner()
    alone.rows.acquire(first, [A], mode=LockMode.SHARE)
    assert alone.rows.acquire(second, [A], mode=LockMode.SHARE).keys == [A]
    with pytest.raises(LockNotAvailable):
        alone.rows.acquire(third, [A], wait=WaitPolicy.NOWAIT)


def test_nowait_says_so_in_postgresqls_words(alone: Locker) -> None:
    alone.rows.acquire(alone.owner(), [A])
    with pytest.raises(LockNotAvailable) as caught:
        alone.rows.acquire(alone.owner(), [A], wait=WaitPolicy.NOWAIT, relation="accounts")
    assert caught.value.sqlstate == "55P03"
    assert str(caught.value) == 'could not obtain lock on row in relation "accounts"'


def test_what_was_refused_leaves_nothing_locked(alone: Locker) -> None:
    alone.rows.acquire(alone.owner(), [B])
    second = alone.owner()
    with pytest.raises(LockNotAvailable):
        alone.rows.acquire(second, [A, B, C], wait=WaitPolicy.NOWAIT)
    assert alone.rows.acquire(alone.owner(), [A, C], wait=WaitPolicy.NOWAIT).keys == [A, C]


def test_what_was_shared_before_a_refusal_is_shared_after_it(alone: Locker) -> None:
    first, second, third = alone.owner(), alone.owner(), alone.owner()
    alone.rows.acquire(first, [B])
    alone.rows.acquire(second, [A], mode=LockMode.SHARE)
    with pytest.raises(LockNotAvailable):
        alone.rows.acquire(second, [A, B], wait=WaitPolicy.NOWAIT)
    assert alone.rows.acquire(third, [A], mode=LockMode.SHARE, wait=WaitPolicy.NOWAIT).keys == [A]
    with pytest.raises(LockNotAvailable):
        alone.rows.acquire(third, [A], wait=WaitPolicy.NOWAIT)


def test_skip_locked_gives_the_rest(alone: Locker) -> None:
    alone.rows.acquire(alone.owner(), [B])
    assert alone.rows.acquire(alone.owner(), [C, B, A], wait=WaitPolicy.SKIP).keys == [C, A]


def test_a_wait_ends_after_its_timeout(alone: Locker) -> None:
    first, second = alone.owner(), alone.owner()
    alone.rows.acquire(first, [A])
    with pytest.raises(LockNotAvailable) as caught:
        alone.rows.acquire(second, [A], timeout=0.05)
    assert str(caught.value) == "canceling statement due to lock timeout"
    alone.rows.release(first)
    assert alone.rows.acquire(alone.owner(), [A], wait=WaitPolicy.NOWAIT).keys == [A]


def test_a_wait_that_is_canceled_stands_in_nobodys_way(alone: Locker) -> None:
    first, second = alone.owner(), alone.owner()
    alone.rows.acquire(first, [A], mode=LockMode.SHARE)
    ask = Ask(alone.rows.acquire, second, [A]).waits()
    ask.cancel()
    assert isinstance(ask.error(), Canceled)
    assert alone.rows.acquire(alone.owner(), [A], mode=LockMode.SHARE, wait=WaitPolicy.NOWAIT).keys == [A]


@pytest.mark.invariant("I9")
def test_who_closes_a_cycle_is_told_so_at_once(alone: Locker) -> None:
    first, second = alone.owner(), alone.owner()
    alone.rows.acquire(first, [A])
    alone.rows.acquire(second, [B])
    ask = Ask(alone.rows.acquire, first, [B]).waits()
    with pytest.raises(DeadlockDetected):
        alone.rows.acquire(second, [A])
    alone.rows.release(second)
    assert ask.result().keys == [B]


def test_going_back_gives_up_what_was_locked_since(alone: Locker) -> None:
    owner = alone.owner()
    alone.rows.acquire(owner, [A])
    mark = alone.rows.mark(owner)
    alone.rows.acquire(owner, [B, A, C])
    alone.rows.release_since(owner, mark)
    assert alone.rows.acquire(alone.owner(), [A, B, C], wait=WaitPolicy.SKIP).keys == [B, C]


def test_an_event_loop_gets_what_is_free_and_is_told_what_is_not(alone: Locker) -> None:
    first, second = alone.owner(), alone.owner()
    assert alone.rows.try_acquire(first, [A, B])
    assert alone.rows.try_acquire(first, [A])
    assert not alone.rows.try_acquire(second, [C, B])
    assert alone.rows.acquire(alone.owner(), [C], wait=WaitPolicy.NOWAIT).keys == [C]


def test_releasing_again_is_harmless(alone: Locker) -> None:
    owner = alone.owner()
    alone.rows.acquire(owner, [A])
    alone.rows.release(owner)
    alone.rows.release(owner)
    assert alone.waits.table.is_free()


# ── two nodes ──────────────────────────────────────────────────────────────────────────────────


def test_a_lock_keeps_another_node_out(one: Locker, two: Locker) -> None:
    one.rows.acquire(one.owner(), [A])
    with pytest.raises(LockNotAvailable):
        two.rows.acquire(two.owner(), [A], wait=WaitPolicy.NOWAIT)
    assert two.rows.acquire(two.owner(), [A, B], wait=WaitPolicy.SKIP).keys == [B]


def test_what_only_an_event_loop_may_do_does_not_ask_the_store(one: Locker) -> None:
    owner = one.owner()
    assert not one.rows.try_acquire(owner, [A])
    one.rows.acquire(owner, [A])
    assert one.rows.try_acquire(owner, [A])


def test_a_waiter_on_another_node_is_woken(one: Locker, two: Locker) -> None:
    holder = one.owner()
    one.rows.acquire(holder, [A])
    ask = Ask(two.rows.acquire, two.owner(), [A]).waits()
    one.rows.release(holder)
    assert ask.result() == ([A], True)


@pytest.mark.invariant("lock-order")
def test_nodes_go_on_in_the_order_they_came(one: Locker, two: Locker) -> None:
    holder, second, third = one.owner(), two.owner(), one.owner()
    one.rows.acquire(holder, [A])
    there = Ask(two.rows.acquire, second, [A]).waits()
    here = Ask(one.rows.acquire, third, [A]).waits()
    one.rows.release(holder)
    there.result()
    two.rows.release(second)
    here.result()


def test_shared_locks_are_had_by_two_nodes(one: Locker, two: Locker) -> None:
    one.rows.acquire(one.owner(), [A], mode=LockMode.SHARE)
    assert two.rows.acquire(two.owner(), [A], mode=LockMode.SHARE, wait=WaitPolicy.NOWAIT).keys == [A]
    with pytest.raises(LockNotAvailable):
        two.rows.acquire(two.owner(), [A], wait=WaitPolicy.NOWAIT)


def test_a_reader_writes_before_a_writer_that_waits_for_it_elsewhere(one: Locker, two: Locker) -> None:
    reader, writer = one.owner(), two.owner()
    one.rows.acquire(reader, [A], mode=LockMode.SHARE)
    ask = Ask(two.rows.acquire, writer, [A]).waits()
    assert one.rows.acquire(reader, [A]).keys == [A]
    one.rows.release(reader)
    ask.result()


def test_many_rows_are_locked_at_once(one: Locker, two: Locker) -> None:
    rows = [row(number) for number in range(50)]
    one.rows.acquire(one.owner(), rows[10:20])
    got = two.rows.acquire(two.owner(), rows, wait=WaitPolicy.SKIP).keys
    assert got == rows[:10] + rows[20:]
    first, second = one.owner(), two.owner()
    one.rows.acquire(first, [row(f"x{number}") for number in range(20)])
    ask = Ask(two.rows.acquire, second, [row(f"x{number}") for number in range(30)]).waits()
    one.rows.release(first)
    assert len(ask.result().keys) == 30


def test_rows_with_long_keys_are_locked(one: Locker, two: Locker) -> None:
    long, other = row("x" * 900), row("x" * 899 + "y")
    assert len(long) > NAME_BYTES_MAX
    one.rows.acquire(one.owner(), [long])
    assert two.rows.acquire(two.owner(), [long, other], wait=WaitPolicy.SKIP).keys == [other]


def test_a_release_leaves_no_record(one: Locker, two: Locker) -> None:
    first, second = one.owner(), two.owner()
    one.rows.acquire(first, [A, B])
    with pytest.raises(LockNotAvailable):
        two.rows.acquire(second, [A, C], timeout=0.0)
    one.rows.release(first)
    one.settle()
    two.settle()
    assert one.records() == 0


@pytest.mark.invariant("I9")
def test_the_younger_of_two_nodes_that_wait_for_each_other_gives_way(one: Locker, two: Locker) -> None:
    older, younger = one.owner(), two.owner()
    one.rows.acquire(older, [A])
    two.rows.acquire(younger, [B])
    waits = Ask(one.rows.acquire, older, [B]).waits()
    gives_way = Ask(two.rows.acquire, younger, [A])
    assert isinstance(gives_way.error(), DeadlockDetected)
    two.rows.release(younger)
    waits.result()


@pytest.mark.invariant("I9")
def test_a_cycle_by_way_of_a_wait_in_memory_is_found(one: Locker, two: Locker) -> None:
    """First waits elsewhere; second waits here for first, which others can see only by its record."""
    first, second, third = one.owner(), one.owner(), two.owner()
    one.rows.acquire(first, [A])
    one.rows.acquire(second, [B])
    two.rows.acquire(third, [C])
    here = Ask(one.rows.acquire, second, [A]).waits()
    there = Ask(one.rows.acquire, first, [C]).waits()
    youngest = Ask(two.rows.acquire, third, [B])
    assert isinstance(youngest.error(), DeadlockDetected)
    two.rows.release(third)
    there.result()
    one.rows.release(first)
    here.result()


def test_an_engine_that_loses_signals_delays_a_waiter_and_no_more(
    one: Locker, threaded: SqliteEngine
) -> None:
    quiet = BreakingEngine(threaded)
    quiet.loses_signals = True
    other = Locker(quiet, SystemEnv())
    holder = one.owner()
    one.rows.acquire(holder, [A])
    ask = Ask(other.rows.acquire, other.owner(), [A]).waits()
    one.rows.release(holder)
    ask.result()


# ── deaths and a store that is away, on a clock moved by hand ──────────────────────────────────


@pytest.mark.invariant("lock-death")
def test_a_dead_holders_lock_is_free(engine: BreakingEngine, env: ManualEnv) -> None:
    dead, alive = Locker(engine, env), Locker(engine, env)
    dead.rows.acquire(dead.owner(), [A])
    with pytest.raises(LockNotAvailable):
        alive.rows.acquire(alive.owner(), [A], timeout=1.0)
    expire(env)
    assert alive.rows.acquire(alive.owner(), [A], wait=WaitPolicy.NOWAIT).keys == [A]
    alive.settle()
    assert alive.records() == 1


@pytest.mark.invariant("lock-death")
def test_a_waiter_outlives_the_holder(engine: BreakingEngine, env: ManualEnv) -> None:
    """On this clock each wait takes its time at once: it ends as the holder's session does."""
    dead, alive = Locker(engine, env), Locker(engine, env)
    began = env.monotonic()
    dead.rows.acquire(dead.owner(), [A])

    def beat() -> None:
        alive.liveness.step()

    assert alive.rows.acquire(alive.owner(), [A], canceled=beat).has_waited
    assert 30 < env.monotonic() - began < 50
    assert dead.found(dead.liveness.session().id) is None


@pytest.mark.invariant("lock-death")
def test_a_holder_that_left_before_its_expiry_is_noticed(engine: BreakingEngine, env: ManualEnv) -> None:
    gone, alive = Locker(engine, env), Locker(engine, env)
    gone.rows.acquire(gone.owner(), [A])
    gone.liveness.release()
    assert alive.rows.acquire(alive.owner(), [A], wait=WaitPolicy.NOWAIT).keys == [A]


def test_a_node_whose_session_was_lost_is_told_to_try_again(engine: BreakingEngine, env: ManualEnv) -> None:
    node, other = Locker(engine, env), Locker(engine, env)
    other.rows.acquire(other.owner(), [A])

    def lose() -> None:
        expire(env)
        other.liveness.step()
        other.deaths.reap()
        other.transact(
            lambda txn: [txn.delete(key) for key, _ in txn.scan(node.store.keyspace.table_span(24))]
        )

    with pytest.raises(RetryError):
        node.rows.acquire(node.owner(), [A], canceled=lose)


def test_a_node_without_a_session_locks_nothing(engine: BreakingEngine, env: ManualEnv) -> None:
    node = Locker(engine, env)
    node.liveness.release()
    with pytest.raises(SessionLost):
        node.liveness.session()
    with pytest.raises(RetryError):
        node.rows.acquire(node.owner(), [A])
    assert node.waits.table.is_free()


def test_a_release_that_fails_is_made_up_for(engine: BreakingEngine, env: ManualEnv) -> None:
    def away(group: Group, deliver: Deliver) -> list[Outcome]:
        raise Unavailable("the store is away")

    node = Locker(engine, env)
    owner = node.owner()
    node.rows.acquire(owner, [A])
    engine.on_commit = away
    node.rows.release(owner)
    assert node.records() == 1
    engine.on_commit = None
    node.waits.tidy()
    assert node.records() == 0


def test_a_late_deletion_takes_no_later_lock_away(engine: BreakingEngine, env: ManualEnv) -> None:
    def away(group: Group, deliver: Deliver) -> list[Outcome]:
        raise Unavailable("the store is away")

    node, other = Locker(engine, env), Locker(engine, env)
    owner = node.owner()
    node.rows.acquire(owner, [A])
    engine.on_commit = away
    node.rows.release(owner)
    engine.on_commit = None
    node.rows.acquire(owner, [A])
    node.waits.tidy()
    with pytest.raises(LockNotAvailable):
        other.rows.acquire(other.owner(), [A], wait=WaitPolicy.NOWAIT)


def test_a_wait_looks_for_cycles_once_in_a_while(engine: BreakingEngine, env: ManualEnv) -> None:
    node, other = Locker(engine, env), Locker(engine, env)
    node.rows.acquire(node.owner(), [A])
    engine.scans.clear()
    with pytest.raises(LockNotAvailable):
        other.rows.acquire(other.owner(), [A], timeout=15.5 * DEADLOCK_SECONDS)
    whole = other.store.keyspace.index_span(26)
    looks = sum(1 for scan in engine.scans if (scan.lo, scan.hi) == whole)
    assert looks == 5, "after 1, 3, 7, 11 and 15 seconds"
