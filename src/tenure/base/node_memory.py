"""The accounts of one node: limits by its settings, accounts of users and sessions while they exist.

A limit that is not set follows the machine: the node may use half of its memory (or of its container's), a
user half of that, a session a quarter. So one user alone cannot exhaust the node.

Walk: `composition.cluster_layer` calls `node_memory` for the one account of the process;
`sql.session.session_memory` opens accounts below it for sessions and statements; a loop calls `step`.
"""

import gc
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

from tenure.base.env import Env
from tenure.base.machine_memory import machine_bytes
from tenure.base.memory import NODE_SHARE, TRIM_BYTES, Account, Limit, ResidentMemory
from tenure.base.settings import (
    COLUMNS_MEMORY,
    DUCKDB_MEMORY,
    NODE_MEMORY,
    QUERY_MEMORY,
    SESSION_MEMORY,
    USER_MEMORY,
    Settings,
)

USER_SHARE, SESSION_SHARE = 2, 4
"""The fractions of the node's memory for one user and one session."""

BULK_SHARE, TASK_SHARE = 4, 8
"""The fractions for all bulk work, and for one task of it."""

DUCKDB_SHARE, COLUMNS_SHARE = 3, 8
"""The most for DuckDB's queries, and for tables as columns, also if their settings say more."""

TASK_BYTES_MAX = 512 << 20
"""Larger tasks are not faster."""

LEAST_BYTES = 64 << 20
"""A lower limit would keep everybody out, including the operator who has to raise it."""

TRIM_SECONDS = 1.0

LEFT_BYTES_MAX = 64 << 20
"""When the process has grown by so much that no account holds, garbage is collected."""

PAUSE_STEPS, PAUSE_STEPS_MAX = 2, 64
"""Steps before the first collection after much was given back, and before the last."""

QUIET_BYTES_MAX = 64 << 20
"""While users hold more, no garbage is collected: a collection stops all threads, for longer the more objects
there are. With so much it takes some 50 ms at most.
"""


