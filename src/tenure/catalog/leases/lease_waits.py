"""Waiting until a descriptor is leased in one version only.

    version v was written at M(v); version v+1 may be written when no lease row with L < M(v)
    covers the descriptor, and no expiring lease one of its versions below v

Such rows are narrowed or deleted, and never appear: so they are read fresh, outside any refresh span, and
once they are gone they stay gone. This node's own rows count as narrowed as soon as nothing here pins the
descriptor under them. The waiting node deletes the row of a dead holder, and a session once it has expired: a
wait depends on no other node.

A wait that takes longer than a moment is recorded, so that other nodes can see what it waits for, end their
own transactions that block it, and find cycles. A node that does not end its transaction is cut off: its
session is frozen and expires within one ttl. No node ever deletes the lease of a live session. A node without
a session in the store records no waits: what it waits for, an expiring lease on an older version, ends by
itself.

Invariant (I12): a next version is written only when no older lease covers the descriptor.
Invariant (I9): of a cycle of waiting transactions the youngest gives way.
Invariant (I19): a wait ends within the grace, a ttl and the poll, also if the holder never answers.

Walk: `schema_change` calls `await_gone` between two versions; `SHOW BLOCKERS` calls `blockers`.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import count
from typing import NamedTuple

from tenure.base.errors import DeadlockDetected, LockNotAvailable, TenureError
from tenure.base.settings import LEASE_HOLDER_GRACE, LEASE_POLL_INTERVAL, LIVENESS_TTL, Settings
from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.catalog.leases.blockers import AGAIN_SECONDS, Blocker, LeaseTable
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.catalog.leases.lease_scheme import LeaseScheme
from tenure.catalog.leases.wait_records import (
    AwaitedDescriptor,
    Hold,
    LeaseWait,
    WaitOwner,
    WaitRecords,
    is_in_cycle,
    must_give_way,
)
from tenure.cluster.sessions.deaths import Deaths
from tenure.cluster.sessions.liveness import NodeSession
from tenure.cluster.sessions.session_records import Sessions
from tenure.kv.follower import ChangeWait
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction

MOMENT_SECONDS = 0.2
"""A shorter wait is not recorded: most end when the other nodes have renewed their leases."""

_log = logging.getLogger(__name__)


class LeaseWaiter(NamedTuple):
    """The owner of a wait: a transaction, or a job that has none open."""

    started_at: Timestamp
    use: CatalogUse | None = None
    check: Callable[[], None] = lambda: None
    """Raises to end the wait."""


class LeaseWaits:
    def __init__(
        self,
        store: Store,
        leases: LeaseScheme,
        tables: Callable[[], Sequence[LeaseTable]],
        waits: WaitRecords,
        sessions: Sessions,
        deaths: Deaths,
        session: Callable[[], NodeSession],
        settings: Callable[[], Settings],
    ) -> None:
        self._store = store
        self._leases = leases
        self._tables = tables
        """The tables of rows that this node respects."""
        self._waits = waits
        self._sessions = sessions
        self._deaths = deaths
        self._session = session
        self._settings = settings
        self._numbers = count(1)
        self._left: list[LeaseWait] = []
        """Records of waits that are over, which could not be deleted yet."""

    def blockers(self, awaited: Sequence[AwaitedDescriptor]) -> list[Blocker]:
        """The rows of all nodes that cover older versions of the awaited descriptors, read fresh."""
        if not awaited:
            return []
        snapshot = self._store.snapshot()
        return [blocker for table in self._tables() for blocker in table.blockers(snapshot, awaited)]

    def is_alone(self, source: Transaction | Snapshot, ids: Sequence[int]) -> bool:
        """Whether no other node's lease covers any of these, as of the source."""
        return not any(table.is_used_by_others(source, ids) for table in self._tables())

    def await_gone(
        self, awaited: Sequence[AwaitedDescriptor], waiter: LeaseWaiter, *, timeout: float | None = None
    ) -> None:
        """Returns when no older lease covers any of these; LockNotAvailable after `timeout`."""
        if waiter.use is not None:
            waiter.use.give_up([each.descriptor for each in awaited])
        if self._look(awaited) is None:
            return
        waiting = _Waiting(self, awaited, waiter, timeout)
        try:
            waiting.run()
        finally:
            waiting.close()

    def _look(self, awaited: Sequence[AwaitedDescriptor]) -> float | None:
        """Deletes the rows that can be deleted; None if none is left, else when to look again."""
        pauses: list[float] = []
        for blocker in self.blockers(awaited):
            pause = self._await_own(blocker) if blocker.is_own else blocker.clear()
            if pause is not None:
                pauses.append(pause)
        return min(pauses, default=None)

    def _await_own(self, blocker: Blocker) -> float | None:
        if self._leases.newest_at() < max(each.before_at for each in blocker.covered):
            self._leases.renew()
        if self._is_past(blocker):
            return None
        if blocker.session is not None:
            return AGAIN_SECONDS
        # A row that expires by itself covers nothing after that, also the node's own.
        pause = blocker.clear()
        return None if pause is None else min(pause, AGAIN_SECONDS)

    def _is_past(self, blocker: Blocker) -> bool:
        return all(self._leases.is_past(each.descriptor, each.before_at) for each in blocker.covered)

    # ── longer waits ────────────────────────────────────────────────────────────────────────────

    def record(
        self,
        awaited: Sequence[AwaitedDescriptor],
        waiter: LeaseWaiter,
        *,
        awaits: Sequence[WaitOwner] = (),
    ) -> LeaseWait | None:
        """Writes a wait for descriptors, or for locks of others; None without a session in the store."""
        session, use = self._session().id, waiter.use
        if session.epoch_at == ZERO_AT:
            return None
        holds = [] if use is None else [Hold(id, pin.lease.at) for id, pin in sorted(use.pins.items())]
        now_at = self._store.clock.now()
        wait = LeaseWait(
            *session,
            next(self._numbers),
            waiter.started_at,
            now_at,
            tuple(awaited),
            tuple(holds),
            owner=0 if use is None else use.lock_owner,
            awaits=tuple(awaits),
        )
        self.tidy()
        self._store.transact(lambda txn: self._waits.put(txn, wait))
        return wait

    def forget(self, wait: LeaseWait) -> None:
        """Deletes the record; one that cannot be deleted now goes with the next, or with the session."""
        self._left.append(wait)
        self._delete_left()

    def tidy(self) -> None:
        """Deletes records that could not be deleted before: a slow step for a loop."""
        if self._left:
            self._delete_left()

    def _delete_left(self) -> None:
        left = list(self._left)

        def delete(txn: Transaction) -> None:
            for wait in left:
                self._waits.delete(txn, wait)

        try:
            self._store.transact(delete)
        except TenureError as error:
            _log.warning("the record of a wait that is over stays for now: %s", error)
            return
        self._left = [wait for wait in self._left if wait not in left]

    def check_cycle(self, wait: LeaseWait) -> bool:
        """Whether it is in a cycle of waits. Raises DeadlockDetected (40P01) if it is the youngest there."""
        waits = [each for each in self._waits.list(self._store.snapshot()) if not self._is_dead(each)]
        if must_give_way(wait, waits):
            raise DeadlockDetected(
                "deadlock detected",
                detail="Transactions wait for each other's locks, or use of changed descriptors.",
                hint="This one is the youngest of them; try it again.",
            )
        return is_in_cycle(wait, waits)

    def _is_dead(self, wait: LeaseWait) -> bool:
        return self._deaths.is_dead(wait.session)

    def cut_off(self, awaited: Sequence[AwaitedDescriptor], reason: str) -> None:
        """Freezes the sessions of nodes that have not ended the transactions that block this wait; its own
        too.
        """
        blockers = [
            blocker for blocker in self.blockers(awaited) if not (blocker.is_own and self._is_past(blocker))
        ]
        for session in sorted({blocker.session for blocker in blockers if blocker.session is not None}):
            _log.warning("session %s is cut off: %s", session, reason)
            self._store.transact(lambda txn, it=session: self._sessions.freeze(txn, it, reason))  # type: ignore[misc]

    def changes(self) -> ChangeWait:
        spans = [*(table.span() for table in self._tables()), self._waits.span(), self._sessions.span()]
        return ChangeWait(self._store, spans, since_at=self._store.snapshot().at)

    def pace(self) -> "_Pace":
        settings = self._settings()
        grace_seconds = settings[LEASE_HOLDER_GRACE]
        return _Pace(settings[LEASE_POLL_INTERVAL], grace_seconds + settings[LIVENESS_TTL])

    def look(self, awaited: Sequence[AwaitedDescriptor]) -> float | None:
        return self._look(awaited)

    def monotonic(self) -> float:
        return self._store.env.monotonic()

    def waiting(self) -> AbstractContextManager[object]:
        """The waiting transaction may hold descriptors for a publication, which others need."""
        return self._store.env.waiting(holds=True)


