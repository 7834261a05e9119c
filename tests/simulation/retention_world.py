"""The world of retention: zones that change, protections, sweeps of several nodes, and rows in both tiers.

    0 ──── faults, operations, sweeps ──── T1 ── all is released, the ttl is a second, two sweeps ── T
                                                  └ what may go is gone, and no record is left

Walk: `cluster.run` makes a `RetentionCluster` for the profiles of `retention_client`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from tenure.base.errors import TenureError
from tenure.base.settings import (
    CLEAN_AFTER,
    FILE_GRACE,
    GC_SYSTEM_TTL,
    PROTECTED_RECORDS_MAX,
    PROTECTED_REFRESH_INTERVAL,
)
from tenure.bulk import upkeep
from tenure.catalog.changes.zone_changes import configure
from tenure.catalog.descriptors.zones import all_zones
from tenure.cluster.sessions.session_records import SessionId
from tenure.kv.keys import (
    CLEANED_MARKS,
    MANIFESTS,
    MERGES,
    PROTECTIONS,
    PROTECTIONS_META,
    SWEEPS,
    THRESHOLDS,
    ZONES,
    Keyspace,
)
from tenure.kv.transaction import Transaction
from tenure.retention.sweeping import collection, removal, rounds
from tenure.retention.sweeping import job as gc
from tests.simulation import predicates, retention_predicates
from tests.simulation.knobs import STORE_NEMESIS_FAULTS, Knobs, draw_into
from tests.simulation.lake_files import SimTree
from tests.simulation.nodes import Cluster, Node
from tests.simulation.predicates import Violation
from tests.simulation.retention_client import RetentionClient
from tests.simulation.retention_jobs import Runner
from tests.simulation.retention_places import end_drop_in
from tests.simulation.retention_process import INDEXES, TABLES, RetentionProcess
from tests.simulation.retention_trace import RetentionTrace, RetentionWire
from tests.simulation.tape import Tape
from tests.simulation.workload import watch_spans

SWEPT_SYSTEM_TABLES = (
    THRESHOLDS,
    CLEANED_MARKS,
    PROTECTIONS_META,
    ZONES,
    MANIFESTS,
    MERGES,
    PROTECTIONS,
    SWEEPS,
)
"""Those of the system heads that sweeps look at here: the ones whose history something depends on."""

TTLS = (5, 2, 3, 12)


@dataclass
class RetentionKnobs(Knobs):
    zone_seconds: int = TTLS[0]
    """The ttl of the default zone at the beginning."""
    system_seconds: float = 20.0
    lazy_rate: float = 0.0
    """How often a tracker becomes lazy when it is to read the protections anew."""
    lazy_seconds: float = 1.0
    """How long it stays so at most."""
    merge_seconds: float = 0.5
    """How long a merge waits at most between two pages."""
    clean_seconds: float = 0.5
    grace_seconds: float = 0.5
    batch_removals: int = 2_000
    """Rows that one commit of a sweep looks at."""
    records_max: int = 512

    @property
    def faults_end(self) -> float:
        return self.seconds * 0.7


def draw_retention_knobs(tape: Tape, *, seconds: float, nodes: int) -> RetentionKnobs:
    knobs = draw_into(RetentionKnobs(seconds, nodes), tape, STORE_NEMESIS_FAULTS)
    # A sweep makes many calls: slower, and none would come to its end.
    knobs.read_seconds = min(knobs.read_seconds, 0.02)
    knobs.commit_seconds = min(knobs.commit_seconds, 0.3)
    knobs.keys = tape.choose("knob.keys", (3, 2, 4))
    knobs.clients = tape.choose("knob.clients", (2, 2, 3))
    knobs.zone_seconds = tape.choose("knob.zone", TTLS)
    knobs.system_seconds = tape.choose("knob.system", (20.0, 4.0, 8.0))
    knobs.lazy_rate = tape.choose("knob.lazy", (0.0, 0.3, 0.6))
    knobs.lazy_seconds = tape.choose("knob.spell", (1.0, 4.0, 12.0))
    knobs.merge_seconds = tape.choose("knob.merge", (0.5, 2.0, 8.0))
    knobs.clean_seconds = tape.choose("knob.clean after", (0.5, 0.0, 2.0))
    knobs.grace_seconds = tape.choose("knob.grace", (0.5, 0.0, 2.0))
    knobs.batch_removals = tape.choose("knob.removals", (2_000, 3, 5))
    knobs.records_max = tape.choose("knob.records", (512, 512, 6))
    return knobs


class RetentionNode(Node):
    cluster: "RetentionCluster"

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.process: RetentionProcess | None = None

    def start(self) -> None:
        self.machine.is_up = True
        self.process, self.clients, self.watcher = None, [], ""
        self.env.spawn("boot", self._boot)

    def _boot(self) -> None:
        cluster, name = self.cluster, self.machine.name
        while self.process is None:
            try:
                self.process = RetentionProcess(self)
            except TenureError:
                cluster.trace.seen["start failed"] += 1
                self.env.sleep(0.5)
        process = self.process
        self.lanes = process.engine.lanes
        process.start_loops()
        for runner, kinds in (("gc", (gc.KIND,)), ("merges", ("flush", "import")), ("holds", ("hold",))):
            self.env.spawn(runner, Runner(process, runner, kinds).run)
        for n in range(cluster.knobs.clients):
            client = RetentionClient(process, f"{name}.c{n}")
            self.clients.append((client, self.env.spawn(f"c{n}", client.run)))
        self.watcher = f"{name}.watch{self.machine.generation}"
        spans = [process.keyspace.head_span(head) for head in cluster.user_heads()[: 2 * self.number]]
        self.env.spawn("watch", partial(watch_spans, cluster.hub, process.store, self.watcher, spans))

    def cut_power(self, *, restart_after: float | None) -> None:
        process, self.process = self.process, None
        if process is not None:
            self.cluster.dead.add(process.session)
        super().cut_power(restart_after=restart_after)

    def die(self) -> None:
        super().die()
        self.process = None


class RetentionCluster(Cluster):
    knobs: RetentionKnobs
    trace: RetentionTrace
    wire: RetentionWire

    def __init__(self, tape: Tape, knobs: RetentionKnobs, weights: Mapping[str, float]) -> None:
        self.dead: set[SessionId] = set()
        """The sessions of processes that were cut off."""
        self.tables = list(TABLES)
        """All that were ever made."""
        super().__init__(tape, knobs, weights, RetentionTrace())
        self.tree = self.wire.tree = SimTree(self.hub)
        self.settings = (
            self.settings.with_value(CLEAN_AFTER, knobs.clean_seconds)
            .with_value(FILE_GRACE, knobs.grace_seconds)
            .with_value(GC_SYSTEM_TTL, knobs.system_seconds)
            .with_value(PROTECTED_REFRESH_INTERVAL, 3.0)
            .with_value(PROTECTED_RECORDS_MAX, knobs.records_max)
        )
        self.trace.based.update(self.user_heads())

    def make_wire(self) -> RetentionWire:
        return RetentionWire(self.hub, self.knobs, self.trace)

    def make_node(self, number: int) -> Node:
        return RetentionNode(self, number)

    def user_heads(self) -> list[bytes]:
        keyspace = Keyspace(1)
        return [keyspace.head(table, index) for table in self.tables for index in INDEXES]

    # ── the end ────────────────────────────────────────────────────────────────────────────────

    def calm_down(self) -> None:
        super().calm_down()
        self.hub.call_later(2.5, self._close)

    def _close(self) -> None:
        # Batches are large from here on: what is left of all sweeps has little time. `sizes` takes it back.
        removal.BATCH_ROWS = removal.BATCH_ROWS_MIN = removal.BATCH_ROWS_MAX = 2_000
        collection.BATCH_ROWS = 2_000
        for node in cast(list[RetentionNode], self.nodes):
            if node.process is not None:
                node.env.spawn("close", partial(self._close_by, node.process))
                return

    def _close_by(self, process: RetentionProcess) -> None:
        """Lets jobs end, releases all, lowers the ttl, and sweeps until nothing more can go."""
        while list(process.jobs.open(process.store.snapshot())):
            self.hub.sleep(0.2, "jobs end")
        process.reconciler.step()
        for record in process.listing.list_all(process.store.snapshot()).records:
            process.store.transact(partial(_release, process, record.id))
        for table in self.tables:
            process.store.transact(partial(end_drop_in, process, table))
        process.store.transact(partial(_lower, process.keyspace))
        self.trace.lowered_at = process.store.engine.clock_at()
        self.hub.sleep(2.0, "ttl")
        process.store.transact(lambda txn: txn.put(process.keyspace.key(98, (1,)), b"tick"))
        for _ in range(2):
            job = process.store.transact(lambda txn: gc.start(txn, process.services))
            while process.jobs.is_open(process.store.snapshot(), job.id):
                self.hub.sleep(0.2, "sweep ends")
        self.trace.closed = self.trace.tick()

    def judge(self, *, is_whole: bool) -> list[Violation]:
        stricter = (predicates.marks, predicates.removals, predicates.refused_reads)
        found = [*self.trace.found, *predicates.check(self.trace, without=stricter)]
        found += [Violation("keep-exact", f"a merge kept {row}", 0) for row in self.tree.kept_in_vain]
        return found + retention_predicates.check(self, is_whole=is_whole)

    def compare(self) -> Iterator[Violation]:
        return iter(())  # what is present was compared with the history at every commit that lost something


def _release(process: RetentionProcess, id: bytes, txn: Transaction) -> None:
    process.protections.release(txn, id)


def _lower(keyspace: Keyspace, txn: Transaction) -> None:
    for key in all_zones(txn, keyspace):
        configure(txn, keyspace, key, gc_ttl_seconds=1)


@contextmanager
def sizes(knobs: Knobs) -> Iterator[None]:
    """Few rows per commit that removes or cleans, and few system heads: so that sweeps end, and meet."""
    if not isinstance(knobs, RetentionKnobs):
        yield
        return
    changed: tuple[tuple[Any, str, Any], ...] = (
        (removal, "BATCH_ROWS", knobs.batch_removals),
        (removal, "BATCH_ROWS_MIN", knobs.batch_removals),
        (removal, "BATCH_ROWS_MAX", knobs.batch_removals),
        (removal, "CURSOR_BATCHES", 3),
        (collection, "BATCH_ROWS", knobs.batch_removals),
        (rounds, "TURN_BATCHES", 2),
        (rounds, "STALE_ATTEMPTS_MAX", 3),
        (rounds, "system_heads", _system_heads),
        (upkeep, "CLEAN_ROWS", 3),
        (upkeep, "CLEAN_COMMITS", 2),
    )
    former = [(module, name, getattr(module, name)) for module, name, _ in changed]
    for module, name, value in changed:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in former:
            setattr(module, name, value)


def _system_heads(keyspace: Keyspace) -> Iterator[bytes]:
    return (keyspace.head(table) for table in SWEPT_SYSTEM_TABLES)
