"""Wrong versions of how a table is emptied while others use it.

Walk: `mutants.MUTANTS` has `ALL` beside the others; a swap replaces the function of the same place.
"""

from tenure.catalog.descriptors.definitions import AnyDescriptor, Table, replace
from tenure.schema_change import in_transaction
from tenure.schema_change.stages import with_preparations
from tests.simulation import emptying
from tests.simulation.schema_workloads import lingering


def open_to_all(stored: AnyDescriptor, declared: AnyDescriptor, *, is_emptied: bool = False) -> AnyDescriptor:
    """Others hear of the new indexes soon enough, it is thought."""
    prepared = with_preparations(stored, declared, is_emptied=is_emptied)
    return replace(prepared, is_closed=False) if isinstance(prepared, Table) else prepared


def used_all_the_same(table: Table) -> None:
    """A table with its former indexes is as good as any, it is thought."""


ALL = (
    (
        "table emptied while others write it",
        ((in_transaction, "with_preparations", open_to_all),),
        "emptying",
    ),
    (
        "closed table used all the same",
        ((emptying, "require_open", used_all_the_same),),
        "emptying",
        lingering,
    ),
)
"""(name, what is swapped, profile, change of the knobs)."""
