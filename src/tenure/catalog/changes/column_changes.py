"""Changes of a table's columns, as data.

    add         absent, then declared at delete_only; rows that exist have its `filled`, or are
                backfilled by `computed` where the default is not a constant, or by `generated`
    drop        with the table's own indexes, checks and foreign keys that use it
    alter type  in place where rows hold both types alike, otherwise by a new column that takes
                over, with new indexes and checks on it

A type that is widened in place is widened for writers and readers at once: a reader one version behind can
meet a value that its type cannot represent, and has to start over.

Walk: `sql` makes them, `catalog.changes.table_changes.alter` applies them.
"""

from collections.abc import Iterable

from tenure.base.errors import (
    DependentObjects,
    DuplicateColumn,
    InvalidTable,
    NotSupported,
    SyntaxFault,
    TooManyColumns,
    WrongState,
)
from tenure.catalog.changes.index_changes import drop_keys, in_key, remade, without_column
from tenure.catalog.changes.table_parts import (
    ReferringKey,
    TableChange,
    allow_null,
    changed,
    column_of,
    find_column,
    gone,
    not_null_check,
    require_not_null,
    settled_column_of,
    staying,
    successor_of,
)
from tenure.catalog.descriptors.definitions import (
    Check,
    Column,
    ElementState,
    Expression,
    Goal,
    KeyPart,
    Table,
    TypeRef,
    replace,
)
from tenure.catalog.descriptors.elements import is_adding

COLUMNS_MAX = 1600
"""The limit of PostgreSQL, which its clients know."""


class AddColumn(TableChange, frozen=True):
    name: str
    type: TypeRef
    is_nullable: bool = True
    default: Expression | None = None
    filled: bytes | None = None
    """The packed constant for existing rows; without one, the default if any."""
    is_hidden: bool = False
    identity: str = ""
    generated: Expression | None = None
    """Instead of a default: the expression that computes its value in every row."""

    def apply(self, table: Table) -> Table:
        require_free_column(table, self.name)
        if sum(not each.is_hidden for each in table.columns) >= COLUMNS_MAX:
            raise TooManyColumns(f"tables can have at most {COLUMNS_MAX} columns")
        has_value = self.filled is not None
        column = Column(
            id=table.next_column,
            name=self.name,
            type=self.type,
            state=ElementState.DELETE_ONLY,
            is_nullable=self.is_nullable or not has_value,
            default=self.default,
            filled=self.filled,
            is_hidden=self.is_hidden,
            computed=None if has_value else self.default,
            identity=self.identity,
            generated=self.generated,
        )
        table = replace(table, columns=(*table.columns, column), next_column=column.id + 1)
        return table if self.is_nullable else require_not_null(table, column)


class DropColumn(TableChange, frozen=True):
    name: str
    is_cascade: bool = False
    referring: tuple[ReferringKey, ...] = ()
    """The foreign keys of other tables that refer to this one."""

    def apply(self, table: Table) -> Table:
        column = settled_column_of(table, self.name)
        following = generated_from(table, column.id)
        needing = [
            *self._needing(column),
            *(f"column {each.name} of table {table.name}" for each in following),
        ]
        if needing and not self.is_cascade:
            raise DependentObjects.of(f"column {self.name} of table {table.name}", needing)
        if in_key(table, column):
            raise InvalidTable(
                f'column "{self.name}" is in a primary key',
                hint="Give the table another primary key first, in a transaction of its own.",
            )
        for each in following:
            table = without_column(table, each)
        return without_column(table, column)

    def elsewhere(self, table: Table) -> Iterable[tuple[int, TableChange]]:
        return drop_keys(self._needing(column_of(table, self.name)))

    def _needing(self, column: Column) -> list[ReferringKey]:
        return [each for each in self.referring if column.id in each.key.target_columns]


class RenameColumn(TableChange, frozen=True):
    name: str
    to: str

    def apply(self, table: Table) -> Table:
        column = column_of(table, self.name)
        require_free_column(table, self.to)
        return replace(table, columns=changed(table.columns, replace(column, name=self.to)))


class SetDefault(TableChange, frozen=True):
    """For new rows; the values of existing rows, stored or implied, stay."""

    name: str
    default: Expression

    def apply(self, table: Table) -> Table:
        return _with_default(table, self.name, self.default)


