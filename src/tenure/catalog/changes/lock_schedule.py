"""Locks tables in the background, in batches: those that a changefeed watches, and those locked by hand.

    want(table, watcher)   a changefeed here could use a lock: noted in memory, nothing is waited for
    step()                 looks at what the newest lease has changed: tables that were locked before, and are
                           unlocked now without a change under way; then locks what is due, in one commit

A table is locked only if the transaction that does it reads no mark of a change, neither on the table nor on
a type that it uses, no unfinished stage, and somebody who still wants the lock. So a change that has set its
mark is not disturbed, and a change that comes later finds the lock. A lock waits for nobody: where older
leases are still in use it is tried again later, and no transaction is ended for it.

Every node does this for the whole catalog, a random moment after it has learned of an unlocked table: mostly
one of them acts, and the others find the table locked. A node that dies leaves it to the others.

Invariant (I33): a lock is a version of its own, made while no mark is on the table or its types.

Walk: `composition.background` runs `step` in a loop; `changefeed.leased_schema` calls `want`.
"""

from collections.abc import Callable
from typing import NamedTuple

from tenure.base.errors import LockNotAvailable
from tenure.catalog.changes.publisher import Publisher, Settled
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import Table, job_of
from tenure.catalog.descriptors.locks import can_lock, locked
from tenure.catalog.leases.catalog_cache import CatalogView
from tenure.catalog.leases.lease_scheme import LeaseScheme
from tenure.catalog.leases.lease_waits import LeaseWaiter
from tenure.cluster.jobs.job_table import Jobs
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction

LOOK_SECONDS = 0.25
"""The time between two looks at the newest lease: a lock is back well within the two seconds promised."""

SPREAD_SECONDS = 0.25
"""How long a node waits at most before it locks what others have learned of at the same time."""

AGAIN_SECONDS = 0.5
"""How long a table waits that could not be locked: older versions are still in use, or it changes."""

LOOKS_MAX = 200
"""Descriptors that a step of a starting node looks at: a few milliseconds."""

BATCH_MAX = 100
"""Tables per commit: others that conflict with one of them make all of them wait for the next step."""


class LockWish(NamedTuple):
    due: float
    watchers: frozenset[int]


