"""The schema feed by leases: a locked table in this node's newest lease proves how rows are read.

    row at T    the newest lease has the table locked, in version v, and M(v) <= T < F:
                all versions that any node may use at T have the `row` of v. Nothing is read: the fast path
    otherwise   the slow path: the history of the descriptors is asked, and a lock is asked for

Why this holds: as long as the lease is the newest, no node publishes more than one version after v, and that
one changes nothing but the lock. The row is committed already, so what is published later is published above
its timestamp; if the session of the lease has expired, above F.

A publisher of this node that is alone with a table publishes from a locked version. It closes the table to
new uses first, and installs the lease that knows of its version before it opens it again. So the lease is
taken first, and whether the table is closed is asked last, as for reads without pins (`LeasePins.was_good`).

Invariant (I34): an answer of the fast path is given under a lease that is good at the row's timestamp, on a
locked version with M(v) <= T < F.

Walk: `changefeed.table_stream` keeps one per table: `peek` with each batch of its watch.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tenure.base.timestamp import Timestamp
from tenure.catalog.changes.lock_schedule import LockSchedule
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import Table
from tenure.catalog.leases.catalog_cache import CatalogView
from tenure.catalog.leases.lease_scheme import LeaseScheme
from tenure.changefeed.schema_feed import PolledSchema, rows_of
from tenure.changefeed.table_events import TableEvent
from tenure.kv.store import Store
from tenure.pipeline.remote_handles import version_of


class FeedLeases(NamedTuple):
    """What a feed asks for locks, and about them."""

    leases: LeaseScheme
    locks: LockSchedule
    watcher: int = 0
    """The job of the feed."""

    def of_job(self, id: int) -> "FeedLeases":
        return self._replace(watcher=id)


class LeasedSchema(PolledSchema):
    def __init__(
        self, store: Store, catalog: Catalog, table: int, since_at: Timestamp, node: FeedLeases
    ) -> None:
        super().__init__(store, catalog, table, since_at)
        self._node = node
        self._proved: CatalogView | None = None
        """The catalog of a lease that has this table locked, and as the feed has it."""
        self._locked_at: Timestamp = 0
        """When the table was locked, by that catalog."""
        self._ids = (table,)

    def peek(self, until_at: Timestamp) -> Sequence[TableEvent]:
        self.is_fast = not self._events and self._is_proved(until_at)
        if self.is_fast:
            self._through_at = max(self._through_at, until_at)
            return ()
        return super().peek(until_at)

    def pop(self, until_at: Timestamp) -> Sequence[TableEvent]:
        popped = super().pop(until_at)
        if popped:
            self._proved = None
        return popped

    def _is_proved(self, at: Timestamp) -> bool:
        """Whether the version at hand reads rows as every version does that is in force up to a time."""
        lease = self._node.leases.peek()
        if lease is None or (lease.version is not self._proved and not self._compare(lease.version)):
            return False
        return self._locked_at <= at and self._node.leases.was_good(lease, self._ids, at)

    def _compare(self, leased: CatalogView) -> bool:
        """Whether a catalog has the table locked, and as it is at hand; if not locked, asks for a lock."""
        table = leased.descriptor(self._table)
        if not isinstance(table, Table):
            return False
        if not table.is_locked:
            self._node.locks.want(self._table, self._node.watcher)
            return False
        version = version_of(self._table, leased.descriptor)
        if version is None or rows_of(version) != rows_of(self._current):
            return False
        self._proved, self._locked_at = leased, table.modified_at
        return True
