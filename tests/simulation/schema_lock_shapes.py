"""Tables that feeds watch in the world of schema changes: locks, and rows by the fast path.

    watch a table    asks the process's schedule for a lock, in the name of a job that never ends
    follow           asks a schema feed by leases which version rows have now, as a feed does with a batch

    locks      I33: a locked version and its neighbours have equal `row`, but for a publisher that is alone;
               nobody but the change's own job locks a table that has a mark
    emitted    I34: what a feed took a table for is the version in force, by the fast path and by the slow

Walk: `schema_client.SHAPES` has the shapes under their names; `schema_predicates` calls `PREDICATES`.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from tenure.base.errors import UserError
from tenure.catalog.descriptors.definitions import Table, is_dropped
from tenure.catalog.descriptors.equal_versions import row_of
from tenure.changefeed.leased_schema import FeedLeases, LeasedSchema
from tenure.kv.keys import JOB_CONTROL
from tests.simulation.predicates import Violation
from tests.simulation.schema_history import SchemaIndex
from tests.simulation.schema_trace import Emitted, TracingLeases
from tests.simulation.trace import Get, Txn

if TYPE_CHECKING:
    from tests.simulation.schema_client import SchemaClient

WATCHING = "nobody runs this"
"""The kind of the jobs in whose name tables are watched."""

PROFILES = {
    "locks": {
        "write": 4.0,
        "linger": 1.0,
        "look": 0.5,
        "rename": 0.7,
        "add index": 1.0,
        "drop index": 0.5,
        "add column": 1.0,
        "rows and a change": 1.0,
        "two changes": 0.5,
        "cancel": 0.3,
        "watch a table": 3.0,
        "follow": 6.0,
    },
}


def watch_table(client: "SchemaClient") -> None:
    with client.bound() as use:
        table = client.some_table(use)
    if table is not None:
        process = client.process
        if not client.watcher:
            client.watcher = client.store.transact(
                lambda txn: process.jobs.create(txn, kind=WATCHING).id,
            )
        process.locks.want(table.id, client.watcher)


def follow(client: "SchemaClient") -> None:
    process = client.process
    assert isinstance(process.leases, TracingLeases)
    with client.bound() as use:
        table = client.some_table(use)
    if table is None:
        return
    try:
        feed = client.feeds.get(table.id)
        if feed is None:
            at = client.store.snapshot().at
            node = FeedLeases(process.leases, process.locks, client.watcher)
            feed = client.feeds[table.id] = LeasedSchema(client.store, process.catalog, table.id, at, node)
        client.pause()
        at = client.store.snapshot().at
        version = feed.at(at)
        is_fast = feed.is_fast
        feed.pop(at)
    except UserError:
        client.feeds.pop(table.id, None)
        return
    trace = client.schema_trace
    trace.emitted.append(Emitted(trace.tick(), table.id, at, row_of(version.table), is_fast))
    trace.seen["row by the fast path" if is_fast else "row by the slow path"] += 1


def locks(index: SchemaIndex) -> Iterator[Violation]:
    for id, versions in index.versions.items():
        for (_, former, _), (at, table, txn) in pairwise(versions):
            if not (isinstance(former, Table) and isinstance(table, Table)):
                continue
            is_equal, what = row_of(former) == row_of(table), f"table {id} v{table.version}"
            if table.is_locked and not is_equal:
                yield Violation("I33", f"{what} is locked and changed", txn.landed, (txn.id,))
            if former.is_locked and not is_equal:
                process = index.trace.processes[txn.id]
                index.trace.seen["locked table changed alone"] += 1
                if any(row.covers(id) and row.process != process for row in index.rows_before(at)):
                    yield Violation("I33", f"{what} follows a locked version", txn.landed, (txn.id,))
            if table.is_locked and not former.is_locked:
                index.trace.seen["table locked"] += 1
                if former.job and not _is_fenced(index, txn, former.job):
                    yield Violation("I33", f"{what} is locked beside a change", txn.landed, (txn.id,))
            if former.is_locked and not table.is_locked and is_equal:
                index.trace.seen["table opened for a change"] += 1


def _is_fenced(index: SchemaIndex, txn: Txn, job: int) -> bool:
    """Whether a lock was placed by the change that set the mark: its job locks during long stages."""
    key = index.keyspace.key(JOB_CONTROL, (job,))
    return any(isinstance(read, Get) and read.key == key for read in txn.reads)


def left_unlocked(index: SchemaIndex) -> Iterator[Violation]:
    """I33: once the faults are over, every watched table is locked again."""
    for id, versions in index.versions.items():
        _, table, txn = versions[-1]
        is_watched = isinstance(table, Table) and bool(table.watchers) and not is_dropped(table)
        if isinstance(table, Table) and is_watched and not table.is_locked:
            yield Violation("I33", f"table {id} v{table.version} is left unlocked", txn.landed, (txn.id,))


def emitted(index: SchemaIndex) -> Iterator[Violation]:
    for step, id, at, row, is_fast in index.trace.emitted:
        current = index.version_at(id, at)
        if current is None or row_of(current) != row:
            path = "fast" if is_fast else "slow"
            now = "none" if current is None else str(row_of(current))
            yield Violation("I34", f"a row of {id} was read by {row} on the {path} path, not {now}", step)


PREDICATES = (locks, emitted)
