"""Taking tables offline for an import, and bringing them back; or closing them for writing, for a reset.

    locked or watched ──► unlocked, with the job's id
    public ──► offline, with the job's id ──► wait: no older version is in use ──► the import
                                                     │
    public, unchanged ◄── its failure, or cancel ────┴──► public, with the new base: one commit

The table is claimed for merging in the commit that takes it offline: no flush begins meanwhile, and one that
is under way is waited for first. So is a schema change, and another import.

Invariant (offline): while a table is offline for a job, no transaction writes it, and only that job brings it
back.

Walk: `importing.job` calls `prepare`, then `bring_back` in the transaction that publishes, or by `give_up`.
"""

from collections.abc import Sequence

from tenure.base.errors import RetryError, UndefinedTable
from tenure.bulk.lakes import Lake
from tenure.catalog.changes.publisher import Publisher, Settled
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    DescriptorState,
    Table,
    is_dropped,
    replace,
    unfinished,
)
from tenure.catalog.descriptors.locks import IsWatching, must_open, opened
from tenure.catalog.leases.lease_waits import LeaseWaiter
from tenure.cluster.jobs.runs import Run
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.pipeline.remote_handles import TableVersion

LOOK_SECONDS = 0.1
"""The pause between two looks at a table that another job works on."""


class ExistingTables:
    def __init__(
        self,
        lake: Lake,
        publisher: Publisher,
        run: Run,
        tables: Sequence[int],
        *,
        stay_readable: bool = False,
    ) -> None:
        """`stay_readable`: they are closed for writing only."""
        self._stay_readable = stay_readable
        self._lake = lake
        self._publisher = publisher
        self._run = run
        self._ids = tuple(tables)

    def prepare(self) -> Snapshot:
        """Returns the store as of a time from which on only the job writes the tables."""
        while not all(map(self._is_taken, self._tables())):
            if not (self._open() and self._try()):
                self._run.sleep(LOOK_SECONDS)
        self._settle()
        return self._lake.store.snapshot()

    def version(self, snapshot: Snapshot, table: int) -> TableVersion:
        found = self._lake.version(snapshot, table)
        assert found is not None, "it is offline for this job"
        return found

    def descriptor(self, snapshot: Snapshot, id: int) -> AnyDescriptor | None:
        return self._lake.catalog.get(snapshot, id)

    def _is_taken(self, table: Table) -> bool:
        is_closed = table.is_read_only if self._stay_readable else table.state is DescriptorState.OFFLINE
        return table.job == self._run.job.id and is_closed

    def _open(self) -> bool:
        """Unlocks tables that are locked, or that might be until they are offline: by a version of its own,
        which carries this job's mark.
        """
        tables, mine = self._tables(), self._run.job.id
        snapshot = self._lake.store.snapshot()
        is_watching: IsWatching = lambda job: self._lake.jobs.is_open(snapshot, job)  # noqa: E731
        due = [each for each in tables if each.job != mine and must_open(each, is_watching)]
        if not due or any(map(self._is_busy, tables)):
            return not due
        settled = self._settle()
        versions = [opened(each, mine, is_watching) for each in due]
        try:
            self._run.transact(lambda txn: self._publisher.publish(txn, versions, settled))
        except RetryError:
            return False
        return True

    def _try(self) -> bool:
        tables = self._tables()
        if any(self._is_busy(table) for table in tables):
            return False
        settled = self._settle()
        offline = [self._changed(table) for table in tables]

        def publish(txn: Transaction) -> bool:
            if any(self._is_merged(txn, table) or self._awaits_reset(txn, table) for table in tables):
                return False
            self._publisher.publish(txn, offline, settled)
            for table in tables:
                for index in table.indexes:
                    self._lake.merges.claim(txn, table.id, index.id, self._run.job.id)
            return True

        try:
            return self._run.transact(publish)
        except RetryError:
            return False  # changed meanwhile: it is checked again

    def _changed(self, table: Table) -> Table:
        if self._stay_readable:
            return replace(table, is_read_only=True, job=self._run.job.id)
        return replace(table, state=DescriptorState.OFFLINE, job=self._run.job.id)

    def _awaits_reset(self, txn: Transaction, table: Table) -> bool:
        """Whether a table that it refers to is reset: rows that are referred to may be about to go."""
        found = [self._lake.catalog.get(txn, each.target) for each in table.foreign_keys]
        return any(
            isinstance(each, Table) and each.is_read_only and each.id not in self._ids for each in found
        )

    def _tables(self) -> list[Table]:
        snapshot = self._lake.store.snapshot()
        found = [self._lake.catalog.get(snapshot, id) for id in self._ids]
        tables = [each for each in found if isinstance(each, Table) and not is_dropped(each)]
        if len(tables) != len(self._ids):
            raise UndefinedTable("the table was dropped before it could be imported into")
        return tables

    def _is_busy(self, table: Table) -> bool:
        mine = self._run.job.id
        return table.job not in (0, mine) or table.state is not DescriptorState.PUBLIC or unfinished(table)

    def _is_merged(self, txn: Transaction, table: Table) -> bool:
        holders = {self._lake.merges.holder(txn, table.id, index.id) for index in table.indexes}
        return any(self._lake.jobs.is_open(txn, each) for each in holders - {self._run.job.id})

    def _settle(self) -> Settled:
        waiter = LeaseWaiter(self._run.job.created_at, check=self._run.check)
        return self._publisher.settle(self._ids, waiter)

    # ── back ───────────────────────────────────────────────────────────────────────────────────

    def settled(self) -> Settled:
        """The proof for `bring_back`; waits if it must."""
        return self._settle()

    def bring_back(self, txn: Transaction, settled: Settled) -> None:
        """Makes the tables public again and releases their claims, in the caller's transaction."""
        found = [self._lake.catalog.get(txn, id) for id in self._ids]
        own = [each for each in found if isinstance(each, Table) and each.job == self._run.job.id]
        public = [replace(each, state=DescriptorState.PUBLIC, is_read_only=False, job=0) for each in own]
        self._publisher.publish(txn, public, settled)
        for table in own:
            for index in table.indexes:
                self._lake.merges.release(txn, table.id, index.id, self._run.job.id)

    def give_up(self) -> None:
        """Makes tables that are offline for this job public again, unchanged, if there are any."""
        settled = self._settle()
        self._run.transact(lambda txn: self.bring_back(txn, settled))
