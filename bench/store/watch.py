"""Watches: from the call of commit to the delivery of the row, fsync and all.

    in one process             absolute: p50 at most 1 ms
    between processes, SQLite  absolute: p50 at most 8 ms
    between processes, PG      beside a bare NOTIFY that another connection waits for

Each row carries the time at which its commit was called, on the clock that all processes of a
machine share; whoever gets the row knows how old it is. Commits come at random times, so that a
poll is met at every phase.

The bare NOTIFY goes with an INSERT in one statement, for the same durability: alone it writes no
WAL and waits for no fsync. That is measured too, without a bar. Both win by what they leave out:
no order, no row, nothing to catch up with after a lost connection.

Walk: `bench.__main__` -> `run`; writers are processes that run `write_sqlite`, `write_postgres`,
`notify`.
"""

import multiprocessing
import random
import threading
import time
from typing import Any

import psycopg

from bench.ratio import Bar, Ratio, compare
from bench.store.places import TABLE, postgres, postgres_store, row_key, sqlite_store, store_path
from bench.store.rounds import Spread, note, spread
from tenure.kv.gaps import Gap
from tenure.kv.store import Store

ROUNDS = 4
PAUSE_SECONDS = 0.010
"""On average between two commits; drawn between nothing and twice that."""
LOST_SECONDS = 30.0

NOTIFY = b"SELECT pg_notify('bare', %s)"
INSERT_AND_NOTIFY = (
    b"WITH given AS (SELECT %s::text AS nanos), kept AS (INSERT INTO bare SELECT nanos FROM given)"
    b" SELECT pg_notify('bare', nanos) FROM given"
)

_context = multiprocessing.get_context("spawn")


def run(quick: bool) -> list[Ratio]:
    commits = 20 if quick else 300
    with store_path() as path, sqlite_store(path) as store:
        inside = spread(_watch(store, commits, threading.Thread(target=write, args=(store, commits, 0))))
        writer = _context.Process(target=write_sqlite, args=(path, commits))
        between = spread(_watch(store, commits, writer))
    return [
        _absolute("watch.sqlite.one_process", inside, bar_millis=1.0),
        _absolute("watch.sqlite.between_processes", between, bar_millis=8.0),
        *_beside_notify(commits),
    ]


def _absolute(name: str, measured: Spread, *, bar_millis: float) -> Ratio:
    note(f"{name}: {measured}")
    return compare(f"{name}.p50", ours=measured.p50, peer=bar_millis, unit="ms", bar=Bar.AT_MOST, limit=1.0)


def _beside_notify(commits: int) -> list[Ratio]:
    ours: list[float] = []
    durable: list[float] = []
    bare: list[float] = []
    each = commits // ROUNDS
    with postgres() as server, postgres_store(server.dsn) as store:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("CREATE TABLE bare (nanos text)")
        for nr in range(ROUNDS):
            ours += _watch(store, each, _context.Process(target=write_postgres, args=(server.dsn, each, nr)))
            durable += _listen(server.dsn, each, INSERT_AND_NOTIFY)
            bare += _listen(server.dsn, each, NOTIFY)
    name = "watch.postgres.between_processes"
    note(f"{name}: {spread(ours)}; durable NOTIFY: {spread(durable)}; NOTIFY alone: {spread(bare)}")
    p50, durable_p50, bare_p50 = (spread(millis).p50 for millis in (ours, durable, bare))
    return [
        compare(f"{name}.p50", ours=p50, peer=durable_p50, unit="ms", bar=Bar.AT_MOST, limit=2.0),
        compare(f"{name}.p50_beside_not_durable", ours=p50, peer=bare_p50, unit="ms", bar=Bar.NONE),
    ]


def _watch(store: Store, commits: int, writer: Any) -> list[float]:
    """Milliseconds from commit to delivery of every row that the writer writes, each once."""
    watch = store.watch([store.keyspace.index_span(TABLE)], since_at=store.snapshot().at)
    watch.next(timeout=0.05)  # whatever is set up with the first wait is not measured
    writer.start()
    delivered: dict[bytes, float] = {}
    last_at = 0
    deadline = time.monotonic() + LOST_SECONDS
    while len(delivered) < commits:
        assert time.monotonic() < deadline, f"{commits - len(delivered)} rows were not delivered"
        batch = watch.next(timeout=1.0)
        assert not isinstance(batch, Gap), "nobody sweeps here"
        now_nanos = time.monotonic_ns()
        for key, at, value in batch.revisions:
            assert value is not None and key not in delivered and last_at < at <= batch.resolved_at
            delivered[key] = (now_nanos - int.from_bytes(value, "big")) / 1e6
            last_at = at
    writer.join()
    watch.close()
    return list(delivered.values())


def write(store: Store, commits: int, first: int) -> None:
    chooser = random.Random(first)
    for nr in range(first, first + commits):
        time.sleep(chooser.uniform(0, 2 * PAUSE_SECONDS))
        txn = store.begin()
        txn.put(row_key(store, nr), time.monotonic_ns().to_bytes(8, "big"))
        txn.commit()


def write_sqlite(path: str, commits: int) -> None:
    with sqlite_store(path) as store:
        write(store, commits, commits)


def write_postgres(dsn: str, commits: int, nr: int) -> None:
    with postgres_store(dsn) as store:
        write(store, commits, nr * commits)


def _listen(dsn: str, commits: int, statement: bytes) -> list[float]:
    """The same with a bare LISTEN, whose payload is the time."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("LISTEN bare")
        writer = _context.Process(target=notify, args=(dsn, commits, statement))
        writer.start()
        millis = [
            (time.monotonic_ns() - int(notification.payload)) / 1e6
            for notification in connection.notifies(timeout=LOST_SECONDS, stop_after=commits)
        ]
        writer.join()
    assert len(millis) >= commits, f"{commits - len(millis)} notifications were lost"
    return millis


def notify(dsn: str, commits: int, statement: bytes) -> None:
    chooser = random.Random(commits)
    with psycopg.connect(dsn, autocommit=True) as connection:
        for _ in range(commits):
            time.sleep(chooser.uniform(0, 2 * PAUSE_SECONDS))
            connection.execute(statement, [str(time.monotonic_ns())], prepare=True)
