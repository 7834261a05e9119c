"""Heartbeats by instance id, by which version 1 decides which nodes are alive.

    old heartbeat   instance -> expires_at        written by nodes of both versions until finalized
    lease           a job's `lease_instance`      beside the session's claim

A node of version 1 knows nothing of sessions: it takes a job without a lease, or with the lease of an
instance whose heartbeat has expired. A newer node maintains both and respects both. Either takes a job over
only in a transaction that commits after the heartbeat it found, and every write of a run reads the lease and
the run number: so a job runs once also where the two meet.

Walk: `version_one.old_liveness` and `version_one.wiring` call `beat`; `version_one.old_claims` calls `expiry`
and `outlive`.
"""

from tenure.base.timestamp import ZERO_AT, Timestamp, add_seconds
from tenure.kv.keys import OLD_HEARTBEATS, Keyspace
from tenure.kv.records import Record, Records
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction


class OldHeartbeat(Record, frozen=True):
    instance: int
    expires_at: Timestamp


class OldHeartbeats:
    """The heartbeats by instance id of one tenant."""

    def __init__(self, keyspace: Keyspace) -> None:
        self._records = Records(keyspace, OLD_HEARTBEATS, OldHeartbeat, key=("instance",))

    def beat(self, txn: Transaction, instance: int, *, ttl_seconds: float) -> None:
        record = OldHeartbeat(instance, ZERO_AT)
        self._records.put(txn, record, stamp="expires_at", plus=add_seconds(ZERO_AT, ttl_seconds))

    def stop(self, txn: Transaction, instance: int) -> None:
        self._records.delete(txn, instance)

    def expiry(self, txn: Transaction | Snapshot, instance: int) -> Timestamp:
        """When an instance's heartbeat runs out; zero if it has none."""
        found = self._records.get(txn, instance)
        return ZERO_AT if found is None else found.expires_at

    def outlive(self, txn: Transaction, instance: int) -> None:
        """Lets a transaction commit only after an instance's heartbeat has run out."""
        expires_at = self.expiry(txn, instance)
        if expires_at:
            txn.not_before_at = max(txn.not_before_at or ZERO_AT, expires_at)
