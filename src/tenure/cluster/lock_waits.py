"""Acquiring locks: in this node's memory first, then, where other nodes are about, in the store.

    acquire ──► LockTable: wait for those of this node ──► a record: wait for those of other nodes ──► held
    release ──► LockTable: the next of this node goes on ──► the record is deleted

So of each node at most one exclusive owner stands in a name's line in the store, and nodes take turns.
The records are written and deleted in small transactions of their own, never the user's, and read
outside any refresh span: whatever becomes of a lock, a transaction is right or is refused.

A wait hangs on nobody's good will. It wakes for every change of the line, reads the store anew, finds
out for itself whether those before it are alive, deletes sessions that have expired, and passes over
what the dead have left. From time to time it looks whether it may go on at all (`canceled`), and after a
while whether it waits in a cycle with other nodes. Those who wait in memory leave a notice by then, so that
others can see all of the cycle.

What could not be deleted (the store was away) is deleted later, and goes with the session at the latest.

Invariant (lock-death): what a dead session has locked is free.

Walk: `cluster.locks` (rows) and `cluster.advisory` are its two faces; `LockTable` and `LockRecords` know
who is first; `node.py` runs `tidy` in a slow loop.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from itertools import count
from typing import NamedTuple

from tenure.base.errors import (
    BaseMoved,
    DeadlockDetected,
    LockNotAvailable,
    RetryError,
    SessionLost,
    SnapshotTooOld,
    TenureError,
)
from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.cluster.deaths import Deaths
from tenure.cluster.liveness import Session
from tenure.cluster.lock_records import Holder, LockRecord, LockRecords, in_the_way, must_give_way
from tenure.cluster.lock_table import LockTable, Mode, Name, Owner, Waiter
from tenure.cluster.sessions import SessionId
from tenure.kv.keys import ADVISORY_LOCKS, Span
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.kv.watch import Watch

DEADLOCK_SECONDS = 1.0
DEADLOCK_SECONDS_MAX = 4.0
"""How long a wait is before it looks for a cycle, as PostgreSQL's deadlock_timeout; and then between two
such looks, doubling up to the greatest: each reads all locks there are."""

CANCEL_SECONDS = 0.1
"""How often a wait asks whether it shall go on: a person who cancels does not notice."""

GAP_SECONDS = 0.002
"""Between two looks at a line in the store while others commit: less than a commit takes."""

RECORDS_MAX = 10_000
"""Records per transaction, far below what one commit may write."""

_log = logging.getLogger(__name__)


class Wait(Enum):
    WAIT = "wait"
    NOWAIT = "nowait"
    """LockNotAvailable at once if any of it is not to be had."""
    SKIP = "skip"
    """What is not to be had is left out."""


class How(NamedTuple):
    """How a lock is asked for."""

    wait: Wait = Wait.WAIT
    timeout: float | None = None
    """Seconds; LockNotAvailable after that."""
    canceled: Callable[[], None] = lambda: None
    """Called often while it waits; raises if it shall not go on."""
    what: str = "row"
    """What the error says it is."""


class Acquired(NamedTuple):
    names: list[Name]
    """All that were asked for, but those skipped."""
    has_waited: bool


Held = Mapping[Name, Mode]


class LockWaits:
    def __init__(
        self, store: Store, deaths: Deaths, session: Callable[[], Session], is_alone: Callable[[], bool]
    ) -> None:
        self.env = store.env
        self.store = store
        self.records = LockRecords(store.keyspace)
        self._deaths = deaths
        self._session = session
        self._is_alone = is_alone
        self._table = LockTable(store.env)
        self._lock = store.env.lock()
        self._tickets = count(1)
        self._kept: dict[tuple[Owner, Name], list[bytes]] = {}
        """The records of what is held; of those acquired while nobody else was about, there are none."""
        self._left: list[bytes] = []
        """Records to be deleted that could not be yet."""
        self._expiries: dict[SessionId, Timestamp] = {}

    # ── acquiring ──────────────────────────────────────────────────────────────────────────────

    def try_acquire(self, owner: Owner, names: Sequence[Name], mode: Mode, held: Held) -> bool:
        """Acquires all or nothing without waiting, or asking the store; `held` as for `acquire`."""
        if any(map(self.is_stored, names)):
            return False
        for position, name in enumerate(names):
            if not self._table.try_acquire(owner, name, mode):
                self.give_back(owner, names[:position], held)
                return False
        return True

    def give_back(self, owner: Owner, names: Sequence[Name], held: Held) -> None:
        """Undoes what was got here: what was held before, in a weaker mode, is held so again."""
        for name in names:
            if name in held:
                self._table.lower(owner, name, held[name])
        self._table.release(owner, [name for name in names if name not in held])

    def acquire(self, owner: Owner, names: Sequence[Name], mode: Mode, how: How, held: Held) -> Acquired:
        """Acquires names that are not held in this mode yet; if it raises, none of them.

        `held` says what the owner holds already; what it holds in a weaker mode may be asked for again.
        """
        attempt = _Attempt(self, owner, mode, how, held)
        try:
            for name in names:
                attempt.acquire_here(name)
            stored = [name for name in attempt.got if self.is_stored(name)]
            if stored:
                attempt.acquire_in_store(stored)
        except BaseException as error:
            attempt.undo()
            if isinstance(error, SessionLost):
                raise RetryError("this node's session was lost, and its locks with it") from error
            raise
        with self._lock:
            for name, key in attempt.keys.items():
                self._kept.setdefault((owner, name), []).append(key)
        return Acquired(attempt.got, attempt.has_waited)

    def session(self) -> Session:
        try:
            return self._session()
        except SessionLost as error:
            raise RetryError(str(error)) from error

    def release(self, owner: Owner, names: Sequence[Name], *, at_once: bool = False) -> None:
        """Gives names up; the records of others who wait elsewhere move up soon, or before this returns."""
        with self._lock:
            keys = [key for name in names for key in self._kept.pop((owner, name), ())]
        if at_once and keys:
            self._delete_now(keys)
            keys = []
        self._table.release(owner, names)
        self.delete(keys)

    # ── records ────────────────────────────────────────────────────────────────────────────────

    def put(self, owner: Owner, names: Sequence[Name], mode: Mode) -> dict[Name, bytes]:
        """Takes a place in line for each; blind writes, which nobody's can conflict with."""
        keys: dict[Name, bytes] = {}
        try:
            for first in range(0, len(names), RECORDS_MAX):
                part = names[first : first + RECORDS_MAX]
                keys |= self._transact(lambda txn, part=part: self._put(txn, owner, part, mode))  # type: ignore[misc]
        except BaseException as error:
            self._leave(list(keys.values()), error)
            raise
        return keys

    def put_free(self, owner: Owner, names: Sequence[Name], mode: Mode) -> dict[Name, bytes]:
        """Takes a place where nobody is in the way, and nowhere else."""
        try:
            return self._transact(lambda txn: self._put_free(txn, owner, names, mode))
        except RetryError:
            return {}  # others come and go there all the time

    def _transact(self, put: Callable[[Transaction], dict[Name, bytes]]) -> dict[Name, bytes]:
        """Commits records; those that may have landed though nobody was told so are left for deletion."""
        drawn: list[bytes] = []

        def draw(txn: Transaction) -> dict[Name, bytes]:
            keys = put(txn)
            drawn[:] = keys.values()
            return keys

        try:
            return self.store.transact(draw)
        except RetryError:
            raise
        except BaseException as error:
            self._leave(drawn, error)
            raise

    def _put_free(
        self, txn: Transaction, owner: Owner, names: Sequence[Name], mode: Mode
    ) -> dict[Name, bytes]:
        lines = self.records.lines(txn, names)
        free = [
            name
            for name in names
            if not self.blockers(owner, name, self._asking(name, owner, mode), lines[name])
        ]
        return self._put(txn, owner, free, mode)

    def _asking(self, name: Name, owner: Owner, mode: Mode) -> LockRecord:
        """A record as it would be, at the end of the line."""
        at, ticket = self.store.clock.now(), next(self._tickets)
        return LockRecord(name.key, *self._session().id, ticket, owner.number, mode, owner.started_at, at)

    def _put(self, txn: Transaction, owner: Owner, names: Sequence[Name], mode: Mode) -> dict[Name, bytes]:
        session = self._session()
        if any(name.table == ADVISORY_LOCKS for name in names):
            session.observe(txn)  # the lanes of a session just deleted may still be open
        return {
            name: self.records.put(txn, name, session.id, next(self._tickets), owner, mode) for name in names
        }

    def put_notice(self, waiter: Waiter, mode: Mode, ticket: int) -> list[bytes]:
        """Says whom an owner waits for in memory; returns the key to delete it by, if it does."""
        awaits = tuple(each.number for each in self._table.awaited(waiter))
        if not awaits:
            return []

        def put(txn: Transaction) -> dict[Name, bytes]:
            session, owner, name = self._session().id, waiter.owner, waiter.name
            return {name: self.records.put(txn, name, session, ticket, owner, mode, awaits=awaits)}

        return list(self._transact(put).values())

    def draw_ticket(self) -> int:
        return next(self._tickets)

    def blockers(
        self, owner: Owner, name: Name, record: LockRecord, line: Sequence[LockRecord]
    ) -> list[LockRecord]:
        """The records of other nodes that are in a record's way; those of the dead are deleted."""
        kept = self._kept.get((owner, name), ())
        firm = [each for each in line if self.records.key_of(name.table, each) in kept] if kept else []
        others = in_the_way(record, line, firm)
        dead = [each for each in others if self._is_gone(each.session)]
        if not dead:
            return others
        self.delete([self.records.key_of(name.table, each) for each in dead])
        return [each for each in others if each not in dead]

    def _is_gone(self, session: SessionId) -> bool:
        """Whether it was found absent; one that has expired is deleted. What lives is asked at its expiry."""
        if self._deaths.is_dead(session):
            return True
        if self.store.clock.now() <= self._expiries.get(session, ZERO_AT):
            return False
        expires_at = self._deaths.expiry(session)
        if expires_at is None or (self.store.clock.now() > expires_at and self._deaths.bury(session)):
            self._expiries.pop(session, None)
            return True
        self._expiries[session] = expires_at
        return False

    def check_cycle(self, owner: Owner) -> None:
        lines = self.records.all(self.store.snapshot())
        alive = [[each for each in line if not self._deaths.is_dead(each.session)] for line in lines.values()]
        if must_give_way(Holder(self._session().id, owner.number), alive):
            raise DeadlockDetected(
                "deadlock detected",
                detail="Transactions of several nodes wait for each other's locks.",
                hint="This one is the youngest of them; try it again.",
            )

    # ── deleting ───────────────────────────────────────────────────────────────────────────────

    def delete(self, keys: Sequence[bytes]) -> None:
        """Deletes records, and those left from before, without waiting for it."""
        keys = self._with_left(keys)
        for first in range(0, len(keys), RECORDS_MAX):
            self._submit_deletion(keys[first : first + RECORDS_MAX])

    def _submit_deletion(self, keys: Sequence[bytes]) -> None:
        txn = self.store.begin()
        for key in keys:
            txn.delete(key)

        def done() -> None:
            try:
                txn.finish()
            except TenureError as error:
                self._leave(keys, error)

        txn.submit(done)

    def _delete_now(self, keys: Sequence[bytes]) -> None:
        keys = self._with_left(keys)
        try:
            self.store.transact(lambda txn: _delete_all(txn, keys))
        except BaseException as error:
            self._leave(keys, error)
            if not isinstance(error, TenureError):
                raise

    def _with_left(self, keys: Sequence[bytes]) -> Sequence[bytes]:
        if not self._left:
            return keys
        with self._lock:
            left, self._left = self._left, []
        return [*left, *keys]

    def _leave(self, keys: Sequence[bytes], error: BaseException) -> None:
        _log.info("%d records of released locks stay for now: %s", len(keys), error)
        with self._lock:
            self._left += keys

    def tidy(self) -> None:
        """Deletes records that could not be deleted before: a slow step for a loop."""
        self.delete(())

    # ── for attempts ───────────────────────────────────────────────────────────────────────────

    @property
    def table(self) -> LockTable:
        return self._table

    def is_stored(self, name: Name) -> bool:
        """Whether it needs a record: row locks while others are about, advisory locks always."""
        return name.table == ADVISORY_LOCKS or not self._is_alone()

    def watch(self, spans: Sequence[Span], snapshot: Snapshot) -> Watch:
        return self.store.watch(spans, since_at=snapshot.at, gap_seconds=GAP_SECONDS)


