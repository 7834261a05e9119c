"""Mistakes about privileges and conversions, each as somebody might really have made it.

Walk: `mutants.MUTANTS` takes `ALL`; `right_shapes` and `conversion_shapes` meet them.
"""

from typing import Any

from tenure.base.timestamp import Timestamp
from tenure.catalog.changes import database_conversion
from tenure.catalog.changes.object_changes import set_schema
from tenure.catalog.descriptors.definitions import replace
from tenure.catalog.descriptors.role_records import ObjectPrivileges, RoleRecords
from tenure.catalog.leases.catalog_cache import CatalogView
from tenure.catalog.leases.node_leases import Leases
from tenure.kv.transaction import Transaction
from tenure.schema_change.outcomes import ChangeOutcomes
from tests.simulation.schema_workloads import lingering, quiet


def returned_at_once(self: ChangeOutcomes, commit_at: Timestamp, check: Any = None) -> None:
    """The change is durable, so the statement is done, it is thought."""


def oldest_in_use(self: Leases) -> CatalogView:
    """What transactions of this node still use."""
    leases = self.generations.all()
    return leases[0].version if leases else self._cache.newest


def names_left_as_they_were(
    self: RoleRecords,
    txn: Transaction,
    record: ObjectPrivileges,
    former: frozenset[str],
    names: frozenset[str],
) -> None:
    """Only DROP ROLE reads them."""


def moved_without_draining(draft: Any, catalog: Any, id: int, schema: int, **options: Any) -> None:
    """The database is dropped in the same commit, so that nobody needs the former names, it is thought."""
    set_schema(draft, catalog, id, schema, **options)
    draft.declare(replace(draft.declared[id], draining=()), made_from=draft.made_from[id])


def patient(knobs: Any) -> None:
    quiet(knobs)
    lingering(knobs)
    knobs.signal_seconds = 1.0


ALL: tuple[tuple[Any, ...], ...] = (
    (
        "REVOKE returns before other nodes know",
        ((ChangeOutcomes, "await_known", returned_at_once),),
        "rights",
        patient,
    ),
    (
        "rights by the oldest lease in use",
        ((Leases, "newest", property(oldest_in_use)),),
        "rights",
        lingering,
    ),
    (
        "names of roles stay as they were",
        ((RoleRecords, "_move_names", names_left_as_they_were),),
        "rights",
    ),
    (
        "names of a converted database do not drain",
        ((database_conversion, "set_schema", moved_without_draining),),
        "conversions",
        lingering,
    ),
)
