"""The schema leases of this node in memory: the newest, and older ones that are still in use.

    newest    new transactions bind to it; it takes new pins
    closed    a newer one exists; it takes no new pins, and lasts until its row is deleted

A lease is closed when the next one is installed. Pins of descriptors that both have in the same version
move to the newer one then.

Invariant (I11): valid leases hold only the current version of a descriptor and its predecessor.

Walk: `catalog.leases.node_leases` calls `install`; `catalog.leases.lease_pins` binds to the newest lease;
`catalog.leases.narrowing` asks for `closed` leases.
"""

from collections.abc import Iterable
from itertools import islice

from tenure.base.env import Env
from tenure.base.timestamp import Timestamp
from tenure.catalog.leases.catalog_use import Lease, Pin
from tenure.catalog.leases.lease_rows import LeaseHolder
from tenure.cluster.sessions.liveness import NodeSession

HOLDERS_MAX = 20
"""How many holders a narrowed row names."""


class LeaseGenerations:
    def __init__(self, env: Env) -> None:
        self.lock = env.lock()
        """Guards leases, pins and uses; never held across a call of the store."""
        self.newest: Lease | None = None
        self._closed: list[Lease] = []

    def install(self, lease: Lease) -> None:
        """Binds new transactions to this lease and closes the one before it."""
        with self.lock:
            older, self.newest = self.newest, lease
            if older is not None:
                self._close(older, lease)

    def _close(self, older: Lease, newer: Lease) -> None:
        older.is_closed = True
        if older.session is not newer.session:
            return  # the uses of a lost session end; its rows are deleted with it
        self._closed.append(older)
        for id in [id for id in older.pins if older.version.is_same(id, newer.version)]:
            moved = older.pins.pop(id)
            pin = Pin(newer)
            newer.pins[id] = pin
            for use in moved.uses:
                pin.uses[use] = None
                use.pins[id] = pin

    def all(self) -> list[Lease]:
        with self.lock:
            return self._all()

    def _all(self) -> list[Lease]:
        return [*self._closed, *([] if self.newest is None else [self.newest])]

    def closed(self) -> list[Lease]:
        with self.lock:
            return list(self._closed)

    def forget_closed(self, lease: Lease) -> None:
        """Called when its row is deleted."""
        with self.lock:
            if lease in self._closed:
                self._closed.remove(lease)

    def closed_without_pins(self, session: NodeSession) -> list[Lease]:
        """Closed leases of a session without pins whose rows still exist."""
        with self.lock:
            self._closed = [lease for lease in self._closed if not lease.is_deleted]
            return [lease for lease in self._closed if lease.session is session and not lease.pins]

    def pinned(self, lease: Lease) -> tuple[frozenset[int], tuple[LeaseHolder, ...]]:
        """The descriptors pinned under a lease, and the transactions that pin them."""
        with self.lock:
            holders = (
                LeaseHolder(use.number, id, use.started_at, use.statement)
                for id, pin in sorted(lease.pins.items())
                for use in pin.uses
            )
            return frozenset(lease.pins), tuple(islice(holders, HOLDERS_MAX))

    def clear(self) -> list[Lease]:
        """Removes all leases, when no transaction is left; returns them."""
        with self.lock:
            leases = self._all()
            self.newest, self._closed = None, []
        return leases

    def is_pinned(self, ids: Iterable[int]) -> bool:
        """Whether some transaction of this node uses one of these under a lease."""
        wanted = set(ids)
        with self.lock:
            return any(id in lease.pins for lease in self._all() for id in wanted)

    def is_past(self, id: int, before_at: Timestamp) -> bool:
        """Whether nothing here uses, or could begin to use, a descriptor under a lease older than that.

        This node's own rows then count as narrowed, whether they have been written so or not.
        """
        with self.lock:
            if self.newest is None or self.newest.at < before_at:
                return False
            return not any(id in lease.pins for lease in self._closed if lease.at < before_at)
