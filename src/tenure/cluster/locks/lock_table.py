"""Locks among the transactions of one node: in memory, first come first served.

    name ──► holders: {owner: mode}     one exclusive, or any number of shared
             line:    waiter, waiter    granted from the front, as far as they go together

No request passes those in the queue, not even a shared one that is compatible with the holders: a stream of
readers would starve the writer before them. Only an owner that holds the lock already and wants it
exclusively goes to the front, since all others wait for that owner anyway.

Each owner waits for one name at a time. An owner that is about to wait checks whether the owners it would
wait for wait, directly or through others, for itself; if so it raises instead (40P01). Every cycle is closed
by some wait, so none arises.

Invariant (lock-order): a lock is granted in the order in which it was requested.
Invariant (I9): no cycle of waits within a node arises.

Walk: `cluster.locks.lock_waits` asks here first, then the store if there are other nodes.
"""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

from tenure.base.env import Env
from tenure.base.errors import DeadlockDetected
from tenure.base.timestamp import Timestamp


class LockMode(IntEnum):
    SHARE = 1
    EXCLUSIVE = 2


class LockOwner(NamedTuple):
    """A transaction, or a SQL session, of this node that takes locks; it waits for one lock at a time."""

    number: int
    started_at: Timestamp
    """When it began: in a cycle of waits across nodes, the youngest gives way."""


class Name(NamedTuple):
    """The name of a lockable thing."""

    table: int
    key: bytes


class DigestName(Name):
    """The name of a row whose key is too long for a name: a digest, with the key for display."""

    whole: bytes = b""


class LockEntry(NamedTuple):
    """An owner or a waiter of a lock, for tables that show locks."""

    name: Name
    owner: LockOwner
    mode: LockMode
    is_held: bool
    """False if it is waited for."""


def conflict(one: int, other: int) -> bool:
    return LockMode.EXCLUSIVE in (one, other)


class LockWaiter:
    """An owner in the queue; `is_granted` is set when it holds the lock."""

    __slots__ = ("is_granted", "mode", "name", "owner")

    def __init__(self, owner: LockOwner, name: Name, mode: LockMode, env: Env) -> None:
        self.owner = owner
        self.name = name
        self.mode = mode
        self.is_granted = env.event()


