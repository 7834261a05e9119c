"""Every change of a table as data, and how one is declared in a transaction's draft.

    ALTER TABLE t ADD COLUMN a int4, DROP COLUMN b
      ──► alter(draft, catalog, t, AddColumn("a", ...)); alter(draft, catalog, t, DropColumn("b"))

    apply       pure: the table with the change declared, elements with a state that is not their goal
    elsewhere   its effects on other tables: foreign keys to drop, inbound to add

A column that a view reads can be neither dropped nor change its type: `drops.drop_column` drops the view
first, if it may.

A table that is new in the draft is not visible to others, so its changes are finished at once; so are those
of a table that the draft empties, since nobody else uses it when that is committed. Ids of columns, indexes
and constraints are never reused, even if the change fails.

The columns' changes are in `column_changes`, those of indexes and the primary key in
`index_changes`, those of constraints in `constraint_changes`; databases, schemas, tables and types
as a whole are made, moved and dropped by `object_changes`.

Walk: `sql` calls `alter` for each part of an ALTER TABLE, with a draft that the schema changer publishes.
"""

from collections.abc import Iterator
from typing import Protocol

from tenure.base.errors import DependentObjects, NotSupported
from tenure.catalog.changes.column_changes import (
    AddColumn,
    AddIdentity,
    AlterType,
    DropColumn,
    DropDefault,
    DropExpression,
    DropIdentity,
    DropNotNull,
    RenameColumn,
    SetColumnComment,
    SetDefault,
    SetIdentity,
    SetNotNull,
)
from tenure.catalog.changes.constraint_changes import (
    AddCheck,
    AddForeignKey,
    AddInbound,
    DropConstraint,
    DropInbound,
    RenameConstraint,
    SetConstraintComment,
    ValidateConstraint,
    ended_keys,
    target_key,
)
from tenure.catalog.changes.index_changes import (
    AddIndex,
    AlterPrimaryKey,
    DropIndex,
    RenameIndex,
    SetIndexComment,
    row_id,
    with_new_indexes,
)
from tenure.catalog.changes.table_parts import (
    DropKey,
    NamedKeyColumn,
    ReferringKey,
    TableChange,
    find_column,
    free_name,
    since_committed,
    staying,
)
from tenure.catalog.descriptors import temporary_objects
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    DescriptorState,
    EnumType,
    Expression,
    NameKey,
    Sequence,
    Table,
    TypeRef,
    View,
    is_dropped,
    replace,
)
from tenure.catalog.descriptors.drafts import Draft
from tenure.catalog.descriptors.elements import finished
from tenure.catalog.descriptors.temporary_objects import TemporaryObjects
from tenure.catalog.descriptors.used_types import enums_of

__all__ = [
    "AddCheck",
    "AddColumn",
    "AddForeignKey",
    "AddIdentity",
    "AddInbound",
    "AddIndex",
    "AlterPrimaryKey",
    "AlterType",
    "CatalogBelow",
    "DropColumn",
    "DropConstraint",
    "DropDefault",
    "DropExpression",
    "DropIdentity",
    "DropInbound",
    "DropIndex",
    "DropKey",
    "DropNotNull",
    "DropPrimaryKey",
    "NamedKeyColumn",
    "ReferringKey",
    "RenameColumn",
    "RenameConstraint",
    "RenameIndex",
    "SetColumnComment",
    "SetComment",
    "SetConstraintComment",
    "SetDefault",
    "SetIdentity",
    "SetIndexComment",
    "SetLocked",
    "SetNotNull",
    "SetOwner",
    "TableChange",
    "ValidateConstraint",
    "alter",
    "descriptor_of",
    "empty",
    "free_name",
    "owned_sequences",
    "referring_to",
    "row_id",
    "row_id_column",
    "set_dependent",
    "table_of",
    "target_key",
    "users_of",
    "views_of",
]

ROW_ID = "rowid"


class CatalogBelow(Protocol):
    """The catalog below a draft, as its transaction sees it; a `CatalogUse` is one."""

    def descriptor(self, id: int) -> AnyDescriptor | None: ...

    def id_at(self, place: NameKey) -> int | None: ...

    @property
    def temporary(self) -> TemporaryObjects | None: ...


class SetOwner(TableChange, frozen=True):
    owner: str

    def apply(self, table: Table) -> Table:
        return replace(table, owner=self.owner)


