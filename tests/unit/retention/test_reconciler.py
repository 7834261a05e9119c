"""The reconciler against owners that act at the same time."""

from collections.abc import Iterator

import pytest

from tenure.base.timestamp import add_seconds
from tenure.cluster.jobs.job_states import JobState
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.retention import snapshots
from tenure.retention.job_protections import job_owner
from tenure.retention.protections.protection_catalog import StoredProtections
from tenure.retention.protections.protection_records import JOB, Mode, Targets, job_meta, job_of
from tenure.retention.reconciler import ALARM_SECONDS, Owner, Reconciler
from tenure.retention.snapshots import NamedSnapshots
from tests.unit.retention.protecting import ProtectedStore
from tests.unit.retention.sweeping import SweptStore

TABLE = 200


def make_snapshot(node: ProtectedStore, named: NamedSnapshots) -> None:
    at = node.now()
    expires_at = add_seconds(at, 10)
    node.transact(lambda txn: named.create(txn, "s", at, TABLE, "root", expires_at))


@pytest.mark.invariant("snapshot")
def test_a_snapshot_that_took_the_name_of_an_expired_one_stays(
    node: ProtectedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reconciler has listed the old one; its owner drops it, and makes another before it is looked at."""
    node.create(TABLE)
    named = NamedSnapshots(node.keyspace, node.protections, lambda: node.settings)
    owners = {snapshots.OWNER: Owner(named.exists, named.expire)}
    reconciler = Reconciler(node.store, node.protections, owners)
    make_snapshot(node, named)
    listed = node.state()
    node.env.advance(11)

    def drop_and_make(txn: Transaction | Snapshot) -> StoredProtections:
        node.transact(lambda txn: named.drop(txn, "s"))
        make_snapshot(node, named)
        return listed

    monkeypatch.setattr(reconciler._list, "list_all", drop_and_make)
    reconciler.step()
    kept = named.find(node.store.snapshot(), "s")
    assert [each.id for each in node.state().records] == [kept.protection]


@pytest.mark.invariant("I32")
def test_an_expired_snapshot_goes_with_its_protection(node: ProtectedStore) -> None:
    node.create(TABLE)
    named = NamedSnapshots(node.keyspace, node.protections, lambda: node.settings)
    reconciler = Reconciler(
        node.store, node.protections, {snapshots.OWNER: Owner(named.exists, named.expire)}
    )
    make_snapshot(node, named)
    reconciler.step()
    assert len(node.state().records) == 1
    node.env.advance(11)
    reconciler.step()
    assert node.state().records == ()
    assert (node.meta().records, node.meta().objects, node.meta().bytes) == (0, 0, 0)


class OwnedByJobs(SweptStore):
    """A node whose jobs own protections."""

    def __init__(self) -> None:
        super().__init__()
        self.create(TABLE)
        self.reconciler = Reconciler(self.store, self.protections, {JOB: job_owner(self.jobs)})

    def protect_for(self, job: int, expires_after: float | None = None) -> None:
        at = self.now()
        expires_at = None if expires_after is None else add_seconds(at, expires_after)
        owner, targets = (JOB, job_meta(job)), Targets((TABLE,))
        self.transact(
            lambda txn: self.protections.protect(txn, at, Mode.AT, *owner, targets, expires_at=expires_at)
        )

    def owners(self) -> list[int]:
        return sorted(job_of(each) or 0 for each in self.state().records)


@pytest.fixture
def jobs() -> Iterator[OwnedByJobs]:
    node = OwnedByJobs()
    yield node
    node.engine.close()


@pytest.mark.invariant("I32")
def test_what_a_job_has_left_goes_and_what_open_jobs_have_stays(jobs: OwnedByJobs) -> None:
    job = jobs.member.create_job()
    for owner in (job.id, job.id + 100, job.id + 101):
        jobs.protect_for(owner)
    jobs.reconciler.step()
    assert jobs.owners() == [job.id]


@pytest.mark.invariant("I32")
def test_an_expired_protection_of_a_job_that_is_gone_is_released_too(jobs: OwnedByJobs) -> None:
    jobs.protect_for(100, expires_after=10)
    jobs.protect_for(101)
    jobs.env.advance(11)
    jobs.reconciler.step()
    assert jobs.owners() == []


@pytest.mark.parametrize("is_claimed", [False, True])
def test_expiry_first_fails_the_job_with_the_reason(jobs: OwnedByJobs, is_claimed: bool) -> None:
    job = jobs.member.create_job()
    fence = jobs.member.claim(job) if is_claimed else None
    jobs.protect_for(job.id, expires_after=10)
    jobs.env.advance(11)
    jobs.reconciler.step()
    control = jobs.member.control(job)
    assert control.state is JobState.CANCEL_REQUESTED
    assert control.error is not None
    assert control.error.sqlstate == "72000" and "has expired" in control.error.message
    assert jobs.owners() == [job.id]  # until the job has ended
    if fence is not None:
        jobs.reconciler.step()
        assert jobs.member.control(job) == control


def test_a_job_that_is_being_taken_back_is_left_alone_and_others_are_reconciled(jobs: OwnedByJobs) -> None:
    job = jobs.member.create_job()
    fence = jobs.member.claim(job)
    jobs.protect_for(job.id, expires_after=10)
    jobs.transact(lambda txn: jobs.jobs.step(txn, fence, JobState.REVERTING))
    for owner in range(100, 110):
        jobs.protect_for(owner)
    jobs.env.advance(11)
    jobs.reconciler.step()
    assert jobs.member.control(job).state is JobState.REVERTING
    assert jobs.owners() == [job.id]


def test_an_owner_of_an_unknown_kind_keeps_its_protection(node: ProtectedStore) -> None:
    """A newer program may have made it."""
    node.create(TABLE)
    node.protect(node.now(), Mode.AT, TABLE)
    Reconciler(node.store, node.protections, {}).step()
    assert len(node.state().records) == 1


def test_an_old_protection_is_told_once(node: ProtectedStore, caplog: pytest.LogCaptureFixture) -> None:
    node.create(TABLE)
    node.protect(node.now(), Mode.AT, TABLE)
    reconciler = Reconciler(node.store, node.protections, {})
    reconciler.step()
    assert "keeps history since" not in caplog.text
    node.env.advance(ALARM_SECONDS + 1)
    for _ in range(3):
        reconciler.step()
    assert caplog.text.count("keeps history since") == 1
