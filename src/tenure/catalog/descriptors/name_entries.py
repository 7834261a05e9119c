"""The entries of a descriptor in the namespace and in its database's map: derived, never chosen.

    a descriptor's entries   its name (unless it is dropped) and the names that drain
    a schema's map entries   its name, public; the names that drain, dropped

So publishing a version moves names by the difference between two descriptors, in the same
transaction, and I38 holds by construction.

Invariant (I39): while a name drains, no other descriptor can have it.

Walk: `catalog.changes.publisher` applies the differences.
"""

from collections.abc import Sequence

from tenure.base.errors import (
    Duplicate,
    DuplicateDatabase,
    DuplicateObject,
    DuplicateRelation,
    DuplicateSchema,
    ObjectInUse,
)
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Database,
    DescriptorState,
    EnumType,
    NameKey,
    Schema,
    SchemaEntry,
    Table,
    View,
    is_dropped,
    place_of,
)
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.kv.transaction import Transaction

_DUPLICATES: dict[type[AnyDescriptor], tuple[str, type[Duplicate]]] = {
    Database: ("database", DuplicateDatabase),
    Schema: ("schema", DuplicateSchema),
    EnumType: ("type", DuplicateObject),
    Table: ("relation", DuplicateRelation),
    View: ("relation", DuplicateRelation),
    SequenceDescriptor: ("relation", DuplicateRelation),
}


def places(descriptor: AnyDescriptor | None) -> frozenset[NameKey]:
    """The namespace entries that a descriptor has."""
    if descriptor is None:
        return frozenset()
    own = () if is_dropped(descriptor) else (place_of(descriptor),)
    return frozenset((*own, *descriptor.draining))


def map_entries(descriptor: AnyDescriptor | None) -> dict[tuple[int, str], SchemaEntry]:
    """The entries that a schema has in the maps of databases."""
    if not isinstance(descriptor, Schema):
        return {}
    current = place_of(descriptor)
    return {
        (place.database, place.name): SchemaEntry(
            place.database,
            place.name,
            descriptor.id,
            DescriptorState.PUBLIC
            if place == current and descriptor.state is DescriptorState.PUBLIC
            else DescriptorState.DROPPED,
        )
        for place in places(descriptor)
    }


Move = tuple[AnyDescriptor | None, AnyDescriptor]
"""A descriptor before and after a change."""


def changed_maps(moves: Sequence[Move]) -> set[int]:
    """The databases whose map changes."""
    return {
        database
        for former, descriptor in moves
        for (database, _), _ in map_entries(former).items() ^ map_entries(descriptor).items()
    }


def move_names(txn: Transaction, catalog: Catalog, moves: Sequence[Move]) -> frozenset[int]:
    """Moves names and maps from some versions to the next; returns the databases whose map changed.

    All removals go first: one of these descriptors may take a name that another had.
    """
    for former, descriptor in moves:
        for place in sorted(places(former) - places(descriptor), key=_order):
            catalog.delete_name(txn, place)
    for former, descriptor in moves:
        for place in sorted(places(descriptor) - places(former), key=_order):
            _check_free(txn, catalog, place, descriptor)
            catalog.put_name(txn, place, descriptor.id)
    return _move_entries(txn, catalog, moves)


def _move_entries(txn: Transaction, catalog: Catalog, moves: Sequence[Move]) -> frozenset[int]:
    gone: set[tuple[int, str]] = set()
    changed: dict[tuple[int, str], SchemaEntry] = {}
    for former, descriptor in moves:
        before, after = map_entries(former), map_entries(descriptor)
        gone |= before.keys() - after.keys()
        changed |= {key: entry for key, entry in after.items() if before.get(key) != entry}
    for database, name in sorted(gone - changed.keys()):
        catalog.delete_schema_entry(txn, database, name)
    for key in sorted(changed):
        catalog.put_schema_entry(txn, changed[key])
    return frozenset(database for database, _ in gone | changed.keys())


def _check_free(txn: Transaction, catalog: Catalog, place: NameKey, descriptor: AnyDescriptor) -> None:
    id = catalog.id_at(txn, place)
    if id is None or id == descriptor.id:
        return
    holder = catalog.get(txn, id)
    if holder is not None and place in holder.draining:
        raise ObjectInUse(
            f'name "{place.name}" was given up by descriptor {id} and is still in use under older leases',
            hint="Try again when no node uses the former object any more; SHOW BLOCKERS names those that do.",
        )
    kind, error = _DUPLICATES[type(descriptor)]
    raise error(f'{kind} "{descriptor.name}" already exists')


def _order(place: NameKey) -> tuple[int, int, str]:
    return place.database, place.schema, place.name
