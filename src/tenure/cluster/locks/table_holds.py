"""Tables that are held for one transaction: their writers wait until it is over.

    hold ──► the table's lock, exclusive ──► writers in flight end ──► its transaction reads, writes, commits
    a writer sees it in `held` ──► the table's lock, shared: it waits ──► writes ──► its transaction ends

A transaction that scans a table and changes its schema has to find the table unchanged when it commits, and
among busy writers it never would. A hold gives it the table for a while. It decides who waits, and nothing
else: correctness rests on the commit's validation, even if the hold is lost.

A hold is a lock like those of rows: in memory, and a record if there are other nodes. So it ends with its
transaction or its node's session, and a wait for it is seen in one cycle with waits for rows. Writers take no
such lock as long as nobody holds the table: `held` says so from memory. It has a hold of this node at once,
and one of another node by a watch. A writer that has not heard of a hold yet writes on, and so do
transactions that have written rows of the table before. The holder gives them a moment to end
(`_await_quiet`), before it reads.

Writers wait for a hold for HOLD_SECONDS from its beginning at most: a client that falls idle in the held
transaction does not stop them for longer.

Invariant (hold-bounded): a hold delays writers until its transaction, its session or HOLD_SECONDS end; not
longer.

Walk: `sql.execution.retries` calls `hold` when a block begins; `sql.execution.row_locking` calls `await_end`
before a statement writes; `composition.background` runs `follow` in a loop.
"""

from collections.abc import Callable, Sequence

from tenure.base.errors import DeadlockDetected, LockNotAvailable, RetryError
from tenure.base.timestamp import Timestamp, add_seconds, seconds_between
from tenure.cluster.locks.lock_table import LockMode, LockOwner, Name
from tenure.cluster.locks.lock_waits import AcquiredLock, LockOptions, LockWaits
from tenure.cluster.sessions.session_records import SessionId
from tenure.kv.follower import Follower
from tenure.kv.gaps import Gap
from tenure.kv.keys import TABLE_LOCKS
from tenure.kv.snapshot import Snapshot

HOLD_SECONDS = 30.0
"""How long writers wait for a hold. A block that scans a table and changes it takes seconds."""

TURN_SECONDS = 5.0
"""How long a transaction waits to hold a table that another one holds; then it begins without a hold."""

QUIET_SECONDS, QUIET_SECONDS_MAX = 0.03, 1.0
"""A table without a write for so long has no writers in flight: a statement takes a few milliseconds, and so
does the news of a hold. One that does not become quiet is read after the second bound.
"""

FOLLOW_SECONDS = 1.0
"""How long one step of `follow` waits for changes at most."""

SPACING_SECONDS = 0.005
"""The time between two looks for holds of other nodes: well below QUIET_SECONDS."""

Acquire = Callable[[LockOwner, Sequence[Name], LockMode, LockOptions], AcquiredLock]


