"""Who holds a job: by session, by the older way, or by both while a cluster is upgraded.

    SessionClaims   finalized clusters: the claim is a node session
    MixedClaims     newer nodes until then: the session's claim and the instance's lease, both
    OldClaims       nodes of version 1: the lease alone

All three answer the same questions, inside the transaction that acts on the answer: may this
holder take the job, what does taking it write, does this holder still have it.

Invariant (I22): a job moves from one holder to another only where the former is proved gone.

Walk: `cluster.jobs.job_table` asks; `node.py` chooses which.
"""

from typing import Protocol

from tenure.base.errors import SessionLost
from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.cluster.jobs.job_records import NOBODY, JobControl
from tenure.cluster.sessions.expiring_liveness import OldHeartbeats
from tenure.cluster.sessions.session_records import SessionId, Sessions
from tenure.kv.records import replace
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction


class Claims(Protocol):
    def is_free(self, txn: Transaction, control: JobControl, holder: SessionId) -> bool:
        """Whether `holder` may take the job; the transaction then commits only if it is so."""
        ...

    def taken(self, control: JobControl, holder: SessionId) -> JobControl: ...

    def holds(self, txn: Transaction, control: JobControl, holder: SessionId) -> bool:
        """Whether `holder` has the job and may write, as of the transaction."""
        ...

    def claim_of(self, control: JobControl) -> SessionId:
        """The session that holds it, as far as this way knows of sessions."""
        ...

    def lease_of(self, control: JobControl) -> int:
        """The instance that holds it, as far as this way knows of leases."""
        ...

    def lease_expiry(self, source: Snapshot, instance: int) -> Timestamp:
        """When the leases of an instance end; zero if it has none."""
        ...


class SessionClaims:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def is_free(self, txn: Transaction, control: JobControl, holder: SessionId) -> bool:
        if control.claim not in (NOBODY, holder) and self._sessions.find(txn, control.claim) is not None:
            return False
        self._sessions.observe(txn, holder)
        return True

    def taken(self, control: JobControl, holder: SessionId) -> JobControl:
        return replace(control, claim_instance=holder.instance, claim_epoch_at=holder.epoch_at)

    def holds(self, txn: Transaction, control: JobControl, holder: SessionId) -> bool:
        if control.claim != holder:
            return False
        try:
            self._sessions.observe(txn, holder)
        except SessionLost:
            return False
        return True

    def claim_of(self, control: JobControl) -> SessionId:
        return control.claim

    def lease_of(self, control: JobControl) -> int:
        return NOBODY.instance

    def lease_expiry(self, source: Snapshot, instance: int) -> Timestamp:
        return ZERO_AT


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

    def taken(self, control: JobControl, holder: SessionId) -> JobControl:
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
    """Both ways at once; what either refuses is refused."""

    def __init__(self, sessions: Sessions, heartbeats: OldHeartbeats) -> None:
        self._new = SessionClaims(sessions)
        self._old = OldClaims(sessions, heartbeats)

    def is_free(self, txn: Transaction, control: JobControl, holder: SessionId) -> bool:
        return self._new.is_free(txn, control, holder) and self._old.lease_is_free(txn, control, holder)

    def taken(self, control: JobControl, holder: SessionId) -> JobControl:
        return self._old.taken(self._new.taken(control, holder), holder)

    def holds(self, txn: Transaction, control: JobControl, holder: SessionId) -> bool:
        return control.lease_instance == holder.instance and self._new.holds(txn, control, holder)

    def claim_of(self, control: JobControl) -> SessionId:
        return control.claim

    def lease_of(self, control: JobControl) -> int:
        return control.lease_instance

    def lease_expiry(self, source: Snapshot, instance: int) -> Timestamp:
        return self._old.lease_expiry(source, instance)
