"""Locks between nodes, as records: a record is a place in a queue, and the queue shows who holds the lock.

    name, session, ticket  ──►  owner, mode, since_at = the commit timestamp of this very record

Requesting a lock writes a record, which never conflicts with another's. Commit order is timestamp order, so
the records of a name are a queue in order of arrival; a record holds its lock as soon as no earlier record is
in its way. No node grants a lock: each reads the queue. Releasing deletes the record; records of a dead
session block nobody, and the node that finds them deletes them.

    a: shared        b: shared        c: exclusive      a: exclusive
    holds            holds            waits for a, b    waits for b; not for c, who waits for a

Owners of one node decide among themselves who is first, in its memory; so a record is only in the way of
other sessions' records. An owner that waits in memory for long writes a *notice* that names the owners it
waits for. It is no place in the queue: it only lets others see a cycle that leads through that node.

The node draws tickets and never uses one again under its session, so that a late deletion cannot remove a
later lock.

Invariant (lock-exclusion): of two records that conflict, at most one holds at any time.
Invariant (I9): of a cycle of waiting owners, the youngest gives way, and no other.

Walk: `cluster.locks.stored_locks` writes and reads `LockRecords`; `in_the_way` and `must_give_way` decide.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.cluster.locks.lock_table import LockMode, LockOwner, Name, conflict
from tenure.cluster.sessions.session_records import SessionId
from tenure.kv.keys import ADVISORY_LOCKS, ROW_LOCKS, TABLE_LOCKS, Keyspace, Span
from tenure.kv.records import Record, Records
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction

SCANS_MAX = 8
"""More names than this are read by one scan over them all: few locks of others lie between them."""

Lines = Mapping[Name, Sequence["LockRecord"]]


class LockHolder(NamedTuple):
    """The owner of a record, among all nodes."""

    session: SessionId
    number: int


class LockRecord(Record, frozen=True):
    key: bytes
    instance: int
    epoch_at: Timestamp
    ticket: int
    owner: int
    mode: int
    started_at: Timestamp
    since_at: Timestamp = ZERO_AT
    awaits: tuple[int, ...] | None = None
    """In a notice: the owners of its own session that it waits for, in memory."""

    @property
    def session(self) -> SessionId:
        return SessionId(self.instance, self.epoch_at)

    @property
    def holder(self) -> LockHolder:
        return LockHolder(self.session, self.owner)

    def is_before(self, other: "LockRecord") -> bool:
        return (self.since_at, self.ticket) < (other.since_at, other.ticket)


class LockRecords:
    """The locks of one tenant; every function belongs to the caller's transaction."""

    def __init__(self, keyspace: Keyspace) -> None:
        self._tables = {
            table: Records(keyspace, table, LockRecord, key=("key", "instance", "epoch_at", "ticket"))
            for table in (ROW_LOCKS, ADVISORY_LOCKS, TABLE_LOCKS)
        }

    def put(
        self,
        txn: Transaction,
        name: Name,
        session: SessionId,
        ticket: int,
        owner: LockOwner,
        mode: LockMode,
        *,
        awaits: tuple[int, ...] | None = None,
    ) -> bytes:
        """Takes a place in the queue, or writes a notice; returns the record's key."""
        record = LockRecord(name.key, *session, ticket, owner.number, mode, owner.started_at, awaits=awaits)
        self._tables[name.table].put(txn, record, stamp="since_at")
        return self._tables[name.table].key_of(record)

    def key_of(self, table: int, record: LockRecord) -> bytes:
        return self._tables[table].key_of(record)

    def span(self, name: Name) -> Span:
        return self._tables[name.table].span(name.key)

    def lines(self, source: Transaction | Snapshot, names: Sequence[Name]) -> Lines:
        """The records of these names, in no particular order."""
        if len(names) <= SCANS_MAX:
            return {name: list(self._tables[name.table].scan(source, name.key)) for name in names}
        lines: dict[Name, list[LockRecord]] = {name: [] for name in names}
        for table in {name.table for name in names}:
            spans = [self.span(name) for name in names if name.table == table]
            for _, value in source.scan(Span(min(spans).lo, max(spans).hi)):
                record = self._tables[table].decode(value)
                if (name := Name(table, record.key)) in lines:
                    lines[name].append(record)
        return lines

    def table_span(self, table: int) -> Span:
        return self._tables[table].span()

    def of_table(self, source: Transaction | Snapshot, table: int) -> Iterator[LockRecord]:
        return self._tables[table].scan(source)

    def all(self, source: Transaction | Snapshot) -> Lines:
        lines: dict[Name, list[LockRecord]] = {}
        for table, records in self._tables.items():
            for record in records.scan(source):
                lines.setdefault(Name(table, record.key), []).append(record)
        return lines


def in_the_way(
    record: LockRecord, line: Sequence[LockRecord], firm: Sequence[LockRecord]
) -> list[LockRecord]:
    """The records that a record waits for: earlier ones of other sessions that conflict and do not wait for
    its holder.

    `firm` are the records by which the same holder has the lock already: a record that came between those and
    this one, for a stronger mode, waits for them. A record that only stood in the queue must not count there.
    """
    return [
        each
        for each in line
        if each.session != record.session
        and each.awaits is None
        and each.is_before(record)
        and conflict(each.mode, record.mode)
        and not any(mine.is_before(each) and conflict(mine.mode, each.mode) for mine in firm)
    ]


def must_give_way(mine: LockHolder, lines: Iterable[Sequence[LockRecord]]) -> bool:
    """Whether `mine` is in a cycle of waits and the youngest there; exactly one owner of each cycle is."""
    lines = list(lines)
    awaited = waits_between(lines)
    ages = {each.holder: (each.started_at, each.holder) for line in lines for each in line}
    ahead, visited = list(awaited.get(mine, ())), {mine}
    while ahead:
        holder = ahead.pop()
        if holder == mine:
            return True
        if holder not in visited and holder in ages and ages[holder] < ages[mine]:
            ahead += awaited[holder]
            visited.add(holder)
    return False


def waits_between(lines: Iterable[Sequence[LockRecord]]) -> dict[LockHolder, set[LockHolder]]:
    """By each owner of a record, the owners that it waits for."""
    awaited: dict[LockHolder, set[LockHolder]] = {}
    for line in lines:
        for record in line:
            awaited.setdefault(record.holder, set()).update(_awaited(record, line))
    return awaited


def _awaited(record: LockRecord, line: Sequence[LockRecord]) -> set[LockHolder]:
    if record.awaits is not None:
        return {LockHolder(record.session, number) for number in record.awaits}
    firm = [each for each in line if each.holder == record.holder and each.is_before(record)]
    return {each.holder for each in in_the_way(record, line, firm)}
