"""Both lease schemes at once, on the newer nodes of a cluster that is not finalized.

    descriptor(id)   a row in `system.lease` first, then a pin under the schema lease
    deadline         the lesser of the session's expiration and the rows'

Nodes of version 1 publish by looking at `system.lease` alone. So each descriptor that this node uses is
covered there as well, in the very same version: if that is not the newest any more, the schema lease is
renewed and the transaction starts over.

Once the cluster is finalized no row is written any more. A schema lease taken after that needs no row beside
it, since no node that would ignore it can have published since; until a pin has moved to such a lease its
row's expiration counts. `system.lease` is emptied: own rows at once, those of others when they have expired,
since a process of version 1 may have stalled and wake up.

Invariant (mixed-leases): until a pin is under a schema lease that was taken after finalizing, a commit
lies below the expiration of an expiring lease on the same version.

Walk: `version_one.wiring` gives it to nodes newer than version 1; it wraps `catalog.leases.node_leases`.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from tenure.base.errors import ClusterFinalized, DescriptorChanged, RetryError
from tenure.base.timestamp import MAX_AT, Timestamp
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import AnyDescriptor, NameKey, SchemaEntry
from tenure.catalog.leases.catalog_cache import CatalogView
from tenure.catalog.leases.catalog_use import CatalogUse, Lease
from tenure.catalog.leases.lease_pins import bound
from tenure.catalog.leases.node_leases import Leases
from tenure.cluster.sessions.liveness import NodeSession
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.version_one.descriptor_leases import DescriptorLeases, Pins
from tenure.version_one.expiring_lease_table import ExpiringLeaseTable

LOOK_SECONDS = 1.0
"""How often a node checks whether the cluster is finalized, as long as it is not."""

_log = logging.getLogger(__name__)


class MixedLeases:
    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        leases: Leases,
        beside: DescriptorLeases,
        table: ExpiringLeaseTable,
        is_finalized: Callable[[], bool],
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._leases = leases
        self._beside = beside
        self._table = table
        self._is_finalized = is_finalized
        self._pins: dict[CatalogUse, Pins] = {}
        self._final_at = MAX_AT
        """A schema lease as of this time, or later, needs no row beside it."""
        self.is_over = False
        """Whether the cluster is finalized and no expiring lease is left: there will never be one again."""
        self._has_waited = False
        """Whether this node has seen it unfinalized: then finalizing is a change to act on."""

    # ── using ──────────────────────────────────────────────────────────────────────────────────

    def bind(self, txn: Transaction, *, statement: str = "") -> CatalogUse:
        # Once it is over, uses call the schema leases directly.
        scheme = None if self.is_over else self
        return self._leases.bind(txn, statement=statement, scheme=scheme)

    def peek(self) -> Lease | None:
        return self._leases.peek() if self._final_at != MAX_AT else None

    def was_good(self, lease: Lease, ids: Iterable[int], read_at: Timestamp) -> bool:
        return self._leases.was_good(lease, ids, read_at)

    def pin(self, use: CatalogUse, id: int) -> AnyDescriptor | None:
        if self._final_at != MAX_AT:
            return self._leases.pins.pin(use, id)
        wanted = bound(use).version.descriptor(id)
        if wanted is None:
            self._check_missing(use, id)
            return None
        try:
            self._cover(use, wanted)
        except ClusterFinalized:
            self.finalize()
        try:
            return self._leases.pins.pin(use, id)
        except BaseException:
            self._uncover(use, [id])
            raise

    def pin_known(self, use: CatalogUse, ids: Iterable[int]) -> bool:
        return self._final_at != MAX_AT and self._leases.pins.pin_known(use, ids)

    def follow_newest(self, use: CatalogUse) -> None:
        self._leases.pins.follow_newest(use)

    def _check_missing(self, use: CatalogUse, id: int) -> None:
        """Nodes of version 1 do not wait until others know of objects that they create."""
        if self._catalog.get(self._store.snapshot(use.txn.read_at), id) is not None:
            self._leases.renew()
            raise RetryError(f"descriptor {id} was made just before the transaction began")

    def _cover(self, use: CatalogUse, wanted: AnyDescriptor) -> None:
        """Pins an expiring lease on this very version; RetryError if it is not the newest any more."""
        pins = self._pins.setdefault(use, {})
        try:
            lease = self._beside.pin(use, wanted.id, pins)
            if lease is not None and lease.descriptor.version < wanted.version:
                self._uncover(use, [wanted.id])
                self._beside.take_in()
                lease = self._beside.pin(use, wanted.id, pins)
            if lease is None:
                self._leases.renew()
                raise RetryError(f'"{wanted.name}" has been dropped since the transaction began')
            if lease.descriptor.version != wanted.version:
                self._uncover(use, [wanted.id])
                raise DescriptorChanged(lease.descriptor.name, at=lease.descriptor.modified_at)
        except DescriptorChanged as changed:
            if self._leases.newest_at() < changed.at:
                self._leases.renew()
            raise

    def _uncover(self, use: CatalogUse, ids: Iterable[int] | None = None) -> None:
        """Releases expiring leases: of these descriptors, or all of a use."""
        pins = self._pins.get(use)
        if pins is None:
            return
        with self._beside.lock:
            is_awaited = self._beside.unpin(use, list(pins) if ids is None else ids, pins)
        if is_awaited:
            self.wake()

    def unpin(self, use: CatalogUse, ids: Iterable[int]) -> None:
        given_up = list(ids)
        self._leases.pins.unpin(use, given_up)
        self._uncover(use, given_up)

    def id_at(self, use: CatalogUse, place: NameKey) -> int | None:
        return self._leases.pins.id_at(use, place)

    def schema_entry(self, use: CatalogUse, database: int, name: str) -> SchemaEntry | None:
        return self._leases.pins.schema_entry(use, database, name)

    def frontier_at(self, use: CatalogUse) -> Timestamp:
        frontier_at = self._leases.pins.frontier_at(use)
        pins = self._pins.get(use)
        if not pins:
            return frontier_at
        for id, beside in list(pins.items()):
            pin = use.pins.get(id)
            if pin is None or pin.lease.at < self._final_at:
                frontier_at = min(frontier_at, beside.lease.expires_at)
        return frontier_at

    def start_commit(self, use: CatalogUse) -> None:
        self._leases.pins.start_commit(use)

    def finish(self, use: CatalogUse) -> None:
        self._leases.pins.finish(use)
        self._uncover(use)
        self._pins.pop(use, None)

    # ── upkeep ──────────────────────────────────────────────────────────────────────────────────

    def step(self) -> float:
        if self.is_over:
            return self._leases.step()
        if self._is_finalized():
            self.finalize()
            self._sweep()
            self._leases.step(seconds_max=LOOK_SECONDS)
        else:
            self._has_waited = True
            self._leases.step(seconds_max=min(LOOK_SECONDS, self._beside.renew_due()))
            self._beside.take_in()
        self._beside.release_closed()
        return 0.0

    def finalize(self) -> None:
        """Continues with a schema lease that was taken after the cluster was finalized."""
        if self._final_at == MAX_AT:
            self._leases.renew()
            self._final_at = self._leases.newest_at()
            self._beside.release()

    def _sweep(self) -> None:
        left = self._table.sweep() + (not self._beside.is_empty())
        self._has_waited = self._has_waited or left > 0
        self.is_over = left == 0
        if self.is_over and self._has_waited:
            _log.info("the cluster is finalized and no expiring lease is left")

    def renew(self) -> None:
        if self._final_at == MAX_AT and self._is_finalized():
            self.finalize()
            return
        self._has_waited = self._has_waited or self._final_at == MAX_AT
        self._leases.renew()
        self._take_in()

    def _take_in(self) -> None:
        if self._final_at == MAX_AT:
            self._beside.take_in()

    def newest_at(self) -> Timestamp:
        newest_at = self._leases.newest_at()
        return min(newest_at, self._beside.seen_at) if self._final_at == MAX_AT else newest_at

    # ── publishing ─────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def hold(self, ids: Iterable[int], *, timeout: float) -> Iterator[bool]:
        wanted = list(ids)
        if self._final_at != MAX_AT:
            with self._leases.hold(wanted, timeout=timeout) as is_unpinned:
                yield is_unpinned
            return
        with (
            self._beside.held.hold(wanted, timeout=timeout) as is_uncovered,
            self._leases.hold(wanted, timeout=timeout) as is_unpinned,
        ):
            yield is_uncovered and is_unpinned

    @contextmanager
    def freeze_rows(self) -> Iterator[None]:
        with self._beside.freeze_rows(), self._leases.freeze_rows():
            yield

    def is_pinned(self, ids: Iterable[int]) -> bool:
        return self._leases.is_pinned(ids)

    def is_past(self, id: int, before_at: Timestamp) -> bool:
        return self._leases.is_past(id, before_at) and self._beside.is_past(id, before_at)

    def write_next_lease(self, txn: Transaction) -> NodeSession:
        return self._leases.write_next_lease(txn)

    def install(self, lease_at: Timestamp, session: NodeSession) -> None:
        self._leases.install(lease_at, session)
        self._take_in()

    # ── reading, and ending ─────────────────────────────────────────────────────────────────────

    @property
    def newest(self) -> CatalogView:
        """The catalog as of the newest schema lease, for callers that only look."""
        return self._leases.newest

    def uses(self) -> list[CatalogUse]:
        return self._leases.uses()

    def end(self, use: CatalogUse, reason: str) -> bool:
        if not self._leases.end(use, reason):
            return False
        self._uncover(use)
        return True

    def end_session(self, session: NodeSession) -> None:
        for use in self.uses():
            if bound(use).session is session:
                self.end(use, "this node's session was lost")
        self.wake()

    def wake(self) -> None:
        self._leases.wake()

    def release(self) -> None:
        self._leases.release()
        self._beside.release()

    def close(self) -> None:
        self._leases.close()
