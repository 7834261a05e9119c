"""What leases and schema changes add to the recorded history.

The store's own history says which versions and lease rows there were; this adds what nodes did under
them: which descriptors a transaction was handed and under which lease each was pinned, the frontier
it went by, the names it resolved, what its rows were meant to be, and what a change declared.

What must hold in the very instant of a commit is judged there (`lease_watch`), because memory cannot
be asked afterwards.

Walk: `TracingLeases` is the product's, recording; `schema_history` and the predicates read it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.definitions import AnyDescriptor, NameKey, SchemaEntry
from tenure.catalog.leases.catalog_use import CatalogUse, Lease
from tenure.catalog.leases.lease_pins import LeasePins, bound
from tenure.catalog.leases.node_leases import Leases
from tenure.cluster.sessions.liveness import NodeSession
from tenure.cluster.sessions.session_records import SessionId
from tenure.kv.transaction import Transaction
from tenure.storage.engine import Commit, Outcome
from tests.simulation.hub import Machine
from tests.simulation.predicates import Violation
from tests.simulation.trace import Trace, Txn
from tests.simulation.tracing import TracingTransaction

if TYPE_CHECKING:
    from tests.simulation.expiring_trace import RowFrontier, TracingDescriptorLeases


class Handed(NamedTuple):
    """A descriptor that was handed out, pinned under a lease."""

    step: int
    descriptor: AnyDescriptor
    lease_at: Timestamp


class RowKey(NamedTuple):
    """A row of `system.lease`: an expiring lease of one process on one version."""

    descriptor: int
    version: int
    instance: int
    started_at: Timestamp


class Resolved(NamedTuple):
    """A name that was looked up as of some time; of a map, the place is (database, 0, name)."""

    step: int
    place: NameKey
    id: int | None
    is_map: bool
    at: Timestamp


class Frontier(NamedTuple):
    step: int
    session: SessionId
    expires_at: Timestamp


class Believed(NamedTuple):
    """A read without pins that was believed: by which descriptors, under whose lease, as of when."""

    descriptors: tuple[AnyDescriptor, ...]
    session: SessionId
    at: Timestamp


class Emitted(NamedTuple):
    """What a feed took a table for when it would have emitted a row of some time."""

    step: int
    table: int
    at: Timestamp
    row: int
    is_fast: bool


class Effect(NamedTuple):
    """What a transaction does to a row, in words of the table: values by column id, None deletes."""

    table: int
    key: int
    values: dict[int, object] | None
    is_insert: bool
    is_of_all: bool = False
    """All rows of the table are gone: it was truncated."""


@dataclass(eq=False)
class UseRecord:
    txn: Txn
    process: str
    lease_at: Timestamp
    session: SessionId | None
    """None where leases live by their expiration alone."""
    handed: list[Handed] = field(default_factory=list)
    resolved: list[Resolved] = field(default_factory=list)
    pinned: dict[int, Timestamp] = field(default_factory=dict)
    """Under which lease each descriptor is pinned just now, as far as the product says."""
    rows: dict[int, RowKey] = field(default_factory=dict)
    """Under which expiring lease each descriptor is pinned just now, or was when it was over."""
    given_up: set[int] = field(default_factory=set)
    ended: int = 0
    """When its node ended it, as somebody had waited for it."""
    effects: list[Effect] = field(default_factory=list)
    bases: dict[int, int] = field(default_factory=dict)
    """By descriptor: the version that its draft was made from."""
    named: dict[NameKey, int] = field(default_factory=dict)
    """Tables that it used by name."""
    checked: list["Checked"] = field(default_factory=list)


class Right(NamedTuple):
    """A privilege of a table that a transaction granted to a role, or revoked."""

    table: int
    role: str
    bits: int
    is_grant: bool


class Checked(NamedTuple):
    """The answer whether a role has a privilege of a table, by a lease, when a statement began."""

    step: int
    table: int
    role: str
    privilege: int
    is_allowed: bool
    lease_at: Timestamp


class Cleaned(NamedTuple):
    table: int
    read_at: Timestamp


@dataclass(eq=False)
class Declared:
    """One attempt at a schema change."""

    use: UseRecord
    kind: str
    elements: list[tuple[int, str]] = field(default_factory=list)
    """(table, name) of what it adds; names are unique to an attempt."""
    outcome: str = ""
    sqlstate: str = ""
    ended: int = 0
    cleaned: Cleaned | None = None
    """What it had cleaned up before."""
    right: Right | None = None


class SchemaTrace(Trace):
    def __init__(self) -> None:
        super().__init__()
        self.machines: dict[str, Machine] = {}
        self.processes: dict[int, str] = {}
        """By transaction: the process that began it."""
        self.leases: dict[str, TracingLeases] = {}
        """By process: what it holds in memory."""
        self.expiring: dict[str, TracingDescriptorLeases] = {}
        """By process: its expiring leases, if it has any."""
        self.uses: dict[int, UseRecord] = {}
        self.declared: list[Declared] = []
        self.frontiers: list[Frontier] = []
        self.row_frontiers: list[RowFrontier] = []
        self.believed: list[tuple[int, Believed]] = []
        """With the steps at which they were."""
        self.emitted: list[Emitted] = []
        self.releases: set[SessionId] = set()
        """Sessions that were given up, or were about to be, by the process they were of."""
        self.found: list[Violation] = []
        """What was seen to be wrong while it happened."""
        self.published: dict[int, list[Any]] = {}
        """By descriptor: its versions, as `lease_watch.Published`."""
        self.landed: Callable[[Txn], None] = lambda txn: None

    def process(self, node: str) -> str:
        return f"{node}/{self.machines[node].generation}"

    def begin(self, node: str, tenant: int, parent: Txn | None, committed_only: bool, t: float) -> Txn:
        txn = super().begin(node, tenant, parent, committed_only, t)
        self.processes[txn.id] = self.process(node)
        return txn

    def decided(self, commit: Commit, outcome: Outcome, **landing: Any) -> None:
        super().decided(commit, outcome, **landing)
        txn = self.txn_of(commit)
        if txn.landed == self.step and txn.landed_at is not None:
            self.landed(txn)

    def believe(self, read: Believed) -> None:
        self.believed.append((self.tick(), read))

    def wrong(self, predicate: str, message: str, *txns: Txn) -> None:
        self.found.append(Violation(predicate, message, self.step, tuple(txn.id for txn in txns)))


def record_of(txn: Transaction) -> Txn:
    assert isinstance(txn, TracingTransaction)
    return txn.record


class TracingPins(LeasePins):
    """Records what is handed out under which lease, and for how long."""

    trace: SchemaTrace
    process: str

    def record(self, use: CatalogUse) -> UseRecord:
        txn, lease = record_of(use.txn), bound(use)
        if txn.id not in self.trace.uses:
            self.trace.uses[txn.id] = UseRecord(txn, self.process, lease.at, lease.session.id)
        return self.trace.uses[txn.id]

    def record_moves(self) -> None:
        """Pins have moved to a newer lease."""
        for use in self._uses:
            record = self.record(use)
            for id, pin in use.pins.items():
                record.pinned[id] = pin.lease.at

    def _pin(self, use: CatalogUse, id: int) -> AnyDescriptor | None:
        descriptor = super()._pin(use, id)
        if descriptor is not None:
            self._note_handed(use, descriptor)
        return descriptor

    def pin_known(self, use: CatalogUse, ids: Iterable[int]) -> bool:
        is_pinned = super().pin_known(use, ids)
        for id in ids if is_pinned else ():
            descriptor = bound(use).version.descriptor(id)
            assert descriptor is not None, "a plan was kept of what its lease does not have"
            self._note_handed(use, descriptor)
        return is_pinned

    def _note_handed(self, use: CatalogUse, descriptor: AnyDescriptor) -> None:
        record, lease_at = self.record(use), use.pins[descriptor.id].lease.at
        record.handed.append(Handed(self.trace.tick(), descriptor, lease_at))
        record.pinned[descriptor.id] = lease_at
        record.given_up.discard(descriptor.id)

    def id_at(self, use: CatalogUse, place: NameKey) -> int | None:
        id = super().id_at(use, place)
        self.record(use).resolved.append(Resolved(self.trace.tick(), place, id, False, bound(use).at))
        return id

    def schema_entry(self, use: CatalogUse, database: int, name: str) -> SchemaEntry | None:
        entry = super().schema_entry(use, database, name)
        place, id = NameKey(database, 0, name), None if entry is None else entry.id
        self.record(use).resolved.append(Resolved(self.trace.tick(), place, id, True, bound(use).at))
        return entry

    def frontier_at(self, use: CatalogUse) -> Timestamp:
        frontier_at = super().frontier_at(use)
        self.trace.frontiers.append(Frontier(self.trace.tick(), bound(use).session.id, frontier_at))
        return frontier_at

    def unpin(self, use: CatalogUse, ids: Iterable[int]) -> None:
        ids = list(ids)
        self.record(use).given_up.update(ids)
        super().unpin(use, ids)

    def end(self, use: CatalogUse, reason: str) -> bool:
        is_ended = super().end(use, reason)
        if is_ended:
            self.record(use).ended = self.trace.tick()
            self.trace.seen["holder ended" if "held up" in reason else "use of a lost session ended"] += 1
        return is_ended


class TracingLeases(Leases):
    """Records which leases there were, and what moved to them."""

    pins_type = TracingPins
    pins: TracingPins
    trace: SchemaTrace
    on_install: Callable[[list[Lease]], None]

    def attach(self, trace: SchemaTrace, process: str, on_install: Callable[[list[Lease]], None]) -> None:
        self.trace, self.on_install = trace, on_install
        self.pins.trace, self.pins.process = trace, process
        self.every: list[Lease] = []
        trace.leases[process] = self
        self._close = self.generations._close
        self.generations._close = self._record_close  # type: ignore[method-assign]

    def _record_close(self, older: Lease, newer: Lease) -> None:
        self._close(older, newer)
        self.every.append(newer)
        self.pins.record_moves()

    def record(self, use: CatalogUse) -> UseRecord:
        return self.pins.record(use)

    def renew(self) -> None:
        session = self._session()
        try:
            super().renew()
        finally:
            if session.done.is_set():
                self.trace.seen["epoch bump during lease acquisition"] += 1

    def install(self, lease_at: Timestamp, session: NodeSession) -> None:
        super().install(lease_at, session)
        newest = self.generations.newest
        if newest is not None and newest not in self.every:
            self.every.append(newest)
        self.on_install(self.generations.all())
