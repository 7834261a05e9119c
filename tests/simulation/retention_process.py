"""One running program of the world of retention, built of the product's parts; and its loops.

    product code    protections, tracker, sweeps, jobs and claims, manifests, cleaning, zones, the catalog
    stands in       a tree of files; merges over lists of revisions; a runner of jobs without heartbeats:
                    the session of a process that was cut off is deleted by whoever finds a job of it

A tracker may be lazy: for a while it says that it has read the protections anew, and has not. Whatever is
decided from an old state must wait, or be right all the same.

Walk: `retention_world` starts one after the other; clients are `retention_client`, jobs `retention_jobs`.
"""

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from tenure.base.errors import TenureError
from tenure.base.settings import SPARK_MIN_ROWS, Settings
from tenure.bulk import flush
from tenure.bulk.lakes import Lake
from tenure.bulk.upkeep import Upkeep
from tenure.catalog.bootstrap import bootstrap
from tenure.catalog.changes.publisher import Publisher
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import (
    DEFAULT_DATABASE,
    DEFAULT_SCHEMA,
    ROOT,
    Database,
    DescriptorState,
    Schema,
    Table,
)
from tenure.catalog.descriptors.zones import Zone, zones
from tenure.catalog.leases.lease_waits import LeaseWaits
from tenure.cluster.jobs.job_table import Jobs
from tenure.cluster.sessions.session_records import SessionId, Sessions
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import DEFAULT_TENANT
from tenure.kv.transaction import Transaction
from tenure.pipeline.remote_handles import StoreHandle
from tenure.retention.job_protections import JobProtections
from tenure.retention.protections.protection_catalog import ProtectionCatalog
from tenure.retention.protections.protection_records import JOB
from tenure.retention.protections.protection_store import ProtectionStore
from tenure.retention.reconciler import Owner, Reconciler
from tenure.retention.sweeping.services import SweepServices
from tenure.retention.tracking.tracker import Tracker
from tenure.storage.files import Files
from tenure.table.lake.identity import LakeIdentity, Stage, StoreLake, store_lakes
from tenure.table.lake.manifests import Manifests
from tenure.table.lake.publishing import Merges
from tenure.table.sequences import Sequences
from tests.simulation.lake_files import ID, SimBases, SimFiles
from tests.simulation.retention_trace import KnownList
from tests.simulation.tracing import TracingStore
from tests.simulation.wire import SimEngine
from tests.unit.catalog.tables import users

if TYPE_CHECKING:
    from tests.simulation.retention_world import RetentionNode

OTHER_SCHEMA, OTHER_DATABASE, FAR_SCHEMA = 111, 110, 112
"""A second schema of the default database, and another database with a schema."""

PLACES = (
    (DEFAULT_DATABASE, DEFAULT_SCHEMA),
    (DEFAULT_DATABASE, OTHER_SCHEMA),
    (OTHER_DATABASE, FAR_SCHEMA),
)
CONTAINERS = (DEFAULT_DATABASE, DEFAULT_SCHEMA, OTHER_SCHEMA, OTHER_DATABASE, FAR_SCHEMA)

TABLES = (200, 201, 202)
INDEXES = (1, 2)
"""Those of each table's indexes that have rows here."""

GATES = 199
"""The table with a row for each table that an import has closed for writing."""

SESSION_SECONDS = 3_600.0
"""Longer than any run: no session expires here."""

SLOW_SECONDS = 5.0
"""How long a call on a slow connection takes at most: as long as a whole sweep may take."""


class LazyTracker(Tracker):
    """Now and then it keeps its state for a while, whatever has changed."""

    def __init__(self, process: "RetentionProcess") -> None:
        super().__init__(process.store, lambda: process.settings)
        self._process = process
        self._lazy_until = 0.0

    def _refresh(self, snapshot: Snapshot) -> None:
        cluster = self._process.cluster
        hub, knobs, trace = cluster.hub, cluster.knobs, cluster.trace
        if hub.t < self._lazy_until:
            trace.seen["sweep from an old state"] += 1
            return
        super()._refresh(snapshot)
        assert self._state is not None, "it was just read"
        state = self._state
        trace.lists.append(KnownList(trace.tick(), state.read_at, state.version, state.records))
        if hub.tape.chance(f"{self._process.name}.lazy", knobs.lazy_rate):
            spell = knobs.lazy_seconds * hub.tape.draw(f"{self._process.name}.spell")
            self._lazy_until = min(hub.t + spell, knobs.faults_end)


class SlowEngine(SimEngine):
    """A connection on which a call may take seconds."""

    def _wait(self, tape_site: str, seconds: float, site: str) -> None:
        if self.wire.is_faulty():
            self._hub.sleep(SLOW_SECONDS * self._tape.draw(f"{tape_site}.slow") ** 2, site)


