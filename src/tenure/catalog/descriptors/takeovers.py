"""Changes of a table in the version of the show step, besides the elements' own steps.

    column   takes the position of the one it replaces; that one is computed until nobody reads it
    index    the one it replaces is written until nobody reads it; a new primary becomes the primary
    check    of NOT NULL becomes part of its column; one that was NOT VALID is valid now

Walk: `catalog.descriptors.elements` calls these, and nobody else.
"""

from typing import TypeVar

from tenure.catalog.descriptors.definitions import (
    Check,
    Column,
    ElementState,
    ForeignKey,
    Goal,
    Index,
    Table,
    replace,
)

C = TypeVar("C", Check, ForeignKey)


def taken_over(before: Table, table: Table) -> Table:
    """Completes the replacement of elements that became public with the step from `before` to `table`."""
    columns, indexes, checks, keys = (
        _arrived(before.columns, table.columns),
        _arrived(before.indexes, table.indexes),
        _arrived(before.checks, table.checks),
        _arrived(before.foreign_keys, table.foreign_keys),
    )
    for column in columns:
        table = _take_over_column(table, column)
    for index in indexes:
        table = _take_over_index(table, index)
    table = replace(
        table,
        checks=_valid(table.checks, checks),
        foreign_keys=_valid(table.foreign_keys, keys),
    )
    for check in checks:
        if check.not_null:
            table = _set_not_null(table, check)
    return table


def without_stale_inbound(table: Table) -> Table:
    """A table's references to itself go with their foreign keys."""
    own = {key.id for key in table.foreign_keys}
    inbound = tuple(each for each in table.inbound if each.table != table.id or each.constraint in own)
    return replace(table, inbound=inbound)


E = TypeVar("E", Column, Index, Check, ForeignKey)


def _arrived(before: tuple[E, ...], after: tuple[E, ...]) -> list[E]:
    coming = {each.id for each in before if each.state is not ElementState.PUBLIC}
    return [each for each in after if each.id in coming and each.state is ElementState.PUBLIC]


def _take_over_column(table: Table, new: Column) -> Table:
    shown = replace(new, replaces=0, computed=None, reverse=None)
    if not new.replaces:
        return replace(table, columns=tuple(shown if each.id == new.id else each for each in table.columns))
    old = table.column(new.replaces)
    shown = replace(shown, name=old.name)
    going = replace(old, state=ElementState.WRITE_ONLY, goal=Goal.ABSENT, computed=new.reverse)
    columns = [shown if each.id == old.id else each for each in table.columns if each.id != new.id]
    return replace(table, columns=(*columns, going))


def _take_over_index(table: Table, new: Index) -> Table:
    if not new.replaces:
        return table
    going = replace(table.index(new.replaces), state=ElementState.WRITE_ONLY, goal=Goal.ABSENT)
    shown = replace(new, replaces=0)
    indexes = tuple({new.id: shown, going.id: going}.get(each.id, each) for each in table.indexes)
    primary = new.id if going.id == table.primary else table.primary
    return replace(table, indexes=indexes, primary=primary)


def _valid(constraints: tuple[C, ...], arrived: list[C]) -> tuple[C, ...]:
    ids = {each.id for each in arrived}
    return tuple(replace(each, is_validated=True) if each.id in ids else each for each in constraints)


def _set_not_null(table: Table, check: Check) -> Table:
    columns = tuple(
        replace(each, is_nullable=False) if each.id == check.not_null else each for each in table.columns
    )
    return replace(table, columns=columns, checks=tuple(each for each in table.checks if each.id != check.id))