class MemoryLimits:
    """The limits of the settings; where a setting is 0, the limit that follows from the machine."""

    def __init__(self, settings: Callable[[], Settings], machine: Callable[[], int] = machine_bytes) -> None:
        self._settings = settings
        self._machine = machine

    def node(self) -> int:
        return max(LEAST_BYTES, self._settings()[NODE_MEMORY] or self._machine() // NODE_SHARE)

    def user(self) -> int:
        return self._settings()[USER_MEMORY] or self.node() // USER_SHARE

    def session(self) -> int:
        return self._settings()[SESSION_MEMORY] or self.node() // SESSION_SHARE

    def statement(self) -> int:
        return self._settings()[QUERY_MEMORY]

    def bulk_work(self) -> int:
        return self.node() // BULK_SHARE

    def duckdb(self) -> int:
        return min(self._settings()[DUCKDB_MEMORY], self.node() // DUCKDB_SHARE)

    def columns(self) -> int:
        return min(self._settings()[COLUMNS_MEMORY], self.node() // COLUMNS_SHARE)

    def task(self) -> int:
        return min(TASK_BYTES_MAX, self.node() // TASK_SHARE)


class Turn:
    """A right that one caller has at a time, without waiting: a caller that does not get it tries again
    later.
    """

    def __init__(self, lock: AbstractContextManager[object]) -> None:
        self._lock = lock
        self._is_taken = False

    def take(self) -> bool:
        with self._lock:
            is_free = not self._is_taken
            self._is_taken = True
        return is_free

    def give(self) -> None:
        self._is_taken = False


class Gauge(NamedTuple):
    """Memory that a library or a cache holds within a limit of its own: it is measured, not asked for."""

    account: Account
    read: Callable[[], int]

    def measure(self) -> None:
        more = self.read() - self.account.held_bytes
        if more > 0:
            self.account.take(more)
        else:
            self.account.release(-more)


class Leftovers:
    """What is resident and charged to nobody: decides when a full collection of garbage is worth its time.

    Closed sessions are reference cycles, and Python keeps freed tuples in lists. After many clients at once
    these lie scattered over Python's arenas, each of which stays resident as a whole (1 MiB) for one object.
    A collection frees both. It may come before the last clients have gone, so it is tried again, after pauses
    that double; what is left after the longest one is the node's own.
    """

    def __init__(self) -> None:
        self._own_bytes: int | None = None
        self._pause_steps = PAUSE_STEPS
        self._steps = 0

    def should_collect(self, left_bytes: int, *, was_freed: bool) -> bool:
        """Called once a step; `was_freed` says whether accounts gave back much since the last one."""
        if self._own_bytes is None or left_bytes < self._own_bytes:
            self._own_bytes = left_bytes
        if was_freed:
            self._pause_steps = PAUSE_STEPS
        self._steps += 1
        if left_bytes - self._own_bytes <= LEFT_BYTES_MAX or self._steps < self._pause_steps:
            return False
        if self._pause_steps >= PAUSE_STEPS_MAX:
            self._own_bytes = left_bytes
        self._steps, self._pause_steps = 0, 2 * self._pause_steps
        return True


class NodeMemory:
    def __init__(
        self,
        limits: MemoryLimits,
        lock: AbstractContextManager[object],
        process: ResidentMemory,
        collect: Callable[[], object] = gc.collect,
    ) -> None:
        self.limits = limits
        self._lock = lock
        self.process = process
        self.node = Account(
            "the node", limit=limits.node, setting=NODE_MEMORY.name, lock=lock, process=process
        )
        self.bulk_work = Account("bulk work", self.node, limit=limits.bulk_work, setting=NODE_MEMORY.name)
        self.planning = Turn(lock)
        """The turn of statements that plan a very long text."""
        self.gauges: list[Gauge] = []
        self._collect = collect
        self._leftovers = Leftovers()
        self._users: dict[str, tuple[Account, int]] = {}
        """The accounts of users, with the number of their sessions."""

    def open_session(self, user: str, number: int) -> Account:
        with self._lock:
            account, sessions = self._users.get(user, (None, 0))
            if account is None:
                name = f'user "{user}"'
                account = Account(name, self.node, limit=self.limits.user, setting=USER_MEMORY.name)
            self._users[user] = account, sessions + 1
        name = f"session {number}"
        return Account(name, account, limit=self.limits.session, setting=SESSION_MEMORY.name)

    def close_session(self, user: str, account: Account) -> None:
        if account.is_closed:
            return
        account.close()
        with self._lock:
            of_user, sessions = self._users.pop(user)
            if sessions > 1:
                self._users[user] = of_user, sessions - 1

    def open_statement(self, session: Account) -> Account:
        return Account("the statement", session, limit=self.limits.statement, setting=QUERY_MEMORY.name)

    def lone_statement(self) -> Account:
        """Has a statement's limit and no parent account."""
        return Account("the statement", limit=self.limits.statement, setting=QUERY_MEMORY.name)

    def users(self) -> dict[str, Account]:
        with self._lock:
            return {name: account for name, (account, _) in self._users.items()}

    def add_gauge(self, name: str, read: Callable[[], int], *, limit: Limit, setting: str) -> None:
        """Charges the node with what `read` tells, as of the last step."""
        self.gauges.append(Gauge(Account(name, self.node, limit=limit, setting=setting), read))

    def step(self) -> float:
        """Measures what was not asked for, and returns what was freed to the system: one step of a loop."""
        for gauge in self.gauges:
            gauge.measure()
        was_freed = self.process.freed_bytes > TRIM_BYTES
        if was_freed:
            self.process.trim()
        if sum(account.held_bytes for account in self.users().values()) <= QUIET_BYTES_MAX:
            left_bytes = self.process.now_bytes() - self.node.held_bytes
            if self._leftovers.should_collect(left_bytes, was_freed=was_freed):
                self._collect()
                self.process.trim()
        return TRIM_SECONDS


def node_memory(env: Env, settings: Callable[[], Settings]) -> NodeMemory:
    return NodeMemory(MemoryLimits(settings), env.reentrant_lock(), ResidentMemory())
