"""What expiring leases add to the recorded history, where nodes lease one descriptor at a time.

Under which row each descriptor of a transaction is pinned is recorded as the process's own leases say,
whichever scheme lives by them: alone (`TracingExpiring`), or beside the schema lease.

Walk: `schema_processes` makes these in place of the product's; `expiring_watch` and
`expiring_predicates` read what they record.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.catalog.descriptors.definitions import AnyDescriptor, NameKey, SchemaEntry
from tenure.catalog.leases.catalog_use import CatalogUse, UseState
from tenure.version_one.descriptor_leases import DescriptorLease, DescriptorLeases, Pins
from tenure.version_one.expiring_scheme import ExpiringLeases
from tests.simulation.schema_trace import Handed, Resolved, RowKey, SchemaTrace, UseRecord, record_of


class RowFrontier(NamedTuple):
    """Up to when a use was to go on, and by which rows."""

    step: int
    rows: tuple[RowKey, ...]
    expires_at: Timestamp


class TracingDescriptorLeases(DescriptorLeases):
    """Records which row each descriptor is pinned under."""

    trace: SchemaTrace
    record: Callable[[CatalogUse], UseRecord]

    def attach(self, trace: SchemaTrace, process: str, record: Callable[[CatalogUse], UseRecord]) -> None:
        self.trace, self.record = trace, record
        self.every: list[DescriptorLease] = []
        trace.expiring[process] = self

    def pin(self, use: CatalogUse, id: int, pins: Pins) -> DescriptorLease | None:
        lease = super().pin(use, id, pins)
        if lease is not None:
            self.record(use).rows[id] = key_of(lease)
        return lease

    def unpin(self, use: CatalogUse, ids: Iterable[int], pins: Pins) -> bool:
        """What is pinned when a transaction is over stays recorded: that is what its commit went by."""
        ids = list(ids)
        if use.state is not UseState.OVER:
            for id in ids:
                self.record(use).rows.pop(id, None)
        return super().unpin(use, ids, pins)

    def _open(self, lease: DescriptorLease) -> None:
        super()._open(lease)
        self.every.append(lease)


def key_of(lease: DescriptorLease) -> RowKey:
    return RowKey(lease.descriptor.id, lease.descriptor.version, *lease.owner)


class TracingExpiring(ExpiringLeases):
    """Records what is handed out and resolved, and how long it may be used."""

    trace: SchemaTrace
    process: str

    def attach(self, trace: SchemaTrace, process: str) -> None:
        self.trace, self.process = trace, process

    def record(self, use: CatalogUse) -> UseRecord:
        txn = record_of(use.txn)
        if txn.id not in self.trace.uses:
            self.trace.uses[txn.id] = UseRecord(txn, self.process, ZERO_AT, None)
        return self.trace.uses[txn.id]

    def pin(self, use: CatalogUse, id: int) -> AnyDescriptor | None:
        descriptor = super().pin(use, id)
        if descriptor is not None:
            record = self.record(use)
            record.handed.append(Handed(self.trace.tick(), descriptor, descriptor.modified_at))
            record.given_up.discard(id)
        return descriptor

    def id_at(self, use: CatalogUse, place: NameKey) -> int | None:
        id = super().id_at(use, place)
        self._resolved(use, place, id, is_map=False)
        return id

    def schema_entry(self, use: CatalogUse, database: int, name: str) -> SchemaEntry | None:
        entry = super().schema_entry(use, database, name)
        self._resolved(use, NameKey(database, 0, name), None if entry is None else entry.id, is_map=True)
        return entry

    def _resolved(self, use: CatalogUse, place: NameKey, id: int | None, *, is_map: bool) -> None:
        resolved = Resolved(self.trace.tick(), place, id, is_map, use.txn.read_at)
        self.record(use).resolved.append(resolved)

    def frontier_at(self, use: CatalogUse) -> Timestamp:
        frontier_at = super().frontier_at(use)
        rows = tuple(self.record(use).rows.values())
        self.trace.row_frontiers.append(RowFrontier(self.trace.tick(), rows, frontier_at))
        return frontier_at

    def unpin(self, use: CatalogUse, ids: Iterable[int]) -> None:
        ids = list(ids)
        if use.state is not UseState.OVER:
            self.record(use).given_up.update(ids)
        super().unpin(use, ids)

    def end(self, use: CatalogUse, reason: str) -> bool:
        is_ended = super().end(use, reason)
        if is_ended:
            self.record(use).ended = self.trace.tick()
            self.trace.seen["holder of an expiring lease ended"] += 1
        return is_ended
