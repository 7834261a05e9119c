"""Nodes whose clients lock: rows that they increment, and advisory locks that must exclude one another.

What is judged is seen from outside: the moment a client is told that it has an advisory lock, nobody else
may have one that conflicts, whose node session is in the store. What a client has given up, or what hangs
on a session that is gone, counts no more. Of what clients write under a lock: once another one has written
under it, the former writes no more, however long its node was stopped and how often it tries again. Of
tables that are held (`hold_shapes`): no writer waits for a hold for longer than it may last.

Walk: `test_lock_simulator` calls `run`.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count, pairwise
from typing import Any

from tenure.base.errors import OutcomeUnknown, RetryError, SessionLost, TenureError
from tenure.base.settings import DEFINITIONS, LIVENESS_HEARTBEAT, LIVENESS_TTL, WATCH_POLL_INTERVAL, Settings
from tenure.base.timestamp import ZERO_AT
from tenure.cluster.locks.advisory_locks import AdvisoryKey, AdvisoryLevel, AdvisoryLocks
from tenure.cluster.locks.lock_table import LockMode, LockOwner, conflict
from tenure.cluster.locks.lock_waits import LockWaits, WaitPolicy
from tenure.cluster.locks.row_locks import RowLocks
from tenure.cluster.sessions.deaths import Deaths
from tenure.cluster.sessions.liveness import Liveness
from tenure.cluster.sessions.session_records import SessionId, Sessions
from tenure.kv.encoding import At, decode
from tenure.kv.keys import USER_TABLES, Keyspace, Span
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import DEFAULT_TENANT, Store
from tenure.kv.transaction import Transaction
from tenure.storage.engine import HEAD_BYTES, History
from tests.simulation.hold_shapes import HoldShapes
from tests.simulation.hub import Cancelled
from tests.simulation.knobs import Knobs, draw_knobs
from tests.simulation.nodes import Cluster, Node
from tests.simulation.tape import Tape
from tests.simulation.trace import Trace
from tests.simulation.wire import SimEngine

TTL_SECONDS = 3.0
SECONDS = 90.0
KEYS = Keyspace(DEFAULT_TENANT)
ROWS = [KEYS.key(USER_TABLES, [number]) for number in range(3)]
LOCKS = [AdvisoryKey(1, (number,)) for number in range(2)]
GUARDED = {key: KEYS.key(USER_TABLES, [100 + number]) for number, key in enumerate(LOCKS)}
"""Rows that are written only under their lock, each time with the number of the tenure."""

TENURE_SECONDS_MAX = 10.0
WRITES_MAX, ATTEMPTS = 8, 20
"""Of one tenure; and how often a write is tried, as a session tries a single statement."""


@dataclass
class Held:
    owner: LockOwner
    mode: LockMode
    session: SessionId


@dataclass
class Outcome:
    violations: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    acked: Counter[bytes] = field(default_factory=Counter)
    unknown: Counter[bytes] = field(default_factory=Counter)


def run(
    seed: int,
    change: Callable[[Knobs], None] = lambda knobs: None,
    *,
    guarded: float = 0.1,
    holding: float = 0.0,
) -> Outcome:
    """How often, of all that it does, a client writes under a lock, and scans a table that it holds."""
    tape = Tape(seed)
    knobs = draw_knobs(tape, seconds=SECONDS, nodes=3)
    knobs.nodes = 3
    change(knobs)
    cluster = LockCluster(tape, knobs, {})
    cluster.guarded, cluster.holding = guarded, holding
    cluster.start()
    cluster.hub.run(SECONDS)
    cluster.conclude()
    cluster.hub.close()
    cluster.wire.engine.close()
    return cluster.outcome


class Untraced(Trace):
    """Takes no notes of transactions: what they do to one another is the other worlds' affair."""

    def dispatched(self, *values: Any, **named: Any) -> None:
        return None

    def decided(self, *values: Any, **named: Any) -> None:
        return None


