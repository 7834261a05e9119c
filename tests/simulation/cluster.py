"""One run: nodes over a shared engine, their clients, the nemesis, and then the verdict.

    0 ───────────── faults, bursts of operations ───────────── 0.8 T ──── calm ──── T
                                                                └ everything must end by T

Walk: `__main__` and `shrink` call `run`; it returns a `Result` with violations and figures.
"""

import gc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from tenure.base.settings import DEFINITIONS, WATCH_POLL_INTERVAL, Settings
from tenure.kv import commits, snapshot, watch
from tests.simulation import model, predicates, sometimes
from tests.simulation.hub import Cancelled, Hub, Machine, SimEnv, Task
from tests.simulation.knobs import NEMESIS_FAULTS, Knobs, draw_knobs
from tests.simulation.predicates import Violation
from tests.simulation.shapes import PROFILES, SHAPES
from tests.simulation.tape import Kept, Tape
from tests.simulation.trace import Trace
from tests.simulation.tracing import TracingStore
from tests.simulation.wire import SimEngine, Wire
from tests.simulation.workload import LAKE, PLAIN, STAMPED, SWEPT, Client, watch_forever

TENANTS = (1, 2)
"""Two on one engine; most clients are the first one's."""

WATCHES = ((2, (PLAIN,)), (1, (PLAIN, SWEPT)), (1, (STAMPED, LAKE)))
"""By node: whose tables are watched, and which."""

CALM_SECONDS = 6.0
"""Before the end of a run: what had been committed by then, every watch must have told by the end."""


@dataclass
class Result:
    seed: int
    violations: list[Violation]
    trace: Trace
    tape: Tape
    faults: Counter[str]
    steps: int
    trace_hash: str
    knobs: Knobs


class Node:
    def __init__(self, cluster: "Cluster", number: int) -> None:
        self.cluster = cluster
        self.number = number
        self.machine = Machine(cluster.hub, f"n{number}")
        self.env = SimEnv(cluster.hub, self.machine)
        self.clients: list[tuple[Client, Task]] = []
        self.watcher = ""
        self.lanes: list[bytes] = []

    def start(self) -> None:
        cluster, name = self.cluster, self.machine.name
        self.machine.is_up = True
        engine = SimEngine(cluster.wire, self.machine)
        stores = [TracingStore(engine, self.env, tenant=each, settings=cluster.settings) for each in TENANTS]
        self.lanes = engine.lanes
        self.clients = []
        for n in range(cluster.knobs.clients):
            store = stores[n == 2]
            client = Client(
                cluster.hub, cluster.knobs, store, f"{name}.c{n}", shapes=SHAPES, weights=cluster.weights
            )
            self.clients.append((client, self.env.spawn(f"c{n}", client.run)))
        tenant, tables = WATCHES[self.number % len(WATCHES)]
        self.watcher = f"{name}.watch{self.machine.generation}"
        self.env.spawn("watch", partial(watch_forever, cluster.hub, stores[tenant - 1], self.watcher, tables))

    def cut_power(self, *, restart_after: float | None) -> None:
        """Does not return if one of the node's own tasks calls it."""
        self.cluster.wire.unsubscribe_all(self.machine.name)
        if restart_after is not None:
            self.cluster.hub.call_later(restart_after, self._restart)
        self.cluster.hub.cut_power(self.machine)

    def _restart(self) -> None:
        if self.machine.is_up:
            return
        if self.cluster.hub.tape.chance(f"{self.machine.name}.close lanes", 0.5):
            self.close_lanes()
        self.cluster.trace.seen["restart"] += 1
        self.start()

    def close_lanes(self) -> None:
        """What others do to a node they take for dead."""
        for lane in self.lanes:
            self.cluster.wire.engine.close_lane(lane)
        self.lanes = []


