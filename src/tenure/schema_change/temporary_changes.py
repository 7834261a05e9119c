"""Changes of temporary objects, which no other transaction uses: they need no stages, leases or jobs.

    the draft ──► permanent objects: the schema changer
              └─► temporary objects: all work on their rows is done in the transaction itself, at its commit

Invariant (temporary-atomic): of a transaction's temporary objects and its rows, all or nothing is there after
it.

Walk: `schema_change.changer` calls `settle_temporary` before it commits -> `Worker.complete_stages`,
`Worker.complete_own`.
"""

from tenure.catalog.descriptors.definitions import Table, is_dropped
from tenure.catalog.descriptors.elements import is_finished
from tenure.catalog.descriptors.temporary_objects import TemporaryObjects, with_changes
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.schema_change.in_transaction import check_possible
from tenure.schema_change.stages import Work, WorkKind
from tenure.schema_change.work import Worker


def settle_temporary(use: CatalogUse, worker: Worker) -> TemporaryObjects | None:
    """Takes temporary objects out of a draft and completes their rows; returns those after the commit."""
    temporary = use.temporary
    if temporary is None:
        return None
    draft = use.draft.split(temporary.schema.id)
    tables = [each for each in draft.declared.values() if isinstance(each, Table)]
    altered = [
        each for each in tables if not (is_dropped(each) or is_finished(each) or draft.has_own_rows(each.id))
    ]
    check_possible(each for each in altered if worker.has_written(use.txn, each.id))
    # Types that the same transaction creates, too.
    over = worker.over({**use.draft.new_descriptors(), **temporary.by_id, **draft.declared})
    for table in altered:
        over.complete_stages(use.txn, table, _empties)
    over.complete_own(use.txn, draft)
    return with_changes(temporary, draft, use.descriptor)


def _empties(work: Work) -> bool:
    """The entries of a dropped index are removed after the commit, with all their history."""
    return work.kind is WorkKind.EMPTY_INDEX