class DropDefault(TableChange, frozen=True):
    name: str

    def apply(self, table: Table) -> Table:
        return _with_default(table, self.name, None)


class AddIdentity(TableChange, frozen=True):
    name: str
    identity: str
    default: Expression
    """The next value of the sequence that the column will own."""

    def apply(self, table: Table) -> Table:
        column = settled_column_of(table, self.name)
        what = f'column "{self.name}" of relation "{table.name}"'
        if _will_be_null(table, column):
            raise WrongState(f"{what} must be declared NOT NULL before identity can be added")
        if column.identity:
            raise WrongState(f"{what} is already an identity column")
        if column.default is not None or column.generated is not None:
            raise WrongState(f"{what} already has a default value")
        altered = replace(column, identity=self.identity, default=self.default)
        return replace(table, columns=changed(table.columns, altered))


class SetIdentity(TableChange, frozen=True):
    """Makes GENERATED ALWAYS of BY DEFAULT, or the reverse."""

    name: str
    identity: str

    def apply(self, table: Table) -> Table:
        column = _identity_column(table, self.name)
        return replace(table, columns=changed(table.columns, replace(column, identity=self.identity)))


class DropIdentity(TableChange, frozen=True):
    """Leaves a plain column; `drops.drop_identity` drops the sequence too."""

    name: str

    def apply(self, table: Table) -> Table:
        column = _identity_column(table, self.name)
        return replace(table, columns=changed(table.columns, replace(column, identity="", default=None)))


class DropExpression(TableChange, frozen=True):
    """Leaves a plain column with its current values."""

    name: str

    def apply(self, table: Table) -> Table:
        column = settled_column_of(table, self.name)
        if column.generated is None:
            raise WrongState(f'column "{self.name}" of relation "{table.name}" is not a generated column')
        return replace(table, columns=changed(table.columns, replace(column, generated=None)))


class SetColumnComment(TableChange, frozen=True):
    name: str
    comment: str

    def apply(self, table: Table) -> Table:
        column = column_of(table, self.name)
        return replace(table, columns=changed(table.columns, replace(column, comment=self.comment)))


class SetNotNull(TableChange, frozen=True):
    name: str

    def apply(self, table: Table) -> Table:
        return require_not_null(table, successor_of(table, column_of(table, self.name)))


class DropNotNull(TableChange, frozen=True):
    name: str

    def apply(self, table: Table) -> Table:
        column = settled_column_of(table, self.name)
        if column.identity:
            raise SyntaxFault(f'column "{self.name}" of relation "{table.name}" is an identity column')
        if in_key(table, column):
            raise InvalidTable(f'column "{self.name}" is in a primary key')
        return allow_null(table, column)


