"""Waits for leases, as records: so that blockers can be named, and cycles and long waits ended.

    wait   (instance, epoch, number) -> the awaited descriptors, and those its transaction holds meanwhile
           or the owners of locks that it waits for, and the descriptors that it holds

A cycle of transactions that wait for each other's pins goes through waiting transactions only, and
each of them has a record here; so a node that reads them all sees every cycle, across nodes. A transaction
that waits for a lock has one if its own pins are waited for: then it may be part of a cycle of both kinds.

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


class AwaitedDescriptor(Record, frozen=True):
    """A descriptor that no lease older than `before_at` may cover any more."""

    descriptor: int
    before_at: Timestamp
    version: int = 0
    """Nor may an expiring lease cover a version below this one."""


class WaitOwner(Record, frozen=True):
    """The owner of locks of a waiting transaction, among all nodes."""

    instance: int
    epoch_at: Timestamp
    number: int


class LeaseWait(Record, frozen=True):
    instance: int
    epoch_at: Timestamp
    number: int
    started_at: Timestamp
    """When the transaction began, or the job was made: the youngest of a cycle gives way."""
    since_at: Timestamp
    awaited: tuple[AwaitedDescriptor, ...]
    holds: tuple[Hold, ...]
    owner: int = 0
    """The number of its owner of locks; 0 if it has locked nothing."""
    awaits: tuple[WaitOwner, ...] = ()
    """Of a wait for a lock: all owners without which it does not go on."""

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
    """Whether `waiter` cannot go on before `holder` releases a descriptor or a lock."""
    if holder.owner and WaitOwner(*holder.session, holder.owner) in waiter.awaits:
        return True
    return any(
        hold.descriptor == awaited.descriptor and hold.lease_at < awaited.before_at
        for awaited in waiter.awaited
        for hold in holder.holds
    )


def must_give_way(mine: LeaseWait, waits: Iterable[LeaseWait]) -> bool:
    """Whether `mine` is in a cycle of waits and the youngest there; exactly one wait of each cycle is."""
    return is_in_cycle(mine, [each for each in waits if _age(each) < _age(mine)])


def is_in_cycle(mine: LeaseWait, others: Iterable[LeaseWait]) -> bool:
    """Whether `mine` waits for itself, through these others."""
    others = list(others)
    ahead, reached = [mine], [mine]
    while ahead:
        waiter = ahead.pop()
        if waiter is not mine and blocks(mine, waiter):
            return True
        following = [each for each in others if each not in reached and blocks(each, waiter)]
        ahead += following
        reached += following
    return False


def _age(wait: LeaseWait) -> tuple[Timestamp, int, Timestamp, int]:
    return wait.started_at, wait.instance, wait.epoch_at, wait.number
