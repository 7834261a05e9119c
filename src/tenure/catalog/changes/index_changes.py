"""Changes of a table's indexes and its primary key, as data.

A primary index holds the rows, and the entries of all others point into it. So a new primary key
is a new primary index with new versions of all the others, which take over together:

    primary p, index i ──► p, i, and p' (replaces p), i' (replaces i, points into p') ──► p', i'

Walk: `sql` makes them, `catalog.changes.table_changes.alter` applies them.
"""

from collections import Counter
from collections.abc import Iterable

from tenure.base.errors import (
    DependentObjects,
    DuplicateColumn,
    DuplicateRelation,
    InvalidTable,
    UndefinedColumn,
    UndefinedObject,
)
from tenure.catalog.changes.table_parts import (
    DropKey,
    NamedKeyColumn,
    ReferringKey,
    TableChange,
    allow_null,
    changed,
    find_column,
    gone,
    require_free_constraint,
    require_not_null,
    require_settled,
    staying,
)
from tenure.catalog.descriptors.definitions import (
    Column,
    ElementState,
    Expression,
    Goal,
    Index,
    KeyPart,
    Table,
    replace,
)
from tenure.catalog.descriptors.elements import is_adding


class AddIndex(TableChange, frozen=True):
    name: str
    parts: tuple[NamedKeyColumn, ...]
    is_unique: bool = False
    predicate: Expression | None = None
    is_constraint: bool = False
    """Whether it was declared by ADD CONSTRAINT ... UNIQUE."""
    is_deferrable: bool = False

    def apply(self, table: Table) -> Table:
        require_free_index(table, self.name)
        if self.is_constraint:
            require_free_constraint(table, self.name)
        if self.predicate is not None:
            require_settled(table, self.predicate.columns)
        index = Index(
            id=table.next_index,
            name=self.name,
            parts=key_parts(table, self.parts, "unique constraint" if self.is_constraint else "index"),
            is_unique=self.is_unique,
            state=ElementState.DELETE_ONLY,
            predicate=self.predicate,
            primary=primary_of(table).id,
            is_constraint=self.is_constraint,
            is_deferrable=self.is_deferrable,
        )
        return replace(table, indexes=(*table.indexes, index), next_index=index.id + 1)


class DropIndex(TableChange, frozen=True):
    name: str
    is_cascade: bool = False
    referring: tuple[ReferringKey, ...] = ()

    def apply(self, table: Table) -> Table:
        index = index_of(table, self.name)
        if index.is_constraint or index.primary == index.id:
            constraint = f"constraint {index.name} on table {table.name}"
            raise DependentObjects(
                f"cannot drop index {index.name} because {constraint} requires it",
                hint=f"You can drop {constraint} instead.",
            )
        return dropped_index(table, index, f"index {index.name}", self.is_cascade, self.referring)

    def elsewhere(self, table: Table) -> Iterable[tuple[int, TableChange]]:
        return drop_keys(needing(table, index_of(table, self.name), self.referring))


class RenameIndex(TableChange, frozen=True):
    name: str
    to: str

    def apply(self, table: Table) -> Table:
        index = index_of(table, self.name)
        if self.to == self.name:
            return table
        require_free_index(table, self.to)
        return renamed_index(table, index, self.to)


class SetIndexComment(TableChange, frozen=True):
    name: str
    comment: str

    def apply(self, table: Table) -> Table:
        index = replace(index_of(table, self.name), comment=self.comment)
        return replace(table, indexes=changed(table.indexes, index))


