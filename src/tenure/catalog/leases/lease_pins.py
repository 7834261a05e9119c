"""The transactions of this node that use the catalog, and their pins under each schema lease.

    bind ──► the newest lease ──► pin (lease, descriptor), ... ──► finish: the pins are released

All of it is guarded by the lock of `LeaseGenerations`, which is never held across a call of the store: a use
of the catalog never waits for the store. It waits only for a publisher of its own node, which holds the
descriptors that it changes.

Invariant (I13): the frontier is the expiration of the lease's own epoch, as acknowledged.

Walk: `catalog.leases.catalog_use` calls `pin`, `start_commit` and `finish`; `catalog.leases.node_leases`
calls `bind`; this calls `PublishHolds.of` before it pins.
"""

import logging
from collections.abc import Callable, Iterable

from tenure.base.errors import RetryError
from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.definitions import AnyDescriptor, NameKey, SchemaEntry
from tenure.catalog.leases.catalog_use import CatalogUse, Lease, Pin, Scheme, UseState, check_below
from tenure.catalog.leases.lease_generations import LeaseGenerations
from tenure.catalog.leases.publish_holds import PublishHolds
from tenure.cluster.sessions.liveness import NodeSession
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction

_log = logging.getLogger(__name__)


class LeasePins:
    def __init__(
        self,
        store: Store,
        generations: LeaseGenerations,
        holds: PublishHolds,
        *,
        on_unpinned: Callable[[], None],
    ) -> None:
        """`on_unpinned` is called when a closed lease can be narrowed further."""
        self._clock = store.clock
        self._generations = generations
        self._lock = generations.lock
        self._holds = holds
        self._on_unpinned = on_unpinned
        self._uses: dict[CatalogUse, None] = {}
        self._use_count = 0

    # ── binding ────────────────────────────────────────────────────────────────────────────────

    def bind(self, txn: Transaction, *, statement: str = "", scheme: Scheme | None = None) -> CatalogUse:
        """Binds a transaction to the newest lease; its `read_at` is taken after that.

        `scheme` answers the calls of the use, where schema leases are only a part of that scheme.
        """
        with self._lock:
            lease = self._generations.newest
            if lease is None or lease.session.done.is_set():
                raise RetryError("this node has no schema lease just now; it is getting a new one")
            now_at = self._clock.now()
            check_below(lease.frontier_at, now_at)
            self._use_count += 1
            use = CatalogUse(scheme or self, lease, txn, number=self._use_count, started_at=now_at)
            self._uses[use] = None
        use.statement = statement
        return use

    def follow_newest(self, use: CatalogUse) -> None:
        lease = bound(use)
        with self._lock:
            newest = self._generations.newest
            if lease.is_closed and newest is not None and newest.session is lease.session:
                use.lease = newest

    def peek(self) -> Lease | None:
        """The newest lease, for one read without pins that `was_good` checks afterwards."""
        return self._generations.newest

    def was_good(self, lease: Lease, ids: Iterable[int], read_at: Timestamp) -> bool:
        """Whether a read at `read_at`, just made with these descriptors of a lease, is valid.

        It had no pins, so it is checked afterwards. As long as the lease is not closed its row covers
        everything, and no node publishes more than one version after those it has: the same as a pin. A
        publisher of this node holds its descriptors first, and closes the lease before it releases the hold;
        hence the order of the two checks.
        """
        if self._holds.has_any(ids):
            return False
        return not lease.is_closed and read_at < lease.frontier_at and not lease.session.done.is_set()

    # ── pinning ────────────────────────────────────────────────────────────────────────────────

    def pin(self, use: CatalogUse, id: int) -> AnyDescriptor | None:
        while True:
            with self._lock:
                use.check()
                hold = self._holds.of(id)
                if hold is None:
                    return self._pin(use, id)
            self._holds.await_end(hold)

    def _pin(self, use: CatalogUse, id: int) -> AnyDescriptor | None:
        lease = use.lease
        assert lease is not None, "bound by another scheme"
        if lease.is_closed or lease.session.done.is_set():
            lease = self._lease_instead(lease, id)
        descriptor = lease.version.descriptor(id)
        if descriptor is not None:
            pin = lease.pins.get(id)
            if pin is None:
                pin = lease.pins[id] = Pin(lease)
            pin.uses[use] = None
            use.pins[id] = pin
        return descriptor

    def _lease_instead(self, lease: Lease, id: int) -> Lease:
        """The lease under which a descriptor is pinned where its own takes no new pins."""
        newest = self._generations.newest
        if lease.session.done.is_set() or newest is None or newest.session is not lease.session:
            raise RetryError("this node's session was lost, and its schema lease with it")
        if not lease.version.is_same(id, newest.version):
            raise RetryError(f"descriptor {id} has changed since the transaction began")
        return newest

    def pin_known(self, use: CatalogUse, ids: Iterable[int]) -> bool:
        lease = bound(use)
        with self._lock:
            if use.ended or lease.is_closed or lease.session.done.is_set() or self._holds.has_any(ids):
                return False
            for id in ids:
                pin = lease.pins.get(id)
                if pin is None:
                    pin = lease.pins[id] = Pin(lease)
                pin.uses[use] = None
                use.pins[id] = pin
        return True

    def unpin(self, use: CatalogUse, ids: Iterable[int]) -> None:
        with self._lock:
            can_narrow = self._unpin(use, ids)
        if can_narrow:
            self._on_unpinned()

    def _unpin(self, use: CatalogUse, ids: Iterable[int]) -> bool:
        """Returns whether a closed lease can be narrowed now: another node may wait for that."""
        can_narrow = False
        for id in ids:
            pin = use.pins.pop(id, None)
            if pin is None:
                continue
            del pin.uses[use]
            if not pin.uses:
                del pin.lease.pins[id]
                can_narrow = can_narrow or pin.lease.is_closed
                self._holds.freed(id)
        return can_narrow

    # ── other calls of a use ────────────────────────────────────────────────────────────────

    def id_at(self, use: CatalogUse, place: NameKey) -> int | None:
        return bound(use).version.id_at(place)

    def schema_entry(self, use: CatalogUse, database: int, name: str) -> SchemaEntry | None:
        return bound(use).version.schema_entry(database, name)

    def frontier_at(self, use: CatalogUse) -> Timestamp:
        return bound(use).frontier_at

    def start_commit(self, use: CatalogUse) -> None:
        with self._lock:
            use.check()
            use.state = UseState.COMMITTING

    def finish(self, use: CatalogUse) -> None:
        with self._lock:
            use.state = UseState.OVER
            self._uses.pop(use, None)
            can_narrow = self._unpin(use, list(use.pins))
        if can_narrow:
            self._on_unpinned()

    def end(self, use: CatalogUse, reason: str) -> bool:
        """Ends a transaction that others have waited for too long; False if its commit is under way."""
        with self._lock:
            if use.state is not UseState.OPEN:
                return False
            use.ended = reason
            can_narrow = self._unpin(use, list(use.pins))
        _log.warning("transaction %d was ended: %s", use.number, reason)
        if can_narrow:
            self._on_unpinned()
        return True

    def end_session(self, session: NodeSession) -> None:
        """Called when the session is gone: the uses under its leases end."""
        for use in self.uses():
            if bound(use).session is session:
                self.end(use, "this node's session was lost")

    def uses(self) -> list[CatalogUse]:
        with self._lock:
            return list(self._uses)


def bound(use: CatalogUse) -> Lease:
    """The lease that a use of this scheme is bound to."""
    assert use.lease is not None, "bound by another scheme"
    return use.lease