class LockCluster(Cluster):
    def __init__(self, tape: Tape, knobs: Knobs, weights: dict[str, float]) -> None:
        self.outcome = Outcome()
        self.held: dict[AdvisoryKey, list[Held]] = {key: [] for key in LOCKS}
        self.starts = count(1)
        self.guarded = self.holding = 0.0
        super().__init__(tape, knobs, weights, Untraced())
        self.settings = (
            Settings(DEFINITIONS)
            .with_value(WATCH_POLL_INTERVAL, knobs.poll_seconds)
            .with_value(LIVENESS_TTL, TTL_SECONDS)
            .with_value(LIVENESS_HEARTBEAT, TTL_SECONDS / 6)
        )
        self.sessions = Sessions(KEYS)

    def make_node(self, number: int) -> Node:
        return LockNode(self, number)

    def exists(self, session: SessionId) -> bool:
        engine = self.wire.engine
        return self.sessions.find(Snapshot(engine, KEYS, engine.clock_at()), session) is not None

    def granted(self, key: AdvisoryKey, held: Held) -> None:
        if not self.exists(held.session):
            self.outcome.seen["granted to a session that is gone"] += 1
            return
        for other in self.held[key]:
            if (
                (other.session, other.owner) != (held.session, held.owner)
                and conflict(other.mode, held.mode)
                and self.exists(other.session)
            ):
                self.outcome.violations.append(f"{self.hub.t:.3f}: {held} though {other}")
        self.held[key].append(held)

    def given_up(self, session: SessionId, owner: LockOwner) -> None:
        for held in self.held.values():
            held[:] = [each for each in held if (each.session, each.owner) != (session, owner)]

    def conclude(self) -> None:
        outcome = self.outcome
        outcome.violations += [f"crash: {name}: {error!r}" for name, error in self.hub.crashed]
        outcome.violations += [message for node in self.nodes for message in node.stuck(0)]
        engine = self.wire.engine
        snapshot = Snapshot(engine, KEYS, engine.clock_at())
        for row in ROWS:
            least, found = outcome.acked[row], int(snapshot.get(row) or b"0")
            if not least <= found <= least + outcome.unknown[row]:
                outcome.violations.append(f"{found} increments, of which {least} were acknowledged")
        for row in GUARDED.values():
            outcome.violations += self._late(row)

    def _late(self, row: bytes) -> Iterator[str]:
        """Tenures that wrote after the next one had."""
        engine = self.wire.engine
        span = Span(row, row + b"\0")
        found = engine.history(History(span.lo, span.hi, KEYS.guard(span), since_at=ZERO_AT))
        tenures = [each.value for each in found.revisions]
        over: set[bytes | None] = set()
        for former, tenure in pairwise(tenures):
            if tenure != former:
                over.add(former)
            if tenure in over:
                yield f"tenure {tenure!r} wrote after {former!r}: {tenures[-20:]}"


class LockNode(Node):
    cluster: LockCluster

    def start(self) -> None:
        self.machine.is_up = True
        self.clients, self.watcher = [], ""
        engine = SimEngine(self.cluster.wire, self.machine)
        self.lanes = engine.lanes
        self.env.spawn("boot", partial(self._boot, engine))

    def _boot(self, engine: SimEngine) -> None:
        cluster = self.cluster
        store = Store(engine, self.env, settings=cluster.settings)
        liveness = Liveness(store, cluster.sessions, lambda: cluster.settings, address="", version=2)
        while True:
            try:
                deaths = Deaths(store, cluster.sessions)
                liveness.step()
                break
            except TenureError:
                self.env.sleep(0.5)
        self.env.spawn("heartbeat", partial(self._loop, liveness.step))
        if cluster.tape.chance(f"{self.machine.name}.follows", 0.7):
            self.env.spawn("deaths", partial(self._loop, deaths.follow))
        waits = LockWaits(store, deaths, liveness.session, lambda: False)
        self.env.spawn("tidy", partial(self._loop, lambda: waits.tidy() or 2.0))  # type: ignore[func-returns-value]
        rows = RowLocks(waits)
        if cluster.holding:
            self.env.spawn("holds", partial(self._loop, rows.tables.follow))
        for number in range(cluster.knobs.clients):
            client = self.make_client(f"{self.machine.name}.c{number}", number, store, waits, rows)
            self.clients.append((client, self.env.spawn(f"c{number}", client.run)))  # type: ignore[arg-type]

    def make_client(
        self, name: str, number: int, store: Store, waits: LockWaits, rows: RowLocks
    ) -> "LockClient":
        return LockClient(self, name, number, store, waits, rows)

    def _loop(self, step: Callable[[], float | None]) -> None:
        while True:
            try:
                pause = step()
            except TenureError:
                pause = 0.2
            self.env.sleep(pause or 0.05)


