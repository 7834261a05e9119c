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
from typing import TypeAlias

from tenure.base.errors import BaseMoved, SnapshotTooOld
from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.catalog.descriptors.catalog_records import Catalog, NameEntry
from tenure.catalog.descriptors.definitions import AnyDescriptor, NameKey, SchemaEntry
from tenure.catalog.descriptors.index_holders import IndexHolders
from tenure.kv.snapshot import Snapshot

Key: TypeAlias = int | tuple[int | str, ...]
"""A descriptor's id, (database, schema, name) or (database, name)."""


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


Value: TypeAlias = CachedEntry | int | SchemaEntry


class CatalogView:
    """The catalog as of one lease."""

    __slots__ = ("_cache", "at", "before", "next")

    def __init__(self, cache: "Cache", at: Timestamp) -> None:
        self._cache = cache
        self.at = at
        self.before: dict[Key, Value | None] = {}
        """The former values of the keys that the next version changed."""
        self.next: CatalogView | None = None

    def descriptor(self, id: int) -> AnyDescriptor | None:
        entry = self.find(id)
        assert entry is None or isinstance(entry, CachedEntry)
        return None if entry is None else entry.descriptor(self._cache.catalog)

    def descriptors(self) -> Iterator[AnyDescriptor]:
        """All of them, for callers that search for something without a name of its own."""
        for id in self.ids():
            found = self.descriptor(id)
            if found is not None:
                yield found

    def index_holders(self, schema: int, name: str) -> frozenset[int]:
        """Tables of a schema that may have an index of this name: no others do."""
        return self._cache.index_holders().of(schema, name)

    def glances(self) -> Iterator[AnyDescriptor]:
        """All descriptors; values that were not decoded yet are not kept."""
        for id in self.ids():
            entry = self.find(id)
            if entry is not None:
                assert isinstance(entry, CachedEntry)
                yield entry.glance(self._cache.catalog)

    def id_at(self, place: NameKey) -> int | None:
        found = self.find((place.database, place.schema, place.name))
        assert found is None or isinstance(found, int)
        return found

    def schema_entry(self, database: int, name: str) -> SchemaEntry | None:
        found = self.find((database, name))
        assert found is None or isinstance(found, SchemaEntry)
        return found

    def find(self, key: Key) -> Value | None:
        version = self
        while True:
            while (following := version.next) is not None:
                if key in version.before:
                    return version.before[key]
                version = following
            value = self._cache.newest_value(key)
            # If there is no newer version even now, the dictionary had not been changed yet.
            if version.next is None:
                return value

    def ids(self) -> list[int]:
        """The ids of all descriptors, and of some that are gone: the caller looks each of them up."""
        # The dictionary first: an entry that leaves it is in some `before` by then.
        found = dict.fromkeys(self._cache.keys())
        version: CatalogView | None = self
        while version is not None:
            found.update(dict.fromkeys(list(version.before)))
            version = version.next
        return sorted(key for key in found if isinstance(key, int))

    def is_same(self, id: int, other: "CatalogView") -> bool:
        """Whether both have the descriptor in the same version."""
        return self.find(id) is other.find(id)


class Cache:
    """The catalog as of the newest lease; one writer at a time, any number of readers."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._values: dict[Key, Value] = {}
        self.newest = CatalogView(self, ZERO_AT)
        self._indexes: tuple[CatalogView, IndexHolders] | None = None
        """With the version it is of, once it was needed."""

    def __len__(self) -> int:
        return len(self._values)

    def keys(self) -> list[Key]:
        return list(self._values)

    def newest_value(self, key: Key) -> Value | None:
        return self._values.get(key)

    def index_holders(self) -> IndexHolders:
        """As of the newest version, or one that is just becoming it."""
        known, newest = self._indexes, self.newest
        if known is not None and known[0] is newest:
            return known[1]
        # If the writer overtook it, this is of an older version: the next caller builds it again.
        made = IndexHolders(newest.glances())
        self._indexes = newest, made
        return made

    def advance(self, snapshot: Snapshot) -> None:
        """Applies the changes since the newest version; that one stays as it is."""
        older, changes = self.newest, self._changes(snapshot)
        for key in changes:
            older.before[key] = self._values.get(key)
        newer = CatalogView(self, snapshot.at)
        older.next = newer
        for key, change in changes.items():
            if change is None:
                self._values.pop(key, None)
            else:
                self._values[key] = change
        self._move_indexes(older, newer, changes)
        self.newest = newer

    def _move_indexes(
        self, older: CatalogView, newer: CatalogView, changes: Mapping[Key, Value | None]
    ) -> None:
        known = self._indexes
        if known is None or known[0] is not older:
            self._indexes = None  # an index of an older version would keep that version alive
            return
        for key, change in changes.items():
            if isinstance(key, int):
                assert change is None or isinstance(change, CachedEntry)
                known[1].moved(key, None if change is None else change.glance(self.catalog))
        self._indexes = newer, known[1]

    def _changes(self, snapshot: Snapshot) -> dict[Key, Value | None]:
        if self.newest.at == ZERO_AT:
            return dict(self._all(snapshot))
        try:
            revisions = snapshot.diff(self.catalog.span, since_at=self.newest.at)
        except (SnapshotTooOld, BaseMoved):
            return self._changes_by_comparing(snapshot)
        return {
            self._key(key): None if value is None else self._decoded(key, value)
            for key, _, value in revisions
        }

    def _changes_by_comparing(self, snapshot: Snapshot) -> dict[Key, Value | None]:
        """The same, where the history since the newest version is gone: reads everything."""
        changes: dict[Key, Value | None] = dict.fromkeys(self._values)
        for key, value in self._all(snapshot):
            if self._is_new(self._values.get(key), value):
                changes[key] = value
            else:
                del changes[key]
        return changes

    def _is_new(self, known: Value | None, value: Value) -> bool:
        if isinstance(known, CachedEntry) and isinstance(value, CachedEntry):
            return known.descriptor(self.catalog) != value.descriptor(self.catalog)
        return known != value

    def _all(self, snapshot: Snapshot) -> Iterator[tuple[Key, Value]]:
        for key, value in snapshot.scan(self.catalog.span):
            yield self._key(key), self._decoded(key, value)

    def _key(self, key: bytes) -> Key:
        columns = self.catalog.columns_of(key)
        return columns[0] if len(columns) == 1 and isinstance(columns[0], int) else columns

    def _decoded(self, key: bytes, value: bytes) -> Value:
        if key.startswith(self.catalog.descriptors_head):
            return CachedEntry(value)
        record = self.catalog.record_of(key, value)
        if isinstance(record, NameEntry):
            return record.id
        assert isinstance(record, SchemaEntry)
        return record


def same(ids: Iterable[int], older: CatalogView, newer: CatalogView) -> list[int]:
    """The descriptors that are equal in both versions."""
    return [id for id in ids if older.is_same(id, newer)]
