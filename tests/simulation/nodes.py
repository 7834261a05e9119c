"""Nodes over a shared engine, and the nemesis: what both worlds have in common, and the store's nodes.

    world     a node runs                                        its cluster
    store     clients, a watch                                   `Cluster`
    jobs      a session, deaths, a runner of jobs, clients       `members.JobCluster`
    lake      clients of rows that move, bases, a watch          `lake_world.LakeCluster`
    retention the same with zones, protections and sweeps        `retention_world.RetentionCluster`

Walk: `cluster.run` makes a `Cluster` and starts it; it starts each `Node` and strikes at them.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from tenure.base.settings import DEFINITIONS, WATCH_POLL_INTERVAL, Settings
from tests.simulation import model, predicates
from tests.simulation.hub import Cancelled, Hub, Machine, SimEnv, Task
from tests.simulation.knobs import STORE_NEMESIS_FAULTS, Knobs
from tests.simulation.predicates import Violation
from tests.simulation.shapes import SHAPES
from tests.simulation.tape import Tape
from tests.simulation.trace import Trace
from tests.simulation.tracing import TracingStore
from tests.simulation.wire import SimEngine, Wire
from tests.simulation.workload import LAKE, PLAIN, STAMPED, SWEPT, Client, watch_forever

TENANTS = (1, 2)
"""Two on one engine; most clients are the first one's."""

WATCHES = ((2, (PLAIN,)), (1, (PLAIN, SWEPT)), (1, (STAMPED, LAKE)))
"""By node: whose tables are watched, and which."""


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
        cluster = self.cluster
        self.machine.is_up = True
        engine = SimEngine(cluster.wire, self.machine)
        stores = [TracingStore(engine, self.env, tenant=each, settings=cluster.settings) for each in TENANTS]
        self.lanes = engine.lanes
        self.clients = []
        self.serve(stores)

    def serve(self, stores: list[TracingStore]) -> None:
        cluster, name = self.cluster, self.machine.name
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

    def die(self) -> None:
        """For good: no restart that was planned happens."""
        self.cut_power(restart_after=None)
        self.machine.is_up = True
        self.clients, self.watcher = [], ""

    def stuck(self, clock_at: int) -> Iterator[str]:
        """What should have come to its end, or told what was committed by `clock_at`, and has not."""
        for client, task in self.clients:
            if client.operation and not task.is_over:
                yield f"{client.name}: {client.operation} since {client.since_t:.3f}, waits at {task.site}"
        position = self.cluster.trace.positions.get(self.watcher)
        if self.watcher and (position is None or position.resolved_at < clock_at):
            yield f"{self.watcher}: it has not told what was committed long ago"


class Cluster:
    nemesis_faults: Sequence[str] = STORE_NEMESIS_FAULTS

    def __init__(
        self, tape: Tape, knobs: Knobs, weights: Mapping[str, float], trace: Trace | None = None
    ) -> None:
        self.tape = tape
        self.knobs = knobs
        self.weights = weights
        self.trace = trace or Trace()
        self.hub = Hub(tape)
        self.wire = self.make_wire()
        self.settings = Settings(DEFINITIONS).with_value(WATCH_POLL_INTERVAL, knobs.poll_seconds)
        self.nodes: list[Node] = [self.make_node(n + 1) for n in range(knobs.nodes)]
        self.wire.power_cut = self._crash

    def make_wire(self) -> Wire:
        return Wire(self.hub, self.knobs, self.trace)

    def make_node(self, number: int) -> Node:
        return Node(self, number)

    def start(self) -> None:
        for node in self.nodes:
            self._skew(node)
            node.start()
        self.hub.spawn(None, "nemesis", self._nemesis)
        self.hub.call_later(self.knobs.faults_end, self.calm_down)

    def _skew(self, node: Node) -> None:
        if self.knobs.skew != "none":
            reach = 0.5 if self.knobs.skew == "within max_offset" else 3.0
            node.machine.set_clock(jump=self.tape.between(f"{node.machine.name}.skew", -reach, reach) or 0.0)
            self.wire.faults[f"skew {self.knobs.skew}"] += 1

    def _crash(self, machine: Machine) -> None:
        node = next(node for node in self.nodes if node.machine is machine)
        node.cut_power(restart_after=self.soon(f"{machine.name}.restart"))

    def soon(self, site: str) -> float:
        left = self.knobs.faults_end + 1.0 - self.hub.t
        return max(0.01, min(left, 0.01 + 8.0 * self.tape.draw(site) ** 2))

    def calm_down(self) -> None:
        for node in self.nodes:
            node.machine.set_right()
        if self.knobs.is_liveness:
            # For good: no signal is ever heard again, and one node stays dead.
            self.wire.is_deaf = True
            if self.knobs.nodes > 1:
                self.nodes[self.knobs.nodes - 1].die()

    def judge(self, *, is_whole: bool) -> list[Violation]:
        """What the history violates; whether the run was whole says what must have ended."""
        return predicates.check(self.trace)

    def compare(self) -> Iterator[Violation]:
        """What the store holds in the end against the model."""
        return model.compare(self.trace, self.wire.engine)

    # ── the nemesis ────────────────────────────────────────────────────────────────────────────

    def _nemesis(self) -> None:
        active = [kind for kind in self.nemesis_faults if self.knobs.rates.get(kind)]
        while active and self.wire.is_faulty():
            self.hub.sleep(self.tape.between("nemesis.wait", 0.2, 4.0), "nemesis")
            for kind in active:
                if self.wire.fires(kind):
                    self.strike(kind, self.nodes[self.tape.pick("nemesis.node", len(self.nodes))])

    def strike(self, kind: str, node: Node) -> None:
        machine = node.machine
        if not machine.is_up:
            return
        match kind:
            case "pause":
                machine.paused_until = self.hub.t + self.soon("nemesis.pause")
            case "power cut":
                node.cut_power(restart_after=self.soon("nemesis.restart"))
            case "declared dead":
                node.close_lanes()
                generation = machine.generation
                self.hub.call_later(self.soon("nemesis.death"), lambda: self._bury(node, generation))
            case "clock jump":
                machine.set_clock(jump=self.tape.between("nemesis.jump", -4.0, 4.0))
            case "clock frozen":
                machine.set_clock(rate=0.0)
            case "clock drift":
                machine.set_clock(rate=self.tape.between("nemesis.rate", 0.9, 1.1))
            case "cancel":
                self._cancel(node)
            case "interrupt":
                self._interrupt(node)

    def _bury(self, node: Node, generation: int) -> None:
        if node.machine.is_up and node.machine.generation == generation:
            node.cut_power(restart_after=self.soon("nemesis.restart"))

    def _cancel(self, node: Node) -> None:
        if not node.clients:
            return
        client, task = node.clients[self.tape.pick("nemesis.client", len(node.clients))]
        if client.operation and not task.is_over:
            task.thrown = Cancelled()

    def _interrupt(self, node: Node) -> None:
        """Stops clients at some wait of their next commits: as a leader, a waiter, or on the wire."""
        for _, task in node.clients:
            if not task.is_over:
                task.is_doomed = True
