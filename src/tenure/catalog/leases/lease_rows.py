"""Lease rows: how other nodes see a node's right to use cached schema.

    (L, instance, epoch) -> the descriptors it covers: all, or after narrowing those still pinned

A row is written at its own commit timestamp L and represents the whole catalog as of L. Keys begin with the
time, so "every row older than M" is one small scan that new leases do not disturb. Rows with L < M can only
be narrowed or deleted, never appear: once a fresh read finds none that covers a descriptor, there will never
be one again.

Invariant (I16): a row is never widened.
Invariant (I15): another node deletes a row only in a transaction that finds its session absent.

Walk: `catalog.leases.node_leases` calls `write`, `catalog.leases.narrowing` calls `narrow` and `delete`;
`catalog.leases.blockers` reads the rows of all nodes.
"""

from collections.abc import Iterator

from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.cluster.sessions.session_records import SessionId, Sessions
from tenure.kv.encoding import At
from tenure.kv.keys import SCHEMA_LEASES, Keyspace, Span
from tenure.kv.records import Record, Records, replace
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction


class LeaseHolder(Record, frozen=True):
    """A transaction that still uses a descriptor under a lease that was closed."""

    transaction: int
    descriptor: int
    started_at: Timestamp
    statement: str


class LeaseRow(Record, frozen=True):
    lease_at: Timestamp
    instance: int
    epoch_at: Timestamp
    descriptors: tuple[int, ...] | None = None
    """None covers the whole catalog."""
    holders: tuple[LeaseHolder, ...] = ()
    """In a narrowed row: the transactions that keep it, as far as known when it was narrowed."""

    @property
    def session(self) -> SessionId:
        return SessionId(self.instance, self.epoch_at)

    def covers(self, id: int) -> bool:
        return self.descriptors is None or id in self.descriptors


class LeaseRows:
    """The lease rows of one tenant; every function belongs to the caller's transaction."""

    def __init__(self, keyspace: Keyspace, sessions: Sessions) -> None:
        self._sessions = sessions
        self._rows = Records(keyspace, SCHEMA_LEASES, LeaseRow, key=("lease_at", "instance", "epoch_at"))

    def span(self) -> Span:
        return self._rows.span()

    def write(self, txn: Transaction, session: SessionId) -> None:
        """Writes a lease at the transaction's own commit timestamp, under a session that exists then."""
        self._sessions.observe(txn, session)
        self._rows.put(txn, LeaseRow(ZERO_AT, *session), stamp="lease_at")

    def narrow(
        self,
        txn: Transaction,
        lease_at: Timestamp,
        session: SessionId,
        descriptors: frozenset[int],
        holders: tuple[LeaseHolder, ...],
    ) -> None:
        """Reduces a row to the given descriptors that it still covers; deletes it if none are left."""
        row = self._rows.get(txn, lease_at, *session)
        if row is None:
            return
        left = tuple(sorted(each for each in descriptors if row.covers(each)))
        if not left:
            self._rows.delete(txn, lease_at, *session)
        elif left != row.descriptors or holders != row.holders:
            self._rows.put(txn, replace(row, descriptors=left, holders=holders))

    def delete(self, txn: Transaction, lease_at: Timestamp, session: SessionId) -> None:
        """Deletes a row that is not needed, whether it still exists or not."""
        self._rows.delete(txn, lease_at, *session)

    def before(self, txn: Transaction | Snapshot, at: Timestamp) -> Iterator[LeaseRow]:
        """The rows of leases older than `at`."""
        span = Span(self._rows.span().lo, self._rows.span(At(at)).lo)
        for _, value in txn.scan(span):
            yield self._rows.decode(value)

    def list(self, txn: Transaction | Snapshot) -> Iterator[LeaseRow]:
        return self._rows.scan(txn)

    def delete_abandoned(self, txn: Transaction, row: LeaseRow) -> bool:
        """Deletes the row of a session that is gone; False if the session exists.

        The session's deletion was committed after every expiration it ever had, so no transaction under this
        lease can commit any more.
        """
        if self._sessions.find(txn, row.session) is not None:
            return False
        self._rows.delete(txn, row.lease_at, *row.session)
        return True
