"""Nodes with leases, schema changes and jobs over one engine, in one process, wired like `node.py`."""

import dataclasses
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeVar

from tenure.base.env import Env
from tenure.base.errors import RetryError
from tenure.base.settings import DEFINITIONS, LEASE_HOLDER_GRACE, LEASE_POLL_INTERVAL, Settings
from tenure.base.timestamp import Timestamp
from tenure.catalog.bootstrap import bootstrap
from tenure.catalog.changes.lock_schedule import LockSchedule
from tenure.catalog.changes.publisher import Publisher
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import AnyDescriptor, EnumType, Table
from tenure.catalog.leases.blockers import SchemaLeaseTable
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.catalog.leases.holder_eviction import Holders
from tenure.catalog.leases.lease_rows import LeaseRow, LeaseRows
from tenure.catalog.leases.lease_waits import LeaseWaits
from tenure.catalog.leases.node_leases import Leases
from tenure.catalog.leases.wait_records import WaitRecords
from tenure.cluster.jobs.runner import JobRunner
from tenure.cluster.sessions.liveness import NodeSession
from tenure.expr.functions.function import Context
from tenure.kv.keys import USER_TABLES, Span
from tenure.schema_change.changer import SchemaChanger
from tenure.schema_change.in_transaction import JobReservations
from tenure.schema_change.job import KIND, schema_change_kind
from tenure.schema_change.work import Worker
from tenure.storage.engine import Commit, Engine, Group, Guard, History, Outcome, ReadResult, Scan
from tenure.table.consistency import check_indexes
from tenure.table.read import rows, visible
from tenure.table.rows import Layout, Layouts
from tenure.table.sequences import Sequences, SessionSequences
from tenure.table.write import TableWriter
from tests.unit.cluster.members import Member
from tests.unit.kv.breaking import BreakingEngine, Deliver
from tests.unit.schema_change.stepping import SteppedEnv
from tests.unit.table.trees import CONTEXT

T = TypeVar("T")

ATTEMPTS = 30

QUICK = Settings(DEFINITIONS, {LEASE_HOLDER_GRACE: 2.0})
"""Whoever is in the way of a change is ended after two seconds."""


class Crashed(BaseException):
    """The process is gone: nothing it would still do, in `finally` or elsewhere, reaches the store."""


