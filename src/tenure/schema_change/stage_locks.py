"""Locks during long stages: while a job fills or proves many rows, a watched table is locked.

    write_only ──► locked ──► fill, prove: rows take the fast path of feeds ──► unlocked ──► public

The descriptor does not change while the work is under way, so the job locks the table itself, under its own
mark, and unlocks it before its next step. Both are versions of their own. For few rows that is not worth it.

Walk: `schema_change.changer` makes one, and hands `worth_locking` to the walks of jobs.
"""

from collections.abc import Sequence

from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import Table, job_of
from tenure.catalog.descriptors.locks import must_open
from tenure.cluster.jobs.job_table import Jobs
from tenure.kv.store import Store

LONG_ROWS = 20_000
"""A stage over more rows takes longer than two more versions do, by far."""


class StageLocks:
    def __init__(self, store: Store, catalog: Catalog, jobs: Jobs) -> None:
        self._store = store
        self._catalog = catalog
        self._jobs = jobs

    def worth_locking(self, tables: Sequence[Table]) -> list[Table]:
        """Those that are to be locked while work on them is done."""
        return [each for each in tables if not each.is_locked and self._is_worth(each)]

    def _is_worth(self, table: Table) -> bool:
        if not (table.is_lock_kept or table.watchers):
            return False
        snapshot = self._store.snapshot()
        used = {column.type.enum for column in table.columns if column.type.enum}
        types = [self._catalog.get(snapshot, id) for id in sorted(used)]
        is_idle = all(each is not None and not job_of(each) for each in types)
        is_wanted = must_open(table, lambda job: self._jobs.is_open(snapshot, job))
        return is_idle and is_wanted and not has_at_most(self._store, table, LONG_ROWS)


def has_at_most(store: Store, table: Table, rows: int) -> bool:
    """Whether a table has no more rows than that; no file is read to find out."""
    span = store.keyspace.index_span(table.id, table.primary)
    base = store.bases.of(store.keyspace.head(table.id, table.primary))
    if base is None:
        return sum(1 for _ in store.snapshot().scan(span, limit=rows + 1)) <= rows
    # A damaged file must not keep the table from being dropped.
    newer = store.engine.spread(span.lo, span.hi, base.flushed_at, rows)
    return base.rows_within(span) + newer.keys <= rows
