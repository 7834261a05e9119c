"""Mistakes about locked tables, each as somebody might really have made it.

Walk: `mutants.MUTANTS` takes `ALL`; `schema_lock_shapes` meets them.
"""

from typing import Any

from tenure.catalog.changes import lock_schedule, publisher
from tenure.catalog.descriptors.definitions import AnyDescriptor, DescriptorState, Table
from tenure.catalog.descriptors.elements import is_finished
from tenure.schema_change import changer
from tenure.schema_change.opening import Opening
from tests.simulation.schema_workloads import crowded, lingering


def let_through(former: AnyDescriptor | None, following: AnyDescriptor, *, is_alone: bool) -> str:
    """The change itself unlocks, it is thought."""
    return ""


def nothing_opened(self: Opening, draft: Any, stored: Any) -> list[int]:
    """One version less."""
    return []


def left_locked(draft: Any, stored: Any) -> None:
    """The lock comes back anyhow."""


def lockable_beside_a_change(table: Table) -> bool:
    """A table without an unfinished stage has no change, it is thought."""
    return not table.is_locked and table.state is DescriptorState.PUBLIC and is_finished(table)


def busy(knobs: Any) -> None:
    lingering(knobs)
    crowded(knobs)


ALL: tuple[tuple[Any, ...], ...] = (
    (
        "a locked table is changed without being unlocked",
        ((publisher, "refusal", let_through), (Opening, "needed", nothing_opened)),
        "locks",
    ),
    (
        "lock and change in one version",
        (
            (publisher, "refusal", let_through),
            (Opening, "needed", nothing_opened),
            (changer, "_unlock_changed", left_locked),
        ),
        "locks",
    ),
    (
        "a table is locked again without a look at the mark",
        ((lock_schedule, "can_lock", lockable_beside_a_change),),
        "locks",
        busy,
    ),
)
