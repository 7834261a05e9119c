"""Locks among the transactions of one node: in memory, first come first served.

    name ──► holders: {owner: mode}     one exclusive, or any number of shared
             line:    waiter, waiter    granted from the front, as far as they go together

Nobody passes those who stand in line, not even a shared request that would go with the holders: a
stream of readers would starve the writer before them. Only who holds a lock already and wants it
exclusively stands at the front, since everybody else waits for him anyway.

Each owner waits for one name at a time. Whoever is about to wait looks whether those it would wait for
wait, by whatever chain, for itself; if so it does not begin to (40P01). Every cycle has somebody who
closes it, so none comes to be.

Invariant (lock-order): a lock is granted in the order in which it was asked for.
Invariant (I9): no cycle of waits within a node comes to be.

Walk: `cluster.locks.lock_waits` asks here first, then the store where other nodes are about.
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
    """One transaction, or one SQL session, of this node that locks; it waits for one thing at a time."""

    number: int
    started_at: Timestamp
    """Of several who wait for each other, across nodes, the youngest gives way."""


class Name(NamedTuple):
    """What is locked."""

    table: int
    key: bytes


class DigestName(Name):
    """The name of a row whose key is too long to be one: a digest, beside the key for whoever shows it."""

    whole: bytes = b""


class Standing(NamedTuple):
    """An owner or a waiter of a lock, for tables that show locks."""

    name: Name
    owner: LockOwner
    mode: LockMode
    is_held: bool
    """Else it is waited for."""


def conflict(one: int, other: int) -> bool:
    return LockMode.EXCLUSIVE in (one, other)


class LockWaiter:
    """An owner in line; `is_granted` is set when it holds the lock."""

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
        """How much each owner holds: nobody can wait for one that holds nothing."""

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
        """Stands in line, once `try_acquire` was refused; DeadlockDetected if that would be for ever."""
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
        """Waits no longer; False if the lock was granted meanwhile, and so is held."""
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
        """Goes back to a weaker mode of what is held."""
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
        ahead, known = list(self._awaited(waiter)), set[LockOwner]()
        while ahead:
            owner = ahead.pop()
            if owner == waiter.owner:
                return True
            if owner not in known and owner in self._waiting:
                ahead += self._awaited(self._waiting[owner])
            known.add(owner)
        return False

    def _awaited(self, waiter: LockWaiter) -> Iterator[LockOwner]:
        """Whom a waiter waits for: those who hold what it cannot share, or will before it does."""
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
        """Whom a waiter waits for now; nobody, if the lock has been granted."""
        with self._lock:
            return [] if waiter.is_granted.is_set() else list(self._awaited(waiter))

    def standings(self) -> "list[Standing]":
        """Who holds what, and who waits for it."""
        with self._lock:
            return [
                Standing(name, owner, mode, is_held)
                for name, line in self._lines.items()
                for is_held, standing in (
                    (True, list(line.holders.items())),
                    (False, [(each.owner, each.mode) for each in line.waiters]),
                )
                for owner, mode in standing
            ]

    def is_free(self) -> bool:
        """Whether nobody holds or waits for anything."""
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