class LockClient:
    def __init__(
        self, node: LockNode, name: str, number: int, store: Store, waits: LockWaits, rows: RowLocks
    ) -> None:
        self.name = name
        self.operation = ""
        self.since_t = 0.0
        self._cluster = node.cluster
        self._number = number
        self._store = store
        self._waits = waits
        self._rows = rows
        self._holds = HoldShapes(name, rows, store, node.cluster)
        self._advisory = AdvisoryLocks(waits)
        self._tape = node.cluster.tape

    def run(self) -> None:
        cluster, env = self._cluster, self._store.env
        while cluster.hub.t < cluster.knobs.faults_end + 5.0:
            env.sleep(self._tape.between(f"{self.name}.think", 0.0, 0.05 + cluster.knobs.think_seconds))
            owner = LockOwner(self._number, next(cluster.starts))
            self.since_t = cluster.hub.t
            try:
                if self._has_time() and self._tape.chance(f"{self.name}.guarded", cluster.guarded):
                    self.operation = "guarded"
                    self._write_under_lock(owner)
                elif cluster.holding and self._tape.chance(f"{self.name}.holding", cluster.holding):
                    self.operation = "sum"
                    self._holds.sum_up(owner)
                elif self._tape.chance(f"{self.name}.advisory", 0.5):
                    self.operation = "advisory"
                    self._lock(owner)
                else:
                    self.operation = "increment"
                    self._increment(owner)
            except TenureError as error:
                cluster.outcome.seen[type(error).__name__] += 1
            except Cancelled:
                cluster.outcome.seen["canceled"] += 1
            self.operation = ""

    def _has_time(self) -> bool:
        """Whether a tenure that begins now, behind others in line, ends before the run does."""
        return self._cluster.hub.t < self._cluster.knobs.faults_end - TENURE_SECONDS_MAX

    # ── advisory locks ─────────────────────────────────────────────────────────────────────────

    def _lock(self, owner: LockOwner) -> None:
        sessions: set[SessionId] = set()
        try:
            for _ in range(1 + self._tape.pick(f"{self.name}.locks", 3)):
                key = self._tape.choose(f"{self.name}.key", LOCKS)
                mode = self._tape.choose(f"{self.name}.mode", (LockMode.EXCLUSIVE, LockMode.SHARE))
                self._acquire(owner, key, mode, sessions)
                self._store.env.sleep(self._tape.between(f"{self.name}.hold", 0.0, 0.3))
        finally:
            for session in sessions:
                self._cluster.given_up(session, owner)
            self._advisory.release_all(owner)

    def _acquire(self, owner: LockOwner, key: AdvisoryKey, mode: LockMode, sessions: set[SessionId]) -> None:
        wait = self._tape.choose(f"{self.name}.wait", (WaitPolicy.WAIT, WaitPolicy.WAIT, WaitPolicy.NOWAIT))
        timeout = self._tape.choose(f"{self.name}.timeout", (None, None, 1.0))
        self._advisory.check(owner)
        got = self._advisory.acquire(
            owner, key, mode=mode, level=AdvisoryLevel.TRANSACTION, wait=wait, timeout=timeout
        )
        self._cluster.outcome.seen[f"{wait.value} {'got' if got else 'missed'}"] += 1
        if got:
            for session in self._sessions_of(owner, key):
                sessions.add(session)
                self._cluster.granted(key, Held(owner, mode, session))

    def _sessions_of(self, owner: LockOwner, key: AdvisoryKey) -> Iterator[SessionId]:
        """Under which session the newest record of a lock that is held was written."""
        for stored in self._waits.stored.kept(owner, key.name())[-1:]:
            _, instance, epoch_at, _ = decode(stored[HEAD_BYTES:])
            assert isinstance(instance, int) and isinstance(epoch_at, At)
            yield SessionId(instance, int(epoch_at))

    def _write_under_lock(self, owner: LockOwner) -> None:
        """A session that holds a lock for a while and writes under it, one statement at a time."""
        sessions: set[SessionId] = set()
        key = self._tape.choose(f"{self.name}.key", LOCKS)
        try:
            self._acquire(owner, key, LockMode.EXCLUSIVE, sessions)
            for _ in range(1 + self._tape.pick(f"{self.name}.writes", WRITES_MAX)) if sessions else ():
                self._advisory.check(owner)
                self._write_guarded(owner, key)
                self._store.env.sleep(self._tape.between(f"{self.name}.hold", 0.0, 0.5))
        finally:
            for session in sessions:
                self._cluster.given_up(session, owner)
            self._advisory.release_all(owner)

    def _write_guarded(self, owner: LockOwner, key: AdvisoryKey) -> None:
        """Tried again by itself, under the node's next session too, as the SQL session does it."""
        for _ in range(ATTEMPTS):
            txn = self._store.begin()
            try:
                txn.put(GUARDED[key], b"%d" % owner.started_at)
                self._store.env.sleep(self._tape.between(f"{self.name}.statement", 0.0, 0.5))
                self._advisory.fence(owner, txn)
                self._commit_guarded(txn)
                return
            except RetryError:
                self._store.env.sleep(0.2)
            finally:
                txn.rollback()

    def _commit_guarded(self, txn: Transaction) -> None:
        try:
            txn.commit()
        except SessionLost as error:
            raise RetryError("the session was lost") from error
        self._cluster.outcome.seen["guarded"] += 1

    # ── rows ───────────────────────────────────────────────────────────────────────────────────

    def _increment(self, owner: LockOwner) -> None:
        rows = [self._tape.choose(f"{self.name}.row", ROWS) for _ in range(2)]
        txn = self._store.begin()
        try:
            if self._cluster.holding:
                self._holds.await_end(owner)
            assert txn.read_at >= 0
            self._rows.acquire(owner, rows)
            txn.refresh()
            for row in sorted({*rows}):
                txn.put(row, b"%d" % (int(txn.get(row) or b"0") + 1))
            self._commit(txn.commit, rows)
        finally:
            txn.rollback()
            self._rows.release(owner)

    def _commit(self, commit: Callable[[], int], rows: list[bytes]) -> None:
        outcome, written = self._cluster.outcome, {*rows}
        outcome.unknown.update(written)  # as long as nothing is heard: a node may lose power
        try:
            commit()
        except OutcomeUnknown:
            raise
        except TenureError as error:
            outcome.unknown.subtract(written)
            outcome.seen["refused"] += isinstance(error, RetryError)
            raise
        outcome.unknown.subtract(written)
        outcome.acked.update(written)
