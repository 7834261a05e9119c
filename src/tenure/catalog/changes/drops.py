"""Dropping: RESTRICT says what is in the way, CASCADE takes exactly that along.

What is in the way of each kind, `catalog.changes.dependencies` says; of a schema, it is what is in it, and of
a database its schemas too, and what these drag along. What is dropped together is not in its own way.
A dropped descriptor keeps its name as draining, and stays until its data is gone; what it refers to
forgets it at once.

A column that leaves gets its default from writers until nobody sees it any more. So the values of a
sequence that went with it can still be asked for.

The contents of a schema or database are handed in as they are in the store, read in the
transaction itself, so that an object that somebody adds meanwhile makes it start over.

Invariant (drop-closure): RESTRICT fails if and only if something is in the way, and CASCADE drops
exactly what depends.

Walk: `sql` calls these for DROP -> `dependencies.closure`.
"""

from collections.abc import Iterable, Iterator, Sequence

from tenure.base.errors import DependentObjects
from tenure.catalog.changes.dependencies import (
    COLUMN,
    CONSTRAINT,
    DEFAULT,
    Contents,
    Qualifies,
    Thing,
    always,
    closure,
    lines,
    name_of,
    never,
    title,
)
from tenure.catalog.changes.table_changes import (
    CatalogBelow,
    DropColumn,
    DropDefault,
    DropIdentity,
    DropInbound,
    DropKey,
    alter,
    descriptor_of,
    enums_of,
    owned_sequences,
    referring_to,
    sequences_of,
    set_dependent,
    table_of,
)
from tenure.catalog.changes.table_parts import settled_column_of, staying
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

MANY = "desired object(s)"


def drop_objects(
    draft: Draft,
    known: CatalogBelow,
    ids: Sequence[int],
    *,
    is_cascade: bool = False,
    qualifies: Qualifies = never,
) -> None:
    """Drops tables, views, sequences and types together."""
    for id in ids:
        _require_not_identity(draft, known, id)
    roots = [Thing(id) for id in dict.fromkeys(ids)]
    _drop(draft, known, roots, is_cascade=is_cascade, qualifies=qualifies)


def drop_column(
    draft: Draft,
    known: CatalogBelow,
    table: int,
    name: str,
    *,
    is_cascade: bool = False,
    qualifies: Qualifies = never,
) -> None:
    """Drops a column, with the sequences that it owns and what the table itself has that uses it."""
    column = settled_column_of(table_of(draft, known, table), name)
    _drop(draft, known, [Thing(table, COLUMN, column.id)], is_cascade=is_cascade, qualifies=qualifies)


def drop_identity(draft: Draft, known: CatalogBelow, table: int, name: str) -> None:
    """Makes a plain column of an identity column; its sequence goes."""
    altered = alter(draft, known, table, DropIdentity(name))
    owned = owned_sequences(draft, known, altered, settled_column_of(altered, name).id)
    drop_objects(draft, known, [each.id for each in owned])


def drop_schemas(
    draft: Draft,
    known: CatalogBelow,
    ids: Sequence[int],
    contents: Iterable[int],
    *,
    is_cascade: bool = False,
    qualifies: Qualifies = always,
) -> None:
    """Drops schemas together; `contents` are the objects that they have in the store."""
    within = inside(draft, known, ids, contents)
    roots = [Thing(id) for id in dict.fromkeys(ids)]
    _drop(draft, known, roots, within, is_cascade=is_cascade, qualifies=qualifies)


def drop_schema(
    draft: Draft, known: CatalogBelow, id: int, contents: Iterable[int], *, is_cascade: bool = False
) -> None:
    drop_schemas(draft, known, [id], contents, is_cascade=is_cascade)


def drop_database(
    draft: Draft,
    known: CatalogBelow,
    id: int,
    schemas: Iterable[int],
    contents: Iterable[int],
    *,
    is_cascade: bool = False,
) -> None:
    """Drops a database; an empty schema `public` is not in the way."""
    parents = [*_schemas(draft, known, id, schemas)]
    within = {id: parents, **inside(draft, known, [each.id for each in parents], contents)}
    _drop(draft, known, [Thing(id)], within, is_cascade=is_cascade, qualifies=always)


# ── what is in the way ─────────────────────────────────────────────────────────────────────────


def _refusal(
    draft: Draft, known: CatalogBelow, roots: Sequence[Thing], found: list[str], qualifies: Qualifies
) -> DependentObjects:
    first = name_of(draft, known, roots[0], qualifies=qualifies)
    what, them = (first, "it") if len(roots) == 1 else (MANY, "them")
    return DependentObjects.listing(f"cannot drop {what} because other objects depend on {them}", found)


