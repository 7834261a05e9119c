"""The older lease scheme: one expiring lease per descriptor, for nodes of version 1.

    bind ──► read_at ──► descriptor(id): leased at first use, which waits for the store
                              the deadline is the least expiration of what is pinned

Each descriptor is the newest that this node has leased, the version at `read_at` or the one before it; so two
descriptors of one transaction may be of different times. Names are resolved by the leased descriptors, and
else by the store at `read_at`. A node has no session here: the leases of a dead one last until they expire.

Invariant (I10): a commit lies below the expiration of every version that it uses.
Invariant (I18): a descriptor that has changed since the transaction began is not returned.

Walk: `version_one.wiring` gives it to a node told to be of version 1; `composition.background` runs `step`
in a loop.
"""

import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from tenure.base.settings import LEASE_POLL_INTERVAL, Settings
from tenure.base.timestamp import MAX_AT, Timestamp
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import AnyDescriptor, NameKey, SchemaEntry
from tenure.catalog.leases.catalog_cache import CatalogView
from tenure.catalog.leases.catalog_use import CatalogUse, Lease, UseState
from tenure.cluster.sessions.liveness import NodeSession
from tenure.kv.gaps import Gap
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.kv.watch import Watch
from tenure.version_one.descriptor_leases import DescriptorLeases

_log = logging.getLogger(__name__)


class ExpiringLeases:
    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        leases: DescriptorLeases,
        session: Callable[[], NodeSession],
        settings: Callable[[], Settings],
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._leases = leases
        self._session = session
        self._settings = settings
        self._lock = leases.lock
        self._uses: dict[CatalogUse, None] = {}
        self._numbers = 0
        self._watch: Watch | None = None

    # ── using ──────────────────────────────────────────────────────────────────────────────────

    def bind(self, txn: Transaction, *, statement: str = "") -> CatalogUse:
        with self._lock:
            self._numbers += 1
            use = CatalogUse(self, None, txn, number=self._numbers, started_at=self._store.clock.now())
            self._uses[use] = None
        use.statement = statement
        try:
            use.check_frontier()
        except BaseException:
            use.close()
            raise
        return use

    def pin(self, use: CatalogUse, id: int) -> AnyDescriptor | None:
        lease = self._leases.pin(use, id, use.pins)
        return None if lease is None else lease.descriptor

    def pin_known(self, use: CatalogUse, ids: Iterable[int]) -> bool:
        return False  # each descriptor has a lease of its own

    def follow_newest(self, use: CatalogUse) -> None:
        pass  # each descriptor that is pinned is the newest at the time of the transaction

    def id_at(self, use: CatalogUse, place: NameKey) -> int | None:
        leased = self._leases.at_place(place, use.txn.read_at)
        return self._catalog.id_at(self._store.snapshot(use.txn.read_at), place) if leased is None else leased

    def schema_entry(self, use: CatalogUse, database: int, name: str) -> SchemaEntry | None:
        return self._catalog.schema_entry(self._store.snapshot(use.txn.read_at), database, name)

    def frontier_at(self, use: CatalogUse) -> Timestamp:
        return min((pin.lease.expires_at for pin in list(use.pins.values())), default=MAX_AT)

    def start_commit(self, use: CatalogUse) -> None:
        with self._lock:
            use.check()
            use.state = UseState.COMMITTING

    def finish(self, use: CatalogUse) -> None:
        with self._lock:
            use.state = UseState.OVER
            self._uses.pop(use, None)
        self.unpin(use, list(use.pins))

    def unpin(self, use: CatalogUse, ids: Iterable[int]) -> None:
        with self._lock:
            is_awaited = self._leases.unpin(use, ids, use.pins)
        if is_awaited:
            self.wake()

    # ── upkeep ──────────────────────────────────────────────────────────────────────────────────

    def step(self) -> float:
        """Waits until a descriptor has changed or a lease is soon over; bounded by the slow poll."""
        self._leases.release_closed()
        due_seconds = self._leases.renew_due()
        self._follow(min(due_seconds, self._settings()[LEASE_POLL_INTERVAL]))
        self._leases.take_in()
        self._leases.release_closed()
        return 0.0

    def _follow(self, seconds: float) -> None:
        if self._watch is None:
            self._watch = self._store.watch([self._catalog.span], since_at=self._leases.seen_at)
        if isinstance(self._watch.next(seconds, changes_only=True), Gap):
            self._watch.close()
            self._watch = None  # the next one starts where `take_in` has read

    def renew(self) -> None:
        self._leases.take_in()

    def peek(self) -> Lease | None:
        return None

    def was_good(self, lease: Lease, ids: Iterable[int], read_at: Timestamp) -> bool:
        return False

    @property
    def newest(self) -> CatalogView | None:
        return None  # each descriptor has a lease of its own

    def newest_at(self) -> Timestamp:
        return self._leases.seen_at

    # ── publishing ─────────────────────────────────────────────────────────────────────────────

    def hold(self, ids: Iterable[int], *, timeout: float) -> AbstractContextManager[bool]:
        return self._leases.held.hold(ids, timeout=timeout)

    def freeze_rows(self) -> AbstractContextManager[None]:
        return self._leases.freeze_rows()

    def is_pinned(self, ids: Iterable[int]) -> bool:
        return self._leases.is_pinned(ids)

    def is_past(self, id: int, before_at: Timestamp) -> bool:
        return self._leases.is_past(id, before_at)

    def write_next_lease(self, txn: Transaction) -> NodeSession:
        return self._session()

    def install(self, lease_at: Timestamp, session: NodeSession) -> None:
        """A node that has changed a descriptor uses the new version from now on."""
        self._leases.take_in()
        self.wake()

    # ── reading, and ending ─────────────────────────────────────────────────────────────────────

    def uses(self) -> list[CatalogUse]:
        with self._lock:
            return list(self._uses)

    def end(self, use: CatalogUse, reason: str) -> bool:
        with self._lock:
            if use.state is not UseState.OPEN:
                return False
            use.ended = reason
        _log.warning("transaction %d was ended: %s", use.number, reason)
        self.unpin(use, list(use.pins))
        return True

    def end_session(self, session: NodeSession) -> None:
        """Leases depend on their expiration alone; they stay this process's own."""
        self.wake()

    def wake(self) -> None:
        watch = self._watch
        if watch is not None:
            watch.wake()

    def release(self) -> None:
        self._leases.release()

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
