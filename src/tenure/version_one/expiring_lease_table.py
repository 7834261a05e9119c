"""The rows of expiring leases that block a wait.

    system.lease          covers one version of one descriptor; dead when it has expired

Invariant (I15): the row of a holder that may still use it is never deleted here.

Walk: `catalog.leases.lease_waits` calls `blockers` until the cluster is finalized and no row is left;
`version_one.mixed_scheme` calls `sweep`.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from tenure.base.errors import RetryError, TooEarly
from tenure.base.timestamp import seconds_between
from tenure.catalog.leases.blockers import AGAIN_SECONDS, SWEPT_ROWS_MAX, Blocker
from tenure.catalog.leases.wait_records import AwaitedDescriptor
from tenure.kv.keys import Span
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.version_one.expiring_lease_rows import LeaseOwner, OldLeaseRow, OldLeaseRows


class ExpiringLeaseTable:
    def __init__(self, store: Store, rows: OldLeaseRows, own: Callable[[], LeaseOwner]) -> None:
        self._store = store
        self._rows = rows
        self._own = own

    def span(self) -> Span:
        return self._rows.span()

    def blockers(self, source: Snapshot, awaited: Sequence[AwaitedDescriptor]) -> Iterator[Blocker]:
        own = self._own()
        for each in awaited:
            for row in self._rows.of(source, each.descriptor) if each.version else ():
                if row.version < each.version:
                    yield self._blocker(row, each, own)

    def _blocker(self, row: OldLeaseRow, awaited: AwaitedDescriptor, own: LeaseOwner) -> Blocker:
        return Blocker(row, (awaited,), row.owner == own, lambda: self._clear(row))

    def _clear(self, row: OldLeaseRow) -> float | None:
        seconds = seconds_between(self._store.clock.now(), row.expires_at)
        if seconds > 0:
            return seconds
        try:
            self._store.transact(lambda txn: self._rows.delete_expired(txn, row))
        except (TooEarly, RetryError):
            return AGAIN_SECONDS
        return None

    def is_used_by_others(self, source: Transaction | Snapshot, ids: Sequence[int]) -> bool:
        own = self._own()
        return any(row.owner != own for id in ids for row in self._rows.of(source, id))

    def sweep(self) -> int:
        found = list(islice(self._rows.list(self._store.snapshot()), SWEPT_ROWS_MAX))
        for row in found:
            self._clear(row)
        return len(found)
