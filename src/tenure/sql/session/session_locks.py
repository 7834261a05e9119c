"""The locks of one session: their owner, their release by savepoints, and whether they are still held.

All locks of a session have one owner, so that a wait for a row and a wait for an advisory lock are seen in
one cycle. Advisory locks are held through the node's session in the store: if the node has lost that, the SQL
session may not go on as if it held them.

Walk: `sql.session.session_state` makes one; statements that lock ask for owners; blocks call `fence` before
they commit.
"""

from collections.abc import Callable
from typing import TypeVar

from tenure.base.errors import LocksLost, SessionLost
from tenure.cluster.locks.lock_table import LockOwner
from tenure.kv.transaction import Transaction
from tenure.sql.session.block import Block
from tenure.sql.session.services import Services

T = TypeVar("T")

Callbacks = list[Callable[[], None]]


class SessionLocks:
    def __init__(self, services: Services, *, on_close: Callbacks, on_discard: Callbacks) -> None:
        self._services = services
        self._on_close = on_close
        self._on_discard = on_discard
        self._owner: LockOwner | None = None

    @property
    def existing_owner(self) -> LockOwner | None:
        """The owner of this session's locks, if it has ever locked anything; from any thread."""
        return self._owner

    def owner(self) -> LockOwner:
        if self._owner is None:
            advisory = self._services.advisory
            owner = self._owner = LockOwner(self._services.next_owner(), self._services.store.clock.now())
            self._on_close.append(lambda: advisory.release_all(owner))
            self._on_discard.append(lambda: advisory.unlock_all(owner))
        return self._owner

    def owner_in(self, block: Block) -> LockOwner:
        """The same, about to lock something that is released when the transaction ends."""
        if not block.has_locks:
            block.has_locks = True
            block.on_end.append(self.end_transaction)
        return self.owner()

    def end_transaction(self) -> None:
        """Releases what was locked for the transaction; a second call does nothing."""
        if self._owner is not None:
            self._services.locks.release(self._owner)
            self._services.advisory.end_transaction(self._owner)

    def is_holding(self) -> bool:
        """Whether others may wait for this session, though it is in no transaction."""
        return self._owner is not None and self._services.advisory.is_holding(self._owner)

    def mark(self) -> tuple[int, int]:
        """How many rows and advisory locks the transaction has locked so far."""
        if self._owner is None:
            return 0, 0
        return self._services.locks.mark(self._owner), self._services.advisory.mark(self._owner)

    def release_since(self, mark: tuple[int, int]) -> None:
        """Releases what the transaction has locked since then."""
        if self._owner is not None:
            self._services.locks.release_since(self._owner, mark[0])
            self._services.advisory.release_since(self._owner, mark[1])

    def fence(self, txn: Transaction | None = None) -> None:
        """Raises LocksLost if this session held advisory locks that the node has lost.

        A transaction that is about to commit is bounded by them: it commits before they can be lost, or not
        at all. Row locks need no such bound: the transaction that locked a row proves by itself what it read.
        """
        if self._owner is not None:
            try:
                if txn is None:
                    self._services.advisory.check(self._owner)
                else:
                    self._services.advisory.fence(self._owner, txn)
            except SessionLost as error:
                raise LocksLost(str(error), detail=error.detail, hint=error.hint) from error

    def transact(self, run: Callable[[Transaction], T]) -> T:
        """Runs a write outside of the statement's block, within the same bounds."""

        def fenced(txn: Transaction) -> T:
            result = run(txn)
            self.fence(txn)
            return result

        return self._services.store.transact(fenced)
