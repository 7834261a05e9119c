"""How a descriptor moves towards what was asked for: the table of legal steps, as pure functions.

    column, index        absent ─► delete_only ─► write_only ─► public       adding
    check, foreign key   absent ────────────────► write_only ─► public
    (before public: backfill, validate)
    column, index        public ─► write_only ─► delete_only ─► absent       dropping
    check, foreign key   public ─► write_only ────────────────► absent

A change is **declared** by elements whose state is not their goal. `advance` takes all of them one
step; between two versions the schema changer waits for the leases on the older one. Everything
that is being added becomes public before anything is dropped: so a change that fails can still be
taken back whole, and an element that replaces another takes over in one version.

    declared ─► advance ─► advance ─► ... ─► finished            one version each
    reverse: what was being added turns round; what had not begun to go stays

Former names and the state of the whole descriptor move likewise: a name that is draining goes with
the next step after the one that took it away.

Invariant (element-steps): every step of an element is one of the table's.
Invariant (add-before-drop): nothing is being dropped while something is still being added.

Walk: `catalog.changes` declares, `schema_change` walks.
"""

from collections.abc import Callable
from typing import TypeVar

from tenure.catalog.descriptors import (
    AnyDescriptor,
    Check,
    Column,
    Element,
    ElementState,
    EnumMember,
    EnumType,
    ForeignKey,
    Goal,
    Index,
    State,
    Table,
    elements,
    replace,
)

E = TypeVar("E", Column, Index, Check, ForeignKey)

STEPS_MAX = 8
"""More than any change takes: three to public, three to absent, one for names."""

_UP = {ElementState.DELETE_ONLY: ElementState.WRITE_ONLY, ElementState.WRITE_ONLY: ElementState.PUBLIC}
_DOWN = {ElementState.PUBLIC: ElementState.WRITE_ONLY, ElementState.WRITE_ONLY: ElementState.DELETE_ONLY}


def next_state(element: Element) -> ElementState | None:
    """The state one step nearer to its goal; None is absent. Asked only of one that is on its way."""
    if element.goal is Goal.PUBLIC:
        return _UP[element.state]
    if isinstance(element, Check | ForeignKey) and element.state is ElementState.WRITE_ONLY:
        return None  # nothing is stored for it, so there is nothing to delete only
    return _DOWN.get(element.state)


def is_adding(element: Element) -> bool:
    return element.goal is Goal.PUBLIC and element.state is not ElementState.PUBLIC


def is_dropping(element: Element) -> bool:
    return element.goal is Goal.ABSENT


def has_additions(table: Table) -> bool:
    return any(map(is_adding, elements(table)))


def is_finished(descriptor: AnyDescriptor) -> bool:
    """Whether nothing is left to do for it."""
    if descriptor.draining or descriptor.state is State.ADDING:
        return False
    match descriptor:
        case Table():
            return not any(is_adding(each) or is_dropping(each) for each in elements(descriptor))
        case EnumType():
            return all(member.state is ElementState.PUBLIC for member in descriptor.members)
        case _:
            return True


def advance(descriptor: AnyDescriptor) -> AnyDescriptor:
    """All of it one step further; its version is the caller's affair."""
    state = State.PUBLIC if descriptor.state is State.ADDING else descriptor.state
    descriptor = replace(descriptor, draining=(), state=state)
    match descriptor:
        case Table():
            return _advance_table(descriptor)
        case EnumType():
            return replace(descriptor, members=tuple(map(_public_member, descriptor.members)))
        case _:
            return descriptor


def finished(descriptor: AnyDescriptor) -> AnyDescriptor:
    """What it will be once nothing is left to do."""
    for _ in range(STEPS_MAX):
        if is_finished(descriptor):
            return descriptor
        descriptor = advance(descriptor)
    raise AssertionError("a change that does not end")


def first_stage(descriptor: AnyDescriptor) -> AnyDescriptor:
    """What the statement itself publishes: additions as declared, or the first step of dropping."""
    if isinstance(descriptor, Table) and not has_additions(descriptor):
        return replace(_advance_table(descriptor), draining=descriptor.draining, state=descriptor.state)
    return descriptor


