"""Advisory locks: mutual exclusion that applications request by number (pg_advisory_lock and its variants).

    owner (a SQL session) ──► key ──► exclusive: n for the session, m for the transaction
                                      shared:    n for the session, m for the transaction

Unlike row locks these guarantee exclusion, across nodes. So they are always records in the store, each
written in a transaction that observes this node's session, and free only when deleted or when that session
was found absent. A SQL session may take a lock several times. It must release a session-level lock as often;
a transaction-level lock ends with the transaction.

A node that loses its session loses these locks, and others may get them from then on. So every write of their
owner goes through `fence`: it commits below the expiration of the sessions under which the locks were
acquired, or not at all. A statement that is retried under the node's next session meets the same fence.
`check` says before each statement whether going on is of any use.

Simplified: an owner that holds a lock in both modes releases both together, when neither is held any more.

Invariant (lock-exclusion): no two owners hold a lock at once, unless both share it.
Invariant (lock-fence): an owner's write commits before any other owner can have got a lock that it believes
to hold.

Walk: SQL's functions call `acquire` and `unlock`; its session `end_transaction`, `release_since`,
`release_all`, `check` and `fence`; `cluster.locks.lock_waits` waits.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple

from tenure.base.errors import SessionLost
from tenure.cluster.locks.lock_table import LockMode, LockOwner, Name
from tenure.cluster.locks.lock_waits import LockOptions, LockWaits, WaitPolicy
from tenure.cluster.sessions.liveness import NodeSession
from tenure.kv.encoding import encode
from tenure.kv.keys import ADVISORY_LOCKS
from tenure.kv.transaction import Transaction


class AdvisoryLevel(Enum):
    SESSION = "session"
    TRANSACTION = "transaction"


class AdvisoryKey(NamedTuple):
    """The key that an application locks: one number of eight bytes, or two of four, in a database."""

    database: int
    numbers: tuple[int] | tuple[int, int]

    def name(self) -> Name:
        return Name(ADVISORY_LOCKS, encode((self.database, len(self.numbers), *self.numbers)))


class AdvisoryLock(NamedTuple):
    """One way in which a lock is held, for tables that show locks."""

    owner: LockOwner
    key: AdvisoryKey
    mode: LockMode
    times: int


class AdvisoryLocks:
    def __init__(self, waits: LockWaits) -> None:
        self._waits = waits
        self._owners: dict[LockOwner, _OwnerLocks] = {}

    def acquire(
        self,
        owner: LockOwner,
        key: AdvisoryKey,
        *,
        level: AdvisoryLevel = AdvisoryLevel.SESSION,
        mode: LockMode = LockMode.EXCLUSIVE,
        wait: WaitPolicy = WaitPolicy.WAIT,
        timeout: float | None = None,
        canceled: Callable[[], None] = lambda: None,
    ) -> bool:
        """Acquires a lock, again if it is held already; False without waiting if another owner has it.

        Raises LockNotAvailable (55P03) after `timeout` seconds, DeadlockDetected (40P01) if waiting would not
        end; `canceled` is called while it waits, and raises to end the wait.
        """
        owned = self._owners.setdefault(owner, _OwnerLocks())
        held = owned.mode(key)
        if held is None or held < mode:
            session = self._waits.session()
            options = LockOptions(
                WaitPolicy.WAIT if wait is WaitPolicy.WAIT else WaitPolicy.SKIP, timeout, canceled
            )
            name = key.name()
            got, _ = self._waits.acquire(owner, [name], mode, options, {} if held is None else {name: held})
            if not got:
                return False
            owned.sessions[session] = None
        owned.add(key, mode, level)
        return True

    def unlock(self, owner: LockOwner, key: AdvisoryKey, *, mode: LockMode = LockMode.EXCLUSIVE) -> bool:
        """Releases one lock of the session; False if it has none of this mode."""
        owned = self._owners.get(owner)
        if owned is None or not owned.for_session.get((key, mode)):
            return False
        owned.take(key, mode, AdvisoryLevel.SESSION)
        self._release(owner, owned, [key])
        return True

    def is_holding(self, owner: LockOwner) -> bool:
        owned = self._owners.get(owner)
        return owned is not None and bool(owned.times)

    def unlock_all(self, owner: LockOwner) -> None:
        """Releases all locks of the session; those of its transaction stay."""
        owned = self._owners.get(owner)
        if owned is not None:
            locked = [each for each, times in owned.for_session.items() for _ in range(times)]
            for each in locked:
                owned.take(*each, AdvisoryLevel.SESSION)
            self._release(owner, owned, [key for key, _ in locked])

    def mark(self, owner: LockOwner) -> int:
        """Marks the transaction's locks so far, for `release_since`."""
        owned = self._owners.get(owner)
        return 0 if owned is None else len(owned.for_transaction)

    def release_since(self, owner: LockOwner, mark: int) -> None:
        """Releases the locks that the transaction took after a mark: it goes back to a savepoint."""
        owned = self._owners.get(owner)
        if owned is not None:
            locked = owned.for_transaction[mark:]
            for each in reversed(locked):
                owned.take(*each, AdvisoryLevel.TRANSACTION)
            self._release(owner, owned, [key for key, _ in locked])

    def end_transaction(self, owner: LockOwner) -> None:
        """Releases the transaction's locks, once it is over."""
        self.release_since(owner, 0)

    def release_all(self, owner: LockOwner) -> None:
        """Releases everything: the SQL session has ended."""
        owned = self._owners.pop(owner, None)
        if owned is not None:
            self._waits.release(owner, [key.name() for key in {key for key, _ in owned.times}])

    def _release(self, owner: LockOwner, owned: "_OwnerLocks", keys: Sequence[AdvisoryKey]) -> None:
        gone = [key.name() for key in dict.fromkeys(keys) if owned.mode(key) is None]
        if gone:
            self._waits.release(owner, gone, at_once=True)
        if not owned.times:
            self._owners.pop(owner, None)

    def check(self, owner: LockOwner) -> None:
        """Raises SessionLost if locks of this SQL session were lost with their node session."""
        owned = self._owners.get(owner)
        if owned is not None and any(session.done.is_set() for session in owned.sessions):
            raise SessionLost(
                "terminating connection because its advisory locks were lost",
                detail="This node lost touch with the store for longer than liveness.ttl.",
                hint="Connect again and take the locks anew.",
            )

    def fence(self, owner: LockOwner, txn: Transaction) -> None:
        """Lets a transaction commit only while the locks are held; called right before its commit.

        Their records are deleted, at the earliest, in a transaction that commits after the expiration of
        their session. So a commit below the expiration comes before everything that others do with the locks.
        """
        self.check(owner)
        owned = self._owners.get(owner)
        for session in () if owned is None else tuple(owned.sessions):
            expires_at, deadline_at = session.expires_at, txn.deadline_at
            txn.deadline_at = expires_at if deadline_at is None else min(deadline_at, expires_at)

    def list(self) -> list[AdvisoryLock]:
        """The locks that are held on this node."""
        return [
            AdvisoryLock(owner, key, mode, times)
            for owner, owned in list(self._owners.items())
            for (key, mode), times in list(owned.times.items())
        ]


