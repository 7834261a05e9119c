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

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
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
from tenure.base.timestamp import ZERO_AT, Timestamp, to_text
from tenure.catalog.changes.publisher import Publisher, Settled, check_made_from
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import AnyDescriptor, DescriptorState, Table, job_of, replace
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.catalog.descriptors.elements import finished, first_stage, is_finished
from tenure.catalog.descriptors.ids import DescriptorIds
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.catalog.leases.lease_scheme import LeaseScheme
from tenure.catalog.leases.lease_waits import LeaseWaiter
from tenure.catalog.leases.wait_records import AwaitedDescriptor
from tenure.cluster.jobs.job_states import TERMINAL, JobState
from tenure.cluster.jobs.job_table import Fence, JobControl, JobProgress, Jobs
from tenure.cluster.jobs.job_waits import await_jobs, failure_of, outcome_of
from tenure.cluster.sessions.liveness import NodeSession
from tenure.kv.keys import USER_TABLES, Span
from tenure.kv.records import pack
from tenure.kv.store import Store
from tenure.schema_change.in_transaction import InTransaction, JobReservations, check_possible
from tenure.schema_change.job import KIND, ChangePayload, is_taken_back
from tenure.schema_change.stages import Work, WorkKind, can_be_undone, can_fail, with_job
from tenure.schema_change.temporary_changes import settle_temporary
from tenure.schema_change.walk import Reading, Walk, unprotected
from tenure.schema_change.work import Worker

WHOLE = 0
"""No descriptor has this id, so only leases on the whole catalog cover it: the newest of each node."""

ALONE_ROWS_MAX = 1_000
"""A table of so few rows is changed in the declaring transaction itself, if no other node uses it."""

HOLD_SECONDS = 0.05
"""How long a commit waits for its node's own transactions before it uses several stages."""

JOB_POLL_SECONDS = 30.0
"""How long a statement waits for its job at most before it looks without a signal."""

CANCEL_SECONDS = 0.25
"""The time between two checks whether it was canceled, if it can be."""


UNDONE_SECONDS = 10.0
"""How long a failed transaction waits at most until its job has reversed its change."""


class Requester(NamedTuple):
    """The user and statement that requested a change, for the job's record."""

    owner: str = ""
    description: str = ""
    check: Callable[[], None] = lambda: None
    """Called while it waits, and until a commit is sent; raises to stop."""
    committed: Callable[[], None] = lambda: None
    """Called when the transaction is committed, and only its job is still waited for."""


