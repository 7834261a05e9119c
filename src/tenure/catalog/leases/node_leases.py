"""Schema leases: one per node on the whole catalog, tied to the node's session.

    step():  a change is seen ──► a new row, at its own commit timestamp L
                              ──► the diff since the last lease goes into the cache
                              ──► new transactions bind to the new lease; the old one is closed
                              ──► pins that the new lease has in the same version move to it
                              ──► in a transaction of its own: the old row is narrowed to the
                                  descriptors still pinned, or deleted

Nothing is renewed while nothing changes: the frontier F is the expiration of the session of the
same epoch, and moves by itself with each heartbeat.

A publisher may **hold** descriptors: this node's rows count as narrowed by them once nothing here pins them,
and new uses wait for the outcome. Its commit may write the node's next lease too (`write_next_lease`), and
deletes the rows of closed leases without pins.

    lease_generations    the leases in memory: the newest, and closed ones
    lease_pins           which transaction pins which descriptors under them
    publish_holds        the descriptors that a publisher of this node has closed to new uses
    narrowing            the rows of closed leases
    node_leases          acquiring the next lease: watching, renewing, installing

Walk: `composition.background` runs `step` in a loop; SQL calls `bind`; the schema changer calls `hold`,
`write_next_lease` and `install`.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from tenure.base.errors import RetryError
from tenure.base.settings import LEASE_POLL_INTERVAL, Settings
from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.leases.catalog_cache import Cache, CatalogView
from tenure.catalog.leases.catalog_use import CatalogUse, Lease, Scheme
from tenure.catalog.leases.lease_generations import LeaseGenerations
from tenure.catalog.leases.lease_pins import LeasePins
from tenure.catalog.leases.lease_rows import LeaseRows
from tenure.catalog.leases.narrowing import LeaseNarrowing
from tenure.catalog.leases.publish_holds import PublishHolds
from tenure.cluster.sessions.liveness import NodeSession
from tenure.kv.gaps import Gap
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.kv.watch import Watch

SPACING_SECONDS, ALONE_SPACING_SECONDS = 0.005, 0.02
"""The time between two looks for changes of the catalog. The first is less than another node takes to notice
this node's lease, so no stage of its change has to wait for it. The second is for a node that is alone, which
makes all changes itself.
"""


class Leases:
    pins_type: type[LeasePins] = LeasePins
    """The simulator has one that records."""

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        rows: LeaseRows,
        session: Callable[[], NodeSession],
        settings: Callable[[], Settings],
        *,
        is_alone: Callable[[], bool] = lambda: True,
    ) -> None:
        """`is_alone` need not be exact: it only decides how often to look for changes of others."""
        self._store = store
        self._catalog = catalog
        self._rows = rows
        self._session = session
        self._settings = settings
        self._is_alone = is_alone
        self._cache = Cache(catalog)
        self._renewal = store.env.lock()
        """One renewal at a time: the cache has one writer."""
        self.generations = LeaseGenerations(store.env)
        self._holds = PublishHolds(
            store.env, self.generations.lock, self.generations.is_pinned, in_doubt=self._on_doubt
        )
        self.pins = self.pins_type(store, self.generations, self._holds, on_unpinned=self.wake)
        """The scheme for uses that are bound here; a scheme that wraps this one calls it directly."""
        self._narrowing = LeaseNarrowing(store, rows, self.generations)
        self._heard_at = ZERO_AT
        """The time up to which this node has heard of changes; it may not have applied them yet."""
        self._watch: Watch | None = None

    # ── using ──────────────────────────────────────────────────────────────────────────────────

    def bind(self, txn: Transaction, *, statement: str = "", scheme: Scheme | None = None) -> CatalogUse:
        return self.pins.bind(txn, statement=statement, scheme=scheme)

    def peek(self) -> Lease | None:
        return self.pins.peek()

    def was_good(self, lease: Lease, ids: Iterable[int], read_at: Timestamp) -> bool:
        return self.pins.was_good(lease, ids, read_at)

    # ── renewing ───────────────────────────────────────────────────────────────────────────────

    def step(self, *, seconds_max: float = float("inf")) -> float:
        """Waits for a change of the catalog and applies it; bounded by the slow poll."""
        if self._is_behind():
            self.renew()
        poll_seconds = self._settings()[LEASE_POLL_INTERVAL]
        if self._has_changed(min(poll_seconds, seconds_max, self._narrowing.delay_seconds())):
            self.renew()
        if self._narrowing.delay_seconds() in (0.0, float("inf")):
            self.narrow()
        return 0.0

    def _is_behind(self) -> bool:
        """Whether a renewal is due already: an earlier one may have failed because the store was away."""
        newest = self.generations.newest
        is_lost = newest is None or newest.session.done.is_set() or self._heard_at > newest.at
        return is_lost or bool(self._holds.doubts())

    def _has_changed(self, seconds: float) -> bool:
        if self._watch is None:
            self._watch = self._store.watch(self._catalog.spans, since_at=self.newest_at())
        self._watch.spacing_seconds = ALONE_SPACING_SECONDS if self._is_alone() else SPACING_SECONDS
        batch = self._watch.next(seconds, changes_only=True)
        if isinstance(batch, Gap):
            self._watch.close()
            self._watch = None  # the next one starts at the lease that is renewed now
            return True
        self._heard_at = max([self._heard_at, *(revision.at for revision in batch.revisions)])
        return self._is_behind()

    def renew(self) -> None:
        """Acquires a lease on the current catalog; reads no descriptor to do so."""
        session = self._session()
        doubts = self._holds.doubts()  # they concern commits older than the lease that follows
        txn = self._store.begin()
        try:
            self._rows.write(txn, session.id)
            with self._narrowing.freeze_rows():
                lease_at = txn.commit()
        except RetryError:
            raise
        except BaseException:
            self._narrowing.has_strays = True
            raise
        finally:
            txn.rollback()
        self.install(lease_at, session)
        self._narrowing.hurry()
        self._holds.end(doubts)

    def install(self, lease_at: Timestamp, session: NodeSession) -> None:
        """Puts an acknowledged lease into use; `step` deals with the older row."""
        self._narrowing.delay()
        try:
            self._install(lease_at, session)
        except BaseException:
            self._narrowing.has_strays = True
            raise

    def _install(self, lease_at: Timestamp, session: NodeSession) -> None:
        with self._renewal:
            if self._is_overtaken(lease_at, session):
                self._narrowing.delete_row(lease_at, session)
                return
            self._cache.advance(self._store.snapshot(lease_at))
            self.generations.install(Lease(self._cache.newest, session))
        self.wake()

    def _is_overtaken(self, lease_at: Timestamp, session: NodeSession) -> bool:
        newest = self.generations.newest
        return session.done.is_set() or (newest is not None and newest.at >= lease_at)

    def narrow(self) -> None:
        """Tells other nodes which descriptors this node no longer uses under its older leases."""
        self._narrowing.narrow()
        if self._narrowing.has_strays:
            with self._renewal:  # so that no row is just being put into use
                self._narrowing.delete_strays()

    # ── publishing ─────────────────────────────────────────────────────────────────────────────

    def hold(self, ids: Iterable[int], *, timeout: float) -> AbstractContextManager[bool]:
        """Lets no transaction here begin to use these; yields whether none does, after `timeout` at most.

        If so, this node's own rows count as narrowed by them until the hold ends. A publisher that
        ends in anything but a plain refusal may have committed: its hold lasts until this node has
        a lease that is newer than the commit.
        """
        return self._holds.hold(ids, timeout=timeout)

    def _on_doubt(self) -> None:
        """Called when a publisher does not know the outcome of its commit, which may have written a lease."""
        self._narrowing.has_strays = True
        self.wake()

    def freeze_rows(self) -> AbstractContextManager[None]:
        return self._narrowing.freeze_rows()

    def is_pinned(self, ids: Iterable[int]) -> bool:
        return self.generations.is_pinned(ids)

    def is_past(self, id: int, before_at: Timestamp) -> bool:
        return self.generations.is_past(id, before_at)

    def write_next_lease(self, txn: Transaction) -> NodeSession:
        """Adds this node's next lease to a publisher's commit, for `install` afterwards.

        It also deletes the rows of closed leases that nothing pins.
        """
        session = self._session()
        self._rows.write(txn, session.id)
        self._narrowing.delete_unused(txn, session)
        return session

    # ── reading, and ending ─────────────────────────────────────────────────────────────────────

    @property
    def newest(self) -> CatalogView:
        """The catalog as of the newest lease, for callers that only look."""
        return self._cache.newest

    def newest_at(self) -> Timestamp:
        newest = self.generations.newest
        return ZERO_AT if newest is None else newest.at

    def uses(self) -> list[CatalogUse]:
        return self.pins.uses()

    def end(self, use: CatalogUse, reason: str) -> bool:
        return self.pins.end(use, reason)

    def end_session(self, session: NodeSession) -> None:
        """Called when the session is gone: the uses under its leases end."""
        self.pins.end_session(session)
        self.wake()

    def wake(self) -> None:
        watch = self._watch
        if watch is not None:
            watch.wake()

    def release(self) -> None:
        """Releases all leases, when no transaction is left."""
        self._narrowing.delete_all(self.generations.clear())

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
