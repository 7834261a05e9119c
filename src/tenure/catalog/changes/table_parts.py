"""The parts of a table for a change: found by their future names, with PostgreSQL's errors.

A change is applied to a table as declared so far: its transaction may have declared others before it, and
then it builds on their result. An element that is being added was never published and can still be altered in
place or withdrawn; one that is public gets its goal changed, or a replacement.

Walk: `column_changes`, `index_changes` and `constraint_changes` are written with these.
"""

from collections.abc import Iterable, Iterator
from itertools import count
from typing import TypeVar

from tenure.base.errors import DuplicateObject, NotSupported, UndefinedColumn
from tenure.catalog.descriptors.definitions import (
    Check,
    Column,
    ElementState,
    Expression,
    ForeignKey,
    Goal,
    Index,
    Table,
    replace,
)
from tenure.catalog.descriptors.elements import is_adding, is_validating
from tenure.catalog.descriptors.takeovers import without_stale_inbound
from tenure.catalog.descriptors.validation import NAME_BYTES_MAX
from tenure.kv.records import Record

E = TypeVar("E", Column, Index, Check, ForeignKey)
C = TypeVar("C", Check, ForeignKey)


class TableChange(Record, frozen=True, tag=True, tag_field="change"):
    """A change of one table as data."""

    def apply(self, table: Table) -> Table:
        """Declares the change on the table as declared so far."""
        raise NotImplementedError

    def elsewhere(self, table: Table) -> "Iterable[tuple[int, TableChange]]":
        """Its effects on other tables, by their ids; called before it is applied."""
        return ()


class NamedKeyColumn(Record, frozen=True):
    """A key column as a statement names it."""

    column: str
    is_descending: bool = False


class ReferringKey(Record, frozen=True):
    """A foreign key of another table, as a change of its target sees it."""

    table: int
    table_name: str
    key: ForeignKey

    def __str__(self) -> str:
        return f"constraint {self.key.name} on table {self.table_name}"


class DropKey(TableChange, frozen=True):
    """Drops a foreign key because of a change of its target."""

    constraint: int

    def apply(self, table: Table) -> Table:
        key = next((each for each in staying(table.foreign_keys) if each.id == self.constraint), None)
        return table if key is None else replace(table, foreign_keys=gone(table.foreign_keys, key))


# ── columns ────────────────────────────────────────────────────────────────────────────────────


def staying(group: tuple[E, ...]) -> Iterator[E]:
    """The elements that exist after all declared changes, without stand-ins."""
    replaced = {each.replaces for each in group if isinstance(each, Index)}
    for each in group:
        stands_in = isinstance(each, Column) and each.replaces
        if each.goal is Goal.PUBLIC and not stands_in and each.id not in replaced:
            yield each


def find_column(table: Table, name: str) -> Column | None:
    return next((each for each in staying(table.columns) if each.name == name), None)


def column_of(table: Table, name: str) -> Column:
    column = find_column(table, name)
    if column is None:
        raise UndefinedColumn(f'column "{name}" of relation "{table.name}" does not exist')
    return column


def settled_column_of(table: Table, name: str) -> Column:
    """The same, refusing a column whose type is being rewritten."""
    column = column_of(table, name)
    require_settled(table, [column.id])
    return column


def successor_of(table: Table, column: Column) -> Column:
    """The column that replaces one whose type is being rewritten; else the column itself."""
    return next((each for each in table.columns if each.replaces == column.id), column)


def require_settled(table: Table, columns: Iterable[int]) -> None:
    """Refuses columns that are being replaced: nothing may be built on them."""
    used = set(columns)
    rewritten = next((each for each in table.columns if each.replaces in used), None)
    if rewritten is not None:
        raise NotSupported(
            f'column "{rewritten.name}" of relation "{table.name}" is being rewritten by this transaction',
            hint="Make this change in a transaction of its own.",
        )


# ── elements of any kind ───────────────────────────────────────────────────────────────────────


def changed(group: tuple[E, ...], element: E) -> tuple[E, ...]:
    """The group with the current form of the element."""
    return tuple(element if each.id == element.id else each for each in group)


def gone(group: tuple[E, ...], element: E) -> tuple[E, ...]:
    """The group with the element on its way out, or without it if it was never published."""
    if is_adding(element) and not is_validating(element):
        return tuple(each for each in group if each.id != element.id)
    if is_validating(element):
        element = replace(element, state=ElementState.PUBLIC)
    return changed(group, replace(element, goal=Goal.ABSENT))


