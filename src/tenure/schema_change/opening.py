"""Opening what a change must not find locked: the first version of a change of a locked or watched table.

    needed    the tables whose `row` changes and that are locked, or that somebody may lock meanwhile; of a
              type that changes, itself and the tables that use it
    open      a child of the transaction: the change's job, claimed by this session, as the mark of each of
              them, and no lock any more; a version of its own that changes nothing else

Until COMMIT nothing of this is written. The mark comes before the change also where the table is not locked
just now: otherwise it might be locked between the look and the commit. The commit of the change ends the job,
or hands it over to walk the stages; after any other end the job takes its marks away.

A change of a table that nobody watches and nobody locked needs none of this, and costs nothing more.

Invariant (I33): a change of `row` is made from a version that is not locked and that carries its mark.

Walk: `schema_change.changer` calls `needed`, then `open`; this calls `Publisher.settle`, `Publisher.publish`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tenure.base.errors import RetryError
from tenure.base.retries import Pauses, Retries
from tenure.catalog.changes.publisher import Publisher, check_made_from
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import AnyDescriptor, EnumType, Table, job_of, replace
from tenure.catalog.descriptors.drafts import Draft
from tenure.catalog.descriptors.equal_versions import is_row_equal
from tenure.catalog.descriptors.locks import IsWatching, must_open, opened
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.catalog.leases.lease_waits import LeaseWaiter
from tenure.cluster.jobs.job_table import Fence, Jobs
from tenure.cluster.sessions.liveness import NodeSession
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.schema_change.declared_changes import Requester
from tenure.schema_change.in_transaction import CHILD_ATTEMPTS, JobReservations, create_job

PAUSES = Pauses(0.001, 0.05)
"""Between attempts: the rival is a node that locks tables, in one short commit."""


class Opening:
    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        publisher: Publisher,
        jobs: Jobs,
        session: Callable[[], NodeSession],
        reservations: JobReservations,
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._publisher = publisher
        self._jobs = jobs
        self._session = session
        self._reservations = reservations

    def needed(self, draft: Draft, stored: Mapping[int, AnyDescriptor]) -> list[int]:
        """The descriptors to open before a draft is published; `stored` has those that it changes."""
        found: set[int] = set()
        for id, declared in draft.declared.items():
            former = stored.get(id)
            if former is not None and not is_row_equal(former, declared):
                found |= self._of_change(former)
        return sorted(found)

    def _of_change(self, former: AnyDescriptor) -> set[int]:
        if not isinstance(former, EnumType):
            return {former.id} if must_open(former, self._is_watching) else set()
        snapshot = self._store.snapshot()
        tables = (self._catalog.get(snapshot, id) for id in former.referents)
        users = {each.id for each in tables if each is not None and must_open(each, self._is_watching)}
        return users | {former.id} if users else set()

    def _is_watching(self, job: int) -> bool:
        return self._jobs.is_open(self._store.snapshot(), job)

    def open(
        self,
        use: CatalogUse,
        ids: Sequence[int],
        waiter: LeaseWaiter,
        requester: Requester,
        *,
        timeout: float | None,
    ) -> Fence:
        """Returns the fence of the change's job; the caller must call `InTransaction.over` at the end."""
        retries = Retries(CHILD_ATTEMPTS, PAUSES, self._store.env)
        while True:
            child = use.txn.child(committed_only=True)
            job = 0
            try:
                job = self._jobs.fresh_id(child)
                self._reservations.reserve(job)
                changed = {id for id in use.draft.declared if not use.draft.is_new(id)}
                fence = create_job(child, self._jobs, job, changed | {*ids}, self._session(), requester)
                settled = self._publisher.settle(ids, waiter, timeout=timeout)
                self._publisher.publish(child, list(self._opened(child, use.draft, ids, job)), settled)
                child.commit()
                return fence
            except BaseException as error:
                child.rollback()
                self._reservations.unreserve(job)
                if not isinstance(error, RetryError) or self._is_outdated(use.draft, ids):
                    raise
                retries.failed(error)
            retries.pause()

    def _opened(
        self, child: Transaction, draft: Draft, ids: Sequence[int], job: int
    ) -> Iterator[AnyDescriptor]:
        """The versions that open; tables that only use a type need no mark of their own."""
        for id in ids:
            former = self._catalog.get(child, id)
            assert isinstance(former, Table | EnumType), "nothing else is opened"
            if job_of(former):
                raise RetryError(f'"{former.name}" was being changed by job {job_of(former)}')
            if isinstance(former, EnumType):
                yield replace(former, job=job)
            else:
                mark = job if id in draft.declared else 0
                yield opened(former, mark, lambda watcher: self._jobs.is_open(child, watcher))

    def unlocked(self, txn: Transaction, ids: Iterable[int]) -> list[AnyDescriptor]:
        """Tables that use a type which a publisher changes that is alone."""
        found = [self._catalog.get(txn, id) for id in sorted(ids)]
        is_watching: IsWatching = lambda job: self._jobs.is_open(txn, job)  # noqa: E731
        return [opened(each, each.job, is_watching) for each in found if isinstance(each, Table)]

    def _is_outdated(self, draft: Draft, ids: Sequence[int]) -> bool:
        """Whether another change came first, so that no further attempt can succeed."""
        snapshot = self._store.snapshot()
        for id in ids:
            stored = self._catalog.get(snapshot, id)
            if stored is None or job_of(stored):
                return True
            try:
                check_made_from(draft, stored)
            except RetryError:
                return True
        return False