class AlterPrimaryKey(TableChange, frozen=True):
    name: str
    """The name of the primary index, and so of the constraint."""
    parts: tuple[NamedKeyColumn, ...]
    is_added: bool = False
    """Declared by ADD PRIMARY KEY, which requires that there is none."""
    former: str = ""
    """The unique index that the former key becomes, if any."""
    referring: tuple[ReferringKey, ...] = ()
    is_deferrable: bool = False

    def apply(self, table: Table) -> Table:
        primary = primary_of(table)
        hidden = row_id(table)
        if self.is_added and hidden is None:
            raise InvalidTable(f'multiple primary keys for table "{table.name}" are not allowed')
        if self.name != primary.name:
            require_free_index(table, self.name)
            require_free_constraint(table, self.name)
        if self.former:
            require_free_index(table, self.former)
        elif refusing := needing(table, primary, self.referring):
            raise _refusal(f"constraint {primary.name} on table {table.name}", primary, refusing)
        parts = key_parts(table, self.parts, "primary key constraint")
        for part in parts:
            table = require_not_null(table, table.column(part.column))
        is_asked_for = not table.column(parts[0].column).is_hidden
        table = remade(
            *(table, primary),
            parts=parts,
            name=self.name,
            is_constraint=is_asked_for,
            is_deferrable=self.is_deferrable,
        )
        if self.former:
            columns = {column.id: column.name for column in table.columns}
            former = tuple(NamedKeyColumn(columns[each.column], each.is_descending) for each in primary.parts)
            table = AddIndex(self.former, former, is_unique=True).apply(table)
        if hidden is not None and all(part.column != hidden.id for part in parts):
            table = without_column(table, hidden)
        return table


# ── finding ────────────────────────────────────────────────────────────────────────────────────


def index_of(table: Table, name: str) -> Index:
    index = next((each for each in staying(table.indexes) if each.name == name), None)
    if index is None:
        raise UndefinedObject(f'index "{name}" does not exist')
    return index


def require_free_index(table: Table, name: str) -> None:
    if any(each.name == name for each in staying(table.indexes)):
        raise DuplicateRelation(f'relation "{name}" already exists')


def primary_of(table: Table) -> Index:
    """The primary index after all declared changes."""
    return _successor(table, table.index(table.primary))


def forgets_key(table: Table) -> bool:
    """Whether equal keys are allowed after the table's changes: its primary key is dropped or replaced."""
    replaced = {column.id: column.replaces or column.id for column in table.columns}
    new = {replaced[part.column] for part in primary_of(table).parts}
    return not new <= columns_of(table.index(table.primary))


def row_id(table: Table) -> Column | None:
    """The hidden column that stands in for a primary key, if there is none."""
    parts = primary_of(table).parts
    column = table.column(parts[0].column)
    return column if len(parts) == 1 and column.is_hidden else None


def in_key(table: Table, column: Column) -> bool:
    """Whether a column is in the current primary key, or in the one after all declared changes."""
    keys = table.index(table.primary), primary_of(table)
    return any(part.column == column.id for key in keys for part in key.parts)


def needing(table: Table, index: Index, referring: Iterable[ReferringKey]) -> list[ReferringKey]:
    """The foreign keys that refer to columns which only this index makes unique."""
    mine = columns_of(index)
    others = [columns_of(each) for each in staying(table.indexes) if is_target(each) and each.id != index.id]
    if not is_target(index) or mine in others:
        return []
    itself = [
        ReferringKey(table.id, table.name, key)
        for key in staying(table.foreign_keys)
        if key.target == table.id
    ]
    return [each for each in (*referring, *itself) if set(each.key.target_columns) == mine]


def is_target(index: Index) -> bool:
    """Whether foreign keys can refer to its columns."""
    return index.is_unique and index.predicate is None


def columns_of(index: Index) -> set[int]:
    return {part.column for part in index.parts}


def drop_keys(referring: Iterable[ReferringKey]) -> Iterable[tuple[int, TableChange]]:
    return [(each.table, DropKey(each.key.id)) for each in referring]


def key_parts(table: Table, parts: tuple[NamedKeyColumn, ...], what: str) -> tuple[KeyPart, ...]:
    twice = [name for name, count in Counter(part.column for part in parts).items() if count > 1]
    if twice:
        raise DuplicateColumn(f'column "{twice[0]}" appears twice in {what}')
    found = []
    for part in parts:
        column = find_column(table, part.column)
        if column is None:
            named = " named in key" if what != "index" else ""
            raise UndefinedColumn(f'column "{part.column}"{named} does not exist')
        found.append(KeyPart(column.id, part.is_descending))
    require_settled(table, (part.column for part in found))
    return tuple(found)


