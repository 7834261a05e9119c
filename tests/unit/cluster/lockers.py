"""Nodes that lock, over an engine that several of them share, with real threads that wait."""

import threading
from collections.abc import Callable
from itertools import count
from typing import Any

from tenure.base.env import Env
from tenure.base.errors import TenureError
from tenure.base.settings import Settings
from tenure.base.timestamp import Timestamp
from tenure.cluster.locks.advisory_locks import AdvisoryLocks
from tenure.cluster.locks.lock_table import LockOwner
from tenure.cluster.locks.lock_waits import LockWaits
from tenure.cluster.locks.row_locks import RowLocks
from tenure.storage.engine import Engine
from tests.unit.cluster.members import Member
from tests.unit.kv.waiting import PATIENCE_SECONDS, Call

_starts = count(1)


class Canceled(TenureError):
    sqlstate = "57014"


class Locker(Member):
    """A node with a session; `is_alone` says whether it spares itself the records."""

    def __init__(
        self, engine: Engine, env: Env, *, is_alone: bool = False, settings: Settings | None = None
    ) -> None:
        super().__init__(engine, env, settings=settings)
        self.start()
        self.is_alone = is_alone
        self.waits = LockWaits(self.store, self.deaths, self.liveness.session, lambda: self.is_alone)
        self.rows = RowLocks(self.waits)
        self.advisory = AdvisoryLocks(self.waits)
        self._numbers = count(1)

    def owner(self, started_at: Timestamp = 0) -> LockOwner:
        """A new transaction, younger than all before."""
        return LockOwner(next(self._numbers), started_at or next(_starts))

    def records(self) -> int:
        """How many locks are recorded, held or waited for."""
        return sum(map(len, self.waits.stored.records.all(self.store.snapshot()).values()))

    def settle(self) -> None:
        """Returns when what was submitted before is done: commits are made in the order they came."""
        self.waits.release(self.owner(), [])
        self.store.transact(lambda txn: txn.put(self.store.keyspace.key(99, [0]), b""))


class Ask(Call):
    """Somebody who asks for a lock in a thread of his own, and may be seen to wait."""

    def __init__(self, ask: Callable[..., Any], *args: Any, **named: Any) -> None:
        self._waits = threading.Event()
        self._is_canceled = threading.Event()
        super().__init__(lambda: ask(*args, canceled=self._check, **named))

    def _check(self) -> None:
        self._waits.set()
        if self._is_canceled.is_set():
            raise Canceled("canceling statement due to user request")

    def waits(self) -> "Ask":
        assert self._waits.wait(PATIENCE_SECONDS), "it does not wait"
        return self

    def cancel(self) -> None:
        self._is_canceled.set()
