"""Rows of one table in a store, for tests of the SQLite engine."""

from tenure.kv.keys import USER_TABLES, Keyspace
from tenure.kv.store import Store

KEYS = Keyspace(1)
TABLE = KEYS.index_span(USER_TABLES)
PATIENCE_SECONDS = 30.0


def row(name: str | int) -> bytes:
    return KEYS.key(USER_TABLES, [name])


def write(store: Store, name: str | int, value: bytes = b"v") -> None:
    store.transact(lambda txn: txn.put(row(name), value))


def names(store: Store) -> set[bytes]:
    return {key for key, _ in store.snapshot().scan(TABLE)}
