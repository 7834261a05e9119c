"""Tables that are held for a second try, in the world of locks.

    sum_up      scans the table of rows that others increment, thinks, and writes what it has found. What it
                has read must be unchanged at its commit. Its first try does not hold the table, others do.
                Some fall idle, which is no reason for writers to wait for longer
    await_end   what a writer does first: it waits as long as the table is held

While all is well, a try that holds the table seldom loses. Whatever happens, no writer waits for a hold for
longer than HOLD_SECONDS.

Walk: `lock_world` calls both.
"""

from collections import Counter
from typing import Protocol

from tenure.base.errors import RetryError
from tenure.cluster.locks.lock_table import LockOwner
from tenure.cluster.locks.lock_waits import LockOptions
from tenure.cluster.locks.row_locks import RowLocks
from tenure.cluster.locks.table_holds import HOLD_SECONDS
from tenure.kv.keys import USER_TABLES
from tenure.kv.store import Store
from tests.simulation.hub import Hub
from tests.simulation.knobs import Knobs
from tests.simulation.tape import Tape

TRIES = 4
IDLE_CHANCE, IDLE_SECONDS = 0.2, HOLD_SECONDS + 20.0
LATE_SECONDS = 12.0
"""Faults hold up whoever waits by some seconds: its node is stopped, its store is away."""


class SeenOutcome(Protocol):
    @property
    def violations(self) -> list[str]: ...
    @property
    def seen(self) -> Counter[str]: ...


class HoldingCluster(Protocol):
    @property
    def outcome(self) -> SeenOutcome: ...
    @property
    def tape(self) -> Tape: ...
    @property
    def hub(self) -> Hub: ...
    @property
    def knobs(self) -> Knobs: ...


class HoldShapes:
    """Of one client."""

    def __init__(self, name: str, rows: RowLocks, store: Store, cluster: HoldingCluster) -> None:
        self._name = name
        self._rows = rows
        self._store = store
        self._cluster = cluster

    def sum_up(self, owner: LockOwner) -> None:
        tape = self._cluster.tape
        for number in range(TRIES):
            is_idle = number > 0 and self._has_time() and tape.chance(f"{self._name}.idle", IDLE_CHANCE)
            how = "idle" if is_idle else "held" if number else "at once"
            try:
                self._try(owner, is_holding=number > 0, is_idle=is_idle)
            except RetryError:
                self._cluster.outcome.seen[f"sum lost, {how}"] += 1
            else:
                self._cluster.outcome.seen[f"sum, {how}"] += 1
                return

    def _has_time(self) -> bool:
        """Whether one that falls idle now wakes up before the run is over."""
        return self._cluster.hub.t < self._cluster.knobs.faults_end - IDLE_SECONDS

    def _try(self, owner: LockOwner, *, is_holding: bool, is_idle: bool) -> None:
        tables, keyspace, tape = self._rows.tables, self._store.keyspace, self._cluster.tape
        txn = self._store.begin()
        try:
            if is_holding:
                tables.hold(owner, [USER_TABLES], LockOptions())
            found = sum(int(value) for _, value in txn.scan(keyspace.table_span(USER_TABLES)))
            self._store.env.sleep(
                IDLE_SECONDS if is_idle else tape.between(f"{self._name}.summing", 0.0, 0.3)
            )
            txn.put(keyspace.key(USER_TABLES + 1, [0]), b"%d" % found)
            txn.commit()
        finally:
            txn.rollback()
            tables.release([USER_TABLES])
            self._rows.release(owner)

    def await_end(self, owner: LockOwner) -> None:
        env, outcome = self._store.env, self._cluster.outcome
        since = env.monotonic()
        outcome.seen["writer meets a hold"] += self._rows.tables.left_seconds(USER_TABLES) > 0
        self._rows.tables.await_end(owner, USER_TABLES, LockOptions())
        waited = env.monotonic() - since
        if waited > HOLD_SECONDS + LATE_SECONDS:
            outcome.violations.append(f"{self._name} waited for a hold for {waited:.1f} s")
