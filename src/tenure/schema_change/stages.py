"""The work between two versions of a table: decided from the stored descriptor alone.

    prepared: all additions are write_only ──► fill columns, fill indexes, prove ──► shown
    an index is delete_only on its way out ──► remove its entries ──► absent

Walk: `schema_change.walk` calls `work_before` after the wait for one version.
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, TypeVar

from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Check,
    Column,
    ElementState,
    EnumType,
    ForeignKey,
    Goal,
    Inbound,
    Index,
    Sequence,
    Table,
    elements,
    is_dropped,
    replace,
)
from tenure.catalog.descriptors.elements import (
    advance,
    has_additions,
    is_adding,
    is_dropping,
    is_finished,
    is_prepared,
)

E = TypeVar("E", Column, Index, Check, ForeignKey)
T = TypeVar("T")


class WorkKind(Enum):
    """In the order in which they are done: each may rely on those before it."""

    FILL_COLUMN = "fill column"
    FILL_INDEX = "fill index"
    PROVE_UNIQUE = "prove unique"
    PROVE_CHECK = "prove check"
    PROVE_FOREIGN_KEY = "prove foreign key"
    EMPTY_INDEX = "empty index"


_ORDER = {kind: number for number, kind in enumerate(WorkKind)}


class Work(NamedTuple):
    kind: WorkKind
    table: int
    element: int


def work_before(descriptor: AnyDescriptor) -> list[Work]:
    """The work that must be done before the descriptor may take its next step."""
    if not isinstance(descriptor, Table) or is_dropped(descriptor) or not is_prepared(descriptor):
        return []
    adding = [each for each in elements(descriptor) if is_adding(each)]
    if adding:
        work = [each for element in adding for each in _of_addition(descriptor, element)]
        return sorted(work, key=lambda each: (_ORDER[each.kind], not _is_primary(descriptor, each)))
    return [
        Work(WorkKind.EMPTY_INDEX, descriptor.id, index.id)
        for index in descriptor.indexes
        if is_dropping(index) and index.state is ElementState.DELETE_ONLY
    ]


def _is_primary(table: Table, work: Work) -> bool:
    """A new primary index is filled before those that point into it."""
    return work.kind is WorkKind.FILL_INDEX and table.index(work.element).primary == work.element


def _of_addition(table: Table, element: Column | Index | Check | ForeignKey) -> list[Work]:
    match element:
        case Column():
            needs_filling = element.computed is not None or element.generated is not None
            return [Work(WorkKind.FILL_COLUMN, table.id, element.id)] if needs_filling else []
        case Index():
            fill = Work(WorkKind.FILL_INDEX, table.id, element.id)
            return [fill, Work(WorkKind.PROVE_UNIQUE, table.id, element.id)] if element.is_unique else [fill]
        case Check():
            return [Work(WorkKind.PROVE_CHECK, table.id, element.id)]
        case ForeignKey():
            return [Work(WorkKind.PROVE_FOREIGN_KEY, table.id, element.id)]


def with_job(descriptor: AnyDescriptor, job: int) -> AnyDescriptor:
    """Names the job that changes a table, and removes the name once the table is finished."""
    if not hasattr(descriptor, "job"):
        return descriptor
    return replace(descriptor, job=0 if is_finished(descriptor) else job)


def with_preparations(
    stored: AnyDescriptor, declared: AnyDescriptor, *, is_emptied: bool = False
) -> AnyDescriptor:
    """The part of a change that other nodes must know before the show step.

    That is the additions, and which constraints and indexes are dropped. Names, dropped columns and
    everything that becomes visible at once stay unchanged until then. Of an emptied table others must know
    only that they may not use it: their writes to its former indexes would be lost.
    """
    if isinstance(stored, EnumType) and isinstance(declared, EnumType):
        return replace(stored, members=declared.members)
    if isinstance(stored, Sequence) and isinstance(declared, Sequence):
        return replace(stored, dependents=_extended(stored.dependents, declared.dependents))
    if not (isinstance(stored, Table) and isinstance(declared, Table)):
        return stored
    marked = replace(
        stored,
        # Inbound of dropped keys stays as well: as long as a key exists, writers of its target check it.
        inbound=_extended(stored.inbound, declared.inbound),
        sequences=_extended(stored.sequences, declared.sequences),
        next_column=declared.next_column,
        next_index=declared.next_index,
        next_constraint=declared.next_constraint,
    )
    if is_emptied:
        return replace(marked, is_closed=True)
    return replace(
        marked,
        columns=_prepared(stored.columns, declared.columns),
        indexes=_prepared(stored.indexes, declared.indexes),
        checks=_prepared(stored.checks, declared.checks),
        foreign_keys=_prepared(stored.foreign_keys, declared.foreign_keys),
    )


def _extended(stored: tuple[T, ...], declared: tuple[T, ...]) -> tuple[T, ...]:
    return (*stored, *(each for each in declared if each not in stored))


def _prepared(stored: tuple[E, ...], declared: tuple[E, ...]) -> tuple[E, ...]:
    moving = {each.id: each for each in declared if _is_preparation(each)}
    stored_ids = {each.id for each in stored}
    # Existing elements only get their goal: a new name is shown with the rest.
    kept = tuple(_moved(each, moving.get(each.id, each)) for each in stored)
    return kept + tuple(each for each in declared if each.id in moving and each.id not in stored_ids)


def _moved(stored: E, declared: E) -> E:
    return replace(stored, state=declared.state, goal=declared.goal)


def _is_preparation(element: Column | Index | Check | ForeignKey) -> bool:
    return is_adding(element) or (is_dropping(element) and not isinstance(element, Column))


def prepared(table: Table) -> Table:
    """The table when only the show step is left."""
    while not is_prepared(table):
        step = advance(table)
        assert isinstance(step, Table)
        table = replace(step, draining=table.draining, state=table.state)
    return table


def as_it_will_be(declared: Table) -> Table:
    """The table that rows committed with the show step must satisfy."""
    table = prepared(declared)
    return replace(
        table,
        checks=tuple(each for each in table.checks if not is_dropping(each)),
        foreign_keys=tuple(each for each in table.foreign_keys if not is_dropping(each)),
    )


def arriving_again(table: Table) -> Table:
    """A new table as if all elements but its primary key and given columns were still to become public."""

    def arriving(each: E) -> E:
        is_relied_upon = getattr(each, "is_validated", True)
        return replace(each, state=ElementState.WRITE_ONLY, goal=Goal.PUBLIC) if is_relied_upon else each

    indexes = tuple(each if each.id == table.primary else arriving(each) for each in table.indexes)
    return replace(
        table,
        columns=tuple(arriving(each) if each.generated else each for each in table.columns),
        indexes=indexes,
        checks=tuple(map(arriving, table.checks)),
        foreign_keys=tuple(map(arriving, table.foreign_keys)),
    )


def without_strays(descriptor: AnyDescriptor, find: Callable[[int], AnyDescriptor | None]) -> AnyDescriptor:
    """The descriptor without entries of users and owners that do not exist after all."""
    match descriptor:
        case Table():
            inbound = tuple(each for each in descriptor.inbound if _is_there(each, find(each.table)))
            owned = tuple(each for each in descriptor.sequences if _is_owned(descriptor, find(each)))
            return replace(descriptor, inbound=inbound, sequences=owned)
        case Sequence() if not is_dropped(descriptor):
            users = tuple(each for each in descriptor.dependents if _calls(find(each), descriptor.id))
            return replace(descriptor, dependents=users)
        case _:
            return descriptor


def _is_there(inbound: Inbound, referring: AnyDescriptor | None) -> bool:
    return isinstance(referring, Table) and any(
        key.id == inbound.constraint for key in referring.foreign_keys
    )


def _is_owned(table: Table, sequence: AnyDescriptor | None) -> bool:
    return (
        isinstance(sequence, Sequence)
        and not is_dropped(sequence)
        and sequence.owned_by is not None
        and sequence.owned_by.table == table.id
    )


def _calls(user: AnyDescriptor | None, sequence: int) -> bool:
    if isinstance(user, Table):
        defaults = (column.default for column in user.columns)
        return any(each is not None and sequence in each.sequences for each in defaults)
    return user is not None and not is_dropped(user)


def can_fail(descriptor: AnyDescriptor) -> bool:
    """Whether rows may contradict a declared change, so that it may have to be reversed."""
    return isinstance(descriptor, Table) and has_additions(descriptor)


def can_be_undone(stored: AnyDescriptor | None, declared: AnyDescriptor) -> bool:
    """Whether a change shows nothing before its last step, so that a job can reverse it completely."""
    if stored is None:
        return isinstance(declared, Sequence)  # it is not visible before it is shown, and has no rows
    return with_preparations(stored, declared) == _keeping_hidden(stored, declared)


def _keeping_hidden(stored: AnyDescriptor, declared: AnyDescriptor) -> AnyDescriptor:
    """A dropped hidden row id, as by ADD PRIMARY KEY, shows nothing; reversed, it stays."""
    if not (isinstance(stored, Table) and isinstance(declared, Table)):
        return declared
    hidden = {each.id: each for each in stored.columns if each.is_hidden}
    return replace(declared, columns=tuple(hidden.get(each.id, each) for each in declared.columns))
