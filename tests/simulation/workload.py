"""What clients do: small transactions of many shapes on few keys, so that they collide.

    table   holds                                    kept short by
    100     plain rows                               nothing
    101     rows whose history is swept              thresholds, then SUPERSEDED or GARBAGE removals
    102     rows that move to the lake               cleaned marks (no deletes: a lake needs other means)
    103     rows with their commit timestamp inside  nothing
    104     rows that have a base, in `lake_world`    cleaning, by the product's own upkeep

A client runs bursts of operations. Which one is drawn from the tape, and the default is to rest,
so a shrunk run has only the operations that matter.

Walk: `cluster` spawns `Client.run` and `watch_forever` on each node; operations live in `shapes`.
"""

from collections.abc import Callable, Mapping, Sequence

from tenure.base.errors import BaseMoved, TenureError
from tenure.base.timestamp import ZERO_AT, Timestamp, from_micros
from tenure.kv.gaps import Gap
from tenure.kv.keys import Span
from tests.simulation.hub import Cancelled, Hub
from tests.simulation.knobs import Knobs
from tests.simulation.trace import Trace, Watcher
from tests.simulation.tracing import TracingStore, TracingTransaction, TracingWatch

PLAIN, SWEPT, LAKE, STAMPED, BASED = 100, 101, 102, 103, 104

BURSTS = 4


class Tables:
    """The keys of one tenant."""

    def __init__(self, store: TracingStore, keys: int) -> None:
        keyspace = store.keyspace
        self.rows = {
            table: [keyspace.key(table, (n,)) for n in range(keys)] for table in (PLAIN, SWEPT, LAKE)
        }
        self.spans = {table: keyspace.index_span(table) for table in (PLAIN, SWEPT, LAKE, STAMPED, BASED)}
        self.heads = {table: keyspace.head(table) for table in (PLAIN, SWEPT, LAKE, STAMPED)}
        self.unlaked = Span(self.spans[PLAIN].lo, self.spans[SWEPT].hi)


