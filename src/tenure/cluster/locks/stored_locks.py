"""A node's places in the queues of the store: it takes places, looks who is before it, and leaves them.

    put ─► a place at the end of the queue     put_free ─► a place where nobody is in the way
    blockers ─► who is before it, except the dead   check_cycle ─► whether it may wait on
    delete ─► gives its places up; a record that cannot be deleted now is deleted later

Its transactions are small, and never the user's. A record whose commit was interrupted may have landed: it is
deleted like one that is released.

Invariant (lock-death): the locks of a dead session are free.

Walk: `cluster.locks.lock_waits` calls it, once an owner has its locks in this node's memory.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import count

from tenure.base.errors import DeadlockDetected, RetryError, TenureError
from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.cluster.locks.lock_records import (
    LockHolder,
    LockRecord,
    LockRecords,
    in_the_way,
    must_give_way,
    waits_between,
)
from tenure.cluster.locks.lock_table import LockMode, LockOwner, Name
from tenure.cluster.sessions.deaths import Deaths
from tenure.cluster.sessions.liveness import NodeSession
from tenure.cluster.sessions.session_records import SessionId
from tenure.kv.follower import ChangeWait
from tenure.kv.keys import ADVISORY_LOCKS
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction

SPACING_SECONDS = 0.002
"""The time between two looks at a queue while others commit: less than a commit takes."""

RECORDS_MAX = 10_000
"""Records per transaction, far below what one commit may write."""

_log = logging.getLogger(__name__)


class StoredLocks:
    def __init__(self, store: Store, deaths: Deaths, session: Callable[[], NodeSession]) -> None:
        self.store = store
        self.records = LockRecords(store.keyspace)
        self._deaths = deaths
        self._session = session
        self._lock = store.env.lock()
        self._tickets = count(1)
        self._kept: dict[tuple[LockOwner, Name], list[bytes]] = {}
        """The records by which locks are held."""
        self._left: list[bytes] = []
        """Records that could not be deleted yet."""
        self._expiries: dict[SessionId, Timestamp] = {}

    def keep(self, owner: LockOwner, keys: Mapping[Name, bytes]) -> None:
        """Records that the owner now holds the locks by these records."""
        with self._lock:
            for name, key in keys.items():
                self._kept.setdefault((owner, name), []).append(key)

    def take(self, owner: LockOwner, names: Sequence[Name]) -> list[bytes]:
        """Removes and returns the records by which it has held these names, for deletion."""
        if not self._kept:
            return []
        with self._lock:
            return [key for name in names for key in self._kept.pop((owner, name), ())]

    def kept(self, owner: LockOwner, name: Name) -> Sequence[bytes]:
        return self._kept.get((owner, name), ())

    # ── places in the queue ─────────────────────────────────────────────────────────────────────

    def put(self, owner: LockOwner, names: Sequence[Name], mode: LockMode) -> dict[Name, bytes]:
        """Takes a place in the queue of each name by blind writes, which conflict with no others."""
        keys: dict[Name, bytes] = {}
        try:
            for first in range(0, len(names), RECORDS_MAX):
                part = names[first : first + RECORDS_MAX]
                keys |= self._transact(lambda txn, part=part: self._put(txn, owner, part, mode))  # type: ignore[misc]
        except BaseException as error:
            self._leave(list(keys.values()), error)
            raise
        return keys

    def put_free(self, owner: LockOwner, names: Sequence[Name], mode: LockMode) -> dict[Name, bytes]:
        """Takes places only where nobody is in the way."""
        try:
            return self._transact(lambda txn: self._put_free(txn, owner, names, mode))
        except RetryError:
            return {}  # the queue changes all the time

    def _transact(self, put: Callable[[Transaction], dict[Name, bytes]]) -> dict[Name, bytes]:
        """Commits records; those that may have landed with an unknown outcome are left for deletion."""
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
        self, txn: Transaction, owner: LockOwner, names: Sequence[Name], mode: LockMode
    ) -> dict[Name, bytes]:
        lines = self.records.lines(txn, names)
        free = [
            name
            for name in names
            if not self.blockers(owner, name, self._asking(name, owner, mode), lines[name])
        ]
        return self._put(txn, owner, free, mode)

    def _asking(self, name: Name, owner: LockOwner, mode: LockMode) -> LockRecord:
        """A hypothetical record at the end of the queue."""
        at, ticket = self.store.clock.now(), next(self._tickets)
        return LockRecord(name.key, *self._session().id, ticket, owner.number, mode, owner.started_at, at)

    def _put(
        self, txn: Transaction, owner: LockOwner, names: Sequence[Name], mode: LockMode
    ) -> dict[Name, bytes]:
        session = self._session()
        if any(name.table == ADVISORY_LOCKS for name in names):
            session.observe(txn)  # the lanes of a session just deleted may still be open
        return {
            name: self.records.put(txn, name, session.id, next(self._tickets), owner, mode) for name in names
        }

    def put_notice(self, owner: LockOwner, name: Name, ticket: int, awaits: Sequence[LockOwner]) -> bytes:
        """Writes for which owners of this node an owner waits; returns the notice's key."""
        numbers = tuple(each.number for each in awaits)

        def put(txn: Transaction) -> dict[Name, bytes]:
            session = self._session().id
            return {
                name: self.records.put(txn, name, session, ticket, owner, LockMode.EXCLUSIVE, awaits=numbers)
            }

        return self._transact(put)[name]

    def draw_ticket(self) -> int:
        return next(self._tickets)

    def blockers(
        self, owner: LockOwner, name: Name, record: LockRecord, line: Sequence[LockRecord]
    ) -> list[LockRecord]:
        """The records of other nodes that are in a record's way; those of the dead are deleted."""
        kept = self.kept(owner, name)
        firm = [each for each in line if self.records.key_of(name.table, each) in kept] if kept else []
        others = in_the_way(record, line, firm)
        dead = [each for each in others if self.is_gone(each.session)]
        if not dead:
            return others
        self.delete([self.records.key_of(name.table, each) for each in dead])
        return [each for each in others if each not in dead]

    def is_gone(self, session: SessionId) -> bool:
        """Whether it was found absent; an expired one is deleted. A live one is looked at again at its
        expiry.
        """
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

    def waits(self) -> dict[LockHolder, set[LockHolder]]:
        """Who waits for whom by the records, those of the dead left out."""
        return waits_between(self._alive())

    def _alive(self) -> list[list[LockRecord]]:
        lines = self.records.all(self.store.snapshot())
        return [[each for each in line if not self._deaths.is_dead(each.session)] for line in lines.values()]

    def check_cycle(self, owner: LockOwner) -> None:
        if must_give_way(LockHolder(self._session().id, owner.number), self._alive()):
            raise DeadlockDetected(
                "deadlock detected",
                detail="Transactions of several nodes wait for each other's locks.",
                hint="This one is the youngest of them; try it again.",
            )

    # ── deleting ───────────────────────────────────────────────────────────────────────────────

    def delete(self, keys: Sequence[bytes]) -> None:
        """Deletes records, and those left from before, without waiting for the commit."""
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

    def delete_now(self, keys: Sequence[bytes]) -> None:
        """Deletes them before it returns, or later if the store is away."""
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

    def changes(self, names: Sequence[Name], snapshot: Snapshot) -> ChangeWait:
        """Follows changes in the queues of these names since a snapshot of them."""
        spans = [self.records.span(name) for name in names]
        return ChangeWait(self.store, spans, since_at=snapshot.at, spacing_seconds=SPACING_SECONDS)


def _delete_all(txn: Transaction, keys: Sequence[bytes]) -> None:
    for key in keys:
        txn.delete(key)
