"""Which objects have ended, and their collection, step by step.

    dropped tables        ──► begin ──► data of all heads ──► descriptor
    indexes that are gone ──► begin ──► data
    other dropped objects ──────────────────────────────────► descriptor, contents before what contains them
    once the catalog's threshold has passed their end: thresholds of heads, records of tables that are gone

A version is written, and a descriptor deleted, only when every node leases one version of it alone; one that
is still leased in an older version is left to a later round.

Walk: `retention.sweeping.rounds` -> `ObjectCollection.run` -> `collection`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from tenure.base.errors import LockNotAvailable
from tenure.base.timestamp import Timestamp
from tenure.catalog.changes.publisher import Settled
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Contained,
    Database,
    DescriptorState,
    Schema,
    Table,
    is_dropped,
)
from tenure.catalog.leases.lease_waits import LeaseWaiter
from tenure.cluster.jobs.runs import Run
from tenure.kv.keys import DESCRIPTORS
from tenure.kv.thresholds import threshold
from tenure.kv.transaction import Transaction
from tenure.retention.sweeping import collection
from tenure.retention.sweeping.collection import HeadCollection
from tenure.retention.sweeping.heads import all_heads, former_indexes, has_moved
from tenure.retention.sweeping.pace import SweepPace
from tenure.retention.sweeping.publication import Decisions
from tenure.retention.sweeping.services import SweepServices
from tenure.retention.sweeping.sweep_records import SweepRecord, SweepStage, sweep_records
from tenure.retention.sweeping.versions import versions_of
from tenure.retention.thresholds import end_of, index_end_of, may_collect
from tenure.storage.engine import WrittenHeads

FORGET_HEADS = 500
"""Heads whose records are deleted in one commit."""


class ObjectCollection:
    def __init__(
        self,
        services: SweepServices,
        run: Run,
        pace: SweepPace,
        decisions: Decisions,
        descriptors: Sequence[AnyDescriptor],
        records: Mapping[bytes, SweepRecord],
        written: WrittenHeads,
        *,
        table: int = 0,
    ) -> None:
        """`descriptors`, `records` and `written` are as the round has found them: what ended since waits for
        the next. `table` 0: all objects; else one table and its indexes alone.
        """
        self._services = services
        self._run = run
        self._pace = pace
        self._decisions = decisions
        self._table = table
        self._store, self._catalog = services.store, services.catalog
        self._snapshot = services.store.snapshot()
        self._descriptors, self._found, self._written = descriptors, records, written
        self._records = sweep_records(services.keyspace)
        self._collecting = [head for head, record in records.items() if record.stage is SweepStage.COLLECTING]
        """Heads whose data is to go."""
        self._catalog_at = threshold(self._snapshot, services.keyspace, services.keyspace.head(DESCRIPTORS))
        self.removed = 0
        """Revisions that have left the store."""

    def run(self) -> int:
        """Goes as far as it can; returns how many descriptors it has deleted."""
        for table in self._tables():
            if is_dropped(table):
                self._begin_table(table)
            else:
                self._begin_indexes(table)
        self._remove_data()
        deleted = sum(self._delete_table(table) for table in self._tables() if is_dropped(table))
        if not self._table:
            deleted += sum(self._delete_object(each) for each in self._objects())
            self._forget()
        return deleted

    def _tables(self) -> Iterator[Table]:
        for each in self._descriptors:
            if isinstance(each, Table) and self._table in (0, each.id):
                yield each

    # ── the beginning ──────────────────────────────────────────────────────────────────────────

    def _begin_table(self, table: Table) -> None:
        if table.state is DescriptorState.COLLECTED or table.draining:
            return
        ended_at = end_of(self._versions(table))
        if ended_at is None or not self._may_collect(all_heads(self._services.keyspace, table), ended_at):
            return
        settled = self._settle(table)
        if settled is not None and self._transact(
            lambda txn: collection.begin_table(txn, self._services, self._decisions, table, ended_at, settled)
        ):
            self._collecting += all_heads(self._services.keyspace, table)

    def _begin_indexes(self, table: Table) -> None:
        keyspace = self._services.keyspace
        gone = [index for index in former_indexes(table) if self._is_left(keyspace.head(table.id, index))]
        if not gone:
            return
        versions = [each for each in self._versions(table) if isinstance(each, Table)]
        for index in gone:
            ended_at, head = index_end_of(versions, index), keyspace.head(table.id, index)
            if ended_at is None or not self._may_collect([head], ended_at):
                continue
            if self._transact(
                lambda txn, index=index, ended_at=ended_at: collection.begin_index(  # type: ignore[misc]
                    txn, self._services, self._decisions, table, index, ended_at
                )
            ):
                self._collecting.append(head)

    def _is_left(self, head: bytes) -> bool:
        """Whether the collection of an index that is gone is still to begin, or a writer came late."""
        record = self._found.get(head)
        if record is None or record.stage in (SweepStage.PUBLISHED, SweepStage.SWEPT):
            return True
        return record.stage is SweepStage.COLLECTED and has_moved(self._written, head, record)

    def _may_collect(self, heads: Sequence[bytes], ended_at: Timestamp) -> bool:
        decided = self._decisions.of(self._snapshot, heads)
        return may_collect(ended_at, [each.decision.keep for each in decided])

    def _versions(self, descriptor: AnyDescriptor) -> list[AnyDescriptor]:
        """As far back as the catalog can be read."""
        until_at = self._snapshot.at
        return versions_of(
            self._store, self._catalog, descriptor.id, since_at=self._catalog_at, until_at=until_at
        )

    # ── data, then catalog ─────────────────────────────────────────────────────────────────────

    def _remove_data(self) -> None:
        snapshot = self._store.snapshot()
        for record in [self._records.get(snapshot, head) for head in self._collecting]:
            if record is None or record.stage is not SweepStage.COLLECTING:
                continue
            removal = HeadCollection(self._services, self._run, record)
            while not removal.is_over and self._pace.has_time():
                with self._pace.commit():
                    self.removed += removal.step()

    def _delete_table(self, table: Table) -> bool:
        stored = self._catalog.get(self._store.snapshot(), table.id)
        if stored is None or stored.state is not DescriptorState.COLLECTED:
            return False
        settled = self._settle(stored)
        if settled is None:
            return False
        return self._transact(lambda txn: collection.delete_table(txn, self._services, table.id, settled))

    def _objects(self) -> Iterator[AnyDescriptor]:
        """Dropped objects without data that no readable time has, contents first."""
        for each in sorted(
            self._descriptors, key=lambda each: isinstance(each, Schema) + 2 * isinstance(each, Database)
        ):
            if isinstance(each, Table) or not is_dropped(each) or each.draining or self._has_contents(each):
                continue
            ended_at = end_of(self._versions(each))
            if ended_at is not None and ended_at <= self._catalog_at:
                yield each

    def _has_contents(self, parent: AnyDescriptor) -> bool:
        """Whether a schema or a database still contains something, dropped or not."""
        if not isinstance(parent, Database | Schema):
            return False
        now = self._catalog.list(self._store.snapshot())
        return any(
            (isinstance(each, Contained) and parent.id in (each.schema, each.database))
            or (isinstance(each, Schema) and each.database == parent.id)
            for each in now
        )

    def _delete_object(self, descriptor: AnyDescriptor) -> bool:
        settled = self._settle(descriptor)
        if settled is None:
            return False
        return self._transact(lambda txn: collection.delete_object(txn, self._services, descriptor, settled))

    def _forget(self) -> None:
        """Of collected heads that no readable time of the catalog names."""
        tables = {each.id: each for each in self._descriptors}
        of_gone, of_present = list[bytes](), list[bytes]()
        for head, record in self._found.items():
            if record.stage is not SweepStage.COLLECTED or record.ended_at > self._catalog_at:
                continue
            table = tables.get(self._services.keyspace.table_and_index(head)[0])
            if table is None:
                of_gone.append(head)
            elif not is_dropped(table) and not record.is_forgotten:
                of_present.append(head)
        self._in_parts(collection.forget, of_gone)
        self._in_parts(collection.forget_thresholds, of_present)

    def _in_parts(
        self, work: Callable[[Transaction, SweepServices, Sequence[bytes]], None], heads: Sequence[bytes]
    ) -> None:
        for first in range(0, len(heads), FORGET_HEADS):
            part = heads[first : first + FORGET_HEADS]
            with self._pace.commit():
                self._run.transact(lambda txn, part=part: work(txn, self._services, part))  # type: ignore[misc]

    def _settle(self, descriptor: AnyDescriptor) -> Settled | None:
        """The proof that one version of it is leased alone; None if an older one is."""
        waiter = LeaseWaiter(self._store.clock.now(), check=self._run.check)
        try:
            return self._services.publisher.settle([descriptor.id], waiter, timeout=0.0)
        except LockNotAvailable:
            return None

    def _transact(self, work: Callable[[Transaction], bool]) -> bool:
        with self._pace.commit():
            return self._run.transact(work)