class Client:
    operations_per_burst = 4

    def __init__(
        self,
        hub: Hub,
        knobs: Knobs,
        store: TracingStore,
        name: str,
        *,
        shapes: "Mapping[str, Callable[[Client], None]]",
        weights: Mapping[str, float],
    ) -> None:
        self.hub = hub
        self.tape = hub.tape
        self.knobs = knobs
        self.store = store
        self.trace = store.engine.wire.trace
        self.name = name
        self.tables = Tables(store, knobs.keys)
        self.flushed_at: Timestamp = ZERO_AT
        """How far the lake goes, as far as this client has heard."""
        self.sweep_at: Timestamp = ZERO_AT
        self.operation = ""
        self.since_t = 0.0
        self._known_at: Timestamp = ZERO_AT
        self._weights = weights
        self.arrange(shapes)

    def arrange(self, shapes: "Mapping[str, Callable[[Client], None]]") -> None:
        """Sets what is drawn from."""
        self._shapes: list[tuple[str, Callable[[Client], None]]] = []
        self._bounds: list[float] = []
        self._total = 0.0
        for shape, run in shapes.items():
            self._total += self._weights.get(shape, 0.0)
            self._shapes.append((shape, run))
            self._bounds.append(self._total)

    def run(self) -> None:
        burst_seconds = self.knobs.faults_end / BURSTS
        first = int(self.hub.t / burst_seconds)
        for burst in range(first, BURSTS):
            starts_at = burst * burst_seconds + self.tape.between(f"{self.name}.start", 0.0, 2.0)
            self.hub.sleep(max(0.0, starts_at - self.hub.t), "rest")
            for _ in range(self.operations_per_burst):
                if self.hub.t >= self.knobs.faults_end:
                    return
                self._operate()
                self.think()

    def _operate(self) -> None:
        drawn = self.tape.draw(f"{self.name}.op") * self._total
        if drawn == 0.0:
            return
        name, shape = next(
            each for bound, each in zip(self._bounds, self._shapes, strict=True) if drawn < bound
        )
        self.operation, self.since_t = name, self.hub.t
        try:
            shape(self)
        except Cancelled:
            self.trace.seen["operation cancelled"] += 1
        except BaseMoved:
            self.flushed_at = ZERO_AT  # ask how far the lake goes before the next read
        except TenureError as error:
            self.trace.seen[f"{name}: {type(error).__name__}"] += 1
        finally:
            self.operation = ""
        self.store.read_clock(self.clock_name, self._known_at)

    @property
    def clock_name(self) -> str:
        machine = self.store.engine.machine
        return f"{machine.name}/{machine.generation}/{self.store.keyspace.tenant}"

    def told(self, at: Timestamp | None) -> None:
        """Remembers a timestamp that this node has got back from a commit, of a reader too."""
        if at is not None:
            self._known_at = max(self._known_at, at)

    # ── what shapes are made of ────────────────────────────────────────────────────────────────

    def think(self) -> None:
        calm = 1.0 if self.hub.t < self.knobs.faults_end else 0.02
        self.hub.sleep(calm * self.knobs.think_seconds * self.tape.draw(f"{self.name}.think"), "think")

    def pause(self) -> None:
        """A wait inside a transaction: now and then, so that others come in between."""
        if self.tape.chance(f"{self.name}.pause", 0.4):
            self.think()

    def pick(self, count: int) -> int:
        return self.tape.pick(f"{self.name}.pick", count)

    def maybe(self, rate: float) -> bool:
        return self.tape.chance(f"{self.name}.maybe", rate)

    def some_key(self, table: int | None = None) -> bytes:
        if table is None:
            table = PLAIN if not self.maybe(0.4) else SWEPT
        rows = self.tables.rows[table]
        return rows[self.pick(len(rows))]

    def some_span(self, table: int = PLAIN) -> Span:
        rows = self.tables.rows[table]
        first = self.pick(len(rows))
        last = first + self.pick(len(rows) - first)
        return Span(rows[first], rows[last] + b"\0")

    def host_at(self) -> Timestamp:
        return from_micros(self.store.engine.wall_micros())

    def transact(self, run: Callable[[TracingTransaction], None], *, urgent: bool = False) -> None:
        begun: list[TracingTransaction] = []

        def recorded(txn: TracingTransaction) -> None:
            begun.append(txn)
            run(txn)

        self.store.traced(recorded, urgent=urgent)
        self.told(begun[-1].record.acked_at)


def watch_forever(hub: Hub, store: TracingStore, name: str, tables: Sequence[int]) -> None:
    """Follows some tables."""
    watch_spans(hub, store, name, [Tables(store, 1).spans[table] for table in tables])


def watch_spans(hub: Hub, store: TracingStore, name: str, spans: Sequence[Span]) -> None:
    """Follows some spans; after a gap it goes on from its end, as one that has scanned there would."""
    trace = store.engine.wire.trace
    while True:
        try:
            since_at = store.engine.clock_at()
        except TenureError:
            hub.sleep(0.05, "watch again")
            continue
        watch = store.watching(spans, since_at=since_at)
        trace_watch(trace, name, watch.resolved_at)
        try:
            _follow(hub, watch, trace, name, faults_end=store.engine.wire.knobs.faults_end)
        finally:
            watch.close()


def _follow(hub: Hub, watch: TracingWatch, trace: Trace, name: str, faults_end: float) -> None:
    while True:
        try:
            lost = trace.seen["signal lost"]
            began = hub.t
            batch = watch.next(None if hub.tape.draw(f"{name}.timeout") < 0.5 else 0.7)
            if isinstance(batch, Gap):
                watch.resume(batch.at)
            elif batch.revisions and trace.seen["signal lost"] > lost and hub.t > began:
                trace.seen["watch woken by poll after a lost signal"] += 1
            trace_watch(trace, name, watch.resolved_at)
            if hub.t < faults_end:
                hub.sleep(2.0 * hub.tape.draw(f"{name}.consume"), "consume")
        except TenureError:
            hub.sleep(0.05, "watch again")


def trace_watch(trace: Trace, name: str, resolved_at: Timestamp) -> None:
    trace.positions[name] = Watcher(name, resolved_at)
