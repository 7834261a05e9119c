"""Validity of a descriptor by itself; checked whenever one is read or written.

Walk: `catalog.descriptors.catalog_records` calls `problems` on every read and write.
"""

from collections.abc import Iterable, Iterator

from tenure.base.timestamp import ZERO_AT
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Check,
    Column,
    Descriptor,
    ElementState,
    EnumType,
    ForeignKey,
    Index,
    Sequence,
    Table,
    View,
    visible,
)

NAME_BYTES_MAX = 63
"""PostgreSQL's limit; longer names are cut by its clients' tools."""


def problems(descriptor: AnyDescriptor) -> list[str]:
    """Its faults; none, if it may be used."""
    return [*_of_any(descriptor), *_of_kind(descriptor)]


def _of_any(descriptor: Descriptor) -> Iterator[str]:
    if descriptor.id <= 0 or descriptor.version <= 0 or descriptor.modified_at < ZERO_AT:
        yield "its id, version or time is out of range"
    if not descriptor.name or len(descriptor.name.encode()) > NAME_BYTES_MAX or "\0" in descriptor.name:
        yield "its name is empty or too long"
    if len(set(descriptor.draining)) != len(descriptor.draining):
        yield "a draining name stands twice"


def _of_kind(descriptor: AnyDescriptor) -> Iterator[str]:
    match descriptor:
        case Table():
            yield from _of_table(descriptor)
        case EnumType():
            if _repeated(member.label for member in descriptor.members):
                yield "a label stands twice"
            held = [member.physical for member in descriptor.members]
            if _repeated(held):
                yield "two labels are held alike"
            if held != sorted(held):
                yield "its labels are not held in their order"
        case View():
            if _repeated(column.name for column in descriptor.columns):
                yield "a column name stands twice"
            if _repeated(each.id for each in descriptor.depends):
                yield "what it depends on stands twice"
        case Sequence():
            bounds = descriptor.minimum, descriptor.maximum
            if bounds[0] >= bounds[1] or not bounds[0] <= descriptor.start <= bounds[1]:
                yield "its values have no room"
            if not descriptor.increment or descriptor.cache <= 0:
                yield "it gets nowhere"
    if _repeated(getattr(descriptor, "dependents", ())):
        yield "a view or table that uses it stands twice"


def _of_table(table: Table) -> Iterator[str]:
    constraints: list[Check | ForeignKey] = [*table.checks, *table.foreign_keys]
    for what, ids, following in (
        (" column", [column.id for column in table.columns], table.next_column),
        ("n index", [index.id for index in table.indexes], table.next_index),
        (" constraint", [each.id for each in constraints], table.next_constraint),
    ):
        if _repeated(ids) or any(not 0 < id < following for id in ids):
            yield f"the id of a{what} stands twice or was never given out"
    if _repeated(column.name for column in visible(table.columns)):
        yield "a column name stands twice"
    if (
        _repeated(index.name for index in visible(table.indexes))
        or _repeated(check.name for check in visible(table.checks))
        or _repeated(key.name for key in visible(table.foreign_keys))
    ):
        yield "an index or constraint name stands twice"
    columns = {column.id: column for column in table.columns}
    yield from _of_primary(table, columns)
    for index in table.indexes:
        yield from _of_index(table, index, columns)
    yield from _of_references(table, columns)


def _of_primary(table: Table, columns: dict[int, Column]) -> Iterator[str]:
    primary = next((index for index in table.indexes if index.id == table.primary), None)
    if primary is None:
        yield "it has no primary index"
        return
    if primary.primary != primary.id or not primary.is_unique or primary.predicate is not None:
        yield "its primary index is not one"
    if primary.state is not ElementState.PUBLIC:
        yield "its primary index is not public"
    public = {column.id for column in visible(table.columns)}
    if not primary.parts or any(part.column not in public for part in primary.parts):
        yield "its primary key has no columns, or some that are not public"
    if any(columns[part.column].is_nullable for part in primary.parts if part.column in columns):
        yield "a column of its primary key may be null"


def _of_index(table: Table, index: Index, columns: dict[int, Column]) -> Iterator[str]:
    used = [part.column for part in index.parts]
    if not used or _repeated(used) or any(column not in columns for column in used):
        yield f'index "{index.name}" has no columns, one twice, or one that is not there'
    if index.predicate is not None and any(column not in columns for column in index.predicate.columns):
        yield f'index "{index.name}" depends on a column that is not there'
    if index.replaces and all(each.id != index.replaces for each in table.indexes):
        yield f'index "{index.name}" replaces one that is not there'
    target = next((each for each in table.indexes if each.id == index.primary), None)
    if target is None or target.primary != target.id:
        yield f'index "{index.name}" points into no primary index'


def _of_references(table: Table, columns: dict[int, Column]) -> Iterator[str]:
    for check in table.checks:
        if any(column not in columns for column in (*check.expression.columns, check.not_null) if column):
            yield f'constraint "{check.name}" depends on a column that is not there'
    for key in table.foreign_keys:
        if not key.columns or len(key.columns) != len(key.target_columns):
            yield f'constraint "{key.name}" has no columns, or a different number on each side'
        if any(column not in columns for column in key.columns):
            yield f'constraint "{key.name}" depends on a column that is not there'
    for column in table.columns:
        follows = [each for each in (column.computed, column.generated) if each is not None]
        if any(need not in columns for each in follows for need in each.columns):
            yield f'column "{column.name}" is computed from one that is not there'
        if column.replaces and column.replaces not in columns:
            yield f'column "{column.name}" replaces one that is not there'
    if _repeated(table.inbound):
        yield "a reference to it stands twice"
    if _repeated(table.sequences):
        yield "a sequence of it stands twice"


def _repeated(values: Iterable[object]) -> bool:
    listed = list(values)
    return len(listed) > 1 and len(set(listed)) < len(listed)
