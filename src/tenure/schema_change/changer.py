"""Committing a transaction that changes the catalog.

    declaration                      other users            how it commits
    one version of each, no more     any                    settle, then its own commit
    several stages                   none                   held here: all stages in its own commit
    several stages, no rows          other nodes            first stage and a job; the job walks
    several stages and rows          other nodes            children walk, its own commit ends it

The transaction belongs to the caller until here; a failure leaves nothing of it. A commit carries this node's
next lease, so that a change costs one durable commit where no other node uses the objects. A change returns
when every other node knows of it.

Invariant (ddl-atomic): of a transaction's declared changes and its rows, all or nothing is public.

Walk: SQL calls `commit` instead of committing by the lease alone; this calls `in_transaction` and `walk`, and
creates the job.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, NoReturn

from tenure.base.errors import (
    DeadlockDetected,
    OutcomeUnknown,
    RetryError,
    SessionLost,
    StoreError,
    TenureError,
    Unavailable,
)
from tenure.base.timestamp import Timestamp, to_text
from tenure.catalog.changes.publisher import Publisher, Settled, check_made_from
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import AnyDescriptor, Table, job_of, replace
from tenure.catalog.descriptors.drafts import Draft
from tenure.catalog.descriptors.elements import finished, first_stage, is_finished
from tenure.catalog.descriptors.equal_versions import is_row_equal
from tenure.catalog.descriptors.ids import DescriptorIds
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.catalog.leases.lease_scheme import LeaseScheme
from tenure.catalog.leases.lease_waits import LeaseWaiter
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import Fence, Jobs
from tenure.cluster.jobs.job_waits import outcome_of
from tenure.cluster.sessions.liveness import NodeSession
from tenure.kv.keys import USER_TABLES, Span
from tenure.kv.records import pack
from tenure.kv.store import Store
from tenure.schema_change.declared_changes import (
    NOBODY,
    Requester,
    fills_from_new_sequence,
    hidden,
    made_from,
    refers_to_others,
)
from tenure.schema_change.in_transaction import InTransaction, JobReservations, check_possible
from tenure.schema_change.job import KIND, ChangePayload
from tenure.schema_change.opening import Opening
from tenure.schema_change.outcomes import ChangeOutcomes
from tenure.schema_change.stage_locks import StageLocks, has_at_most
from tenure.schema_change.stages import Work, WorkKind, can_be_undone, can_fail, with_job
from tenure.schema_change.temporary_changes import settle_temporary
from tenure.schema_change.walk import Reading, Walk, unprotected
from tenure.schema_change.work import Worker

ALONE_ROWS_MAX = 1_000
"""A table of so few rows is changed in the declaring transaction itself, if no other node uses it."""

HOLD_SECONDS = 0.05
"""How long a commit waits for its node's own transactions before it uses several stages."""


class HowToCommit(NamedTuple):
    """What all ways to commit a change have in common."""

    ids: Sequence[int]
    """The descriptors that get new versions."""
    waiter: LeaseWaiter
    requester: Requester
    timeout: float | None


