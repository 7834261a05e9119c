"""What the store's own history says of descriptors, leases and rows, as typed rows in commit order.

Walk: `schema_fleet` -> `read_history` -> `schema_checker`.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import AnyDescriptor
from tenure.catalog.leases.lease_rows import LeaseRow
from tenure.cluster.sessions.session_records import SessionId
from tenure.kv.encoding import decode
from tenure.kv.keys import DESCRIPTORS, JOB_PROGRESS, JOBS, SCHEMA_LEASES
from tenure.kv.records import Records
from tenure.kv.store import Store
from tenure.storage.engine import HEAD_BYTES, Revision
from tenure.table.rows import Layout
from tests.faults.job_history import JobHistory, Reader, revisions
from tests.faults.schema_work import ID, TAG, N

LeaseKey = tuple[Timestamp, int, Timestamp]


class LeaseRevision(NamedTuple):
    at: Timestamp
    key: LeaseKey
    row: LeaseRow | None

    @property
    def session(self) -> SessionId:
        return SessionId(*self.key[1:])


class RowRevision(NamedTuple):
    at: Timestamp
    table: int
    id: int
    n: int | None = None
    tag: str = ""
    """Empty of a row that was deleted."""


@dataclass
class SchemaHistory:
    jobs: JobHistory = field(default_factory=JobHistory)
    """Sessions, instances and the control records of jobs."""
    versions: dict[int, list[AnyDescriptor]] = field(default_factory=lambda: defaultdict(list))
    leases: list[LeaseRevision] = field(default_factory=list)
    rows: list[RowRevision] = field(default_factory=list)


def read_history(store: Store, layouts: Mapping[int, Layout]) -> SchemaHistory:
    """`layouts` are those of the tables, in any version: the columns that are read never change."""
    reader = _Reader(store, layouts)
    for revision in revisions(store):
        reader.read(revision)
    return reader.schema


class _Reader(Reader):
    def __init__(self, store: Store, layouts: Mapping[int, Layout]) -> None:
        super().__init__(store.keyspace)
        self._catalog = Catalog(store.keyspace)
        self._layouts = layouts
        key = ("lease_at", "instance", "epoch_at")
        self._leases = Records(store.keyspace, SCHEMA_LEASES, LeaseRow, key=key)
        self.schema = SchemaHistory(jobs=self.history)

    def read(self, revision: Revision) -> None:
        key, at, value = revision
        table = int.from_bytes(key[4:8], "big")
        if table == DESCRIPTORS:
            assert value is not None, "a descriptor was deleted"
            descriptor = self._catalog.decode(value)
            self.schema.versions[descriptor.id].append(descriptor)
        elif table == SCHEMA_LEASES:
            row = None if value is None else self._leases.decode(value)
            lease_at, instance, epoch_at = (
                each for each in decode(key[HEAD_BYTES:]) if isinstance(each, int)
            )
            self.schema.leases.append(LeaseRevision(at, (lease_at, instance, epoch_at), row))
        elif table in self._layouts:
            self._read_row(table, revision)
        elif table not in (JOBS, JOB_PROGRESS):
            super().read(revision)

    def _read_row(self, table: int, revision: Revision) -> None:
        key, at, value = revision
        layout = self._layouts[table]
        if not key.startswith(layout.primary.head):
            return
        (id,) = decode(key[HEAD_BYTES:])
        assert isinstance(id, int)
        if value is None:
            self.schema.rows.append(RowRevision(at, table, id))
            return
        values = layout.row(layout.primary, key, value).values
        n, tag = values[N], values[TAG]
        assert values[ID] == id and isinstance(n, int) and isinstance(tag, str)
        self.schema.rows.append(RowRevision(at, table, id, n, tag))
