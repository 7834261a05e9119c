"""The holder of a job: a node session.

`Claims` is the interface of a way to hold jobs. Its functions are called inside the transaction that acts on
the answer: may this holder take the job, what does taking it write, does this holder still have it. In a
finalized cluster a claim is a node session (`SessionClaims`); until then jobs are also held by instances
(`version_one.old_claims`).

Invariant (I22): a job moves from one holder to another only where the former is proved gone.

Walk: `cluster.jobs.job_table` calls these; `composition.older_versions` chooses the implementation.
"""

from typing import Protocol

from tenure.base.errors import SessionLost
from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.cluster.jobs.job_records import NOBODY, JobControl
from tenure.cluster.sessions.session_records import SessionId, Sessions
from tenure.kv.records import replace
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction


class Claims(Protocol):
    def is_free(self, txn: Transaction, control: JobControl, holder: SessionId) -> bool:
        """Whether `holder` may take the job; the transaction then commits only if this still holds."""
        ...

    def with_holder(self, control: JobControl, holder: SessionId) -> JobControl: ...

    def holds(self, txn: Transaction, control: JobControl, holder: SessionId) -> bool:
        """Whether `holder` has the job and may write, as of the transaction."""
        ...

    def claim_of(self, control: JobControl) -> SessionId:
        """The session that holds it, if this way to hold jobs has sessions."""
        ...

    def lease_of(self, control: JobControl) -> int:
        """The instance that holds it, if this way to hold jobs has leases."""
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

    def with_holder(self, control: JobControl, holder: SessionId) -> JobControl:
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
