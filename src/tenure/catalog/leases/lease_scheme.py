"""The interface of a lease scheme.

    Leases            one lease per node on the whole catalog, tied to its session
    ExpiringLeases    one lease per descriptor, good for some minutes: the older scheme
    MixedLeases       both at once, in clusters where nodes of either version run

The calls of a transaction's use to its scheme are `catalog_use.Scheme`.

Walk: SQL binds transactions; `catalog.leases.lease_waits`, `catalog.leases.holder_eviction` and
`schema_change` ask the rest; `composition.catalog_layer` chooses which.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Protocol

from tenure.base.timestamp import Timestamp
from tenure.catalog.leases.catalog_cache import CatalogView
from tenure.catalog.leases.catalog_use import CatalogUse, Lease
from tenure.cluster.sessions.liveness import NodeSession
from tenure.kv.transaction import Transaction


class LeaseScheme(Protocol):
    def bind(self, txn: Transaction, *, statement: str = "") -> CatalogUse:
        """Begins a transaction's use of the catalog; its `read_at` is taken then."""
        ...

    def step(self) -> float:
        """Waits for a change of the catalog, applies it, and maintains the leases: for a loop."""
        ...

    def renew(self) -> None:
        """Brings the leases up to the current catalog."""
        ...

    def peek(self) -> Lease | None:
        """A lease under which one read may be made without pins; None if the scheme has no such lease."""
        ...

    def was_good(self, lease: Lease, ids: Iterable[int], read_at: Timestamp) -> bool:
        """Called after such a read: whether it is valid. If not, it is repeated with pins."""
        ...

    @property
    def newest(self) -> CatalogView | None:
        """The catalog as of the newest lease, for callers that only look; None if the scheme has none."""
        ...

    def newest_at(self) -> Timestamp:
        """The time up to which changes of the catalog have been applied."""
        ...

    # ── publishing ─────────────────────────────────────────────────────────────────────────────

    def hold(self, ids: Iterable[int], *, timeout: float) -> AbstractContextManager[bool]:
        """Lets no transaction here begin to use these; yields whether none does, after `timeout` at most."""
        ...

    def freeze_rows(self) -> AbstractContextManager[None]:
        """Keeps this node's rows as they are, so that its own upkeep does not conflict with a publisher."""
        ...

    def is_pinned(self, ids: Iterable[int]) -> bool: ...

    def is_past(self, id: int, before_at: Timestamp) -> bool:
        """Whether nothing here uses, or could begin to use, a descriptor as it was before then."""
        ...

    def write_next_lease(self, txn: Transaction) -> NodeSession:
        """Adds this node's next lease to a publisher's commit, so that it can use the published versions at
        once.
        """
        ...

    def install(self, lease_at: Timestamp, session: NodeSession) -> None:
        """Puts the lease of `write_next_lease` into use, once the commit is acknowledged."""
        ...

    # ── reading, and ending ─────────────────────────────────────────────────────────────────────

    def uses(self) -> list[CatalogUse]: ...

    def end(self, use: CatalogUse, reason: str) -> bool:
        """Ends a transaction that others have waited for too long; False if its commit is under way."""
        ...

    def end_session(self, session: NodeSession) -> None:
        """Called when the node's session is gone: transactions that depend on it end."""
        ...

    def wake(self) -> None:
        """Ends the wait of a `step` in progress."""
        ...

    def release(self) -> None:
        """Releases all leases, when no transaction is left."""
        ...

    def close(self) -> None: ...
