"""Dropping: RESTRICT reports the dependent objects, CASCADE drops exactly those too.

`catalog.changes.dependencies` finds the dependents of each kind; those of a schema are the objects in it,
those of a database its schemas too, with their dependents. Objects that are dropped together do not block
each other. A dropped descriptor keeps its name as draining, and stays until its data is gone; descriptors
that it refers to forget it at once.

Writers give a column that is being dropped its default until no reader sees it any more. So the values of a
sequence that was dropped with it can still be drawn.

The contents of a schema or database are handed in as they are in the store, read in the transaction itself,
so that an object that another transaction adds meanwhile makes it start over.

Invariant (drop-closure): RESTRICT fails if and only if there are dependent objects, and CASCADE drops exactly
those.

Walk: `sql` calls these for DROP -> `dependencies.closure`.
"""

from collections.abc import Iterable, Iterator, Sequence

from tenure.base.errors import DependentObjects
from tenure.catalog.changes.constraint_changes import DropConstraint
from tenure.catalog.changes.dependencies import (
    CHECK,
    COLUMN,
    CONSTRAINT,
    DEFAULT,
    INDEX,
    CatalogObject,
    Contents,
    Qualifies,
    always,
    closure,
    lines,
    name_of,
    never,
    title,
)
from tenure.catalog.changes.index_changes import DropIndex
from tenure.catalog.changes.table_changes import (
    CatalogBelow,
    DropColumn,
    DropDefault,
    DropIdentity,
    DropInbound,
    DropKey,
    alter,
    descriptor_of,
    owned_sequences,
    referring_to,
    sequences_of,
    set_dependent,
    table_of,
)
from tenure.catalog.changes.table_parts import TableChange, settled_column_of, staying
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Contained,
    Database,
    EnumType,
    Schema,
    Table,
    View,
    is_dropped,
    replace,
)
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.catalog.descriptors.drafts import Draft
from tenure.catalog.descriptors.used_types import enums_of

MANY = "desired object(s)"


def drop_objects(
    draft: Draft,
    catalog: CatalogBelow,
    ids: Sequence[int],
    *,
    is_cascade: bool = False,
    qualifies: Qualifies = never,
) -> None:
    """Drops tables, views, sequences and types together."""
    for id in ids:
        _require_not_identity(draft, catalog, id)
    roots = [CatalogObject(id) for id in dict.fromkeys(ids)]
    _drop(draft, catalog, roots, is_cascade=is_cascade, qualifies=qualifies)


def drop_column(
    draft: Draft,
    catalog: CatalogBelow,
    table: int,
    name: str,
    *,
    is_cascade: bool = False,
    qualifies: Qualifies = never,
) -> None:
    """Drops a column, with the sequences that it owns and the table's own elements that use it."""
    column = settled_column_of(table_of(draft, catalog, table), name)
    _drop(
        draft, catalog, [CatalogObject(table, COLUMN, column.id)], is_cascade=is_cascade, qualifies=qualifies
    )


def drop_identity(draft: Draft, catalog: CatalogBelow, table: int, name: str) -> None:
    """Makes a plain column of an identity column; its sequence is dropped."""
    altered = alter(draft, catalog, table, DropIdentity(name))
    owned = owned_sequences(draft, catalog, altered, settled_column_of(altered, name).id)
    drop_objects(draft, catalog, [each.id for each in owned])


def drop_schemas(
    draft: Draft,
    catalog: CatalogBelow,
    ids: Sequence[int],
    contents: Iterable[int],
    *,
    is_cascade: bool = False,
    qualifies: Qualifies = always,
) -> None:
    """Drops schemas together; `contents` are their objects in the store."""
    within = inside(draft, catalog, ids, contents)
    roots = [CatalogObject(id) for id in dict.fromkeys(ids)]
    _drop(draft, catalog, roots, within, is_cascade=is_cascade, qualifies=qualifies)


def drop_database(
    draft: Draft,
    catalog: CatalogBelow,
    id: int,
    schemas: Iterable[int],
    contents: Iterable[int],
    *,
    is_cascade: bool = False,
) -> None:
    """Drops a database; an empty schema `public` does not block it."""
    parents = [*_schemas(draft, catalog, id, schemas)]
    within = {id: parents, **inside(draft, catalog, [each.id for each in parents], contents)}
    _drop(draft, catalog, [CatalogObject(id)], within, is_cascade=is_cascade, qualifies=always)


# ── dependent objects ───────────────────────────────────────────────────────────────────────────


def _refusal(
    draft: Draft,
    catalog: CatalogBelow,
    roots: Sequence[CatalogObject],
    found: list[str],
    qualifies: Qualifies,
) -> DependentObjects:
    first = name_of(draft, catalog, roots[0], qualifies=qualifies)
    what, them = (first, "it") if len(roots) == 1 else (MANY, "them")
    return DependentObjects.listing(f"cannot drop {what} because other objects depend on {them}", found)


def _require_not_identity(draft: Draft, catalog: CatalogBelow, id: int) -> None:
    """The sequence of an identity column is a part of the column."""
    sequence = _existing(draft, catalog, id)
    owner = sequence.owned_by if isinstance(sequence, SequenceDescriptor) else None
    table = None if owner is None else descriptor_of(draft, catalog, owner.table)
    if owner is None or not isinstance(table, Table):
        return
    column = next((each for each in staying(table.columns) if each.id == owner.column), None)
    if column is not None and column.identity:
        what = f"column {column.name} of table {table.name}"
        raise DependentObjects(
            f"cannot drop {title(sequence)} because {what} requires it",
            hint=f"You can drop {what} instead.",
        )


