"""The history of the catalog and its leases, taken from the store's own: every revision of their records.

Walk: `schema_predicates.check` makes one `SchemaIndex`; its predicates read it.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from tenure.base.timestamp import Timestamp, add_seconds
from tenure.catalog.descriptors.catalog_records import Catalog, NameEntry
from tenure.catalog.descriptors.definitions import AnyDescriptor, NameKey, SchemaEntry
from tenure.catalog.descriptors.role_records import WHOLE_OBJECT, ObjectPrivileges, RoleObject
from tenure.catalog.leases.lease_rows import LeaseRows
from tenure.cluster.jobs.job_table import JobControl, Jobs
from tenure.cluster.sessions.session_records import SessionId, Sessions
from tenure.kv.keys import (
    DESCRIPTORS,
    EXPIRATIONS,
    JOB_CONTROL,
    JOBS_ENDED,
    NAMES,
    OLD_LEASES,
    PRIVILEGES,
    ROLE_OBJECTS,
    SCHEMA_LEASES,
    SCHEMA_MAPS,
    SESSIONS,
    Keyspace,
)
from tenure.version_one.expiring_lease_rows import OldLeaseRows
from tests.simulation.schema_trace import RowKey, SchemaTrace, UseRecord
from tests.simulation.trace import Txn, Version, head

CATALOG = (DESCRIPTORS, NAMES, SCHEMA_MAPS)
ROLE_RECORDS = (PRIVILEGES, ROLE_OBJECTS)


class Row(NamedTuple):
    """A lease row as it was from one commit to the next."""

    lease_at: Timestamp
    session: SessionId
    descriptors: tuple[int, ...] | None
    from_at: Timestamp
    until_at: Timestamp | None
    process: str

    def covers(self, id: int) -> bool:
        return self.descriptors is None or id in self.descriptors


class OldRow(NamedTuple):
    """A row of `system.lease` as it was from one commit to the next."""

    key: RowKey
    expires_at: Timestamp
    from_at: Timestamp
    until_at: Timestamp | None
    process: str
    writer: Txn


class SchemaIndex:
    def __init__(self, trace: SchemaTrace) -> None:
        self.trace = trace
        keyspace = Keyspace(1)
        self.keyspace = keyspace
        self.catalog = Catalog(keyspace)
        self._sessions = Sessions(keyspace)
        self._lease_rows = LeaseRows(keyspace, self._sessions)._rows
        self._old_lease_rows = OldLeaseRows(keyspace, self.catalog)._rows
        self._jobs = Jobs(keyspace, self._sessions, clock=None)  # type: ignore[arg-type]
        self._role_heads = {keyspace.head(table) for table in ROLE_RECORDS}
        self.role_revisions: list[tuple[bytes, Version]] = []
        """Of privileges, and of the objects that name a role."""
        self._heads = {keyspace.head(table): table for table in CATALOG}
        self.versions: dict[int, list[tuple[Timestamp, AnyDescriptor, Txn]]] = {}
        self.names: dict[NameKey, list[tuple[Version, int | None]]] = {}
        self.entries: dict[tuple[int, str], list[tuple[Version, SchemaEntry | None]]] = {}
        self.rows: list[Row] = []
        self.old_rows: list[OldRow] = []
        self.expirations: dict[SessionId, list[tuple[Txn, Timestamp]]] = {}
        """By session: each expiration that it was given, and by whom."""
        self.controls: dict[int, list[tuple[Version, JobControl]]] = {}
        self._commits: dict[Timestamp, list[tuple[bytes, Version]]] = {}
        for key, versions in trace.versions.items():
            self._read(key, versions, keyspace)
        for controls in self.controls.values():
            controls.sort(key=lambda each: each[0].at)

    def _read(self, key: bytes, versions: list[Version], keyspace: Keyspace) -> None:
        first = head(key)
        if first in self._heads:
            self._read_catalog(key, versions)
        elif first in self._role_heads:
            self.role_revisions += [(key, version) for version in versions]
        elif first == keyspace.head(SCHEMA_LEASES):
            self._read_rows(versions)
        elif first == keyspace.head(OLD_LEASES):
            self._read_old_rows(versions)
        elif first == keyspace.head(SESSIONS):
            self._read_session(key, versions)
        elif first == keyspace.head(EXPIRATIONS):
            told = self.expirations.setdefault(self._sessions.id_of(key), [])
            for version in versions:
                if version.value is not None:
                    expires_at = self._sessions._expiration.decode(version.value).expires_at
                    told.append((version.writer, expires_at))
        elif first in (keyspace.head(JOB_CONTROL), keyspace.head(JOBS_ENDED)):
            for version in versions:
                if version.value is not None:
                    control = self._jobs.decode_control(version.value)
                    self.controls.setdefault(control.id, []).append((version, control))

    def _read_session(self, key: bytes, versions: list[Version]) -> None:
        first = versions[0]
        assert first.value is not None
        ttl_seconds = self._sessions._existence.decode(first.value).ttl_seconds
        told = self.expirations.setdefault(self._sessions.id_of(key), [])
        told.append((first.writer, add_seconds(first.at, ttl_seconds)))

    def _read_catalog(self, key: bytes, versions: list[Version]) -> None:
        for version in versions:
            self._commits.setdefault(version.at, []).append((key, version))
            kind, name, value = self.decoded(key, version.value)
            if kind == "descriptors" and value is not None:
                self.versions.setdefault(name, []).append((version.at, value, version.writer))  # type: ignore[arg-type]
            elif kind == "names":
                self.names.setdefault(name, []).append((version, value))  # type: ignore[arg-type]
            elif kind == "entries":
                self.entries.setdefault(name, []).append((version, value))  # type: ignore[arg-type]

    def decoded(self, key: bytes, value: bytes | None) -> tuple[str, object, object]:
        """What a key of the catalog is: ("descriptors" | "names" | "entries", its name, its value)."""
        columns = self.catalog.columns_of(key)
        if self._heads[head(key)] == DESCRIPTORS:
            return "descriptors", columns[0], None if value is None else self.catalog.decode(value)
        record = None if value is None else self.catalog.record_of(key, value)
        if self._heads[head(key)] == NAMES:
            assert record is None or isinstance(record, NameEntry)
            return "names", NameKey(*columns), None if record is None else record.id  # type: ignore[arg-type]
        return "entries", columns, record

    def _read_rows(self, versions: list[Version]) -> None:
        process = self.trace.processes[versions[0].writer.id]
        for version, following in zip(versions, [*versions[1:], None], strict=True):
            if version.value is not None:
                row = self._lease_rows.decode(version.value)
                until_at = None if following is None else following.at
                self.rows.append(
                    Row(row.lease_at, row.session, row.descriptors, version.at, until_at, process)
                )

    def _read_old_rows(self, versions: list[Version]) -> None:
        process = self.trace.processes[versions[0].writer.id]
        for version, following in zip(versions, [*versions[1:], None], strict=True):
            if version.value is not None:
                row = self._old_lease_rows.decode(version.value)
                key = RowKey(row.descriptor, row.version, row.instance, row.started_at)
                until_at = None if following is None else following.at
                self.old_rows.append(
                    OldRow(key, row.expires_at, version.at, until_at, process, version.writer)
                )

    def privileges_at(self, object: int, at: Timestamp) -> ObjectPrivileges | None:
        """The stored privileges of a whole object; None if there are none."""
        key = self.catalog.roles._privileges.key(object, WHOLE_OBJECT)
        found = [version for version in self.trace.versions.get(key, ()) if version.at <= at]
        if not found or found[-1].value is None:
            return None
        return self.catalog.roles._privileges.decode(found[-1].value)

    def object_of(self, key: bytes) -> int:
        """The object of a key of privileges."""
        _, object, _ = self.catalog.roles.key_at(key)
        assert isinstance(object, int)
        return object

    def role_object(self, value: bytes) -> RoleObject:
        return self.catalog.roles._objects.decode(value)

    # ── searching ──────────────────────────────────────────────────────────────────────────────

    def catalog_commits(self) -> Iterator[tuple[Timestamp, list[tuple[bytes, Version]]]]:
        return iter(sorted(self._commits.items()))

    def version_at(self, id: int, at: Timestamp) -> AnyDescriptor | None:
        versions = self.versions.get(id, [])
        position = bisect_right(versions, at, key=lambda each: each[0])
        return versions[position - 1][1] if position else None

    def version_of(self, id: int, version: int) -> AnyDescriptor | None:
        return next((each for _, each, _ in self.versions.get(id, ()) if each.version == version), None)

    def name_at(self, place: NameKey, at: Timestamp) -> int | None:
        found = [id for version, id in self.names.get(place, ()) if version.at <= at]
        return found[-1] if found else None

    def entry_at(self, place: NameKey, at: Timestamp) -> int | None:
        revisions = self.entries.get((place.database, place.name), ())
        found = [entry for version, entry in revisions if version.at <= at]
        return found[-1].id if found and found[-1] is not None else None

    def rows_before(self, at: Timestamp) -> Iterator[Row]:
        """The lease rows as they are just before a commit."""
        return (row for row in self.rows if row.from_at < at and (row.until_at is None or row.until_at >= at))

    def old_rows_before(self, at: Timestamp) -> Iterator[OldRow]:
        return (
            row for row in self.old_rows if row.from_at < at and (row.until_at is None or row.until_at >= at)
        )

    def is_valid(self, row: Row, at: Timestamp) -> bool:
        return at < max((expires for _, expires in self.expirations.get(row.session, ())), default=0)

    def present_at_the_end(self) -> set[SessionId]:
        first = self.keyspace.head(SESSIONS)
        return {
            self._sessions.id_of(key)
            for key, versions in self.trace.versions.items()
            if head(key) == first and versions[-1].value is not None
        }

    def committed_uses(self) -> Iterator[tuple[UseRecord, Timestamp]]:
        """Transactions under leases that committed, and when; what only read did so at its `read_at`."""
        for record in self.trace.uses.values():
            txn = record.txn
            if txn.landed_at is not None:
                yield record, txn.landed_at
            elif txn.state == "committed" and txn.acked_at is not None:
                yield record, txn.acked_at
