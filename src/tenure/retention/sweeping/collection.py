"""Collection: dropped objects, and indexes that left their tables, go with their data.

    ended     an object's first version without draining names; the first version without the index
    begin     when no readable time lies before that end: the last version "collected", the thresholds of all
              its heads and their sweep records, in one commit
    data      under the claim of a merge: the manifest goes, its files are noted as dropped, all rows leave
              the store in batches
    catalog   the descriptor, its zones, cleaned marks and claims go; a sequence's value, too
    forget    when the catalog's own threshold has passed the end: thresholds and rows of the head clock; the
              sweep records, too, if the table is gone

UNDROP refuses what is collected, so half a table never comes back. The thresholds stay for a while because a
protection may still find the table in the catalog's history, and must be refused. Objects without data
(schemas, views, types, sequences) go once the catalog's threshold has passed their end: then no readable time
has them.

A claim of the sweep's job keeps other merges away until the descriptor is gone; a merge under way is waited
for, until a later round.

Invariant (collected): rows of an object leave the store only after a version "collected" was published with
thresholds at or above its end.

Walk: `object_collection` -> `begin_table`, `begin_index`, `HeadCollection.step`, `delete_table`,
`delete_object`, `forget`, `forget_thresholds` -> `catalog.changes.publisher`.
"""

from collections.abc import Sequence

from tenure.base.timestamp import Timestamp
from tenure.catalog.changes import zone_changes
from tenure.catalog.changes.publisher import Settled
from tenure.catalog.descriptors.definitions import AnyDescriptor, DescriptorState, Table, is_dropped
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.cluster.jobs.runs import Run
from tenure.kv.records import replace
from tenure.kv.transaction import Transaction
from tenure.retention.sweeping.heads import all_heads
from tenure.retention.sweeping.publication import Decisions, HeadDecision, is_current, write_threshold
from tenure.retention.sweeping.services import SweepServices
from tenure.retention.sweeping.sweep_records import SweepRecord, SweepStage, sweep_records
from tenure.retention.thresholds import may_collect
from tenure.storage.engine import Removal, Removes

BATCH_ROWS = 2_000
"""Rows that one commit removes: it holds the section, so it is short."""


def begin_table(
    txn: Transaction,
    services: SweepServices,
    decisions: Decisions,
    table: Table,
    ended_at: Timestamp,
    settled: Settled,
) -> bool:
    """Publishes the last version of a dropped table, if nothing of it is readable any more."""
    stored = services.catalog.get(txn, table.id)
    if not is_current(txn, services, decisions.state) or stored != table or _is_collected(table):
        return False
    decided = decisions.of(txn, all_heads(services.keyspace, table))
    if not may_collect(ended_at, [each.decision.keep for each in decided]):
        return False
    services.publisher.publish(txn, [replace(table, state=DescriptorState.COLLECTED)], settled)
    for each in decided:
        _begin(txn, services, each, ended_at)
    return True


def begin_index(
    txn: Transaction,
    services: SweepServices,
    decisions: Decisions,
    table: Table,
    index: int,
    ended_at: Timestamp,
) -> bool:
    """The same for an index that its table no longer has: it has no name and cannot be brought back."""
    stored = services.catalog.get(txn, table.id)
    if not is_current(txn, services, decisions.state) or not isinstance(stored, Table):
        return False
    if any(each.id == index for each in stored.indexes):
        return False
    decided = decisions.of(txn, [services.keyspace.head(table.id, index)])
    if not may_collect(ended_at, [each.decision.keep for each in decided]):
        return False
    for each in decided:
        _begin(txn, services, each, ended_at)
    return True


def _begin(txn: Transaction, services: SweepServices, decided: HeadDecision, ended_at: Timestamp) -> None:
    head, ttl_seconds, (keep, _), _ = decided
    write_threshold(txn, services, head, keep.threshold)
    record = SweepRecord(head, SweepStage.COLLECTING, keep, ttl_seconds=ttl_seconds, ended_at=ended_at)
    sweep_records(services.keyspace).put(txn, record, stamp="published_at")