class AlterType(TableChange, frozen=True):
    name: str
    type: TypeRef
    computed: Expression | None = None
    """Computes the new value from the row; None where rows hold both types alike, and only the name
    changes.
    """
    reverse: Expression | None = None
    """Computes the former value from the row with the new one, for readers one version behind."""
    default: Expression | None = None
    """The column's new default, of the new type."""
    checks: tuple[tuple[int, Expression], ...] = ()
    """The checks that read the column, by id, rewritten to read the new one: the table's `next_column`."""
    predicates: tuple[tuple[int, Expression], ...] = ()
    """The same for partial indexes."""

    def apply(self, table: Table) -> Table:
        column = settled_column_of(table, self.name)
        if following := generated_from(table, column.id):
            raise NotSupported(
                "cannot alter type of a column used by a generated column",
                detail=f'Column "{self.name}" is used by generated column "{following[0].name}".',
            )
        if self.computed is not None:
            return self._rewrite(table, column, self.computed)
        altered = replace(column, type=self.type, default=self.default)
        return replace(table, columns=changed(table.columns, altered))

    def _rewrite(self, table: Table, old: Column, computed: Expression) -> Table:
        self._require_possible(table, old)
        new = Column(
            id=table.next_column,
            name=old.name,
            type=self.type,
            state=ElementState.DELETE_ONLY,
            default=self.default,
            is_hidden=old.is_hidden,
            computed=computed,
            replaces=old.id,
            reverse=self.reverse,
            comment=old.comment,
        )
        was_strict = not _will_be_null(table, old)
        if was_strict and not in_key(table, old):
            # A column generated from a new value may be null, so readers stop relying on NOT NULL before.
            table = allow_null(table, old)
        table = replace(table, columns=(*table.columns, new), next_column=new.id + 1)
        if was_strict:
            table = not_null_check(table, new, Goal.PUBLIC)
        table = self._with_new_checks(table, old, new)
        return self._with_new_indexes(table, old, new)

    def _require_possible(self, table: Table, old: Column) -> None:
        if is_adding(old):
            raise NotSupported(
                f'the type of column "{self.name}" cannot be changed by the transaction that adds it'
            )
        if old.generated is not None or old.identity:
            kind = "generated" if old.generated is not None else "an identity column"
            raise NotSupported(
                f'the type of column "{self.name}" cannot be changed: it is {kind}',
                hint="Drop the column, and add it again.",
            )
        loose = [each for each in staying(table.checks) if not each.is_validated]
        if any(old.id in each.expression.columns for each in loose):
            raise NotSupported(
                f'the type of column "{self.name}" cannot be changed: a check on it is not valid',
                hint="Validate the constraint first.",
            )
        keys = [each for each in staying(table.foreign_keys) if old.id in each.columns]
        if keys:
            raise NotSupported(
                f'the type of column "{self.name}" cannot be changed: constraint "{keys[0].name}" uses it',
                hint="Drop the foreign key first, and add it again.",
            )
        if table.inbound and any(
            index.is_unique and any(part.column == old.id for part in index.parts)
            for index in staying(table.indexes)
        ):
            raise NotSupported(
                f'the type of column "{self.name}" cannot be changed: foreign keys may refer to it',
                hint="Drop the foreign keys that refer to the table first, and add them again.",
            )
        if in_key(table, old) and self.reverse is None:
            raise NotSupported(
                f'the type of column "{self.name}" cannot be changed: it is in the primary key, and its'
                " former value does not follow from the new one"
            )

    def _with_new_checks(self, table: Table, old: Column, new: Column) -> Table:
        rewritten = dict(self.checks)
        for check in [*staying(table.checks)]:
            if check.not_null or old.id not in check.expression.columns:
                continue
            successor = Check(
                table.next_constraint,
                check.name,
                rewritten[check.id],
                ElementState.DELETE_ONLY,
                comment=check.comment,
            )
            table = replace(
                table,
                checks=(*gone(table.checks, check), successor),
                next_constraint=successor.id + 1,
            )
        return table

    def _with_new_indexes(self, table: Table, old: Column, new: Column) -> Table:
        rewritten = dict(self.predicates)
        for index in [*staying(table.indexes)]:
            predicate = index.predicate
            reads = predicate is not None and old.id in predicate.columns
            if not reads and all(part.column != old.id for part in index.parts):
                continue
            if reads:
                predicate = rewritten[index.id]
            parts = tuple(
                KeyPart(new.id, part.is_descending) if part.column == old.id else part for part in index.parts
            )
            table = remade(table, index, parts=parts, predicate=predicate)
        return table


def require_free_column(table: Table, name: str) -> None:
    if find_column(table, name) is not None:
        raise DuplicateColumn(f'column "{name}" of relation "{table.name}" already exists')


def generated_from(table: Table, id: int) -> list[Column]:
    """The columns that are generated from a column."""
    columns = [each for each in staying(table.columns) if each.generated is not None]
    return [each for each in columns if each.generated is not None and id in each.generated.columns]


def _identity_column(table: Table, name: str) -> Column:
    column = settled_column_of(table, name)
    if not column.identity:
        raise WrongState(f'column "{name}" of relation "{table.name}" is not an identity column')
    return column


def _with_default(table: Table, name: str, default: Expression | None) -> Table:
    column = successor_of(table, column_of(table, name))
    if column.identity:
        hint = "" if default else "Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead."
        raise SyntaxFault(f'column "{name}" of relation "{table.name}" is an identity column', hint=hint)
    if column.generated is not None:
        hint = f"Use ALTER TABLE ... ALTER COLUMN ... {'SET' if default else 'DROP'} EXPRESSION instead."
        raise SyntaxFault(f'column "{name}" of relation "{table.name}" is a generated column', hint=hint)
    return replace(table, columns=changed(table.columns, replace(column, default=default)))


def _will_be_null(table: Table, column: Column) -> bool:
    """Whether it may be NULL once all declared changes are done."""
    check = next((each for each in table.checks if each.not_null == column.id), None)
    return column.is_nullable if check is None else check.goal is Goal.ABSENT
