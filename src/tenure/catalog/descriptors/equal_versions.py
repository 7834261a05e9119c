"""Which versions of a descriptor are equal, for those who use it and for those who read its rows.

    logical   the version in which anything but the lock, the mark of a change under way, owner or comment
              has last changed: pins, plans and drafts are carried over versions of equal `logical`
    row       stays over views on a table, foreign keys to it and comments of its parts as well: the lock
              gate and the fast path of changefeeds go by it

Both are stored with each version. A version that was written before they existed has 0 there, which stands
for itself: nothing is known to be equal to it but later versions that say so.

A new view or a new inbound foreign key changes `logical`: a deletion that looked for no children, or a
dropped column that a new view uses, would slip through. Comments of columns, indexes and constraints change
it too, because a draft is not merged by its elements.

Walk: `catalog.changes.publisher` calls `numbered`; `catalog.leases` and `catalog.descriptors.drafts` ask
`logical_of`, `changefeed.schema_feed` asks `row_of`.
"""

from typing import Any

from tenure.base.timestamp import ZERO_AT
from tenure.catalog.descriptors.definitions import AnyDescriptor, EnumType, Table, replace

LOGICAL_FREE = ("owner", "privileges", "comment", "job", "is_locked", "is_lock_kept", "watchers")
"""The fields whose changes keep `logical`."""

_UNCOUNTED: dict[str, Any] = {
    **{"version": 0, "modified_at": ZERO_AT, "logical": 0, "row": 0},
    **{"owner": "", "privileges": (), "comment": "", "job": 0},
    **{"is_locked": False, "is_lock_kept": False, "watchers": ()},
}


def logical_of(descriptor: AnyDescriptor) -> int:
    return descriptor.logical or descriptor.version


def row_of(descriptor: AnyDescriptor) -> int:
    return descriptor.row or descriptor.version


def numbered(
    former: AnyDescriptor | None, descriptor: AnyDescriptor, *, has_new_map: bool = False
) -> AnyDescriptor:
    """A version that is about to be written, with the numbers that it shares with the one before it.

    `has_new_map`: the map of schemas changes, which is part of a database's value but stored beside it.
    """
    version = descriptor.version
    if former is None or has_new_map or _is_repeated(former, descriptor):
        return replace(descriptor, logical=version, row=version)
    if _logical_value(former) == _logical_value(descriptor):
        return replace(descriptor, logical=logical_of(former), row=row_of(former))
    is_equal = _row_value(former) == _row_value(descriptor)
    return replace(descriptor, logical=version, row=row_of(former) if is_equal else version)


def is_row_equal(former: AnyDescriptor, descriptor: AnyDescriptor) -> bool:
    """Whether rows are written and read with both in the same way."""
    if _is_repeated(former, descriptor):
        return False
    return _row_value(former) == _row_value(descriptor)


def _is_repeated(former: AnyDescriptor, descriptor: AnyDescriptor) -> bool:
    """Whether nothing has changed at all: such a version is published for its number, so it counts."""
    numbers = {name: getattr(former, name) for name in ("version", "modified_at", "logical", "row")}
    return replace(descriptor, **numbers) == former


def carried(declared: AnyDescriptor, stored: AnyDescriptor, base: AnyDescriptor) -> AnyDescriptor:
    """A change of one version as the same change of a later one of equal `logical`."""
    fields = [name for name in LOGICAL_FREE if hasattr(declared, name)]
    kept = [name for name in fields if getattr(declared, name) == getattr(base, name)]
    taken = {name: getattr(stored, name) for name in [*kept, "version", "modified_at", "logical", "row"]}
    if isinstance(base, Table) and isinstance(declared, Table) and base.is_lock_kept > declared.is_lock_kept:
        taken["is_locked"] = False  # unlocked by hand: also a lock that has come since
    return replace(declared, **taken)


def _logical_value(descriptor: AnyDescriptor) -> AnyDescriptor:
    fields = {name: value for name, value in _UNCOUNTED.items() if hasattr(descriptor, name)}
    return replace(descriptor, **fields)


def _row_value(descriptor: AnyDescriptor) -> AnyDescriptor:
    value = _logical_value(descriptor)
    match value:
        case Table():
            return replace(
                value,
                inbound=(),
                dependents=(),
                columns=tuple(replace(each, comment="") for each in value.columns),
                indexes=tuple(replace(each, comment="") for each in value.indexes),
                checks=tuple(replace(each, comment="") for each in value.checks),
                foreign_keys=tuple(replace(each, comment="") for each in value.foreign_keys),
            )
        case EnumType():
            return replace(value, referents=())
        case _:
            return value
