"""Changes of a table's constraints, as data.

    check, foreign key   declared at write_only; validated, they become public
    NOT VALID            there at once: enforced for new rows, but readers do not rely on it
    unique               is an index: `index_changes.AddIndex` with `is_constraint`

A foreign key is stored in its own table, and as an `Inbound` in the table it refers to, whose writers must
check it. The inbound exists from the version that declares the key until the version in which the key is
gone: `ended_keys` finds those.

Walk: `sql` makes them, `catalog.changes.table_changes.alter` applies them.
"""

from collections.abc import Iterable
from typing import TypeVar

from tenure.base.errors import InvalidForeignKey, NotSupported, UndefinedColumn, UndefinedObject, WrongState
from tenure.catalog.changes.index_changes import (
    columns_of,
    drop_keys,
    dropped_index,
    is_target,
    needing,
    primary_of,
    renamed_index,
    require_free_index,
    row_id,
)
from tenure.catalog.changes.table_parts import (
    ReferringKey,
    TableChange,
    changed,
    constraint_named,
    entry_state,
    find_column,
    gone,
    require_free_constraint,
    require_settled,
    staying,
)
from tenure.catalog.descriptors.definitions import (
    Action,
    Check,
    Column,
    Deferral,
    ElementState,
    Expression,
    ForeignKey,
    Inbound,
    Index,
    Table,
    is_dropped,
    replace,
)

C = TypeVar("C", Check, ForeignKey)


class AddCheck(TableChange, frozen=True):
    name: str
    expression: Expression
    is_validated: bool = True
    """False for NOT VALID."""

    def apply(self, table: Table) -> Table:
        require_free_constraint(table, self.name)
        require_settled(table, self.expression.columns)
        check = Check(
            id=table.next_constraint,
            name=self.name,
            expression=self.expression,
            state=entry_state(table, self.expression.columns) if self.is_validated else ElementState.PUBLIC,
            is_validated=self.is_validated,
        )
        return replace(table, checks=(*table.checks, check), next_constraint=check.id + 1)


class AddForeignKey(TableChange, frozen=True):
    name: str
    columns: tuple[str, ...]
    target: int
    target_columns: tuple[int, ...]
    """As `target_key` finds them."""
    on_delete: Action = Action.NO_ACTION
    on_update: Action = Action.NO_ACTION
    is_validated: bool = True
    deferral: Deferral = Deferral.NEVER

    def apply(self, table: Table) -> Table:
        require_free_constraint(table, self.name)
        if len(self.columns) != len(self.target_columns):
            raise InvalidForeignKey("number of referencing and referenced columns for foreign key disagree")
        columns = tuple(_referencing(table, name).id for name in self.columns)
        key = ForeignKey(
            id=table.next_constraint,
            name=self.name,
            columns=columns,
            target=self.target,
            target_columns=self.target_columns,
            on_delete=self.on_delete,
            on_update=self.on_update,
            state=entry_state(table, columns) if self.is_validated else ElementState.PUBLIC,
            is_validated=self.is_validated,
            deferral=self.deferral,
        )
        table = replace(table, foreign_keys=(*table.foreign_keys, key), next_constraint=key.id + 1)
        return AddInbound(table.id, key.id).apply(table) if self.target == table.id else table

    def elsewhere(self, table: Table) -> Iterable[tuple[int, TableChange]]:
        if self.target != table.id:
            yield self.target, AddInbound(table.id, table.next_constraint)


class AddInbound(TableChange, frozen=True):
    table: int
    constraint: int

    def apply(self, table: Table) -> Table:
        return replace(table, inbound=(*table.inbound, Inbound(self.table, self.constraint)))


class DropInbound(TableChange, frozen=True):
    """Removes the inbound of a foreign key that is gone, or whose table is."""

    table: int
    constraint: int

    def apply(self, table: Table) -> Table:
        stale = Inbound(self.table, self.constraint)
        return replace(table, inbound=tuple(each for each in table.inbound if each != stale))


