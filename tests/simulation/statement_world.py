"""READ COMMITTED transactions of three nodes under faults: counters, unique names, parents and children.

Clients do at the store what SQL does in such a block: each statement takes a time of its own, finds rows,
locks those that it changes, and finds them again if one has changed; constraints lock nothing, or not
always.

What is judged, by all revisions that there are in the end (the twin of I2):

    one time        each statement has found what was there at its time, with its own writes
    no lost update  a counter is what was acknowledged, and what may have been
    held rows       a key that was locked is unchanged from its proof up to the commit
    unique names    nobody takes a name that is taken
    references      at no time is there a child without its parent

Walk: `test_statement_simulator` calls `run`.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count, groupby
from operator import attrgetter
from typing import NamedTuple

from tenure.base.errors import OutcomeUnknown, RetryError, TenureError, UserError
from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.cluster.locks.lock_table import LockOwner
from tenure.cluster.locks.lock_waits import LockWaits
from tenure.cluster.locks.row_locks import RowLocks
from tenure.kv.keys import USER_TABLES, Span
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.engine import History, Revision
from tests.simulation.knobs import Knobs, draw_knobs
from tests.simulation.lock_world import KEYS, SECONDS, LockClient, LockCluster, LockNode
from tests.simulation.tape import Tape

COUNTERS, NAMES, PARENTS, CHILDREN = (USER_TABLES + number for number in range(4))
ROWS = [KEYS.key(COUNTERS, [number]) for number in range(4)]
UNIQUE = [KEYS.key(NAMES, [number]) for number in range(2)]
FAMILIES = [KEYS.key(PARENTS, [number]) for number in range(2)]
STATEMENTS = ("increment", "increment one", "take a name", "give a name up", "child", "no parent", "parent")


class Violated(UserError):
    """A constraint that does not hold."""

    sqlstate = "23000"


class Found(NamedTuple):
    """What a statement has found, and what its transaction had written by then."""

    at: Timestamp
    written: dict[bytes, bytes | None]
    rows: dict[bytes, bytes]


class Held(NamedTuple):
    """The rows that a transaction held when it committed, with the times they were proved from."""

    commit_at: Timestamp
    since: dict[bytes, Timestamp]


@dataclass
class Judged:
    violations: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    acked: Counter[bytes] = field(default_factory=Counter)
    unknown: Counter[bytes] = field(default_factory=Counter)
    found: list[Found] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)


def run(seed: int, change: Callable[[Knobs], None] = lambda knobs: None) -> Judged:
    tape = Tape(seed)
    knobs = draw_knobs(tape, seconds=SECONDS, nodes=3)
    knobs.nodes = 3
    change(knobs)
    cluster = StatementCluster(tape, knobs, {})
    cluster.start()
    cluster.hub.run(SECONDS)
    cluster.conclude()
    cluster.hub.close()
    cluster.wire.engine.close()
    return cluster.judged


class StatementCluster(LockCluster):
    def __init__(self, tape: Tape, knobs: Knobs, weights: dict[str, float]) -> None:
        self.judged = Judged()
        self.numbers = count(1)
        super().__init__(tape, knobs, weights)

    def make_node(self, number: int) -> "StatementNode":
        return StatementNode(self, number)

    def conclude(self) -> None:
        judged = self.judged
        judged.violations += [f"crash: {name}: {error!r}" for name, error in self.hub.crashed]
        judged.violations += [message for node in self.nodes for message in node.stuck(0)]
        revisions = self._revisions()
        judged.violations += _lost_updates(judged, revisions)
        judged.violations += _changed_while_held(judged, revisions)
        judged.violations += _taken_names(revisions)
        judged.violations += _orphans(revisions)
        judged.violations += _wrong_finds(judged, revisions)

    def _revisions(self) -> list[Revision]:
        """All of them, in the order of time."""
        found: list[Revision] = []
        for table in (COUNTERS, NAMES, PARENTS, CHILDREN):
            span = KEYS.index_span(table)
            query = History(span.lo, span.hi, KEYS.guard(span), since_at=ZERO_AT)
            found += self.wire.engine.history(query).revisions
        return sorted(found, key=attrgetter("at"))


class StatementNode(LockNode):
    cluster: StatementCluster

    def make_client(
        self, name: str, number: int, store: Store, waits: LockWaits, rows: RowLocks
    ) -> LockClient:
        return StatementClient(self, name, number, store, waits, rows)


class StatementClient(LockClient):
    """Its transactions have up to four statements, some of which go back to a savepoint."""

    _cluster: StatementCluster

    def run(self) -> None:
        cluster, env = self._cluster, self._store.env
        while cluster.hub.t < cluster.knobs.faults_end + 5.0:
            env.sleep(self._tape.between(f"{self.name}.think", 0.0, 0.05 + cluster.knobs.think_seconds))
            self.since_t, self.operation = cluster.hub.t, "transaction"
            try:
                self._transact(LockOwner(self._number, next(cluster.starts)))
            except TenureError as error:
                cluster.judged.seen[type(error).__name__] += 1
            self.operation = ""

    def _transact(self, owner: LockOwner) -> None:
        txn = self._store.begin()
        txn.proof.keep_times()
        work = Work(self, owner, txn, self._rows, self._cluster.judged)
        try:
            for _ in range(1 + self._tape.pick(f"{self.name}.statements", 4)):
                work.step(self._tape)
                self._store.env.sleep(self._tape.between(f"{self.name}.pause", 0.0, 0.2))
            self._end(work)
        finally:
            txn.rollback()
            self._rows.release(owner)

    def _end(self, work: "Work") -> None:
        judged, added = self._cluster.judged, work.added
        judged.unknown.update(added)  # as long as nothing is heard: a node may lose power
        try:
            commit_at = work.txn.commit()
        except OutcomeUnknown:
            raise
        except TenureError as error:
            judged.unknown.subtract(added)
            judged.seen["refused"] += isinstance(error, RetryError)
            raise
        judged.unknown.subtract(added)
        judged.acked.update(added)
        judged.seen["committed"] += 1
        judged.held.append(Held(commit_at, work.held))


class Work:
    """One transaction: what it has added to the counters, and the rows that it holds."""

    def __init__(
        self, client: StatementClient, owner: LockOwner, txn: Transaction, rows: RowLocks, judged: Judged
    ) -> None:
        self._client = client
        self._owner = owner
        self._rows = rows
        self._judged = judged
        self.txn = txn
        self.added: Counter[bytes] = Counter()
        self.held: dict[bytes, Timestamp] = {}

    def step(self, tape: Tape) -> None:
        """A statement, sometimes after a savepoint that it goes back to."""
        self.txn.renew()
        mark, proofs = self.txn.mark(), self.txn.proof.mark()
        added, held = self.added.copy(), dict(self.held)
        name = self._client.name
        kind = tape.choose(f"{name}.kind", STATEMENTS)
        locks = tape.chance(f"{name}.locks", 0.5)
        self._judged.seen[kind] += 1
        try:
            self._run(kind, tape, locks=locks)
            goes_back = tape.chance(f"{name}.back", 0.2)
        except Violated:
            self._judged.seen["Violated at once"] += 1
            goes_back = True
        if goes_back:
            self.txn.back_to(mark)
            self.txn.proof.forget(proofs)
            self.added, self.held = added, held

    def _run(self, kind: str, tape: Tape, *, locks: bool) -> None:
        name = self._client.name
        match kind:
            case "increment":
                self._increment(tape.pick(f"{name}.parity", 2))
            case "increment one":
                self._increment_one(tape.choose(f"{name}.row", ROWS))
            case "take a name":
                self._take(tape.choose(f"{name}.name", UNIQUE), locks=locks)
            case "give a name up":
                self._give_up(tape.choose(f"{name}.name", UNIQUE))
            case "child":
                self._add_child(tape.pick(f"{name}.parent", len(FAMILIES)))
            case "no parent":
                self._delete_parent(tape.pick(f"{name}.parent", len(FAMILIES)))
            case _:
                self._take(tape.choose(f"{name}.family", FAMILIES), locks=locks)

    # ── rows ───────────────────────────────────────────────────────────────────────────────────

    def _increment(self, parity: int) -> None:
        """UPDATE ... SET n = n + 1 WHERE n % 2 = parity: found, locked, and found again if need be."""
        first = self._find(parity)
        self._rows.acquire(self._owner, sorted(first))
        found = first
        if not self.txn.proof.are_unchanged(first):
            self.txn.renew()
            found = {key: value for key, value in self._find(parity).items() if key in first}
            self._judged.seen["found again"] += 1
        self._write({key: value + 1 for key, value in found.items()})

    def _increment_one(self, row: bytes) -> None:
        self._rows.acquire(self._owner, [row])
        self.txn.renew()
        self._write({row: int(self.txn.get(row) or b"0") + 1})

    def _find(self, parity: int) -> dict[bytes, int]:
        self.txn.start_finding()
        span = KEYS.index_span(COUNTERS)
        written = {key: self.txn.buffer.writes[key].value for key in self.txn.written(span)}
        rows = dict(self.txn.scan(span))
        self._judged.found.append(Found(self.txn.read_at, written, rows))
        return {row: int(rows.get(row, b"0")) for row in ROWS if int(rows.get(row, b"0")) % 2 == parity}

    def _write(self, values: dict[bytes, int]) -> None:
        self.txn.start_writing()
        self._hold(list(values))
        for key, value in values.items():
            self.txn.put(key, b"%d" % value)
            self.added[key] += 1

    def _hold(self, keys: list[bytes]) -> None:
        self.txn.proof.hold(keys)
        for key in keys:
            self.held.setdefault(key, self.txn.read_at)

    # ── constraints ────────────────────────────────────────────────────────────────────────────

    def _take(self, key: bytes, *, locks: bool) -> None:
        """Inserts a key that must be absent."""
        txn = self.txn
        if key in txn.buffer.writes:
            return
        if locks:
            self._rows.acquire(self._owner, [key])
            txn.renew()

        def look() -> None:
            before = txn.proof.mark()
            if txn.proof.get_committed(key) is not None:
                raise Violated("the name is taken")
            txn.proof.guard(before, look)

        look()
        txn.put(key, b"%d" % self._owner.started_at)

    def _give_up(self, key: bytes) -> None:
        if key in self.txn.buffer.writes:
            return
        self._rows.acquire(self._owner, [key])
        self.txn.renew()
        self.txn.start_finding()
        is_there = self.txn.get(key) is not None
        self.txn.start_writing()
        if is_there:
            self._hold([key])
            self.txn.delete(key)

    def _add_child(self, number: int) -> None:
        txn, parent = self.txn, FAMILIES[number]
        child = KEYS.key(CHILDREN, [number, next(self._client._cluster.numbers)])

        def look() -> None:
            before = txn.proof.mark()
            if txn.get(parent) is None and txn.get(child) is not None:
                raise Violated("there is no such parent")
            txn.proof.guard(before, look)

        txn.put(child, b"")
        look()

    def _delete_parent(self, number: int) -> None:
        """With its children, those that come later too."""
        txn, parent = self.txn, FAMILIES[number]
        self._give_up(parent)
        write = txn.buffer.writes.get(parent)
        if write is None or write.value is not None:
            return

        def look() -> None:
            before = txn.proof.mark()
            if txn.get(parent) is None:
                for child, _ in list(txn.scan(_children_of(number))):
                    txn.delete(child)
            txn.proof.guard(before, look)

        look()


def _children_of(number: int) -> Span:
    return Span(KEYS.key(CHILDREN, [number]), KEYS.key(CHILDREN, [number + 1]))


# ── judging ────────────────────────────────────────────────────────────────────────────────────


def _lost_updates(judged: Judged, revisions: list[Revision]) -> Iterator[str]:
    newest = {each.key: each.value for each in revisions}
    for row in ROWS:
        least, found = judged.acked[row], int(newest.get(row) or b"0")
        if not least <= found <= least + judged.unknown[row]:
            yield f"lost update: {found} increments, of which {least} were acknowledged"


def _changed_while_held(judged: Judged, revisions: list[Revision]) -> Iterator[str]:
    times: dict[bytes, list[Timestamp]] = {}
    for each in revisions:
        times.setdefault(each.key, []).append(each.at)
    for commit_at, since in judged.held:
        for key, held_at in since.items():
            if any(held_at < at < commit_at for at in times.get(key, ())):
                yield f"held: {key!r} was changed between {held_at} and {commit_at}"


def _taken_names(revisions: list[Revision]) -> Iterator[str]:
    taken: dict[bytes, bytes | None] = {}
    for key, at, value in revisions:
        if key in UNIQUE or key in FAMILIES:
            if value is not None and taken.get(key) is not None:
                yield f"taken: {key!r} was taken by {taken[key]!r} when {value!r} took it at {at}"
            taken[key] = value


def _orphans(revisions: list[Revision]) -> Iterator[str]:
    state: dict[bytes, bytes | None] = {}
    spans = [(parent, _children_of(number)) for number, parent in enumerate(FAMILIES)]
    for at, together in groupby(revisions, key=attrgetter("at")):
        state |= {each.key: each.value for each in together}
        for parent, span in spans:
            if state.get(parent) is None:
                for key, value in state.items():
                    if span.lo <= key < span.hi and value is not None:
                        yield f"orphan: {key!r} has no parent at {at}"


def _wrong_finds(judged: Judged, revisions: list[Revision]) -> Iterator[str]:
    state: dict[bytes, bytes | None] = {}
    left = iter([each for each in revisions if each.key in ROWS])
    ahead = next(left, None)
    for found in sorted(judged.found, key=attrgetter("at")):
        while ahead is not None and ahead.at <= found.at:
            state[ahead.key] = ahead.value
            ahead = next(left, None)
        rows = {key: value for key, value in (state | found.written).items() if value is not None}
        if rows != found.rows:
            yield f"one time: at {found.at} {found.rows} was found, and there was {rows}"
