"""Rows of one table of users for the tests of the store: names as keys, short bytes as values."""

from collections.abc import Iterable

from tenure.base.timestamp import Timestamp
from tenure.kv.encoding import decode
from tenure.kv.keys import USER_TABLES, Keyspace, Span
from tenure.kv.store import DEFAULT_TENANT, Store
from tenure.storage.engine import HEAD_BYTES, Revision

KEYS = Keyspace(DEFAULT_TENANT)
HEAD = KEYS.head(USER_TABLES)
TABLE = KEYS.index_span(USER_TABLES)


def row(name: str | int) -> bytes:
    return KEYS.key(USER_TABLES, [name])


def between(lo: str | int, hi: str | int) -> Span:
    return Span(row(lo), row(hi))


def write(store: Store, **values: bytes | None) -> Timestamp:
    """Writes rows in one transaction, None deleting; returns its commit timestamp."""
    txn = store.begin()
    for name, value in values.items():
        if value is None:
            txn.delete(row(name))
        else:
            txn.put(row(name), value)
    return txn.commit()


def number_rows(store: Store, count: int, value: bytes = b"v") -> None:
    """Writes rows 0 .. count - 1 in one transaction."""
    txn = store.begin()
    for number in range(count):
        txn.put(row(number), value)
    txn.commit()


def named(pairs: Iterable[tuple[bytes, bytes]]) -> list[tuple[object, bytes]]:
    """Pairs as (name, value), in their order."""
    return [(_name(key), value) for key, value in pairs]


def changes(revisions: Iterable[Revision]) -> list[tuple[object, Timestamp, bytes | None]]:
    return [(_name(key), at, value) for key, at, value in revisions]


def _name(key: bytes) -> object:
    return decode(key[HEAD_BYTES:])[0]