def _require_not_identity(draft: Draft, known: CatalogBelow, id: int) -> None:
    """The sequence of an identity column is a part of the column."""
    sequence = _existing(draft, known, id)
    owner = sequence.owned_by if isinstance(sequence, SequenceDescriptor) else None
    table = None if owner is None else descriptor_of(draft, known, owner.table)
    if owner is None or not isinstance(table, Table):
        return
    column = next((each for each in staying(table.columns) if each.id == owner.column), None)
    if column is not None and column.identity:
        what = f"column {column.name} of table {table.name}"
        raise DependentObjects(
            f"cannot drop {title(sequence)} because {what} requires it",
            hint=f"You can drop {what} instead.",
        )


def inside(draft: Draft, known: CatalogBelow, schemas: Iterable[int], contents: Iterable[int]) -> Contents:
    """The objects in each of these schemas, what the transaction itself did included."""
    found: dict[int, list[AnyDescriptor]] = {schema: [] for schema in schemas}
    for id in sorted({*contents, *draft.declared}):
        each = descriptor_of(draft, known, id)
        if isinstance(each, Contained) and each.schema in found and not is_dropped(each):
            found[each.schema].append(each)
    return found


def _schemas(draft: Draft, known: CatalogBelow, database: int, schemas: Iterable[int]) -> Iterator[Schema]:
    for id in sorted({*schemas, *draft.declared}):
        each = descriptor_of(draft, known, id)
        if isinstance(each, Schema) and each.database == database and not is_dropped(each):
            yield each


# ── letting go ─────────────────────────────────────────────────────────────────────────────────


def _drop(
    draft: Draft,
    known: CatalogBelow,
    roots: Sequence[Thing],
    contents: Contents | None = None,
    *,
    is_cascade: bool,
    qualifies: Qualifies = never,
) -> None:
    """Drops what depends before what it depends on; or says that something does."""
    going = closure(draft, known, roots, contents)
    if not is_cascade:
        found = lines(draft, known, going, qualifies=qualifies)
        if found:
            raise _refusal(draft, known, roots, found, qualifies)
    things = [*(each.thing for each in going), *roots]
    wholes = [each.id for each in things if not each.part]
    for thing in things:
        if thing.part:
            _drop_part(draft, known, thing)
        else:
            _free(draft, known, _existing(draft, known, thing.id), set(wholes))
    for id in wholes:
        _drop_whole(draft, known, _existing(draft, known, id))


def _drop_whole(draft: Draft, known: CatalogBelow, descriptor: AnyDescriptor) -> None:
    draft.drop(descriptor)
    if isinstance(descriptor, Schema):
        database = _existing(draft, known, descriptor.database)
        assert isinstance(database, Database), "a schema is in a database"
        draft.touch(database)


def _drop_part(draft: Draft, known: CatalogBelow, thing: Thing) -> None:
    table = table_of(draft, known, thing.id)
    if thing.part == CONSTRAINT:
        alter(draft, known, table.id, DropKey(thing.element))
        return
    column = next((each for each in staying(table.columns) if each.id == thing.element), None)
    if column is None:
        return  # it went with another
    if thing.part == DEFAULT:
        alter(draft, known, table.id, DropDefault(column.name))
    else:
        referring = referring_to(draft, known, table)
        alter(draft, known, table.id, DropColumn(column.name, is_cascade=True, referring=referring))


def _free(draft: Draft, known: CatalogBelow, descriptor: AnyDescriptor, together: set[int]) -> None:
    """Takes an object out of what it uses; what is dropped with it needs not know."""
    match descriptor:
        case Table():
            for key in descriptor.foreign_keys:
                if key.target not in together:
                    alter(draft, known, key.target, DropInbound(descriptor.id, key.id))
            used = {*enums_of(descriptor), *sequences_of(descriptor)}
        case View():
            used = {each.id for each in descriptor.depends}
        case SequenceDescriptor():
            used = set()
            if descriptor.owned_by is not None and descriptor.owned_by.table not in together:
                disown(draft, known, descriptor.owned_by.table, descriptor.id)
        case EnumType() | _:
            used = set()
    for id in sorted(used - together):
        set_dependent(draft, known, id, descriptor.id, is_used=False)


def disown(draft: Draft, known: CatalogBelow, table: int, sequence: int) -> None:
    """Has a table forget a sequence that one of its columns owned."""
    owner = table_of(draft, known, table)
    left = tuple(each for each in owner.sequences if each != sequence)
    draft.declare(replace(owner, sequences=left), made_from=owner.version)


def _existing(draft: Draft, known: CatalogBelow, id: int) -> AnyDescriptor:
    descriptor = descriptor_of(draft, known, id)
    assert descriptor is not None, f"there is no descriptor {id}"
    return descriptor
