"""What callers may ask of a lease scheme, whichever it is.

    Leases            one lease per node on the whole catalog, tied to its session
    ExpiringLeases    one lease per descriptor, good for some minutes: the older scheme
    MixedLeases       both at once, in clusters where nodes of either kind run

Walk: SQL binds transactions; `catalog.leases.lease_waits`, `catalog.leases.holder_eviction` and
`schema_change` ask the rest; `node.py` chooses which.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Protocol

from tenure.base.timestamp import Timestamp
from tenure.catalog.leases.catalog_cache import CatalogView
from tenure.catalog.leases.uses import Lease, Scheme, Use
from tenure.cluster.sessions.liveness import NodeSession
from tenure.kv.transaction import Transaction


class LeaseScheme(Scheme, Protocol):
    def bind(self, txn: Transaction, *, statement: str = "") -> Use:
        """Begins a transaction's use of the catalog; its `read_at` is taken then."""
        ...

    def step(self) -> float:
        """Waits for a change of the catalog, takes it in, and keeps the leases up: for a loop."""
        ...

    def renew(self) -> None:
        """Takes in the catalog as it is now."""
        ...

    def glance(self) -> Lease | None:
        """A lease under which one read may be made without pins; None if there is none for that."""
        ...

    def was_good(self, lease: Lease, ids: Iterable[int], read_at: Timestamp) -> bool:
        """Asked after such a read: whether it may be believed. If not, it is made again, with pins."""
        ...

    @property
    def newest(self) -> CatalogView | None:
        """The catalog as of the newest lease, for whoever only looks; None if there is no such thing."""
        ...

    def newest_at(self) -> Timestamp:
        """Up to when changes of the catalog have been taken in."""
        ...

    # ── publishing ─────────────────────────────────────────────────────────────────────────────

    def hold(self, ids: Iterable[int], *, timeout: float) -> AbstractContextManager[bool]:
        """Lets nobody here begin to use these; yields whether nobody does, after `timeout` at most."""
        ...

    def still(self) -> AbstractContextManager[None]:
        """Keeps this node's rows as they are, so that its own upkeep does not disturb a publisher."""
        ...

    def is_pinned(self, ids: Iterable[int]) -> bool: ...

    def is_past(self, id: int, before_at: Timestamp) -> bool:
        """Whether nothing here uses, or could begin to use, a descriptor as it was before then."""
        ...

    def carry(self, txn: Transaction) -> NodeSession:
        """Has a publisher's commit bring what this node needs to use what it publishes at once."""
        ...

    def install(self, lease_at: Timestamp, session: NodeSession) -> None:
        """Takes what was carried into use, once the commit is acknowledged."""
        ...

    # ── looking in, and ending ─────────────────────────────────────────────────────────────────

    def uses(self) -> list[Use]: ...

    def end(self, use: Use, reason: str) -> bool:
        """Ends a transaction that others have waited for too long; False if its commit is under way."""
        ...

    def lost(self, session: NodeSession) -> None:
        """The node's session is gone: what hangs on it ends."""
        ...

    def wake(self) -> None:
        """Ends the wait of a `step` in progress."""
        ...

    def release(self) -> None:
        """Gives all leases up, when no transaction is left."""
        ...

    def close(self) -> None: ...
