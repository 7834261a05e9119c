"""Tables that are held: whose writers wait, for how long, and what ends it."""

from collections.abc import Iterator

import pytest

from tenure.base.env import ManualEnv, SystemEnv
from tenure.base.errors import LockNotAvailable
from tenure.cluster.locks import table_holds
from tenure.cluster.locks.lock_table import LockOwner
from tenure.cluster.locks.lock_waits import LockOptions
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.cluster.lockers import Ask, Canceled, Locker
from tests.unit.cluster.members import expire

T, U = 100, 101


@pytest.fixture
def threaded() -> Iterator[SqliteEngine]:
    engine = SqliteEngine(MEMORY, SystemEnv())
    yield engine
    engine.close()


@pytest.fixture
def one(threaded: SqliteEngine) -> Iterator[Locker]:
    locker = Locker(threaded, SystemEnv())
    yield locker
    locker.store.close()


@pytest.fixture
def two(threaded: SqliteEngine, one: Locker) -> Iterator[Locker]:
    locker = Locker(threaded, SystemEnv())
    locker.rows.tables.follow()
    yield locker
    locker.rows.tables.close()
    locker.store.close()


def _held(locker: Locker, *tables: int) -> LockOwner:
    owner = locker.owner()
    assert locker.rows.tables.hold(owner, tables, LockOptions())
    return owner


def _end(locker: Locker, owner: LockOwner, *tables: int) -> None:
    locker.rows.tables.release(tables)
    locker.rows.release(owner)


def _writer(locker: Locker, table: int = T, timeout: float | None = None) -> Ask:
    owner = locker.owner()

    def write(canceled: object) -> None:
        locker.rows.tables.await_end(owner, table, LockOptions(timeout=timeout, canceled=canceled))  # type: ignore[arg-type]
        locker.rows.release(owner)

    return Ask(write)


def test_nobody_waits_and_nothing_is_locked_where_nothing_is_held(one: Locker) -> None:
    owner = one.owner()
    one.rows.tables.await_end(owner, T, LockOptions())
    assert one.rows.held(owner) == 0
    assert one.records() == 0


def test_writers_of_a_held_table_wait_until_the_holder_is_over(one: Locker) -> None:
    holder = _held(one, T)
    writer = _writer(one).waits()
    _writer(one, U).result()
    _end(one, holder, T)
    writer.result()
    assert not one.rows.tables.held


def test_writers_of_another_node_hear_of_a_hold_and_of_its_end(one: Locker, two: Locker) -> None:
    holder = _held(one, T)
    two.rows.tables.follow()
    writer = _writer(two).waits()
    _end(one, holder, T)
    writer.result()
    while two.rows.tables.held:
        two.rows.tables.follow()


def test_the_next_holder_waits_for_writers_that_have_waited(one: Locker) -> None:
    holder, writer = _held(one, T), one.owner()
    waiting = Ask(
        lambda canceled: one.rows.tables.await_end(writer, T, LockOptions(canceled=canceled))
    ).waits()
    _end(one, holder, T)
    waiting.result()
    second = one.owner()
    holding = Ask(lambda canceled: one.rows.tables.hold(second, [T], LockOptions(canceled=canceled))).waits()
    one.rows.release(writer)
    assert holding.result() is True


def test_a_second_holder_begins_without_if_its_turn_does_not_come(
    one: Locker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_holds, "TURN_SECONDS", 0.0)
    _held(one, T)
    assert not one.rows.tables.hold(one.owner(), [T], LockOptions())


@pytest.mark.invariant("hold-bounded")
def test_writers_do_not_wait_for_a_hold_that_is_too_old(one: Locker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_holds, "HOLD_SECONDS", 0.0)
    _held(one, T)
    _writer(one).result()


@pytest.mark.invariant("hold-bounded")
def test_writers_that_wait_go_on_when_a_hold_becomes_too_old(
    one: Locker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_holds, "HOLD_SECONDS", 0.3)
    holder = _held(one, T)
    _writer(one).waits().result()
    assert one.rows.held(holder) == 1


def test_a_writer_gives_up_after_its_lock_timeout(one: Locker) -> None:
    _held(one, T)
    with pytest.raises(LockNotAvailable):
        _writer(one, timeout=0.01).result()


def test_a_writer_that_waits_can_be_canceled(one: Locker) -> None:
    _held(one, T)
    writer = _writer(one).waits()
    writer.cancel()
    with pytest.raises(Canceled):
        writer.result()


@pytest.mark.invariant("lock-death")
def test_a_table_that_a_dead_node_has_held_is_free(engine: SqliteEngine, env: ManualEnv) -> None:
    dying, other = Locker(engine, env), Locker(engine, env)
    other.rows.tables.follow()
    dying.rows.tables.hold(dying.owner(), [T], LockOptions())
    other.rows.tables.follow()
    assert T in other.rows.tables.held
    expire(env)
    other.liveness.step()
    other.rows.tables.await_end(other.owner(), T, LockOptions())
    other.settle()
    other.rows.tables.follow()
    other.rows.tables.close()
    assert not other.rows.tables.held