NOBODY = Requester()


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

    def fresh_id(self) -> int:
        """The id of a new descriptor; never reused."""
        return self._ids.next()

    def walk(self, ids: Sequence[int], *, worker: Worker | None = None, **how: object) -> Walk:
        walked = self._store, self._catalog, self._publisher, worker or self._worker, ids
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
        declared = list(use.draft.declared.values())
        ids = self._publisher.affected(declared)
        self._check_idle(use, ids, requester)
        use.give_up(ids)
        staged = [each for each in declared if not is_finished(each) and not use.draft.is_new(each.id)]
        check_possible(each for each in staged if self._worker.has_written(use.txn, each.id))
        waiter = LeaseWaiter(use.started_at, use, requester.check)
        if staged or any(map(use.draft.is_emptied, use.draft.declared)) or _refers_to_others(use, declared):
            commit_at = None if _fills_from_new_sequence(use, declared) else self._alone(use, declared, ids)
            if commit_at is not None:
                return commit_at
            if self._can_be_undone_by_job(use, declared):
                return self._by_job(use, declared, ids, requester, timeout)
            return self._by_children(use, declared, requester, timeout)
        settled = self._publisher.settle(ids, waiter, timeout=timeout)
        self._complete_own(use)
        return self._publish_now(use, [_made_from(use, finished(each)) for each in declared], settled)

    def _check_idle(self, use: CatalogUse, ids: Sequence[int], requester: Requester) -> None:
        """A change waits for one that is under way, and then starts over on its result."""
        snapshot = self._store.snapshot()
        for id in ids:
            stored = self._catalog.get(snapshot, id)
            if stored is not None:
                self._check_made_from(use, stored)
            if stored is not None and job_of(stored):
                self.await_change(use, stored, requester)

    def await_change(
        self, use: CatalogUse, changing: AnyDescriptor, requester: Requester = NOBODY
    ) -> NoReturn:
        """Waits for the job that changes a descriptor; the caller then starts over."""
        use.close()  # the other change may wait for what this one uses
        try:
            self._await_end(job_of(changing), requester)
        except OutcomeUnknown as error:  # of the other change: nothing of this one was done
            raise Unavailable(str(error)) from error
        self._catch_up([changing])
        raise RetryError(f'"{changing.name}" was being changed by job {job_of(changing)}')

    def _check_made_from(self, use: CatalogUse, stored: AnyDescriptor) -> None:
        try:
            check_made_from(use.draft, stored)
        except RetryError:
            self._catch_up([stored])  # so that the next attempt does not start from the same old version
            raise

    # ── no other users ──────────────────────────────────────────────────────────────────────────

    def _alone(
        self, use: CatalogUse, declared: Sequence[AnyDescriptor], ids: Sequence[int]
    ) -> Timestamp | None:
        """All stages in one commit, if no other node's lease and no transaction here is in the way."""
        with self._leases.hold(ids, timeout=HOLD_SECONDS) as is_free:
            if not (is_free and self._publisher.is_alone(self._store.snapshot(), ids)):
                return None
            if not all(self._is_small(each) for each in declared if isinstance(each, Table)):
                return None
            final = [_made_from(use, finished(each)) for each in declared]
            with self._leases.freeze_rows():
                use.refresh()
                settled = self._publisher.alone(use.txn, ids)
                for descriptor in declared:
                    self._complete(use, descriptor)
                self._complete_own(use)
                session, commit_at = self._publish(use, final, settled)
            return self._published(use, final, session, commit_at)

    def _is_small(self, table: Table) -> bool:
        if is_finished(table):
            return True
        store, span = self._store, self._store.keyspace.index_span(table.id, table.primary)
        base = store.bases.of(store.keyspace.head(table.id, table.primary))
        if base is None:
            return sum(1 for _ in store.snapshot().scan(span, limit=ALONE_ROWS_MAX + 1)) <= ALONE_ROWS_MAX
        # No file is read for this: a damaged one must not keep the table from being dropped.
        newer = store.engine.spread(span.lo, span.hi, base.flushed_at, ALONE_ROWS_MAX)
        return base.rows_within(span) + newer.keys <= ALONE_ROWS_MAX

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
        self, use: CatalogUse, descriptors: Sequence[AnyDescriptor], settled: Settled
    ) -> tuple[NodeSession, Timestamp]:
        """Publishes with the transaction's own commit, which carries this node's next lease."""
        # The roles first: a new owner has to be there, and the privileges of a column that goes are deleted.
        self._catalog.roles.publish(use.txn, use.draft.records)
        self._publisher.publish(use.txn, descriptors, settled)
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
                self._await_known(commit_at)
        return commit_at

    def _await_known(self, commit_at: Timestamp, check: Callable[[], None] = lambda: None) -> None:
        """Returns when every other node has a lease from after that; it may still pin older versions."""
        self._publisher.await_gone([AwaitedDescriptor(WHOLE, commit_at)], LeaseWaiter(commit_at, check=check))

    # ── other nodes ─────────────────────────────────────────────────────────────────────────────

    def _by_job(
        self,
        use: CatalogUse,
        declared: Sequence[AnyDescriptor],
        ids: Sequence[int],
        requester: Requester,
        timeout: float | None,
    ) -> Timestamp:
        settled = self._publisher.settle(
            ids, LeaseWaiter(use.started_at, use, requester.check), timeout=timeout
        )
        payload = pack(ChangePayload(tuple(sorted(each.id for each in declared))))
        job = self._jobs.create(
            use.txn, kind=KIND, payload=payload, owner=requester.owner, description=requester.description
        )
        stages = [_made_from(use, with_job(first_stage(_hidden(use, each)), job.id)) for each in declared]
        commit_at = self._publish_now(use, stages, settled)
        requester.committed()
        with outcome_of(job.id):
            self._await_job(job.id, declared, requester)
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
        self, use: CatalogUse, declared: Sequence[AnyDescriptor], requester: Requester, timeout: float | None
    ) -> Timestamp:
        use.refresh()  # a transaction that has lost already must not publish its change
        waiter = LeaseWaiter(use.started_at, use, requester.check)
        fence = self._in_transaction.begin(
            use, declared, waiter, owner=requester.owner, description=requester.description, timeout=timeout
        )
        try:
            last, commit_at = self._with_children(use, declared, fence, waiter, timeout)
        except TenureError as error:
            self._in_transaction.over(fence.job)
            # Those who wait for its locks may be in the way of the job: they go first after a deadlock.
            if not isinstance(error, OutcomeUnknown | StoreError | SessionLost | DeadlockDetected):
                self._await_undone(use, fence.job, declared, requester)
            raise
        finally:
            self._in_transaction.over(fence.job)
        if not all(map(is_finished, last)):
            with outcome_of(fence.job):
                self._await_job(fence.job, declared, requester)
        return commit_at

    def _with_children(
        self,
        use: CatalogUse,
        declared: Sequence[AnyDescriptor],
        fence: Fence,
        waiter: LeaseWaiter,
        timeout: float | None,
    ) -> tuple[Sequence[AnyDescriptor], Timestamp]:
        prepared = self._in_transaction.prepare(use, declared, fence, waiter, timeout=timeout)
        # All waits are over before the refresh: what it reads from then on changes seldom.
        ids = self._publisher.affected(prepared.last)
        settled = self._publisher.settle(ids, waiter, timeout=timeout)
        self._in_transaction.complete(use, declared, prepared)
        return prepared.last, self._publish_now(use, prepared.last, settled)

    def _await_undone(
        self, use: CatalogUse, job: int, declared: Sequence[AnyDescriptor], requester: Requester
    ) -> None:
        """An error is reported when nothing of the change is left that others would have to obey, or after a
        while.
        """
        use.close()  # the job that reverses it waits for what this one uses
        check = self._while_in_time(requester)
        with suppress(TenureError):
            self._await_end(job, requester._replace(check=check))
            self._make_known(declared, check)

    def _while_in_time(self, requester: Requester) -> Callable[[], None]:
        env = self._store.env
        until = env.monotonic() + UNDONE_SECONDS

        def check() -> None:
            requester.check()
            if env.monotonic() > until:
                raise RetryError("it takes long")

        return check

    def _await_job(self, id: int, declared: Sequence[AnyDescriptor], requester: Requester) -> None:
        """Returns when a job has succeeded; raises its error otherwise.

        A statement that stops waiting is told that the job goes on.
        """
        try:
            control = self._await_end(id, requester)
        except OutcomeUnknown:
            raise
        except TenureError as error:
            error.detail = error.detail or f"The change is committed; job {id} goes on with it."
            raise
        progress = self._jobs.progress(self._store.snapshot(), id)
        if control is not None and not _is_public(control, progress):
            with suppress(TenureError):
                self._make_known(declared, self._while_in_time(requester))
            raise failure_of(id, control)
        self._make_known(declared)

    def _make_known(
        self, declared: Sequence[AnyDescriptor], check: Callable[[], None] = lambda: None
    ) -> None:
        """Returns when all nodes use the versions that a job has published of these."""
        self._catch_up(declared)
        self._await_known(self._modified_at(declared), check)

    def _catch_up(self, declared: Sequence[AnyDescriptor]) -> None:
        """Makes this node's next statement see the change, though another node ran the job."""
        newest_at = self._modified_at(declared)
        if newest_at > self._leases.newest_at():
            self._leases.renew()

    def _modified_at(self, declared: Sequence[AnyDescriptor]) -> Timestamp:
        snapshot = self._store.snapshot()
        stored = (self._catalog.get(snapshot, each.id) for each in declared)
        return max((each.modified_at for each in stored if each is not None), default=ZERO_AT)

    def _await_end(self, id: int, requester: Requester) -> JobControl | None:
        """The record of a job that has ended; None if it was deleted."""
        seconds = JOB_POLL_SECONDS if requester.check is NOBODY.check else CANCEL_SECONDS
        snapshot = await_jobs(
            self._store, self._jobs, [id], TERMINAL.__contains__, check=requester.check, look_seconds=seconds
        )
        return self._jobs.control(snapshot, id)


