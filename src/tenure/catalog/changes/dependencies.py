"""Dependencies: which objects a DROP affects, and how PostgreSQL reports them.

    table      foreign keys of others that refer to it, views that read it
    column     foreign keys and views that use it, columns generated from it
    view       views that read it
    type       columns of tables that have it; defaults, CHECKs, predicates of indexes and views that use it
    sequence   defaults that call it, views that do
    schema     the objects in it
    database   its schemas

A sequence that a column owns is dropped with it, and `public` with its database, without a report; objects
that depend on the sequence still block the drop. A part of a dropped object blocks nothing.

The order is PostgreSQL's: dependents are dropped before what they depend on, and newer objects first. A
message lists the reverse order.

Walk: `catalog.changes.drops` calls `closure`, then reports the objects or drops them.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from tenure.catalog.changes.column_changes import generated_from
from tenure.catalog.changes.table_changes import (
    CatalogBelow,
    descriptor_of,
    owned_sequences,
    referring_to,
    table_of,
    users_of,
    views_of,
)
from tenure.catalog.changes.table_parts import staying
from tenure.catalog.descriptors.definitions import (
    PUBLIC_SCHEMA,
    AnyDescriptor,
    Contained,
    EnumType,
    Schema,
    Table,
    is_dropped,
)
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.catalog.descriptors.drafts import Draft

COLUMN, DEFAULT, CONSTRAINT, CHECK, INDEX = "column", "default", "constraint", "check", "index"
"""CONSTRAINT: a foreign key."""


class CatalogObject(NamedTuple):
    """A descriptor, or a part of a table."""

    id: int
    part: str = ""
    element: int = 0


class DroppedObject(NamedTuple):
    target: CatalogObject
    because: CatalogObject
    """The object that it depends on."""
    is_owned: bool


Contents = Mapping[int, Sequence[AnyDescriptor]]
"""The objects in a schema or database, by its id."""


def closure(
    draft: Draft, catalog: CatalogBelow, roots: Sequence[CatalogObject], contents: Contents | None = None
) -> list[DroppedObject]:
    """All objects that are dropped with the roots, without the roots, in the order of the drop."""
    reach = _Reach(draft, catalog, roots, contents or {})
    for root in roots:
        reach.follow(root)
    return reach.going


class _Reach:
    def __init__(
        self, draft: Draft, catalog: CatalogBelow, roots: Sequence[CatalogObject], contents: Contents
    ) -> None:
        self._draft = draft
        self._catalog = catalog
        self._contents = contents
        self._inside = {each.id for inside in contents.values() for each in inside}
        self._seen = set(roots)
        self.going: list[DroppedObject] = []

    def follow(self, target: CatalogObject) -> None:
        found = [*self._dependents(target)]
        for each in sorted(found, key=_order):
            if not self._is_going(each.target):
                self._seen.add(each.target)
                self.follow(each.target)
                self.going.append(each)

    def _is_going(self, target: CatalogObject) -> bool:
        """Whether it is dropped by itself, or as a part of a dropped object."""
        if target.part and (target.id in self._inside or CatalogObject(target.id) in self._seen):
            return True
        return target in self._seen or (target.part == DEFAULT and target._replace(part=COLUMN) in self._seen)

    def _dependents(self, target: CatalogObject) -> Iterator[DroppedObject]:
        if target.part == COLUMN:
            yield from self._of_column(target)
        elif not target.part:
            yield from self._of_descriptor(target)

    def _of_descriptor(self, target: CatalogObject) -> Iterator[DroppedObject]:
        descriptor = descriptor_of(self._draft, self._catalog, target.id)
        for each in self._contents.get(target.id, ()):
            yield DroppedObject(CatalogObject(each.id), target, _goes_untold(each))
        for view in views_of(self._draft, self._catalog, target.id):
            yield DroppedObject(CatalogObject(view.id), target, False)
        match descriptor:
            case Table():
                for referring in referring_to(self._draft, self._catalog, descriptor):
                    yield DroppedObject(
                        CatalogObject(referring.table, CONSTRAINT, referring.key.id), target, False
                    )
                for sequence in owned_sequences(self._draft, self._catalog, descriptor):
                    yield DroppedObject(CatalogObject(sequence.id), target, True)
            case EnumType():
                for table in self._tables(users_of(self._draft, self._catalog, target.id)):
                    for part, element in _using(table, target.id):
                        yield DroppedObject(CatalogObject(table.id, part, element), target, False)
            case SequenceDescriptor():
                for table in self._tables(descriptor.dependents):
                    for column in staying(table.columns):
                        if column.default is not None and target.id in column.default.sequences:
                            yield DroppedObject(CatalogObject(table.id, DEFAULT, column.id), target, False)

    def _of_column(self, target: CatalogObject) -> Iterator[DroppedObject]:
        table = table_of(self._draft, self._catalog, target.id)
        for view in views_of(self._draft, self._catalog, table.id, target.element):
            yield DroppedObject(CatalogObject(view.id), target, False)
        for each in referring_to(self._draft, self._catalog, table):
            if target.element in each.key.target_columns:
                yield DroppedObject(CatalogObject(each.table, CONSTRAINT, each.key.id), target, False)
        for column in generated_from(table, target.element):
            yield DroppedObject(CatalogObject(table.id, COLUMN, column.id), target, False)
        for sequence in owned_sequences(self._draft, self._catalog, table, target.element):
            yield DroppedObject(CatalogObject(sequence.id), target, True)

    def _tables(self, ids: Collection[int]) -> Iterator[Table]:
        for id in ids:
            table = descriptor_of(self._draft, self._catalog, id)
            if isinstance(table, Table) and not is_dropped(table):
                yield table


def _using(table: Table, enum: int) -> Iterator[tuple[str, int]]:
    """The parts of a table that use a type."""
    for column in staying(table.columns):
        if column.type.enum == enum or (column.generated is not None and enum in column.generated.enums):
            yield COLUMN, column.id
        elif column.default is not None and enum in column.default.enums:
            yield DEFAULT, column.id
    for check in staying(table.checks):
        if enum in check.expression.enums:
            yield CHECK, check.id
    for index in staying(table.indexes):
        if index.predicate is not None and enum in index.predicate.enums:
            yield INDEX, index.id


def _order(going: DroppedObject) -> tuple[int, str, int]:
    id, part, element = going.target
    return -id, part, element if part == COLUMN else -element


def _goes_untold(descriptor: AnyDescriptor) -> bool:
    match descriptor:
        case SequenceDescriptor():
            return descriptor.owned_by is not None
        case Schema():
            return descriptor.name == PUBLIC_SCHEMA
        case _:
            return False


# ── reporting ───────────────────────────────────────────────────────────────────────────────────


Qualifies = Callable[[AnyDescriptor], bool]
"""Whether an object needs its schema's name in front, because it is not found without."""