class HeadCollection:
    """The removal of all rows and files of one head, as far as this run has come."""

    def __init__(self, services: SweepServices, run: Run, record: SweepRecord) -> None:
        self._services = services
        self._run = run
        self._records = sweep_records(services.keyspace)
        self.record = record
        self.is_over = False
        """All is gone, another merge of the index is under way, or another round has done it."""

    def step(self) -> int:
        """One commit; returns how many revisions it has removed."""

        def work(txn: Transaction) -> Transaction:
            self.is_over = not self._is_under_way(txn) or not self._claim(txn)
            if not self.is_over:
                self._remove(txn)
            return txn

        txn = self._run.transact(work)
        self.record = replace(self.record, removed=self.record.removed + txn.removed)
        if not self.is_over and txn.removed == 0:
            self._finish()
        return txn.removed

    def _is_under_way(self, txn: Transaction) -> bool:
        """Whether its data is still to go: another round may have finished, and even forgotten it."""
        stored = self._records.get(txn, self.record.head)
        return (
            stored is not None
            and stored.stage is SweepStage.COLLECTING
            and stored.published_at == self.record.published_at
        )

    def _claim(self, txn: Transaction) -> bool:
        """Keeps other merges away; False if one is under way."""
        services, (table, index) = self._services, self._place()
        holder = services.merges.holder(txn, table, index)
        if holder == self._run.job.id:
            return True
        if services.jobs.is_open(txn, holder):
            return False
        services.merges.claim(txn, table, index, self._run.job.id)
        return True

    def _remove(self, txn: Transaction) -> None:
        services, (table, index) = self._services, self._place()
        manifest = services.manifests.get(txn, table, index)
        if manifest is not None:
            for file in manifest.files:
                services.manifests.drop_file(txn, manifest, file)
            services.manifests.delete(txn, table, index)
        span = services.keyspace.head_span(self.record.head)
        txn.remove(Removal(*span, Removes.FLUSHED, self.record.keep.threshold, BATCH_ROWS))

    def _finish(self) -> None:
        services, (table, index) = self._services, self._place()

        def work(txn: Transaction) -> None:
            if not self._is_under_way(txn):
                return
            now_at = services.store.clock.now()
            collected = replace(self.record, stage=SweepStage.COLLECTED, finished_at=now_at)
            self._records.put(txn, collected)
            txn.delete(services.keyspace.cleaned_key(self.record.head))
            zone_changes.forget(txn, services.keyspace, table, index)
            if not _is_collected(services.catalog.get(txn, table)):  # the claim of a table's goes with it
                services.merges.release(txn, table, index, self._run.job.id)

        self._run.transact(work)
        self.is_over = True

    def _place(self) -> tuple[int, int]:
        return self._services.keyspace.table_and_index(self.record.head)


def delete_table(txn: Transaction, services: SweepServices, id: int, settled: Settled) -> bool:
    """Deletes the descriptor of a collected table, if all its data is gone."""
    table = services.catalog.get(txn, id)
    if not isinstance(table, Table) or not _is_collected(table) or settled.get(id) != table.modified_at:
        return False
    records = sweep_records(services.keyspace)
    for index in range(1, table.next_index):
        record = records.get(txn, services.keyspace.head(id, index))
        if record is None or record.stage is not SweepStage.COLLECTED:
            return False
    for index in range(1, table.next_index):
        services.merges.release(txn, id, index, services.merges.holder(txn, id, index))
    _delete(txn, services, table)
    return True


def delete_object(
    txn: Transaction, services: SweepServices, descriptor: AnyDescriptor, settled: Settled
) -> bool:
    """Deletes the descriptor of an object without data that no readable time has."""
    stored = services.catalog.get(txn, descriptor.id)
    if stored != descriptor or not is_dropped(stored) or settled.get(stored.id) != stored.modified_at:
        return False
    if isinstance(stored, SequenceDescriptor):
        services.sequences.forget(txn, stored.id)
    _delete(txn, services, stored)
    return True


def _delete(txn: Transaction, services: SweepServices, descriptor: AnyDescriptor) -> None:
    services.catalog.delete(txn, descriptor.id)
    zone_changes.forget(txn, services.keyspace, descriptor.id)


def forget(txn: Transaction, services: SweepServices, heads: Sequence[bytes]) -> None:
    """Deletes the thresholds and sweep records of collected heads, which no time of the catalog names, and
    their rows of the head clock.
    """
    records = sweep_records(services.keyspace)
    for head in heads:
        txn.delete(services.keyspace.threshold_key(head))
        records.delete(txn, head)
    txn.forget_heads(heads)


def forget_thresholds(txn: Transaction, services: SweepServices, heads: Sequence[bytes]) -> None:
    """The same for indexes that left a table which is still there: their records say that their data is gone.

    If a record has changed since, because somebody has written to the index late, it is left alone.
    """
    records = sweep_records(services.keyspace)
    for head in heads:
        record = records.get(txn, head)
        if record is not None and record.stage is SweepStage.COLLECTED:
            txn.delete(services.keyspace.threshold_key(head))
            records.put(txn, replace(record, is_forgotten=True))
            txn.forget_heads([head])


def _is_collected(descriptor: AnyDescriptor | None) -> bool:
    return descriptor is not None and descriptor.state is DescriptorState.COLLECTED