class LockTable:
    def __init__(self, env: Env) -> None:
        self._env = env
        self._lock = env.lock()
        self._lines: dict[Name, _Line] = {}
        self._waiting: dict[LockOwner, LockWaiter] = {}
        self._holds: dict[LockOwner, int] = {}
        """How many locks each owner holds: nobody can wait for an owner that holds none."""

    def try_acquire(self, owner: LockOwner, name: Name, mode: LockMode) -> bool:
        with self._lock:
            line = self._lines.get(name)
            if line is None:
                line = self._lines[name] = _Line()
            held = line.holders.get(owner)
            if held is not None and held >= mode:
                return True
            if (held is None and line.waiters) or not line.admits(owner, mode):
                return False
            self._hold(line, owner, mode)
            return True

    def _hold(self, line: "_Line", owner: LockOwner, mode: LockMode) -> None:
        if owner not in line.holders:
            self._holds[owner] = self._holds.get(owner, 0) + 1
        line.holders[owner] = mode

    def join(self, owner: LockOwner, name: Name, mode: LockMode) -> LockWaiter:
        """Joins the queue, once `try_acquire` was refused; raises DeadlockDetected if the wait would be for
        ever.
        """
        waiter = LockWaiter(owner, name, mode, self._env)
        with self._lock:
            line = self._lines.setdefault(name, _Line())
            line.join(waiter)
            self._waiting[owner] = waiter
            self._grant(line)
            if not waiter.is_granted.is_set() and self._closes_a_cycle(waiter):
                self._remove(waiter)
                raise DeadlockDetected(
                    "deadlock detected",
                    detail="Transactions of this node wait for each other's locks.",
                    hint="Try the transaction again.",
                )
        return waiter

    def leave(self, waiter: LockWaiter) -> bool:
        """Stops waiting; False if the lock was granted meanwhile, and so is held."""
        with self._lock:
            if waiter.is_granted.is_set():
                return False
            self._remove(waiter)
            return True

    def _remove(self, waiter: LockWaiter) -> None:
        line = self._lines[waiter.name]
        line.waiters.remove(waiter)
        del self._waiting[waiter.owner]
        self._grant(line)

    def release(self, owner: LockOwner, names: Iterable[Name]) -> None:
        with self._lock:
            for name in names:
                line = self._lines.get(name)
                if line is not None and line.holders.pop(owner, None) is not None:
                    self._holds[owner] -= 1
                    self._grant(line)
                    if not line.holders:
                        del self._lines[name]
            if not self._holds.get(owner):
                self._holds.pop(owner, None)

    def lower(self, owner: LockOwner, name: Name, mode: LockMode) -> None:
        """Lowers a held lock to a weaker mode."""
        with self._lock:
            line = self._lines[name]
            line.holders[owner] = mode
            self._grant(line)

    def _grant(self, line: "_Line") -> None:
        while line.waiters and line.admits(line.waiters[0].owner, line.waiters[0].mode):
            waiter = line.waiters.pop(0)
            self._hold(line, waiter.owner, waiter.mode)
            del self._waiting[waiter.owner]
            waiter.is_granted.set()

    def _closes_a_cycle(self, waiter: LockWaiter) -> bool:
        if waiter.owner not in self._holds:
            return False
        ahead, visited = list(self._awaited(waiter)), set[LockOwner]()
        while ahead:
            owner = ahead.pop()
            if owner == waiter.owner:
                return True
            if owner not in visited and owner in self._waiting:
                ahead += self._awaited(self._waiting[owner])
            visited.add(owner)
        return False

    def _awaited(self, waiter: LockWaiter) -> Iterator[LockOwner]:
        """The owners that a waiter waits for: those that hold an incompatible mode, or will before it
        does.
        """
        line = self._lines[waiter.name]
        for owner, mode in line.holders.items():
            if owner != waiter.owner and conflict(mode, waiter.mode):
                yield owner
        for earlier in line.waiters:
            if earlier is waiter:
                return
            if conflict(earlier.mode, waiter.mode):
                yield earlier.owner

    def awaited(self, waiter: LockWaiter) -> list[LockOwner]:
        """The owners that a waiter waits for now; none if the lock has been granted."""
        with self._lock:
            return [] if waiter.is_granted.is_set() else list(self._awaited(waiter))

    def waits(self) -> dict[LockOwner, list[LockOwner]]:
        """By each owner that waits, the owners of this node that it waits for."""
        with self._lock:
            return {owner: list(self._awaited(waiter)) for owner, waiter in self._waiting.items()}

    def entries(self) -> "list[LockEntry]":
        """The holders and waiters of all locks."""
        with self._lock:
            return [
                LockEntry(name, owner, mode, is_held)
                for name, line in self._lines.items()
                for is_held, modes in (
                    (True, list(line.holders.items())),
                    (False, [(each.owner, each.mode) for each in line.waiters]),
                )
                for owner, mode in modes
            ]

    def is_free(self) -> bool:
        """Whether no lock is held or waited for."""
        return not self._lines


class _Line:
    __slots__ = ("holders", "waiters")

    def __init__(self) -> None:
        self.holders: dict[LockOwner, LockMode] = {}
        self.waiters: list[LockWaiter] = []

    def admits(self, owner: LockOwner, mode: LockMode) -> bool:
        return not any(conflict(held, mode) for other, held in self.holders.items() if other != owner)

    def join(self, waiter: LockWaiter) -> None:
        if waiter.owner not in self.holders:
            self.waiters.append(waiter)
            return
        upgrades = sum(1 for each in self.waiters if each.owner in self.holders)
        self.waiters.insert(upgrades, waiter)
