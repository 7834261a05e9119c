"""What a commit writes: all of it at one timestamp, within limits, before a deadline."""

from collections.abc import Callable

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import ClockAhead, CommitTooLarge, DeadlinePassed, RetryError, TooEarly
from tenure.base.settings import DEFINITIONS, MAX_BYTES, MAX_ROWS, Settings
from tenure.base.timestamp import Timestamp, add_seconds, from_bytes, from_micros, to_bytes
from tenure.kv.scope import TransactionState
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.engine import Removal, Removes, Stamp
from tests.unit.kv.breaking import BreakingEngine
from tests.unit.kv.rows import TABLE, changes, named, row, write


def test_a_commit_shows_all_writes_at_once_at_one_timestamp(store: Store) -> None:
    txn = store.begin()
    txn.put(row("a"), b"1")
    txn.put(row("b"), b"2")
    assert named(store.begin().scan(TABLE)) == []
    at = txn.commit()
    assert changes(store.history(TABLE, since_at=0).revisions) == [("a", at, b"1"), ("b", at, b"2")]


def test_a_rollback_writes_nothing(store: Store) -> None:
    txn = store.begin()
    txn.put(row("a"), b"1")
    txn.rollback()
    assert store.begin().get(row("a")) is None
    assert txn.state is TransactionState.ENDED


def test_a_second_rollback_is_harmless(store: Store) -> None:
    txn = store.begin()
    txn.commit()
    txn.rollback()
    assert txn.state is TransactionState.COMMITTED


def test_the_last_write_of_a_key_counts(store: Store) -> None:
    txn = store.begin()
    txn.put(row("a"), b"1")
    txn.delete(row("a"))
    txn.put(row("a"), b"3")
    at = txn.commit()
    assert changes(store.history(TABLE, since_at=0).revisions) == [("a", at, b"3")]


def test_a_deleted_key_is_gone_but_its_past_is_not(store: Store) -> None:
    before_at = write(store, a=b"1")
    write(store, a=None)
    assert store.begin().get(row("a")) is None
    assert store.snapshot(before_at).get(row("a")) == b"1"


@pytest.mark.invariant("I1")
def test_commit_timestamps_grow_while_the_wall_clock_jumps_back(store: Store, env: ManualEnv) -> None:
    ats = []
    for _ in range(5):
        ats.append(write(store, a=b"1"))
        env.jump(-3600)
    assert ats == sorted(set(ats))


@pytest.mark.invariant("I1")
def test_a_reading_after_a_commit_is_above_its_timestamp(store: Store, env: ManualEnv) -> None:
    write(store, a=b"1")
    env.jump(-3600)
    at = write(store, a=b"2")
    assert store.clock.now() > at


def test_a_commit_takes_the_wall_clock_when_the_store_clock_is_behind(store: Store, env: ManualEnv) -> None:
    write(store, a=b"1")
    env.advance(60)
    assert write(store, a=b"2") == from_micros(env.wall_micros())


@pytest.mark.invariant("I6")
def test_a_clock_too_far_ahead_commits_nothing(env: ManualEnv, engine: BreakingEngine) -> None:
    ahead = Store(engine, ManualEnv(wall_micros=env.wall_micros() + 500_001))
    with pytest.raises(ClockAhead) as caught:
        write(ahead, a=b"1")
    assert caught.value.sqlstate == "58000"
    assert ahead.begin().get(row("a")) is None


@pytest.mark.invariant("I6")
def test_a_clock_ahead_by_the_allowed_offset_commits(env: ManualEnv, engine: BreakingEngine) -> None:
    ahead = Store(engine, ManualEnv(wall_micros=env.wall_micros() + 500_000))
    write(ahead, a=b"1")


@pytest.mark.invariant("I6")
def test_a_clock_far_behind_commits(store: Store, env: ManualEnv, engine: BreakingEngine) -> None:
    at = write(store, a=b"1")
    behind = Store(engine, ManualEnv(wall_micros=env.wall_micros() - 3_600_000_000))
    assert write(behind, a=b"2") == at + 1


def next_commit_at(store: Store) -> Timestamp:
    """On a clock that stands still, the next commit comes right after the last."""
    return write(store, before=b"1") + 1


def writing(store: Store) -> Transaction:
    txn = store.begin()
    txn.put(row("a"), b"1")
    return txn


@pytest.mark.invariant("I4")
def test_a_commit_right_before_its_deadline_lands(store: Store) -> None:
    at = next_commit_at(store)
    txn = writing(store)
    txn.deadline_at = at + 1
    assert txn.commit() == at


@pytest.mark.invariant("I4")
def test_a_commit_at_its_deadline_is_refused(store: Store) -> None:
    at = next_commit_at(store)
    txn = writing(store)
    txn.deadline_at = at
    with pytest.raises(DeadlinePassed):
        txn.commit()
    assert store.begin().get(row("a")) is None


@pytest.mark.invariant("I4")
def test_the_deadline_is_compared_with_the_timestamp_given_in_the_section(
    store: Store, env: ManualEnv, engine: BreakingEngine
) -> None:
    at = next_commit_at(store)
    txn = writing(store)
    txn.deadline_at = at + 1
    rival = Store(engine.engine, env)
    engine.on_commit = lambda group, deliver: (write(rival, rival=b"1"), deliver(group))[1]
    with pytest.raises(DeadlinePassed):
        txn.commit()


