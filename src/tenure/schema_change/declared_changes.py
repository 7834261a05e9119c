"""Questions about a transaction's declared changes, and who asked for them; all of it pure.

Walk: `schema_change.changer` asks them to choose how it commits; SQL makes a `Requester`.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tenure.catalog.descriptors.definitions import AnyDescriptor, DescriptorState, Table, replace
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.cluster.jobs.job_records import JobControl, JobProgress
from tenure.cluster.jobs.job_states import JobState
from tenure.schema_change.job import is_taken_back


class Requester(NamedTuple):
    """The user and statement that requested a change, for the job's record."""

    owner: str = ""
    description: str = ""
    check: Callable[[], None] = lambda: None
    """Called while it waits, and until a commit is sent; raises to stop."""
    committed: Callable[[], None] = lambda: None
    """Called when the transaction is committed, and only its job is still waited for."""


NOBODY = Requester()


def made_from(use: CatalogUse, descriptor: AnyDescriptor) -> AnyDescriptor:
    return replace(descriptor, version=use.draft.made_from[descriptor.id])


def fills_from_new_sequence(use: CatalogUse, declared: Sequence[AnyDescriptor]) -> bool:
    """Whether rows get values of a new sequence, which has to be published before them."""
    return any(
        isinstance(table, Table)
        and not use.draft.is_new(table.id)
        and any(
            column.computed is not None and any(map(use.draft.is_new, column.computed.sequences))
            for column in table.columns
        )
        for table in declared
    )


def refers_to_others(use: CatalogUse, declared: Sequence[AnyDescriptor]) -> bool:
    """Whether a new table refers to an existing one, whose writers must know before rows come."""
    return any(
        isinstance(each, Table)
        and use.draft.is_new(each.id)
        and any(not use.draft.is_new(key.target) for key in each.foreign_keys)
        for each in declared
    )


def hidden(use: CatalogUse, descriptor: AnyDescriptor) -> AnyDescriptor:
    """A new table that refers to others is shown when their writers know of it.

    A new sequence is shown with its user; until then it can be reversed.
    """
    if not use.draft.is_new(descriptor.id):
        return descriptor
    if isinstance(descriptor, Table) and descriptor.foreign_keys:
        return replace(descriptor, state=DescriptorState.ADDING, is_locked=False)
    if isinstance(descriptor, SequenceDescriptor):
        return replace(descriptor, state=DescriptorState.ADDING)
    return descriptor


def is_public(control: JobControl, progress: JobProgress) -> bool:
    """Whether a change that has ended became public; one that was canceled too late did."""
    is_too_late = control.state is JobState.REVERT_FAILED and not is_taken_back(progress.data)
    return is_too_late or control.state is JobState.SUCCEEDED