class RetentionProcess:
    """What is in memory between a start and a crash."""

    def __init__(self, node: "RetentionNode") -> None:
        self.cluster, self.machine, self.env = node.cluster, node.machine, node.env
        self.name = node.machine.name
        self.settings: Settings = self.cluster.settings
        self.engine = SimEngine(self.cluster.wire, self.machine)
        self.store = TracingStore(self.engine, self.env, settings=self.settings)
        self.keyspace = self.store.keyspace
        self.catalog = Catalog(self.keyspace)
        self.store.transact(self._set_up)
        self.sessions = Sessions(self.keyspace)
        self.session = self._make_session()
        self.jobs = Jobs(self.keyspace, self.sessions, self.store.clock)
        self.protections = ProtectionStore(self.store, self.catalog, lambda: self.settings)
        self.listing = ProtectionCatalog(self.keyspace)
        self.job_protections = JobProtections(self.keyspace, self.protections)
        self.jobs.on_end.append(self.job_protections.release_all)
        self.tracker = LazyTracker(self)
        self.reconciler = Reconciler(
            self.store, self.protections, {JOB: Owner(self._has_job, lambda txn, meta, reason: None)}
        )
        self.manifests, self.merges = Manifests(self.keyspace), Merges(self.keyspace)
        self.lake = self._open_lake()
        self.upkeep = Upkeep(self.lake)
        self.services = self._sweep_services()

    def _set_up(self, txn: Transaction) -> None:
        """The first process makes the databases, schemas and tables."""
        if not bootstrap(txn, self.keyspace, self.catalog):
            return
        txn.start_head_clock()  # as a cluster does that is finalized
        public = DescriptorState.PUBLIC
        self.catalog.put(txn, Database(OTHER_DATABASE, 1, 0, "other", ROOT, public, (), ()))
        self.catalog.put(txn, Schema(OTHER_SCHEMA, 1, 0, "more", ROOT, public, (), (), DEFAULT_DATABASE))
        self.catalog.put(txn, Schema(FAR_SCHEMA, 1, 0, "far", ROOT, public, (), (), OTHER_DATABASE))
        for id, (database, schema) in zip(TABLES, PLACES, strict=True):
            self.catalog.put(txn, make_table(id, database, schema))
        zones(self.keyspace).put(txn, Zone(0, 0, self.cluster.knobs.zone_seconds))
        store_lakes(self.keyspace).put(txn, StoreLake(ID, "sim", ("sim",), Stage.SETTLED))

    def _make_session(self) -> SessionId:
        txn = self.store.begin()
        instance = self.sessions.create(
            txn, ttl_seconds=SESSION_SECONDS, lanes=(), address="", started_at=0, version=1
        )
        return SessionId(instance, txn.commit())

    def _has_job(self, txn: Transaction, meta: bytes) -> bool:
        return self.jobs.is_open(txn, int(meta))

    def _open_lake(self) -> Lake:
        files: Files = SimFiles(self.cluster.tree)
        files.confirm_by(LakeIdentity(self.store, files, ID).check)
        bases = SimBases(self.store, self.manifests, files, cache_bytes=0)
        self.store.use_bases(bases)
        return Lake(
            self.store,
            files,
            StoreHandle("", "", DEFAULT_TENANT, identity=ID),
            self.manifests,
            self.merges,
            bases,
            self.catalog,
            self.jobs,
            self.job_protections,
            self.tracker,
            lambda: self.settings.with_value(SPARK_MIN_ROWS, 1_000_000),
            cast(Any, None),
        )

    def _sweep_services(self) -> SweepServices:
        # Nobody leases anything here.
        waits = LeaseWaits(self.store, *cast(Any, (None, lambda: (), None, None, None, None, None)))
        return SweepServices(
            self.store,
            self.catalog,
            Publisher(self.store, self.catalog, waits),
            self.jobs,
            self.tracker,
            self.manifests,
            self.merges,
            Sequences(self.store, self.keyspace),
            lambda: self.settings,
            partial(flush.start_by_sweep, self.lake),
        )

    # ── loops ──────────────────────────────────────────────────────────────────────────────────

    def start_loops(self) -> None:
        pace = 4.0 * self.cluster.tape.draw(f"{self.name}.news") ** 2
        self.env.spawn("bases", lambda: self._forever(self._follow_bases, 0.05 + pace))
        self.env.spawn("tracker", lambda: self._forever(self.tracker.step, 0.05 + pace))
        self.env.spawn("reconciler", lambda: self._forever(self.reconciler.step, 5.0))

    def _follow_bases(self) -> None:
        self.lake.bases.follow()

    def _forever(self, step: Any, rest_seconds: float) -> None:
        while True:
            try:
                step()
            except TenureError:
                self.cluster.trace.seen["loop: an error"] += 1
            self.env.sleep(rest_seconds)


def make_table(id: int, database: int, schema: int) -> Table:
    return users(id=id, name=f"t{id}", database=database, schema=schema)
