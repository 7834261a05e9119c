"""Free names: whether an object can have a name key, and the reason if not.

A name that is draining belongs to its former owner until the leases that resolve it are gone (55006). A name
that a transaction itself gives up it may give to another object: its commit does both.

Walk: `object_changes`, `sequence_changes`, `view_changes` and `undrops` call `require_free` before they
assign a name.
"""

from tenure.base.errors import (
    DuplicateDatabase,
    DuplicateObject,
    DuplicateRelation,
    DuplicateSchema,
    InvalidName,
    ObjectInUse,
    UndefinedDatabase,
    UndefinedSchema,
    UserError,
)
from tenure.catalog.changes.table_changes import CatalogBelow, descriptor_of
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Database,
    EnumType,
    NameKey,
    Schema,
    Sequence,
    Table,
    View,
    is_dropped,
    place_of,
)
from tenure.catalog.descriptors.drafts import Draft
from tenure.catalog.descriptors.validation import NAME_BYTES_MAX


def require_free(draft: Draft, catalog: CatalogBelow, descriptor: AnyDescriptor) -> None:
    """Raises if a descriptor cannot have the name key that it names."""
    require_name(descriptor.name)
    place = place_of(descriptor)
    id = draft.names[place] if place in draft.names else catalog.id_at(place)
    if id is None and place not in draft.names:
        return
    holder = _draining_holder(draft, place) if id is None else descriptor_of(draft, catalog, id)
    if holder is not None and holder.id == descriptor.id:
        return  # its own former name
    if holder is not None and holder.id in draft.declared and place in holder.draining:
        return  # given up by this very transaction
    if holder is None or is_dropped(holder) or place_of(holder) != place:
        raise ObjectInUse(
            f'the name "{place.name}" is still in use by what had it before',
            hint="Try again when no node uses the former object any more; SHOW BLOCKERS names those that do.",
        )
    raise _duplicate(holder)


def require_name(name: str) -> None:
    if not name or "\0" in name or len(name.encode()) > NAME_BYTES_MAX:
        raise InvalidName(f'the name "{name}" is empty, too long or not printable')


def schema_of(draft: Draft, catalog: CatalogBelow, id: int) -> Schema:
    """A schema that accepts objects."""
    schema = descriptor_of(draft, catalog, id)
    if not isinstance(schema, Schema) or is_dropped(schema):
        raise UndefinedSchema(f'schema "{schema.name if schema else id}" does not exist')
    return schema


def database_of(draft: Draft, catalog: CatalogBelow, id: int) -> Database:
    database = descriptor_of(draft, catalog, id)
    if not isinstance(database, Database) or is_dropped(database):
        raise UndefinedDatabase(f'database "{database.name if database else id}" does not exist')
    return database


def _draining_holder(draft: Draft, place: NameKey) -> AnyDescriptor | None:
    return next((each for each in draft.declared.values() if place in each.draining), None)


def _duplicate(holder: AnyDescriptor) -> UserError:
    match holder:
        case Database():
            return DuplicateDatabase(f'database "{holder.name}" already exists')
        case Schema():
            return DuplicateSchema(f'schema "{holder.name}" already exists')
        case Table() | View() | Sequence():
            return DuplicateRelation(f'relation "{holder.name}" already exists')
        case EnumType():
            return DuplicateObject(f'type "{holder.name}" already exists')
