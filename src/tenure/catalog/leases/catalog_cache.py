"""The catalog in memory: as of the newest lease, and as of each older one that is still in use.

    newest       one dictionary of all descriptors, names and map entries as of L
    older ones   each keeps the changes since: its `before`, searched first

    lookup under lease 1:   before(1) ─► before(2) ─► the dictionary
    lookup under lease 3, the newest:                the dictionary

A new lease brings the incremental diff since the one before it. The replaced values go into the older lease's
`before` first, then the older lease is linked to the new one, and only then is the dictionary changed: a
lookup that read the dictionary and finds no new link has read it unchanged. So lookups take no lock, and one
that is overtaken looks once more.

Values are decoded when first used: most of a large catalog never is.

Invariant (I17): a lookup under a lease at L returns what a full read at L would.

Walk: `catalog.leases.node_leases` calls `advance`; `catalog.leases.catalog_use` looks up through a
`CatalogView`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias, TypeVar

from tenure.base.errors import BaseMoved, SnapshotTooOld
from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.catalog.accounts.role_graph import RoleGraph
from tenure.catalog.descriptors.catalog_records import Catalog, NameEntry
from tenure.catalog.descriptors.definitions import AnyDescriptor, NameKey, SchemaEntry
from tenure.catalog.descriptors.equal_versions import logical_of
from tenure.catalog.descriptors.index_holders import IndexHolders
from tenure.catalog.descriptors.role_records import LeasedRecord, Membership, ObjectPrivileges, Role
from tenure.catalog.descriptors.schema_contents import SchemaContents
from tenure.kv.snapshot import Snapshot

Key: TypeAlias = int | tuple[int | str, ...]
"""A descriptor's id, (database, schema, name), (database, name), or a `RecordKey`: it begins with a word."""


class CachedEntry:
    """One value of the catalog, decoded when it is first used."""

    __slots__ = ("_decoded", "_value")

    def __init__(self, value: bytes) -> None:
        self._value: bytes | None = value
        self._decoded: AnyDescriptor | None = None

    def descriptor(self, catalog: Catalog) -> AnyDescriptor:
        decoded = self._decoded
        if decoded is None:
            value = self._value
            # Another thread may be here too: both decode, and either result will do.
            decoded = self._decoded or catalog.decode(value or b"")
            self._decoded, self._value = decoded, None
        return decoded

    def glance(self, catalog: Catalog) -> AnyDescriptor:
        """The same, without keeping the decoded value: for a pass over all of them."""
        value = self._value
        return catalog.decode(value) if value is not None else self.descriptor(catalog)


Index = TypeVar("Index", IndexHolders, SchemaContents)

Value: TypeAlias = CachedEntry | int | SchemaEntry | LeasedRecord


