"""Small mistakes that once went unnoticed: a bound off by one, a forgotten fence, a look left out.

Each is met by a shape that was made for its kind: `edge_shapes`, `lake_edges`, `kept_shapes`, the nemesis's
interrupts, and `kept_predicates`.

Walk: `mutants.MUTANTS` is made of `ALL`, among others.
"""

from collections.abc import Collection, Iterable
from typing import Any

from tenure.base.errors import RetryError
from tenure.base.timestamp import Timestamp
from tenure.catalog.leases.catalog_use import CatalogUse, Lease, Pin
from tenure.catalog.leases.lease_pins import LeasePins, bound
from tenure.kv import reads
from tenure.kv.commits import Committer
from tenure.kv.reads import Reads, RefreshSpans
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.schema_change import in_transaction
from tenure.schema_change.in_transaction import CHILD_ATTEMPTS
from tenure.storage.engine import Commit, Outcome, ReadResult
from tenure.storage.sqlite.section import Ledger
from tenure.table.read import row_of
from tenure.table.rows import IndexEntry, Row, fits
from tenure.table.write import TableWriter
from tests.simulation.knobs import Knobs
from tests.simulation.schema_workloads import crowded, lingering, pausing, quiet

_apply = Ledger.apply

# ── the store ────────────────────────────────────────────────────────────────────────────────────


def outside_but_the_end(spans: Any, points: list[bytes]) -> list[bytes]:
    """A key at the end of a span counts as read with it, and is not proved by itself."""
    return [key for key in points if not any(lo <= key <= hi for lo, hi in spans)]


def forget_with_the_end(self: RefreshSpans, since: Reads, within: Any = None) -> None:
    for key in list(self.points)[since.points :]:
        if within is None or within.lo <= key <= within.hi:
            del self.points[key]
    kept = [
        each
        for each in self.spans[since.spans :]
        if within is not None and not (within.lo <= each.lo and each.hi <= within.hi)
    ]
    self.spans[since.spans :] = kept


def apply_without_marks(self: Ledger, commit: Commit, commit_at: Timestamp, *, is_last: bool) -> Outcome:
    """What members write is noted for the next ones, but that a mark has moved."""
    marks = dict(self._marks)
    outcome = _apply(self, commit, commit_at, is_last=is_last)
    self._marks.update(marks)
    return outcome


def gather_and_leave(self: Committer, leader: Any) -> None:
    """A leader that is stopped while it gathers takes its commit back, and that is all."""
    with self._lock:
        if len(self._queue) >= self._expected:
            return
        self._gathered.clear()
    try:
        self._gathered.wait(self._gather_seconds)
    except BaseException:
        with self._lock:
            self._queue.remove(leader)
        raise


def wait_and_leave(self: Committer, waiter: Any) -> None:
    """One that was just told to lead is stopped, and tells nobody."""
    try:
        waiter.woken.wait()
    except BaseException:
        with self._lock:
            if waiter in self._queue:
                self._queue.remove(waiter)
        raise


def look_below_the_mark(self: Store, key: bytes) -> ReadResult | None:
    """Whatever the store has of a row is taken for the truth."""
    found = self.engine.get(key, self.keyspace.point_guard(key))
    if found.cleaned_at and not found.revisions:
        return None
    self.clock.observe(found.clock_at)
    return found


# ── leases ───────────────────────────────────────────────────────────────────────────────────────


def pin_known_held(self: LeasePins, use: CatalogUse, ids: Iterable[int]) -> bool:
    """What was planned under this lease is good as long as that is open, it is thought."""
    lease = bound(use)
    with self._lock:
        if use.ended or lease.is_closed or lease.session.done.is_set():
            return False
        _pin_all(lease, use, ids)
    return True


def pin_known_closed(self: LeasePins, use: CatalogUse, ids: Iterable[int]) -> bool:
    """A use stays with its lease, closed or not."""
    lease, held = bound(use), self._holds.of
    with self._lock:
        if use.ended or lease.session.done.is_set() or any(map(held, ids)):
            return False
        _pin_all(lease, use, ids)
    return True


def _pin_all(lease: Lease, use: CatalogUse, ids: Iterable[int]) -> None:
    for id in ids:
        pin = lease.pins.setdefault(id, Pin(lease))
        pin.uses[use] = None
        use.pins[id] = pin


def good_though_held(self: LeasePins, lease: Lease, ids: Iterable[int], read_at: Timestamp) -> bool:
    return not lease.is_closed and read_at < lease.frontier_at and not lease.session.done.is_set()


