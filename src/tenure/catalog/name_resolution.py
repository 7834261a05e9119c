"""Resolves a written name to the object that it means.

    t          the first schema of the search path that has it
    x.t        schema x of the current database, if and only if its map has x; else database x
    d.s.t      database, schema, name

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
)
from tenure.catalog.leases.catalog_use import Use
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction

USER = "$user"


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

    def names(self) -> list[str]:
        named = [self.user if each == USER else each for each in self.schemas]
        return [each for each in named if each]


def resolve(
    use: Use, catalog: Catalog, name: Sequence[str], path: Path, *, renew: Callable[[], None]
) -> AnyDescriptor | None:
    """The object that a name means to a transaction; None if it does not exist at its `read_at`."""
    found = find(use, name, path)
    if found is None and not use.draft and find(InStore(catalog, use.txn), name, path) is not None:
        renew()
        raise RetryError(f'"{".".join(name)}" is newer than this node\'s schema lease')
    return found


def find(known: CatalogReader, name: Sequence[str], path: Path) -> AnyDescriptor | None:
    """The object that a name of one, two or three parts means; None if there is none."""
    for schema in schemas_of(known, name[:-1], path):
        id = known.id_at(NameKey(schema.database, schema.id, name[-1]))
        found = None if id is None else known.descriptor(id)
        if found is not None and found.state is not DescriptorState.DROPPED:
            return found
    return None


def schemas_of(known: CatalogReader, qualifier: Sequence[str], path: Path) -> list[Schema]:
    """The schemas that a qualifier means, in search order."""
    if not qualifier:
        found = [_schema(known, path.database, each) for each in path.names()]
        return [each for each in found if each is not None]
    if len(qualifier) == 1:
        own = _schema(known, path.database, qualifier[0])
        if own is not None:
            return [own]
        database, schema = qualifier[0], PUBLIC_SCHEMA
    else:
        database, schema = qualifier
    id = known.id_at(NameKey(0, 0, database))
    other = None if id is None else _schema(known, id, schema)
    return [] if other is None else [other]


def _schema(known: CatalogReader, database: int, name: str) -> Schema | None:
    """A schema by the map of its database, which is pinned first."""
    holder = known.descriptor(database)
    if not isinstance(holder, Database) or holder.state is DescriptorState.DROPPED:
        return None
    entry = known.schema_entry(database, name)
    if entry is None or entry.state is not DescriptorState.PUBLIC:
        return None
    schema = known.descriptor(entry.id)
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