class SetLocked(TableChange, frozen=True):
    """Locks by hand: from now on the table is locked whenever no change of it is under way."""

    is_kept: bool

    def apply(self, table: Table) -> Table:
        return replace(table, is_lock_kept=self.is_kept, is_locked=self.is_kept and table.is_locked)


class SetComment(TableChange, frozen=True):
    comment: str

    def apply(self, table: Table) -> Table:
        return replace(table, comment=self.comment)


class DropPrimaryKey(TableChange, frozen=True):
    """Puts a hidden row id in its place; the key's columns stay NOT NULL."""

    default: Expression
    """The default of the row ids: unique_rowid()."""
    referring: tuple[ReferringKey, ...] = ()

    def apply(self, table: Table) -> Table:
        column = row_id_column(table, self.default)
        name = free_name((each.name for each in staying(table.indexes)), table.name, "pkey")
        key = AlterPrimaryKey(name, (NamedKeyColumn(column.name),), referring=self.referring)
        return key.apply(column.apply(table))


def row_id_column(table: Table, default: Expression) -> AddColumn:
    """The hidden column that is the key of a table without a primary key."""
    name = ROW_ID
    if find_column(table, name) is not None:
        name = free_name((each.name for each in staying(table.columns)), ROW_ID, "1")
    return AddColumn(name, TypeRef("int8"), is_nullable=False, default=default, is_hidden=True)


def alter(draft: Draft, catalog: CatalogBelow, id: int, change: TableChange) -> Table:
    """Declares a change of a table and its effects on others."""
    table = table_of(draft, catalog, id)
    consequences = [*change.elsewhere(table)]
    # Errors are raised before anything is declared.
    _require_unread(draft, catalog, table, change.apply(table))
    for other, consequence in consequences:
        alter(draft, catalog, other, consequence)
    table = table_of(draft, catalog, id)  # an effect may have removed an inbound
    return declare(draft, catalog, table, change.apply(table))


def declare(draft: Draft, catalog: CatalogBelow, table: Table, altered: Table) -> Table:
    """Adds a changed table to the draft, with its entries in other descriptors."""
    committed = catalog.descriptor(table.id)
    if draft.is_new(table.id):
        altered = _finished_at_once(draft, altered)
    elif draft.is_emptied(table.id):
        altered = _finished(altered)
    elif isinstance(committed, Table):
        altered = since_committed(committed, altered)
    for key in ended_keys(table, altered):
        if key.target != table.id:
            alter(draft, catalog, key.target, DropInbound(table.id, key.id))
    for before, after in (
        ({*enums_of(table)}, {*enums_of(altered)}),
        ({*sequences_of(table)}, {*sequences_of(altered)}),
    ):
        for used in sorted(before ^ after):
            set_dependent(draft, catalog, used, table.id, is_used=used in after)
    draft.declare(altered, made_from=table.version)
    return altered


def empty(draft: Draft, catalog: CatalogBelow, id: int) -> Table:
    """Declares that a table has no rows any more: new indexes replace all that it has."""
    table = table_of(draft, catalog, id)
    emptied = with_new_indexes(_finished(table))
    if not draft.is_new(id):
        draft.empty(emptied, made_from=table.version)
    return declare(draft, catalog, table, emptied)


def descriptor_of(draft: Draft, catalog: CatalogBelow, id: int) -> AnyDescriptor | None:
    """A descriptor with the changes declared so far."""
    declared = draft.declared.get(id)
    return catalog.descriptor(id) if declared is None else declared


def table_of(draft: Draft, catalog: CatalogBelow, id: int) -> Table:
    table = descriptor_of(draft, catalog, id)
    assert isinstance(table, Table), f"{id} is no table"
    return table


def referring_to(draft: Draft, catalog: CatalogBelow, table: Table) -> tuple[ReferringKey, ...]:
    """The foreign keys of other tables that refer to it after all declared changes."""
    return tuple(
        ReferringKey(other.id, other.name, key)
        for inbound in table.inbound
        if inbound.table != table.id
        and isinstance(other := descriptor_of(draft, catalog, inbound.table), Table)
        and not is_dropped(other)
        for key in staying(other.foreign_keys)
        if key.id == inbound.constraint
    )


