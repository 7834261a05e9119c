"""Resolves a written name to the object that it means.

    t          the first schema of the search path that has it
    x.t        schema x of the current database, if and only if its map has x; else database x
    d.s.t      database, schema, name
    pg_temp.t  a temporary object of the session; these come first in the search path, unless it names pg_temp

"$user" in the search path stands for the user's own schema; schemas that do not exist are skipped. The
database's map, as of the lease, says where a schema is: so `x.t` means one thing in one transaction, also
while objects are created or converted. The database, the schema and the object are pinned in this order.

A name that is not found is looked up in the store, at the transaction's `read_at`, before an error says that
it does not exist. If the store has it, the lease is behind: it is renewed, and the transaction starts over.

Invariant (I39): a name is resolved by the map of one leased version of its database.

Walk: SQL's binder calls `resolve`; `resolve` -> `find`, over the lease and then over the store.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from tenure.base.errors import RetryError
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import (
    PUBLIC_SCHEMA,
    AnyDescriptor,
    Database,
    DescriptorState,
    NameKey,
    Schema,
    SchemaEntry,
    is_dropped,
)
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction

USER = "$user"
PG_TEMP = "pg_temp"
"""What a session calls the schema of its temporary objects."""


class CatalogReader(Protocol):
    """A catalog as of some time: a lease's, the store's, or that of a fixed time."""

    def descriptor(self, id: int) -> AnyDescriptor | None: ...

    def id_at(self, place: NameKey) -> int | None: ...

    def schema_entry(self, database: int, name: str) -> SchemaEntry | None: ...


class Path(NamedTuple):
    """The search path for unqualified names."""

    database: int
    schemas: tuple[str, ...] = (USER, PUBLIC_SCHEMA)
    user: str = ""
    temporary: int = 0
    """The schema of the session's temporary objects, once it has had any."""

    def searched(self) -> list[str]:
        """The names in search order: temporary objects first, unless the path says where they come."""
        found = self.names()
        return found if not self.temporary or PG_TEMP in found else [PG_TEMP, *found]

    def names(self) -> list[str]:
        named = [self.user if each == USER else each for each in self.schemas]
        return [each for each in named if each]


def resolve(
    use: CatalogUse, catalog: Catalog, name: Sequence[str], path: Path, *, renew: Callable[[], None]
) -> AnyDescriptor | None:
    """The object that a name means to a transaction; None if it does not exist at its `read_at`."""
    found = find(use, name, path)
    if found is None and not use.draft and find(InStore(catalog, use.txn), name, path) is not None:
        renew()
        raise RetryError(f'"{".".join(name)}" is newer than this node\'s schema lease')
    return found


def find(catalog: CatalogReader, name: Sequence[str], path: Path) -> AnyDescriptor | None:
    """The object that a name of one, two or three parts means; None if there is none."""
    for schema in schemas_of(catalog, name[:-1], path):
        id = catalog.id_at(NameKey(schema.database, schema.id, name[-1]))
        found = None if id is None else catalog.descriptor(id)
        if found is not None and not is_dropped(found):
            return found
    return None


def schemas_of(catalog: CatalogReader, qualifier: Sequence[str], path: Path) -> list[Schema]:
    """The schemas that a qualifier means, in search order."""
    if not qualifier:
        found = [schema_at(catalog, path, each) for each in path.searched()]
        return [each for each in found if each is not None]
    if len(qualifier) == 1:
        own = schema_at(catalog, path, qualifier[0])
        if own is not None or qualifier[0] == PG_TEMP:
            return [] if own is None else [own]
        database, schema = qualifier[0], PUBLIC_SCHEMA
    else:
        database, schema = qualifier
    id = catalog.id_at(NameKey(0, 0, database))
    other = None if id is None else schema_at(catalog, path, schema, database=id)
    return [] if other is None else [other]


def schema_at(catalog: CatalogReader, path: Path, name: str, *, database: int | None = None) -> Schema | None:
    """A schema by the map of its database, which is pinned first; the path's database if none is named.

    That of temporary objects is found by either of its names.
    """
    holder_id = path.database if database is None else database
    if path.temporary:
        temporary = catalog.descriptor(path.temporary)
        if isinstance(temporary, Schema) and name in (PG_TEMP, temporary.name):
            return temporary if temporary.database == holder_id else None
    holder = catalog.descriptor(holder_id)
    if not isinstance(holder, Database) or is_dropped(holder):
        return None
    entry = catalog.schema_entry(holder_id, name)
    if entry is None or entry.state is not DescriptorState.PUBLIC:
        return None
    schema = catalog.descriptor(entry.id)
    return schema if isinstance(schema, Schema) else None


class InStore:
    """The catalog as a transaction or snapshot reads it."""

    def __init__(self, catalog: Catalog, source: Transaction | Snapshot) -> None:
        self._catalog = catalog
        self._source = source

    def descriptor(self, id: int) -> AnyDescriptor | None:
        return self._catalog.get(self._source, id)

    def id_at(self, place: NameKey) -> int | None:
        return self._catalog.id_at(self._source, place)

    def schema_entry(self, database: int, name: str) -> SchemaEntry | None:
        return self._catalog.schema_entry(self._source, database, name)
