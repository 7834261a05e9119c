"""The wire between the nodes and one shared in-memory engine: it delays, loses and breaks calls.

    client ──delay──► [ the engine's call: atomic ] ──delay──► client
             │               │                        │
             crash, refusal  late arrival             crash, cut: the answer is lost

This is no engine: every answer comes from `SqliteEngine(":memory:")`, in one piece. What may
happen to a commit is all that can happen to one over a network: it is lost on the way there, or
its answer on the way back, or it is still on its way when the client already asks `settle`.

Walk: `tenure.kv` -> `SimEngine` -> `SqliteEngine`; each landing is told to the `Trace` at once.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

from tenure.base.errors import (
    Disconnected,
    DiskFull,
    InputOutput,
    RetryError,
    TenureError,
    Unavailable,
)
from tenure.base.timestamp import Timestamp, from_micros
from tenure.storage.engine import (
    Commit,
    CommitStatus,
    Group,
    Guard,
    History,
    MovedHeads,
    Outcome,
    Portion,
    ReadResult,
    Revisions,
    Scan,
    Spread,
    WrittenHeads,
)
from tenure.storage.sqlite import reads as sqlite_reads
from tenure.storage.sqlite.head_clock import Execute
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.simulation.hub import EPOCH_MICROS, HostEnv, Hub, Machine
from tests.simulation.knobs import COMMIT_FAULTS, READ_FAULTS, Knobs
from tests.simulation.trace import Trace

T = TypeVar("T")


class Subscriber(NamedTuple):
    node: str
    wake: Callable[[], None]
    stop: Callable[[], None]


class Wire:
    """What all nodes share: the engine, the faults, and who wants to be told of commits."""

    def __init__(self, hub: Hub, knobs: Knobs, trace: Trace) -> None:
        self.hub = hub
        self.knobs = knobs
        self.trace = trace
        self.faults: Counter[str] = Counter()
        self.engine = _SharedEngine(MEMORY, HostEnv(hub), host_micros=self.host_micros)
        self.is_deaf = False
        self.signal_seconds = 0.0
        """How long signals are gathered: as if by polling, commits in between make one signal."""
        self._gathered: dict[str, dict[int, None]] = {}
        """By node, which of its subscriptions the signal on its way is for."""
        self.power_cut: Callable[[Machine], None] = hub.cut_power
        self._subscribers: dict[int, Subscriber] = {}
        self._subscriptions = 0
        self._read_rate = sum(knobs.rates.get(site, 0.0) for site in READ_FAULTS)
        self._commit_rate = sum(knobs.rates.get(site, 0.0) for site in COMMIT_FAULTS)

    def host_micros(self) -> int:
        return EPOCH_MICROS + int(self.hub.t * 1_000_000)

    def is_faulty(self) -> bool:
        return self.hub.t < self.knobs.faults_end

    def fires(self, site: str) -> bool:
        if not self.is_faulty() or not self.hub.tape.chance(f"fault.{site}", self.knobs.rates.get(site, 0.0)):
            return False
        self.faults[site] += 1
        return True

    def read_fault(self, node: str) -> str:
        return self._one_of(READ_FAULTS, self._read_rate, f"{node}.fault.read")

    def commit_fault(self, node: str) -> str:
        return self._one_of(COMMIT_FAULTS, self._commit_rate, f"{node}.fault.commit")

    def _one_of(self, sites: tuple[str, ...], total: float, tape_site: str) -> str:
        """One draw for all the sites of a call: most calls have no fault."""
        if total == 0.0 or not self.is_faulty():
            return ""
        drawn = self.hub.tape.draw(tape_site, 1.0)
        for site in sites:
            drawn -= self.knobs.rates.get(site, 0.0)
            if drawn < 0:
                self.faults[site] += 1
                return site
        return ""

    def slow(self, site: str) -> float:
        """From a hundredth of a second to a quarter of the run, but over when the faults are."""
        left = self.knobs.faults_end + 2.0 - self.hub.t
        return min(left, 0.01 * math.pow(1500.0, self.hub.tape.draw(site)))

    # ── the signal ─────────────────────────────────────────────────────────────────────────────

    def subscribe(
        self, node: str, wake: Callable[[], None], spans: Sequence[tuple[bytes, bytes]]
    ) -> Callable[[], None]:
        self._subscriptions += 1
        name = self._subscriptions
        stop = self.engine.subscribe(partial(self._signal, name), spans)
        self._subscribers[name] = Subscriber(node, wake, stop)
        return partial(self._unsubscribe, name)

    def _unsubscribe(self, name: int) -> None:
        subscriber = self._subscribers.pop(name, None)
        if subscriber is not None:
            subscriber.stop()

    def unsubscribe_all(self, node: str) -> None:
        for name in [name for name, each in self._subscribers.items() if each.node == node]:
            self._unsubscribe(name)

    def _signal(self, name: int) -> None:
        if self.is_deaf:
            self.trace.seen["signal lost"] += 1
        elif self.signal_seconds:
            self._gather(name)
        else:
            self._signal_one(self._subscribers[name].node, self._subscribers[name].wake)

    def _signal_one(self, node: str, wake: Callable[[], None]) -> None:
        if self.fires("signal lost"):
            self.trace.seen["signal lost"] += 1
            return
        delay = self.slow(f"{node}.signal") if self.fires("signal late") else 0.0
        self.hub.call_later(delay, wake)
        if self.fires("signal twice"):
            self.hub.call_later(self.slow(f"{node}.signal"), wake)

    def _gather(self, name: int) -> None:
        node = self._subscribers[name].node
        if node not in self._gathered:
            self._gathered[node] = {}
            self.hub.call_later(self.signal_seconds, partial(self._deliver, node))
        self._gathered[node][name] = None

    def _deliver(self, node: str) -> None:
        for name in self._gathered.pop(node):
            subscriber = self._subscribers.get(name)
            if subscriber is None:
                continue
            if self.knobs.has_signal_faults:
                self._signal_one(node, subscriber.wake)
            else:
                subscriber.wake()

    # ── the section, seen from outside ─────────────────────────────────────────────────────────

    def land(self, group: Group) -> list[Outcome]:
        """The atomic commit: decided by the engine and told to the trace without a switch."""
        former_clock_at = sqlite_reads.clock_at(self.engine._writer.execute)
        outcomes = self.engine.commit(group)
        host_at = from_micros(self.host_micros())
        for commit, outcome in zip(group.members, outcomes, strict=True):
            self.trace.decided(
                commit,
                outcome,
                t=self.hub.t,
                former_clock_at=former_clock_at,
                host_at=host_at,
                max_offset=from_micros(group.max_offset_micros),
            )
            if outcome.status is CommitStatus.COMMITTED:
                former_clock_at = outcome.at
        if len(group.members) > 1:
            self.trace.seen["group of several commits"] += 1
            if len({outcome.status is CommitStatus.COMMITTED for outcome in outcomes}) == 2:
                self.trace.seen["group with a refused and a committed member"] += 1
        return outcomes

    def land_late(self, group: Group) -> None:
        try:
            self.land(group)
        except TenureError:
            self.trace.seen["late commit refused"] += 1
        else:
            self.trace.seen["late commit landed"] += 1


class _SharedEngine(SqliteEngine):
    """The product's engine. One thread and no switch inside a call: its answers need no transaction."""

    @contextmanager
    def _snapshot(self) -> Iterator[Execute]:
        with self._translated():
            yield self._writer.execute