def sequences_of(table: Table) -> Iterator[int]:
    """The sequences that the defaults of its columns call."""
    for column in staying(table.columns):
        yield from () if column.default is None else column.default.sequences


def users_of(draft: Draft, catalog: CatalogBelow, id: int) -> list[int]:
    """The objects that a table, view, type or sequence lists as its users, and temporary ones."""
    used = descriptor_of(draft, catalog, id)
    match used:
        case Table() | View() | Sequence():
            listed = used.dependents
        case EnumType():
            listed = used.referents
        case _:
            return []
    return [*dict.fromkeys((*listed, *temporary_objects.users_of(catalog.temporary, draft, id)))]


def views_of(draft: Draft, catalog: CatalogBelow, id: int, column: int = 0) -> list[View]:
    """The views that read a table, view, type or sequence, or one column of it, after all declared
    changes.
    """
    return [
        view
        for user in users_of(draft, catalog, id)
        if isinstance(view := descriptor_of(draft, catalog, user), View)
        and not is_dropped(view)
        and any(each.id == id and (not column or column in each.columns) for each in view.depends)
    ]


def owned_sequences(draft: Draft, catalog: CatalogBelow, table: Table, column: int = 0) -> list[Sequence]:
    """The sequences that a table, or one column of it, owns."""
    return [
        sequence
        for id in table.sequences
        if isinstance(sequence := descriptor_of(draft, catalog, id), Sequence)
        and not is_dropped(sequence)
        and sequence.owned_by is not None
        and (not column or column == sequence.owned_by.column)
    ]


def _require_unread(draft: Draft, catalog: CatalogBelow, table: Table, altered: Table) -> None:
    """Raises if a view reads a column that is dropped, or whose type changes."""
    left = {each.id: each for each in staying(altered.columns)}
    rewritten = {each.replaces for each in altered.columns}
    for column in staying(table.columns):
        is_gone = column.id not in left
        if not is_gone and left[column.id].type == column.type and column.id not in rewritten:
            continue
        views = views_of(draft, catalog, table.id, column.id)
        if views and is_gone:
            what = f"column {column.name} of table {table.name}"
            raise DependentObjects.of(what, (f"view {each.name}" for each in views))
        if views:
            raise NotSupported(
                "cannot alter type of a column used by a view or rule",
                detail=f'rule _RETURN on view {views[0].name} depends on column "{column.name}"',
            )
        if column.id in rewritten and owned_sequences(draft, catalog, table, column.id):
            raise NotSupported(
                f'the type of column "{column.name}" cannot be changed: it owns a sequence',
                hint="Use ALTER SEQUENCE ... OWNED BY NONE first.",
            )


def _finished_at_once(draft: Draft, table: Table) -> Table:
    """The table is not visible yet; but writers of the tables it refers to must know it before it is used."""
    done = _finished(replace(table, state=DescriptorState.PUBLIC))
    waits = any(not draft.is_new(key.target) for key in done.foreign_keys)
    return replace(done, state=DescriptorState.ADDING) if waits else done


def _finished(table: Table) -> Table:
    """The table after all declared changes; a former name still drains."""
    done = finished(replace(table, draining=()))
    assert isinstance(done, Table)
    return replace(done, draining=table.draining)


def set_dependent(draft: Draft, catalog: CatalogBelow, id: int, user: int, *, is_used: bool) -> None:
    """Adds a user to the used descriptor, or removes it; a dropped descriptor needs no update.

    A permanent one does not list temporary users: see `temporary_objects.users_of`.
    """
    used = descriptor_of(draft, catalog, id)
    match used:
        case EnumType():
            users = used.referents
        case Table() | View() | Sequence():
            users = used.dependents
        case _:
            return
    if (user in users) == is_used or is_dropped(used) or _is_unlisted(draft, catalog, used, user):
        return
    others = tuple(each for each in users if each != user)
    users = (*others, user) if is_used else others
    changed = (
        replace(used, referents=users) if isinstance(used, EnumType) else replace(used, dependents=users)
    )
    draft.declare(changed, made_from=used.version)


def _is_unlisted(draft: Draft, catalog: CatalogBelow, used: AnyDescriptor, user: int) -> bool:
    temporary, found = catalog.temporary, descriptor_of(draft, catalog, user)
    if temporary is None or found is None or temporary.has(used) or not temporary.has(found):
        return False
    return isinstance(found, View) or isinstance(used, EnumType)
