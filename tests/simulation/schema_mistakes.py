"""Wrong versions of what leases and schema changes do, each as somebody might really have written it.

Walk: `mutants.MUTANTS` has `ALL` beside the others; a swap replaces the function of the same place.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tenure.base.errors import RetryError
from tenure.base.timestamp import MAX_AT, Timestamp
from tenure.catalog.changes import publisher
from tenure.catalog.changes.publisher import Publisher, Settled, _settled
from tenure.catalog.descriptors import name_entries as names_module
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    NameKey,
    SchemaEntry,
    Table,
    next_version,
    place_of,
    replace,
)
from tenure.catalog.descriptors.name_entries import move_names
from tenure.catalog.leases.blockers import SchemaLeaseTable
from tenure.catalog.leases.catalog_cache import Cache, Key, Value
from tenure.catalog.leases.catalog_use import CatalogUse, Lease, Pin, Scheme
from tenure.catalog.leases.lease_generations import LeaseGenerations
from tenure.catalog.leases.lease_pins import LeasePins, bound
from tenure.catalog.leases.lease_rows import LeaseRow, LeaseRows
from tenure.catalog.leases.lease_waits import LeaseWaiter, LeaseWaits
from tenure.catalog.leases.node_leases import Leases
from tenure.catalog.leases.wait_records import AwaitedDescriptor
from tenure.cluster.jobs.runs import JobKind, Run
from tenure.cluster.sessions.liveness import Liveness, NodeSession
from tenure.kv.records import unpack
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.schema_change import job
from tenure.schema_change.in_transaction import InTransaction
from tenure.schema_change.job import ChangePayload, RunProgress
from tenure.schema_change.stages import work_before
from tenure.schema_change.walk import Walk
from tenure.schema_change.work import Worker
from tenure.table.rows import Layout
from tenure.version_one.expiring_lease_rows import OldLeaseRow, OldLeaseRows
from tenure.version_one.expiring_lease_table import ExpiringLeaseTable
from tenure.version_one.expiring_scheme import ExpiringLeases
from tests.simulation import schema_processes
from tests.simulation.job_mistakes import frontier_before_ack
from tests.simulation.schema_workloads import (
    coming_and_going,
    crowded,
    dying,
    lingering,
    pausing,
    quiet,
    sparse,
    stubborn,
)

_last_step = InTransaction._last_step
_kind = job.schema_change_kind

# ── leases ───────────────────────────────────────────────────────────────────────────────────────


def narrowed_with_renewal(self: Leases) -> None:
    """One transaction instead of two: the new lease, and what is left of the old one."""
    session, older = self._session(), self.generations.newest
    txn = self._store.begin()
    try:
        self._rows.write(txn, session.id)
        if older is not None and older.session is session:
            self._rows.narrow(txn, older.at, session.id, frozenset(older.pins), ())
        with self.freeze_rows():
            lease_at = txn.commit()
    finally:
        txn.rollback()
    self.install(lease_at, session)


def carried_with_pinned_rows(self: Leases, txn: Transaction) -> NodeSession:
    """A lease that is closed is over, it is thought."""
    session = self._session()
    self._rows.write(txn, session.id)
    for lease in self.generations.closed():
        self._rows.delete(txn, lease.at, session.id)
    return session


def pinned_where_bound(self: LeasePins, lease: Lease, id: int) -> Lease:
    """A transaction stays with its lease, it is thought, whatever its row covers by now."""
    if lease.session.done.is_set():
        raise RetryError("lost")
    return lease


def bind_unchecked(
    self: LeasePins, txn: Transaction, *, statement: str = "", scheme: Scheme | None = None
) -> CatalogUse:
    with self._lock:
        lease = self._generations.newest
        if lease is None:
            raise RetryError("no lease")
        self._use_count += 1
        use = CatalogUse(self, lease, txn, number=self._use_count, started_at=self._clock.now())
        self._uses[use] = None
    return use


def frontier_not_checked(self: CatalogUse) -> None:
    """A read that comes too late is not noticed."""


def commit_below_frontier_if_writing(self: CatalogUse) -> Timestamp:
    """Only who writes has a deadline; who reads has read already."""
    self._scheme.start_commit(self)
    try:
        if self.txn._writes:
            self.txn.deadline_at = self._scheme.frontier_at(self)
        return self.txn.commit()
    finally:
        self.close()


def frontier_of_newest_session(self: LeasePins, use: CatalogUse) -> Timestamp:
    """The expiration of the node's present session, though the lease may be of a former one."""
    return (self._generations.newest or bound(use)).frontier_at


