"""Waits for locks by transactions whose own pins are waited for: cycles through both kinds of waits.

    T1   locks a row, commits a change of a table ──► waits until T2 no longer uses the former version
    T2   uses that version ──► waits for the row

Neither the waits for locks nor the waits for leases form a cycle; only both together do. So a transaction
that waits for a lock, and blocks a wait for a lease, records the owners of locks without which it does not go
on, beside the waits for leases. The youngest of a cycle gives way, wherever it runs: a waiting change when it
looks at the records, a transaction that waits for a lock here.

A transaction that blocks a change without being in a cycle gives up its pins instead, so that the change does
not wait for as long as the lock is held. Beside other nodes it does so when they have had time to tell of
waits in their memory.

Invariant (I9): of a cycle of waits for locks and leases the youngest gives way.

Walk: `sql.session.waits` makes one `CrossedWait` for each wait for a lock, and calls `look` while it lasts;
this asks `Holders`, `LockWaits` and `LeaseWaits`.
"""

from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.catalog.leases.holder_eviction import Holders
from tenure.catalog.leases.lease_waits import LeaseWaiter, LeaseWaits
from tenure.catalog.leases.wait_records import LeaseWait, WaitOwner
from tenure.cluster.locks.lock_table import LockOwner
from tenure.cluster.locks.lock_waits import DEADLOCK_SECONDS, LockWaits

NOTICE_SECONDS = DEADLOCK_SECONDS + 0.5
"""A wait in the memory of another node has a notice in the store by then: a cycle through it is seen."""


class CrossedWaits:
    def __init__(self, holders: Holders, leases: LeaseWaits, locks: LockWaits) -> None:
        self.holders = holders
        self.leases = leases
        self.locks = locks


class CrossedWait:
    """The wait of one transaction for a lock."""

    def __init__(self, waits: CrossedWaits, use: CatalogUse, owner: LockOwner) -> None:
        self._waits = waits
        self._use = use
        self._owner = owner
        self._began = waits.locks.env.monotonic()
        self._record: LeaseWait | None = None
        use.lock_owner = owner.number

    def look(self) -> bool:
        """Whether its pins are only in the way. Raises DeadlockDetected (40P01) if it must give way."""
        if not self._waits.holders.is_awaited(self._use):
            return False
        leases = self._waits.leases
        awaits = [WaitOwner(*each.session, each.number) for each in self._waits.locks.awaited_by(self._owner)]
        if self._record is None or set(self._record.awaits) != set(awaits):
            self.end()
            waiter = LeaseWaiter(self._use.started_at, self._use)
            self._record = leases.record((), waiter, awaits=sorted(awaits, key=_order))
        if self._record is not None and leases.check_cycle(self._record):
            return False
        return (
            self._waits.locks.is_alone() or self._waits.locks.env.monotonic() >= self._began + NOTICE_SECONDS
        )

    def end(self) -> None:
        if self._record is not None:
            self._waits.leases.forget(self._record)
            self._record = None


def _order(owner: WaitOwner) -> tuple[int, int, int]:
    return owner.instance, owner.epoch_at, owner.number
