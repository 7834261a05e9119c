"""Where the measured stores live: temporary directories and a PostgreSQL of their own.

`TMPDIR` decides which disk is measured. The SQLite store is kept as a node keeps it: a loop
checkpoints it off the commit path.

Walk: `bench.store` modules open stores here and fill them with `load`.
"""

import logging
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tenure.base.env import SystemEnv
from tenure.base.loops import Loop
from tenure.kv.keys import USER_TABLES
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.postgres.postgres_engine import PostgresEngine
from tenure.storage.sqlite.sqlite_engine import SqliteEngine
from tenure.storage.upkeep import CHECKPOINT_SECONDS
from tests import postgres_server

TABLE = USER_TABLES
OTHER_TABLE = USER_TABLES + 1
VALUE = b"v" * 100
"""A small row; the same in ours and the peer's."""
LOAD_ROWS = 20_000
"""Rows per transaction while loading: below the limit on rows and far below that on bytes."""


@contextmanager
def store_path() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as directory:
        yield str(Path(directory) / "store.db")


@contextmanager
def sqlite_store(path: str, *, vfs: str | None = None) -> Iterator[Store]:
    """A store with its checkpointer, as `tenure.node` runs it."""
    env = SystemEnv()
    engine = SqliteEngine(path, env, vfs=vfs)
    log = logging.getLogger(__name__)
    checkpointer = Loop("checkpointer", engine.checkpoint, env, interval_seconds=CHECKPOINT_SECONDS, log=log)
    checkpointer.start()
    store = Store(engine, env)
    try:
        yield store
    finally:
        store.close()
        checkpointer.stop()
        engine.close()


@contextmanager
def postgres() -> Iterator[postgres_server.Server]:
    """A server with its own defaults: every commit waits for its fsync."""
    directory = postgres_server.make_directory()
    try:
        yield postgres_server.start(directory)
    finally:
        postgres_server.remove_directory(directory)


@contextmanager
def postgres_store(dsn: str) -> Iterator[Store]:
    env = SystemEnv()
    engine = PostgresEngine(dsn, env)
    store = Store(engine, env)
    try:
        yield store
    finally:
        store.close()
        engine.close()


def row_key(store: Store, number: int, table: int = TABLE) -> bytes:
    return store.keyspace.key(table, (number,))


def load(store: Store, numbers: Iterable[int], *, table: int = TABLE, value: bytes = VALUE) -> None:
    """Writes a row for each number, in large transactions."""
    pending = list(numbers)
    for first in range(0, len(pending), LOAD_ROWS):
        keys = [row_key(store, number, table) for number in pending[first : first + LOAD_ROWS]]
        store.transact(_put_all(keys, value))


def _put_all(keys: list[bytes], value: bytes) -> Callable[[Transaction], None]:
    def run(txn: Transaction) -> None:
        for key in keys:
            txn.put(key, value)

    return run