@contextmanager
def _after_commit(commit_at: Timestamp) -> Iterator[None]:
    """An error in here comes after the commit, so it must not look like a refusal that can be repeated."""
    try:
        yield
    except (RetryError, StoreError, SessionLost) as error:
        raise OutcomeUnknown(
            f"the change was committed at {to_text(commit_at)}, but what came of it was not seen: {error}"
        ) from error


def _made_from(use: CatalogUse, descriptor: AnyDescriptor) -> AnyDescriptor:
    return replace(descriptor, version=use.draft.made_from[descriptor.id])


def _fills_from_new_sequence(use: CatalogUse, declared: Sequence[AnyDescriptor]) -> bool:
    """Whether rows get values of a new sequence, which has to be published before them."""
    return any(
        isinstance(table, Table)
        and not use.draft.is_new(table.id)
        and any(
            column.computed is not None and any(map(use.draft.is_new, column.computed.sequences))
            for column in table.columns
        )
        for table in declared
    )


def _refers_to_others(use: CatalogUse, declared: Sequence[AnyDescriptor]) -> bool:
    """Whether a new table refers to an existing one, whose writers must know before rows come."""
    return any(
        isinstance(each, Table)
        and use.draft.is_new(each.id)
        and any(not use.draft.is_new(key.target) for key in each.foreign_keys)
        for each in declared
    )


def _hidden(use: CatalogUse, descriptor: AnyDescriptor) -> AnyDescriptor:
    """A new table that refers to others is shown when their writers know of it.

    A new sequence is shown with its user; until then it can be reversed.
    """
    if not use.draft.is_new(descriptor.id):
        return descriptor
    is_waiting = isinstance(descriptor, Table) and descriptor.foreign_keys
    if is_waiting or isinstance(descriptor, SequenceDescriptor):
        return replace(descriptor, state=DescriptorState.ADDING)
    return descriptor


def _is_public(control: JobControl, progress: JobProgress) -> bool:
    """Whether a change that has ended became public; one that was canceled too late did."""
    is_too_late = control.state is JobState.REVERT_FAILED and not is_taken_back(progress.data)
    return is_too_late or control.state is JobState.SUCCEEDED
