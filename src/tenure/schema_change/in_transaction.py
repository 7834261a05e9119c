"""DDL and rows in one transaction, with other nodes present: children walk, the parent ends it.

    parent   reads, writes rows ........................ COMMIT: the last step, the rows, the job's end
    child 1      first stage of what is added, and a job claimed by this session
    child 2..        write_only ─ wait ─ fill ─ prove        (committed rows, but for those it has written)

Other nodes must know of additions before the parent's commit makes them public, so children publish those
stages, each a commit of its own. Changes that only become visible (names, drops, defaults) wait for the
parent. Any end but the parent's commit leaves the job: the node that adopts it reverses the change.

A table that the parent empties (TRUNCATE) is closed by the first child: others wait until the parent has
ended. When all leases on the version before are gone no transaction uses the former indexes any more, and the
parent's commit replaces them by the new ones. So another transaction's row was written before that, or is
written after it.

Invariant (emptied-alone): between the version that closes a table and the one that has its new indexes only
the transaction that empties it reads or writes it.

A name that the parent takes from one object and gives to another (DROP TABLE t, CREATE TABLE t) is closed by
the first child, too: who looks it up waits until the parent has ended. When all leases on the version before
are gone nobody means the former object by it any more, and the parent's commit gives the name away at once.

Invariant (handed-over): a name goes from one object to another only when no lease of another node leads from
it to an object that may be used.

The parent handles the rows that it has written itself: children leave them out when they fill and prove, and
look for the targets of references in the store as the parent would leave it. So rows that it corrected before
are correct, and rows that it deleted are gone. At the very end the parent refreshes and completes its rows
(`table.completion`): what it looks at counts as read. Others have enforced the new elements since before the
proof, so a later row of theirs either obeys or is among those reads.

Invariant (ddl-atomic): the last step, the rows and the end of the job are one commit.
Invariant (ddl-alike): a transaction of rows and changes has the same result with any number of nodes.

Walk: `schema_change.changer` calls `begin`, `prepare`, waits for the leases once more, and calls `complete`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from tenure.base.errors import NotSupported, RetryError
from tenure.base.retries import Retries
from tenure.catalog.changes.publisher import Publisher, check_made_from
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import AnyDescriptor, Table, elements, replace
from tenure.catalog.descriptors.drafts import Draft
from tenure.catalog.descriptors.elements import is_adding, is_finished, shown
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.catalog.leases.lease_waits import LeaseWaiter
from tenure.cluster.jobs.job_records import JobProgress
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import Fence, Jobs
from tenure.cluster.sessions.liveness import NodeSession
from tenure.kv.overlay import Overlay
from tenure.kv.records import pack
from tenure.kv.transaction import Transaction
from tenure.schema_change.declared_changes import Requester
from tenure.schema_change.job import KIND, ChangePayload, SavedWork
from tenure.schema_change.stages import with_job, with_preparations
from tenure.schema_change.walk import Walk
from tenure.schema_change.work import Worker

T = TypeVar("T")

CHILD_ATTEMPTS = 20
"""A child that conflicts with writers of the same rows is repeated this often; then the parent fails."""


class JobReservations(NamedTuple):
    """Keeps this node's runner from adopting a job that a transaction walks, until the transaction is
    over.
    """

    reserve: Callable[[int], None]
    unreserve: Callable[[int], None]


class PreparedChange(NamedTuple):
    fence: Fence
    last: list[AnyDescriptor]
    """The descriptors that the parent's commit publishes."""


