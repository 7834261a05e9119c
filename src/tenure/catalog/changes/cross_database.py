"""References from objects of one database to objects of another.

    table   the targets of its foreign keys, the types of its columns, the sequences that its defaults call
    view    what its query reads

They are by id, like all references, and block drops like all others. New ones are refused unless the cluster
setting `sql.cross_database_references` allows them; what a transaction has not changed is not looked at, so
those that exist stay when it is turned off.

Walk: `sql.statements.ddl.definition` asks `new_references` after each statement; `references` are listed by
`sql.tables.cross_references`.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from tenure.catalog.changes.table_changes import sequences_of
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Contained,
    EnumType,
    Sequence,
    Table,
    View,
    is_dropped,
)
from tenure.catalog.descriptors.used_types import enums_of

Find = Callable[[int], AnyDescriptor | None]


class CrossReference(NamedTuple):
    user: Contained
    used: Contained


def references(descriptor: AnyDescriptor, find: Find) -> Iterator[CrossReference]:
    """The references of one object to those of other databases."""
    if not isinstance(descriptor, Contained) or is_dropped(descriptor):
        return
    for id in sorted(_uses(descriptor)):
        used = find(id)
        if isinstance(used, Contained) and not is_dropped(used) and used.database != descriptor.database:
            yield CrossReference(descriptor, used)


def touching(descriptor: AnyDescriptor, find: Find) -> Iterator[CrossReference]:
    """The references of one object to those of other databases, and of those to it."""
    yield from references(descriptor, find)
    users = (find(id) for id in _users(descriptor)) if isinstance(descriptor, Contained) else ()
    for user in users:
        if user is not None:
            yield from (each for each in references(user, find) if each.used.id == descriptor.id)


def new_references(changed: Iterable[AnyDescriptor], now: Find, before: Find) -> list[CrossReference]:
    """The references that cross databases after a change, and did not before it."""
    found: dict[tuple[int, int], CrossReference] = {}
    for descriptor in changed:
        former = before(descriptor.id)
        users = [descriptor, *_users_of_moved(former, descriptor, now)]
        for each in (reference for user in users for reference in references(user, now)):
            found[each.user.id, each.used.id] = each
    for key in [*found]:
        user = before(key[0])
        if user is not None and any(each.used.id == key[1] for each in references(user, before)):
            del found[key]
    return [*found.values()]


def _users_of_moved(
    former: AnyDescriptor | None, descriptor: AnyDescriptor, now: Find
) -> list[AnyDescriptor]:
    """The users of an object that has moved to another database."""
    if not (isinstance(former, Contained) and isinstance(descriptor, Contained)):
        return []
    if former.database == descriptor.database or is_dropped(descriptor):
        return []
    found = (now(id) for id in _users(descriptor))
    return [each for each in found if each is not None]


def _uses(descriptor: Contained) -> set[int]:
    match descriptor:
        case Table():
            targets = {key.target for key in descriptor.foreign_keys}
            return {*targets, *enums_of(descriptor), *sequences_of(descriptor)}
        case View():
            return {each.id for each in descriptor.depends}
        case _:
            return set()


def _users(descriptor: Contained) -> set[int]:
    match descriptor:
        case Table():
            return {*descriptor.dependents, *(each.table for each in descriptor.inbound)}
        case View() | Sequence():
            return {*descriptor.dependents}
        case EnumType():
            return {*descriptor.referents}
