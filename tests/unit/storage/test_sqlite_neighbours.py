"""Several SQLite engines on one file."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.base.env import SystemEnv
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.engine import (
    HEAD_BYTES,
)
from tenure.storage.sqlite.sqlite_engine import SqliteEngine
from tests.unit.storage.sqlite_stores import PATIENCE_SECONDS, row, write


@pytest.fixture
def pair(path: Path) -> Iterator[tuple[SqliteEngine, SqliteEngine]]:
    env = SystemEnv()
    one, other = SqliteEngine(str(path), env), SqliteEngine(str(path), env)
    yield one, other
    one.close()
    other.close()


def test_two_engines_on_one_file_see_each_others_commits(pair: tuple[SqliteEngine, SqliteEngine]) -> None:
    env = SystemEnv()
    one, other = (Store(engine, env) for engine in pair)
    write(one, "a", b"1")
    assert other.begin().get(row("a")) == b"1"
    write(other, "a", b"2")
    assert one.begin().get(row("a")) == b"2"


def test_a_commit_signals_the_other_engine(pair: tuple[SqliteEngine, SqliteEngine]) -> None:
    one, other = pair
    store = Store(one, SystemEnv())
    woken = threading.Event()
    stop = other.subscribe(woken.set)
    assert woken.wait(PATIENCE_SECONDS), "the first look counts as a change"
    woken.clear()
    write(store, "a")
    assert woken.wait(PATIENCE_SECONDS)
    stop()


@pytest.mark.parametrize("keeps_head_clock", [False, True])
def test_of_another_engines_commits_only_those_hear_whose_spans_they_write_to(
    pair: tuple[SqliteEngine, SqliteEngine], keeps_head_clock: bool
) -> None:
    one, other = pair
    store = Store(one, SystemEnv())
    txn = store.begin()
    txn.put(row("a"), b"v")
    if keeps_head_clock:
        txn.start_head_clock()
    txn.commit()
    here, elsewhere = threading.Event(), threading.Event()
    other.subscribe(elsewhere.set, [(b"\xff" * HEAD_BYTES, b"\xff" * HEAD_BYTES + b"\xff")])
    other.subscribe(here.set, [(row("a"), row("b"))])
    assert here.wait(PATIENCE_SECONDS), "the first look counts as a change"
    for _ in range(3):
        here.clear()
        elsewhere.clear()
        write(store, "a")
        assert here.wait(PATIENCE_SECONDS)
        assert not elsewhere.is_set()


@pytest.mark.invariant("I2")
def test_increments_through_two_engines_are_all_counted(pair: tuple[SqliteEngine, SqliteEngine]) -> None:
    env = SystemEnv()
    stores = [Store(engine, env) for engine in pair]

    def count(store: Store) -> None:
        for _ in range(25):
            store.transact(increment, attempts=1_000)

    threads = [threading.Thread(target=count, args=(store,)) for store in stores for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert stores[0].begin().get(row("count")) == b"100"


def increment(txn: Transaction) -> None:
    txn.put(row("count"), b"%d" % (int(txn.get(row("count")) or 0) + 1))
