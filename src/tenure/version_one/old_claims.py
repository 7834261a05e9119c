"""Jobs held by instances, as in version 1, and by both ways while a cluster is upgraded.

    OldClaims       nodes of version 1: the instance's lease alone
    MixedClaims     newer nodes until the cluster is finalized: the session's claim and the instance's lease

Invariant (old-lease): a lease moves to another instance only after the heartbeat of the former
has expired or is gone.

Walk: `version_one.wiring` makes them, for `cluster.jobs.job_table`, which calls `is_free` and `holds`; both
ask `OldHeartbeats`.
"""

from tenure.base.timestamp import Timestamp
from tenure.cluster.jobs.claims import SessionClaims
from tenure.cluster.jobs.job_records import NOBODY, JobControl
from tenure.cluster.sessions.session_records import SessionId, Sessions
from tenure.kv.records import replace
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.version_one.old_heartbeats import OldHeartbeats


class OldClaims:
    def __init__(self, sessions: Sessions, heartbeats: OldHeartbeats) -> None:
        self._sessions = sessions
        self._heartbeats = heartbeats

    def is_free(self, txn: Transaction, control: JobControl, holder: SessionId) -> bool:
        return self.lease_is_free(txn, control, holder) and self._has_instance(txn, holder)

    def lease_is_free(self, txn: Transaction, control: JobControl, holder: SessionId) -> bool:
        if control.lease_instance not in (NOBODY.instance, holder.instance):
            self._heartbeats.outlive(txn, control.lease_instance)
        return True

    def with_holder(self, control: JobControl, holder: SessionId) -> JobControl:
        return replace(control, lease_instance=holder.instance)

    def holds(self, txn: Transaction, control: JobControl, holder: SessionId) -> bool:
        return control.lease_instance == holder.instance and self._has_instance(txn, holder)

    def _has_instance(self, txn: Transaction, holder: SessionId) -> bool:
        return self._sessions.instances.get(txn, holder.instance) is not None

    def claim_of(self, control: JobControl) -> SessionId:
        return NOBODY

    def lease_of(self, control: JobControl) -> int:
        return control.lease_instance

    def lease_expiry(self, source: Snapshot, instance: int) -> Timestamp:
        return self._heartbeats.expiry(source, instance)


class MixedClaims:
    """Both ways at once; a refusal by either is a refusal."""

    def __init__(self, sessions: Sessions, heartbeats: OldHeartbeats) -> None:
        self._new = SessionClaims(sessions)
        self._old = OldClaims(sessions, heartbeats)

    def is_free(self, txn: Transaction, control: JobControl, holder: SessionId) -> bool:
        return self._new.is_free(txn, control, holder) and self._old.lease_is_free(txn, control, holder)

    def with_holder(self, control: JobControl, holder: SessionId) -> JobControl:
        return self._old.with_holder(self._new.with_holder(control, holder), holder)

    def holds(self, txn: Transaction, control: JobControl, holder: SessionId) -> bool:
        return control.lease_instance == holder.instance and self._new.holds(txn, control, holder)

    def claim_of(self, control: JobControl) -> SessionId:
        return control.claim

    def lease_of(self, control: JobControl) -> int:
        return control.lease_instance

    def lease_expiry(self, source: Snapshot, instance: int) -> Timestamp:
        return self._old.lease_expiry(source, instance)
