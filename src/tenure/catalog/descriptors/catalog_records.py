"""The catalog as records: descriptors, names, and the databases' maps of their schemas.

    descriptor   id -> the newest version
    name         (database, schema, name) -> id
    map entry    (database, schema's name) -> id and state, part of the database's value
    roles        roles, memberships and privileges: `catalog.descriptors.role_records`

Two spans are the whole catalog: a lease represents them as of one timestamp, and a watch or an incremental
diff of them finds descriptors, names and privileges alike.

Every descriptor is validated when it is read and written; an invalid one is CorruptData when it is read, and
a bug of ours when it is about to be written.

Invariant (I38): a name stands for at most one id; a database's map changes in the very
transaction that changes a schema's name entry or state.

Walk: `catalog.changes.publisher` writes through this, `catalog.leases.catalog_cache` reads diffs of its span.
"""

from collections.abc import Iterator
from typing import cast

from tenure.base.errors import CorruptData
from tenure.catalog.descriptors.definitions import (
    DEFAULT_SCHEMA,
    AnyDescriptor,
    Descriptor,
    NameKey,
    SchemaEntry,
)
from tenure.catalog.descriptors.role_records import LeasedRecord, RoleRecords
from tenure.catalog.descriptors.validation import problems
from tenure.kv.encoding import decode
from tenure.kv.keys import DESCRIPTOR_IDS, DESCRIPTORS, NAMES, SCHEMA_MAPS, Keyspace, Span
from tenure.kv.records import Record, Records
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.storage.engine import HEAD_BYTES


class NameEntry(Record, frozen=True):
    database: int
    schema: int
    name: str
    id: int


class NextId(Record, frozen=True):
    id: int


JUDGED_MAX = 100
"""How many decoded descriptors are cached; those in use are in `catalog.leases.catalog_cache`.
"""


class Catalog:
    """The catalog of one tenant; every function belongs to the caller's transaction."""

    def __init__(self, keyspace: Keyspace) -> None:
        kind = cast("type[Descriptor]", AnyDescriptor)
        self._descriptors = Records(keyspace, DESCRIPTORS, kind, key=("id",))
        self._names = Records(keyspace, NAMES, NameEntry, key=("database", "schema", "name"))
        self._entries = Records(keyspace, SCHEMA_MAPS, SchemaEntry, key=("database", "name"))
        self._next_id = Records(keyspace, DESCRIPTOR_IDS, NextId, key=())
        self._heads = {
            keyspace.head(table): records
            for table, records in (
                (DESCRIPTORS, self._descriptors),
                (NAMES, self._names),
                (SCHEMA_MAPS, self._entries),
            )
        }
        self.roles = RoleRecords(keyspace)
        self._judged: dict[bytes, AnyDescriptor] = {}
        self.descriptors_head = keyspace.head(DESCRIPTORS)
        self.span = Span(keyspace.table_span(DESCRIPTORS).lo, keyspace.table_span(SCHEMA_MAPS).hi)
        """Descriptors, names and maps."""
        self.spans = (self.span, self.roles.span)
        """All of the catalog."""

    # ── descriptors ────────────────────────────────────────────────────────────────────────────

    def get(self, txn: Transaction | Snapshot, id: int) -> AnyDescriptor | None:
        value = txn.get(self._descriptors.key(id))
        return None if value is None else self.decode(value)

    def decode(self, value: bytes) -> AnyDescriptor:
        """Decodes and validates; cached for a while, as a schema change reads the same descriptor
        repeatedly.
        """
        judged = self._judged.get(value)
        if judged is None:
            judged = _judged(cast("AnyDescriptor", self._descriptors.decode(value)))
            if len(self._judged) >= JUDGED_MAX:
                self._judged.clear()
            self._judged[value] = judged
        return judged

    def list(self, txn: Transaction | Snapshot) -> Iterator[AnyDescriptor]:
        for descriptor in self._descriptors.scan(txn):
            yield _judged(cast("AnyDescriptor", descriptor))

    def put(self, txn: Transaction, descriptor: AnyDescriptor) -> None:
        """Writes a version; the commit sets its modification time."""
        wrong = problems(descriptor)
        assert not wrong, f'descriptor {descriptor.id} "{descriptor.name}": {"; ".join(wrong)}'
        self._descriptors.put(txn, descriptor, stamp="modified_at")

    def delete(self, txn: Transaction, id: int) -> None:
        """Deletes a dropped descriptor, and its privileges."""
        self._descriptors.delete(txn, id)
        self.roles.forget(txn, id)

    def key(self, id: int) -> bytes:
        return self._descriptors.key(id)

    def fresh_id(self, txn: Transaction) -> int:
        return self.fresh_ids(txn, 1)

    def fresh_ids(self, txn: Transaction, count: int) -> int:
        """The first of some consecutive unused ids."""
        stored = self._next_id.get(txn)
        id = DEFAULT_SCHEMA + 1 if stored is None else stored.id
        self._next_id.put(txn, NextId(id + count))
        return id

    # ── names ──────────────────────────────────────────────────────────────────────────────────

    def id_at(self, txn: Transaction | Snapshot, place: NameKey) -> int | None:
        entry = self._names.get(txn, place.database, place.schema, place.name)
        return None if entry is None else entry.id

    def put_name(self, txn: Transaction, place: NameKey, id: int) -> None:
        self._names.put(txn, NameEntry(place.database, place.schema, place.name, id))

    def delete_name(self, txn: Transaction, place: NameKey) -> None:
        self._names.delete(txn, place.database, place.schema, place.name)

    def names_in(self, txn: Transaction | Snapshot, database: int, schema: int) -> Iterator[NameEntry]:
        return self._names.scan(txn, database, schema)

    def names(self, txn: Transaction | Snapshot) -> Iterator[NameEntry]:
        return self._names.scan(txn)

    # ── maps ───────────────────────────────────────────────────────────────────────────────────

    def schema_entry(self, txn: Transaction | Snapshot, database: int, name: str) -> SchemaEntry | None:
        return self._entries.get(txn, database, name)

    def put_schema_entry(self, txn: Transaction, entry: SchemaEntry) -> None:
        self._entries.put(txn, entry)

    def delete_schema_entry(self, txn: Transaction, database: int, name: str) -> None:
        self._entries.delete(txn, database, name)

    def schema_map(self, txn: Transaction | Snapshot, database: int) -> Iterator[SchemaEntry]:
        return self._entries.scan(txn, database)

    # ── by key, for diffs and watches ──────────────────────────────────────────────────────────

    def columns_of(self, key: bytes) -> tuple[int | str, ...]:
        """The columns of a key of the catalog's span: (id), (database, schema, name) or (database, name)."""
        assert key[:HEAD_BYTES] in self._heads, "not a key of the catalog"
        return cast("tuple[int | str, ...]", decode(key[HEAD_BYTES:]))

    def record_of(self, key: bytes, value: bytes) -> Record:
        return self._heads[key[:HEAD_BYTES]].decode(value)

    def role_record(self, key: bytes, value: bytes) -> LeasedRecord:
        """A role, a membership or privileges, by a key of `roles.span`."""
        return self.roles.heads[key[:HEAD_BYTES]].decode(value)

    def is_of_roles(self, key: bytes) -> bool:
        return key[:HEAD_BYTES] in self.roles.heads


def _judged(descriptor: AnyDescriptor) -> AnyDescriptor:
    wrong = problems(descriptor)
    if wrong:
        raise CorruptData(f'descriptor {descriptor.id} "{descriptor.name}": {"; ".join(wrong)}')
    return descriptor
