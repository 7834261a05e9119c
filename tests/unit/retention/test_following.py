"""Protections that follow others of the same time, after the ttl and with sweeps in between."""

import pytest

from tenure.base.errors import ProtectionNotFound, RetryError, SnapshotTooOld
from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.definitions import DEFAULT_SCHEMA
from tenure.kv.keys import Span
from tenure.kv.transaction import Transaction
from tenure.retention.protections.protection_records import Mode, Targets
from tests.unit.retention.protecting import OWNER
from tests.unit.retention.sweeping import TTL, SweptStore, T, U, two_tables

node = pytest.fixture(two_tables)


def old_protection(node: SweptStore, *objects: int) -> tuple[Timestamp, bytes]:
    """Of a time that is older than the ttl and below the thresholds of both tables."""
    node.put(U, "k", "old")
    at = node.put(T, "k", "old")
    id = node.protect(at, Mode.AT, *objects)
    node.put(T, "k", "new")
    node.put(U, "k", "new")
    node.wait(TTL + 1)
    node.sweep()
    assert node.threshold(node.head(T)) > at
    return at, id


def follow(node: SweptStore, txn: Transaction, at: Timestamp, id: bytes, targets: Targets) -> bytes:
    return node.protections.protect(txn, at, Mode.AT, *OWNER, targets, following=id)


def read_in_its_name(node: SweptStore, id: bytes) -> bytes | None:
    protection = node.protections.read(node.store.snapshot(), id)
    protected = node.protections.protected_read(protection)
    return node.store.snapshot(protection.at, protected).get(node.key(T, "k"))


@pytest.mark.invariant("following")
@pytest.mark.parametrize("target", [T, DEFAULT_SCHEMA])
@pytest.mark.parametrize("by_span", [False, True])
def test_it_keeps_what_the_other_has_kept_when_that_goes(
    node: SweptStore, target: int, by_span: bool
) -> None:
    at, first = old_protection(node, target)
    span = node.keyspace.index_span(T)
    targets = Targets(spans=(span,)) if by_span else Targets((T,))
    with pytest.raises(SnapshotTooOld):
        node.transact(lambda txn: node.protections.protect(txn, at, Mode.AT, *OWNER, targets))
    second = node.transact(lambda txn: follow(node, txn, at, first, targets))
    node.release(first)
    node.put(T, "k", "newest")
    node.wait(TTL + 1)
    node.sweep()
    assert node.kept(T, "k") == ["old", "newest"]
    assert read_in_its_name(node, second) == b"old"
    node.release(second)
    node.sweep()
    assert node.kept(T, "k") == ["newest"]


@pytest.mark.invariant("following")
def test_what_the_other_does_not_cover_is_judged_by_its_threshold(node: SweptStore) -> None:
    at, first = old_protection(node, T)
    for targets in (Targets((T, U)), Targets((DEFAULT_SCHEMA,))):
        with pytest.raises(SnapshotTooOld, match="t201"):
            follow(node, node.store.begin(), at, first, targets)
    both = Targets(spans=(Span(node.keyspace.index_span(T).lo, node.keyspace.index_span(U).hi),))
    with pytest.raises(SnapshotTooOld, match="t201"):
        node.transact(lambda txn: follow(node, txn, at, first, both))
    assert len(node.state().records) == 1


@pytest.mark.invariant("following")
def test_one_that_has_been_released_is_not_followed(node: SweptStore) -> None:
    at, first = old_protection(node, T)
    txn = node.store.begin()
    follow(node, txn, at, first, Targets((T,)))
    node.release(first)
    with pytest.raises(RetryError):
        txn.commit()
    with pytest.raises(ProtectionNotFound):
        node.transact(lambda txn: follow(node, txn, at, first, Targets((T,))))
    assert node.state().records == ()
