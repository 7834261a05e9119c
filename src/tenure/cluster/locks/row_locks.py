"""Row locks: who goes first when several transactions want the same rows.

    acquire ──► refresh ──► read ──► write ──► commit or roll back ──► release

Applications handle contention by waiting: SELECT ... FOR UPDATE waits for the owner of the row, and writers
of one hot row queue instead of making each other fail. A row lock decides nothing but the order. A
transaction's reads are validated at its commit as always, so a lock that is lost (its session died, another
node has just come) costs a 40001 and never a wrong result.

How to use them. A statement that is about to update or delete rows, or selects them FOR UPDATE, first
acquires their keys, then moves its `read_at` up (`CatalogUse.refresh`), and only then reads them: until the
lock was granted others were still writing. A transaction that has read nothing before may begin to read now
instead. Locks end with the transaction, after its outcome is known: `release`; ROLLBACK TO a savepoint
releases the later ones: `release_since`. An implicit statement does the same as a transaction.

While a node is alone its locks are in memory; if there are other nodes they are records too (see
`cluster.locks.lock_waits`). Rows locked before another node came have no record: such a lock is lost, see
above.

FOR UPDATE and FOR NO KEY UPDATE are exclusive, FOR SHARE and FOR KEY SHARE are shared: one of the latter
waits for an update of the row even if that leaves its key alone.

Walk: SQL's executor calls `acquire` before it reads, its session `release`; `cluster.locks.lock_waits` waits.
"""

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

from tenure.cluster.locks.lock_table import DigestName, LockEntry, LockMode, LockOwner, Name
from tenure.cluster.locks.lock_waits import AcquiredLock, LockOptions, LockWaits, WaitPolicy
from tenure.cluster.locks.table_holds import TableHolds, table_name
from tenure.kv.keys import ROW_LOCKS, Span

NAME_BYTES_MAX = 64
"""A longer key is locked by a digest of it, so that the record's own key stays short."""


class LockedRows(NamedTuple):
    keys: list[bytes]
    """All requested rows; with SKIP, without those that could not be had."""
    has_waited: bool


class RowLocks:
    def __init__(self, waits: LockWaits) -> None:
        self._waits = waits
        self._held: dict[LockOwner, dict[Name, LockMode]] = {}
        """The locks of each owner, in the order in which it got them; used by its owner's thread alone."""
        self.tables = TableHolds(waits, self._acquire)

    def acquire(
        self,
        owner: LockOwner,
        keys: Sequence[bytes],
        *,
        mode: LockMode = LockMode.EXCLUSIVE,
        wait: WaitPolicy = WaitPolicy.WAIT,
        timeout: float | None = None,
        canceled: Callable[[], None] = lambda: None,
        relation: str = "",
    ) -> LockedRows:
        """Locks rows; the caller moves its `read_at` up before it reads them.

        Locks that the owner holds already count as acquired. Raises LockNotAvailable (55P03) if it must not
        wait, or has waited for `timeout` seconds; DeadlockDetected (40P01) if waiting would not end;
        `canceled` is called while it waits, and raises to end the wait. If this raises, it has locked nothing
        new.
        """
        names = {_name(key): key for key in keys}
        what = f'row in relation "{relation}"' if relation else "row"
        got, has_waited = self._acquire(owner, list(names), mode, LockOptions(wait, timeout, canceled, what))
        if len(got) == len(names):
            return LockedRows(list(keys), has_waited)
        return LockedRows([names[name] for name in got], has_waited)

    def _acquire(
        self, owner: LockOwner, names: Sequence[Name], mode: LockMode, options: LockOptions
    ) -> AcquiredLock:
        """Names of rows or tables; those that the owner holds already are acquired at once."""
        held = self._held.setdefault(owner, {})
        wanted = _wanted(names, held, mode)
        if not wanted:
            return AcquiredLock(list(names), has_waited=False)
        got, has_waited = self._waits.acquire(owner, wanted, mode, options, held)
        held.update(dict.fromkeys(got, mode))
        missed = set(wanted).difference(got) if len(got) < len(wanted) else ()
        return AcquiredLock([name for name in names if name not in missed], has_waited)

    def holds(self, owner: LockOwner, keys: Iterable[bytes], mode: LockMode = LockMode.EXCLUSIVE) -> bool:
        """Whether it has locked all of these rows already."""
        return not _wanted(map(_name, keys), self._held.get(owner, {}), mode)

    def try_acquire(
        self, owner: LockOwner, keys: Iterable[bytes], mode: LockMode = LockMode.EXCLUSIVE
    ) -> bool:
        """Locks rows if that needs neither waiting nor the store, else none of them: for an event loop."""
        held = self._held.setdefault(owner, {})
        wanted = _wanted(map(_name, keys), held, mode)
        if not wanted:
            return True
        if not self._waits.try_acquire(owner, wanted, mode, held):
            return False
        held.update(dict.fromkeys(wanted, mode))
        return True

    def has_in_table(self, owner: LockOwner, table: int, span: Span) -> bool:
        """Whether an owner has locked a table, or rows of it, whose keys lie in this span."""
        held = self._held.get(owner, {})
        return table_name(table) in held or any(
            name.table == ROW_LOCKS and span.lo <= name.key < span.hi for name in held
        )

    def mark(self, owner: LockOwner) -> int:
        """Marks the current locks, for `release_since`."""
        return len(self._held.get(owner, ()))

    def release_since(self, owner: LockOwner, mark: int) -> None:
        """Releases rows first locked after a mark; one that was shared before the mark keeps its current
        mode.
        """
        held = self._held.get(owner, {})
        names = list(held)[mark:]
        for name in names:
            del held[name]
        self._waits.release(owner, names)

    def release(self, owner: LockOwner) -> None:
        """Releases all of a transaction's locks, once it is over; a second call does nothing.

        Other nodes may see that a moment later: the deletion is not awaited.
        """
        held = self._held.pop(owner, None)
        if held:
            self._waits.release(owner, list(held))

    def entries(self) -> list[LockEntry]:
        """The holders and waiters of each lock on this node, advisory locks included."""
        return self._waits.table.entries()

    def held(self, owner: LockOwner) -> int:
        return len(self._held.get(owner, ()))


def _wanted(names: Iterable[Name], held: dict[Name, LockMode], mode: LockMode) -> list[Name]:
    """The names that are not held yet, in key order: statements that lock several rows then rarely wait in a
    cycle.
    """
    return sorted(name for name in names if name not in held or held[name] < mode)


def _name(key: bytes) -> Name:
    if len(key) <= NAME_BYTES_MAX:
        return Name(ROW_LOCKS, key)
    name = DigestName(ROW_LOCKS, blake2b(key, digest_size=NAME_BYTES_MAX).digest())
    name.whole = key
    return name
