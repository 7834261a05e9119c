"""The recorded history of retention, decoded: zones, protections, tables, marks, sweeps, claims and jobs.

Walk: `retention_predicates.check` makes one of a run's trace and asks it.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

from tenure.base.timestamp import ZERO_AT, Timestamp, from_bytes
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import AnyDescriptor, Table
from tenure.catalog.descriptors.protection_meta import protection_meta
from tenure.catalog.descriptors.zones import zones
from tenure.kv.keys import JOB_CONTROL, MANIFESTS, MERGES, USER_TABLES, ZONES, Keyspace, Span
from tenure.kv.records import Record, Records
from tenure.kv.store import DEFAULT_TENANT
from tenure.retention.protections.protection_records import Protection, protections
from tenure.retention.sweeping.sweep_records import SweepRecord, sweep_records
from tenure.table.lake.manifests import Manifests
from tenure.table.lake.publishing import MergeClaim
from tests.simulation.retention_trace import RetentionTrace
from tests.simulation.trace import Txn, Version

R = TypeVar("R", bound=Record)


class Change(NamedTuple):
    """A version of a record, decoded; None if it was deleted."""

    step: int
    at: Timestamp
    writer: Txn
    record: Any


Changes = list[Change]


class RetentionHistory:
    def __init__(self, trace: RetentionTrace) -> None:
        self.trace = trace
        self.keyspace = keyspace = Keyspace(DEFAULT_TENANT)
        self._catalog = Catalog(keyspace)
        self._claims: Records[MergeClaim] = Records(keyspace, MERGES, MergeClaim, key=("table", "index"))
        self._manifests = Manifests(keyspace)
        self._sweeps = sweep_records(keyspace)
        self.protections: dict[bytes, Changes] = {
            changes[0].record.id: changes for changes in self._all(protections(keyspace))
        }
        self.metas: Changes = next(self._all(protection_meta(keyspace)), [])
        self.zones: dict[bytes, Changes] = {
            key: self._changes(zones(keyspace), key) for key in trace.keys_in(zones(keyspace).span())
        }
        self.zones_span = keyspace.index_span(ZONES)

    def _all(self, records: Records[R]) -> Iterator[Changes]:
        return (self._changes(records, key) for key in self.trace.keys_in(records.span()))

    def _changes(self, records: Records[R], key: bytes) -> Changes:
        return [
            Change(version.step, version.at, version.writer, _decoded(records, version))
            for version in self.trace.versions.get(key, ())
        ]

    # ── as of a step ───────────────────────────────────────────────────────────────────────────

    def protections_at(self, step: int) -> list[Protection]:
        """Those in force just before a step."""
        found = (before(changes, step) for changes in self.protections.values())
        return [each.record for each in found if each is not None and each.record is not None]

    def zones_at(self, step: int) -> dict[tuple[int, int], int | None]:
        found = (before(changes, step) for changes in self.zones.values())
        return {
            (each.record.descriptor, each.record.index): each.record.gc_ttl_seconds
            for each in found
            if each is not None and each.record is not None
        }

    def threshold_at(self, head: bytes, step: int) -> Timestamp:
        return self._mark(self.keyspace.threshold_key(head), step)

    def cleaned_at(self, head: bytes, step: int) -> Timestamp:
        return self._mark(self.keyspace.cleaned_key(head), step)

    def _mark(self, key: bytes, step: int) -> Timestamp:
        values = [each.value for each in self.trace.versions.get(key, ()) if each.step < step]
        return from_bytes(values[-1]) if values and values[-1] is not None else ZERO_AT

    def has_manifest(self, head: bytes, step: int) -> bool:
        key = self.keyspace.key(MANIFESTS, self.keyspace.table_and_index(head))
        values = [each.value for each in self.trace.versions.get(key, ()) if each.step < step]
        return bool(values) and values[-1] is not None

    def merging_job(self, head: bytes, step: int) -> int:
        """The open job that has claimed an index just before a step; 0 if there is none."""
        claim = before(self._changes(self._claims, self.claim_key(head)), step)
        if claim is None or claim.record is None or not self.is_open(claim.record.job, step):
            return 0
        return int(claim.record.job)

    def claim_key(self, head: bytes) -> bytes:
        return self._claims.key(*self.keyspace.table_and_index(head))

    def index_of(self, key: bytes) -> tuple[int, int]:
        """The table and index of a manifest's key."""
        return self._manifests.index_of(key)

    def claim_key_of(self, key: bytes) -> bytes:
        """The key of the merge claim, given that of the manifest."""
        return self._claims.key(*self.index_of(key))

    def is_open(self, job: int, step: int) -> bool:
        values = [each.value for each in self.control(job) if each.step < step]
        return bool(values) and values[-1] is not None

    def control(self, job: int) -> list[Version]:
        return self.trace.versions.get(self.keyspace.key(JOB_CONTROL, (job,)), [])

    # ── tables ─────────────────────────────────────────────────────────────────────────────────

    def tables(self, id: int, *, until_step: int | None = None) -> list[Table]:
        """The versions of a table, oldest first: all, or those that landed before a step."""
        versions = [
            each
            for each in self.trace.versions.get(self._catalog.key(id), ())
            if each.value is not None and (until_step is None or each.step < until_step)
        ]
        found: list[AnyDescriptor] = [self._catalog.decode(each.value or b"") for each in versions]
        return [each for each in found if isinstance(each, Table)]

    def is_described(self, id: int, step: int) -> bool:
        """Whether a table has a descriptor just before a step: one that was collected has none."""
        values = [
            each.value for each in self.trace.versions.get(self._catalog.key(id), ()) if each.step < step
        ]
        return bool(values) and values[-1] is not None

    def user_heads(self) -> list[bytes]:
        span = Span(self._catalog.key(USER_TABLES), self._catalog.key(2**31 - 1))
        ids = {
            self._catalog.decode(self.trace.versions[key][0].value or b"").id
            for key in self.trace.keys_in(span)
        }
        return [
            self.keyspace.head(id, index.id)
            for id in sorted(ids)
            for version in self.tables(id)[:1]
            for index in version.indexes
        ]

    # ── sweeps ─────────────────────────────────────────────────────────────────────────────────

    def sweeps(self, head: bytes) -> Changes:
        return self._changes(self._sweeps, self._sweeps.key(head))

    def publications(self) -> Iterator[tuple[Change, SweepRecord]]:
        """The sweep records that carry the time of their own commit: each is a publication."""
        for changes in self._all(self._sweeps):
            for change in changes:
                if change.record is not None and change.record.published_at == change.at:
                    yield change, change.record


def _decoded(records: Records[R], version: Version) -> R | None:
    return None if version.value is None else records.decode(version.value)


def before(changes: Changes, step: int) -> Change | None:
    """The last change that landed before a step."""
    landed = [each for each in changes if each.step < step]
    return landed[-1] if landed else None
