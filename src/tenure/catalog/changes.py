"""Every change of a table as data, and how one is declared in a transaction's draft.

    ALTER TABLE t ADD COLUMN a int4, DROP COLUMN b
      ──► alter(draft, known, t, AddColumn("a", ...)); alter(draft, known, t, DropColumn("b"))

    apply       pure: the table with the change declared, elements with a state that is not their goal
    elsewhere   what it means for other tables: foreign keys that have to go, inbound to be added

A table that is new in the draft is seen by nobody, so its changes are finished at once. Ids of
columns, indexes and constraints are never given out twice, whatever becomes of a change.

The columns' changes are in `column_changes`, those of indexes and the primary key in
`index_changes`, those of constraints in `constraint_changes`; databases, schemas, tables and types
as a whole are made, moved and dropped by `object_changes`.

Walk: `sql` calls `alter` for each part of an ALTER TABLE; `schema_change` publishes the draft.
"""

from collections.abc import Iterator
from typing import Protocol

from tenure.catalog.column_changes import (
    AddColumn,
    AlterType,
    DropColumn,
    DropDefault,
    DropNotNull,
    RenameColumn,
    SetDefault,
    SetNotNull,
)
from tenure.catalog.constraint_changes import (
    AddCheck,
    AddForeignKey,
    AddInbound,
    DropConstraint,
    DropInbound,
    RenameConstraint,
    ValidateConstraint,
    ended_keys,
    target_key,
)
from tenure.catalog.descriptors import (
    AnyDescriptor,
    EnumType,
    Expression,
    Place,
    State,
    Table,
    TypeRef,
    is_dropped,
    replace,
)
from tenure.catalog.drafts import Draft
from tenure.catalog.elements import finished
from tenure.catalog.index_changes import AddIndex, AlterPrimaryKey, DropIndex, RenameIndex, row_id
from tenure.catalog.parts import Change, DropKey, Part, Referring, find_column, free_name, staying

__all__ = [
    "AddCheck",
    "AddColumn",
    "AddForeignKey",
    "AddInbound",
    "AddIndex",
    "AlterPrimaryKey",
    "AlterType",
    "Change",
    "DropColumn",
    "DropConstraint",
    "DropDefault",
    "DropInbound",
    "DropIndex",
    "DropKey",
    "DropNotNull",
    "DropPrimaryKey",
    "Known",
    "Part",
    "Referring",
    "RenameColumn",
    "RenameConstraint",
    "RenameIndex",
    "SetComment",
    "SetDefault",
    "SetLocked",
    "SetNotNull",
    "SetOwner",
    "ValidateConstraint",
    "alter",
    "descriptor_of",
    "free_name",
    "referring_to",
    "row_id",
    "row_id_column",
    "table_of",
    "target_key",
]

ROW_ID = "rowid"


class Known(Protocol):
    """The catalog below a draft, as its transaction sees it; a `Use` is one."""

    def descriptor(self, id: int) -> AnyDescriptor | None: ...

    def id_at(self, place: Place) -> int | None: ...


class SetOwner(Change, frozen=True):
    owner: str

    def apply(self, table: Table) -> Table:
        return replace(table, owner=self.owner)


class SetLocked(Change, frozen=True):
    is_locked: bool

    def apply(self, table: Table) -> Table:
        return replace(table, is_locked=self.is_locked)


class SetComment(Change, frozen=True):
    comment: str

    def apply(self, table: Table) -> Table:
        return replace(table, comment=self.comment)


class DropPrimaryKey(Change, frozen=True):
    """Puts a hidden row id in its place; the key's columns stay NOT NULL."""

    default: Expression
    """What gives rows their ids: unique_rowid()."""
    referring: tuple[Referring, ...] = ()

    def apply(self, table: Table) -> Table:
        column = row_id_column(table, self.default)
        name = free_name((each.name for each in staying(table.indexes)), table.name, "pkey")
        key = AlterPrimaryKey(name, (Part(column.name),), referring=self.referring)
        return key.apply(column.apply(table))


def row_id_column(table: Table, default: Expression) -> AddColumn:
    """The hidden column that a table without a primary key is kept by."""
    name = ROW_ID
    if find_column(table, name) is not None:
        name = free_name((each.name for each in staying(table.columns)), ROW_ID, "1")
    return AddColumn(name, TypeRef("int8"), is_nullable=False, default=default, is_hidden=True)


def alter(draft: Draft, known: Known, id: int, change: Change) -> Table:
    """Declares a change of a table and what follows from it for others."""
    table = table_of(draft, known, id)
    consequences = [*change.elsewhere(table)]
    change.apply(table)  # what is wrong with it is said before anything is declared
    for other, consequence in consequences:
        alter(draft, known, other, consequence)
    table = table_of(draft, known, id)  # a consequence may have taken an inbound away
    return declare(draft, known, table, change.apply(table))


def declare(draft: Draft, known: Known, table: Table, altered: Table) -> Table:
    """Takes a changed table into the draft, with its entries in other descriptors."""
    if draft.is_new(table.id):
        altered = _finished_at_once(draft, altered)
    for key in ended_keys(table, altered):
        if key.target != table.id:
            alter(draft, known, key.target, DropInbound(table.id, key.id))
    before, after = set(enums_of(table)), set(enums_of(altered))
    for enum in sorted(after - before):
        register(draft, known, enum, table.id)
    for enum in sorted(before - after):
        unregister(draft, known, enum, table.id)
    draft.declare(altered, made_from=table.version)
    return altered


def descriptor_of(draft: Draft, known: Known, id: int) -> AnyDescriptor | None:
    """A descriptor as declared so far."""
    declared = draft.declared.get(id)
    return known.descriptor(id) if declared is None else declared


def table_of(draft: Draft, known: Known, id: int) -> Table:
    table = descriptor_of(draft, known, id)
    assert isinstance(table, Table), f"{id} is no table"
    return table


def referring_to(draft: Draft, known: Known, table: Table) -> tuple[Referring, ...]:
    """The foreign keys of other tables that will go on referring to it."""
    return tuple(
        Referring(other.id, other.name, key)
        for inbound in table.inbound
        if inbound.table != table.id
        and isinstance(other := descriptor_of(draft, known, inbound.table), Table)
        and not is_dropped(other)
        for key in staying(other.foreign_keys)
        if key.id == inbound.constraint
    )


def enums_of(table: Table) -> Iterator[int]:
    return (column.type.enum for column in table.columns if column.type.enum)


def _finished_at_once(draft: Draft, table: Table) -> Table:
    """Nobody sees it yet; but whoever writes tables it refers to must know it before it is used."""
    done = finished(replace(table, state=State.PUBLIC))
    assert isinstance(done, Table)
    waits = any(not draft.is_new(key.target) for key in done.foreign_keys)
    return replace(done, state=State.ADDING) if waits else done


def register(draft: Draft, known: Known, enum: int, table: int) -> None:
    """Has a type know a table that uses it."""
    _set_referent(draft, known, enum, table, is_used=True)


def unregister(draft: Draft, known: Known, enum: int, table: int) -> None:
    _set_referent(draft, known, enum, table, is_used=False)


def _set_referent(draft: Draft, known: Known, enum: int, table: int, *, is_used: bool) -> None:
    used = descriptor_of(draft, known, enum)
    if not isinstance(used, EnumType) or (table in used.referents) == is_used:
        return
    others = tuple(id for id in used.referents if id != table)
    referents = (*others, table) if is_used else others
    draft.declare(replace(used, referents=referents), made_from=used.version)
