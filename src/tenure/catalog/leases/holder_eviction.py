"""Ends this node's own transactions when others have waited for them too long.

A schema change that waits for a transaction writes a wait record. Once a record is older than
`lease.holder_grace`, the node that runs the transaction ends it: its next statement or its commit fails with
40001. A transaction that nobody waits for is left alone, even if it is old.

Walk: `composition.background` runs `step` in a loop; it calls `LeaseScheme.end`.
"""

from collections.abc import Callable, Iterator

from tenure.base.settings import LEASE_HOLDER_GRACE, LEASE_POLL_INTERVAL, Settings
from tenure.base.timestamp import Timestamp, add_seconds, seconds_between
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.catalog.leases.lease_scheme import LeaseScheme
from tenure.catalog.leases.wait_records import LeaseWait, WaitRecords
from tenure.cluster.sessions.deaths import Deaths
from tenure.kv.follower import ChangeWait
from tenure.kv.store import Store

SPACING_SECONDS = 0.1
"""The time between two looks while others commit something else: a wait has a grace of seconds at least."""

AGAIN_SECONDS = 0.2
"""The pause between two attempts to end a transaction whose commit is under way."""


class Holders:
    def __init__(
        self,
        store: Store,
        leases: LeaseScheme,
        waits: WaitRecords,
        deaths: Deaths,
        settings: Callable[[], Settings],
    ) -> None:
        self._store = store
        self._leases = leases
        self._waits = waits
        self._deaths = deaths
        self._settings = settings
        self._changes: ChangeWait | None = None
        self._latest: tuple[LeaseWait, ...] = ()
        """The waits of all nodes, as of the last look."""
        self._due = 0.0

    def step(self) -> float:
        """Waits for a wait record that concerns this node, and ends transactions that were awaited too
        long.
        """
        self._follow(max(0.0, self._due - self._store.env.monotonic()))
        settings = self._settings()
        now_at = self._store.clock.now()
        pause_seconds: float = settings[LEASE_POLL_INTERVAL]
        self._latest = tuple(self._waits.list(self._store.snapshot()))
        for wait in self._latest:
            if not self._deaths.is_alive(wait.session):
                self._forget(wait)
                continue
            due_at = add_seconds(wait.since_at, settings[LEASE_HOLDER_GRACE])
            pause_seconds = min(pause_seconds, self._attend(wait, due_at, now_at))
        self._due = self._store.env.monotonic() + pause_seconds
        return 0.0

    def _attend(self, wait: LeaseWait, due_at: Timestamp, now_at: Timestamp) -> float:
        """Ends the transactions that block a wait, if it is time; returns when to look again."""
        if now_at < due_at:
            return seconds_between(now_at, due_at)
        reason = f"it held up a schema change for {seconds_between(wait.since_at, now_at):.0f} s"
        ended = [self._leases.end(use, reason) for use in list(self._holding(wait))]
        return float("inf") if all(ended) else AGAIN_SECONDS

    def _holding(self, wait: LeaseWait) -> Iterator[CatalogUse]:
        return (use for use in self._leases.uses() if _is_awaited(use, wait))

    def is_awaited(self, use: CatalogUse) -> bool:
        """Whether somebody waits for a pin of this use, as far as this node has heard: asked from memory."""
        return any(_is_awaited(use, wait) for wait in self._latest)

    def _forget(self, wait: LeaseWait) -> None:
        """Deletes the record of a waiter that died."""
        self._store.transact(lambda txn: self._waits.delete(txn, wait))

    def _follow(self, seconds: float) -> None:
        if self._changes is None:
            self._changes = ChangeWait(
                self._store,
                [self._waits.span()],
                since_at=self._store.snapshot().at,
                spacing_seconds=SPACING_SECONDS,
            )
        else:
            self._changes.wait(seconds)

    def wake(self) -> None:
        if self._changes is not None:
            self._changes.wake()

    def close(self) -> None:
        if self._changes is not None:
            self._changes.close()


def _is_awaited(use: CatalogUse, wait: LeaseWait) -> bool:
    awaited = {each.descriptor: each.before_at for each in wait.awaited}
    return any(id in awaited and pin.lease.at < awaited[id] for id, pin in list(use.pins.items()))
