"""What has to be done between two versions of a table: decided from the stored descriptor alone.

    all that is being added is write_only ──► fill columns, fill indexes, prove constraints ──► public
    an index is delete_only on its way out ──► remove its entries ──► absent

Walk: `schema_change.walk` asks `work_before` after the wait for one version.
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, TypeVar

from tenure.catalog.descriptors import (
    AnyDescriptor,
    Check,
    Column,
    ElementState,
    ForeignKey,
    Inbound,
    Index,
    State,
    Table,
    elements,
    replace,
)
from tenure.catalog.elements import (
    advance,
    first_stage,
    has_additions,
    is_adding,
    is_dropping,
    is_finished,
)

E = TypeVar("E", Column, Index, Check, ForeignKey)


class Kind(Enum):
    """In the order in which they are done: each may rely on those before it."""

    FILL_COLUMN = "fill column"
    FILL_INDEX = "fill index"
    PROVE_UNIQUE = "prove unique"
    PROVE_CHECK = "prove check"
    PROVE_FOREIGN_KEY = "prove foreign key"
    EMPTY_INDEX = "empty index"


class Work(NamedTuple):
    kind: Kind
    table: int
    element: int


def work_before(descriptor: AnyDescriptor) -> list[Work]:
    """What must be done before the descriptor may take its next step."""
    if not isinstance(descriptor, Table) or descriptor.state is State.DROPPED:
        return []
    if has_additions(descriptor):
        if not is_written(descriptor):
            return []
        adding = [each for each in elements(descriptor) if is_adding(each)]
        work = [each for element in adding for each in _of_addition(descriptor, element)]
        return sorted(work, key=lambda each: list(Kind).index(each.kind))
    return [
        Work(Kind.EMPTY_INDEX, descriptor.id, index.id)
        for index in descriptor.indexes
        if is_dropping(index) and index.state is ElementState.DELETE_ONLY
    ]


def _of_addition(table: Table, element: Column | Index | Check | ForeignKey) -> list[Work]:
    match element:
        case Column():
            needs_filling = element.computed is not None
            return [Work(Kind.FILL_COLUMN, table.id, element.id)] if needs_filling else []
        case Index():
            fill = Work(Kind.FILL_INDEX, table.id, element.id)
            return [fill, Work(Kind.PROVE_UNIQUE, table.id, element.id)] if element.is_unique else [fill]
        case Check():
            return [Work(Kind.PROVE_CHECK, table.id, element.id)]
        case ForeignKey():
            must_be_proved = element.is_validated
            return [Work(Kind.PROVE_FOREIGN_KEY, table.id, element.id)] if must_be_proved else []


def is_written(table: Table) -> bool:
    """Whether all that is being added is kept up to date by every writer."""
    return all(each.state is ElementState.WRITE_ONLY for each in elements(table) if is_adding(each))


def with_job(descriptor: AnyDescriptor, job: int) -> AnyDescriptor:
    """Says on a table which job changes it, and that none does once it is finished."""
    if not hasattr(descriptor, "job"):
        return descriptor
    return replace(descriptor, job=0 if is_finished(descriptor) else job)


def with_additions(stored: AnyDescriptor, declared: AnyDescriptor) -> AnyDescriptor:
    """What other nodes must see of a change before its transaction commits: what is being added.

    Names, drops and everything that shows at once stay as they are until the commit itself.
    """
    if not (isinstance(stored, Table) and isinstance(declared, Table)):
        return stored
    return replace(
        stored,
        columns=(*stored.columns, *filter(is_adding, declared.columns)),
        indexes=(*stored.indexes, *filter(is_adding, declared.indexes)),
        checks=(*stored.checks, *filter(is_adding, declared.checks)),
        foreign_keys=(*stored.foreign_keys, *filter(is_adding, declared.foreign_keys)),
        inbound=declared.inbound,
        next_column=declared.next_column,
        next_index=declared.next_index,
        next_constraint=declared.next_constraint,
    )


def written(table: Table) -> Table:
    """The table with all that is being added at write_only."""
    return _with_additions_at(table, ElementState.WRITE_ONLY)


def _with_additions_at(table: Table, state: ElementState) -> Table:
    def moved(group: tuple[E, ...]) -> tuple[E, ...]:
        return tuple(replace(each, state=state) if is_adding(each) else each for each in group)

    return replace(
        table,
        columns=moved(table.columns),
        indexes=moved(table.indexes),
        checks=moved(table.checks),
        foreign_keys=moved(table.foreign_keys),
    )


def last_step(declared: AnyDescriptor) -> AnyDescriptor:
    """What a transaction publishes whose children have brought its additions to write_only."""
    if not isinstance(declared, Table):
        return declared
    stage = advance(written(declared)) if has_additions(declared) else declared
    return first_stage(replace(stage, draining=declared.draining, state=declared.state))


def without_strays(descriptor: AnyDescriptor, find: Callable[[int], AnyDescriptor | None]) -> AnyDescriptor:
    """The descriptor without the marks of foreign keys that are not there, or no longer."""
    if not isinstance(descriptor, Table):
        return descriptor
    kept = tuple(each for each in descriptor.inbound if _is_there(each, find(each.table)))
    return replace(descriptor, inbound=kept)


def _is_there(inbound: Inbound, referring: AnyDescriptor | None) -> bool:
    return isinstance(referring, Table) and any(
        key.id == inbound.constraint for key in referring.foreign_keys
    )


def can_fail(descriptor: AnyDescriptor) -> bool:
    """Whether rows may be in the way of a declared change, so that it may have to be taken back."""
    return isinstance(descriptor, Table) and has_additions(descriptor)


def is_addition_only(stored: AnyDescriptor | None, declared: AnyDescriptor) -> bool:
    """Whether a change shows nothing before its last step: a job can take it back whole."""
    return stored is not None and with_additions(stored, declared) == declared