class CatalogView:
    """The catalog as of one lease."""

    __slots__ = ("_cache", "_newest", "at", "before", "next")

    def __init__(self, cache: "Cache", at: Timestamp) -> None:
        self._cache = cache
        self._newest = cache.values
        self.at = at
        self.before: dict[Key, Value | None] = {}
        """The former values of the keys that the next version changed."""
        self.next: CatalogView | None = None

    def descriptor(self, id: int) -> AnyDescriptor | None:
        entry = self.find(id)
        if entry is None:
            return None
        assert isinstance(entry, CachedEntry)
        return entry.descriptor(self._cache.catalog)

    def descriptors(self) -> Iterator[AnyDescriptor]:
        """All of them, for callers that search for something without a name of its own."""
        for id in self.ids():
            found = self.descriptor(id)
            if found is not None:
                yield found

    def index_holders(self, schema: int, name: str) -> frozenset[int]:
        """Tables of a schema that may have an index of this name: no others do."""
        return self._cache.index_holders().of(schema, name)

    def in_schema(self, schema: int) -> Iterator[AnyDescriptor]:
        """The objects of a schema, or the schemas of a database; others may come with them."""
        return self._all_of(self._cache.contents().of_schema(schema))

    def named(self, name: str) -> Iterator[AnyDescriptor]:
        """The objects of a name in any schema, and tables with such a part; others may come with them."""
        return self._all_of(self._cache.contents().named(name))

    def _all_of(self, ids: Iterable[int]) -> Iterator[AnyDescriptor]:
        found = dict.fromkeys(ids)
        version: CatalogView | None = self
        while version is not None:  # what was changed since this version may have had another name in it
            found.update((key, None) for key in list(version.before) if isinstance(key, int))
            version = version.next
        return (each for id in found if (each := self.descriptor(id)) is not None)

    def glances(self) -> Iterator[AnyDescriptor]:
        """All descriptors; values that were not decoded yet are not kept."""
        return (found for id in self.ids() if (found := self.glance(id)) is not None)

    def glance(self, id: int) -> AnyDescriptor | None:
        """A descriptor; a value that was not decoded yet is not kept."""
        entry = self.find(id)
        assert entry is None or isinstance(entry, CachedEntry)
        return None if entry is None else entry.glance(self._cache.catalog)

    def id_at(self, place: NameKey) -> int | None:
        found = self.find((place.database, place.schema, place.name))
        assert found is None or isinstance(found, int)
        return found

    def schema_entry(self, database: int, name: str) -> SchemaEntry | None:
        found = self.find((database, name))
        assert found is None or isinstance(found, SchemaEntry)
        return found

    def privileges(self, object: int, column: int) -> ObjectPrivileges | None:
        found = self.find(("privileges", object, column))
        assert found is None or isinstance(found, ObjectPrivileges)
        return found

    def record(self, key: tuple[int | str, ...]) -> LeasedRecord | None:
        """A role, a membership or privileges by its `RecordKey`."""
        found = self.find(key)
        assert found is None or isinstance(found, Role | Membership | ObjectPrivileges)
        return found

    @property
    def roles(self) -> RoleGraph:
        return self._cache.role_graph(self)

    def role_records(self) -> Iterator[Role | Membership]:
        for key in self._all_keys():
            if isinstance(key, tuple) and key[0] in ("role", "membership"):
                found = self.find(key)
                if isinstance(found, Role | Membership):
                    yield found

    def find(self, key: Key) -> Value | None:
        version = self
        while True:
            while (following := version.next) is not None:
                if key in version.before:
                    return version.before[key]
                version = following
            value = self._newest.get(key)
            # If there is no newer version even now, the dictionary had not been changed yet.
            if version.next is None:
                return value

    def ids(self) -> list[int]:
        """The ids of all descriptors, and of some that are gone: the caller looks each of them up."""
        return sorted(key for key in self._all_keys() if isinstance(key, int))

    def _all_keys(self) -> Iterable[Key]:
        # The dictionary first: an entry that leaves it is in some `before` by then.
        found = dict.fromkeys(self._cache.keys())
        version: CatalogView | None = self
        while version is not None:
            found.update(dict.fromkeys(list(version.before)))
            version = version.next
        return found

    def changed_since(self) -> tuple[set[int], "CatalogView"]:
        """The descriptors that newer versions have changed, and the newest of those versions."""
        found: set[int] = set()
        version = self
        while (following := version.next) is not None:
            found.update(key for key in version.before if isinstance(key, int))
            version = following
        return found, version

    def is_same(self, id: int, other: "CatalogView") -> bool:
        """Whether both have the descriptor in versions of equal `logical`."""
        found, others = self.find(id), other.find(id)
        if found is others or not (isinstance(found, CachedEntry) and isinstance(others, CachedEntry)):
            return found is others
        catalog = self._cache.catalog
        return logical_of(found.descriptor(catalog)) == logical_of(others.descriptor(catalog))


