"""The loops of a node that has all its layers but the door, and how its jobs are drained.

Walk: `node.py` calls `start_loops` before the door opens; each loop calls the step of a part.
"""

import logging

from tenure.bulk.upkeep import Upkeep
from tenure.cluster.jobs.runner import JobRunner
from tenure.composition.catalog_layer import CatalogLayer
from tenure.composition.cluster_layer import ClusterLayer
from tenure.composition.job_layer import JobLayer
from tenure.composition.node_start import NodeStart
from tenure.composition.storage_layer import StorageLayer
from tenure.composition.table_layer import TableLayer
from tenure.retention.sweeping.schedule import SweepSchedule

DRAIN_SECONDS = 30.0
"""How long a drain waits for jobs that do not stop; then the session goes, and their fence with it."""

_log = logging.getLogger(__name__)


def start_loops(
    start: NodeStart,
    storage: StorageLayer,
    cluster: ClusterLayer,
    catalog: CatalogLayer,
    tables: TableLayer,
    jobs: JobLayer,
) -> None:
    is_version_one, lifecycle = start.options.is_version_one, start.lifecycle
    loop, neighbours, holds = lifecycle.loop, cluster.neighbours, cluster.row_locks.tables
    lifecycle.run(
        loop("deaths", cluster.deaths.follow, interrupt=cluster.deaths.wake),
        loop("neighbours", neighbours.follow, interrupt=neighbours.wake),
        loop("holds", holds.follow, interrupt=holds.wake),
        loop("reaper", lambda: _reap(cluster, catalog, tables, is_version_one=is_version_one)),
        loop("job retention", jobs.job_retention.step),
        loop("memory", cluster.memory.step),
    )
    temporary = loop("temporary rows", tables.temporary_rows.step)
    tables.temporary_rows.on_discarded = temporary.wake
    lifecycle.run(temporary)
    catalog.leases.renew()
    lifecycle.run(loop("leases", catalog.leases.step, interrupt=catalog.leases.wake))
    if not is_version_one:
        lifecycle.run(loop("holders", catalog.holders.step, interrupt=catalog.holders.wake))
        locks = loop("locks", catalog.locks.step)
        catalog.locks.on_wish = locks.wake
        lifecycle.run(locks)
    # Drained in reverse: the other nodes are told, no more jobs are adopted, the runs end.
    lifecycle.on_stop(lambda: _drain_jobs(jobs.runner))
    lifecycle.run(loop("jobs", jobs.runner.step, interrupt=jobs.runner.wake))
    lifecycle.run(loop("gc", SweepSchedule(jobs.sweeps, cluster.older.is_finalized).step))
    if tables.lake is not None:
        lifecycle.run(loop("lake", Upkeep(tables.lake, storage.locations).step))
    lifecycle.on_stop_close("instance", cluster.liveness.drain)
    if jobs.starter is not None:
        lifecycle.on_stop(jobs.starter.stop)
        lifecycle.run(loop("workers", jobs.starter.step))


def _reap(cluster: ClusterLayer, catalog: CatalogLayer, tables: TableLayer, *, is_version_one: bool) -> None:
    """Deletes the records of dead nodes."""
    if not is_version_one:
        cluster.deaths.reap(cluster.liveness.session_id())
        cluster.older.reap()
        for table in catalog.lease_tables():
            table.sweep()
        tables.temporary_rows.sweep()
    catalog.lease_waits.tidy()
    cluster.lock_waits.tidy()


def _drain_jobs(runner: JobRunner) -> None:
    if not runner.drain(timeout=DRAIN_SECONDS):
        _log.warning("some jobs did not stop within %.0f s; their claims end with the session", DRAIN_SECONDS)
