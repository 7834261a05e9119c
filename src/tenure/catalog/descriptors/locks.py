"""The lock of a table: while it is locked, nothing changes that its rows are read by.

    unlocked ──► locked ──► ... ──► unlocked, with the mark ──► the change, without the mark ──► locked
          a node's schedule             the change itself                               a node's schedule

A locked version, the one before it and the one after it have equal `row`. So a node whose newest lease has a
locked version knows how every row is read that was committed since, without looking anywhere.

The mark of a change under way is `job`, of a table or a type. Nobody locks a marked table, or one that uses a
marked type. A change sets its mark in the version that unlocks, and takes it away in the version that ends
it. The lock is put back in the background: a table remembers for whom it was locked.

Invariant (I33): a locked version and its neighbours have equal `row`; while a table has a mark nobody locks
it.

Walk: `schema_change.opening` and `bulk.ingest.existing_tables` open, `catalog.changes.lock_schedule` locks;
`catalog.changes.publisher` asks `refusal` of every version.
"""

from collections.abc import Callable

from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    DescriptorState,
    Table,
    is_dropped,
    replace,
)
from tenure.catalog.descriptors.elements import is_finished
from tenure.catalog.descriptors.equal_versions import row_of

IsWatching = Callable[[int], bool]
"""Whether a changefeed's job has not ended."""


def must_open(descriptor: AnyDescriptor, is_watching: IsWatching) -> bool:
    """Whether a change of it has to set its mark first: it is locked, or might be before the change is
    there.
    """
    if not isinstance(descriptor, Table) or is_dropped(descriptor):
        return False
    return descriptor.is_locked or descriptor.is_lock_kept or any(map(is_watching, descriptor.watchers))


def opened(table: Table, job: int, is_watching: IsWatching) -> Table:
    """Unlocked, with the mark of a job: nothing else has changed."""
    watchers = tuple(filter(is_watching, table.watchers))
    return replace(table, is_locked=False, job=job, watchers=watchers)


def locked(table: Table, watchers: tuple[int, ...]) -> Table:
    return replace(table, is_locked=True, watchers=watchers)


def can_lock(table: Table) -> bool:
    """Whether nothing about the table itself is in the way of a lock."""
    is_idle = not (table.is_locked or table.job or table.closed_by or table.is_read_only)
    return is_idle and table.state is DescriptorState.PUBLIC and is_finished(table)


def refusal(former: AnyDescriptor | None, following: AnyDescriptor, *, is_alone: bool) -> str:
    """Why a numbered version may not follow another one; empty if it may.

    A publisher that nobody shares the table with may change it from a locked version.
    """
    if former is None or row_of(former) == row_of(following):
        return ""
    if isinstance(following, Table) and following.is_locked:
        return f'"{following.name}" cannot be changed and locked by one version'
    if isinstance(former, Table) and former.is_locked and not is_alone:
        return f'"{former.name}" is locked, and has to be unlocked by a version of its own'
    return ""