# ── altering ───────────────────────────────────────────────────────────────────────────────────


def remade(
    table: Table,
    index: Index,
    *,
    parts: tuple[KeyPart, ...] | None = None,
    predicate: Expression | None = None,
    name: str | None = None,
    is_constraint: bool | None = None,
    is_deferrable: bool | None = None,
    primary: int = 0,
) -> Table:
    """Replaces an index by a new one; one that is not published yet is altered in place."""
    index = _successor(table, index)
    new = replace(
        index,
        name=index.name if name is None else name,
        parts=index.parts if parts is None else parts,
        predicate=index.predicate if predicate is None else predicate,
        is_constraint=index.is_constraint if is_constraint is None else is_constraint,
        is_deferrable=index.is_deferrable if is_deferrable is None else is_deferrable,
        primary=primary or index.primary,
    )
    if is_adding(index):
        return replace(table, indexes=changed(table.indexes, new))
    is_primary = index.primary == index.id
    new = replace(
        new,
        id=table.next_index,
        state=ElementState.DELETE_ONLY,
        goal=Goal.PUBLIC,
        primary=table.next_index if is_primary else new.primary,
        replaces=index.id,
    )
    table = replace(table, indexes=(*table.indexes, new), next_index=new.id + 1)
    if is_primary:
        for each in [*staying(table.indexes)]:
            if each.primary == index.id:
                table = remade(table, each, primary=new.id)
    return table


def with_new_indexes(table: Table) -> Table:
    """The same table with new, empty indexes; none of its indexes may have a change under way."""
    first = table.next_index
    ids = {index.id: first + number for number, index in enumerate(table.indexes)}
    return replace(
        table,
        indexes=tuple(
            replace(index, id=ids[index.id], primary=ids[index.primary]) for index in table.indexes
        ),
        primary=ids[table.primary],
        next_index=first + len(ids),
    )


def renamed_index(table: Table, index: Index, name: str) -> Table:
    """Renames an index, and the one that it is going to replace."""
    ids = (index.id, index.replaces)
    return replace(
        table,
        indexes=tuple(replace(each, name=name) if each.id in ids else each for each in table.indexes),
    )


def dropped_index(
    table: Table, index: Index, what: str, is_cascade: bool, referring: Iterable[ReferringKey]
) -> Table:
    refusing = needing(table, index, referring)
    if refusing and not is_cascade:
        raise _refusal(what, index, refusing)
    return without_index(table, index)


def _refusal(what: str, index: Index, refusing: Iterable[ReferringKey]) -> DependentObjects:
    """Foreign keys depend on the index, also if its constraint or column is dropped."""
    return DependentObjects.listing(
        f"cannot drop {what} because other objects depend on it",
        [f"{each} depends on index {index.name}" for each in refusing],
    )


def without_index(table: Table, index: Index) -> Table:
    """Drops an index, and with it one that it was going to replace."""
    indexes = gone(table.indexes, index)
    if index.replaces:
        indexes = gone(indexes, table.index(index.replaces))
    return replace(table, indexes=indexes)


def without_column(table: Table, column: Column) -> Table:
    """Drops a column, and the table's own elements that use it."""
    for index in [*staying(table.indexes)]:
        reads = () if index.predicate is None else index.predicate.columns
        if column.id in reads or column.id in columns_of(index):
            table = without_index(table, index)
    for check in [*staying(table.checks)]:
        if column.id in check.expression.columns:
            table = replace(table, checks=gone(table.checks, check))
    for key in [*staying(table.foreign_keys)]:
        if column.id in key.columns or (key.target == table.id and column.id in key.target_columns):
            table = replace(table, foreign_keys=gone(table.foreign_keys, key))
    if column.default is None and not is_adding(column):
        table = allow_null(table, column)  # writers that no longer see it cannot give it a value
    return replace(table, columns=gone(table.columns, column))


def _successor(table: Table, index: Index) -> Index:
    return next((each for each in table.indexes if each.replaces == index.id), index)