class SchemaChanger:
    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        leases: LeaseScheme,
        publisher: Publisher,
        worker: Worker,
        jobs: Jobs,
        session: Callable[[], NodeSession],
        *,
        reservations: JobReservations,
        reading: Reading = unprotected,
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._leases = leases
        self._publisher = publisher
        self._worker = worker
        self._jobs = jobs
        self._session = session
        self._reading = reading
        self._ids = DescriptorIds(store, catalog)
        keyspace = store.keyspace
        self._user_tables = Span(keyspace.table_span(USER_TABLES).lo, keyspace.all().hi)
        self._in_transaction = InTransaction(
            catalog, publisher, worker, jobs, session, self.walk, reservations
        )
        self._stage_locks = StageLocks(store, catalog, jobs)
        self._outcomes = ChangeOutcomes(store, catalog, leases, publisher, jobs)
        self._opening = Opening(store, catalog, publisher, jobs, session, reservations)

    def fresh_id(self) -> int:
        """The id of a new descriptor; never reused."""
        return self._ids.next()

    def walk(
        self,
        ids: Sequence[int],
        *,
        worker: Worker | None = None,
        locks_long_stages: bool = False,
        **how: object,
    ) -> Walk:
        walked = self._store, self._catalog, self._publisher, worker or self._worker, ids
        if locks_long_stages:
            how["worth_locking"] = self._stage_locks.worth_locking
        return Walk(*walked, reading=self._reading, **how)  # type: ignore[arg-type]

    def commit(
        self, use: CatalogUse, *, requester: Requester = NOBODY, timeout: float | None = None
    ) -> Timestamp:
        """Commits the transaction's rows and its declared changes; returns when all of it is public."""
        if not use.draft:
            return use.commit(requester.check)
        try:
            temporary = settle_temporary(use, self._worker)
            commit_at = self._commit(use, requester, timeout) if use.draft else use.commit(requester.check)
            use.temporary = temporary
            return commit_at
        finally:
            use.close()

    def _commit(self, use: CatalogUse, requester: Requester, timeout: float | None) -> Timestamp:
        use.check()
        ids = self._publisher.affected(use.draft.declared.values())
        stored = self._check_idle(use, ids, requester)
        opening = self._opening.needed(use.draft, stored)
        _unlock_changed(use.draft, stored)
        ids = sorted({*ids, *opening})
        use.give_up(ids)
        declared = list(use.draft.declared.values())
        staged = [each for each in declared if not is_finished(each) and not use.draft.is_new(each.id)]
        check_possible(each for each in staged if self._worker.has_written(use.txn, each.id))
        emptied = any(map(use.draft.is_emptied, use.draft.declared))
        is_staged = bool(staged) or emptied or refers_to_others(use, declared)
        if (is_staged or opening) and not fills_from_new_sequence(use, declared):
            commit_at = self._alone(use, ids, opening)
            if commit_at is not None:
                return commit_at
        waiter = LeaseWaiter(use.started_at, use, requester.check)
        how = HowToCommit(ids, waiter, requester, timeout)
        if not opening:
            return self._with_others(use, how, None, is_staged=is_staged)
        fence = self._opening.open(use, opening, waiter, requester, timeout=timeout)
        with self._undone_after_failure(use, how, fence):
            use.refresh()
            self._carry_all(use, ids)
            return self._with_others(use, how, fence, is_staged=is_staged)

    def _with_others(
        self, use: CatalogUse, how: "HowToCommit", fence: Fence | None, *, is_staged: bool
    ) -> Timestamp:
        """Commits while other nodes use the objects; `fence` is of the job that has opened them, if any."""
        declared = list(use.draft.declared.values())
        if is_staged and self._can_be_undone_by_job(use, declared):
            return self._by_job(use, declared, how, fence)
        if is_staged:
            return self._by_children(use, declared, how, fence)
        settled = self._publisher.settle(how.ids, how.waiter, timeout=how.timeout)
        self._complete_own(use)
        if fence is not None:
            self._jobs.step(use.txn, fence, JobState.SUCCEEDED)
        return self._publish_now(use, [_last_version(use, each) for each in declared], settled)

    def _check_idle(
        self, use: CatalogUse, ids: Sequence[int], requester: Requester
    ) -> dict[int, AnyDescriptor]:
        """A change waits for one that is under way, and then starts over on its result; returns what is
        stored.
        """
        snapshot = self._store.snapshot()
        found = {id: stored for id in ids if (stored := self._catalog.get(snapshot, id)) is not None}
        for stored in found.values():
            self._check_made_from(use, stored)
            if job_of(stored):
                self.await_change(use, stored, requester)
        return found

    def _carry_all(self, use: CatalogUse, ids: Sequence[int]) -> None:
        """Makes the changes ones of the versions that the transaction sees now."""
        found = {id: stored for id in ids if (stored := self._catalog.get(use.txn, id)) is not None}
        for stored in found.values():
            self._carry(use, stored)
        _unlock_changed(use.draft, found)

    def await_change(
        self, use: CatalogUse, changing: AnyDescriptor, requester: Requester = NOBODY
    ) -> NoReturn:
        """Waits for the job that changes a descriptor; the caller then starts over."""
        use.close()  # the other change may wait for what this one uses
        try:
            self._outcomes.await_end(job_of(changing), requester)
        except OutcomeUnknown as error:  # of the other change: nothing of this one was done
            raise Unavailable(str(error)) from error
        self._outcomes.catch_up([changing])
        raise RetryError(f'"{changing.name}" was being changed by job {job_of(changing)}')

    def _check_made_from(self, use: CatalogUse, stored: AnyDescriptor) -> None:
        try:
            self._carry(use, stored)
        except RetryError:
            # The next attempt must not start from the same old version.
            self._outcomes.catch_up([stored])
            raise

    def _carry(self, use: CatalogUse, stored: AnyDescriptor) -> None:
        """Carries the change over to the stored version, if that equals the one that it was made from."""
        check_made_from(use.draft, stored)
        if use.draft.made_from.get(stored.id, stored.version) != stored.version:
            use.draft.carry(stored, self._base(use, stored))
            use.refresh()  # its commit is to see the version that the change is one of now

    def _base(self, use: CatalogUse, stored: AnyDescriptor) -> AnyDescriptor:
        """The version that a change was made from."""
        declared = use.draft.declared.get(stored.id)
        if declared is None:
            return stored
        base = self._catalog.get(self._store.snapshot(declared.modified_at), stored.id)
        assert base is not None, "a change of a descriptor that has never been there"
        return base

    # ── no other users ──────────────────────────────────────────────────────────────────────────

    def _alone(self, use: CatalogUse, ids: Sequence[int], opening: Sequence[int]) -> Timestamp | None:
        """All stages in one commit, if no other node's lease and no transaction here is in the way.

        What would have to be opened is unlocked by the very commit: nobody shares it.
        """
        with self._leases.hold(ids, timeout=HOLD_SECONDS) as is_free:
            if not (is_free and self._publisher.is_alone(self._store.snapshot(), ids)):
                return None
            tables = (each for each in use.draft.declared.values() if isinstance(each, Table))
            if not all(map(self._is_small, tables)):
                return None
            with self._leases.freeze_rows():
                use.refresh()
                settled = self._publisher.alone(use.txn, ids)
                if opening:
                    self._carry_all(use, ids)
                for descriptor in use.draft.declared.values():
                    self._complete(use, descriptor)
                self._complete_own(use)
                final = [_last_version(use, each) for each in use.draft.declared.values()]
                others = self._opening.unlocked(use.txn, {*opening} - use.draft.declared.keys())
                session, commit_at = self._publish(use, [*final, *others], settled, is_alone=True)
            return self._published(use, final, session, commit_at)

    def _is_small(self, table: Table) -> bool:
        return is_finished(table) or has_at_most(self._store, table, ALONE_ROWS_MAX)

    def _complete(self, use: CatalogUse, descriptor: AnyDescriptor) -> None:
        """Does all the work between the stages in the transaction itself."""
        if not isinstance(descriptor, Table) or use.draft.has_own_rows(descriptor.id):
            return
        worker = self._worker.over(use.draft.of_own_rows())
        worker.complete_stages(use.txn, descriptor, self._is_left)

    def _is_left(self, work: Work) -> bool:
        """Whether a dropped index is left as it is, as `walk.Fill.discard` says: it has files.

        They are for readers of the past and not read here: damage is no reason to keep the index.
        """
        if work.kind is not WorkKind.EMPTY_INDEX:
            return False
        head = self._store.keyspace.head(work.table, work.element)
        return self._store.bases.of(head) is not None

    def _complete_own(self, use: CatalogUse) -> None:
        """A table created or emptied in this very transaction may have got rows before its indexes."""
        self._worker.over(use.draft.of_own_rows()).complete_own(use.txn, use.draft)

    def _publish_now(
        self, use: CatalogUse, descriptors: Sequence[AnyDescriptor], settled: Settled
    ) -> Timestamp:
        with self._leases.freeze_rows():
            session, commit_at = self._publish(use, descriptors, settled)
        return self._published(use, descriptors, session, commit_at)

    def _publish(
        self,
        use: CatalogUse,
        descriptors: Sequence[AnyDescriptor],
        settled: Settled,
        *,
        is_alone: bool = False,
    ) -> tuple[NodeSession, Timestamp]:
        """Publishes with the transaction's own commit, which carries this node's next lease."""
        # The roles first: a new owner has to be there, and the privileges of a column that goes are deleted.
        self._catalog.roles.publish(use.txn, use.draft.records)
        self._publisher.publish(use.txn, descriptors, settled, is_alone=is_alone)
        session = self._leases.write_next_lease(use.txn)
        return session, use.commit()

    def _published(
        self,
        use: CatalogUse,
        descriptors: Sequence[AnyDescriptor],
        session: NodeSession,
        commit_at: Timestamp,
    ) -> Timestamp:
        """Puts the carried lease into use; a change returns when all nodes know of it."""
        with _after_commit(commit_at):
            self._leases.install(commit_at, session)
            if all(map(is_finished, descriptors)):
                self._outcomes.await_known(commit_at)
        return commit_at

    # ── other nodes ─────────────────────────────────────────────────────────────────────────────

    def _by_job(
        self, use: CatalogUse, declared: Sequence[AnyDescriptor], how: "HowToCommit", fence: Fence | None
    ) -> Timestamp:
        settled = self._publisher.settle(how.ids, how.waiter, timeout=how.timeout)
        if fence is None:
            payload = pack(ChangePayload(tuple(sorted(each.id for each in declared))))
            owner, description = how.requester.owner, how.requester.description
            job = self._jobs.create(
                use.txn, kind=KIND, payload=payload, owner=owner, description=description
            ).id
        else:
            job = fence.job
            self._in_transaction.hand_over(use.txn, fence)
        stages = [made_from(use, with_job(first_stage(hidden(use, each)), job)) for each in declared]
        commit_at = self._publish_now(use, stages, settled)
        if fence is not None:
            self._in_transaction.over(job)
        how.requester.committed()
        with outcome_of(job):
            self._outcomes.await_job(job, declared, how.requester)
        return commit_at

    def _can_be_undone_by_job(self, use: CatalogUse, declared: Sequence[AnyDescriptor]) -> bool:
        """Whether nothing of the transaction but its additions would stay, if rows contradicted those.

        An emptied table, or a name that goes to another object, stays closed to all others meanwhile, so that
        is not left to a job.
        """
        draft = use.draft
        closes = bool(draft.handed_over()) or any(map(draft.is_emptied, draft.declared))
        if closes or use.txn.written(self._user_tables):
            return False
        snapshot = self._store.snapshot()
        return not any(map(can_fail, declared)) or all(
            can_be_undone(self._catalog.get(snapshot, each.id), each) for each in declared
        )

    def _by_children(
        self, use: CatalogUse, declared: Sequence[AnyDescriptor], how: "HowToCommit", opened: Fence | None
    ) -> Timestamp:
        use.refresh()  # a transaction that has lost already must not publish its change
        fence = self._in_transaction.begin(
            use, declared, how.waiter, how.requester, timeout=how.timeout, opened=opened
        )
        with self._undone_after_failure(use, how, fence):
            last, commit_at = self._with_children(use, declared, fence, how)
        if not all(map(is_finished, last)):
            with outcome_of(fence.job):
                self._outcomes.await_job(fence.job, declared, how.requester)
        return commit_at

    @contextmanager
    def _undone_after_failure(self, use: CatalogUse, how: "HowToCommit", fence: Fence) -> Iterator[None]:
        """A failure in here leaves the change to its job; it is reported when the job has reversed it."""
        declared = list(use.draft.declared.values())
        try:
            yield
        except TenureError as error:
            self._in_transaction.over(fence.job)
            # Those who wait for its locks may be in the way of the job: they go first after a deadlock.
            if not isinstance(error, OutcomeUnknown | StoreError | SessionLost | DeadlockDetected):
                self._outcomes.await_undone(use, fence.job, declared, how.requester)
            raise
        finally:
            self._in_transaction.over(fence.job)

    def _with_children(
        self, use: CatalogUse, declared: Sequence[AnyDescriptor], fence: Fence, how: "HowToCommit"
    ) -> tuple[Sequence[AnyDescriptor], Timestamp]:
        prepared = self._in_transaction.prepare(use, declared, fence, how.waiter, timeout=how.timeout)
        # All waits are over before the refresh: what it reads from then on changes seldom.
        ids = self._publisher.affected(prepared.last)
        settled = self._publisher.settle(ids, how.waiter, timeout=how.timeout)
        self._in_transaction.complete(use, declared, prepared)
        return prepared.last, self._publish_now(use, prepared.last, settled)


@contextmanager
def _after_commit(commit_at: Timestamp) -> Iterator[None]:
    """An error in here comes after the commit, so it must not look like a refusal that can be repeated."""
    try:
        yield
    except (RetryError, StoreError, SessionLost) as error:
        raise OutcomeUnknown(
            f"the change was committed at {to_text(commit_at)}, but what came of it was not seen: {error}"
        ) from error


def _unlock_changed(draft: Draft, stored: Mapping[int, AnyDescriptor]) -> None:
    """A table that this transaction both changes and locks by hand is locked after the change."""
    for id, declared in list(draft.declared.items()):
        former = stored.get(id)
        if former is not None and isinstance(declared, Table) and not is_row_equal(former, declared):
            draft.put_declared(replace(declared, is_locked=False))


def _last_version(use: CatalogUse, declared: AnyDescriptor) -> AnyDescriptor:
    """The version after all steps; the mark of its change goes with it."""
    return made_from(use, with_job(finished(declared), 0))
