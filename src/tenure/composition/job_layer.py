"""The jobs of a node: the schema changer, the kinds of jobs it can run, the runner.

Walk: `node.py` calls `build_jobs` after the lake is open; this makes the `SchemaChanger` and the `JobRunner`.
"""

from collections.abc import Callable
from typing import NamedTuple

from tenure.bulk import flush
from tenure.bulk.exporting import kind as exporting
from tenure.bulk.exporting.records import RunQuery
from tenure.bulk.filling.job import SparkIndexFill
from tenure.bulk.importing.job import import_kind
from tenure.bulk.importing.records import KIND as IMPORT
from tenure.bulk.lakes import Lake
from tenure.bulk.resetting.job import reset_kind
from tenure.bulk.resetting.records import KIND as RESET
from tenure.changefeed.job import KIND as CHANGEFEED
from tenure.changefeed.job import FeedServices, changefeed_kind
from tenure.changefeed.leased_schema import FeedLeases
from tenure.changefeed.table_stream import FeedSources
from tenure.changefeed.tail import Tail
from tenure.cluster.jobs.job_retention import JobRetention
from tenure.cluster.jobs.runner import JobRunner
from tenure.cluster.jobs.runs import JobKind
from tenure.composition.catalog_layer import CatalogLayer
from tenure.composition.cluster_layer import ClusterLayer
from tenure.composition.node_start import NodeStart
from tenure.composition.protection_layer import ProtectionLayer
from tenure.composition.storage_layer import StorageLayer
from tenure.composition.sweep_layer import build_sweeps
from tenure.composition.table_layer import TableLayer
from tenure.front import Front
from tenure.pipeline.starter import WorkerStarter
from tenure.retention.sweeping import job as gc
from tenure.retention.sweeping.services import SweepServices
from tenure.schema_change.changer import SchemaChanger
from tenure.schema_change.in_transaction import JobReservations
from tenure.schema_change.job import KIND as SCHEMA_CHANGE
from tenure.schema_change.job import schema_change_kind
from tenure.schema_change.work import Worker
from tenure.sql.clients.exported_rows import rows_of
from tenure.storage.locations import Locations


class JobLayer(NamedTuple):
    changer: SchemaChanger
    runner: JobRunner
    job_retention: JobRetention
    starter: WorkerStarter | None
    """Starts processes that have Spark, whenever a job waits for one."""
    sweeps: SweepServices
    feeds: FeedServices


def build_jobs(
    start: NodeStart,
    storage: StorageLayer,
    cluster: ClusterLayer,
    catalog: CatalogLayer,
    protections: ProtectionLayer,
    tables: TableLayer,
    front: Callable[[], Front | None],
) -> JobLayer:
    """`front` is asked when an export runs a query: the door opens after the jobs are built."""
    store, session, settings = storage.store, cluster.liveness.session, cluster.settings.current
    changer = SchemaChanger(
        store,
        catalog.catalog,
        catalog.leases,
        catalog.publisher,
        Worker(store.keyspace, catalog.catalog, tables.layouts, tables.context),
        cluster.jobs,
        session,
        reservations=JobReservations(
            reserve=lambda job: runner.reserve(job),
            unreserve=lambda job: runner.unreserve(job),
        ),
        reading=protections.long_reads.reading,
    )
    fill = None if tables.lake is None else SparkIndexFill(tables.lake, tables.layouts, tables.context)
    sweeps = build_sweeps(store, cluster, catalog, protections, tables)
    feeds = _feeds(storage, cluster, catalog, protections, tables)
    kinds = {
        SCHEMA_CHANGE: schema_change_kind(changer.walk, fill),
        gc.KIND: gc.gc_kind(sweeps),
        CHANGEFEED: changefeed_kind(feeds),
    }
    if tables.lake is not None:
        kinds |= _lake_kinds(tables.lake, storage.locations, catalog, front)
    kinds |= start.options.kinds
    runner = JobRunner(store, session, cluster.deaths, cluster.jobs, kinds, settings, has=start.options.has)
    cluster.on_lost.append(runner.end_session)
    cluster.deaths.on_death = runner.wake
    starter = None
    if start.options.start_worker is not None:
        starter = WorkerStarter(store, cluster.sessions, session, runner.lacks, start.options.start_worker)
    return JobLayer(changer, runner, JobRetention(store, cluster.jobs, settings), starter, sweeps, feeds)


def _feeds(
    storage: StorageLayer,
    cluster: ClusterLayer,
    catalog: CatalogLayer,
    protections: ProtectionLayer,
    tables: TableLayer,
) -> FeedServices:
    files = None if tables.lake is None else tables.lake.bases.checked
    node = FeedLeases(catalog.leases, catalog.locks)
    sources = FeedSources(storage.store, catalog.catalog, files, Tail(storage.store), node)
    follow = protections.long_reads.follow
    return FeedServices(
        *(sources, cluster.jobs, protections.of_jobs, storage.locations),
        session=cluster.liveness.session,
        follow=follow,
    )


def _lake_kinds(
    lake: Lake, locations: Locations, catalog: CatalogLayer, front: Callable[[], Front | None]
) -> dict[str, JobKind]:
    run_query: RunQuery = lambda *export: rows_of(front(), *export)  # noqa: E731
    return {
        flush.KIND: flush.flush_kind(lake),
        exporting.KIND: exporting.export_kind(lake, locations, run_query),
        IMPORT: import_kind(lake, catalog.publisher, locations),
        RESET: reset_kind(lake, catalog.publisher),
    }