class _OwnerLocks:
    """The locks of one SQL session; used by its own thread alone."""

    def __init__(self) -> None:
        self.times: dict[tuple[AdvisoryKey, LockMode], int] = {}
        self.for_session: dict[tuple[AdvisoryKey, LockMode], int] = {}
        """How many of `times` are the session's; the others are the transaction's."""
        self.for_transaction: list[tuple[AdvisoryKey, LockMode]] = []
        self.sessions: dict[NodeSession, None] = {}
        """The node sessions under which the locks were acquired."""

    def mode(self, key: AdvisoryKey) -> LockMode | None:
        """The strongest mode in which it is held."""
        if (key, LockMode.EXCLUSIVE) in self.times:
            return LockMode.EXCLUSIVE
        return LockMode.SHARE if (key, LockMode.SHARE) in self.times else None

    def add(self, key: AdvisoryKey, mode: LockMode, level: AdvisoryLevel) -> None:
        _count(self.times, (key, mode), 1)
        if level is AdvisoryLevel.SESSION:
            _count(self.for_session, (key, mode), 1)
        else:
            self.for_transaction.append((key, mode))

    def take(self, key: AdvisoryKey, mode: LockMode, level: AdvisoryLevel) -> None:
        """Releases one lock; of the transaction's, the last."""
        _count(self.times, (key, mode), -1)
        if level is AdvisoryLevel.SESSION:
            _count(self.for_session, (key, mode), -1)
        else:
            self.for_transaction.pop()


def _count(
    times: dict[tuple[AdvisoryKey, LockMode], int], lock: tuple[AdvisoryKey, LockMode], more: int
) -> None:
    times[lock] = times.get(lock, 0) + more
    if not times[lock]:
        del times[lock]
