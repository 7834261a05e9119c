"""A node: one process that builds every part by hand, runs its loops, and drains.

    start    engine -> store -> upkeep -> settings -> session -> locks -> leases -> jobs -> SQL -> ready
    drain    SQL -> jobs -> leases -> session -> settings -> upkeep -> store -> engine

Whatever was built is taken down in reverse order, also when a later part fails to start. A store
that cannot be reached at the start ends the start with an error; one that goes away later does
not end the node: its loops log what fails and go on once the cause is gone. The session beats from the
moment it is made; if it is lost all the same before the node is ready, the node starts over.

Walk: `cli` calls `Node`, then `stop`; this module calls every layer's constructor and nothing else
does.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import count
from uuid import UUID

from tenure.base.env import Env
from tenure.base.errors import CorruptData, SessionLost, TenureError
from tenure.base.loops import Loop, Loops, Step
from tenure.base.node_memory import node_memory
from tenure.base.settings import (
    COLUMNS_MEMORY,
    DEFINITIONS,
    DUCKDB_MEMORY,
    LAKE_MEMORY,
    LIVENESS_TTL,
    VERSION,
    Settings,
)
from tenure.bulk import flush
from tenure.bulk.exporting import kind as exporting
from tenure.bulk.filling.job import SparkIndexFill
from tenure.bulk.importing.job import import_kind
from tenure.bulk.importing.records import KIND as IMPORT
from tenure.bulk.lakes import Lake
from tenure.bulk.upkeep import Upkeep
from tenure.catalog.accounts.users import Users
from tenure.catalog.bootstrap import bootstrap
from tenure.catalog.changes.publisher import Publisher
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.catalog.leases.holder_eviction import Holders
from tenure.catalog.leases.lease_waits import LeaseWaits
from tenure.catalog.leases.wait_records import WaitRecords
from tenure.cluster.cancels import Cancels
from tenure.cluster.inquiries import Inquiries
from tenure.cluster.jobs.claims import Claims, MixedClaims, OldClaims, SessionClaims
from tenure.cluster.jobs.job_retention import JobRetention
from tenure.cluster.jobs.job_table import Jobs
from tenure.cluster.jobs.runner import JobRunner
from tenure.cluster.jobs.runs import JobKind, Run
from tenure.cluster.locks.advisory_locks import AdvisoryLocks
from tenure.cluster.locks.lock_waits import LockWaits
from tenure.cluster.locks.row_locks import RowLocks
from tenure.cluster.sessions.deaths import Deaths
from tenure.cluster.sessions.expiring_liveness import OldHeartbeats, OldLiveness, reap_old
from tenure.cluster.sessions.liveness import Liveness, NodeSession
from tenure.cluster.sessions.neighbours import Neighbours
from tenure.cluster.sessions.reaped_sessions import end_proved
from tenure.cluster.sessions.session_records import SessionId, Sessions
from tenure.cluster.sessions.versions import OLDEST, PROGRAM, Versions
from tenure.cluster.settings import ClusterSettings
from tenure.expr.functions.function import Context
from tenure.front import BinaryCodecs, Front, Listen
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.leasing import Leaseholder, lease_scheme
from tenure.pipeline.remote_handles import StoreHandle
from tenure.pipeline.starter import Process, WorkerStarter
from tenure.pipeline.tasks import SPARK, ProcessTasks, Tasks
from tenure.schema_change.changer import SchemaChanger
from tenure.schema_change.in_transaction import JobReservations
from tenure.schema_change.job import KIND as SCHEMA_CHANGE
from tenure.schema_change.job import schema_change_kind
from tenure.schema_change.work import Worker
from tenure.sql.clients.exported_rows import rows_of
from tenure.sql.duck.offload import Duck
from tenure.sql.execution.plan_cache import PlanCache
from tenure.sql.session.services import Services
from tenure.sql.tables.node_view import NodeView
from tenure.storage.addresses import OpenEngine, open_engine
from tenure.storage.files import open_files
from tenure.storage.lifelines import Lifeline, open_lifelines
from tenure.storage.locations import Locations
from tenure.storage.sqlite import SqliteEngine
from tenure.storage.upkeep import upkeep
from tenure.table.lake.bases import LakeBases
from tenure.table.lake.manifests import Manifests
from tenure.table.lake.opening import open_lake
from tenure.table.lake.publishing import Merges
from tenure.table.rowids import RowIds
from tenure.table.rows import Layouts
from tenure.table.sequences import Sequences, SessionSequences

DRAIN_SECONDS = 30.0
"""How long a drain waits for jobs that do not stop; then the session goes, and their fence with it."""

_log = logging.getLogger(__name__)


class Node:
    """Starts when it is made; `stop` drains it.

    `kinds` are the kinds of jobs it can run; `version` makes it behave like an older program. One that is
    given `spark` runs the jobs that need it; others `start_worker` for them, which does.
    """

    def __init__(
        self,
        address: str,
        env: Env,
        *,
        settings: Settings | None = None,
        kinds: Mapping[str, JobKind] | None = None,
        version: int = PROGRAM,
        listen: Listen | None = None,
        lake: str = "",
        files: str = "",
        endpoints: tuple[str, ...] = (),
        has_implicit_credentials: bool = False,
        spark: Callable[[], Tasks] | None = None,
        start_worker: Callable[[], Process] | None = None,
    ) -> None:
        self._env = env
        self._version = version
        self._spark = spark
        self._listens = listen is not None
        self._process_tasks = ProcessTasks(env)
        self.locations = Locations(
            files or None, endpoints=endpoints, has_implicit_credentials=has_implicit_credentials
        )
        settings = settings or Settings(DEFINITIONS)
        while True:
            with suppress(SessionLost), ExitStack() as undo:
                engine = open_engine(address, env)
                undo.callback(_close, "engine", engine.close)
                self.store = Store(engine, env, settings=settings)
                undo.callback(_close, "store", self.store.close)
                self._run_loops(undo, upkeep(engine, env, self.store.max_offset_micros))
                self._start_settings(undo, settings)
                self._prove_deaths(undo, address)
                self._start_session(undo)
                self._make_locks(undo)
                self._make_leases(undo)
                self._make_job_records()
                self.locations.make_directory()
                self.lake = self._open_lake(undo, engine, address, lake) if lake else None
                self.front: Front | None = None
                self._starter: WorkerStarter | None = None
                self._make_jobs(kinds or {})
                self._start_loops(undo)
                if start_worker is not None:
                    self._start_workers(undo, start_worker)
                if listen is not None:
                    self.front = self._start_front(undo, listen, engine)
                self._undo = undo.pop_all()
                return
            _log.warning("the session was lost before the node was ready; starting over")

    def _start_settings(self, undo: ExitStack, base: Settings) -> None:
        self._sessions = Sessions(self.store.keyspace)
        self._heartbeats = OldHeartbeats(self.store.keyspace)
        self._versions = Versions(self.store.keyspace, self._sessions)
        self.settings = ClusterSettings(self.store, base, self._versions.finalize)
        undo.callback(self.settings.close)
        self.memory = node_memory(self._env, self.settings.current)
        self._run_loops(undo, [self._loop("settings", self.settings.follow, interrupt=self.settings.wake)])

    def _prove_deaths(self, undo: ExitStack, address: str) -> None:
        """Ends what a dead predecessor on this machine has left, and lets a successor do so for this one."""
        self._lifeline: Lifeline | None = None
        # Spark's executors may outlive the process that has it.
        lifelines = None if self._spark is not None else open_lifelines(address, self._env)
        if lifelines is not None:
            undo.callback(lifelines.close)
            self._lifeline = lifelines.own()
            end_proved(self.store, lifelines)
            lifelines.tidy(self._env.wall_micros() / 1_000_000)

    def _start_session(self, undo: ExitStack) -> None:
        self._on_lost: list[Callable[[NodeSession], None]] = []
        """What is done about a lost session, by those parts that are there."""
        self.liveness = self._old_liveness() if self._version == OLDEST else self._liveness()
        self.liveness.step()
        undo.callback(_close, "session", self.liveness.release)
        self.settings.load()  # the first node has just given the cluster its version
        self._run_loops(undo, [self._loop("heartbeat", self.liveness.step)])
        self.deaths = Deaths(self.store, self._sessions)
        undo.callback(self.deaths.close)

    def _make_locks(self, undo: ExitStack) -> None:
        session = self.liveness.session
        self._neighbours = Neighbours(self.store, self._sessions, session)
        undo.callback(self._neighbours.close)
        self._lock_waits = LockWaits(self.store, self.deaths, session, self._neighbours.is_alone)
        self.row_locks = RowLocks(self._lock_waits)
        undo.callback(self.row_locks.tables.close)
        self.advisory_locks = AdvisoryLocks(self._lock_waits)

    def _liveness(self) -> Liveness:
        return Liveness(
            self.store,
            self._sessions,
            self.settings.current,
            address="",
            version=self._version,
            has=self._has(),
            lifeline=self._lifeline,
            join=lambda txn: self._versions.join(txn, self._version),
            beside=self._beat_the_old_way,
            on_lost=self._lost,
        )

    def _old_liveness(self) -> OldLiveness:
        return OldLiveness(
            self.store,
            self._sessions,
            self._heartbeats,
            self._versions,
            self.settings.current,
            address="",
            on_lost=self._lost,
        )

    def _beat_the_old_way(self, txn: Transaction, instance: int) -> None:
        if not self._is_finalized():
            ttl_seconds = self.settings.current()[LIVENESS_TTL]
            self._heartbeats.beat(txn, instance, ttl_seconds=ttl_seconds)

    def _is_finalized(self) -> bool:
        """Whether no node of an older version is or can be there; once true it stays true."""
        return self.settings.current()[VERSION] >= PROGRAM

    def _reap(self) -> None:
        if self._version != OLDEST:
            self.deaths.reap()
            reap_old(self.store, self._sessions, self._heartbeats)
            for table in self._lease_tables():
                table.sweep()
        self.lease_waits.tidy()
        self._lock_waits.tidy()

    def _make_leases(self, undo: ExitStack) -> None:
        keyspace = self.store.keyspace
        self.catalog = Catalog(keyspace)
        self.store.transact(lambda txn: bootstrap(txn, keyspace, self.catalog))
        session, settings = self.liveness.session, self.settings.current
        waits = WaitRecords(keyspace)
        holder = Leaseholder(
            self.store,
            self.catalog,
            self._sessions,
            self._versions,
            self.deaths,
            session,
            settings,
            self._neighbours.is_alone,
            self._is_finalized,
        )
        self.leases, self._lease_tables = lease_scheme(holder, self._version)
        self._on_lost.append(self.leases.end_session)
        undo.callback(self.leases.close)
        undo.callback(_close, "leases", self.leases.release)
        self.lease_waits = LeaseWaits(
            self.store, self.leases, self._lease_tables, waits, self._sessions, self.deaths, session, settings
        )
        self.holders = Holders(self.store, self.leases, waits, self.deaths, settings)
        undo.callback(self.holders.close)
        self.publisher = Publisher(self.store, self.catalog, self.lease_waits)
        self.layouts = Layouts(keyspace)
        self.sequences = Sequences(self.store, keyspace)
        self.rowids = RowIds(self._env, self.store.clock, lambda: session().id.instance)
        self._worker = Worker(keyspace, self.catalog, self.layouts, self.context)

    def context(self) -> Context:
        """What expressions may know besides the row."""
        now_micros = self._env.wall_micros()
        values = SessionSequences(self.sequences, self._stored_sequence)
        return Context(now_micros, now_micros, self._random_uuid, self.rowids, sequences=values)

    def _stored_sequence(self, id: int) -> SequenceDescriptor:
        """For work that no session does; one that is being dropped still gives what is asked for."""
        found = self.catalog.get(self.store.snapshot(), id)
        if not isinstance(found, SequenceDescriptor):
            raise CorruptData(f"descriptor {id} is not a sequence")
        return found

    def _random_uuid(self) -> UUID:
        return UUID(int=self._env.rng.getrandbits(128), version=4)

    def _make_changer(self) -> SchemaChanger:
        return SchemaChanger(
            self.store,
            self.catalog,
            self.leases,
            self.publisher,
            self._worker,
            self.jobs,
            self.liveness.session,
            reservations=JobReservations(
                reserve=lambda job: self.runner.reserve(job),
                unreserve=lambda job: self.runner.unreserve(job),
            ),
        )

    def _has(self) -> tuple[str, ...]:
        return (SPARK,) * (self._spark is not None) + (exporting.SQL,) * self._listens

    def tasks_for(self, run: Run) -> Tasks:
        """Where the tasks of a job's run are done."""
        if SPARK not in run.needs:
            return self._process_tasks
        assert self._spark is not None, "a job that needs Spark was adopted without"
        return self._spark()

    def _open_lake(self, undo: ExitStack, engine: OpenEngine, store: str, address: str) -> Lake:
        files = open_files(address)
        identity = open_lake(self.store, files, self.jobs, engine.origin())
        manifests = Manifests(self.store.keyspace)
        cache_bytes = self.settings.current()[LAKE_MEMORY]
        bases = LakeBases(self.store, manifests, files, cache_bytes=cache_bytes)
        bases.load()
        undo.callback(bases.close)
        self.store.use_bases(bases)
        self._run_loops(undo, [self._loop("bases", bases.follow, interrupt=bases.wake)])
        return Lake(
            self.store,
            files,
            StoreHandle(store, files.address, self.store.keyspace.tenant, files.credentials, identity.id),
            manifests,
            Merges(self.store.keyspace),
            bases,
            self.catalog,
            self.jobs,
            self.settings.current,
            self.tasks_for,
        )

    def _make_job_records(self) -> None:
        by_session = SessionClaims(self._sessions)
        mixed = MixedClaims(self._sessions, self._heartbeats)
        old = OldClaims(self._sessions, self._heartbeats)

        def claims() -> Claims:
            if self._version == OLDEST:
                return old
            return by_session if self._is_finalized() else mixed

        self.jobs = Jobs(self.store.keyspace, self._sessions, self.store.clock, claims)

    def _make_jobs(self, kinds: Mapping[str, JobKind]) -> None:
        self.changer = self._make_changer()
        fill = None if self.lake is None else SparkIndexFill(self.lake, self.layouts, self.context)
        own = {SCHEMA_CHANGE: schema_change_kind(self.changer.walk, fill)}
        if self.lake is not None:
            run_query = lambda *export: rows_of(self.front, *export)  # noqa: E731
            own |= {
                flush.KIND: flush.flush_kind(self.lake),
                exporting.KIND: exporting.export_kind(self.lake, self.locations, run_query),
                IMPORT: import_kind(self.lake, self.publisher, self.locations),
            }
        self.runner = JobRunner(
            self.store,
            self.liveness.session,
            self.deaths,
            self.jobs,
            own | dict(kinds),
            self.settings.current,
            has=self._has(),
        )
        self._on_lost.append(self.runner.end_session)
        self.deaths.on_death = self.runner.wake
        self.job_retention = JobRetention(self.store, self.jobs, self.settings.current)

    def _start_loops(self, undo: ExitStack) -> None:
        deaths = self._loop("deaths", self.deaths.follow, interrupt=self.deaths.wake)
        neighbours = self._loop("neighbours", self._neighbours.follow, interrupt=self._neighbours.wake)
        reaper, memory = self._loop("reaper", self._reap), self._loop("memory", self.memory.step)
        retention = self._loop("job retention", self.job_retention.step)
        holds = self._loop("holds", self.row_locks.tables.follow, interrupt=self.row_locks.tables.wake)
        self._run_loops(undo, [deaths, neighbours, holds, reaper, retention, memory])
        self.leases.renew()
        self._run_loops(undo, [self._loop("leases", self.leases.step, interrupt=self.leases.wake)])
        if self._version != OLDEST:
            holders = self._loop("holders", self.holders.step, interrupt=self.holders.wake)
            self._run_loops(undo, [holders])
        # Drained in reverse: others are told, nothing more is adopted, the runs end.
        undo.callback(_drain_jobs, self.runner)
        self._run_loops(undo, [self._loop("jobs", self.runner.step, interrupt=self.runner.wake)])
        if self.lake is not None:
            self._run_loops(undo, [self._loop("lake", Upkeep(self.lake, self.locations).step)])
        undo.callback(_close, "instance", self.liveness.drain)

    def _start_workers(self, undo: ExitStack, start: Callable[[], Process]) -> None:
        session, lacks = self.liveness.session, self.runner.lacks
        self._starter = starter = WorkerStarter(self.store, self._sessions, session, lacks, start)
        undo.callback(starter.stop)
        self._run_loops(undo, [self._loop("workers", starter.step)])

    def _start_front(self, undo: ExitStack, listen: Listen, engine: OpenEngine) -> Front:
        cancels = Cancels(self.store, self._sessions, lambda: self._session_id().instance)
        undo.callback(cancels.close)
        inquiries = Inquiries(self.store, self._sessions, self._session_id, needs=exporting.SQL)
        undo.callback(inquiries.close)
        services = self._sql_services(runs_inline=isinstance(engine, SqliteEngine))
        view = NodeView(
            services,
            PlanCache(self._env),
            self._session_id,
            self.lease_waits.blockers,
            inquiries.ask,
        )
        instance, announce = self._session_id().instance, self.liveness.announce
        front = Front(view, listen, cancels, inquiries, instance=instance, announce=announce)
        undo.callback(_close, "door", front.stop)
        assert services.duck is not None
        columns, old = self._loop("columns", services.duck.step), self._loop("old inquiries", inquiries.tidy)
        canceling = self._loop("cancels", cancels.follow, interrupt=cancels.wake)
        answering = self._loop("inquiries", inquiries.follow, interrupt=inquiries.wake)
        self._run_loops(undo, [columns, canceling, answering, old])
        # Drained first: clients hear of it at once, and who waits for the others can still cancel.
        undo.callback(_close, "SQL", front.drain)
        return front

    def _session_id(self) -> SessionId:
        return self.liveness.session().id

    def _sql_services(self, *, runs_inline: bool) -> Services:
        return Services(
            env=self._env,
            store=self.store,
            catalog=self.catalog,
            leases=self.leases,
            changer=self.changer,
            layouts=self.layouts,
            rowids=self.rowids,
            settings=self.settings,
            jobs=self.jobs,
            users=Users(self.store.keyspace),
            locks=self.row_locks,
            advisory=self.advisory_locks,
            sequences=self.sequences,
            next_owner=count(1).__next__,
            memory=self.memory,
            codecs=BinaryCodecs(),
            is_alive=self.deaths.is_alive,
            started_micros=self._env.wall_micros(),
            lake=self.lake,
            locations=self.locations,
            spark_trouble=lambda: self._starter.trouble if self._starter else "",
            duck=self._duck(),
            runs_inline=runs_inline,
        )

    def _duck(self) -> Duck:
        settings, lake = self.settings.current(), self.lake and self.lake.files
        cache_bytes, memory_bytes = settings[COLUMNS_MEMORY], settings[DUCKDB_MEMORY]
        return Duck(self.store, lake=lake, cache_bytes=cache_bytes, memory_bytes=memory_bytes)

    def _loop(self, name: str, step: Step, interrupt: Callable[[], None] = lambda: None) -> Loop:
        """A loop at the pace of liveness: after errors too it comes back well within a session's ttl."""
        ttl_seconds = self.settings.current()[LIVENESS_TTL]
        return Loop(
            name,
            step,
            self._env,
            interval_seconds=ttl_seconds,
            backoff_max_seconds=ttl_seconds / 8,
            log=_log,
            interrupt=interrupt,
        )

    def _run_loops(self, undo: ExitStack, members: Sequence[Loop]) -> None:
        loops = Loops(members)
        undo.callback(loops.stop)
        loops.start()

    def _lost(self, session: NodeSession) -> None:
        for lost in self._on_lost:
            lost(session)

    def stop(self) -> None:
        self._undo.close()


def _drain_jobs(runner: JobRunner) -> None:
    if not runner.drain(timeout=DRAIN_SECONDS):
        _log.warning("some jobs did not stop within %.0f s; their claims end with the session", DRAIN_SECONDS)


def _close(name: str, close: Callable[[], None]) -> None:
    """A store that is away must not keep a node from stopping."""
    try:
        close()
    except TenureError as error:
        _log.warning("closing the %s: %s", name, error)