class LockSchedule:
    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        leases: LeaseScheme,
        publisher: Publisher,
        jobs: Jobs,
        is_finalized: Callable[[], bool],
    ) -> None:
        self._store = store
        self._env = store.env
        self._catalog = catalog
        self._leases = leases
        self._publisher = publisher
        self._jobs = jobs
        self._is_finalized = is_finalized
        self._lock = self._env.lock()
        self._wishes: dict[int, LockWish] = {}
        self._looked: CatalogView | None = None
        """The catalog as of the last look."""
        self._left: list[int] = []
        """The descriptors that were not looked at since the node started."""
        self.on_wish: Callable[[], None] = lambda: None
        """Called when there is something new to do."""

    def want(self, table: int, watcher: int) -> None:
        """Asks for a lock on behalf of a changefeed's job; returns at once."""
        if self._add(table, self._env.monotonic(), frozenset({watcher})):
            self.on_wish()

    def _add(self, table: int, due: float, watchers: frozenset[int]) -> bool:
        """Returns whether that was not known."""
        with self._lock:
            former = self._wishes.get(table)
            if former is None:
                self._wishes[table] = LockWish(due, watchers)
                return True
            if not watchers <= former.watchers:
                self._wishes[table] = LockWish(min(former.due, due), former.watchers | watchers)
            return False

    def step(self) -> float:
        """Locks what is due; returns how long the next step may wait."""
        if not self._is_finalized():
            return LOOK_SECONDS
        self._look()
        now = self._env.monotonic()
        with self._lock:
            due = {id: wish for id, wish in self._wishes.items() if wish.due <= now}
        batch = dict(list(due.items())[:BATCH_MAX])
        left = self._lock_all(batch) if batch else set()
        with self._lock:
            for id in batch:
                self._wishes.pop(id, None)
        for id in left:
            self._add(id, now + AGAIN_SECONDS, batch[id].watchers)
        return 0.0 if len(due) > len(batch) else LOOK_SECONDS

    def _look(self) -> None:
        """Finds tables that have become unlocked, from what was changed since the last look.

        A node that starts looks at all of them once, some in each step: a large catalog is not decoded at
        once.
        """
        looked, newest = self._looked, self._leases.newest
        if newest is None:
            return
        if looked is None:
            self._left = newest.ids()
        some, self._left = self._left[:LOOKS_MAX], self._left[LOOKS_MAX:]
        changed = set() if looked is None else looked.changed_since()[0]
        self._looked = newest
        for id in sorted(changed.union(some)):
            table = newest.glance(id)
            if isinstance(table, Table) and _is_waiting(table):
                due = self._env.monotonic() + self._env.rng.random() * SPREAD_SECONDS
                self._add(id, due, frozenset())

    def _lock_all(self, wishes: dict[int, LockWish]) -> set[int]:
        """Locks tables; returns those to be tried again."""
        snapshot = self._store.snapshot()
        found = [id for id in wishes if self._may_lock(snapshot, id, wishes[id]) is not None]
        settled = self._settle(found)
        if settled:
            # This node's own changes do not meet a lock between their last look and their commit.
            with self._leases.freeze_rows():
                self._store.transact(lambda txn: self._publish(txn, wishes, settled))
        now = self._store.snapshot()
        return {id for id in wishes if self._is_wanted(now, id, wishes[id])}

    def _settle(self, ids: list[int]) -> Settled:
        """Those that are leased in one version only, right now."""
        try:
            return self._settle_now(ids) if ids else {}
        except LockNotAvailable:
            found: dict[int, int] = {}
            for id in ids:
                try:
                    found |= self._settle_now([id])
                except LockNotAvailable:
                    continue
            return found

    def _settle_now(self, ids: list[int]) -> Settled:
        return self._publisher.settle(ids, LeaseWaiter(self._store.clock.now()), timeout=0.0)

    def _publish(self, txn: Transaction, wishes: dict[int, LockWish], settled: Settled) -> None:
        """Locks those that are still as they were; all that is read here must not change until then."""
        tables = [
            table
            for id, modified_at in settled.items()
            if (table := self._may_lock(txn, id, wishes[id])) is not None and table.modified_at == modified_at
        ]
        followers = [locked(table, tuple(self._alive(txn, table, wishes[table.id]))) for table in tables]
        self._publisher.publish(txn, followers, settled)

    def _may_lock(self, source: Transaction | Snapshot, id: int, wish: LockWish) -> Table | None:
        table = self._catalog.get(source, id)
        if not isinstance(table, Table) or not can_lock(table):
            return None
        types = {column.type.enum for column in table.columns if column.type.enum}
        used = (self._catalog.get(source, each) for each in sorted(types))
        if any(each is None or job_of(each) for each in used):
            return None
        return table if table.is_lock_kept or any(self._alive(source, table, wish)) else None

    def _is_wanted(self, source: Snapshot, id: int, wish: LockWish) -> bool:
        """Whether it is not locked although somebody wants it to be."""
        table = self._catalog.get(source, id)
        if not isinstance(table, Table) or table.is_locked:
            return False
        return table.is_lock_kept or any(self._alive(source, table, wish))

    def _alive(self, source: Transaction | Snapshot, table: Table, wish: LockWish) -> list[int]:
        """The changefeeds that want the lock and have not ended."""
        asked = sorted({*table.watchers, *wish.watchers})
        return [each for each in asked if self._jobs.is_open(source, each)]


def _is_waiting(table: Table) -> bool:
    """Whether a table was locked before, and could be now."""
    return can_lock(table) and (table.is_lock_kept or bool(table.watchers))
