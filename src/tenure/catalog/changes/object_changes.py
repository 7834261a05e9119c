"""Databases, schemas, tables and types as a whole: made, renamed and moved in a draft.

Views are made by `catalog.changes.view_changes` and sequences by `catalog.changes.sequence_changes`; they are
renamed, moved and commented here, like all others. Sequences that a table's columns own move with it.

Each function changes the descriptor, its name and its database's map of schemas together; a schema that is
created, dropped or renamed gives its database a new version. Ids are handed in, because the store assigns
them.

A statement that puts an object into a schema relies on the schema's version, so that a schema that is being
dropped accepts no more objects.

Walk: `sql` calls these for CREATE and ALTER ... RENAME.
"""

from collections.abc import Sequence

from tenure.base.errors import NotSupported
from tenure.base.timestamp import ZERO_AT
from tenure.catalog.accounts.public_schemas import privileges_of_public
from tenure.catalog.changes.free_names import database_of, require_free, schema_of
from tenure.catalog.changes.index_changes import key_parts
from tenure.catalog.changes.table_changes import (
    AddColumn,
    CatalogBelow,
    NamedKeyColumn,
    TableChange,
    alter,
    declare,
    descriptor_of,
    owned_sequences,
    row_id_column,
)
from tenure.catalog.changes.table_parts import require_not_null
from tenure.catalog.descriptors.definitions import (
    PUBLIC_SCHEMA,
    AnyDescriptor,
    Contained,
    Database,
    DescriptorState,
    EnumType,
    Expression,
    Grant,
    Index,
    Schema,
    Table,
    place_of,
    replace,
)
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.catalog.descriptors.drafts import Draft
from tenure.catalog.descriptors.enum_members import added, enum_members, renamed
from tenure.catalog.descriptors.role_records import key_of

FIRST = 1
"""The version of a new descriptor, and the id of a new table's primary index."""


# ── creating ───────────────────────────────────────────────────────────────────────────────────


def create_database(
    draft: Draft,
    catalog: CatalogBelow,
    *,
    id: int,
    schema: int,
    name: str,
    owner: str,
    privileges: tuple[Grant, ...] = (),
) -> Database:
    """A database with its schema `public`, whose id is handed in too."""
    database = Database(id, FIRST, ZERO_AT, name, owner, DescriptorState.PUBLIC, privileges, ())
    require_free(draft, catalog, database)
    draft.create(database)
    draft.create(
        Schema(schema, FIRST, ZERO_AT, PUBLIC_SCHEMA, owner, DescriptorState.PUBLIC, (), (), database=id)
    )
    public = privileges_of_public(schema)
    draft.set_record(key_of(public), public, former=None)
    return database


def create_schema(
    draft: Draft,
    catalog: CatalogBelow,
    *,
    id: int,
    database: int,
    name: str,
    owner: str,
    privileges: tuple[Grant, ...] = (),
) -> Schema:
    parent = database_of(draft, catalog, database)
    schema = Schema(
        id, FIRST, ZERO_AT, name, owner, DescriptorState.PUBLIC, privileges, (), database=database
    )
    require_free(draft, catalog, schema)
    draft.create(schema)
    draft.touch(parent)
    return schema


def create_table(
    draft: Draft,
    catalog: CatalogBelow,
    *,
    id: int,
    schema: int,
    name: str,
    owner: str,
    columns: Sequence[AddColumn],
    row_id: Expression,
    key: tuple[NamedKeyColumn, ...] = (),
    key_name: str = "",
    is_key_deferrable: bool = False,
    changes: Sequence[TableChange] = (),
    privileges: tuple[Grant, ...] = (),
) -> Table:
    """A table; without a key its rows are kept by a hidden row id, whose default is `row_id`.

    Indexes and constraints come as changes. A table that refers to tables with other writers is `adding`
    first, until those writers know of it.
    """
    parent = schema_of(draft, catalog, schema)
    bare = Table(
        id,
        FIRST,
        ZERO_AT,
        name,
        owner,
        DescriptorState.PUBLIC,
        privileges,
        (),
        database=parent.database,
        schema=schema,
        columns=(),
        primary=FIRST,
        indexes=(),
    )
    require_free(draft, catalog, bare)
    table = bare
    for column in columns:
        # A new table has no rows that would need a value.
        table = replace(column, filled=None).apply(table)
    if not key:
        hidden = row_id_column(table, row_id)
        table = hidden.apply(table)
    parts = key or (NamedKeyColumn(hidden.name),)
    name_of_key = key_name or f"{name}_pkey"
    table = _with_primary(table, parts, name_of_key, is_constraint=bool(key), is_deferrable=is_key_deferrable)
    draft.create(table)
    draft.rely_on(parent)
    table = declare(draft, catalog, bare, table)
    for change in changes:
        table = alter(draft, catalog, id, change)
    return table


