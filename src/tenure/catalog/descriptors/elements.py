"""How a descriptor moves towards its goal: the table of legal steps, as pure functions.

    column, index        absent ─► delete_only ─► write_only ─► public       adding
    check, foreign key   absent ────────────────► write_only ─► public
      on a new column    absent ─► delete_only ─► write_only ─► public       not enforced at first
    (before public: backfill, validate)
    column               public ─► write_only ─► delete_only ─► absent       dropping
    index                public ─► unread ─────► delete_only ─► absent
      that is replaced   public ─► write_only ─► delete_only ─► absent
    check, foreign key   public ─► write_only ────────────────► absent

A change is **declared** by elements whose state is not their goal. `advance` moves it one step; between two
versions the schema changer waits for the leases on the older one.

    declared ─► prepare ... ─► show ─► clean ... ─► finished           one version each

    prepare   additions up to write_only, dropped constraints down to write_only, dropped indexes
              unread: readers see and write as before, they only stop relying on elements that
              are dropped. So rows of the next step need not obey these any more
    show      in one version: all additions become public, replacements take over, dropped
              constraints are gone, dropped columns and indexes are no longer seen
    clean     dropped columns and indexes step down to absent

Before the show step a change can be reversed completely; after it the change cannot be reversed, and nothing
is left that could fail. NOT NULL is part of its column, and a check with `not_null` while it is added or
dropped: when public, it is the column's own NOT NULL.

A NOT VALID constraint counts as public and is enforced, but readers do not rely on it; write_only means the
same. So it is validated from there: not valid ─► write_only ─► public and valid.

A table that a transaction is about to empty is closed to all others until that has ended. An emptied table
has new indexes, and all its changes are finished: none of its rows is older than they are.

Former names and the state of the whole descriptor move likewise: a draining name is removed with the next
step after the one that replaced it. A name that the same transaction gives to another object is closed first:
when no node uses an older version it changes hands at once.

Invariant (element-steps): every step of an element is one of the table's.
Invariant (add-before-drop): no element that readers see is dropped while another is still being added.
Invariant (way-back): a change that is not shown yet can be reversed, and leaves no trace but
its version and the ids it used.

Walk: `catalog.changes.table_changes` declares, `schema_change` walks.
"""

from collections.abc import Callable
from typing import TypeVar

from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Check,
    Column,
    DescriptorState,
    Element,
    ElementState,
    EnumMember,
    EnumType,
    ForeignKey,
    Goal,
    Index,
    Table,
    elements,
    is_dropped,
    place_of,
    replace,
)
from tenure.catalog.descriptors.takeovers import taken_over, without_stale_inbound

E = TypeVar("E", Column, Index, Check, ForeignKey)
C = TypeVar("C", Check, ForeignKey)

STEPS_MAX = 6
"""More steps than any change takes: two to public, which is one of the three to absent, one for names."""

_UP = {ElementState.DELETE_ONLY: ElementState.WRITE_ONLY, ElementState.WRITE_ONLY: ElementState.PUBLIC}
_DOWN = {ElementState.PUBLIC: ElementState.WRITE_ONLY, ElementState.WRITE_ONLY: ElementState.DELETE_ONLY}


# ── states ──────────────────────────────────────────────────────────────────────────────────────


def next_state(element: Element) -> ElementState | None:
    """The state one step nearer to its goal; None is absent. Only for an element with a change under way."""
    if element.goal is Goal.PUBLIC:
        return _UP[element.state]
    if isinstance(element, Check | ForeignKey) and element.state is ElementState.WRITE_ONLY:
        return None  # nothing is stored for it, so delete_only is not needed
    if isinstance(element, Index) and element.is_unread:
        return None if element.state is ElementState.DELETE_ONLY else ElementState.DELETE_ONLY
    return _DOWN.get(element.state)


def is_adding(element: Element) -> bool:
    return element.goal is Goal.PUBLIC and element.state is not ElementState.PUBLIC


def is_dropping(element: Element) -> bool:
    return element.goal is Goal.ABSENT


def is_moving(element: Element) -> bool:
    return element.goal is Goal.ABSENT or element.state is not ElementState.PUBLIC


def is_validating(element: Element) -> bool:
    """Whether it was NOT VALID and is being validated: it existed before."""
    return isinstance(element, Check | ForeignKey) and is_adding(element) and not element.is_validated


def has_additions(table: Table) -> bool:
    return any(map(is_adding, elements(table)))


def is_prepared(table: Table) -> bool:
    """Whether the next step may be the show step."""
    return not any(map(_needs_preparing, elements(table)))


def is_shown(table: Table) -> bool:
    """Whether readers see all of the change; only cleaning is left."""
    return not table.is_closed and not any(map(_is_unseen, elements(table)))


def is_finished(descriptor: AnyDescriptor) -> bool:
    """Whether no step is left for it."""
    if descriptor.draining or descriptor.closed_by or descriptor.state is DescriptorState.ADDING:
        return False
    match descriptor:
        case Table():
            is_settled = not descriptor.is_closed and not any(map(is_moving, elements(descriptor)))
            return is_dropped(descriptor) or is_settled
        case EnumType():
            return all(member.state is ElementState.PUBLIC for member in descriptor.members)
        case _:
            return True


# ── forward ─────────────────────────────────────────────────────────────────────────────────────


def first_stage(descriptor: AnyDescriptor) -> AnyDescriptor:
    """The version that the statement itself publishes: additions as declared, the first step of drops."""
    if not isinstance(descriptor, Table) or is_dropped(descriptor):
        return descriptor
    if has_additions(descriptor):
        return _stepped(descriptor, lambda each: is_dropping(each) and _needs_preparing(each))
    return _advance_table(descriptor)