class DropConstraint(TableChange, frozen=True):
    name: str
    is_cascade: bool = False
    referring: tuple[ReferringKey, ...] = ()

    def apply(self, table: Table) -> Table:
        match constraint := constraint_of(table, self.name):
            case Check():
                return replace(table, checks=gone(table.checks, constraint))
            case ForeignKey():
                return replace(table, foreign_keys=gone(table.foreign_keys, constraint))
            case Index() if constraint.primary == constraint.id:
                raise NotSupported(
                    f'constraint "{self.name}" is the primary key of relation "{table.name}"',
                    hint="Replace it: ALTER TABLE ... ALTER PRIMARY KEY, or DROP CONSTRAINT with"
                    " ADD PRIMARY KEY in one statement.",
                )
            case Index():
                what = f"constraint {self.name} on table {table.name}"
                return dropped_index(table, constraint, what, self.is_cascade, self.referring)

    def elsewhere(self, table: Table) -> Iterable[tuple[int, TableChange]]:
        constraint = constraint_of(table, self.name)
        if isinstance(constraint, Index):
            yield from drop_keys(needing(table, constraint, self.referring))


class ValidateConstraint(TableChange, frozen=True):
    name: str

    def apply(self, table: Table) -> Table:
        match constraint := constraint_of(table, self.name):
            case Check():
                return replace(table, checks=changed(table.checks, _validating(table, constraint)))
            case ForeignKey():
                keys = changed(table.foreign_keys, _validating(table, constraint))
                return replace(table, foreign_keys=keys)
            case _:
                return table  # an index is always valid


class RenameConstraint(TableChange, frozen=True):
    name: str
    to: str

    def apply(self, table: Table) -> Table:
        constraint = constraint_of(table, self.name)
        if self.to == self.name:
            return table
        require_free_constraint(table, self.to)
        match constraint:
            case Check():
                return replace(table, checks=changed(table.checks, replace(constraint, name=self.to)))
            case ForeignKey():
                keys = changed(table.foreign_keys, replace(constraint, name=self.to))
                return replace(table, foreign_keys=keys)
            case Index():
                require_free_index(table, self.to)
                return renamed_index(table, constraint, self.to)


class SetConstraintComment(TableChange, frozen=True):
    """The comment of a unique constraint or a primary key is that of its index."""

    name: str
    comment: str

    def apply(self, table: Table) -> Table:
        match constraint := constraint_of(table, self.name):
            case Check():
                checks = changed(table.checks, replace(constraint, comment=self.comment))
                return replace(table, checks=checks)
            case ForeignKey():
                keys = changed(table.foreign_keys, replace(constraint, comment=self.comment))
                return replace(table, foreign_keys=keys)
            case Index():
                indexes = changed(table.indexes, replace(constraint, comment=self.comment))
                return replace(table, indexes=indexes)


def constraint_of(table: Table, name: str) -> Check | ForeignKey | Index:
    constraint = constraint_named(table, name)
    if constraint is None:
        raise UndefinedObject(f'constraint "{name}" of relation "{table.name}" does not exist')
    return constraint


def target_key(target: Table, names: tuple[str, ...]) -> tuple[int, ...]:
    """The columns a foreign key refers to; those of the primary key, if none are named."""
    if not names:
        if row_id(target) is not None:
            raise UndefinedObject(f'there is no primary key for referenced table "{target.name}"')
        primary = primary_of(target)
        if primary.is_deferrable:
            raise WrongState(f'cannot use a deferrable primary key for referenced table "{target.name}"')
        return tuple(part.column for part in primary.parts)
    ids = tuple(_referencing(target, name).id for name in names)
    unique = [each for each in staying(target.indexes) if is_target(each) and columns_of(each) == set(ids)]
    if unique and all(each.is_deferrable for each in unique):
        raise WrongState(f'cannot use a deferrable unique constraint for referenced table "{target.name}"')
    if len(set(ids)) != len(ids) or not unique:
        raise InvalidForeignKey(
            f'there is no unique constraint matching given keys for referenced table "{target.name}"'
        )
    return ids


def ended_keys(before: Table, after: Table) -> list[ForeignKey]:
    """The foreign keys that are gone in the newer version: their inbound must go with them."""
    left = set() if is_dropped(after) else {key.id for key in after.foreign_keys}
    return [key for key in before.foreign_keys if key.id not in left]


def _referencing(table: Table, name: str) -> Column:
    column = find_column(table, name)
    if column is None:
        raise UndefinedColumn(f'column "{name}" referenced in foreign key constraint does not exist')
    require_settled(table, [column.id])
    return column


def _validating(table: Table, constraint: C) -> C:
    if constraint.is_validated:
        return constraint
    reads = constraint.expression.columns if isinstance(constraint, Check) else constraint.columns
    return replace(constraint, state=entry_state(table, reads))
