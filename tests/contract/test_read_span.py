"""A span counted as read by one who has its rows from elsewhere, over every engine."""

import pytest

from tenure.base.env import SystemEnv
from tenure.base.errors import BelowMark, RetryError, SnapshotTooOld
from tenure.kv.keys import Span
from tenure.kv.store import Store
from tenure.kv.thresholds import publish_threshold
from tenure.kv.transaction import Transaction
from tenure.storage.engine import Engine


@pytest.fixture
def store(engine: Engine) -> Store:
    return Store(engine, SystemEnv())


def _span(store: Store) -> Span:
    head = store.keyspace.head(200, 1)
    return Span(head, head + b"\xff")


def _put(store: Store, name: bytes) -> None:
    store.transact(lambda txn: txn.put(_span(store).lo + name, b"x"))


def test_a_change_in_it_refuses_the_commit(store: Store) -> None:
    txn = store.begin()
    assert txn.read_span(_span(store)) == {}
    txn.put(store.keyspace.head(201, 1) + b"a", b"")
    _put(store, b"a")
    with pytest.raises(RetryError):
        txn.commit()


def test_a_change_elsewhere_does_not(store: Store) -> None:
    txn = store.begin()
    txn.read_span(_span(store))
    txn.put(_span(store).lo + b"a", b"")
    store.transact(lambda txn: txn.put(store.keyspace.head(201, 1) + b"a", b"x"))
    txn.commit()


def test_it_tells_what_lies_over_the_store(store: Store) -> None:
    _put(store, b"a")
    _put(store, b"b")
    lo = _span(store).lo
    txn = store.begin()
    txn.put(lo + b"a", b"new")
    txn.delete(lo + b"b")
    assert txn.read_span(_span(store)) == {lo + b"a": b"new", lo + b"b": None}
    txn.rollback()


def test_below_the_threshold_it_is_refused(store: Store) -> None:
    _put(store, b"a")
    txn = store.begin()
    early = store.snapshot(txn.read_at)
    _put(store, b"b")

    def publish(inner: Transaction) -> None:
        publish_threshold(inner, store.keyspace, store.keyspace.head(200, 1), store.engine.clock_at())

    store.transact(publish)
    with pytest.raises(BelowMark):
        txn.read_span(_span(store))
    with pytest.raises(SnapshotTooOld):
        early.read_span(_span(store))
