"""Protections that belong to jobs: made under a job's fence or with the job, released when it ends.

    create a job + protect ──► run ──► pause, resume: it stays ──► the end of the job releases it

A job's protections are listed under its id. So the transaction that ends the job finds them by one read, and
does not conflict with protections of others until it releases one.

Invariant (I32): a job that has ended has no protection; a job that has not ended keeps its own.

Walk: `bulk` calls `protect` for exports, `exchange` for fills and imports, and hands `reads` to their tasks;
`changefeed.job` calls `protect`, and `move_forward` with its checkpoints;
`composition.protection_layer` hands `release_all` to the table of jobs, which calls it at the end of a job,
and `job_owner` to the reconciler.
"""

from tenure.base.errors import ProtectionNotFound, SnapshotTooOld
from tenure.base.timestamp import Timestamp, add_seconds
from tenure.cluster.jobs.job_errors import JobError
from tenure.cluster.jobs.job_states import GIVEN_UP
from tenure.cluster.jobs.job_table import Jobs
from tenure.kv.keys import JOB_PROTECTIONS, Keyspace
from tenure.kv.protected_reads import ProtectedRead
from tenure.kv.records import Record, Records
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.retention.protections.protection_records import JOB, Mode, Targets, job_meta
from tenure.retention.protections.protection_store import ProtectionStore
from tenure.retention.reconciler import Owner


class JobProtectionList(Record, frozen=True):
    job: int
    ids: tuple[bytes, ...]


class JobProtections:
    def __init__(self, keyspace: Keyspace, protections: ProtectionStore) -> None:
        self._protections = protections
        self._lists = Records(keyspace, JOB_PROTECTIONS, JobProtectionList, key=("job",))

    def protect(
        self,
        txn: Transaction,
        job: int,
        at: Timestamp,
        mode: Mode,
        targets: Targets,
        *,
        expires_after: float | None = None,
        following: bytes | None = None,
        role: str = "",
    ) -> bytes:
        """Protects for a job; raises as `ProtectionStore.protect` does.

        A job whose protected time is older than `expires_after` seconds is canceled with that reason, which
        releases it: a job that is paused for ever does not keep history for ever.
        """
        ids = self.ids(txn, job)
        owner = JOB, job_meta(job)
        expires_at = None if expires_after is None else add_seconds(at, expires_after)
        id = self._protections.protect(
            *(txn, at, mode, *owner, targets), expires_at=expires_at, following=following, role=role
        )
        self._lists.put(txn, JobProtectionList(job, (*ids, id)))
        return id

    def exchange(
        self, txn: Transaction, job: int, at: Timestamp, targets: Targets, *, role: str = ""
    ) -> bytes:
        """Protects one time for a job of a role, in place of all that it has protected before."""
        self.release_all(txn, job)
        return self.protect(txn, job, at, Mode.AT, targets, role=role)

    def move_forward(self, txn: Transaction, job: int, at: Timestamp) -> None:
        """A job needs all from a later time on, and nothing before: its other protections stay."""
        for id in self.ids(txn, job):
            protection = self._protections.read(txn, id)
            if protection.mode is Mode.AFTER and protection.at < at:
                self._protections.move_forward(txn, id, at)

    def ids(self, txn: Transaction | Snapshot, job: int) -> tuple[bytes, ...]:
        found = self._lists.get(txn, job)
        return () if found is None else found.ids

    def reads(self, txn: Transaction | Snapshot, job: int) -> list[ProtectedRead]:
        """In whose name a job reads below the threshold."""
        found = [self._protections.read(txn, id) for id in self.ids(txn, job)]
        return [self._protections.protected_read(each) for each in found if each.mode is Mode.AT]

    def release_all(self, txn: Transaction, job: int) -> None:
        """Releases what a job has protected. What a reconciler or an expiry has released is left out."""
        ids = self.ids(txn, job)
        for id in ids:
            try:
                self._protections.release(txn, id)
            except ProtectionNotFound:
                continue
        if ids:
            self._lists.delete(txn, job)


def job_owner(jobs: Jobs) -> Owner:
    """Jobs as owners: one whose protection has expired is canceled, with the reason as its error."""

    def exists(txn: Transaction, meta: bytes) -> bool:
        return jobs.is_open(txn, int(meta))

    def fail(txn: Transaction, meta: bytes, reason: str) -> None:
        control = jobs.control(txn, int(meta))
        if control is not None and control.state not in GIVEN_UP:  # else it is about to end by itself
            jobs.request_cancel(txn, control.id, JobError(reason, SnapshotTooOld.sqlstate))

    return Owner(exists, fail)