def advance(descriptor: AnyDescriptor) -> AnyDescriptor:
    """Moves everything one step; the caller sets the version."""
    return replace(_advanced(descriptor), draining=(), closed_by=0)


def shown(declared: AnyDescriptor) -> AnyDescriptor:
    """The version of the show step; former names drain from there on."""
    if isinstance(declared, Table) and not is_dropped(declared):
        while not is_shown(declared):
            declared = _advance_table(declared)
        return replace(declared, state=settled_state(declared.state))
    return declared if is_finished(declared) else _advanced(declared)


def finished(descriptor: AnyDescriptor) -> AnyDescriptor:
    """The descriptor after all steps."""
    for _ in range(STEPS_MAX):
        if is_finished(descriptor):
            return descriptor
        descriptor = advance(descriptor)
    raise AssertionError("a change that does not end")


# ── back ────────────────────────────────────────────────────────────────────────────────────────


def reverse(descriptor: AnyDescriptor) -> AnyDescriptor:
    """Reverses a change that fails or is canceled; may be repeated.

    Constraints are restored or removed at once: all writers have enforced dropped ones, and no reader relied
    on new ones. Entries of new columns and indexes are cleaned up in steps. After the show step a change
    cannot be reversed: its drops go on.
    """
    descriptor = replace(descriptor, closed_by=0)
    if descriptor.state is DescriptorState.ADDING:
        draining = (*descriptor.draining, place_of(descriptor))
        return replace(descriptor, state=DescriptorState.DROPPED, draining=draining)
    match descriptor:
        case Table() if not is_dropped(descriptor):
            return _reversed_table(descriptor)
        case EnumType():
            seen = tuple(each for each in descriptor.members if each.state is ElementState.PUBLIC)
            return replace(descriptor, members=seen)
        case _:
            return descriptor


def _reversed_table(table: Table) -> Table:
    strict = {each.not_null for each in table.checks if is_dropping(each)}
    columns = tuple(
        replace(each, is_nullable=each.is_nullable and each.id not in strict)
        for each in map(_turned_round, table.columns)
    )
    checks = tuple(
        each for each in _restored(table.checks) if not (each.not_null and each.not_null in strict)
    )
    return without_stale_inbound(
        replace(
            table,
            columns=columns,
            indexes=tuple(map(_turned_round, table.indexes)),
            checks=checks,
            foreign_keys=_restored(table.foreign_keys),
            is_closed=False,
        )
    )


def _turned_round(element: E) -> E:
    if is_adding(element):
        return replace(element, goal=Goal.ABSENT)
    if is_dropping(element) and element.state is ElementState.PUBLIC:
        element = replace(element, goal=Goal.PUBLIC)
        # All writers have kept it up to date meanwhile.
        return replace(element, is_unread=False) if isinstance(element, Index) else element
    return element


def _restored(constraints: tuple[C, ...]) -> tuple[C, ...]:
    return tuple(
        replace(each, state=ElementState.PUBLIC, goal=Goal.PUBLIC)
        for each in constraints
        if not is_adding(each) or is_validating(each)
    )


# ── one step ───────────────────────────────────────────────────────────────────────────────────


def _needs_preparing(element: Element) -> bool:
    if element.goal is Goal.PUBLIC:
        return element.state is ElementState.DELETE_ONLY
    if isinstance(element, Index):
        return element.state is ElementState.PUBLIC and not element.is_unread
    return element.state is ElementState.PUBLIC and not isinstance(element, Column)


def _is_unseen(element: Element) -> bool:
    if is_dropping(element):
        return isinstance(element, Check | ForeignKey) or element.state is ElementState.PUBLIC
    return is_adding(element)


def settled_state(state: DescriptorState) -> DescriptorState:
    return DescriptorState.PUBLIC if state is DescriptorState.ADDING else state


def _advanced(descriptor: AnyDescriptor) -> AnyDescriptor:
    descriptor = replace(descriptor, state=settled_state(descriptor.state))
    match descriptor:
        case Table() if not is_dropped(descriptor):
            return _advance_table(descriptor)
        case EnumType():
            return replace(descriptor, members=tuple(map(_public_member, descriptor.members)))
        case _:
            return descriptor


def _public_member(member: EnumMember) -> EnumMember:
    return replace(member, state=ElementState.PUBLIC)


def _advance_table(table: Table) -> Table:
    table = replace(table, is_closed=False)
    if not is_prepared(table):
        return _stepped(table, _needs_preparing)
    return without_stale_inbound(taken_over(table, _stepped(table, is_moving)))


def _stepped(table: Table, moves: Callable[[Element], bool]) -> Table:
    loosened = {
        check.not_null
        for check in table.checks
        if check.not_null and is_dropping(check) and check.state is ElementState.PUBLIC and moves(check)
    }
    columns = tuple(
        replace(each, is_nullable=True) if each.id in loosened else each for each in table.columns
    )
    return replace(
        table,
        columns=_step_all(columns, moves),
        indexes=_step_all(table.indexes, moves),
        checks=_step_all(table.checks, moves),
        foreign_keys=_step_all(table.foreign_keys, moves),
    )


def _step_all(group: tuple[E, ...], moves: Callable[[Element], bool]) -> tuple[E, ...]:
    steps = (_step(each) if moves(each) else each for each in group)
    return tuple(each for each in steps if each is not None)


def _step(element: E) -> E | None:
    if isinstance(element, Index) and is_dropping(element) and _needs_preparing(element):
        return replace(element, is_unread=True)
    state = next_state(element)
    return None if state is None else replace(element, state=state)
