"""Expiring leases as records, one per descriptor and process: `system.lease`, of version 1.

    (descriptor, version, instance, started_at) -> expires_at

A row is acquired in a transaction that reads the descriptor's newest version, and extended in the same way:
so once a newer version is committed, no row of an older one appears or grows. The remaining ones are deleted
when their owner releases them or when they have expired.

A process is named by its instance id and the time it began: the id of a process that stalled is given to
another while its rows are still valid, and the other must not release them.

Invariant (I12): a row of a version appears, or is extended, only while that version is the newest.
Invariant (I14): an expiration never falls.
Invariant (I15): others delete a row only in a transaction that commits after its expiration.

Walk: `version_one.descriptor_leases` writes a process's own rows; `version_one.expiring_lease_table` reads
those of all processes.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tenure.base.timestamp import ZERO_AT, Timestamp, add_seconds
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import AnyDescriptor
from tenure.catalog.leases.lease_rows import LeaseHolder
from tenure.kv.keys import OLD_LEASES, Keyspace, Span
from tenure.kv.records import Record, Records
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction


class LeaseOwner(NamedTuple):
    """A process, as its lease rows name it."""

    instance: int
    started_at: Timestamp


class OldLeaseRow(Record, frozen=True):
    descriptor: int
    version: int
    instance: int
    started_at: Timestamp
    expires_at: Timestamp

    @property
    def owner(self) -> LeaseOwner:
        return LeaseOwner(self.instance, self.started_at)

    @property
    def holders(self) -> tuple[LeaseHolder, ...]:
        return ()  # version 1 does not name the transactions that use a lease


class AcquiredLease(NamedTuple):
    descriptor: AnyDescriptor
    lasts: int
    """How long after its commit timestamp the lease ends."""


class OldLeaseRows:
    """The expiring leases of one tenant; every function belongs to the caller's transaction."""

    def __init__(self, keyspace: Keyspace, catalog: Catalog) -> None:
        self._catalog = catalog
        key = ("descriptor", "version", "instance", "started_at")
        self._rows = Records(keyspace, OLD_LEASES, OldLeaseRow, key=key)

    def span(self) -> Span:
        return self._rows.span()

    def acquire(
        self, txn: Transaction, id: int, owner: LeaseOwner, *, duration_seconds: float
    ) -> AcquiredLease | None:
        """Writes or extends a lease on the newest version of a descriptor; None if there is none."""
        descriptor = self._catalog.get(txn, id)
        if descriptor is None:
            return None
        lasts = add_seconds(ZERO_AT, duration_seconds)
        former = self._rows.get(txn, id, descriptor.version, *owner)
        if former is not None:
            # It commits after `read_at`, so the expiration does not fall where the duration was lowered.
            lasts = max(lasts, former.expires_at - txn.read_at)
        row = OldLeaseRow(id, descriptor.version, *owner, ZERO_AT)
        self._rows.put(txn, row, stamp="expires_at", plus=lasts)
        return AcquiredLease(descriptor, lasts)

    def release(self, txn: Transaction, id: int, version: int, owner: LeaseOwner) -> None:
        """Deletes the process's own row, when nothing uses it any more."""
        if self._rows.get(txn, id, version, *owner) is not None:
            self._rows.delete(txn, id, version, *owner)

    def delete_expired(self, txn: Transaction, row: OldLeaseRow) -> None:
        """Deletes another process's row; the commit fails as too early if it has not expired."""
        found = self._rows.get(txn, row.descriptor, row.version, *row.owner)
        if found is not None:
            txn.not_before_at = max(txn.not_before_at or ZERO_AT, found.expires_at)
            self._rows.delete(txn, row.descriptor, row.version, *row.owner)

    def of(self, txn: Transaction | Snapshot, id: int) -> Iterator[OldLeaseRow]:
        """The rows of one descriptor, the oldest version first."""
        return self._rows.scan(txn, id)

    def list(self, txn: Transaction | Snapshot) -> Iterator[OldLeaseRow]:
        return self._rows.scan(txn)
