"""The accounts of one node: limits by its settings, accounts of users and sessions while they exist.

A limit that is not set follows the machine: the node may use half of its memory (or of its container's), a
user half of that, a session a quarter. So one user alone cannot exhaust the node.

Walk: `composition.cluster_layer` calls `node_memory` for the one account of the process;
`sql.session.session_memory` opens accounts below it for sessions and statements; a loop calls `step`.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager

from tenure.base.env import Env
from tenure.base.machine_memory import machine_bytes
from tenure.base.memory import NODE_SHARE, TRIM_BYTES, Account, ResidentMemory
from tenure.base.settings import NODE_MEMORY, QUERY_MEMORY, SESSION_MEMORY, USER_MEMORY, Settings

USER_SHARE, SESSION_SHARE = 2, 4
"""The fractions of the node's memory for one user and one session."""

LEAST_BYTES = 64 << 20
"""A lower limit would keep everybody out, including the operator who has to raise it."""

TRIM_SECONDS = 1.0


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


class NodeMemory:
    def __init__(
        self, limits: MemoryLimits, lock: AbstractContextManager[object], process: ResidentMemory
    ) -> None:
        self._limits = limits
        self._lock = lock
        self.process = process
        self.node = Account(
            "the node", limit=limits.node, setting=NODE_MEMORY.name, lock=lock, process=process
        )
        self.planning = Turn(lock)
        """The turn of statements that plan a very long text."""
        self._users: dict[str, tuple[Account, int]] = {}
        """The accounts of users, with the number of their sessions."""

    def open_session(self, user: str, number: int) -> Account:
        with self._lock:
            account, sessions = self._users.get(user, (None, 0))
            if account is None:
                name = f'user "{user}"'
                account = Account(name, self.node, limit=self._limits.user, setting=USER_MEMORY.name)
            self._users[user] = account, sessions + 1
        name = f"session {number}"
        return Account(name, account, limit=self._limits.session, setting=SESSION_MEMORY.name)

    def close_session(self, user: str, account: Account) -> None:
        if account.is_closed:
            return
        account.close()
        with self._lock:
            of_user, sessions = self._users.pop(user)
            if sessions > 1:
                self._users[user] = of_user, sessions - 1

    def open_statement(self, session: Account) -> Account:
        return Account("the statement", session, limit=self._limits.statement, setting=QUERY_MEMORY.name)

    def lone_statement(self) -> Account:
        """Has a statement's limit and no parent account."""
        return Account("the statement", limit=self._limits.statement, setting=QUERY_MEMORY.name)

    def users(self) -> dict[str, Account]:
        with self._lock:
            return {name: account for name, (account, _) in self._users.items()}

    def step(self) -> float:
        """Returns free pages to the system: one step of a loop."""
        if self.process.freed_bytes > TRIM_BYTES:
            self.process.trim()
        return TRIM_SECONDS


def node_memory(env: Env, settings: Callable[[], Settings]) -> NodeMemory:
    return NodeMemory(MemoryLimits(settings), env.reentrant_lock(), ResidentMemory())