class InTransaction:
    def __init__(
        self,
        catalog: Catalog,
        publisher: Publisher,
        worker: Worker,
        jobs: Jobs,
        session: Callable[[], NodeSession],
        make_walk: Callable[..., Walk],
        reservations: JobReservations,
    ) -> None:
        self._catalog = catalog
        self._publisher = publisher
        self._worker = worker
        self._jobs = jobs
        self._session = session
        self._make_walk = make_walk
        self._reservations = reservations

    def begin(
        self,
        use: CatalogUse,
        declared: Sequence[AnyDescriptor],
        waiter: LeaseWaiter,
        requester: Requester,
        *,
        timeout: float | None,
        opened: Fence | None = None,
    ) -> Fence:
        """The first child: the first stage of the additions, and the job that would reverse them.

        `opened` is the job that has opened tables for this change: it goes on with it. The caller must call
        `over` afterwards, also if the transaction fails.
        """
        child = use.txn.child(committed_only=True)
        fence = opened
        job = 0 if opened is None else opened.job
        try:
            stored = {each.id: self._catalog.get(child, each.id) for each in declared}
            for former in stored.values():
                if former is not None:
                    check_made_from(use.draft, former)
            if fence is None:
                job = self._jobs.fresh_id(child)
                self._reservations.reserve(job)
                fence = create_job(child, self._jobs, job, stored, self._session(), requester)
            else:
                self._jobs.fenced(child, fence)
            stages = [
                _first_stage(use.draft, former, each, job)
                for each in declared
                if (former := stored[each.id]) is not None
            ]
            changed = [each for each in stages if each != stored[each.id]]
            ids = self._publisher.affected(changed)
            settled = self._publisher.settle(ids, waiter, timeout=timeout)
            self._publisher.publish(child, changed, settled)
            child.commit()
        except BaseException:
            child.rollback()
            # It may have landed all the same: then any node may adopt the job.
            if job:
                self.over(job)
            raise
        return fence

    def prepare(
        self,
        use: CatalogUse,
        declared: Sequence[AnyDescriptor],
        fence: Fence,
        waiter: LeaseWaiter,
        *,
        timeout: float | None,
    ) -> "PreparedChange":
        """Does all work of the children; the parent then completes its rows and commits."""
        walk = self._make_walk(
            [each.id for each in declared if not use.draft.is_new(each.id)],
            job=fence.job,
            transact=_Children(use.txn, self._jobs, fence),
            waiter=waiter,
            worker=self._worker.over(use.draft.of_own_rows()).beside(use.txn),
            view=lambda snapshot: Overlay(snapshot, use.txn),
            timeout=timeout,
        )
        walk.until_prepared()
        return PreparedChange(fence, [self._last_step(use, each, fence.job) for each in declared])

    def complete(self, use: CatalogUse, declared: Sequence[AnyDescriptor], prepared: PreparedChange) -> None:
        """Called in the parent, right before its commit: completes rows, ends the job."""
        use.refresh()
        self._jobs.fenced(use.txn, prepared.fence)
        worker = self._worker.over(use.draft.of_own_rows())
        worker.complete_own(use.txn, use.draft)
        for each in declared:
            if isinstance(each, Table) and not use.draft.has_own_rows(each.id):
                worker.complete(use.txn, each)
        if all(map(is_finished, prepared.last)):
            self._jobs.step(use.txn, prepared.fence, JobState.SUCCEEDED)
        else:
            self.hand_over(use.txn, prepared.fence)

    def hand_over(self, txn: Transaction, fence: Fence) -> None:
        """Called in the parent: with its commit the rest of the change is left to the job."""
        # Dropped objects leave marks as well: by those alone it would look as if nothing had committed.
        saved = JobProgress(fence.job, data=pack(SavedWork((), is_committed=True)))
        self._jobs.checkpoint(txn, fence, saved)
        self._jobs.release(txn, fence)

    def over(self, job: int) -> None:
        """Called when the transaction has ended: any node may adopt its job, if it still exists."""
        self._reservations.unreserve(job)

    def _last_step(self, use: CatalogUse, declared: AnyDescriptor, job: int) -> AnyDescriptor:
        stored = self._catalog.get(use.txn, declared.id)
        last = shown(declared)
        handed_over = use.draft.handed_over().get(declared.id, frozenset())
        last = replace(last, draining=tuple(each for each in last.draining if each not in handed_over))
        return replace(with_job(last, job), version=0 if stored is None else stored.version)


def create_job(
    child: Transaction,
    jobs: Jobs,
    id: int,
    descriptors: Iterable[int],
    session: NodeSession,
    requester: Requester,
) -> Fence:
    """The job of a change that a transaction declared, claimed by this node while it walks itself."""
    payload = ChangePayload(tuple(sorted(descriptors)), is_in_transaction=True)
    owner, description = requester.owner, requester.description
    jobs.create(child, kind=KIND, id=id, payload=pack(payload), owner=owner, description=description)
    fence = jobs.claim(child, id, session.id)
    assert fence is not None, "a job of one's own making was not to be had"
    return fence


def _first_stage(draft: Draft, stored: AnyDescriptor, declared: AnyDescriptor, job: int) -> AnyDescriptor:
    """The additions of a change; and closed names, where another object gets one of its names."""
    stage = with_preparations(stored, declared, is_emptied=draft.is_emptied(declared.id))
    if declared.id in draft.handed_over():
        stage = replace(stage, closed_by=job)
    # What was opened for this change keeps its mark until the parent's commit.
    return stage if getattr(stage, "job", 0) == job else with_job(stage, job)


class _Children:
    """Runs functions in children of one transaction, each a commit of its own under the job's fence."""

    def __init__(self, parent: Transaction, jobs: Jobs, fence: Fence) -> None:
        self._parent = parent
        self._jobs = jobs
        self._fence = fence

    def __call__(self, run: Callable[[Transaction], T]) -> T:
        retries = Retries(CHILD_ATTEMPTS)
        while True:
            child = self._parent.child(committed_only=True)
            try:
                self._jobs.fenced(child, self._fence)
                result = run(child)
                child.commit()
                return result
            except RetryError as error:
                retries.failed(error)
            finally:
                child.rollback()


_REWRITES = ("computed", "generated", "replaces")
"""The fields of an element that require rows to be rewritten."""


def check_possible(written: Iterable[AnyDescriptor]) -> None:
    """Refuses changes that would rewrite rows that the transaction itself has written."""
    for table in written:
        if not isinstance(table, Table):
            continue
        for each in elements(table):
            if is_adding(each) and any(getattr(each, what, None) for what in _REWRITES):
                raise NotSupported(
                    f'"{table.name}" cannot be rewritten by a transaction that has written rows of it',
                    hint="Change the type, the key or the generated column in a transaction of its own.",
                )