class TableHolds:
    def __init__(self, waits: LockWaits, acquire: Acquire) -> None:
        """`acquire` takes locks that are released with all others of their owner."""
        self._stored = waits.stored
        self._store = waits.stored.store
        self._records = waits.stored.records
        self._session = waits.session
        self._acquire = acquire
        self._lock = self._store.env.lock()
        self._own: dict[int, Timestamp] = {}
        self._others: dict[int, Timestamp] = {}
        self.held: dict[int, Timestamp] = {}
        """Tables that any node holds, and until when writers wait for that; replaced as a whole."""
        self._follower = Follower(
            self._store, [self._records.table_span(TABLE_LOCKS)], self._look, spacing_seconds=SPACING_SECONDS
        )

    # ── the holder ─────────────────────────────────────────────────────────────────────────────

    def hold(self, owner: LockOwner, tables: Sequence[int], options: LockOptions) -> bool:
        """Holds tables for a transaction that has read nothing yet; False if they cannot be had in time.

        The locks are released with all others of the owner; `release` comes before that.
        """
        names = [table_name(table) for table in sorted(tables)]
        timeout = TURN_SECONDS if options.timeout is None else min(TURN_SECONDS, options.timeout)
        try:
            self._acquire(owner, names, LockMode.EXCLUSIVE, options._replace(timeout=timeout))
        except (LockNotAvailable, DeadlockDetected):
            return False
        until_at = add_seconds(self._store.clock.now(), HOLD_SECONDS)
        with self._lock:
            self._own |= dict.fromkeys(tables, until_at)
            self._merge()
        self._await_quiet(tables, options)
        return True

    def release(self, tables: Sequence[int]) -> None:
        with self._lock:
            for table in tables:
                self._own.pop(table, None)
            self._merge()

    def _await_quiet(self, tables: Sequence[int], options: LockOptions) -> None:
        store, env = self._store, self._store.env
        until = env.monotonic() + QUIET_SECONDS_MAX
        spans = [store.keyspace.table_span(each) for each in tables]
        watch = store.watch(spans, since_at=store.snapshot().at)
        try:
            while env.monotonic() < until:
                change = watch.next(QUIET_SECONDS, changes_only=True)
                # A gap: so much was written that it was flushed. Quiet is not waited for then.
                if isinstance(change, Gap) or not change.revisions:
                    return
                options.canceled()
        finally:
            watch.close()

    # ── its writers ────────────────────────────────────────────────────────────────────────────

    def left_seconds(self, table: int) -> float:
        """How long a writer would wait at most; 0 if the table is not held."""
        until_at = self.held.get(table)
        return 0.0 if until_at is None else seconds_between(self._store.clock.now(), until_at)

    def await_end(self, owner: LockOwner, table: int, options: LockOptions) -> None:
        """Returns when the table is no longer held by others, or has been held for too long.

        The owner then has the table's lock, shared: the next holder of the table waits for it.
        """
        left_seconds = self.left_seconds(table)
        if left_seconds <= 0:
            return
        is_shorter = options.timeout is not None and options.timeout <= left_seconds
        bounded = options if is_shorter else options._replace(timeout=left_seconds)
        try:
            self._acquire(owner, [table_name(table)], LockMode.SHARE, bounded)
        except LockNotAvailable:
            if is_shorter:
                raise

    # ── holds of other nodes ───────────────────────────────────────────────────────────────────

    def follow(self) -> float:
        """Reads which tables other nodes hold: one step for a loop."""
        if not self._follower.step(FOLLOW_SECONDS) and self._is_some_over():
            self._follower.load()
        return 0.0

    def _look(self, snapshot: Snapshot) -> None:
        own, now_at = self._own_session(), self._store.clock.now()
        others: dict[int, Timestamp] = {}
        for record in self._records.of_table(snapshot, TABLE_LOCKS):
            until_at = add_seconds(record.since_at, HOLD_SECONDS)
            if record.session == own or record.mode != LockMode.EXCLUSIVE or record.awaits is not None:
                continue
            if until_at > now_at:
                table = table_of(record.key)
                others[table] = max(until_at, others.get(table, until_at))
            elif self._stored.is_gone(record.session):
                self._stored.delete([self._records.key_of(TABLE_LOCKS, record)])
        with self._lock:
            self._others = others
            self._merge()

    def _is_some_over(self) -> bool:
        """Whether a hold of another node no longer delays writers."""
        now_at = self._store.clock.now()
        return any(until_at <= now_at for until_at in self._others.values())

    def _own_session(self) -> SessionId | None:
        try:
            return self._session().id
        except RetryError:
            return None  # the holds of its former session are unknown here

    def _merge(self) -> None:
        self.held = {
            table: max(holds[table] for holds in (self._own, self._others) if table in holds)
            for table in self._own.keys() | self._others.keys()
        }

    def wake(self) -> None:
        """Ends the wait of a `follow` in progress."""
        self._follower.wake()

    def close(self) -> None:
        self._follower.close()


def table_name(table: int) -> Name:
    return Name(TABLE_LOCKS, table.to_bytes(4))


def table_of(key: bytes) -> int:
    return int.from_bytes(key)