def inside(draft: Draft, catalog: CatalogBelow, schemas: Iterable[int], contents: Iterable[int]) -> Contents:
    """The objects in each of these schemas, with the transaction's own changes."""
    found: dict[int, list[AnyDescriptor]] = {schema: [] for schema in schemas}
    for id in sorted({*contents, *draft.declared}):
        each = descriptor_of(draft, catalog, id)
        if isinstance(each, Contained) and each.schema in found and not is_dropped(each):
            found[each.schema].append(each)
    return found


def _schemas(draft: Draft, catalog: CatalogBelow, database: int, schemas: Iterable[int]) -> Iterator[Schema]:
    for id in sorted({*schemas, *draft.declared}):
        each = descriptor_of(draft, catalog, id)
        if isinstance(each, Schema) and each.database == database and not is_dropped(each):
            yield each


# ── dropping ────────────────────────────────────────────────────────────────────────────────────


def _drop(
    draft: Draft,
    catalog: CatalogBelow,
    roots: Sequence[CatalogObject],
    contents: Contents | None = None,
    *,
    is_cascade: bool,
    qualifies: Qualifies = never,
) -> None:
    """Drops dependents before what they depend on; or reports them."""
    going = closure(draft, catalog, roots, contents)
    if not is_cascade:
        found = lines(draft, catalog, going, qualifies=qualifies)
        if found:
            raise _refusal(draft, catalog, roots, found, qualifies)
    objects = [*(each.target for each in going), *roots]
    wholes = [each.id for each in objects if not each.part]
    last: list[int] = []
    for target in objects:
        if target.part:
            _drop_part(draft, catalog, target)
            continue
        descriptor = _existing(draft, catalog, target.id)
        _free(draft, catalog, descriptor, set(wholes))
        if isinstance(descriptor, View):
            draft.drop(descriptor)  # before the parts that it reads: what it uses may not list it
        else:
            last.append(target.id)
    for id in last:
        _drop_whole(draft, catalog, _existing(draft, catalog, id))


def _drop_whole(draft: Draft, catalog: CatalogBelow, descriptor: AnyDescriptor) -> None:
    draft.drop(descriptor)
    if isinstance(descriptor, Schema):
        database = _existing(draft, catalog, descriptor.database)
        assert isinstance(database, Database), "a schema is in a database"
        draft.touch(database)


def _drop_part(draft: Draft, catalog: CatalogBelow, target: CatalogObject) -> None:
    table = table_of(draft, catalog, target.id)
    if target.part == CONSTRAINT:
        alter(draft, catalog, table.id, DropKey(target.element))
        return
    if target.part in (CHECK, INDEX):
        _drop_element(draft, catalog, table, target)
        return
    column = next((each for each in staying(table.columns) if each.id == target.element), None)
    if column is None:
        return  # dropped with another
    if target.part == DEFAULT:
        alter(draft, catalog, table.id, DropDefault(column.name))
    else:
        referring = referring_to(draft, catalog, table)
        alter(draft, catalog, table.id, DropColumn(column.name, is_cascade=True, referring=referring))


def _drop_element(draft: Draft, catalog: CatalogBelow, table: Table, target: CatalogObject) -> None:
    """A CHECK, or an index with a predicate; nothing, if it went with a column."""
    if target.part == CHECK:
        checks = [each.name for each in staying(table.checks) if each.id == target.element]
        changes: list[TableChange] = [DropConstraint(name) for name in checks]
    else:
        indexes = [each.name for each in staying(table.indexes) if each.id == target.element]
        changes = [DropIndex(name) for name in indexes]
    for change in changes:
        alter(draft, catalog, table.id, change)


def _free(draft: Draft, catalog: CatalogBelow, descriptor: AnyDescriptor, together: set[int]) -> None:
    """Removes an object from the descriptors that it uses; those dropped with it need no update."""
    match descriptor:
        case Table():
            for key in descriptor.foreign_keys:
                if key.target not in together:
                    alter(draft, catalog, key.target, DropInbound(descriptor.id, key.id))
            used = {*enums_of(descriptor), *sequences_of(descriptor)}
        case View():
            used = {each.id for each in descriptor.depends}
        case SequenceDescriptor():
            used = set()
            if descriptor.owned_by is not None and descriptor.owned_by.table not in together:
                disown(draft, catalog, descriptor.owned_by.table, descriptor.id)
        case EnumType() | _:
            used = set()
    for id in sorted(used - together):
        set_dependent(draft, catalog, id, descriptor.id, is_used=False)


def disown(draft: Draft, catalog: CatalogBelow, table: int, sequence: int) -> None:
    """Makes a table forget a sequence that one of its columns owned."""
    owner = table_of(draft, catalog, table)
    left = tuple(each for each in owner.sequences if each != sequence)
    draft.declare(replace(owner, sequences=left), made_from=owner.version)


def _existing(draft: Draft, catalog: CatalogBelow, id: int) -> AnyDescriptor:
    descriptor = descriptor_of(draft, catalog, id)
    assert descriptor is not None, f"there is no descriptor {id}"
    return descriptor
