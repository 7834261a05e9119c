"""Waits for leases, as records: so that blockers can be named, and cycles and long waits ended.

    wait   (instance, epoch, number) -> the awaited descriptors, and those its transaction holds meanwhile

A cycle of transactions that wait for each other's pins goes through waiting transactions only, and
each of them has a record here; so a node that reads them all sees every cycle, across nodes.

Walk: `catalog.leases.lease_waits` writes one while it waits and looks for cycles; a node's own
`catalog.leases.holder_eviction` step ends transactions that others have waited for too long.
"""

from collections.abc import Iterable, Iterator

from tenure.base.timestamp import Timestamp
from tenure.cluster.sessions.session_records import SessionId
from tenure.kv.keys import LEASE_WAITS, Keyspace, Span
from tenure.kv.records import Record, Records
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction


class Hold(Record, frozen=True):
    """A descriptor pinned under a lease taken at `lease_at`."""

    descriptor: int
    lease_at: Timestamp


class Awaited(Record, frozen=True):
    """A descriptor that no lease older than `before_at` may cover any more."""

    descriptor: int
    before_at: Timestamp
    version: int = 0
    """Nor may an expiring lease cover a version below this one."""


class LeaseWait(Record, frozen=True):
    instance: int
    epoch_at: Timestamp
    number: int
    started_at: Timestamp
    """When the transaction began, or the job was made: the youngest of a cycle gives way."""
    since_at: Timestamp
    awaited: tuple[Awaited, ...]
    holds: tuple[Hold, ...]

    @property
    def session(self) -> SessionId:
        return SessionId(self.instance, self.epoch_at)


class WaitRecords:
    """The waits of one tenant; every function belongs to the caller's transaction."""

    def __init__(self, keyspace: Keyspace) -> None:
        self._records = Records(keyspace, LEASE_WAITS, LeaseWait, key=("instance", "epoch_at", "number"))

    def span(self) -> Span:
        return self._records.span()

    def put(self, txn: Transaction, wait: LeaseWait) -> None:
        self._records.put(txn, wait)

    def delete(self, txn: Transaction, wait: LeaseWait) -> None:
        self._records.delete(txn, wait.instance, wait.epoch_at, wait.number)

    def list(self, txn: Transaction | Snapshot) -> Iterator[LeaseWait]:
        return self._records.scan(txn)

    def of_session(self, txn: Transaction | Snapshot, session: SessionId) -> Iterator[LeaseWait]:
        return self._records.scan(txn, *session)


def blocks(holder: LeaseWait, waiter: LeaseWait) -> bool:
    """Whether `waiter` cannot go on before `holder` releases a descriptor."""
    return any(
        hold.descriptor == awaited.descriptor and hold.lease_at < awaited.before_at
        for awaited in waiter.awaited
        for hold in holder.holds
    )


def must_give_way(mine: LeaseWait, waits: Iterable[LeaseWait]) -> bool:
    """Whether `mine` is in a cycle of waits and the youngest there; exactly one wait of each cycle is."""
    older = [each for each in waits if _age(each) < _age(mine)]
    ahead, known = [mine], [mine]
    while ahead:
        waiter = ahead.pop()
        if waiter is not mine and blocks(mine, waiter):
            return True
        following = [each for each in older if each not in known and blocks(each, waiter)]
        ahead += following
        known += following
    return False


def _age(wait: LeaseWait) -> tuple[Timestamp, int, Timestamp, int]:
    return wait.started_at, wait.instance, wait.epoch_at, wait.number
