"""One process of the world of schema changes, built part by part as `tenure.node` does it.

    start    store -> session -> leases -> jobs -> heartbeat, deaths, reaper, leases, holders -> jobs
    drain    jobs -> leases ... -> session -> store

Walk: `schema_nodes.SchemaNode` makes one per start; `schema_client` uses its parts as SQL would.
"""

import logging
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, cast
from uuid import UUID

from tenure.base.errors import TenureError, UserError
from tenure.base.loops import Loop, Loops, Step
from tenure.base.settings import LIVENESS_TTL, Settings
from tenure.catalog.bootstrap import bootstrap
from tenure.catalog.changes.lock_schedule import LockSchedule
from tenure.catalog.changes.publisher import Publisher
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.leases.blockers import LeaseTable, SchemaLeaseTable
from tenure.catalog.leases.catalog_use import Lease
from tenure.catalog.leases.holder_eviction import Holders
from tenure.catalog.leases.lease_rows import LeaseRows
from tenure.catalog.leases.lease_waits import LeaseWaits
from tenure.catalog.leases.wait_records import WaitRecords
from tenure.cluster.jobs.job_table import Jobs
from tenure.cluster.jobs.runner import JobRunner
from tenure.cluster.sessions.deaths import Deaths
from tenure.cluster.sessions.liveness import Liveness, NodeSession
from tenure.cluster.sessions.session_records import Sessions
from tenure.expr.functions.function import Context
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.schema_change.changer import SchemaChanger
from tenure.schema_change.in_transaction import JobReservations
from tenure.schema_change.job import KIND, schema_change_kind
from tenure.schema_change.work import Worker
from tenure.table.rowids import RowIds
from tenure.table.rows import Layouts
from tenure.version_one.expiring_lease_rows import OldLeaseRows
from tenure.version_one.expiring_lease_table import ExpiringLeaseTable
from tests.simulation.catalog_predicates import differences
from tests.simulation.expiring_trace import TracingDescriptorLeases, TracingExpiring
from tests.simulation.schema_changes import first_tables
from tests.simulation.schema_knobs import SESSION
from tests.simulation.schema_trace import TracingLeases
from tests.simulation.tracing import TracingStore
from tests.simulation.wire import SimEngine

if TYPE_CHECKING:
    from tests.simulation.schema_nodes import SchemaNode

VERSION = 2
DRAIN_SECONDS = 3.0

Scheme = TracingLeases | TracingExpiring