class NodeEngine(BreakingEngine):
    """A node's own way to the shared engine; once the node has crashed, nothing passes any more."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.is_dead = False

    def _check(self) -> None:
        if self.is_dead:
            raise Crashed

    def get(self, key: bytes, guard: Guard, at: Timestamp | None = None) -> ReadResult:
        self._check()
        return super().get(key, guard, at)

    def get_many(self, keys: Sequence[bytes], guard: Guard, at: Timestamp | None = None) -> ReadResult:
        self._check()
        return super().get_many(keys, guard, at)

    def scan(self, query: Scan) -> ReadResult:
        self._check()
        return super().scan(query)

    def history(self, query: History) -> ReadResult:
        self._check()
        return super().history(query)

    def check(self, commit: Commit) -> tuple[Timestamp, Outcome | None]:
        self._check()
        return super().check(commit)

    def clock_at(self) -> Timestamp:
        self._check()
        return super().clock_at()

    def commit(self, group: Group) -> list[Outcome]:
        self._check()
        return super().commit(group)

    def crash_at(self, number: int, *, has_landed: bool) -> None:
        """Lets the process end at its n-th commit from now, right before or right after it lands."""
        left = number

        def count_down(group: Group, deliver: Deliver) -> list[Outcome]:
            nonlocal left
            left -= 1
            if left:
                return deliver(group)
            self.is_dead = True
            if has_landed:
                deliver(group)
            raise Crashed

        self.on_commit = count_down

    def close(self) -> None:
        """The shared engine is closed by whoever made it."""


class SchemaNode(Member):
    def __init__(
        self, engine: Engine, env: Env, *, settings: Settings | None = None, loses_signals: bool = False
    ) -> None:
        self.wire = NodeEngine(engine)
        self.wire.loses_signals = loses_signals
        super().__init__(self.wire, env, settings=settings or QUICK)
        keyspace = self.store.keyspace
        self.catalog = Catalog(keyspace)
        self.start()
        self.transact(lambda txn: bootstrap(txn, keyspace, self.catalog))
        self.rows, self.waits = LeaseRows(keyspace, self.sessions), WaitRecords(keyspace)
        session = self.liveness.session
        self.leases = Leases(self.store, self.catalog, self.rows, session, lambda: self.settings)
        table = SchemaLeaseTable(self.store, self.rows, self.deaths, lambda: session().id)
        self.lease_waits = LeaseWaits(
            self.store,
            self.leases,
            lambda: (table,),
            self.waits,
            self.sessions,
            self.deaths,
            session,
            lambda: self.settings,
        )
        self.holders = Holders(self.store, self.leases, self.waits, self.deaths, lambda: self.settings)
        self.publisher = Publisher(self.store, self.catalog, self.lease_waits)
        self.is_finalized = True
        self.locks = LockSchedule(
            self.store, self.catalog, self.leases, self.publisher, self.jobs, lambda: self.is_finalized
        )
        self.layouts = Layouts(keyspace)
        self.sequences = Sequences(self.store, keyspace)
        self.worker = Worker(keyspace, self.catalog, self.layouts, self.context)
        self.changer = SchemaChanger(
            self.store,
            self.catalog,
            self.leases,
            self.publisher,
            self.worker,
            self.jobs,
            session,
            reservations=JobReservations(
                reserve=lambda job: self.runner.reserve(job), unreserve=lambda job: self.runner.unreserve(job)
            ),
        )
        self.make_runner({KIND: schema_change_kind(self.changer.walk)})
        self._next_beat = 0.0
        self._start_leases()

    def _start_leases(self) -> None:
        """The first step makes the watch and waits on it; the later ones are woken beforehand."""
        settings = self.settings
        self.settings = Settings(settings.definitions, {**settings, LEASE_POLL_INTERVAL: 0.1})
        self.leases.step()
        self.settings = settings

    def context(self) -> Context:
        values = SessionSequences(self.sequences, lambda id: self.stored(id))  # type: ignore[arg-type,return-value]
        return dataclasses.replace(CONTEXT, sequences=values)

    def make_runner(self, kinds, has=()) -> JobRunner:  # type: ignore[no-untyped-def]
        runner = super().make_runner(kinds, has)
        self.deaths.on_death = runner.wake
        return runner

    def _on_lost(self, session: NodeSession) -> None:
        self.leases.end_session(session)
        super()._on_lost(session)

    # ── its loops, a step at a time ────────────────────────────────────────────────────────────

    def step_liveness(self) -> None:
        now = self.store.env.monotonic()
        if now >= self._next_beat:
            self._next_beat = now + (self.liveness.step() or 0.0)

    def _still(self) -> AbstractContextManager[None]:
        """A watch that keeps its looks apart lets time pass, and nobody else take a step."""
        env = self.store.env
        return env.still() if isinstance(env, SteppedEnv) else nullcontext()

    def step_leases(self) -> None:
        """Takes a change in if there is one, without waiting for it."""
        self.leases.wake()
        with self._still():
            self.leases.step()

    def step_holders(self) -> None:
        self.holders.wake()
        with self._still():
            self.holders.step()

    def step_jobs(self) -> None:
        self.runner.wake()
        self.runner.step()

    # ── what a SQL session would do ────────────────────────────────────────────────────────────

    def bind(self, statement: str = "") -> CatalogUse:
        return self.leases.bind(self.store.begin(), statement=statement)

    def run(self, work: Callable[[CatalogUse], T], *, attempts: int = ATTEMPTS) -> T:
        """Runs a transaction, with what it declares; again on conflict, as a session would."""
        while True:
            attempts -= 1
            try:
                return self.once(work)
            except RetryError:
                if attempts == 0:
                    raise
            self.store.env.sleep(0.01)

    def once(self, work: Callable[[CatalogUse], T]) -> T:
        use = self.bind()
        try:
            result = work(use)
            self.changer.commit(use)
            return result
        finally:
            use.close()

    def layout(self, use: CatalogUse, id: int) -> Layout:
        table = use.descriptor(id)
        assert isinstance(table, Table), f"no table {id} under this lease"

        def enum(id: int) -> EnumType:
            found = use.descriptor(id)
            assert isinstance(found, EnumType)
            return found

        return self.layouts.of(table, enum)

    @contextmanager
    def writer(self, use: CatalogUse, id: int) -> Iterator[TableWriter]:
        """For one statement."""
        writer = TableWriter(self.layout(use, id), lambda other: self.layout(use, other), self.context())
        yield writer
        writer.finish(use.txn)

    def insert(self, use: CatalogUse, id: int, *values: object) -> None:
        with self.writer(use, id) as writer:
            named = dict(zip(writer.layout.public, values, strict=False))
            writer.insert(use.txn, named)

    def put_rows(self, id: int, *listed: tuple[object, ...]) -> None:
        def insert(use: CatalogUse) -> None:
            for values in listed:
                self.insert(use, id, *values)

        self.run(insert)

    # ── what a test looks at ───────────────────────────────────────────────────────────────────

    def stored(self, id: int) -> AnyDescriptor | None:
        return self.catalog.get(self.store.snapshot(), id)

    def table(self, id: int) -> Table:
        found = self.stored(id)
        assert isinstance(found, Table)
        return found

    def shown(self, id: int) -> list[tuple[object, ...]]:
        """The rows, as somebody sees them who reads the stored version."""
        layout = self._stored_layout(id)
        return [tuple(visible(layout, row).values()) for row in rows(self.store.snapshot(), layout)]

    def wrong_indexes(self, id: int) -> list[str]:
        return check_indexes(self.store.snapshot(), self._stored_layout(id), self.context())

    def _stored_layout(self, id: int) -> Layout:
        return self.layouts.of(self.table(id), lambda each: self.stored(each))  # type: ignore[arg-type,return-value]

    def user_keys(self) -> list[bytes]:
        keyspace = self.store.keyspace
        span = Span(keyspace.table_span(USER_TABLES).lo, keyspace.all().hi)
        return [key for key, _ in self.store.snapshot().scan(span)]

    def lease_rows(self) -> list[LeaseRow]:
        return list(self.rows.list(self.store.snapshot()))

    def names(self) -> dict[str, int]:
        return {entry.name: entry.id for entry in self.catalog.names(self.store.snapshot())}

    def open_jobs(self) -> list[int]:
        return [control.id for control in self.jobs.open(self.store.snapshot())]


class Cluster:
    """Some nodes over one engine; their loops run whenever somebody waits."""

    def __init__(self, engine: Engine, env: SteppedEnv, *, settings: Settings | None = None) -> None:
        self.engine = engine
        self.env = env
        self._settings = settings
        self.loses_signals = False
        self.nodes: list[SchemaNode] = []

    def add(self, *, without: Collection[str] = ()) -> SchemaNode:
        """A new node; loops that are named do not run there."""
        node = SchemaNode(self.engine, self.env, settings=self._settings, loses_signals=self.loses_signals)
        self.nodes.append(node)
        parts = {
            "liveness": node.step_liveness,
            "leases": node.step_leases,
            "holders": node.step_holders,
            "jobs": node.step_jobs,
        }
        for part in [part for name, part in parts.items() if name not in without]:
            self.env.add(lambda node=node, part=part: self._step(node, part))  # type: ignore[misc]
        return node

    def _step(self, node: SchemaNode, part: Callable[[], None]) -> None:
        """A node whose process is gone takes no step; one that fails comes back, as loops do."""
        if node.wire.is_dead:
            return
        try:
            part()
        except Crashed:
            return
        except Exception as error:
            # What fails for want of a session or a store is tried again; anything else is a bug.
            if not getattr(error, "sqlstate", ""):
                raise

    def settle(self, seconds: float = 0.0) -> None:
        """Lets so much time pass, and everybody act in it."""
        until = self.env.monotonic() + seconds
        while True:
            for _ in range(4):
                self.env.give_way()
            if self.env.monotonic() >= until:
                return
            self.env.advance(min(1.0, until - self.env.monotonic()))

    def until(self, is_so: Callable[[], bool], *, seconds: float = 600.0) -> None:
        """Lets time pass until it is so."""
        deadline = self.env.monotonic() + seconds
        while not is_so():
            assert self.env.monotonic() < deadline, "it does not come to pass"
            self.settle(1.0)
