"""Dropping whole objects: RESTRICT says what is in the way, CASCADE takes exactly that along.

    table      foreign keys of others that refer to it
    type       columns of tables that have it
    schema     its tables and types, and what these drag along
    database   its schemas, and all that is in them

What is dropped together is not in its own way. A dropped descriptor keeps its name as draining, and
stays until its data is gone; what it refers to forgets it at once.

The contents of a schema or database are handed in as they are in the store, read in the
transaction itself, so that an object that somebody adds meanwhile makes it start over.

Invariant (drop-closure): RESTRICT fails if and only if something is in the way, and CASCADE drops
exactly what depends.

Walk: `sql` calls these for DROP.
"""

from collections.abc import Iterable, Iterator, Sequence

from tenure.catalog.changes import (
    DropColumn,
    DropInbound,
    DropKey,
    Known,
    Referring,
    alter,
    descriptor_of,
    enums_of,
    referring_to,
    table_of,
    unregister,
)
from tenure.catalog.descriptors import (
    PUBLIC_SCHEMA,
    AnyDescriptor,
    Column,
    Database,
    EnumType,
    Schema,
    Table,
    is_dropped,
)
from tenure.catalog.drafts import Draft
from tenure.catalog.errors import DependentObjects
from tenure.catalog.parts import staying


def drop_objects(draft: Draft, known: Known, ids: Sequence[int], *, is_cascade: bool = False) -> None:
    """Drops tables and types together."""
    going = [_existing(draft, known, id) for id in ids]
    together = {each.id for each in going}
    if not is_cascade:
        for each in going:
            if needing := [*_needing(draft, known, each, together)]:
                raise DependentObjects.of(title(each), needing)
    for each in going:
        match each:
            case Table():
                _free_table(draft, known, each.id, together)
            case EnumType():
                _free_type(draft, known, each, together)
    for each in going:
        draft.drop(_existing(draft, known, each.id))


def drop_schema(
    draft: Draft, known: Known, id: int, contents: Iterable[int], *, is_cascade: bool = False
) -> None:
    """Drops a schema; `contents` are the tables and types it has in the store."""
    schema = _existing(draft, known, id)
    assert isinstance(schema, Schema), f"{id} is no schema"
    inside = [*_inside(draft, known, {id}, contents)]
    if inside and not is_cascade:
        raise DependentObjects.of(title(schema), (title(each, schema) for each in inside))
    drop_objects(draft, known, [each.id for each in inside], is_cascade=True)
    _drop_schema(draft, known, schema)


def drop_database(
    draft: Draft,
    known: Known,
    id: int,
    schemas: Iterable[int],
    contents: Iterable[int],
    *,
    is_cascade: bool = False,
) -> None:
    """Drops a database; an empty schema `public` is not in the way."""
    database = _existing(draft, known, id)
    assert isinstance(database, Database), f"{id} is no database"
    parents = {each.id: each for each in _schemas(draft, known, id, schemas)}
    inside = [*_inside(draft, known, parents.keys(), contents)]
    if not is_cascade:
        titles = [title(each) for each in parents.values() if each.name != PUBLIC_SCHEMA]
        titles += [title(each, parents[each.schema]) for each in inside]
        if titles:
            raise DependentObjects.of(title(database), titles)
    drop_objects(draft, known, [each.id for each in inside], is_cascade=True)
    for schema in parents.values():
        _drop_schema(draft, known, schema)
    draft.drop(_existing(draft, known, id))


def title(descriptor: AnyDescriptor, schema: Schema | None = None) -> str:
    """What it is called in messages."""
    kind = "type" if isinstance(descriptor, EnumType) else type(descriptor).__name__.lower()
    name = descriptor.name if schema is None else f"{schema.name}.{descriptor.name}"
    return f"{kind} {name}"


# ── what is in the way ─────────────────────────────────────────────────────────────────────────


def _needing(
    draft: Draft, known: Known, descriptor: AnyDescriptor, together: set[int]
) -> Iterator[Referring | str]:
    match descriptor:
        case Table():
            for each in referring_to(draft, known, descriptor):
                if each.table not in together:
                    yield each
        case EnumType():
            for table, column in _users(draft, known, descriptor, together):
                yield f"column {column.name} of table {table.name}"


def _users(draft: Draft, known: Known, type_: EnumType, together: set[int]) -> Iterator[tuple[Table, Column]]:
    for id in type_.referents:
        table = descriptor_of(draft, known, id)
        if id in together or not isinstance(table, Table) or is_dropped(table):
            continue
        for column in staying(table.columns):
            if column.type.enum == type_.id:
                yield table, column


def _inside(
    draft: Draft, known: Known, schemas: Iterable[int], contents: Iterable[int]
) -> Iterator[Table | EnumType]:
    """The tables and types in these schemas, what the transaction itself did included."""
    parents = set(schemas)
    for id in sorted({*contents, *draft.declared}):
        each = descriptor_of(draft, known, id)
        if isinstance(each, Table | EnumType) and each.schema in parents and not is_dropped(each):
            yield each


def _schemas(draft: Draft, known: Known, database: int, schemas: Iterable[int]) -> Iterator[Schema]:
    for id in sorted({*schemas, *draft.declared}):
        each = descriptor_of(draft, known, id)
        if isinstance(each, Schema) and each.database == database and not is_dropped(each):
            yield each


# ── letting go ─────────────────────────────────────────────────────────────────────────────────


def _free_table(draft: Draft, known: Known, id: int, together: set[int]) -> None:
    """Takes a table out of what it refers to and what refers to it."""
    table = table_of(draft, known, id)
    for each in referring_to(draft, known, table):
        if each.table not in together:
            alter(draft, known, each.table, DropKey(each.key.id))
    for key in table.foreign_keys:
        if key.target not in together:
            alter(draft, known, key.target, DropInbound(id, key.id))
    for enum in sorted({*enums_of(table)} - together):
        unregister(draft, known, enum, id)


def _free_type(draft: Draft, known: Known, type_: EnumType, together: set[int]) -> None:
    for table, column in [*_users(draft, known, type_, together)]:
        referring = referring_to(draft, known, table_of(draft, known, table.id))
        alter(draft, known, table.id, DropColumn(column.name, is_cascade=True, referring=referring))


def _drop_schema(draft: Draft, known: Known, schema: Schema) -> None:
    draft.drop(schema)
    database = _existing(draft, known, schema.database)
    assert isinstance(database, Database)
    draft.touch(database)


def _existing(draft: Draft, known: Known, id: int) -> AnyDescriptor:
    descriptor = descriptor_of(draft, known, id)
    assert descriptor is not None, f"there is no descriptor {id}"
    return descriptor