@pytest.mark.invariant("I4")
def test_a_commit_right_after_not_before_lands(store: Store) -> None:
    at = next_commit_at(store)
    txn = writing(store)
    txn.not_before_at = at - 1
    assert txn.commit() == at


@pytest.mark.invariant("I4")
def test_a_commit_at_not_before_is_refused(store: Store) -> None:
    at = next_commit_at(store)
    txn = writing(store)
    txn.not_before_at = at
    with pytest.raises(TooEarly) as caught:
        txn.commit()
    assert caught.value.sqlstate == "55000"


def test_a_refused_commit_does_not_move_the_clock(store: Store, engine: BreakingEngine) -> None:
    clock_at = write(store, a=b"1")
    txn = writing(store)
    txn.deadline_at = clock_at
    with pytest.raises(RetryError):
        txn.commit()
    assert engine.clock_at() == clock_at


def test_a_value_can_contain_its_commit_timestamp(store: Store) -> None:
    txn = store.begin()
    txn.put(row("a"), b"<" + bytes(8) + b">", value_stamp=Stamp(1, plus=5))
    at = txn.commit()
    assert store.begin().get(row("a")) == b"<" + to_bytes(at + 5) + b">"


def test_a_key_can_contain_its_commit_timestamp(store: Store) -> None:
    key = row("a") + bytes(8)
    txn = store.begin()
    txn.put(key, b"1", key_stamp=Stamp(len(row("a"))))
    at = txn.commit()
    ((found, _),) = store.begin().scan(TABLE)
    assert from_bytes(found[-8:]) == at


def limited(engine: BreakingEngine, env: ManualEnv) -> Store:
    settings = Settings(DEFINITIONS).with_value(MAX_ROWS, 1_000).with_value(MAX_BYTES, 64 * 1024)
    return Store(engine, env, settings=settings)


def test_too_many_rows_are_refused(env: ManualEnv, engine: BreakingEngine) -> None:
    txn = limited(engine, env).begin()
    for number in range(1_000):
        txn.put(row(number), b"")
    with pytest.raises(CommitTooLarge) as caught:
        txn.put(row(1_000), b"")
    assert caught.value.sqlstate == "54000"
    assert "bulk" in caught.value.hint


def test_too_many_bytes_are_refused(env: ManualEnv, engine: BreakingEngine) -> None:
    txn = limited(engine, env).begin()
    txn.put(row("a"), bytes(60 * 1024))
    with pytest.raises(CommitTooLarge):
        txn.put(row("b"), bytes(5 * 1024))


def test_a_key_longer_than_every_engine_can_index_is_refused(store: Store) -> None:
    with pytest.raises(CommitTooLarge) as caught:
        store.begin().put(row("a" * 3_000), b"1")
    assert caught.value.sqlstate == "54000"


def test_a_key_written_again_counts_once_toward_the_limits(env: ManualEnv, engine: BreakingEngine) -> None:
    txn = limited(engine, env).begin()
    for _ in range(10):
        txn.put(row("a"), bytes(60 * 1024))
    txn.delete(row("a"))
    txn.put(row("b"), bytes(60 * 1024))
    txn.commit()


def test_a_refused_write_leaves_the_transaction_usable(env: ManualEnv, engine: BreakingEngine) -> None:
    store = limited(engine, env)
    txn = store.begin()
    txn.put(row("a"), b"1")
    with pytest.raises(CommitTooLarge):
        txn.put(row("b"), bytes(65 * 1024))
    txn.commit()
    assert named(store.begin().scan(TABLE)) == [("a", b"1")]


def test_a_removal_takes_superseded_revisions_with_the_commit(store: Store) -> None:
    write(store, a=b"1")
    at = write(store, a=b"2")
    txn = store.begin()
    txn.remove(Removal(TABLE.lo, TABLE.hi, Removes.SUPERSEDED, at, limit=10))
    txn.commit()
    assert changes(store.history(TABLE, since_at=0).revisions) == [("a", at, b"2")]


@pytest.mark.parametrize("end", [Transaction.commit, Transaction.rollback])
def test_a_transaction_that_is_over_takes_nothing_more(
    store: Store, end: Callable[[Transaction], object]
) -> None:
    txn = writing(store)
    end(txn)
    for use in (
        lambda: txn.get(row("a")),
        lambda: list(txn.scan(TABLE)),
        lambda: txn.put(row("a"), b"2"),
        lambda: txn.delete(row("a")),
        txn.child,
        txn.refresh,
        txn.commit,
    ):
        with pytest.raises(AssertionError):
            use()


def test_the_key_of_another_tenant_cannot_be_written(store: Store) -> None:
    with pytest.raises(AssertionError):
        store.begin().put(b"\0\0\0\2" + row("a")[4:], b"1")


def test_a_deadline_an_hour_away_does_not_matter(store: Store) -> None:
    txn = writing(store)
    txn.deadline_at = add_seconds(next_commit_at(store), 3600)
    txn.commit()


def test_a_transaction_that_is_over_keeps_nothing_of_what_it_wrote(store: Store) -> None:
    for end in (Transaction.rollback, Transaction.commit):
        txn = store.begin()
        txn.put(row("a"), bytes(1000))
        txn.mark()
        txn.put(row("a"), bytes(2000))
        end(txn)
        assert not txn.buffer.writes and not txn.buffer._undo
