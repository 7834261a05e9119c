"""A process's expiring leases: one per descriptor, taken at first use, extended while in use.

    first use ──► row written ──► pinned, returned ──► most of its time is over: extended if it was
                                                       used since, else released
    a newer version is seen ──► a lease on that one; the older is closed, its row goes with the last pin

Each row is written in a transaction that reads the newest version, so an older version's lease is never
extended: a transaction that goes on using it must commit before it expires.

Each write or deletion of a row of a descriptor takes a turn first: a lease that is being released and one
that is being acquired may have the same row.

Invariant (I13): `expires_at` is what an acknowledged commit wrote.
Invariant (I16): a row is released only when nothing pins its lease, and nothing can any more.

Walk: `version_one.expiring_scheme` uses these alone; `version_one.mixed_scheme` keeps them beside the schema
lease.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tenure.base.env import Event
from tenure.base.errors import BaseMoved, DescriptorChanged, SnapshotTooOld
from tenure.base.settings import LEASE_DURATION, Settings
from tenure.base.timestamp import Timestamp, seconds_between
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import AnyDescriptor, DescriptorState, NameKey, place_of
from tenure.catalog.leases.catalog_use import CatalogUse, Pin
from tenure.catalog.leases.publish_holds import HELD_SECONDS, PublishHolds
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.version_one.expiring_lease_rows import AcquiredLease, LeaseOwner, OldLeaseRows

RENEWAL = 0.8
"""The fraction of its time after which a lease is extended: a shorter outage of the store does no harm."""

LOOK = 0.05
"""How often all leases are checked, as a fraction of the time that is left at a renewal."""

Pins = dict[int, Pin[Any]]
"""The pins of one use, by descriptor."""


STARTED_WITHIN = 1 << 30
"""One second in timestamps: a process may report a start that is later by up to this much."""


class DescriptorLease:
    """A lease of this process on one version of a descriptor."""

    def __init__(self, descriptor: AnyDescriptor, owner: LeaseOwner, expires_at: Timestamp) -> None:
        self.descriptor = descriptor
        self.owner = owner
        self.expires_at = expires_at
        self.pin: Pin[DescriptorLease] = Pin(self)
        self.is_used = True
        """Whether it was used since it was last extended."""

    @property
    def at(self) -> Timestamp:
        return self.descriptor.modified_at

    def has_row_of(self, other: "DescriptorLease") -> bool:
        return (self.descriptor.version, self.owner) == (other.descriptor.version, other.owner)


class DescriptorLeases:
    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        rows: OldLeaseRows,
        instance: Callable[[], int],
        settings: Callable[[], Settings],
        *,
        check: Callable[[Transaction], None] = lambda txn: None,
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._rows = rows
        self._instance = instance
        self._settings = settings
        self._check = check
        """Raises, in the transaction that writes a row, if no row may be written any more."""
        # Distinguishes this process from another that had its instance id before. With slow wall clocks,
        # processes that start at the same store clock have the same time: hence the random part.
        self._started_at = store.clock.now() + int(store.env.rng.uniform(0, STARTED_WITHIN))
        self.lock = store.env.lock()
        """Guards pins and the set of leases; never held across a call of the store."""
        self.held = PublishHolds(store.env, self.lock, self.is_pinned)
        self._newest: dict[int, DescriptorLease] = {}
        self._closed: list[DescriptorLease] = []
        self._places: dict[NameKey, DescriptorLease] = {}
        self._turns: dict[int, Event] = {}
        self._next_look = 0.0
        self._upkeep = store.env.lock()
        """Held while rows are renewed or released, and by a publisher that must find them unchanged."""
        self._taking_in = store.env.lock()
        self.seen_at = store.snapshot().at
        """The time up to which changes of the catalog have been applied."""

    def owner(self) -> LeaseOwner:
        return LeaseOwner(self._instance(), self._started_at)

    # ── using ──────────────────────────────────────────────────────────────────────────────────

    def pin(self, use: CatalogUse, id: int, pins: Pins) -> DescriptorLease | None:
        """Pins the newest version that is leased here, for `use` among `pins`; acquires a lease if there is
        none.
        """
        while True:
            with self.lock:
                use.check()
                held = self.held.of(id)
                lease = self._usable(id, use.txn.read_at) if held is None else None
                if lease is not None:
                    lease.is_used = True
                    lease.pin.uses[use] = None
                    pins[id] = lease.pin
                    return lease
            if held is not None:
                self.held.await_end(held)
            elif not self._acquire(id):
                return None

    def _usable(self, id: int, read_at: Timestamp) -> DescriptorLease | None:
        lease = self._newest.get(id)
        if lease is None or self._is_over(lease):
            return None
        if read_at < lease.at:
            raise DescriptorChanged(lease.descriptor.name, at=lease.descriptor.modified_at)
        return lease

    def _is_over(self, lease: DescriptorLease) -> bool:
        return lease.expires_at <= self._store.clock.now()

    def unpin(self, use: CatalogUse, ids: Iterable[int], pins: Pins) -> bool:
        """Releases pins, under the lock; returns whether a row can be released now."""
        is_awaited = False
        for id in ids:
            pin = pins.pop(id, None)
            if pin is None:
                continue
            del pin.uses[use]
            if not pin.uses:
                is_awaited = is_awaited or self._newest.get(id) is not pin.lease
                self.held.freed(id)
        return is_awaited

    def at_place(self, place: NameKey, read_at: Timestamp) -> int | None:
        """The descriptor that is leased here under this name; None proves nothing."""
        with self.lock:
            lease = self._places.get(place)
            if lease is None or self._is_over(lease) or read_at < lease.at:
                return None
            return lease.descriptor.id

    # ── rows ───────────────────────────────────────────────────────────────────────────────────

    def _acquire(self, id: int) -> bool:
        """Ensures that there is a lease; False if there is no such descriptor."""
        with self._turn(id):
            lease = self._newest.get(id)
            return (lease is not None and not self._is_over(lease)) or self._write(id)

    def _write(self, id: int) -> bool:
        """Leases the newest version, or extends that lease; in the descriptor's turn."""
        owner = self.owner()
        duration_seconds = self._settings()[LEASE_DURATION]

        def acquire(txn: Transaction) -> tuple[Transaction, AcquiredLease | None]:
            self._check(txn)
            return txn, self._rows.acquire(txn, id, owner, duration_seconds=duration_seconds)

        txn, acquired = self._store.transact(acquire)
        with self.lock:
            former = self._newest.get(id)
            if acquired is None:
                self._close(former)
                return False
            assert txn.commit_at is not None, "a lease was written without a commit"
            lease = DescriptorLease(acquired.descriptor, owner, txn.commit_at + acquired.lasts)
            if former is not None and lease.has_row_of(former):
                former.expires_at = max(former.expires_at, lease.expires_at)
                former.is_used = bool(former.pin.uses)
            else:
                self._close(former)
                self._open(lease)
        return True

    def _open(self, lease: DescriptorLease) -> None:
        self._newest[lease.descriptor.id] = lease
        if lease.descriptor.state is DescriptorState.PUBLIC:
            self._places[place_of(lease.descriptor)] = lease

    def _close(self, lease: DescriptorLease | None) -> None:
        """Closes it to new pins; its row is deleted when the last one is released."""
        if lease is None:
            return
        del self._newest[lease.descriptor.id]
        if self._places.get(place_of(lease.descriptor)) is lease:
            del self._places[place_of(lease.descriptor)]
        self._closed.append(lease)

    def release_closed(self) -> None:
        """Deletes the rows that this process no longer uses."""
        with self.lock:
            unused = [lease for lease in self._closed if not lease.pin.uses]
        for lease in unused:
            self._release(lease)

    def _release(self, lease: DescriptorLease) -> None:
        descriptor = lease.descriptor
        with self._upkeep, self._turn(descriptor.id):
            newest = self._newest.get(descriptor.id)
            if newest is None or not newest.has_row_of(lease):
                self._store.transact(
                    lambda txn: self._rows.release(txn, descriptor.id, descriptor.version, lease.owner)
                )
            with self.lock:
                if lease in self._closed:
                    self._closed.remove(lease)

    @contextmanager
    def freeze_rows(self) -> Iterator[None]:
        """Keeps the rows of held descriptors unchanged: first uses of them wait, and so does the upkeep."""
        with self._upkeep:
            yield

    @contextmanager
    def _turn(self, id: int) -> Iterator[None]:
        mine = self._store.env.event()
        while True:
            with self.lock:
                whose = self._turns.setdefault(id, mine)
            if whose is mine:
                break
            with self._store.env.waiting():
                whose.wait(HELD_SECONDS)
        try:
            yield
        finally:
            with self.lock:
                del self._turns[id]
            mine.set()

    # ── upkeep ──────────────────────────────────────────────────────────────────────────────────

    def renew_due(self) -> float:
        """Extends leases that are in use and soon over, releases the others; returns when to look again.

        It checks every lease, so it runs seldom: what is due until the next check is due now.
        """
        left_seconds = self._next_look - self._store.env.monotonic()
        if left_seconds > 0:
            return left_seconds
        margin_seconds = self._settings()[LEASE_DURATION] * (1 - RENEWAL)
        pause_seconds = margin_seconds * LOOK
        now_at = self._store.clock.now()
        for lease in list(self._newest.values()):
            if seconds_between(now_at, lease.expires_at) <= margin_seconds + pause_seconds:
                self._renew(lease)
        self._next_look = self._store.env.monotonic() + pause_seconds
        return pause_seconds

    def _renew(self, lease: DescriptorLease) -> None:
        if not self._close_unused(lease):
            with self._upkeep, self._turn(lease.descriptor.id):
                self._write(lease.descriptor.id)

    def _close_unused(self, lease: DescriptorLease) -> bool:
        with self.lock:
            if self._newest.get(lease.descriptor.id) is not lease:
                return True
            if lease.is_used or lease.pin.uses:
                return False
            self._close(lease)
            return True

    def take_in(self) -> None:
        """Leases the newest versions of leased descriptors that have changed."""
        with self._taking_in:
            doubts = self.held.doubts()
            snapshot = self._store.snapshot()
            for id in self._changed(snapshot):
                lease = self._newest.get(id)
                if lease is not None and self._is_changed(lease, snapshot):
                    self._renew(lease)
            self.seen_at = max(self.seen_at, snapshot.at)
            self.held.end(doubts)

    def _changed(self, snapshot: Snapshot) -> list[int]:
        try:
            revisions = snapshot.diff(self._catalog.span, since_at=self.seen_at)
        except (SnapshotTooOld, BaseMoved):
            return list(self._newest)
        head = self._catalog.descriptors_head
        keys = (self._catalog.columns_of(each.key) for each in revisions if each.key.startswith(head))
        return [id for (id,) in keys if isinstance(id, int)]

    def _is_changed(self, lease: DescriptorLease, snapshot: Snapshot) -> bool:
        stored = self._catalog.get(snapshot, lease.descriptor.id)
        return stored is None or stored.version > lease.descriptor.version

    # ── reading, and ending ─────────────────────────────────────────────────────────────────────

    def is_pinned(self, ids: Iterable[int]) -> bool:
        wanted = set(ids)
        with self.lock:
            leases = [*self._newest.values(), *self._closed]
            return any(lease.pin.uses for lease in leases if lease.descriptor.id in wanted)

    def is_past(self, id: int, before_at: Timestamp) -> bool:
        """Whether nothing here uses a version older than that, nor can begin to."""
        with self.lock:
            newest = self._newest.get(id)
            if newest is not None and newest.at < before_at:
                if newest.pin.uses:
                    return False
                self._close(newest)
            closed = (lease for lease in self._closed if lease.descriptor.id == id and lease.at < before_at)
            return not any(lease.pin.uses for lease in closed)

    def is_empty(self) -> bool:
        with self.lock:
            return not (self._newest or self._closed)

    def release(self) -> None:
        """Releases all leases, except those in use."""
        with self.lock:
            for lease in list(self._newest.values()):
                self._close(lease)
        self.release_closed()
