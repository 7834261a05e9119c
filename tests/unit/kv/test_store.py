"""The store's own part: running transactions again, and reading at a given time."""

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import InvalidParameter, OutcomeUnknown, RetryError, UserError
from tenure.base.settings import ATTEMPTS, DEFINITIONS, Settings
from tenure.base.timestamp import add_seconds, from_micros
from tenure.kv.scope import TransactionState
from tenure.kv.store import PAUSES, Store
from tenure.kv.thresholds import publish_threshold
from tenure.kv.transaction import Transaction
from tests.unit.kv.breaking import BreakingEngine, cut_before_landing
from tests.unit.kv.rows import HEAD, TABLE, between, row, write


class Doomed:
    """A transaction's function that fails so many times before it succeeds."""

    def __init__(self, error: Exception, times: int) -> None:
        self.error = error
        self.times = times
        self.txns: list[Transaction] = []

    def __call__(self, txn: Transaction) -> str:
        self.txns.append(txn)
        txn.put(row("a"), b"%d" % len(self.txns))
        if len(self.txns) <= self.times:
            raise self.error
        return "done"


def test_a_transaction_is_run_again_until_it_succeeds(store: Store) -> None:
    run = Doomed(RetryError("again"), times=3)
    assert store.transact(run) == "done"
    assert store.begin().get(row("a")) == b"4"


def test_each_attempt_is_a_fresh_transaction_and_the_failed_ones_are_over(store: Store) -> None:
    run = Doomed(RetryError("again"), times=2)
    store.transact(run)
    assert [txn.state for txn in run.txns] == [
        TransactionState.ENDED,
        TransactionState.ENDED,
        TransactionState.COMMITTED,
    ]


def test_a_conflict_at_commit_is_run_again(store: Store) -> None:
    seen = []

    def increment(txn: Transaction) -> None:
        seen.append(txn.get(row("a")))
        if len(seen) == 1:
            write(store, a=b"rival")
        txn.put(row("a"), b"own")

    store.transact(increment)
    assert seen == [None, b"rival"]


def test_attempts_are_bounded_by_the_argument(store: Store) -> None:
    run = Doomed(RetryError("again"), times=100)
    with pytest.raises(RetryError):
        store.transact(run, attempts=5)
    assert len(run.txns) == 5


def test_attempts_are_bounded_by_the_setting(env: ManualEnv, engine: BreakingEngine) -> None:
    store = Store(engine, env, settings=Settings(DEFINITIONS).with_value(ATTEMPTS, 3))
    run = Doomed(RetryError("again"), times=100)
    with pytest.raises(RetryError):
        store.transact(run)
    assert len(run.txns) == 3


def test_pauses_between_attempts_are_taken_from_the_environment(store: Store, env: ManualEnv) -> None:
    store.transact(Doomed(RetryError("again"), times=1))
    assert 0 < env.monotonic() <= PAUSES.first_seconds


def test_pauses_grow_up_to_a_bound(store: Store, env: ManualEnv) -> None:
    store.transact(Doomed(RetryError("again"), times=400), attempts=401)
    average_seconds = env.monotonic() / 400
    assert PAUSES.seconds_max / 4 < average_seconds < PAUSES.seconds_max


def test_no_pause_follows_the_last_attempt(store: Store, env: ManualEnv) -> None:
    with pytest.raises(RetryError):
        store.transact(Doomed(RetryError("again"), times=1), attempts=1)
    assert env.monotonic() == 0


@pytest.mark.parametrize(
    "error", [OutcomeUnknown("may have committed"), UserError("wrong"), ValueError("bug")]
)
def test_other_errors_are_not_run_again(store: Store, error: Exception) -> None:
    run = Doomed(error, times=1)
    with pytest.raises(type(error)):
        store.transact(run)
    assert [txn.state for txn in run.txns] == [TransactionState.ENDED]


@pytest.mark.invariant("I5")
def test_a_commit_with_an_unknown_outcome_is_not_run_again(store: Store, engine: BreakingEngine) -> None:
    engine.on_commit = cut_before_landing
    engine.settle_errors = [OutcomeUnknown("the lane is gone")]
    run = Doomed(RetryError(""), times=0)
    with pytest.raises(OutcomeUnknown):
        store.transact(run)
    assert len(run.txns) == 1


@pytest.mark.invariant("I5")
def test_a_commit_that_was_refused_after_a_cut_is_run_again_once(
    store: Store, engine: BreakingEngine
) -> None:
    engine.on_commit = lambda group, deliver: (
        cut_before_landing(group, deliver) if group.seq == 1 else deliver(group)
    )
    store.transact(Doomed(RetryError(""), times=0))
    assert store.begin().get(row("a")) == b"2"


def test_a_snapshot_of_now_reads_at_the_store_clock(store: Store, engine: BreakingEngine) -> None:
    at = write(store, a=b"1")
    assert store.snapshot().at == at
    assert engine.pushed == []


def test_a_snapshot_of_the_past_pushes_nothing(store: Store, engine: BreakingEngine) -> None:
    at = write(store, a=b"1")
    write(store, a=b"2")
    assert store.snapshot(at).get(row("a")) == b"1"
    assert engine.pushed == []


@pytest.mark.invariant("I2")
def test_a_snapshot_above_the_clock_pushes_it_so_that_nobody_commits_below(
    store: Store, env: ManualEnv, engine: BreakingEngine
) -> None:
    write(store, a=b"1")
    env.advance(60)
    at = from_micros(env.wall_micros())
    snapshot = store.snapshot(at)
    slow = Store(engine, ManualEnv(wall_micros=env.wall_micros() - 50_000_000))
    assert write(slow, a=b"2") > at
    assert snapshot.get(row("a")) == b"1"


def test_a_snapshot_of_the_future_is_refused(store: Store, env: ManualEnv, engine: BreakingEngine) -> None:
    at = write(store, a=b"1")
    with pytest.raises(InvalidParameter) as caught:
        store.snapshot(add_seconds(from_micros(env.wall_micros()), 0.001))
    assert caught.value.sqlstate == "22023"
    assert engine.clock_at() == at


def test_a_snapshot_of_a_negative_time_is_refused(store: Store) -> None:
    with pytest.raises(InvalidParameter):
        store.snapshot(-1)


def test_two_tenants_on_one_engine_do_not_meet(store: Store, env: ManualEnv, engine: BreakingEngine) -> None:
    other = Store(engine, env, tenant=2)
    write(store, a=b"1")
    txn = other.begin()
    assert list(txn.scan(other.keyspace.all())) == []
    write(store, a=b"2")
    txn.put(other.keyspace.key(100, ["a"]), b"other")
    txn.commit()
    assert store.begin().get(row("a")) == b"2"


def test_a_span_has_changed_if_anything_was_written_or_deleted_there_since(store: Store) -> None:
    at = write(store, b=b"1", d=b"1")
    assert not store.has_changed(TABLE, at)
    assert store.has_changed(TABLE, at - 1)
    deleted_at = write(store, b=None)
    assert store.has_changed(TABLE, at) and not store.has_changed(between("c", "z"), at)
    assert not store.has_changed(TABLE, deleted_at)


def test_what_was_collected_since_may_have_changed(store: Store) -> None:
    at = write(store, b=b"1")
    later_at = write(store, b=None)
    store.transact(lambda txn: publish_threshold(txn, store.keyspace, HEAD, later_at))
    assert store.has_changed(TABLE, at)