def lost_without_end(self: Leases, session: NodeSession) -> None:
    self.wake()


def commit_without_deadline(self: CatalogUse) -> Timestamp:
    self._scheme.start_commit(self)
    try:
        self.check_frontier()
        return self.txn.commit()
    finally:
        self.close()


def released_before_commit(self: CatalogUse) -> Timestamp:
    """All reads are done, so the pins are not needed any more."""
    self._scheme.start_commit(self)
    try:
        self.check_frontier()
        self.txn.deadline_at = self._scheme.frontier_at(self)
        self._scheme.finish(self)
        return self.txn.commit()
    finally:
        self.close()


def close_moving_all(self: LeaseGenerations, older: Lease, newer: Lease) -> None:
    older.is_closed = True
    if older.session is not newer.session:
        return
    self._closed.append(older)
    for id in list(older.pins):
        moved, pin = older.pins.pop(id), Pin(newer)
        newer.pins[id] = pin
        for use in moved.uses:
            pin.uses[use] = None
            use.pins[id] = pin


def cut_off_by_deleting(self: LeaseWaits, awaited: Sequence[AwaitedDescriptor], reason: str) -> None:
    """Who does not give its lease up loses it."""
    records = LeaseRows(self._store.keyspace, self._sessions)._rows
    for blocker in self.blockers(awaited):
        row = blocker.row
        assert isinstance(row, LeaseRow)
        self._store.transact(
            lambda txn, row=row: records.delete(txn, row.lease_at, *row.session)  # type: ignore[misc]
        )


def delete_of_expired(self: LeaseRows, txn: Transaction, row: LeaseRow) -> bool:
    """An expired session is as good as gone."""
    present = self._sessions.find(txn, row.session)
    if present is not None and present.expires_at >= txn.read_at:
        return False
    self._rows.delete(txn, row.lease_at, *row.session)
    return True


def clear_at_expiry(self: SchemaLeaseTable, row: LeaseRow) -> float | None:
    expires_at = self._deaths.expiry(row.session)
    if expires_at is not None and expires_at > self._store.clock.now():
        return 0.1
    self._store.transact(lambda txn: self._rows.delete_abandoned(txn, row))
    return None


def resumed_without_pins(self: CatalogUse) -> None:
    """What was pinned before the wait is used on, without asking whether it may be."""
    self._paused = []


def pin_held(self: LeasePins, use: CatalogUse, id: int) -> AnyDescriptor | None:
    with self._lock:
        use.check()
        return self._pin(use, id)


def changes_without_tombstones(self: Cache, snapshot: Snapshot) -> dict[Key, Value | None]:
    if self.newest.at == 0:
        return dict(self._all(snapshot))
    revisions = snapshot.diff(self.catalog.span, since_at=self.newest.at)
    return {self._key(key): self._decoded(key, value) for key, _, value in revisions if value is not None}


# ── expiring leases ──────────────────────────────────────────────────────────────────────────────


def delete_before_expiry(self: OldLeaseRows, txn: Transaction, row: OldLeaseRow) -> None:
    """It will have expired soon enough."""
    if self._rows.get(txn, row.descriptor, row.version, *row.owner) is not None:
        self._rows.delete(txn, row.descriptor, row.version, *row.owner)