class _Pace(NamedTuple):
    poll_seconds: float
    cut_off_seconds: float


class _Waiting:
    """One wait that is longer than a look."""

    def __init__(
        self,
        waits: LeaseWaits,
        awaited: Sequence[AwaitedDescriptor],
        waiter: LeaseWaiter,
        timeout: float | None,
    ) -> None:
        self._waits = waits
        self._awaited = awaited
        self._waiter = waiter
        self._timeout = timeout
        self._began = waits.monotonic()
        self._wait: LeaseWait | None = None
        self._is_noticed = False
        self._is_cut_off = False
        self._changes = waits.changes()

    def run(self) -> None:
        while (pause := self._waits.look(self._awaited)) is not None:
            self._waiter.check()
            waited = self._waits.monotonic() - self._began
            self._check_timeout(waited)
            self._notice(waited)
            with self._waits.waiting():
                self._changes.wait(min(pause, self._pause(waited)))

    def _check_timeout(self, waited: float) -> None:
        if self._timeout is not None and waited >= self._timeout:
            blockers = self._waits.blockers(self._awaited)
            raise LockNotAvailable(
                f"still in use after {waited:.1f} s by {describe(blockers)}",
                hint="SHOW BLOCKERS names the transactions, also idle ones; end them, or wait longer.",
            )

    def _notice(self, waited: float) -> None:
        if not self._is_noticed and waited >= MOMENT_SECONDS:
            self._wait = self._waits.record(self._awaited, self._waiter)
            self._is_noticed = True
        if self._wait is not None:
            self._waits.check_cycle(self._wait)
        if not self._is_cut_off and waited >= self._waits.pace().cut_off_seconds:
            self._waits.cut_off(self._awaited, f"it held up a schema change for {waited:.0f} s")
            self._is_cut_off = True

    def _pause(self, waited: float) -> float:
        """The time until the next action of this wait."""
        poll_seconds, cut_off_seconds = self._waits.pace()
        due = [poll_seconds]
        if not self._is_noticed:
            due.append(MOMENT_SECONDS - waited)
        if not self._is_cut_off:
            due.append(cut_off_seconds - waited)
        if self._timeout is not None:
            due.append(self._timeout - waited)
        return max(0.001, min(due))

    def close(self) -> None:
        self._changes.close()
        if self._wait is not None:
            self._waits.forget(self._wait)


def describe(blockers: Sequence[Blocker]) -> str:
    """Names the holders that block a wait."""
    rows = [blocker.row for blocker in blockers]
    named = [
        f"instance {row.instance}, transaction {holder.transaction}: {holder.statement or 'idle'}"
        for row in rows
        for holder in row.holders
    ]
    instances = sorted({row.instance for row in rows})
    return "; ".join(named) or ", ".join(f"instance {instance}" for instance in instances)