def _delete_all(txn: Transaction, keys: Iterable[bytes]) -> None:
    for key in keys:
        txn.delete(key)


class _Attempt:
    """One call of `acquire`: what it has got so far, and how long it has waited."""

    def __init__(self, locks: LockWaits, owner: Owner, mode: Mode, how: How, held: Held) -> None:
        self._locks = locks
        self._held = held
        self._owner = owner
        self._mode = mode
        self._how = how
        self._began = locks.env.monotonic()
        self._cycle_due = self._began + DEADLOCK_SECONDS
        self._cycle_pause = DEADLOCK_SECONDS
        self.got: list[Name] = []
        self.keys: dict[Name, bytes] = {}
        self.has_waited = False

    def acquire_here(self, name: Name) -> None:
        table = self._locks.table
        if not table.try_acquire(self._owner, name, self._mode):
            if self._how.wait is Wait.SKIP:
                return
            if self._how.wait is Wait.NOWAIT:
                raise self._refusal()
            self._await_here(name)
        self.got.append(name)

    def _await_here(self, name: Name) -> None:
        waiter = self._locks.table.join(self._owner, name, self._mode)
        ticket, notice = self._locks.draw_ticket(), list[bytes]()
        try:
            while not waiter.is_granted.wait(self._pause()):
                self.has_waited = True
                self._check()
                if self._is_cycle_due() and self._locks.is_stored(name):
                    notice = self._locks.put_notice(waiter, self._mode, ticket) or notice
                    self._locks.check_cycle(self._owner)
        except BaseException:
            if not self._locks.table.leave(waiter):
                self.got.append(name)  # granted just now, and to be given back with the rest
            raise
        finally:
            self._locks.delete(notice)
        self.has_waited = True

    def acquire_in_store(self, names: Sequence[Name]) -> None:
        if self._how.wait is Wait.WAIT:
            self.keys = self._locks.put(self._owner, names, self._mode)
            self._await_in_store(names)
            return
        for first in range(0, len(names), RECORDS_MAX):
            part = names[first : first + RECORDS_MAX]
            self.keys |= self._locks.put_free(self._owner, part, self._mode)
        missed = [name for name in names if name not in self.keys]
        if missed and self._how.wait is Wait.NOWAIT:
            raise self._refusal()
        self._locks.give_back(self._owner, missed, self._held)
        self.got = [name for name in self.got if name not in missed]

    def _await_in_store(self, names: Sequence[Name]) -> None:
        """Waits until nothing is in the way of any of its records; what is free once, stays so."""
        watch: Watch | None = None
        try:
            while True:
                snapshot = self._locks.store.snapshot()
                names = self._blocked(snapshot, names)
                if not names:
                    return
                self.has_waited = True
                self._check()
                if self._is_cycle_due():
                    self._locks.tidy()
                    self._locks.check_cycle(self._owner)
                if watch is None:
                    watch = self._locks.watch([self._locks.records.span(name) for name in names], snapshot)
                watch = self._follow(watch)
        finally:
            if watch is not None:
                watch.close()

    def _blocked(self, snapshot: Snapshot, names: Sequence[Name]) -> list[Name]:
        blocked = []
        for name, line in self._locks.records.lines(snapshot, names).items():
            key_of = self._locks.records.key_of
            own = [record for record in line if key_of(name.table, record) == self.keys[name]]
            if not own:
                raise SessionLost("this node's session was lost while it waited for a lock")
            if self._locks.blockers(self._owner, name, own[0], line):
                blocked.append(name)
        return blocked

    def _follow(self, watch: Watch) -> Watch | None:
        try:
            watch.next(self._pause(), changes_only=True)
            return watch
        except (SnapshotTooOld, BaseMoved):
            watch.close()
            return None

    def _check(self) -> None:
        self._how.canceled()
        timeout = self._how.timeout
        if timeout is not None and self._waited() >= timeout:
            raise LockNotAvailable("canceling statement due to lock timeout")

    def _waited(self) -> float:
        return self._locks.env.monotonic() - self._began

    def _pause(self) -> float:
        timeout = self._how.timeout
        return CANCEL_SECONDS if timeout is None else max(0.0, min(CANCEL_SECONDS, timeout - self._waited()))

    def _is_cycle_due(self) -> bool:
        now = self._locks.env.monotonic()
        if now < self._cycle_due:
            return False
        self._cycle_pause = min(DEADLOCK_SECONDS_MAX, 2 * self._cycle_pause)
        self._cycle_due = now + self._cycle_pause
        return True

    def _refusal(self) -> LockNotAvailable:
        return LockNotAvailable(f"could not obtain lock on {self._how.what}")

    def undo(self) -> None:
        self._locks.give_back(self._owner, self.got, self._held)
        self._locks.delete(list(self.keys.values()))
