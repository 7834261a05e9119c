"""UNDROP: restores dropped descriptors that are not collected yet.

    database ─► schema ─► type ─► sequence ─► table ─► view      what is used is back before its users

A dropped descriptor is unchanged, but without references to and from others. When it is restored, it is
registered again with the objects that it uses, and with users that are restored too. What is restored
together was dropped by one transaction: nobody has written to any of it since, so the foreign keys between
its tables still hold and are restored as well. These are lost:

    foreign keys from and to others   were not enforced meanwhile; they can be added again
    a default                         if the sequence that it calls is gone

Walk: `sql.statements.ddl.undropping` finds dropped descriptors, and calls `undrop` with all that come back.
"""

from collections.abc import Callable, Iterable, Sequence

from tenure.base.errors import NotSupported, ObjectInUse, UndefinedObject
from tenure.catalog.changes.free_names import database_of, require_free, schema_of
from tenure.catalog.changes.table_changes import (
    CatalogBelow,
    descriptor_of,
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
from tenure.catalog.descriptors.used_types import enums_of

_KINDS = (Database, Schema, EnumType, SequenceDescriptor, Table, View)
"""In the order in which they are restored."""


def owner(descriptor: AnyDescriptor) -> str:
    return descriptor.owner


def undrop(
    draft: Draft, catalog: CatalogBelow, ids: Sequence[int], owner_of: Callable[[AnyDescriptor], str] = owner
) -> None:
    """Restores dropped descriptors together; a table comes with the sequences that its columns own.

    `owner_of`: who owns each from now on, as roles may have been renamed since.
    """
    found = {id: _dropped(draft, catalog, id) for id in ids}
    for table in [each for each in found.values() if isinstance(each, Table)]:
        found |= {id: _dropped(draft, catalog, id) for id in table.sequences}
    for each in sorted(found.values(), key=lambda each: (_KINDS.index(type(each)), each.id)):
        _bring_back(draft, catalog, replace(each, owner=owner_of(each)), {*found})


def _dropped(draft: Draft, catalog: CatalogBelow, id: int) -> AnyDescriptor:
    descriptor = descriptor_of(draft, catalog, id)
    if descriptor is None or not is_dropped(descriptor):
        raise UndefinedObject(f"there is no dropped descriptor {id}")
    if descriptor.state is DescriptorState.COLLECTED:
        raise UndefinedObject(
            f'"{descriptor.name}" cannot be brought back: its data is being removed',
            hint="A dropped object can be brought back as long as gc.ttlseconds keeps its history.",
        )
    if descriptor.draining:
        raise ObjectInUse(
            f'"{descriptor.name}" is still being dropped',
            hint="Try again when all nodes know that it was; SHOW BLOCKERS names those that still use it.",
        )
    return descriptor


def _bring_back(draft: Draft, catalog: CatalogBelow, former: AnyDescriptor, together: set[int]) -> None:
    match former:
        case Database():
            back: AnyDescriptor = former
        case Schema():
            draft.touch(database_of(draft, catalog, former.database))
            back = former
        case _:
            draft.rely_on(schema_of(draft, catalog, former.schema))
            back = _unused(draft, catalog, former, together)
    back = replace(back, state=DescriptorState.PUBLIC)
    require_free(draft, catalog, back)
    draft.revive(back)
    for used in _uses(back):
        set_dependent(draft, catalog, used, back.id, is_used=True)


def _unused(
    draft: Draft,
    catalog: CatalogBelow,
    former: EnumType | SequenceDescriptor | Table | View,
    together: set[int],
) -> AnyDescriptor:
    """The descriptor without its former users: they register again if they are restored."""
    match former:
        case EnumType():
            return replace(former, referents=())
        case SequenceDescriptor():
            is_owned = former.owned_by is not None and former.owned_by.table in together
            return replace(former, dependents=(), owned_by=former.owned_by if is_owned else None)
        case View():
            _require_all(draft, catalog, former, [each.id for each in former.depends])
            return replace(former, dependents=())
        case Table():
            return _table(draft, catalog, former, together)


def _table(draft: Draft, catalog: CatalogBelow, former: Table, together: set[int]) -> Table:
    if unfinished(former):
        raise NotSupported(f'"{former.name}" was dropped while it was being changed')
    _require_all(draft, catalog, former, enums_of(former))
    keys = tuple(each for each in former.foreign_keys if each.target in together)
    columns = tuple(
        replace(each, default=None, identity="") if _calls_the_gone(draft, catalog, each.default) else each
        for each in former.columns
    )
    return replace(
        former,
        columns=columns,
        foreign_keys=keys,
        inbound=tuple(each for each in former.inbound if each.table in together),
        dependents=(),
        job=0,
    )


def _require_all(draft: Draft, catalog: CatalogBelow, user: Table | View, used: Iterable[int]) -> None:
    for id in used:
        found = descriptor_of(draft, catalog, id)
        if found is None or is_dropped(found):
            name = f'"{found.name}"' if found is not None else f"descriptor {id}"
            raise UndefinedObject(f'"{user.name}" cannot be brought back: {name}, which it uses, is dropped')


def _calls_the_gone(draft: Draft, catalog: CatalogBelow, default: Expression | None) -> bool:
    called = [] if default is None else [descriptor_of(draft, catalog, id) for id in default.sequences]
    return any(each is None or is_dropped(each) for each in called)


def _uses(descriptor: AnyDescriptor) -> set[int]:
    match descriptor:
        case Table():
            return {*enums_of(descriptor), *sequences_of(descriptor)}
        case View():
            return {each.id for each in descriptor.depends}
        case _:
            return set()
