"""A node: one process that builds every layer by hand, runs its loops, and drains.

    start    engine -> store -> upkeep -> settings -> session -> locks -> leases -> jobs -> SQL -> ready
    drain    SQL -> jobs -> leases -> session -> settings -> upkeep -> store -> engine

Each layer is built by a module of `composition`, which returns what it built. Everything is taken down in
reverse order, also when a later part fails to start. A store that cannot be reached at the start ends the
start with an error; one that goes away later does not end the node: its loops log what fails and go on once
the cause is gone. The session beats from the moment it is made; if it is lost all the same before the node
is ready, the node starts over.

Walk: `cli` and `worker` make a `Node`, then call `stop`; this calls the builders of `composition`.
"""

import logging
from contextlib import suppress
from functools import partial

from tenure.base.env import Env
from tenure.base.errors import SessionLost
from tenure.composition.background import start_loops
from tenure.composition.catalog_layer import build_catalog
from tenure.composition.cluster_layer import build_cluster
from tenure.composition.door_layer import open_door
from tenure.composition.job_layer import build_jobs
from tenure.composition.lifecycle import Lifecycle
from tenure.composition.node_start import NodeStart
from tenure.composition.options import NodeOptions
from tenure.composition.protection_layer import build_protections
from tenure.composition.sql_layer import build_services, build_view
from tenure.composition.storage_layer import build_storage
from tenure.composition.table_layer import build_tables
from tenure.front import Front

__all__ = ["Node", "NodeOptions"]

_log = logging.getLogger(__name__)


class Node:
    """Starts when it is made; `stop` drains it."""

    def __init__(self, options: NodeOptions, env: Env) -> None:
        while True:
            with suppress(SessionLost), Lifecycle(env, options.settings) as lifecycle:
                self._start(NodeStart(options, env, lifecycle))
                self._lifecycle = lifecycle.keep()
                return
            _log.warning("the session was lost before the node was ready; starting over")

    def _start(self, start: NodeStart) -> None:
        storage = build_storage(start)
        cluster = build_cluster(start, storage.store)
        catalog = build_catalog(start, storage.store, cluster)
        protections = build_protections(start, storage.store, cluster, catalog)
        tables = build_tables(start, storage, cluster, catalog.catalog, protections)
        self.front: Front | None = None
        jobs = build_jobs(start, storage, cluster, catalog, protections, tables, lambda: self.front)
        start_loops(start, storage, cluster, catalog, tables, jobs)

        if start.options.listen is not None:
            services = build_services(start, storage, cluster, catalog, protections, tables, jobs)
            view = partial(build_view, services, cluster, catalog)
            self.front = open_door(start, start.options.listen, services, cluster, view)
        # Attributes for commands, workers and tests.
        self.store, self.locations = storage.store, storage.locations
        self.settings, self.liveness, self.deaths = cluster.settings, cluster.liveness, cluster.deaths
        self.jobs, self.runner, self.changer = cluster.jobs, jobs.runner, jobs.changer
        self.catalog, self.leases, self.lease_waits = catalog.catalog, catalog.leases, catalog.lease_waits
        self.publisher, self.layouts, self.context = catalog.publisher, tables.layouts, tables.context
        self.locks = catalog.locks
        self.cluster, self.lake, self.tasks = cluster, tables.lake, tables.tasks
        self.feeds = jobs.feeds
        self.sweeps, self.tracker, self.protections = jobs.sweeps, protections.tracker, protections.store
        self.job_protections, self.long_reads = protections.of_jobs, protections.long_reads
        self.reconciler, self.temporary_rows = protections.reconciler, tables.temporary_rows
        self.feeds = jobs.feeds

    def stop(self) -> None:
        self._lifecycle.stop()