class Cluster:
    def __init__(self, tape: Tape, knobs: Knobs, weights: Mapping[str, float]) -> None:
        self.tape = tape
        self.knobs = knobs
        self.weights = weights
        self.trace = Trace()
        self.hub = Hub(tape)
        self.wire = Wire(self.hub, knobs, self.trace)
        self.settings = Settings(DEFINITIONS).with_value(WATCH_POLL_INTERVAL, knobs.poll_seconds)
        self.nodes = [Node(self, n + 1) for n in range(knobs.nodes)]
        self._by_machine = {node.machine: node for node in self.nodes}
        self.wire.power_cut = self._crash

    def start(self) -> None:
        for node in self.nodes:
            self._skew(node)
            node.start()
        self.hub.spawn(None, "nemesis", self._nemesis)
        self.hub.call_later(self.knobs.faults_end, self._calm_down)

    def _skew(self, node: Node) -> None:
        if self.knobs.skew != "none":
            reach = 0.5 if self.knobs.skew == "within max_offset" else 3.0
            node.machine.set_clock(jump=self.tape.between(f"{node.machine.name}.skew", -reach, reach) or 0.0)
            self.wire.faults[f"skew {self.knobs.skew}"] += 1

    def _crash(self, machine: Machine) -> None:
        self._by_machine[machine].cut_power(restart_after=self._soon(f"{machine.name}.restart"))

    def _soon(self, site: str) -> float:
        left = self.knobs.faults_end + 1.0 - self.hub.t
        return min(left, 0.01 + 8.0 * self.tape.draw(site) ** 2)

    def _calm_down(self) -> None:
        for node in self.nodes:
            node.machine.set_right()
        if self.knobs.is_liveness:
            # For good: no signal is ever heard again, and one node stays dead.
            self.wire.is_deaf = True
            if len(self.nodes) > 1:
                self.nodes[-1].cut_power(restart_after=None)
                self.nodes[-1].machine.is_up = True  # so that no restart that was planned happens
                self.nodes[-1].clients, self.nodes[-1].watcher = [], ""

    # ── the nemesis ────────────────────────────────────────────────────────────────────────────

    def _nemesis(self) -> None:
        active = [kind for kind in NEMESIS_FAULTS if self.knobs.rates.get(kind)]
        while active and self.wire.is_faulty():
            self.hub.sleep(self.tape.between("nemesis.wait", 0.2, 4.0), "nemesis")
            for kind in active:
                if self.wire.fires(kind):
                    self._strike(kind, self.nodes[self.tape.pick("nemesis.node", len(self.nodes))])

    def _strike(self, kind: str, node: Node) -> None:
        machine = node.machine
        if not machine.is_up:
            return
        match kind:
            case "pause":
                machine.paused_until = self.hub.t + self._soon("nemesis.pause")
            case "power cut":
                node.cut_power(restart_after=self._soon("nemesis.restart"))
            case "declared dead":
                node.close_lanes()
                generation = machine.generation
                self.hub.call_later(self._soon("nemesis.death"), lambda: self._bury(node, generation))
            case "clock jump":
                machine.set_clock(jump=self.tape.between("nemesis.jump", -4.0, 4.0))
            case "clock frozen":
                machine.set_clock(rate=0.0)
            case "clock drift":
                machine.set_clock(rate=self.tape.between("nemesis.rate", 0.9, 1.1))
            case "cancel":
                self._cancel(node)

    def _bury(self, node: Node, generation: int) -> None:
        if node.machine.is_up and node.machine.generation == generation:
            node.cut_power(restart_after=self._soon("nemesis.restart"))

    def _cancel(self, node: Node) -> None:
        client, task = node.clients[self.tape.pick("nemesis.client", len(node.clients))]
        if client.operation and not task.is_over:
            task.thrown = Cancelled()


def run(
    seed: int,
    *,
    seconds: float = 60.0,
    nodes: int = 3,
    profile: str = "all",
    kept: Kept | None = None,
    until: float | None = None,
    change: Callable[[Knobs], None] | None = None,
) -> Result:
    """Runs a seed, or what was kept of its tape. With `until` it is cut short and not asked to end well."""
    tape = Tape(seed, kept)
    knobs = draw_knobs(tape, seconds=seconds, nodes=nodes)
    if change is not None:
        change(knobs)
    if not gc.get_freeze_count():
        gc.freeze()  # what was imported need not be looked at after every run
    gc.disable()
    with _sizes(knobs):
        cluster = Cluster(tape, knobs, PROFILES[profile])
        hub, trace = cluster.hub, cluster.trace
        cluster.start()
        hub.run(until if until is not None else seconds - CALM_SECONDS)
        clock_at = cluster.wire.engine.clock_at()
        if until is None:
            hub.run(seconds)
            _note_stuck(cluster, clock_at)
        violations = [Violation("crash", f"{name}: {error!r}", trace.step) for name, error in hub.crashed]
        violations += predicates.check(trace)
        violations += model.compare(trace, cluster.wire.engine)
        sometimes.observe(trace)
        trace_hash = hub.trace_hash()
        hub.close()
    cluster.wire.engine.close()
    gc.enable()
    return Result(seed, violations, trace, tape, cluster.wire.faults, hub.steps, trace_hash, knobs)


@contextmanager
def _sizes(knobs: Knobs) -> Iterator[None]:
    """Pages, batches and groups so small that few rows fill them."""
    former = snapshot.PAGE_ROWS, watch.BATCH_ROWS, commits.GROUP_MAX
    snapshot.PAGE_ROWS, watch.BATCH_ROWS = knobs.page_rows, knobs.batch_rows
    commits.GROUP_MAX = knobs.group_max
    try:
        yield
    finally:
        snapshot.PAGE_ROWS, watch.BATCH_ROWS, commits.GROUP_MAX = former


def _note_stuck(cluster: Cluster, clock_at: int) -> None:
    for node in cluster.nodes:
        for client, task in node.clients:
            if client.operation and not task.is_over:
                cluster.trace.stuck.append(
                    f"{client.name}: {client.operation} since {client.since_t:.3f}, waits at {task.site}"
                )
        position = cluster.trace.positions.get(node.watcher)
        if node.watcher and (position is None or position.resolved_at < clock_at):
            cluster.trace.stuck.append(f"{node.watcher}: it has not told what was committed long ago")