def clear_without_waiting(self: ExpiringLeaseTable, row: OldLeaseRow) -> float | None:
    self._store.transact(lambda txn: self._rows.delete_expired(txn, row))
    return None


def no_frontier(self: ExpiringLeases, use: CatalogUse) -> Timestamp:
    """A lease is renewed before it expires, so there is no need to look."""
    return MAX_AT


# ── publishing ───────────────────────────────────────────────────────────────────────────────────


def two_versions_at_once(descriptor: Any) -> Any:
    return replace(next_version(descriptor), version=descriptor.version + 2)


def settled_unasked(self: Publisher, ids: Iterable[int], waiter: object, **_: object) -> Settled:
    return _settled(self._stored(self._store.snapshot(), ids))


def alone_by_an_earlier_look(self: Publisher, txn: Transaction, ids: Sequence[int]) -> Settled:
    """It was asked a moment ago."""
    return _settled(self._stored(txn, ids))


def places_without_draining(descriptor: AnyDescriptor | None) -> frozenset[NameKey]:
    if descriptor is None or descriptor.state.value == "dropped":
        return frozenset()
    return frozenset({place_of(descriptor)})


class _MapsLater:
    """A catalog that leaves the databases' maps to a transaction of its own."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.later: list[Callable[[Transaction], None]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def put_schema_entry(self, txn: Transaction, entry: SchemaEntry) -> None:
        self.later.append(lambda later: self._catalog.put_schema_entry(later, entry))

    def delete_schema_entry(self, txn: Transaction, database: int, name: str) -> None:
        self.later.append(lambda later: self._catalog.delete_schema_entry(later, database, name))


def publish_maps_later(
    self: Publisher, txn: Transaction, descriptors: Sequence[AnyDescriptor], settled: Settled
) -> None:
    maps = _MapsLater(self._catalog)
    databases: set[int] = set()
    for descriptor in descriptors:
        former = self._catalog.get(txn, descriptor.id)
        self._check(former, descriptor, settled)
        databases |= move_names(txn, maps, [(former, descriptor)])  # type: ignore[arg-type]
        self._catalog.put(txn, next_version(descriptor))
    if maps.later:
        entries = list(maps.later)
        self._store.env.spawn("maps", lambda: self._store.transact(lambda late: _all(entries, late)))


def _all(entries: list[Callable[[Transaction], None]], txn: Transaction) -> None:
    for entry in entries:
        entry(txn)


def work_at_once(self: Walk, descriptors: Sequence[AnyDescriptor]) -> None:
    """Fills as soon as the version is written, whoever still writes by the one before it."""
    for table in descriptors:
        if isinstance(table, Table):
            for work in work_before(table):
                self._do(table, work)


def made_from_the_lease(
    self: InTransaction, use: CatalogUse, declared: AnyDescriptor, job: int
) -> AnyDescriptor:
    """The next version after the one that the transaction began with."""
    return replace(_last_step(self, use, declared, job), version=use.draft.made_from[declared.id])


def nothing_left_out(self: Worker, layout: Layout) -> frozenset[bytes]:
    """Children fill and prove all committed rows, those that their parent has written too."""
    return frozenset()


def completed_by_children(self: Worker, txn: Transaction, declared: Table) -> None:
    """What is proved of committed rows is proved, it is thought."""


def check_nothing(
    self: Publisher, former: AnyDescriptor | None, descriptor: AnyDescriptor, settled: Settled
) -> None:
    return None


def forward_whatever(make_walk: Callable[..., Walk]) -> JobKind:
    """Whoever adopts a change walks it to its end."""
    kind = _kind(make_walk)

    def run(run: Run) -> None:
        payload = unpack(run.job.payload, ChangePayload)
        walk = make_walk(
            payload.descriptors,
            job=run.job.id,
            transact=run.transact,
            waiter=LeaseWaiter(run.job.created_at, check=run.check),
            progress=RunProgress(run),
        )
        walk.to_the_end()

    return JobKind(run, kind.revert)


ALL: tuple[tuple[Any, ...], ...] = (
    (
        "closed leases given up although they are pinned",
        ((Leases, "write_next_lease", carried_with_pinned_rows),),
        "schema",
        lingering,
    ),
    (
        "lease narrowed in the renewal's transaction",
        ((Leases, "renew", narrowed_with_renewal),),
        "schema",
        lingering,
    ),
    (
        "narrowed lease used outside its set",
        ((LeasePins, "_lease_instead", pinned_where_bound),),
        "schema",
        lingering,
    ),
    (
        "read-only work does not check F",
        (
            (LeasePins, "bind", bind_unchecked),
            (CatalogUse, "check_frontier", frontier_not_checked),
            (CatalogUse, "commit", commit_below_frontier_if_writing),
        ),
        "schema",
        pausing,
    ),
    (
        "lease used up to F of another epoch",
        ((LeasePins, "frontier_at", frontier_of_newest_session), (Leases, "end_session", lost_without_end)),
        "schema",
        pausing,
    ),
    ("lease used up to F before the ack", ((Liveness, "_beat", frontier_before_ack),), "schema", pausing),
    ("deadline not set at commit", ((CatalogUse, "commit", commit_without_deadline),), "schema", pausing),
    (
        "live session's lease deleted",
        ((LeaseWaits, "cut_off", cut_off_by_deleting),),
        "schema",
        stubborn,
    ),
    (
        "lease of an expired session deleted",
        ((LeaseRows, "delete_abandoned", delete_of_expired), (SchemaLeaseTable, "_clear", clear_at_expiry)),
        "schema",
        pausing,
    ),
    ("two versions in one transaction", ((publisher, "next_version", two_versions_at_once),), "schema"),
    ("published without a wait", ((Publisher, "settle", settled_unasked),), "schema", lingering),
    ("lease released while in use", ((CatalogUse, "commit", released_before_commit),), "schema", crowded),
    (
        "pins not taken again after a wait",
        ((CatalogUse, "resume", resumed_without_pins),),
        "schema",
        lingering,
    ),
    ("pins moved across versions", ((LeaseGenerations, "_close", close_moving_all),), "schema", lingering),
    ("name removed before the drain", ((names_module, "places", places_without_draining),), "names"),
    ("schema map in a second transaction", ((Publisher, "publish", publish_maps_later),), "names"),
    ("backfill before the wait", ((Walk, "work", work_at_once),), "indexes", crowded),
    (
        "alone without the section's check",
        ((Publisher, "alone", alone_by_an_earlier_look),),
        "alone",
        coming_and_going,
    ),
    ("own hold ignored", ((LeasePins, "pin", pin_held),), "schema", sparse),
    (
        "child's version not seen by its parent",
        ((InTransaction, "_last_step", made_from_the_lease), (Publisher, "_check", check_nothing)),
        "rows and changes",
        quiet,
    ),
    (
        "proof counts rows that its transaction has removed",
        ((Worker, "_without", nothing_left_out),),
        "rows and changes",
        quiet,
    ),
    (
        "proof by committed rows only",
        ((Worker, "complete", completed_by_children),),
        "rows and changes",
        quiet,
    ),
    (
        "change of a dead transaction walks forward",
        ((schema_processes, "schema_change_kind", forward_whatever),),
        "rows and changes",
        dying,
    ),
    (
        "expiring lease deleted early",
        (
            (OldLeaseRows, "delete_expired", delete_before_expiry),
            (ExpiringLeaseTable, "_clear", clear_without_waiting),
        ),
        "expiring",
        lingering,
    ),
    (
        "expiring lease used after its end",
        ((ExpiringLeases, "frontier_at", no_frontier),),
        "expiring",
        pausing,
    ),
    ("cache diff without tombstones", ((Cache, "_changes", changes_without_tombstones),), "names"),
)
"""(name, what is swapped, profile, change of the knobs)."""
