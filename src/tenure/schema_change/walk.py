"""Walking a change: wait for one version, do the work, publish the next, until it is finished.

The next stage is computed from the stored descriptors alone, so a walk can be stopped anywhere and continued
by any node. All descriptors of a change step together: they become public together.

An index of many rows is filled elsewhere: `Fill` is called first, and only the rest is done by transactions.
A walk inside a transaction has no `Fill`: it works in short transactions alone.

Walk: `schema_change.job` walks in transactions fenced by its run, `schema_change.in_transaction` in
children of the transaction that declared the change.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from tenure.base.errors import SnapshotTooOld
from tenure.base.timestamp import Timestamp
from tenure.catalog.changes.publisher import Publisher
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    DescriptorState,
    Table,
    is_dropped,
    replace,
)
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.catalog.descriptors.elements import advance, is_finished, is_prepared, reverse
from tenure.catalog.leases.lease_waits import LeaseWaiter
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.schema_change.stages import Work, WorkKind, with_job, without_strays, work_before
from tenure.schema_change.work import Transact, Worker


class WorkProgress(Protocol):
    """Stores how far each piece of work is, so that the next run continues from there."""

    def start_of(self, work: Work) -> bytes | None:
        """Where to continue; None if it is done."""
        ...

    def save(self, work: Work, following: bytes | None) -> None: ...

    def told(self, work: Work, fraction: float, status: str) -> None:
        """Shows how far a piece of work is that starts over if it is stopped."""
        ...

    def filled(self, work: Work) -> None:
        """Notes that an index was filled and proved unique: one is not known without the other."""
        ...

    def turned(self, txn: Transaction) -> None:
        """Notes, in the very transaction that does it, that the change is being reversed."""
        ...


class UntrackedProgress:
    """For work that is not resumed: it starts at the beginning."""

    def start_of(self, work: Work) -> bytes | None:
        return b""

    def save(self, work: Work, following: bytes | None) -> None:
        return None

    def told(self, work: Work, fraction: float, status: str) -> None:
        return None

    def filled(self, work: Work) -> None:
        return None

    def turned(self, txn: Transaction) -> None:
        return None


class Fill(Protocol):
    """Indexes of many rows, in the lake; under the fence of a job."""

    def fill(self, table: Table, index: int, tell: Callable[[float, str], None]) -> bool:
        """Fills an index and proves it unique; False if transactions must do it."""
        ...

    def discard(self, table: int, index: int) -> bool:
        """Removes the files that `fill` has made of a dropped index; True if no entries are left to be
        deleted.
        """
        ...


Reading = Callable[[Snapshot, Sequence[Table]], AbstractContextManager[None]]
"""Keeps what a snapshot shows of tables, for as long as it is read."""


def unprotected(snapshot: Snapshot, tables: Sequence[Table]) -> AbstractContextManager[None]:
    return nullcontext()


RESTARTS_MAX = 10
"""How often a piece of work goes on at a newer time: a proof whose snapshot cannot be protected must end."""


class Walk:
    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        publisher: Publisher,
        worker: Worker,
        ids: Sequence[int],
        *,
        job: int,
        transact: Transact,
        waiter: LeaseWaiter,
        progress: WorkProgress | None = None,
        fill: Fill | None = None,
        view: Callable[[Snapshot], Snapshot] = lambda snapshot: snapshot,
        reading: Reading = unprotected,
        worth_locking: Callable[[Sequence[Table]], list[Table]] = lambda tables: [],
        timeout: float | None = None,
    ) -> None:
        """`view` makes the source of a proof from the committed rows: see `schema_change.in_transaction`.
        `reading` protects what is read for long. `worth_locking` are the tables that are locked while work
        on them is done.
        """
        self._store = store
        self._catalog = catalog
        self._publisher = publisher
        self._worker = worker
        self._ids = ids
        self._job = job
        self._transact = transact
        self._waiter = waiter
        self._progress = progress or UntrackedProgress()
        self._fill = fill
        self._view = view
        self._reading = reading
        self._worth_locking = worth_locking
        self._has_locked = False
        """Whether this walk has locked a table: what was read of it before is not its newest version."""
        self._timeout = timeout
        self._filled_since: dict[tuple[int, int], Timestamp] = {}
        """The indexes that this walk has filled from the first row to the last, with B of each."""

    def to_the_end(self) -> None:
        """Walks every descriptor to its end."""
        while pending := self._due():
            self.work(pending)
            self._publish(pending, advance)

    def _due(self) -> list[AnyDescriptor]:
        """The descriptors that take the next step: a new sequence waits until its user is shown with it."""
        pending = self._pending(lambda descriptor: not is_finished(descriptor))
        if not any(map(_is_unprepared, pending)):
            return pending
        return [each for each in pending if not _is_new_sequence(each)]

    def until_prepared(self) -> None:
        """Walks as far as readers notice nothing: additions are written by all nodes, filled and proved."""
        while pending := self._pending(_is_unprepared):
            self._publish(pending, advance)
        self.work(self.own())

    def turn_round(self) -> bool:
        """Publishes the reversed change, to be walked like any other; False if there is none, or none is
        left.
        """
        pending = self._pending(lambda descriptor: reverse(descriptor) != descriptor)
        if pending:
            self._publish(pending, reverse, also=self._progress.turned)
        return bool(pending)

    def marked(self) -> list[AnyDescriptor]:
        """The descriptors that were opened for this change, and that nothing else of it is left of."""
        return [each for each in self.own() if getattr(each, "job", 0) == self._job and is_finished(each)]

    def unmark(self) -> None:
        """Takes the marks away that a transaction has set which did not commit."""
        if marked := self.marked():
            self._publish(marked, lambda descriptor: descriptor)

    def forget_references(self) -> None:
        """Removes the inbound of foreign keys that did not become public."""
        pending = self.with_strays()
        if pending:
            self._publish(pending, self._without_strays)

    def with_strays(self) -> list[AnyDescriptor]:
        """The tables that have inbound of absent foreign keys."""
        return [each for each in self.descriptors() if self._without_strays(each) != each]

    def _without_strays(self, descriptor: AnyDescriptor) -> AnyDescriptor:
        snapshot = self._store.snapshot()
        return without_strays(descriptor, lambda id: self._catalog.get(snapshot, id))

    def work(self, descriptors: Sequence[AnyDescriptor]) -> None:
        """Does the work that is due before the next step, once no node uses an older version."""
        tables = [each for each in descriptors if isinstance(each, Table)]
        due = [(table, work) for table in tables for work in work_before(table)]
        if not due:
            return
        settled = self._settle(descriptors)
        if long := self._worth_locking([table for table in tables if work_before(table)]):
            versions = [replace(table, is_locked=True) for table in long]
            self._transact(lambda txn: self._publisher.publish(txn, versions, settled))
            self._has_locked = True
        for table, work in due:
            self._do(table, work)

    def _do(self, table: Table, work: Work) -> None:
        start = self._progress.start_of(work)
        if start is None or self._is_done_in_lake(table, work, start):
            return
        if work.kind is WorkKind.PROVE_UNIQUE and self._is_proved_by_fill(table, work):
            self._progress.save(work, None)
            return
        for restarts_left in reversed(range(RESTARTS_MAX + 1)):
            try:
                return self._go_on(table, work, start)
            except SnapshotTooOld:
                if not restarts_left:
                    raise
            start = self._progress.start_of(work) or b""

    def _go_on(self, table: Table, work: Work, start: bytes) -> None:
        """Does a piece of work from where it is; raises SnapshotTooOld if this process stood still for longer
        than the ttl, as then nothing has protected what it reads.
        """
        # Read after the wait: from here on every writer keeps the additions up to date.
        snapshot = self._store.snapshot()
        source = self._view(snapshot)
        with self._reading(snapshot, [table, *self._targets(snapshot, table)]):
            for following in self._worker.resume(work, table, source, self._transact, start):
                self._waiter.check()
                self._progress.save(work, following)
        if work.kind is WorkKind.FILL_INDEX and not start:
            self._filled_since[work.table, work.element] = snapshot.at

    def _targets(self, snapshot: Snapshot, table: Table) -> list[Table]:
        """The tables that its foreign keys refer to."""
        found = (self._catalog.get(snapshot, key.target) for key in table.foreign_keys)
        return [each for each in found if isinstance(each, Table)]

    def _is_proved_by_fill(self, table: Table, work: Work) -> bool:
        """Whether an index is known to be unique: nobody has written to the table since its fill began.

        The fill has given each row its entry, and each entry was absent, or the row's own, before. A writer
        could have taken an entry from another row meanwhile: only the proof finds that.
        """
        since_at = self._filled_since.get((work.table, work.element))
        rows = self._store.keyspace.index_span(work.table, table.primary)
        return since_at is not None and not self._store.has_changed(rows, since_at)

    def _is_done_in_lake(self, table: Table, work: Work, start: bytes) -> bool:
        if self._fill is None:
            return False
        if work.kind is WorkKind.EMPTY_INDEX:
            return self._fill.discard(work.table, work.element)
        if work.kind is not WorkKind.FILL_INDEX or start:
            return False
        if not self._fill.fill(table, work.element, lambda *told: self._progress.told(work, *told)):
            return False
        self._progress.filled(work)
        return True

    def _publish(
        self,
        pending: Sequence[AnyDescriptor],
        step: Callable[[AnyDescriptor], AnyDescriptor],
        *,
        also: Callable[[Transaction], None] = lambda txn: None,
    ) -> None:
        if self._has_locked or any(isinstance(each, Table) and each.is_locked for each in pending):
            pending = self._unlocked({each.id for each in pending})
        descriptors = [with_job(step(descriptor), self._job) for descriptor in pending]
        settled = self._settle(descriptors)

        def publish(txn: Transaction) -> None:
            self._publisher.publish(txn, descriptors, settled)
            also(txn)

        self._transact(publish)

    def _unlocked(self, ids: set[int]) -> list[AnyDescriptor]:
        """Unlocks what this job has locked during its work; returns all of these as they are now."""
        found = [each for each in self.descriptors() if each.id in ids]
        locked = [each for each in found if isinstance(each, Table) and each.is_locked and self._is_own(each)]
        if not locked:
            return found
        versions = [replace(table, is_locked=False) for table in locked]
        settled = self._settle(versions)
        self._transact(lambda txn: self._publisher.publish(txn, versions, settled))
        return [each for each in self.descriptors() if each.id in ids]

    def _settle(self, descriptors: Sequence[AnyDescriptor]) -> dict[int, int]:
        # All of the change, not only what steps now: a foreign key relies on its target's writers too.
        ids = {*self._publisher.affected(descriptors), *self._ids}
        return dict(self._publisher.settle(ids, self._waiter, timeout=self._timeout))

    def _pending(self, is_pending: Callable[[AnyDescriptor], bool]) -> list[AnyDescriptor]:
        """Those of its descriptors for which the predicate holds."""
        return [descriptor for descriptor in self.own() if is_pending(descriptor)]

    def own(self) -> list[AnyDescriptor]:
        """The descriptors of this change: tables and types only where its job is named."""
        return [each for each in self.descriptors() if self._is_own(each)]

    def _is_own(self, descriptor: AnyDescriptor) -> bool:
        return getattr(descriptor, "job", self._job) == self._job

    def descriptors(self) -> list[AnyDescriptor]:
        snapshot = self._store.snapshot()
        found = (self._catalog.get(snapshot, id) for id in self._ids)
        return [descriptor for descriptor in found if descriptor is not None]


def _is_unprepared(descriptor: AnyDescriptor) -> bool:
    return isinstance(descriptor, Table) and not is_dropped(descriptor) and not is_prepared(descriptor)


def _is_new_sequence(descriptor: AnyDescriptor) -> bool:
    return isinstance(descriptor, SequenceDescriptor) and descriptor.state is DescriptorState.ADDING