def never(descriptor: AnyDescriptor) -> bool:
    return False


def always(descriptor: AnyDescriptor) -> bool:
    return True


def lines(
    draft: Draft, catalog: CatalogBelow, going: Sequence[DroppedObject], *, qualifies: Qualifies = never
) -> list[str]:
    """The dependent objects as PostgreSQL lists them: nearest first."""
    return [
        f"{name_of(draft, catalog, each.target, qualifies=qualifies)} depends on "
        f"{name_of(draft, catalog, each.because, qualifies=qualifies)}"
        for each in reversed(going)
        if not each.is_owned
    ]


def name_of(
    draft: Draft, catalog: CatalogBelow, target: CatalogObject, *, qualifies: Qualifies = never
) -> str:
    descriptor = descriptor_of(draft, catalog, target.id)
    assert descriptor is not None, f"there is no descriptor {target.id}"
    schema = None
    if isinstance(descriptor, Contained) and qualifies(descriptor):
        schema = descriptor_of(draft, catalog, descriptor.schema)
    whole = title(descriptor, schema)
    if not target.part:
        return whole
    assert isinstance(descriptor, Table), "only a table has parts"
    if target.part == CONSTRAINT:
        key = next(each for each in descriptor.foreign_keys if each.id == target.element)
        return f"constraint {key.name} on {whole}"
    if target.part == CHECK:
        check = next(each for each in descriptor.checks if each.id == target.element)
        return f"constraint {check.name} on {whole}"
    if target.part == INDEX:
        return f"index {descriptor.index(target.element).name}"
    column = f"column {descriptor.column(target.element).name} of {whole}"
    return f"default value for {column}" if target.part == DEFAULT else column


def title(descriptor: AnyDescriptor, schema: AnyDescriptor | None = None) -> str:
    """Its name and kind in messages."""
    kind = "type" if isinstance(descriptor, EnumType) else type(descriptor).__name__.lower()
    name = descriptor.name if schema is None else f"{schema.name}.{descriptor.name}"
    return f"{kind} {name}"
