"""Advisory locks: counted, for a session or a transaction, and had by one owner in all nodes."""

from collections.abc import Iterator

import pytest

from tenure.base.env import ManualEnv, SystemEnv
from tenure.base.errors import DeadlockDetected, LockNotAvailable, RetryError, SessionLost
from tenure.cluster.locks.advisory_locks import AdvisoryKey, AdvisoryLevel
from tenure.cluster.locks.lock_table import LockMode, LockOwner
from tenure.cluster.locks.lock_waits import WaitPolicy
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.cluster.lockers import Ask, Canceled, Locker
from tests.unit.cluster.members import expire
from tests.unit.kv.breaking import BreakingEngine
from tests.unit.kv.rows import row

KEY, OTHER = AdvisoryKey(1, (42,)), AdvisoryKey(1, (43,))


@pytest.fixture
def threaded() -> Iterator[SqliteEngine]:
    engine = SqliteEngine(MEMORY, SystemEnv())
    yield engine
    engine.close()


@pytest.fixture
def one(threaded: SqliteEngine) -> Iterator[Locker]:
    locker = Locker(threaded, SystemEnv(), is_alone=True)
    yield locker
    locker.store.close()


@pytest.fixture
def two(threaded: SqliteEngine, one: Locker) -> Iterator[Locker]:
    locker = Locker(threaded, SystemEnv(), is_alone=True)
    yield locker
    locker.store.close()


def tries(
    node: Locker,
    owner: LockOwner | None = None,
    key: AdvisoryKey = KEY,
    mode: LockMode = LockMode.EXCLUSIVE,
    **named: AdvisoryLevel,
) -> bool:
    """pg_try_advisory_lock and its kin; a new session's lock is given up again."""
    asking = owner or node.owner()
    got = node.advisory.acquire(asking, key, mode=mode, wait=WaitPolicy.NOWAIT, **named)  # type: ignore[arg-type]
    if owner is None:
        node.advisory.release_all(asking)
        node.settle()
    return got


@pytest.mark.invariant("lock-exclusion")
def test_a_lock_keeps_others_out_here_and_elsewhere(one: Locker, two: Locker) -> None:
    holder = one.owner()
    assert tries(one, holder)
    assert not tries(one) and not tries(two)
    assert tries(two, key=OTHER)


def test_one_number_and_two_are_different_locks_and_so_are_databases(one: Locker) -> None:
    tries(one, one.owner())
    assert tries(one, key=AdvisoryKey(1, (0, 42)))
    assert tries(one, key=AdvisoryKey(2, (42,)))
    assert tries(one, key=AdvisoryKey(1, (-42,)))


def test_shared_locks_go_together(one: Locker, two: Locker) -> None:
    tries(one, one.owner(), mode=LockMode.SHARE)
    assert tries(two, mode=LockMode.SHARE) and not tries(two)


def test_a_lock_is_given_up_as_often_as_it_was_taken(one: Locker, two: Locker) -> None:
    owner = one.owner()
    assert tries(one, owner) and tries(one, owner)
    assert one.advisory.unlock(owner, KEY) and not tries(two)
    assert one.advisory.unlock(owner, KEY) and tries(two)
    assert not one.advisory.unlock(owner, KEY)


def test_what_was_not_taken_this_way_cannot_be_given_up(one: Locker) -> None:
    owner = one.owner()
    tries(one, owner, mode=LockMode.SHARE)
    assert not one.advisory.unlock(owner, KEY)
    assert not one.advisory.unlock(owner, OTHER, mode=LockMode.SHARE)
    assert one.advisory.unlock(owner, KEY, mode=LockMode.SHARE)


def test_a_transactions_lock_goes_with_it_and_cannot_be_given_up_before(one: Locker, two: Locker) -> None:
    owner = one.owner()
    tries(one, owner, level=AdvisoryLevel.TRANSACTION)
    assert not one.advisory.unlock(owner, KEY)
    one.advisory.end_transaction(owner)
    assert tries(two)


def test_a_sessions_lock_outlives_the_transaction(one: Locker, two: Locker) -> None:
    owner = one.owner()
    tries(one, owner, level=AdvisoryLevel.TRANSACTION)
    tries(one, owner)
    one.advisory.end_transaction(owner)
    assert not tries(two)
    one.advisory.unlock_all(owner)
    assert tries(two)


def test_unlocking_all_leaves_the_transactions_locks(one: Locker, two: Locker) -> None:
    owner = one.owner()
    tries(one, owner)
    tries(one, owner)
    tries(one, owner, key=OTHER, level=AdvisoryLevel.TRANSACTION)
    one.advisory.unlock_all(owner)
    assert tries(two) and not tries(two, key=OTHER)


def test_going_back_to_a_savepoint_gives_up_what_the_transaction_locked_since(
    one: Locker, two: Locker
) -> None:
    owner, third = one.owner(), AdvisoryKey(1, (44,))
    tries(one, owner, level=AdvisoryLevel.TRANSACTION)
    mark = one.advisory.mark(owner)
    tries(one, owner, level=AdvisoryLevel.TRANSACTION)
    tries(one, owner, key=OTHER, level=AdvisoryLevel.TRANSACTION)
    tries(one, owner, key=third)
    one.advisory.release_since(owner, mark)
    assert not tries(two) and tries(two, key=OTHER) and not tries(two, key=third)


