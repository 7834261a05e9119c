"""The services of a node's SQL sessions, and the system tables' view of the node.

Walk: `node.py` calls `build_services` and `build_view` when the door opens; this makes the `Services` that
SQL is handed, and the `NodeView` of its system tables.
"""

from collections.abc import Callable
from itertools import count

from tenure.base.settings import COLUMNS_MEMORY, DUCKDB_MEMORY
from tenure.bulk.lakes import Lake
from tenure.catalog.accounts.users import Users
from tenure.catalog.leases.crossed_waits import CrossedWaits
from tenure.cluster.inquiries import Ask
from tenure.cluster.notifications import Notifications
from tenure.composition.catalog_layer import CatalogLayer
from tenure.composition.cluster_layer import ClusterLayer
from tenure.composition.job_layer import JobLayer
from tenure.composition.node_start import NodeStart
from tenure.composition.protection_layer import ProtectionLayer
from tenure.composition.storage_layer import StorageLayer
from tenure.composition.table_layer import TableLayer
from tenure.front import BinaryCodecs
from tenure.sql.duck.offload import Duck
from tenure.sql.execution.plan_cache import PlanCache
from tenure.sql.session.map_turns import MapTurns
from tenure.sql.session.services import BulkServices, Services
from tenure.sql.tables.node_view import NodeView
from tenure.storage.sqlite.sqlite_engine import SqliteEngine


def build_services(
    start: NodeStart,
    storage: StorageLayer,
    cluster: ClusterLayer,
    catalog: CatalogLayer,
    protections: ProtectionLayer,
    tables: TableLayer,
    jobs: JobLayer,
) -> Services:
    env, starter = start.env, jobs.starter
    return Services(
        env=env,
        store=storage.store,
        catalog=catalog.catalog,
        leases=catalog.leases,
        changer=jobs.changer,
        layouts=tables.layouts,
        rowids=tables.rowids,
        settings=cluster.settings,
        users=Users(storage.store.keyspace),
        locks=cluster.row_locks,
        advisory=cluster.advisory_locks,
        notifications=Notifications(storage.store, cluster.sessions, cluster.session_id),
        sequences=tables.sequences,
        temporary_rows=tables.temporary_rows,
        next_owner=count(1).__next__,
        memory=cluster.memory,
        codecs=BinaryCodecs(),
        bulk=BulkServices(
            env=env,
            store=storage.store,
            jobs=cluster.jobs,
            catalog=catalog.catalog,
            renew_lease=catalog.leases.renew,
            lake=tables.lake,
            locations=storage.locations,
            feeds=jobs.feeds,
            sweeps=jobs.sweeps,
            spark_trouble=lambda: starter.trouble if starter else "",
        ),
        open_reads=protections.open_reads,
        snapshots=protections.snapshots,
        map_turns=MapTurns(env),
        crossed_waits=CrossedWaits(catalog.holders, catalog.lease_waits, cluster.lock_waits),
        is_alive=cluster.deaths.is_alive,
        started_micros=env.wall_micros(),
        duck=_duck(storage, cluster, tables.lake),
        runs_inline=isinstance(storage.engine, SqliteEngine),
    )


def build_view(
    services: Services,
    cluster: ClusterLayer,
    catalog: CatalogLayer,
    ask: Ask,
    signal: Callable[[int, bytes], None],
) -> NodeView:
    """`ask` sends a question to another node, `signal` ends a statement or session there."""
    return NodeView(
        store=services.store,
        catalog=services.catalog,
        leases=services.leases,
        users=services.users,
        settings=services.settings,
        locks=services.locks,
        sequences=services.sequences,
        memory=services.memory,
        bulk=services.bulk,
        plans=PlanCache(services.env),
        session_id=cluster.session_id,
        blockers=catalog.lease_waits.blockers,
        started_micros=services.started_micros,
        ask=ask,
        signal=signal,
    )


def _duck(storage: StorageLayer, cluster: ClusterLayer, lake: Lake | None) -> Duck:
    memory = cluster.memory
    limits = memory.limits
    duck = Duck(
        storage.store,
        lake=lake and lake.files,
        cache_bytes=limits.columns(),
        memory_bytes=limits.duckdb(),
    )
    memory.add_gauge("columns", duck.columns_bytes, limit=limits.columns, setting=COLUMNS_MEMORY.name)
    memory.add_gauge("duckdb", duck.engine_bytes, limit=limits.duckdb, setting=DUCKDB_MEMORY.name)
    return duck
