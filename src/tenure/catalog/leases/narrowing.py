"""The rows of this node's closed leases: narrowed to the pinned descriptors, deleted when nothing is pinned.

    a lease is closed ──► its row is narrowed to the descriptors still pinned under it ──► deleted

Narrowing has its own transaction, after the newer lease was acknowledged and its diff applied, because pins
appear on the old lease until then; a set computed earlier would miss them.

After a publisher's commit the narrowing waits a little: if another change follows, as in a migration, its
commit deletes the rows of closed leases without pins (`delete_unused`), which saves a commit.

Invariant (I16): an old row is narrowed only after the newer lease was acknowledged.

Walk: `catalog.leases.node_leases` calls `narrow` in its step, `delay` and `delete_unused` for a publisher;
this calls `LeaseRows.narrow`.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tenure.base.timestamp import Timestamp
from tenure.catalog.leases.catalog_use import Lease
from tenure.catalog.leases.lease_generations import LeaseGenerations
from tenure.catalog.leases.lease_rows import LeaseHolder, LeaseRows
from tenure.cluster.sessions.liveness import NodeSession
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction

NARROW_SECONDS = 0.01
"""How long after a publisher's commit the former row may wait to be deleted with the next one's: statements
of a migration follow one another faster, and only another node that changes the same object would notice.
"""


class LeaseNarrowing:
    def __init__(self, store: Store, rows: LeaseRows, generations: LeaseGenerations) -> None:
        self._store = store
        self._rows = rows
        self._generations = generations
        self._row_writes = store.env.lock()
        """Held across a commit that writes rows, and by a publisher that must find them unchanged."""
        self.has_strays = False
        """Whether rows of this node may exist that no lease in memory represents: a commit that writes one
        has failed, or its row was not put into use.
        """
        self._due: float | None = None
        """When the former row must be deleted at the latest, if it may wait."""

    @contextmanager
    def freeze_rows(self) -> Iterator[None]:
        """Keeps this node's rows as they are, so that its own upkeep does not conflict with a publisher."""
        with self._row_writes:
            yield

    def delay(self) -> None:
        """Gives the next publisher a moment to delete the rows of closed leases with its own commit."""
        if self._due is None:
            self._due = self._store.env.monotonic() + NARROW_SECONDS

    def hurry(self) -> None:
        """Ends the delay: other nodes may wait for the rows."""
        self._due = None

    def delay_seconds(self) -> float:
        """How long the narrowing may still wait; infinite if nothing is delayed."""
        due = self._due
        return float("inf") if due is None else max(0.0, due - self._store.env.monotonic())

    # ── narrowing ──────────────────────────────────────────────────────────────────────────────

    def narrow(self) -> None:
        """Tells other nodes which descriptors this node no longer uses under its older leases."""
        self._due = None
        for lease in self._generations.closed():
            self._narrow(lease)

    def _narrow(self, lease: Lease) -> None:
        pinned, holders = self._generations.pinned(lease)
        if lease.session.done.is_set() or lease.is_deleted:
            self._generations.forget_closed(lease)
            return
        if pinned == lease.written:
            return
        self._write(lease.at, lease.session, pinned, holders)
        lease.written = pinned
        if not pinned:
            self._generations.forget_closed(lease)

    def _write(
        self,
        lease_at: Timestamp,
        session: NodeSession,
        pinned: frozenset[int],
        holders: tuple[LeaseHolder, ...],
    ) -> None:
        with self._row_writes:
            self._store.transact(lambda txn: self._rows.narrow(txn, lease_at, session.id, pinned, holders))

    # ── deleting ───────────────────────────────────────────────────────────────────────────────

    def delete_row(self, lease_at: Timestamp, session: NodeSession) -> None:
        self._write(lease_at, session, frozenset(), ())

    def delete_unused(self, txn: Transaction, session: NodeSession) -> None:
        """Adds to a publisher's commit the deletion of rows of closed leases without pins.

        Closed leases take no new pins, so none can appear before the commit.
        """
        for lease in self._generations.closed_without_pins(session):
            self._rows.delete(txn, lease.at, session.id)
            lease.deleted_by = txn

    def delete_strays(self) -> None:
        """Deletes rows that were written but never put into use: other nodes would wait for them for ever.

        The caller ensures that no lease is being put into use meanwhile.
        """
        newest = self._generations.newest
        if newest is None or newest.session.done.is_set():
            return
        own_at = {lease.at for lease in self._generations.all()}

        def delete(txn: Transaction) -> None:
            for row in list(self._rows.before(txn, newest.at)):
                if row.session == newest.session.id and row.lease_at not in own_at:
                    self._rows.narrow(txn, row.lease_at, row.session, frozenset(), ())

        with self._row_writes:
            self._store.transact(delete)
        self.has_strays = False

    def delete_all(self, leases: Iterable[Lease]) -> None:
        for lease in leases:
            if not lease.session.done.is_set():
                self.delete_row(lease.at, lease.session)