def test_a_session_that_ends_leaves_nothing_locked(one: Locker, two: Locker) -> None:
    owner = one.owner()
    tries(one, owner)
    tries(one, owner, key=OTHER, level=AdvisoryLevel.TRANSACTION)
    one.advisory.release_all(owner)
    one.settle()
    assert one.records() == 0 and one.waits.table.is_free() and one.advisory.list() == []


def test_a_reader_may_become_the_writer(one: Locker, two: Locker) -> None:
    owner, other = one.owner(), two.owner()
    tries(one, owner, mode=LockMode.SHARE)
    tries(two, other, mode=LockMode.SHARE)
    assert not tries(one, owner)
    two.advisory.release_all(other)
    two.settle()
    assert tries(one, owner)
    assert not tries(two, mode=LockMode.SHARE)


@pytest.mark.invariant("lock-exclusion")
def test_who_held_it_both_ways_keeps_others_out_until_both_are_given_up(one: Locker, two: Locker) -> None:
    owner = one.owner()
    tries(one, owner, mode=LockMode.SHARE)
    tries(one, owner)
    one.advisory.unlock(owner, KEY, mode=LockMode.SHARE)
    assert not tries(two, mode=LockMode.SHARE)
    tries(one, owner, mode=LockMode.SHARE)
    one.advisory.unlock(owner, KEY)
    assert not tries(two)
    one.advisory.unlock(owner, KEY, mode=LockMode.SHARE)
    assert tries(two)


def test_a_waiter_elsewhere_goes_on_when_the_lock_is_given_up(one: Locker, two: Locker) -> None:
    holder = one.owner()
    one.advisory.acquire(holder, KEY)
    ask = Ask(two.advisory.acquire, two.owner(), KEY).waits()
    one.advisory.unlock(holder, KEY)
    assert ask.result() is True


def test_a_wait_can_be_canceled_and_time_out(one: Locker, two: Locker) -> None:
    one.advisory.acquire(one.owner(), KEY)
    ask = Ask(two.advisory.acquire, two.owner(), KEY).waits()
    ask.cancel()
    assert isinstance(ask.error(), Canceled)
    with pytest.raises(LockNotAvailable):
        two.advisory.acquire(two.owner(), KEY, timeout=0.01)
    two.settle()
    assert one.records() == 1


@pytest.mark.invariant("I9")
def test_a_cycle_of_rows_and_advisory_locks_is_found(one: Locker, two: Locker) -> None:
    one.is_alone = two.is_alone = False
    older, younger = one.owner(), two.owner()
    one.rows.acquire(older, [row("a")])
    two.advisory.acquire(younger, KEY)
    waits = Ask(one.advisory.acquire, older, KEY).waits()
    gives_way = Ask(two.rows.acquire, younger, [row("a")])
    assert isinstance(gives_way.error(), DeadlockDetected)
    two.advisory.release_all(younger)
    assert waits.result() is True


def test_the_list_says_what_is_held_here(one: Locker) -> None:
    owner = one.owner()
    tries(one, owner)
    tries(one, owner, level=AdvisoryLevel.TRANSACTION)
    assert one.advisory.list() == [(owner, KEY, LockMode.EXCLUSIVE, 2)]


# ── deaths, on a clock moved by hand ───────────────────────────────────────────────────────────


@pytest.mark.invariant("lock-exclusion")
def test_a_node_that_sends_heartbeats_keeps_its_locks(engine: BreakingEngine, env: ManualEnv) -> None:
    node, other = Locker(engine, env), Locker(engine, env)
    tries(node, node.owner())
    for _ in range(5):
        env.advance(30)
        node.liveness.step()
        other.liveness.step()
        assert not tries(other)


@pytest.mark.invariant("lock-death")
def test_a_dead_nodes_lock_is_free_and_it_is_told(engine: BreakingEngine, env: ManualEnv) -> None:
    node, other = Locker(engine, env), Locker(engine, env)
    owner = node.owner()
    tries(node, owner)
    node.advisory.check(owner)
    expire(env)
    assert tries(other)
    with pytest.raises(RetryError):
        tries(node, key=OTHER)
    node.liveness.step()
    with pytest.raises(SessionLost):
        node.advisory.check(owner)


@pytest.mark.invariant("lock-exclusion")
def test_a_session_that_is_gone_takes_no_lock(engine: BreakingEngine, env: ManualEnv) -> None:
    """Its lanes may still be open: the record's own transaction says that the session is gone."""
    node, other = Locker(engine, env), Locker(engine, env)
    session = node.liveness.session().id
    expire(env)
    other.transact(lambda txn: other.sessions.delete_expired(txn, session))
    with pytest.raises(RetryError):
        node.advisory.acquire(node.owner(), KEY)
    assert node.records() == 0
