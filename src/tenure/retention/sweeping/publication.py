"""Publication: the thresholds and kept points of many heads, in one commit.

    read      the protections' meta record, which must be at the tracker's version; all zones; the descriptors
              of the tables; the thresholds of the heads
    decide    `retention.thresholds`
    write     the thresholds that rise, and a sweep record with the pair of each

A protection or a zone change that commits before this transaction makes it start over; one that commits after
it finds the thresholds. So a protection that was made never loses anything, and one that could not keep its
promise is refused. One commit for many heads: head by head, a protection of a whole database would meet one
publication after the other.

Times are computed from `now_at`, when the tracker's state was read. The versions of tables are complete up to
then; an index that becomes public later is covered from a later time than any threshold.

Invariant (I29): a pair is decided from the zones in force at its commit, and its threshold never goes back.
Invariant (publish-meta): a publication commits only at the version of the protections that it was decided
from.

Walk: `retention.sweeping.rounds` calls `publish` in a fenced transaction -> `thresholds`, `sweep_records`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tenure.base.settings import GC_SYSTEM_TTL
from tenure.base.timestamp import ZERO_AT, Timestamp, from_bytes, to_bytes
from tenure.catalog.descriptors.definitions import DescriptorState, Table
from tenure.catalog.descriptors.protection_meta import ProtectionMeta, protection_meta
from tenure.catalog.descriptors.zones import Zone, ZoneKey, all_zones, effective_ttl, longest_ttl_seconds
from tenure.kv.keys import USER_TABLES
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.retention import thresholds
from tenure.retention.sweeping.heads import CATALOG_TABLES
from tenure.retention.sweeping.holds import all_holds, head_holds, oldest_object_at, table_holds
from tenure.retention.sweeping.services import SweepServices
from tenure.retention.sweeping.sweep_records import SweepRecord, SweepStage, sweep_records
from tenure.retention.sweeping.versions import versions_of
from tenure.retention.thresholds import Decision, HeadHold
from tenure.retention.tracking.tracker import TrackedState
from tenure.table.lake.keep import KEEP_ALL


class HeadDecision(NamedTuple):
    head: bytes
    ttl_seconds: float
    decision: Decision
    is_in_use: bool = True
    """Whether it is a head of system records, or of an index that its table has; a dropped table has its
    indexes until it is collected, because UNDROP may bring it back.
    """


class Decisions:
    """Decides the pairs of heads from one state of the protections."""

    def __init__(self, services: SweepServices, state: TrackedState) -> None:
        self._services = services
        self._keyspace = services.keyspace
        self._holds: dict[int, dict[bytes, list[HeadHold]]] = {}
        self.state = state
        self.now_at = state.read_at

    def of(self, source: Transaction | Snapshot, heads: Iterable[bytes]) -> list[HeadDecision]:
        """The pairs of heads, by the zones, tables and thresholds of a source; those that are gone are left
        out.
        """
        wanted = sorted(heads)
        zones = all_zones(source, self._keyspace)
        previous = self._thresholds(source, wanted)
        places = {self._keyspace.table_and_index(head)[0] for head in wanted}
        source.read_ahead([self._services.catalog.key(id) for id in sorted(places) if id >= USER_TABLES])
        tables: dict[int, Table | None] = {}
        decided = []
        for head in wanted:
            table, index = self._keyspace.table_and_index(head)
            if table < USER_TABLES:
                decided.append(self._of_system(head, table, zones, previous[head]))
                continue
            if table not in tables:
                tables[table] = self._table(source, table)
            found = tables[table]
            if found is not None and index < found.next_index:
                decided.append(self.of_index(found, index, zones, previous[head]))
        return decided

    def of_index(
        self, table: Table, index: int, zones: Mapping[ZoneKey, Zone], previous_at: Timestamp
    ) -> HeadDecision:
        head = self._keyspace.head(table.id, index)
        ttl = effective_ttl(zones, table.database, table.schema, table.id, index).seconds
        decision = thresholds.of_index(
            now_at=self.now_at,
            ttl_seconds=ttl,
            previous_at=previous_at,
            holds=self._holds_of(table).get(head, ()),
        )
        is_collected = table.state is DescriptorState.COLLECTED
        is_in_use = not is_collected and any(each.id == index for each in table.indexes)
        return HeadDecision(head, ttl, decision, is_in_use)

    def _of_system(
        self, head: bytes, table: int, zones: Mapping[ZoneKey, Zone], previous_at: Timestamp
    ) -> HeadDecision:
        if table in CATALOG_TABLES:
            ttl = float(longest_ttl_seconds(zones))
            decision = thresholds.of_catalog(
                now_at=self.now_at,
                ttls_seconds=[ttl],
                previous_at=previous_at,
                holds=all_holds(self.state),
            )
        else:
            ttl = self._services.settings()[GC_SYSTEM_TTL]
            decision = thresholds.of_index(
                now_at=self.now_at,
                ttl_seconds=ttl,
                previous_at=previous_at,
                holds=head_holds(self._keyspace, self.state, head),
            )
        return HeadDecision(head, ttl, decision)

    def holds(self, source: Transaction | Snapshot, head: bytes) -> Sequence[HeadHold]:
        """What protections keep of an index."""
        table, _ = self._keyspace.table_and_index(head)
        found = self._table(source, table) if table >= USER_TABLES else None
        return () if found is None else self._holds_of(found).get(head, ())

    def _holds_of(self, table: Table) -> Mapping[bytes, Sequence[HeadHold]]:
        if table.id not in self._holds:
            since_at = oldest_object_at(self.state)
            versions: Sequence[object] = [table]
            if since_at is not None:
                store, catalog = self._services.store, self._services.catalog
                versions = versions_of(store, catalog, table.id, since_at=since_at, until_at=self.now_at)
            tables = [each for each in versions if isinstance(each, Table)]
            self._holds[table.id] = table_holds(self._keyspace, self.state, tables)
        return self._holds[table.id]

    def _table(self, source: Transaction | Snapshot, id: int) -> Table | None:
        found = self._services.catalog.get(source, id)
        return found if isinstance(found, Table) else None

    def _thresholds(self, source: Transaction | Snapshot, heads: Sequence[bytes]) -> dict[bytes, Timestamp]:
        keys = [self._keyspace.threshold_key(head) for head in heads]
        source.read_ahead(keys)
        values = [source.get(key) for key in keys]
        return {
            head: ZERO_AT if value is None else from_bytes(value)
            for head, value in zip(heads, values, strict=True)
        }


def publish(txn: Transaction, services: SweepServices, decisions: Decisions, heads: Sequence[bytes]) -> bool:
    """Publishes the pairs of heads that are in use; False if the protections have changed meanwhile."""
    if not is_current(txn, services, decisions.state):
        return False
    records = sweep_records(services.keyspace)
    txn.read_ahead([records.key(head) for head in heads])
    for head, ttl_seconds, (keep, held_by), is_in_use in decisions.of(txn, heads):
        if not is_in_use:
            continue
        former = records.get(txn, head)
        write_threshold(txn, services, head, keep.threshold)
        record = SweepRecord(
            head,
            SweepStage.PUBLISHED,
            keep,
            ttl_seconds=ttl_seconds,
            held_by=held_by,
            finished_at=ZERO_AT if former is None else former.finished_at,
            files_keep=KEEP_ALL if former is None else former.files_keep,
            garbage_rows=0 if former is None else former.garbage_rows,
        )
        records.put(txn, record, stamp="published_at")
    return True


def is_current(txn: Transaction, services: SweepServices, state: TrackedState) -> bool:
    """Whether the protections are those of a state; if so, the transaction commits only while they are."""
    meta = protection_meta(services.keyspace).get(txn) or ProtectionMeta()
    return meta.version == state.version


def write_threshold(txn: Transaction, services: SweepServices, head: bytes, at: Timestamp) -> None:
    key = services.keyspace.threshold_key(head)
    stored = txn.get(key)
    if stored is None or from_bytes(stored) < at:
        txn.put(key, to_bytes(at))