def reverse(descriptor: AnyDescriptor) -> AnyDescriptor:
    """Turns a change round that fails or is canceled.

    Once all that was added is public there is no way back: what is going, goes.
    """
    if not isinstance(descriptor, Table) or not has_additions(descriptor):
        return descriptor
    return replace(
        descriptor,
        columns=tuple(map(_reversed, descriptor.columns)),
        indexes=tuple(map(_reversed, descriptor.indexes)),
        checks=tuple(map(_reversed, descriptor.checks)),
        foreign_keys=tuple(map(_reversed, descriptor.foreign_keys)),
    )


def own_copy(descriptor: AnyDescriptor) -> AnyDescriptor:
    """How the transaction that declared a change sees it before its commit.

    Columns are there and those dropped are gone; constraints hold for what it writes. New indexes
    are not there yet: they are completed at its commit, from all its rows at once.
    """
    if not isinstance(descriptor, Table) or is_finished(descriptor):
        return descriptor
    columns = tuple(
        replace(each, state=ElementState.PUBLIC, goal=Goal.PUBLIC)
        for each in descriptor.columns
        if not is_dropping(each) and not each.replaces
    )
    kept = {column.id for column in columns}
    return replace(
        descriptor,
        columns=columns,
        indexes=tuple(each for each in descriptor.indexes if not is_adding(each) and _uses(each, kept)),
        checks=tuple(each for each in descriptor.checks if not is_dropping(each)),
        foreign_keys=tuple(each for each in descriptor.foreign_keys if not is_dropping(each)),
    )


def _uses(index: Index, kept: set[int]) -> bool:
    """An index that is going is still kept up; one over a column that is gone cannot be."""
    return all(part.column in kept for part in index.parts)


def _reversed(element: E) -> E:
    if is_adding(element):
        return replace(element, goal=Goal.ABSENT)
    if is_dropping(element):
        return replace(element, goal=Goal.PUBLIC)
    return element


def _public_member(member: EnumMember) -> EnumMember:
    return replace(member, state=ElementState.PUBLIC)


def _advance_table(table: Table) -> Table:
    if not has_additions(table):
        return _stepped(table, is_dropping)
    return _taken_over(_stepped(table, is_adding))


def _stepped(table: Table, moves: Callable[[Element], bool]) -> Table:
    return replace(
        table,
        columns=_step_all(table.columns, moves),
        indexes=_step_all(table.indexes, moves),
        checks=_step_all(table.checks, moves),
        foreign_keys=_step_all(table.foreign_keys, moves),
    )


def _step_all(group: tuple[E, ...], moves: Callable[[Element], bool]) -> tuple[E, ...]:
    stepped = []
    for each in group:
        state = next_state(each) if moves(each) else each.state
        if state is not None:
            stepped.append(replace(each, state=state))
    return tuple(stepped)


def _taken_over(table: Table) -> Table:
    """Lets elements that have become public take the places they were made for."""
    for column in table.columns:
        if column.replaces and column.state is ElementState.PUBLIC:
            table = _take_over_column(table, column)
    for index in table.indexes:
        if index.replaces and index.state is ElementState.PUBLIC:
            table = _take_over_index(table, index)
    for check in table.checks:
        if check.not_null and check.state is ElementState.PUBLIC:
            table = _set_not_null(table, check)
    return table


def _take_over_column(table: Table, new: Column) -> Table:
    """The new column stands where the old one stood; the old one follows it until nobody reads it."""
    old = table.column(new.replaces)
    shown = replace(new, name=old.name, replaces=0, computed=None, reverse=None)
    going = replace(old, state=ElementState.WRITE_ONLY, goal=Goal.ABSENT, computed=new.reverse)
    columns = [each for each in table.columns if each.id not in (new.id, old.id)]
    columns.insert(table.columns.index(old), shown)
    return replace(table, columns=(*columns, going))


def _take_over_index(table: Table, new: Index) -> Table:
    going = replace(table.index(new.replaces), state=ElementState.WRITE_ONLY, goal=Goal.ABSENT)
    shown = replace(new, replaces=0)
    indexes = tuple({new.id: shown, going.id: going}.get(each.id, each) for each in table.indexes)
    primary = new.id if going.id == table.primary else table.primary
    return replace(table, indexes=indexes, primary=primary)


def _set_not_null(table: Table, check: Check) -> Table:
    columns = tuple(
        replace(each, is_nullable=False) if each.id == check.not_null else each for each in table.columns
    )
    return replace(table, columns=columns, checks=tuple(each for each in table.checks if each is not check))