def since_committed(committed: Table, declared: Table) -> Table:
    """The declared table, with constraints that are new in it marked as new.

    A NOT VALID constraint counts as existing from the beginning. So a later change of it has to be compared
    with the published table: dropped, it never existed; validated, it is simply added.
    """
    return without_stale_inbound(
        replace(
            declared,
            checks=_plainly_new(committed.checks, declared.checks),
            foreign_keys=_plainly_new(committed.foreign_keys, declared.foreign_keys),
        )
    )


def _plainly_new(committed: tuple[C, ...], declared: tuple[C, ...]) -> tuple[C, ...]:
    ids = {each.id for each in committed}
    kept = (each for each in declared if each.id in ids or each.goal is Goal.PUBLIC or _is_loosening(each))
    return tuple(
        replace(each, is_validated=True) if each.id not in ids and is_validating(each) else each
        for each in kept
    )


def _is_loosening(constraint: Check | ForeignKey) -> bool:
    """A NOT NULL that is dropped is a check of its own, and new where it is declared."""
    return isinstance(constraint, Check) and bool(constraint.not_null)


def free_name(taken: Iterable[str], *words: str) -> str:
    """A name in PostgreSQL's style: table_column_idx, then with a number."""
    taken = set(taken)
    for number in count():
        suffix = words[-1] + (str(number) if number else "")
        stem = "_".join(words[:-1])
        while len(f"{stem}_{suffix}".encode()) > NAME_BYTES_MAX:
            stem = stem[:-1]
        if f"{stem}_{suffix}" not in taken:
            return f"{stem}_{suffix}"
    raise AssertionError("numbers do not end")


# ── constraints ────────────────────────────────────────────────────────────────────────────────


def constraint_named(table: Table, name: str) -> Check | ForeignKey | Index | None:
    named: list[Check | ForeignKey | Index] = [
        *(each for each in staying(table.checks) if not each.not_null),
        *staying(table.foreign_keys),
        *(each for each in staying(table.indexes) if each.is_constraint),
    ]
    return next((each for each in named if each.name == name), None)


def require_free_constraint(table: Table, name: str) -> None:
    if constraint_named(table, name) is not None:
        raise DuplicateObject(f'constraint "{name}" for relation "{table.name}" already exists')


def entry_state(table: Table, columns: Iterable[int]) -> ElementState:
    """The first state of a constraint on these columns: not enforced while one of them is not written."""
    reads = set(columns)
    waits = any(each.state is ElementState.DELETE_ONLY for each in table.columns if each.id in reads)
    return ElementState.DELETE_ONLY if waits else ElementState.WRITE_ONLY


def not_null_check(table: Table, column: Column, goal: Goal) -> Table:
    """Declares that a column's NOT NULL is added or dropped."""
    check = Check(
        id=table.next_constraint,
        name=f"{table.name}_{column.name}_not_null",
        expression=Expression(b"", f"{column.name} IS NOT NULL", (column.id,)),
        state=entry_state(table, [column.id]) if goal is Goal.PUBLIC else ElementState.PUBLIC,
        goal=goal,
        not_null=column.id,
    )
    return replace(table, checks=(*table.checks, check), next_constraint=table.next_constraint + 1)


def require_not_null(table: Table, column: Column) -> Table:
    """Declares that a column becomes NOT NULL, unless it is, or will be by an earlier declaration."""
    going = next((each for each in table.checks if each.not_null == column.id), None)
    if going is not None and going.goal is Goal.ABSENT:
        return replace(table, checks=tuple(each for each in table.checks if each is not going))
    if going is not None or not column.is_nullable:
        return table
    return not_null_check(table, column, Goal.PUBLIC)


def allow_null(table: Table, column: Column) -> Table:
    """Declares that a column may be null; readers may rely on the opposite one version longer."""
    coming = next((each for each in table.checks if each.not_null == column.id), None)
    if coming is not None and coming.goal is Goal.PUBLIC:
        return replace(table, checks=tuple(each for each in table.checks if each is not coming))
    if column.is_nullable or coming is not None:
        return table
    if is_adding(column):
        return replace(table, columns=changed(table.columns, replace(column, is_nullable=True)))
    return not_null_check(table, column, Goal.ABSENT)