class SimEngine:
    """One node's connection to the shared engine: see the contract in `tenure.storage.engine`."""

    name = "simulated"

    def __init__(self, wire: Wire, machine: Machine) -> None:
        self.wire = wire
        self.machine = machine
        self.lanes: list[bytes] = []
        self.urgent_lanes: set[bytes] = set()
        self.stalled_until = 0.0
        """Until then no urgent group leaves: the heartbeat hangs, everything else goes on."""
        self._hub = wire.hub
        self._tape = wire.hub.tape
        self._site_read = f"{machine.name}.read"
        self._site_commit = f"{machine.name}.commit"
        self._site_answer = f"{machine.name}.answer"

    def get(self, key: bytes, guard: Guard, at: Timestamp | None = None) -> ReadResult:
        return self._read("get", self.wire.engine.get, key, guard, at)

    def get_many(self, keys: Sequence[bytes], guard: Guard, at: Timestamp | None = None) -> ReadResult:
        return self._read("get_many", self.wire.engine.get_many, keys, guard, at)

    def scan(self, query: Scan) -> ReadResult:
        return self._read("scan", self.wire.engine.scan, query)

    def history(self, query: History) -> ReadResult:
        return self._read("history", self.wire.engine.history, query)

    def revisions(self, query: Revisions) -> ReadResult:
        return self._read("revisions", self.wire.engine.revisions, query)

    def moved_heads(self, since_at: Timestamp) -> MovedHeads:
        return self._read("moved_heads", self.wire.engine.moved_heads, since_at)

    def written_heads(self) -> WrittenHeads:
        return self._read("written_heads", self.wire.engine.written_heads)

    def spread(self, lo: bytes, hi: bytes, since_at: Timestamp, every: int) -> Spread:
        return self._read("spread", self.wire.engine.spread, lo, hi, since_at, every)

    def portions(
        self, lo: bytes, hi: bytes, since_at: Timestamp, until_at: Timestamp, size_max: int
    ) -> list[Portion]:
        return self._read("portions", self.wire.engine.portions, lo, hi, since_at, until_at, size_max)

    def check(self, commit: Commit) -> tuple[Timestamp, Outcome | None]:
        def checked() -> tuple[Timestamp, Outcome | None]:
            clock_at, failed = self.wire.engine.check(commit)
            if failed is not None:
                self.wire.trace.decided(commit, failed)
            return clock_at, failed

        return self._read("check", checked)

    def clock_at(self) -> Timestamp:
        return self._read("clock", self.wire.engine.clock_at)

    def push_clock(self, at: Timestamp) -> Timestamp:
        self.wire.trace.seen["clock pushed by a read"] += 1
        return self._read("push", self.wire.engine.push_clock, at)

    def wall_micros(self) -> int:
        return self.wire.host_micros()

    def _read(self, site: str, call: Callable[..., T], *values: Any) -> T:
        self._wait(self._site_read, self.wire.knobs.read_seconds, site)
        fault = self.wire.read_fault(self.machine.name)
        if fault == "slow read":
            self._hub.sleep(self.wire.slow(self._site_read), site)
        elif fault == "retry read":
            raise RetryError("could not serialize access")
        elif fault == "cut read":
            raise Disconnected("server closed the connection unexpectedly")
        elif fault == "pool exhausted":
            raise Unavailable("no connection is free")
        answer = call(*values)
        self._answer(self.wire.knobs.read_seconds, site)
        return answer

    def _wait(self, tape_site: str, seconds: float, site: str) -> None:
        calm = 1.0 if self.wire.is_faulty() else 0.02
        self._hub.sleep(calm * seconds * self._tape.draw(tape_site), site)

    def _answer(self, seconds: float, site: str) -> None:
        if self._tape.chance(self._site_answer, self.wire.knobs.answer_rate):
            self._wait(self._site_answer, seconds, site)

    # ── committing ─────────────────────────────────────────────────────────────────────────────

    def enter(self, lane: bytes, *, wait: bool) -> bool:
        return True

    def leave(self, lane: bytes) -> None:
        """Nothing was taken: all machines share one thread."""

    def commit(self, group: Group) -> list[Outcome]:
        wire = self.wire
        wire.trace.dispatched(group, self.machine.name)
        if self.stalled_until > self._hub.t and group.lane in self.urgent_lanes:
            self._hub.sleep(self.stalled_until - self._hub.t, "stalled")
        self._wait(self._site_commit, wire.knobs.commit_seconds, "commit")
        fault = wire.commit_fault(self.machine.name)
        self._before_commit(fault, group)
        outcomes = wire.land(group)
        if fault == "crash after commit":
            wire.trace.seen["crash after commit before ack"] += 1
            wire.power_cut(self.machine)
        if fault == "cut, commit done":
            wire.trace.seen["ambiguous commit, done"] += 1
            raise Disconnected("server closed the connection unexpectedly")
        self._answer(wire.knobs.commit_seconds, "commit answered")
        return outcomes

    def _before_commit(self, fault: str, group: Group) -> None:
        match fault:
            case "crash before commit":
                if self._tape.chance(f"{self.machine.name}.crash late", 0.5):
                    self._send_late(group)
                self.wire.power_cut(self.machine)
            case "cut, commit lost":
                self.wire.trace.seen["ambiguous commit, lost"] += 1
                raise Disconnected("server closed the connection unexpectedly")
            case "cut, commit late":
                self._send_late(group)
                raise Disconnected("server closed the connection unexpectedly")
            case "retry commit":
                raise RetryError("could not serialize access")
            case "disk full":
                raise DiskFull("no space left on device")
            case "input output":
                raise InputOutput("input/output error")
            case "unavailable":
                raise Unavailable("the database system is starting up")
            case "slow commit":
                self._hub.sleep(self.wire.slow(self._site_commit), "slow commit")

    def _send_late(self, group: Group) -> None:
        """The group is on its way and arrives by itself, before or after the client's `settle`."""
        delay = self.wire.slow(f"{self.machine.name}.late")
        self._hub.call_later(delay, lambda: self.wire.land_late(group))

    def settle(self, lane: bytes, seq: int) -> list[Outcome] | None:
        wire = self.wire
        self._wait(self._site_commit, wire.knobs.commit_seconds, "settle")
        if wire.fires("cut before settle"):
            kinds = (Disconnected, Unavailable, RetryError, DiskFull, InputOutput)
            raise self._tape.choose(f"{self.machine.name}.settle error", kinds)("settle failed")
        if wire.fires("slow settle"):
            self._hub.sleep(wire.slow(self._site_commit), "slow settle")
        outcomes = wire.engine.settle(lane, seq)
        wire.trace.seen["ambiguous commit found landed" if outcomes else "ambiguous commit refused"] += 1
        if wire.fires("cut after settle"):
            raise Disconnected("server closed the connection unexpectedly")
        return outcomes

    # Lanes and signals have no faults of their own: a node that cannot start is of no interest.

    def open_lane(self, *, urgent: bool = False) -> bytes:
        lane = self.wire.engine.open_lane(urgent=urgent)
        self.lanes.append(lane)
        if urgent:
            self.urgent_lanes.add(lane)
        return lane

    def close_lane(self, lane: bytes) -> None:
        self.wire.engine.close_lane(lane)

    def subscribe(
        self, wake: Callable[[], None], spans: Sequence[tuple[bytes, bytes]] = ()
    ) -> Callable[[], None]:
        return self.wire.subscribe(self.machine.name, wake, spans)

    def close(self) -> None:
        self.wire.unsubscribe_all(self.machine.name)
