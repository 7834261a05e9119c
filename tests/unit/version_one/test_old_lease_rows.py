"""Expiring leases as records."""

import pytest

from tenure.base.errors import RetryError, TooEarly
from tenure.base.timestamp import Timestamp, add_seconds
from tenure.version_one.expiring_lease_rows import LeaseOwner, OldLeaseRow
from tests.contract.lease_nodes import TABLE, LeaseNode

OWNER = LeaseOwner(7, 1)
SECONDS = 300.0


def acquire(node: LeaseNode, *, owner: LeaseOwner = OWNER, seconds: float = SECONDS) -> Timestamp:
    """Returns when the lease was taken."""
    txn = node.store.begin()
    assert node.old_rows.acquire(txn, TABLE, owner, duration_seconds=seconds) is not None
    return txn.commit()


def row(node: LeaseNode) -> OldLeaseRow:
    (row,) = node.old_leases()
    return row


def test_a_lease_expires_its_duration_after_its_commit(old: LeaseNode) -> None:
    commit_at = acquire(old)
    assert row(old) == OldLeaseRow(TABLE, 1, *OWNER, add_seconds(commit_at, SECONDS))


def test_what_is_not_there_cannot_be_leased(old: LeaseNode) -> None:
    txn = old.store.begin()
    assert old.old_rows.acquire(txn, TABLE + 1, OWNER, duration_seconds=SECONDS) is None


@pytest.mark.invariant("I12")
def test_a_lease_on_a_version_that_was_replaced_meanwhile_is_refused(old: LeaseNode) -> None:
    txn = old.store.begin()
    old.old_rows.acquire(txn, TABLE, OWNER, duration_seconds=SECONDS)
    old.publish()
    with pytest.raises(RetryError):
        txn.commit()
    assert old.old_leases() == []


@pytest.mark.invariant("I12")
def test_an_older_versions_lease_is_not_extended(old: LeaseNode) -> None:
    acquire(old)
    before = row(old)
    old.publish()
    acquire(old)
    assert [each.version for each in old.old_leases()] == [1, 2]
    assert old.old_leases()[0] == before


@pytest.mark.invariant("I14")
def test_an_expiration_does_not_fall_with_the_duration(old: LeaseNode) -> None:
    acquire(old)
    before = row(old)
    acquire(old, seconds=1.0)
    assert row(old).expires_at >= before.expires_at


@pytest.mark.invariant("I15")
def test_a_lease_that_has_not_expired_cannot_be_deleted_by_others(old: LeaseNode) -> None:
    acquire(old)
    with pytest.raises(TooEarly):
        old.store.transact(lambda txn: old.old_rows.delete_expired(txn, row(old)))
    old.env.advance(SECONDS + 1)
    old.store.transact(lambda txn: old.old_rows.delete_expired(txn, row(old)))
    assert old.old_leases() == []


@pytest.mark.invariant("I15")
def test_a_lease_that_was_extended_meanwhile_stays(old: LeaseNode) -> None:
    acquire(old)
    found = row(old)
    old.env.advance(SECONDS + 1)
    acquire(old)
    with pytest.raises(TooEarly):
        old.store.transact(lambda txn: old.old_rows.delete_expired(txn, found))


def test_a_process_releases_only_its_own_leases(old: LeaseNode) -> None:
    successor = LeaseOwner(OWNER.instance, OWNER.started_at + 1)
    acquire(old)
    acquire(old, owner=successor)
    old.store.transact(lambda txn: old.old_rows.release(txn, TABLE, 1, successor))
    assert row(old).owner == OWNER