def create_enum(
    draft: Draft,
    catalog: CatalogBelow,
    *,
    id: int,
    schema: int,
    name: str,
    owner: str,
    labels: Sequence[str],
    privileges: tuple[Grant, ...] = (),
) -> EnumType:
    parent = schema_of(draft, catalog, schema)
    members = enum_members(labels)
    type_ = EnumType(
        id,
        FIRST,
        ZERO_AT,
        name,
        owner,
        DescriptorState.PUBLIC,
        privileges,
        (),
        database=parent.database,
        schema=schema,
        members=members,
    )
    require_free(draft, catalog, type_)
    draft.create(type_)
    draft.rely_on(parent)
    return type_


def _with_primary(
    table: Table, parts: tuple[NamedKeyColumn, ...], name: str, *, is_constraint: bool, is_deferrable: bool
) -> Table:
    primary = Index(
        FIRST,
        name,
        key_parts(table, parts, "primary key constraint"),
        is_unique=True,
        primary=FIRST,
        is_constraint=is_constraint,
        is_deferrable=is_deferrable,
    )
    table = replace(table, indexes=(primary,), next_index=FIRST + 1)
    for part in primary.parts:
        table = require_not_null(table, table.column(part.column))
    return table


# ── changing ───────────────────────────────────────────────────────────────────────────────────


def rename_object(draft: Draft, catalog: CatalogBelow, id: int, name: str) -> AnyDescriptor:
    """Renames a descriptor of any kind."""
    former = _existing(draft, catalog, id)
    return former if former.name == name else _move(draft, catalog, former, replace(former, name=name))


def set_schema(draft: Draft, catalog: CatalogBelow, id: int, schema: int, *, name: str = "") -> AnyDescriptor:
    """Moves an object to another schema, possibly of another database."""
    former = _existing(draft, catalog, id)
    assert isinstance(former, Contained), "only these stand in a schema"
    _require_unlinked(draft, catalog, former, "cannot move an owned sequence into another schema")
    parent = schema_of(draft, catalog, schema)
    moved = replace(former, database=parent.database, schema=schema, name=name or former.name)
    if place_of(moved) == place_of(former):
        return former
    draft.rely_on(parent)
    if isinstance(former, Table):
        for sequence in owned_sequences(draft, catalog, former):
            if sequence.schema != schema:
                with_it = replace(sequence, database=parent.database, schema=schema)
                _move(draft, catalog, sequence, with_it)
    return _move(draft, catalog, former, moved)


def set_owner(draft: Draft, catalog: CatalogBelow, id: int, owner: str) -> AnyDescriptor:
    former = _existing(draft, catalog, id)
    if former.owner != owner:
        _require_unlinked(draft, catalog, former, f'cannot change owner of sequence "{former.name}"')
    for sequence in owned_sequences(draft, catalog, former) if isinstance(former, Table) else ():
        draft.declare(replace(sequence, owner=owner), made_from=sequence.version)
    draft.declare(replace(former, owner=owner), made_from=former.version)
    return draft.declared[id]


def set_comment(draft: Draft, catalog: CatalogBelow, id: int, comment: str | None) -> AnyDescriptor:
    """Sets the comment of a descriptor of any kind; None or an empty text removes it."""
    former = _existing(draft, catalog, id)
    draft.declare(replace(former, comment=comment or ""), made_from=former.version)
    return draft.declared[id]


def add_enum_value(
    draft: Draft,
    catalog: CatalogBelow,
    id: int,
    label: str,
    *,
    before: str | None = None,
    after: str | None = None,
) -> EnumType:
    """Adds a label, at the end or beside a neighbour; it may be written once all nodes can read it."""
    type_ = _enum(draft, catalog, id)
    changed = added(type_, label, before=before, after=after, is_seen=not draft.is_new(id))
    draft.declare(changed, made_from=type_.version)
    return changed


def rename_enum_value(draft: Draft, catalog: CatalogBelow, id: int, label: str, to: str) -> EnumType:
    type_ = _enum(draft, catalog, id)
    changed = renamed(type_, label, to)
    draft.declare(changed, made_from=type_.version)
    return changed


def _require_unlinked(draft: Draft, catalog: CatalogBelow, descriptor: AnyDescriptor, message: str) -> None:
    """A sequence that a column owns follows its table."""
    if isinstance(descriptor, SequenceDescriptor) and descriptor.owned_by is not None:
        table = _existing(draft, catalog, descriptor.owned_by.table)
        detail = f'Sequence "{descriptor.name}" is linked to table "{table.name}".'
        raise NotSupported(message, detail=detail)


def _move(draft: Draft, catalog: CatalogBelow, former: AnyDescriptor, moved: AnyDescriptor) -> AnyDescriptor:
    require_free(draft, catalog, moved)
    if isinstance(former, Schema):
        draft.touch(database_of(draft, catalog, former.database))
    return draft.move(former, moved)


def _existing(draft: Draft, catalog: CatalogBelow, id: int) -> AnyDescriptor:
    descriptor = descriptor_of(draft, catalog, id)
    assert descriptor is not None, f"there is no descriptor {id}"
    return descriptor


def _enum(draft: Draft, catalog: CatalogBelow, id: int) -> EnumType:
    type_ = _existing(draft, catalog, id)
    assert isinstance(type_, EnumType), f"{id} is no enum"
    return type_