class Cache:
    """The catalog as of the newest lease; one writer at a time, any number of readers."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.values: dict[Key, Value] = {}
        """As of the newest version; changed in place, since all versions look into it."""
        self.newest = CatalogView(self, ZERO_AT)
        self._indexes: tuple[CatalogView, IndexHolders] | None = None
        """With the version it is of, once it was needed."""
        self._contents: tuple[CatalogView, SchemaContents] | None = None
        """Likewise."""
        self._graph: tuple[CatalogView, RoleGraph] | None = None
        """Likewise."""

    def __len__(self) -> int:
        return len(self.values)

    def keys(self) -> list[Key]:
        return list(self.values)

    def index_holders(self) -> IndexHolders:
        """As of the newest version, or one that is just becoming it."""
        cached, newest = self._indexes, self.newest
        if cached is not None and cached[0] is newest:
            return cached[1]
        # If the writer overtook it, this is of an older version: the next caller builds it again.
        holders = IndexHolders(newest.glances())
        self._indexes = newest, holders
        return holders

    def contents(self) -> SchemaContents:
        """As `index_holders`."""
        cached, newest = self._contents, self.newest
        if cached is not None and cached[0] is newest:
            return cached[1]
        contents = SchemaContents(newest.glances())
        self._contents = newest, contents
        return contents

    def role_graph(self, version: CatalogView) -> RoleGraph:
        cached = self._graph
        if cached is not None and cached[0] is version:
            return cached[1]
        records = list(version.role_records())
        graph = RoleGraph(
            (each for each in records if isinstance(each, Role)),
            (each for each in records if isinstance(each, Membership)),
        )
        if version is self.newest:
            self._graph = version, graph
        return graph

    def advance(self, snapshot: Snapshot) -> None:
        """Applies the changes since the newest version; that one stays as it is."""
        older, changes = self.newest, self._changes(snapshot)
        for key in changes:
            older.before[key] = self.values.get(key)
        newer = CatalogView(self, snapshot.at)
        older.next = newer
        for key, change in changes.items():
            if change is None:
                self.values.pop(key, None)
            else:
                self.values[key] = change
        self._move_indexes(older, newer, changes)
        self._move_graph(older, newer, changes)
        self.newest = newer

    def _move_graph(
        self, older: CatalogView, newer: CatalogView, changes: Mapping[Key, Value | None]
    ) -> None:
        cached = self._graph
        is_same = not any(isinstance(key, tuple) and key[0] in ("role", "membership") for key in changes)
        self._graph = (newer, cached[1]) if cached is not None and cached[0] is older and is_same else None

    def _move_indexes(
        self, older: CatalogView, newer: CatalogView, changes: Mapping[Key, Value | None]
    ) -> None:
        # An index of an older version would keep that version alive.
        if self._indexes is not None:
            is_current = self._indexes[0] is older
            self._indexes = (newer, self._moved(self._indexes[1], changes)) if is_current else None
        if self._contents is not None:
            is_current = self._contents[0] is older
            self._contents = (newer, self._moved(self._contents[1], changes)) if is_current else None

    def _moved(self, index: Index, changes: Mapping[Key, Value | None]) -> Index:
        for key, change in changes.items():
            if isinstance(key, int):
                assert change is None or isinstance(change, CachedEntry)
                index.moved(key, None if change is None else change.glance(self.catalog))
        return index

    def _changes(self, snapshot: Snapshot) -> dict[Key, Value | None]:
        if self.newest.at == ZERO_AT:
            return dict(self._all(snapshot))
        try:
            revisions = [
                each for span in self.catalog.spans for each in snapshot.diff(span, since_at=self.newest.at)
            ]
        except (SnapshotTooOld, BaseMoved):
            return self._changes_by_comparing(snapshot)
        return {
            self._key(key): None if value is None else self._decoded(key, value)
            for key, _, value in revisions
        }

    def _changes_by_comparing(self, snapshot: Snapshot) -> dict[Key, Value | None]:
        """The same, where the history since the newest version is gone: reads everything."""
        changes: dict[Key, Value | None] = dict.fromkeys(self.values)
        for key, value in self._all(snapshot):
            if self._is_new(self.values.get(key), value):
                changes[key] = value
            else:
                del changes[key]
        return changes

    def _is_new(self, cached: Value | None, value: Value) -> bool:
        if isinstance(cached, CachedEntry) and isinstance(value, CachedEntry):
            return cached.descriptor(self.catalog) != value.descriptor(self.catalog)
        return cached != value

    def _all(self, snapshot: Snapshot) -> Iterator[tuple[Key, Value]]:
        for span in self.catalog.spans:
            for key, value in snapshot.scan(span):
                yield self._key(key), self._decoded(key, value)

    def _key(self, key: bytes) -> Key:
        if self.catalog.is_of_roles(key):
            return self.catalog.roles.key_at(key)
        columns = self.catalog.columns_of(key)
        return columns[0] if len(columns) == 1 and isinstance(columns[0], int) else columns

    def _decoded(self, key: bytes, value: bytes) -> Value:
        if key.startswith(self.catalog.descriptors_head):
            return CachedEntry(value)
        if self.catalog.is_of_roles(key):
            return self.catalog.role_record(key, value)
        record = self.catalog.record_of(key, value)
        if isinstance(record, NameEntry):
            return record.id
        assert isinstance(record, SchemaEntry)
        return record


def same(ids: Iterable[int], older: CatalogView, newer: CatalogView) -> list[int]:
    """The descriptors that are equal in both versions."""
    return [id for id in ids if older.is_same(id, newer)]
