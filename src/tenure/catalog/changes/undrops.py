"""UNDROP: what was dropped is back, as long as it is not collected yet.

    database ─► schema ─► type ─► sequence ─► table ─► view      what is used is back before its users

A dropped descriptor is as it was, but nobody uses it any more and it uses nobody. Back again, it is
known by what it uses, and by those users that come back with it. What is gone for good:

    foreign keys, both ways    nobody looked after them meanwhile; they can be added again
    a default                  if the sequence that it calls is gone

Walk: a statement finds what was dropped in the store, and calls `undrop` with all that is to come back.
"""

from collections.abc import Iterable, Sequence

from tenure.base.errors import NotSupported, ObjectInUse, UndefinedObject
from tenure.catalog.changes.free_names import database_of, require_free, schema_of
from tenure.catalog.changes.table_changes import (
    CatalogBelow,
    descriptor_of,
    enums_of,
    sequences_of,
    set_dependent,
)
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Database,
    DescriptorState,
    EnumType,
    Expression,
    Schema,
    Table,
    View,
    is_dropped,
    replace,
    unfinished,
)
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.catalog.descriptors.drafts import Draft

_KINDS = (Database, Schema, EnumType, SequenceDescriptor, Table, View)
"""In the order in which they come back."""


def undrop(draft: Draft, known: CatalogBelow, ids: Sequence[int]) -> None:
    """Brings dropped descriptors back together; a table comes with the sequences that its columns own."""
    found = {id: _dropped(draft, known, id) for id in ids}
    for table in [each for each in found.values() if isinstance(each, Table)]:
        found |= {id: _dropped(draft, known, id) for id in table.sequences}
    for each in sorted(found.values(), key=lambda each: (_KINDS.index(type(each)), each.id)):
        _bring_back(draft, known, each, {*found})


def _dropped(draft: Draft, known: CatalogBelow, id: int) -> AnyDescriptor:
    descriptor = descriptor_of(draft, known, id)
    if descriptor is None or not is_dropped(descriptor):
        raise UndefinedObject(f"there is no dropped descriptor {id}")
    if descriptor.draining:
        raise ObjectInUse(
            f'"{descriptor.name}" is still being dropped',
            hint="Try again when all nodes know that it was; see SHOW BLOCKERS.",
        )
    return descriptor


def _bring_back(draft: Draft, known: CatalogBelow, former: AnyDescriptor, together: set[int]) -> None:
    match former:
        case Database():
            back: AnyDescriptor = former
        case Schema():
            draft.touch(database_of(draft, known, former.database))
            back = former
        case _:
            draft.rely_on(schema_of(draft, known, former.schema))
            back = _unused(draft, known, former, together)
    back = replace(back, state=DescriptorState.PUBLIC)
    require_free(draft, known, back)
    draft.revive(back)
    for used in _uses(back):
        set_dependent(draft, known, used, back.id, is_used=True)


def _unused(
    draft: Draft,
    known: CatalogBelow,
    former: EnumType | SequenceDescriptor | Table | View,
    together: set[int],
) -> AnyDescriptor:
    """As it was, without those who used it: they will say so themselves, if they come back."""
    match former:
        case EnumType():
            return replace(former, referents=())
        case SequenceDescriptor():
            is_owned = former.owned_by is not None and former.owned_by.table in together
            return replace(former, dependents=(), owned_by=former.owned_by if is_owned else None)
        case View():
            _require_all(draft, known, former, [each.id for each in former.depends])
            return replace(former, dependents=())
        case Table():
            return _table(draft, known, former)


def _table(draft: Draft, known: CatalogBelow, former: Table) -> Table:
    if unfinished(former):
        raise NotSupported(f'"{former.name}" was dropped while it was being changed')
    _require_all(draft, known, former, enums_of(former))
    keys = tuple(each for each in former.foreign_keys if each.target == former.id)
    columns = tuple(
        replace(each, default=None, identity="") if _calls_the_gone(draft, known, each.default) else each
        for each in former.columns
    )
    return replace(
        former,
        columns=columns,
        foreign_keys=keys,
        inbound=tuple(each for each in former.inbound if each.table == former.id),
        dependents=(),
        job=0,
    )


def _require_all(draft: Draft, known: CatalogBelow, user: Table | View, used: Iterable[int]) -> None:
    for id in used:
        found = descriptor_of(draft, known, id)
        if found is None or is_dropped(found):
            name = f'"{found.name}"' if found is not None else f"descriptor {id}"
            raise UndefinedObject(f'"{user.name}" cannot be brought back: {name}, which it uses, is dropped')


def _calls_the_gone(draft: Draft, known: CatalogBelow, default: Expression | None) -> bool:
    called = [] if default is None else [descriptor_of(draft, known, id) for id in default.sequences]
    return any(each is None or is_dropped(each) for each in called)


def _uses(descriptor: AnyDescriptor) -> set[int]:
    match descriptor:
        case Table():
            return {*enums_of(descriptor), *sequences_of(descriptor)}
        case View():
            return {each.id for each in descriptor.depends}
        case _:
            return set()