class SchemaProcess:
    def __init__(self, node: "SchemaNode") -> None:
        self.cluster = node.cluster
        self.machine = node.machine
        self.env = node.env
        self.trace = self.cluster.schema_trace
        self.name = self.trace.process(self.machine.name)
        self.engine = SimEngine(self.cluster.wire, self.machine)
        self.stalled_until = {"leases": 0.0, "holders": 0.0}
        with ExitStack() as undo:
            self.store = TracingStore(self.engine, self.env, settings=self.cluster.settings)
            undo.callback(_close, self.store.close)
            self._start_session(undo)
            self._make_leases(undo)
            self._make_jobs()
            self._start_loops(undo)
            self._undo = undo.pop_all()

    def _settings(self) -> Settings:
        return self.cluster.settings

    def _start_session(self, undo: ExitStack) -> None:
        self.sessions = Sessions(self.store.keyspace)
        self.liveness = Liveness(
            self.store, self.sessions, self._settings, address="", version=VERSION, on_lost=self._lost
        )
        self.liveness.step()
        undo.callback(_close, self._release)
        self.deaths = Deaths(self.store, self.sessions)
        undo.callback(self.deaths.close)

    def _make_leases(self, undo: ExitStack) -> None:
        keyspace = self.store.keyspace
        self.catalog = Catalog(keyspace)
        self.store.transact(self._prepare)
        waits = WaitRecords(keyspace)
        session, settings = self.liveness.session, self._settings
        self.leases, self._lease_tables = self._lease_scheme()
        undo.callback(self.leases.close)
        undo.callback(_close, self.leases.release)
        self.lease_waits = LeaseWaits(
            self.store, self.leases, self._lease_tables, waits, self.sessions, self.deaths, session, settings
        )
        self.holders = Holders(self.store, self.leases, waits, self.deaths, settings)
        undo.callback(self.holders.close)
        self.publisher = Publisher(self.store, self.catalog, self.lease_waits)
        self.layouts = Layouts(keyspace)
        self._rowids = RowIds(self.env, self.store.clock, lambda: session().id.instance)
        self.worker = Worker(keyspace, self.catalog, self.layouts, self.context)

    def _lease_scheme(self) -> tuple[Scheme, Callable[[], Sequence[LeaseTable]]]:
        """How this process leases, and whose rows it waits for."""
        store, catalog, session = self.store, self.catalog, self.liveness.session
        if self.cluster.knobs.scheme == SESSION:
            rows = LeaseRows(store.keyspace, self.sessions)
            leases = TracingLeases(store, catalog, rows, session, self._settings)
            leases.attach(self.trace, self.name, self._check_cache)
            by_session = SchemaLeaseTable(store, rows, self.deaths, lambda: session().id)
            return leases, lambda: (by_session,)
        old_rows = OldLeaseRows(store.keyspace, catalog)
        beside = TracingDescriptorLeases(
            store, catalog, old_rows, lambda: session().id.instance, self._settings
        )
        by_version = ExpiringLeaseTable(store, old_rows, beside.owner)
        expiring = TracingExpiring(store, catalog, beside, session, self._settings)
        expiring.attach(self.trace, self.name)
        beside.attach(self.trace, self.name, expiring.record)
        return expiring, lambda: (by_version,)

    def _prepare(self, txn: Transaction) -> None:
        if bootstrap(txn, self.store.keyspace, self.catalog):
            first_tables(txn, self.catalog)

    def context(self) -> Context:
        now_micros, rng = self.env.wall_micros(), self.env.rng
        return Context(
            now_micros, now_micros, lambda: UUID(int=rng.getrandbits(128), version=4), self._rowids
        )

    def _make_jobs(self) -> None:
        self.jobs = Jobs(self.store.keyspace, self.sessions, self.store.clock)
        self.changer = SchemaChanger(
            self.store,
            self.catalog,
            self.leases,
            self.publisher,
            self.worker,
            self.jobs,
            self.liveness.session,
            reservations=JobReservations(
                reserve=lambda job: self.runner.reserve(job),
                unreserve=lambda job: self.runner.unreserve(job),
            ),
        )
        kinds = {KIND: schema_change_kind(self.changer.walk)}
        self.runner = JobRunner(
            self.store, self.liveness.session, self.deaths, self.jobs, kinds, self._settings
        )
        self.deaths.on_death = self.runner.wake
        locking = self.store, self.catalog, self.leases, self.publisher, self.jobs
        self.locks = LockSchedule(*locking, lambda: True)

    def _start_loops(self, undo: ExitStack) -> None:
        heartbeat = self._loop("heartbeat", self.liveness.step)
        deaths = self._loop("deaths", self.deaths.follow, interrupt=self.deaths.wake)
        self._run_loops(undo, [heartbeat, deaths, self._loop("reaper", self._reap)])
        self.leases.renew()
        leases = self._loop("leases", self._step_leases, interrupt=self.leases.wake)
        holders = self._loop("holders", self._step_holders, interrupt=self.holders.wake)
        self._run_loops(undo, [leases, holders])
        if "watch a table" in self.cluster.weights:
            locks = self._loop("locks", self.locks.step)
            self.locks.on_wish = locks.wake
            self._run_loops(undo, [locks])
        undo.callback(self._drain_jobs)
        self._run_loops(undo, [self._loop("jobs", self.runner.step, interrupt=self.runner.wake)])
        undo.callback(_close, self.liveness.drain)

    def _loop(self, name: str, step: Step, interrupt: Callable[[], None] = lambda: None) -> Loop:
        ttl_seconds = self._settings()[LIVENESS_TTL]
        return Loop(
            name,
            step,
            self.env,
            interval_seconds=ttl_seconds,
            backoff_max_seconds=ttl_seconds / 8,
            log=cast(logging.Logger, self.cluster.log),
            interrupt=interrupt,
        )

    def _run_loops(self, undo: ExitStack, members: Sequence[Loop]) -> None:
        loops = Loops(members)
        undo.callback(loops.stop)
        loops.start()

    def _reap(self) -> None:
        self.deaths.reap()
        for table in self._lease_tables():
            table.sweep()
        self.lease_waits.tidy()

    def _step_leases(self) -> float | None:
        self._stall("leases")
        return self.leases.step()

    def _step_holders(self) -> float | None:
        self._stall("holders")
        return self.holders.step()

    def _stall(self, name: str) -> None:
        seconds = self.stalled_until[name] - self.cluster.hub.t
        if seconds > 0:
            self.env.sleep(seconds)

    def _check_cache(self, leases: list[Lease]) -> None:
        """I17, as soon as a lease is taken into use: of that one and of those still open."""
        for lease in leases:
            snapshot = Snapshot(self.cluster.wire.engine, self.store.keyspace, lease.at)
            for message in differences(self.catalog, lease.version, snapshot):
                self.trace.wrong("I17", f"{self.name}, lease at {lease.at}: {message}")

    def _lost(self, session: NodeSession) -> None:
        self.leases.end_session(session)
        self.runner.end_session(session)

    # ── ending ─────────────────────────────────────────────────────────────────────────────────

    def stop(self) -> None:
        self._undo.close()

    def _drain_jobs(self) -> None:
        self.runner.drain(timeout=DRAIN_SECONDS)

    def _release(self) -> None:
        session = self.liveness._session
        if session is not None:
            self.trace.releases.add(session.id)
        self.liveness.release()


def _close(close: Callable[[], None]) -> None:
    """A store that is away must not keep a node from stopping."""
    try:
        close()
    except TenureError:
        pass


class Log:
    """Stands for the loops' and the runner's loggers: an error nobody expects is a violation."""

    def __init__(self) -> None:
        self.broken: list[str] = []

    def info(self, *_: object, **__: object) -> None:
        return None

    warning = info

    def error(self, message: str, *values: object, exc_info: bool = False) -> None:
        if exc_info:
            self.exception(message, *values)

    critical = error

    def exception(self, message: str, *values: object) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, UserError):  # rows in the way of a change are no fault of ours
            self.broken.append(f"{message % values}: {_where(error)}")


def _where(error: BaseException | None) -> str:
    """The error and the place that raised it."""
    frame = None if error is None else error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    place = "" if frame is None else f" in {frame.tb_frame.f_code.co_name}, line {frame.tb_lineno}"
    return f"{error!r}{place}"
