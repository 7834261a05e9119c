"""Everything that must hold of a run with schema changes, gathered.

Walk: `schema_nodes.SchemaCluster.judge` -> `check` -> each predicate over one `SchemaIndex`.
"""

from collections.abc import Callable, Iterator

from tenure.catalog.leases.wait_records import WaitRecords
from tenure.kv.keys import FREEZES, LEASE_WAITS
from tenure.storage.sqlite.sqlite_engine import SqliteEngine
from tests.simulation import (
    catalog_predicates,
    change_predicates,
    clean_changes,
    conversion_shapes,
    expiring_predicates,
    kept_predicates,
    lease_predicates,
    right_predicates,
    schema_lock_shapes,
)
from tests.simulation.predicates import Violation
from tests.simulation.schema_history import SchemaIndex
from tests.simulation.schema_trace import SchemaTrace
from tests.simulation.trace import head

PREDICATES: tuple[Callable[[SchemaIndex], Iterator[Violation]], ...] = (
    *lease_predicates.PREDICATES,
    *expiring_predicates.PREDICATES,
    *kept_predicates.PREDICATES,
    catalog_predicates.consistency,
    catalog_predicates.draining,
    catalog_predicates.resolutions,
    change_predicates.atomicity,
    change_predicates.reverts,
    change_predicates.adoptions,
    clean_changes.needless_refusals,
    conversion_shapes.conversions,
    *right_predicates.PREDICATES,
    *schema_lock_shapes.PREDICATES,
)


SWEEPS = 3
"""Expired rows go within so many rounds of the loop that sweeps them, which has a round per ttl."""


def check(trace: SchemaTrace, engine: SqliteEngine, *, is_whole: bool, ttl_seconds: float) -> list[Violation]:
    index = SchemaIndex(trace)
    found = [violation for predicate in PREDICATES for violation in predicate(index)]
    found += change_predicates.oracle(index, engine)
    if is_whole:
        found += change_predicates.ends(index)
        found += waits(index)
        found += schema_lock_shapes.left_unlocked(index)
        found += expiring_predicates.left(index, SWEEPS * ttl_seconds)
    _observe(index)
    return found


def waits(index: SchemaIndex) -> Iterator[Violation]:
    """I9: at the end nobody waits, and nothing says that somebody does whose session is there."""
    records, present = WaitRecords(index.keyspace)._records, index.present_at_the_end()
    for key, versions in index.trace.versions.items():
        last = versions[-1]
        if head(key) == index.keyspace.head(LEASE_WAITS) and last.value is not None:
            wait = records.decode(last.value)
            if wait.session in present:
                yield Violation("I9", f"a wait is left: {wait.awaited}", last.step, (last.writer.id,))


def _observe(index: SchemaIndex) -> None:
    """Counts what only the records of waits and freezes show."""
    waits, freezes = (index.keyspace.head(table) for table in (LEASE_WAITS, FREEZES))
    for key, versions in index.trace.versions.items():
        if head(key) == waits:
            index.trace.seen["schema change waited for a lease"] += 1
        elif head(key) == freezes and any(version.value is not None for version in versions):
            index.trace.seen["session frozen"] += 1
