"""Acquiring locks: in this node's memory first, then, if there are other nodes, in the store.

    acquire ──► LockTable: wait for those of this node ──► a record: wait for those of other nodes ──► held
    release ──► LockTable: the next of this node goes on ──► the record is deleted

So each node has at most one exclusive owner in a name's queue in the store, and nodes take turns. The records
are written and deleted in small transactions of their own, never the user's, and read outside any refresh
span: a user's transaction stays correct even if a lock is lost, or is refused.

A wait depends on no other node's cooperation. It wakes for every change of the queue, reads the store anew,
checks itself whether those before it are alive, deletes sessions that have expired, and passes over the
records of the dead. From time to time it checks whether it may go on at all (`canceled`), and after a while
whether it waits in a cycle with other nodes. Owners that wait in memory write a notice by then, so that
others can see the whole cycle.

Records that could not be deleted (the store was away) are deleted later, at the latest with the session.

Walk: `cluster.locks.row_locks` (rows) and `cluster.locks.advisory_locks` call it; it asks `LockTable` and
`StoredLocks` who is first; `composition.background` runs `tidy` in a slow loop.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from tenure.base.errors import LockNotAvailable, RetryError, SessionLost
from tenure.cluster.locks.lock_records import LockHolder
from tenure.cluster.locks.lock_table import LockMode, LockOwner, LockTable, Name
from tenure.cluster.locks.stored_locks import RECORDS_MAX, StoredLocks
from tenure.cluster.sessions.deaths import Deaths
from tenure.cluster.sessions.liveness import NodeSession
from tenure.kv.follower import ChangeWait
from tenure.kv.keys import ADVISORY_LOCKS
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store

DEADLOCK_SECONDS = 1.0
DEADLOCK_SECONDS_MAX = 4.0
"""How long a wait is before it looks for a cycle, as PostgreSQL's deadlock_timeout; and the time between two
such looks, doubling up to the greatest: each reads all locks.
"""

LATE_SECONDS = 0.001
"""Added to a wait that a time-out cuts short: by rounding, a shorter one might not end at all."""

CANCEL_SECONDS = 0.1
"""How often a wait checks whether it may go on: short enough for a person who cancels."""


class WaitPolicy(Enum):
    WAIT = "wait"
    NOWAIT = "nowait"
    """Raises LockNotAvailable at once if one of the locks cannot be had."""
    SKIP = "skip"
    """Leaves out locks that cannot be had."""


class LockOptions(NamedTuple):
    """The options of a lock request."""

    wait: WaitPolicy = WaitPolicy.WAIT
    timeout: float | None = None
    """Seconds; LockNotAvailable after that."""
    canceled: Callable[[], None] = lambda: None
    """Called often while it waits; raises to end the wait."""
    what: str = "row"
    """What the error calls the locked thing."""


class AcquiredLock(NamedTuple):
    names: list[Name]
    """All requested names without the skipped ones."""
    has_waited: bool


LockModes = Mapping[Name, LockMode]


class LockWaits:
    def __init__(
        self, store: Store, deaths: Deaths, session: Callable[[], NodeSession], is_alone: Callable[[], bool]
    ) -> None:
        self.env = store.env
        self.table = LockTable(store.env)
        self.stored = StoredLocks(store, deaths, session)
        self._session = session
        self.is_alone = is_alone

    def try_acquire(self, owner: LockOwner, names: Sequence[Name], mode: LockMode, held: LockModes) -> bool:
        """Acquires all or nothing without waiting or reading the store; `held` as for `acquire`."""
        if any(map(self.is_stored, names)):
            return False
        for position, name in enumerate(names):
            if not self.table.try_acquire(owner, name, mode):
                self.give_back(owner, names[:position], held)
                return False
        return True

    def give_back(self, owner: LockOwner, names: Sequence[Name], held: LockModes) -> None:
        """Undoes an acquisition: names that were held before in a weaker mode are held so again."""
        for name in names:
            if name in held:
                self.table.lower(owner, name, held[name])
        self.table.release(owner, [name for name in names if name not in held])

    def acquire(
        self, owner: LockOwner, names: Sequence[Name], mode: LockMode, options: LockOptions, held: LockModes
    ) -> AcquiredLock:
        """Acquires names that are not held in this mode yet; if it raises, none of them.

        `held` are the owner's locks; a name held in a weaker mode may be requested again.
        """
        attempt = _Attempt(self, owner, mode, options, held)
        try:
            for name in names:
                attempt.acquire_here(name)
            stored = [name for name in attempt.acquired if self.is_stored(name)]
            if stored:
                attempt.acquire_in_store(stored)
        except BaseException as error:
            attempt.undo()
            if isinstance(error, SessionLost):
                raise RetryError("this node's session was lost, and its locks with it") from error
            raise
        self.stored.keep(owner, attempt.keys)
        return AcquiredLock(attempt.acquired, attempt.has_waited)

    def session(self) -> NodeSession:
        try:
            return self._session()
        except SessionLost as error:
            raise RetryError(str(error)) from error

    def release(self, owner: LockOwner, names: Sequence[Name], *, at_once: bool = False) -> None:
        """Releases names; waiters on other nodes move up soon or, with `at_once`, before this returns."""
        keys = self.stored.take(owner, names)
        try:
            if at_once and keys:
                self.stored.delete_now(keys)
                return
        finally:
            self.table.release(owner, names)
        self.stored.delete(keys)

    def awaited_by(self, owner: LockOwner) -> set[LockHolder]:
        """All owners without which this one does not go on, on all nodes: also those that they wait for."""
        session = self.session().id
        awaited = {} if self.is_alone() else self.stored.waits()
        for waiter, others in self.table.waits().items():
            here = awaited.setdefault(LockHolder(session, waiter.number), set())
            here.update(LockHolder(session, each.number) for each in others)
        found: set[LockHolder] = set()
        ahead = [LockHolder(session, owner.number)]
        while ahead:
            following = awaited.get(ahead.pop(), set()) - found
            found |= following
            ahead += following
        return found

    def is_stored(self, name: Name) -> bool:
        """Whether it needs a record: row locks if there are other nodes, advisory locks always."""
        return name.table == ADVISORY_LOCKS or not self.is_alone()

    def tidy(self) -> None:
        """Deletes records that could not be deleted before: a slow step for a loop."""
        self.stored.delete(())


class _Attempt:
    """One call of `acquire`: its locks so far, and how long it has waited."""

    def __init__(
        self, locks: LockWaits, owner: LockOwner, mode: LockMode, options: LockOptions, held: LockModes
    ) -> None:
        self._locks = locks
        self._table, self._stored = locks.table, locks.stored
        self._held = held
        self._owner = owner
        self._mode = mode
        self._options = options
        self._began = locks.env.monotonic()
        self._cycle_due = self._began + DEADLOCK_SECONDS
        self._cycle_pause = DEADLOCK_SECONDS
        self.acquired: list[Name] = []
        self.keys: dict[Name, bytes] = {}
        self.has_waited = False

    def acquire_here(self, name: Name) -> None:
        if not self._table.try_acquire(self._owner, name, self._mode):
            if self._options.wait is WaitPolicy.SKIP:
                return
            if self._options.wait is WaitPolicy.NOWAIT:
                raise self._refusal()
            self._await_here(name)
        self.acquired.append(name)

    def _await_here(self, name: Name) -> None:
        waiter = self._table.join(self._owner, name, self._mode)
        ticket, notices = self._stored.draw_ticket(), list[bytes]()
        try:
            with self._locks.env.waiting():
                while not waiter.is_granted.wait(self._pause()):
                    self.has_waited = True
                    self._check()
                    if self._is_cycle_due() and self._locks.is_stored(name):
                        awaits = self._table.awaited(waiter)
                        notices = [self._stored.put_notice(self._owner, name, ticket, awaits)]
                        self._stored.check_cycle(self._owner)
        except BaseException:
            if not self._table.leave(waiter):
                self.acquired.append(name)  # granted just now, and to be released with the rest
            raise
        finally:
            self._stored.delete(notices)
        self.has_waited = True

    def acquire_in_store(self, names: Sequence[Name]) -> None:
        if self._options.wait is WaitPolicy.WAIT:
            self.keys = self._stored.put(self._owner, names, self._mode)
            self._await_in_store(names)
            return
        for first in range(0, len(names), RECORDS_MAX):
            part = names[first : first + RECORDS_MAX]
            self.keys |= self._stored.put_free(self._owner, part, self._mode)
        missed = [name for name in names if name not in self.keys]
        if missed and self._options.wait is WaitPolicy.NOWAIT:
            raise self._refusal()
        self._locks.give_back(self._owner, missed, self._held)
        self.acquired = [name for name in self.acquired if name not in missed]

    def _await_in_store(self, names: Sequence[Name]) -> None:
        """Waits until nothing is in the way of any of its records; a record that is free once stays so."""
        changes: ChangeWait | None = None
        try:
            while True:
                snapshot = self._stored.store.snapshot()
                names = self._blocked(snapshot, names)
                if not names:
                    return
                self.has_waited = True
                self._check()
                if self._is_cycle_due():
                    self._stored.delete(())
                    self._stored.check_cycle(self._owner)
                if changes is None:
                    changes = self._stored.changes(names, snapshot)
                with self._locks.env.waiting():
                    changes.wait(self._pause())
        finally:
            if changes is not None:
                changes.close()

    def _blocked(self, snapshot: Snapshot, names: Sequence[Name]) -> list[Name]:
        blocked = []
        for name, line in self._stored.records.lines(snapshot, names).items():
            key_of = self._stored.records.key_of
            own = [record for record in line if key_of(name.table, record) == self.keys[name]]
            if not own:
                raise SessionLost("this node's session was lost while it waited for a lock")
            if self._stored.blockers(self._owner, name, own[0], line):
                blocked.append(name)
        return blocked

    def _check(self) -> None:
        self._options.canceled()
        timeout = self._options.timeout
        if timeout is not None and self._waited() >= timeout:
            raise LockNotAvailable("canceling statement due to lock timeout")

    def _waited(self) -> float:
        return self._locks.env.monotonic() - self._began

    def _pause(self) -> float:
        timeout = self._options.timeout
        if timeout is None:
            return CANCEL_SECONDS
        return max(LATE_SECONDS, min(CANCEL_SECONDS, timeout - self._waited()))

    def _is_cycle_due(self) -> bool:
        now = self._locks.env.monotonic()
        if now < self._cycle_due:
            return False
        self._cycle_pause = min(DEADLOCK_SECONDS_MAX, 2 * self._cycle_pause)
        self._cycle_due = now + self._cycle_pause
        return True

    def _refusal(self) -> LockNotAvailable:
        return LockNotAvailable(f"could not obtain lock on {self._options.what}")

    def undo(self) -> None:
        self._locks.give_back(self._owner, self.acquired, self._held)
        self._stored.delete(list(self.keys.values()))
