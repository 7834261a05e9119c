"""Schema leases: one per node on the whole catalog, tied to the node's session.

    step():  a change is seen ──► a new row, at its own commit timestamp L
                              ──► the diff since the last lease goes into the cache
                              ──► new transactions bind to the new lease; the old one is closed
                              ──► pins that the new lease has in the same version move to it
                              ──► in a transaction of its own: the old row is narrowed to the
                                  descriptors still pinned, or deleted

Nothing is renewed while nothing changes: the frontier F is the expiration of the session of the
same epoch, and moves by itself with each heartbeat. Narrowing has its own transaction because
pins appear on the old lease until the new one is acknowledged and its diff applied; a set computed
earlier would miss them.

A publisher may **hold** descriptors: this node's rows count as narrowed by them once nothing here
pins them, and new uses wait for the outcome. Its commit may carry the node's next lease, and takes the
rows of closed leases that nothing pins any more along. So after a publisher's commit the narrowing waits
a little: if another change follows, as in a migration, it needs no commit of its own.

Invariant (I11): valid leases hold only the current version of a descriptor and its predecessor.
Invariant (I13): the frontier is the expiration of the lease's own epoch, as acknowledged.
Invariant (I16): an old row is narrowed only after the newer lease was acknowledged.

Walk: `node.py` runs `step` in a loop; SQL calls `bind`; the schema changer `hold` and `install`.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager

from tenure.base.errors import RetryError
from tenure.base.settings import LEASE_POLL_INTERVAL, Settings
from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import AnyDescriptor, NameKey, SchemaEntry
from tenure.catalog.leases.catalog_cache import Cache, CatalogView
from tenure.catalog.leases.lease_rows import LeaseHolder, LeaseRows
from tenure.catalog.leases.publish_holds import HELD_SECONDS, PublishHolds
from tenure.catalog.leases.uses import Lease, Pin, Scheme, Use, UseState, check_below
from tenure.cluster.sessions.liveness import NodeSession
from tenure.kv.gaps import Gap
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.kv.watch import Watch

SPACING_SECONDS, ALONE_SPACING_SECONDS = 0.005, 0.02
"""Between two looks for changes of the catalog. The first is less than another node takes to hear of this
one's lease, so none of the stages of its change has to wait for it. A node that is alone has made them
itself."""

NARROW_SECONDS = 0.01
"""How long after a publisher's commit the former row may wait to go with the next one's: statements of a
migration follow one another faster, and only another node that changes the same would notice."""

HOLDERS_MAX = 20
"""How many holders a narrowed row names."""

_log = logging.getLogger(__name__)


class Leases:
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
        """`is_alone` need not be right: it says how often to look for what others change."""
        self._store = store
        self._catalog = catalog
        self._rows = rows
        self._session = session
        self._settings = settings
        self._is_alone = is_alone
        self._cache = Cache(catalog)
        self._lock = store.env.lock()
        """Guards pins, uses and which lease is the newest; never held across a call of the store."""
        self._renewal = store.env.lock()
        """One renewal at a time: the cache has one writer."""
        self._row_writes = store.env.lock()
        """Held across a commit that writes rows, and by a publisher that must find them unchanged."""
        self._newest: Lease | None = None
        self._closed: list[Lease] = []
        self._uses: dict[Use, None] = {}
        self._held = PublishHolds(store.env, self._lock, self.is_pinned, in_doubt=self._doubted)
        self._has_strays = False
        """Whether rows of ours may be there that no lease here stands for."""
        self._seen_at = ZERO_AT
        """Up to where this node has heard of changes; it may not have taken them in yet."""
        self._numbers = 0
        self._narrow_due: float | None = None
        """When the former row is to go at the latest, if it may wait."""
        self._watch: Watch | None = None

    # ── using ──────────────────────────────────────────────────────────────────────────────────

    def bind(self, txn: Transaction, *, statement: str = "", scheme: Scheme | None = None) -> Use:
        """Binds a transaction to the newest lease; its `read_at` is taken after that.

        `scheme` answers what the use asks, where this is but a part of it.
        """
        with self._lock:
            lease = self._newest
            if lease is None or lease.session.done.is_set():
                raise RetryError("this node has no schema lease just now; it is getting a new one")
            now_at = self._store.clock.now()
            check_below(lease.frontier_at, now_at)
            self._numbers += 1
            use = Use(scheme or self, lease, txn, number=self._numbers, started_at=now_at)
            self._uses[use] = None
        use.statement = statement
        return use

    def glance(self) -> Lease | None:
        """The newest lease, for one read that is over before it is believed: see `was_good`."""
        return self._newest

    def was_good(self, lease: Lease, ids: Iterable[int], read_at: Timestamp) -> bool:
        """Whether a read at `read_at`, just made with these descriptors of a lease, may be believed.

        It had no pins, so it is asked afterwards. As long as the lease is not closed its row covers
        everything, and nobody publishes past the version after those it has: the same as a pin. What
        this node publishes by itself it holds first, and closes the lease before it lets go; hence the
        order of the two looks.
        """
        if self._held.has_any(ids):
            return False
        return not lease.is_closed and read_at < lease.frontier_at and not lease.session.done.is_set()

    def pin(self, use: Use, id: int) -> AnyDescriptor | None:
        while True:
            with self._lock:
                use.check()
                held = self._held.of(id)
                if held is None:
                    return self._pin(use, id)
            with self._store.env.waiting():
                held.wait(HELD_SECONDS)

    def _pin(self, use: Use, id: int) -> AnyDescriptor | None:
        lease = self._lease_for(use, id)
        descriptor = lease.version.descriptor(id)
        if descriptor is not None:
            pin = lease.pins.get(id)
            if pin is None:
                pin = lease.pins[id] = Pin(lease)
            pin.uses[use] = None
            use.pins[id] = pin
        return descriptor

    def pin_known(self, use: Use, ids: Iterable[int]) -> bool:
        lease = bound(use)
        with self._lock:
            if use.ended or lease.is_closed or lease.session.done.is_set() or self._held.has_any(ids):
                return False
            for id in ids:
                pin = lease.pins.get(id)
                if pin is None:
                    pin = lease.pins[id] = Pin(lease)
                pin.uses[use] = None
                use.pins[id] = pin
        return True

    def _lease_for(self, use: Use, id: int) -> Lease:
        """Where a first use of a descriptor is pinned: a closed lease takes no new pins."""
        lease, newest = bound(use), self._newest
        if lease.session.done.is_set():
            raise RetryError("this node's session was lost, and its schema lease with it")
        if not lease.is_closed:
            return lease
        if newest is None or newest.session is not lease.session:
            raise RetryError("this node's session was lost, and its schema lease with it")
        if not lease.version.is_same(id, newest.version):
            raise RetryError(f"descriptor {id} has changed since the transaction began")
        return newest

    def id_at(self, use: Use, place: NameKey) -> int | None:
        return bound(use).version.id_at(place)

    def schema_entry(self, use: Use, database: int, name: str) -> SchemaEntry | None:
        return bound(use).version.schema_entry(database, name)

    def frontier_at(self, use: Use) -> Timestamp:
        return bound(use).frontier_at

    def start_commit(self, use: Use) -> None:
        with self._lock:
            use.check()
            use.state = UseState.COMMITTING

    def finish(self, use: Use) -> None:
        with self._lock:
            use.state = UseState.OVER
            self._uses.pop(use, None)
            is_awaited = self._unpin(use, list(use.pins))
        if is_awaited:
            self.wake()

    def unpin(self, use: Use, ids: Iterable[int]) -> None:
        with self._lock:
            is_awaited = self._unpin(use, ids)
        if is_awaited:
            self.wake()

    def _unpin(self, use: Use, ids: Iterable[int]) -> bool:
        """Returns whether a closed lease can be narrowed now: somebody may wait for that."""
        is_awaited = False
        for id in ids:
            pin = use.pins.pop(id, None)
            if pin is None:
                continue
            del pin.uses[use]
            if not pin.uses:
                del pin.lease.pins[id]
                is_awaited = is_awaited or pin.lease.is_closed
                self._held.freed(id)
        return is_awaited

    # ── renewing ───────────────────────────────────────────────────────────────────────────────

    def step(self, *, seconds_max: float = float("inf")) -> float:
        """Waits for a change of the catalog and takes it in; bounded by the slow poll."""
        if self._is_behind():
            self.renew()
        assert self._newest is not None
        if self._has_changed(min(self._settings()[LEASE_POLL_INTERVAL], seconds_max, self._narrow_seconds())):
            self.renew()
        if self._narrow_seconds() in (0.0, float("inf")):
            self.narrow()
        return 0.0

    def _narrow_seconds(self) -> float:
        """How long the narrowing may still wait; for ever, if it does not."""
        due = self._narrow_due
        return float("inf") if due is None else max(0.0, due - self._store.env.monotonic())

    def _is_behind(self) -> bool:
        """Whether a renewal is due already: an earlier one may have failed for want of a store."""
        newest = self._newest
        is_lost = newest is None or newest.session.done.is_set() or self._seen_at > newest.at
        return is_lost or bool(self._held.doubts())

    def _has_changed(self, seconds: float) -> bool:
        assert self._newest is not None
        if self._watch is None:
            self._watch = self._store.watch([self._catalog.span], since_at=self._newest.at)
        self._watch.spacing_seconds = ALONE_SPACING_SECONDS if self._is_alone() else SPACING_SECONDS
        batch = self._watch.next(seconds, changes_only=True)
        if isinstance(batch, Gap):
            self._watch.close()
            self._watch = None  # the next one starts at the lease that is renewed now
            return True
        self._seen_at = max([self._seen_at, *(revision.at for revision in batch.revisions)])
        return self._is_behind()

    def renew(self) -> None:
        """Acquires a lease on the catalog as it is now; reads no descriptor to do so."""
        session = self._session()
        doubts = self._held.doubts()  # what they are about is older than the lease that follows
        txn = self._store.begin()
        try:
            self._rows.write(txn, session.id)
            with self._row_writes:
                lease_at = txn.commit()
        except RetryError:
            raise
        except BaseException:
            self._has_strays = True
            raise
        finally:
            txn.rollback()
        self.install(lease_at, session)
        self._narrow_due = None  # others may wait for it
        self._held.end(doubts)

    def install(self, lease_at: Timestamp, session: NodeSession) -> None:
        """Takes an acknowledged lease into use; what becomes of the older row is left to `step`."""
        if self._narrow_due is None:
            self._narrow_due = self._store.env.monotonic() + NARROW_SECONDS
        try:
            self._install(lease_at, session)
        except BaseException:
            self._has_strays = True
            raise

    def _install(self, lease_at: Timestamp, session: NodeSession) -> None:
        with self._renewal:
            if self._is_overtaken(lease_at, session):
                self._forget_row(lease_at, session)
                return
            self._cache.advance(self._store.snapshot(lease_at))
            lease = Lease(self._cache.newest, session)
            with self._lock:
                older, self._newest = self._newest, lease
                if older is not None:
                    self._close(older, lease)
        self.wake()

    def _is_overtaken(self, lease_at: Timestamp, session: NodeSession) -> bool:
        newest = self._newest
        return session.done.is_set() or (newest is not None and newest.at >= lease_at)

    def _forget_row(self, lease_at: Timestamp, session: NodeSession) -> None:
        self._write_narrowed(lease_at, session, frozenset(), ())

    def _close(self, older: Lease, newer: Lease) -> None:
        older.is_closed = True
        if older.session is not newer.session:
            return  # the uses of a lost session end; its rows go with it
        self._closed.append(older)
        for id in [id for id in older.pins if older.version.is_same(id, newer.version)]:
            moved = older.pins.pop(id)
            pin = Pin(newer)
            newer.pins[id] = pin
            for use in moved.uses:
                pin.uses[use] = None
                use.pins[id] = pin

    def narrow(self) -> None:
        """Tells others what this node no longer uses of its older leases."""
        self._narrow_due = None
        for lease in list(self._closed):
            self._narrow(lease)
        if self._has_strays:
            self._delete_strays()

    def _delete_strays(self) -> None:
        """Deletes rows that were written but never taken into use: others would wait for them for ever."""
        with self._renewal:  # so that none of them is just being taken into use
            with self._lock:
                newest = self._newest
                known = {lease.at for lease in self._all()}
            if newest is None or newest.session.done.is_set():
                return

            def delete(txn: Transaction) -> None:
                for row in list(self._rows.before(txn, newest.at)):
                    if row.session == newest.session.id and row.lease_at not in known:
                        self._rows.narrow(txn, row.lease_at, row.session, frozenset(), ())

            with self._row_writes:
                self._store.transact(delete)
            self._has_strays = False

    def _narrow(self, lease: Lease) -> None:
        with self._lock:
            pinned = frozenset(lease.pins)
            holders = _holders(lease)
        if lease.session.done.is_set() or lease.is_deleted:
            self._drop_closed(lease)
            return
        if pinned == lease.written:
            return
        self._write_narrowed(lease.at, lease.session, pinned, holders)
        lease.written = pinned
        if not pinned:
            self._drop_closed(lease)

    def _drop_closed(self, lease: Lease) -> None:
        with self._lock:
            if lease in self._closed:
                self._closed.remove(lease)

    def _write_narrowed(
        self,
        lease_at: Timestamp,
        session: NodeSession,
        pinned: frozenset[int],
        holders: tuple[LeaseHolder, ...],
    ) -> None:
        with self._row_writes:
            self._store.transact(lambda txn: self._rows.narrow(txn, lease_at, session.id, pinned, holders))

    # ── publishing ─────────────────────────────────────────────────────────────────────────────

    def hold(self, ids: Iterable[int], *, timeout: float) -> AbstractContextManager[bool]:
        """Lets nobody here begin to use these; yields whether nobody does, after `timeout` at most.

        If so, this node's own rows count as narrowed by them until the hold ends. A publisher that
        ends in anything but a plain refusal may have committed: its hold lasts until this node has
        a lease that is newer than whatever came of it.
        """
        return self._held.hold(ids, timeout=timeout)

    def _doubted(self) -> None:
        self._has_strays = True
        self.wake()

    @contextmanager
    def still(self) -> Iterator[None]:
        """Keeps this node's rows as they are, so that its own upkeep does not disturb a publisher."""
        with self._row_writes:
            yield

    def is_pinned(self, ids: Iterable[int]) -> bool:
        """Whether some transaction of this node uses one of these under a lease."""
        wanted = set(ids)
        with self._lock:
            return any(id in lease.pins for lease in self._all() for id in wanted)

    def is_past(self, id: int, before_at: Timestamp) -> bool:
        """Whether nothing here uses, or could begin to use, a descriptor under a lease older than that.

        This node's own rows then count as narrowed, whether they have been written so or not.
        """
        with self._lock:
            if self._newest is None or self._newest.at < before_at:
                return False
            return not any(id in lease.pins for lease in self._closed if lease.at < before_at)

    def _all(self) -> list[Lease]:
        return [*self._closed, *([] if self._newest is None else [self._newest])]

    def carry(self, txn: Transaction) -> NodeSession:
        """Has a publisher's commit write this node's next lease too, for `install` afterwards.

        Closed leases take no pins any more, so the rows of those that have none go with it.
        """
        session = self._session()
        self._rows.write(txn, session.id)
        with self._lock:
            self._closed = [lease for lease in self._closed if not lease.is_deleted]
            unused = [lease for lease in self._closed if lease.session is session and not lease.pins]
        for lease in unused:
            self._rows.delete(txn, lease.at, session.id)
            lease.deleted_by = txn
        return session

    # ── looking in, and ending ─────────────────────────────────────────────────────────────────

    @property
    def newest(self) -> CatalogView:
        """The catalog as of the newest lease, for whoever only looks."""
        return self._cache.newest

    def newest_at(self) -> Timestamp:
        newest = self._newest
        return ZERO_AT if newest is None else newest.at

    def uses(self) -> list[Use]:
        with self._lock:
            return list(self._uses)

    def end(self, use: Use, reason: str) -> bool:
        """Ends a transaction that others have waited for too long; False if its commit is under way."""
        with self._lock:
            if use.state is not UseState.OPEN:
                return False
            use.ended = reason
            is_awaited = self._unpin(use, list(use.pins))
        _log.warning("transaction %d was ended: %s", use.number, reason)
        if is_awaited:
            self.wake()
        return True

    def lost(self, session: NodeSession) -> None:
        """The session is gone: what was done under its leases ends."""
        for use in self.uses():
            if bound(use).session is session:
                self.end(use, "this node's session was lost")
        self.wake()

    def wake(self) -> None:
        watch = self._watch
        if watch is not None:
            watch.wake()

    def release(self) -> None:
        """Gives all leases up, when no transaction is left."""
        with self._lock:
            leases = self._all()
            self._newest, self._closed = None, []
        for lease in leases:
            if not lease.session.done.is_set():
                self._write_narrowed(lease.at, lease.session, frozenset(), ())

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()


def bound(use: Use) -> Lease:
    """The lease that a use of this scheme is bound to."""
    assert use.lease is not None, "bound by another scheme"
    return use.lease


def _holders(lease: Lease) -> tuple[LeaseHolder, ...]:
    holders = [
        LeaseHolder(use.number, id, use.started_at, use.statement)
        for id, pin in sorted(lease.pins.items())
        for use in pin.uses
    ]
    return tuple(holders[:HOLDERS_MAX])