def good_though_closed(self: LeasePins, lease: Lease, ids: Iterable[int], read_at: Timestamp) -> bool:
    is_held = any(self._holds.of(id) is not None for id in ids)
    return not is_held and read_at < lease.frontier_at and not lease.session.done.is_set()


def good_whatever_the_frontier(self: LeasePins, lease: Lease, ids: Iterable[int], read_at: Timestamp) -> bool:
    is_held = any(self._holds.of(id) is not None for id in ids)
    return not is_held and not lease.is_closed


# ── changes and rows ─────────────────────────────────────────────────────────────────────────────


def children_unfenced(self: Any, run: Any) -> Any:
    """A child is of its parent, which is fenced: so need not it be."""
    attempts = CHILD_ATTEMPTS
    while True:
        attempts -= 1
        child: Transaction = self._parent.child(committed_only=True)
        try:
            result = run(child)
            child.commit()
            return result
        except RetryError:
            if attempts == 0:
                raise
        finally:
            child.rollback()


def in_the_way_if_public(
    self: TableWriter, txn: Transaction, row: Row, arbiters: Collection[int]
) -> Row | None:
    """An index that is being built is nobody's arbiter."""
    for index in self.layout.indexes.values():
        if not index.is_public or not index.collides(row.values) or (arbiters and index.id not in arbiters):
            continue
        entry = self.layout.entry(index, row, self._context)
        stored = None if entry is None or not fits(entry) else txn.get(entry.key)
        if entry is not None and stored is not None:
            return row_of(txn, self.layout, index, IndexEntry(entry.key, stored))
    return None


# ── workloads ────────────────────────────────────────────────────────────────────────────────────


def gathering(knobs: Knobs) -> None:
    """Few nodes with many clients and slow commits, so that most commits go in groups."""
    quiet(knobs)
    knobs.nodes, knobs.clients, knobs.group_max = 2, 4, 128
    knobs.commit_seconds, knobs.read_seconds, knobs.think_seconds = 0.8, 0.02, 0.05


def interrupting(knobs: Knobs) -> None:
    """The same, with threads that are stopped while they commit."""
    gathering(knobs)
    knobs.rates["interrupt"] = 0.5


def alone(knobs: Knobs) -> None:
    """One node, whose changes are single commits that take their time: its clients meet what it holds."""
    quiet(knobs)
    knobs.nodes, knobs.clients, knobs.keys = 1, 4, 6
    knobs.commit_seconds, knobs.read_seconds, knobs.answer_rate = 0.3, 0.05, 0.6
    knobs.think_seconds = 0.1


def building(knobs: Knobs) -> None:
    """Rows that collide, and indexes that take long to be built."""
    crowded(knobs)
    knobs.nodes, knobs.keys = 2, 4


ALL: tuple[tuple[Any, ...], ...] = (
    ("a key at the end of a span not proved", ((reads, "_outside", outside_but_the_end),), "edges"),
    (
        "a key at the end of what is forgotten forgotten too",
        ((RefreshSpans, "forget", forget_with_the_end),),
        "edges",
    ),
    (
        "a mark that a member moved not seen by the next",
        ((Ledger, "apply", apply_without_marks),),
        "imports",
        gathering,
    ),
    (
        "a leader stopped while it gathers leaves the rest",
        ((Committer, "_gather", gather_and_leave),),
        "plain",
        interrupting,
    ),
    (
        "a waiter stopped when it is to lead leaves the rest",
        ((Committer, "_wait", wait_and_leave),),
        "plain",
        interrupting,
    ),
    (
        "a kept plan pins what a publisher holds",
        ((LeasePins, "pin_known", pin_known_held),),
        "kept plans",
        alone,
    ),
    (
        "a kept plan pins under a closed lease",
        ((LeasePins, "pin_known", pin_known_closed),),
        "kept plans",
    ),
    (
        "a glance believed beside a publisher",
        ((LeasePins, "was_good", good_though_held),),
        "glances",
        alone,
    ),
    (
        "a glance believed under a closed lease",
        ((LeasePins, "was_good", good_though_closed),),
        "kept plans",
        lingering,
    ),
    (
        "a glance believed past the frontier",
        ((LeasePins, "was_good", good_whatever_the_frontier),),
        "kept plans",
        pausing,
    ),
    (
        "children of a change not fenced",
        ((in_transaction._Children, "__call__", children_unfenced),),
        "rows and changes",
        pausing,
    ),
    (
        "ON CONFLICT looks at public indexes alone",
        ((TableWriter, "_in_the_way", in_the_way_if_public),),
        "inserts",
        building,
    ),
)
"""(name, what is swapped, profile, change of the knobs)."""
