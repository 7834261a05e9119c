"""What must hold of leases in the very instant of a commit, while the nodes' memories can be asked.

    a version lands      I11, I12: no older lease covers it; own rows count by what is pinned under them
                         steps: more than one step at a time only where nobody else uses it
    a lease row lands    I15, I16: whose it was, and what was pinned under it
    a user's commit      I10, I13, I16: its versions, its frontier, the rows that cover its pins

Walk: `schema_trace.SchemaTrace.decided` -> `LeaseWatch.landed`, inside the atomic step.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tenure.base.timestamp import Timestamp, to_text
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Check,
    DescriptorState,
    Element,
    ElementState,
    ForeignKey,
    Index,
    Table,
    elements,
    place_of,
)
from tenure.catalog.leases.catalog_use import Lease
from tenure.catalog.leases.lease_rows import LeaseRow, LeaseRows
from tenure.cluster.sessions.session_records import SessionId, Sessions
from tenure.kv.keys import DESCRIPTORS, EXPIRATIONS, SCHEMA_LEASES, SESSIONS, Keyspace
from tests.simulation.schema_trace import SchemaTrace, UseRecord
from tests.simulation.trace import Txn, head

RANKS = {ElementState.DELETE_ONLY: 1, ElementState.WRITE_ONLY: 2, ElementState.PUBLIC: 3}


class Published(NamedTuple):
    """A version of a descriptor, and who wrote it."""

    descriptor: AnyDescriptor
    txn: Txn


class LeaseWatch:
    def __init__(self, trace: SchemaTrace) -> None:
        self.trace = trace
        keyspace = Keyspace(1)
        self._sessions = Sessions(keyspace)
        self._catalog = Catalog(keyspace)
        self._records = LeaseRows(keyspace, self._sessions)._rows
        self._heads = {
            keyspace.head(table): table for table in (DESCRIPTORS, EXPIRATIONS, SCHEMA_LEASES, SESSIONS)
        }
        self.rows: dict[bytes, LeaseRow] = {}
        self.owners: dict[bytes, str] = {}
        """By row: the process that wrote it."""
        self.versions: dict[int, list[Published]] = trace.published
        self.expires: dict[SessionId, Timestamp] = {}
        """By session: the greatest expiration that it ever had."""
        self.present: set[SessionId] = set()

    def landed(self, txn: Txn) -> None:
        assert txn.landed_at is not None
        writes: dict[int, list[tuple[bytes, bytes | None]]] = {}
        for key, value in txn.final_writes(txn.landed_at).items():
            table = self._heads.get(head(key))
            if table is not None:
                writes.setdefault(table, []).append((key, value))
        record = self.trace.uses.get(txn.id)
        if record is not None:
            self._judge_use(txn, record, txn.landed_at)
        for _, value in writes.get(DESCRIPTORS, ()):
            if value is not None:
                self._publish(txn, self._catalog.decode(value))
        for key, value in writes.get(SCHEMA_LEASES, ()):
            self._write_row(txn, key, value)
        for key, value in writes.get(SESSIONS, ()):
            self._write_session(key, value, txn.landed_at)
        for key, value in writes.get(EXPIRATIONS, ()):
            if value is not None:
                expires_at = self._sessions._expiration.decode(value).expires_at
                id = self._sessions.id_of(key)
                self.expires[id] = max(self.expires.get(id, 0), expires_at)

    def _write_session(self, key: bytes, value: bytes | None, at: Timestamp) -> None:
        id = self._sessions.id_of(key)
        if value is None:
            self.present.discard(id)
            return
        existence = self._sessions._existence.decode(value)
        self.present.add(id)
        ttl = int(existence.ttl_seconds * 1_000_000) << 10
        self.expires[id] = max(self.expires.get(id, 0), at + ttl)

    # ── versions ───────────────────────────────────────────────────────────────────────────────

    def _publish(self, txn: Txn, descriptor: AnyDescriptor) -> None:
        id, known = descriptor.id, self.versions.setdefault(descriptor.id, [])
        expected = known[-1].descriptor.version + 1 if known else 1
        if descriptor.version != expected:
            message = f"descriptor {id} got version {descriptor.version}, not {expected}"
            self.trace.wrong("I12", message, txn)
        if known:
            former = known[-1].descriptor
            self._judge_older_leases(txn, former)
            if not is_one_step(former, descriptor):
                self.trace.seen["collapse into one commit"] += 1
                self._judge_alone(txn, former, descriptor)
        known.append(Published(descriptor, txn))

    def _judge_older_leases(self, txn: Txn, former: AnyDescriptor) -> None:
        process, id = self.trace.processes[txn.id], former.id
        what = f"descriptor {id} left version {former.version}"
        for row in self._others(process):
            if row.lease_at < former.modified_at and row.covers(id):
                is_valid = (txn.landed_at or 0) < self.expires.get(row.session, 0)
                message = f"{what} beside an older lease of {row.session}"
                self.trace.wrong("I11" if is_valid else "I12", message, txn)
        for lease, users in self._own_users(process, id):
            if lease.at < former.modified_at:
                self.trace.wrong("I12", f"{what}, pinned in an older one by its own node", txn, *users)

    def _own_users(self, process: str, id: int) -> Iterator[tuple[Lease, list[Txn]]]:
        """The leases of a process under which a descriptor is pinned, and for whom."""
        own = self.trace.leases.get(process)
        for lease in () if own is None else own.every:
            pin = lease.pins.get(id)
            if own is not None and pin is not None:
                yield lease, [own.record(use).txn for use in pin.uses]

    def _others(self, process: str) -> Iterator[LeaseRow]:
        return (row for key, row in self.rows.items() if self.owners[key] != process)

    def _judge_alone(self, txn: Txn, former: AnyDescriptor, descriptor: AnyDescriptor) -> None:
        process, id = self.trace.processes[txn.id], former.id
        what = f"descriptor {id} took more than a step to version {descriptor.version}"
        for row in self._others(process):
            if row.covers(id):
                self.trace.wrong("I12", f"{what} beside a lease of {row.session}", txn)
        for _, users in self._own_users(process, id):
            if any(user is not txn for user in users):
                self.trace.wrong("I12", f"{what}, used by its own node", txn, *users)

    # ── rows ───────────────────────────────────────────────────────────────────────────────────

    def _write_row(self, txn: Txn, key: bytes, value: bytes | None) -> None:
        process, former = self.trace.processes[txn.id], self.rows.get(key)
        row = None if value is None else self._records.decode(value)
        if former is None:
            if row is not None:
                self._judge_new(txn, row)
                self.rows[key], self.owners[key] = row, process
            return
        if row is not None and _is_wider(former, row):
            self.trace.wrong("I16", f"the lease at {to_text(row.lease_at)} was widened", txn)
        if process != self.owners[key]:
            self._judge_deletion(txn, former, row)
        else:
            self._judge_release(txn, process, key, former, row)
        if row is None:
            del self.rows[key], self.owners[key]
        else:
            self.rows[key] = row

    def _judge_new(self, txn: Txn, row: LeaseRow) -> None:
        if row.lease_at != txn.landed_at or row.descriptors is not None:
            self.trace.wrong("I16", f"a lease was written for {to_text(row.lease_at)}", txn)
        if row.session not in self.present:
            self.trace.wrong("I15", f"a lease was written for {row.session}, which is gone", txn)

    def _judge_deletion(self, txn: Txn, former: LeaseRow, row: LeaseRow | None) -> None:
        """I15: others only delete, and only what is left of a session that was deleted before."""
        if row is not None or former.session in self.present:
            self.trace.wrong("I15", f"a lease of {former.session}, which is there, was taken by another", txn)
        self.trace.seen["deletion of an abandoned lease"] += 1

    def _judge_release(
        self, txn: Txn, process: str, key: bytes, former: LeaseRow, row: LeaseRow | None
    ) -> None:
        """I16: a lease is given up for what nobody uses under it any more, when that is decided.

        What is left of a session that is gone is anybody's to delete, and stands for nothing.
        """
        own = self.trace.leases.get(process)
        if own is None or former.session not in self.present:
            return
        lease = next((each for each in own.every if each.at == former.lease_at), None)
        if lease is not None and lease is own.generations.newest and not lease.session.done.is_set():
            self.trace.wrong("I16", "the newest lease was narrowed", txn)
        decided = max(put.step for put in txn.puts if put.key == key)
        for record in list(self.trace.uses.values()):
            is_over = any(0 < ended < decided for ended in (record.txn.ended, record.ended))
            if record.process != process or is_over:
                continue
            for id, lease_at in record.pinned.items():
                is_given = id in record.given_up or (row is not None and row.covers(id))
                if lease_at == former.lease_at and not is_given:
                    message = f"the lease at {to_text(lease_at)} was given up for {id}, which is in use"
                    self.trace.wrong("I16", message, txn, record.txn)

    # ── uses ───────────────────────────────────────────────────────────────────────────────────

    def _judge_use(self, txn: Txn, record: UseRecord, at: Timestamp) -> None:
        if record.session is None or (not record.handed and not record.resolved):
            return
        if at >= self.expires.get(record.session, 0):
            message = f"t{txn.id} committed at {to_text(at)} under {record.session}, which had expired"
            self.trace.wrong("I13", message, txn)
        if record.ended:
            self.trace.wrong("I16", f"t{txn.id} was ended, and committed", txn)
        for id, lease_at in record.pinned.items():
            if id in record.given_up:
                continue
            row = next((each for each in self.rows.values() if _is_of(each, lease_at, record.session)), None)
            if record.session in self.present and (row is None or not row.covers(id)):
                message = (
                    f"t{txn.id} used {id} under the lease at {to_text(lease_at)}, which does not cover it"
                )
                self.trace.wrong("I16", message, txn)


def _is_of(row: LeaseRow, lease_at: Timestamp, session: SessionId) -> bool:
    return row.lease_at == lease_at and row.session == session


def _is_wider(former: LeaseRow, row: LeaseRow) -> bool:
    if former.descriptors is None:
        return False
    return row.descriptors is None or not set(row.descriptors) <= set(former.descriptors)


def is_one_step(former: AnyDescriptor, descriptor: AnyDescriptor) -> bool:
    """Whether a version is as near to the one before it as writers on both can bear."""
    old, new = place_of(former), place_of(descriptor)
    if old != new and old not in descriptor.draining:
        return False
    if (
        descriptor.state is DescriptorState.DROPPED
        and former.state is not DescriptorState.DROPPED
        and not descriptor.draining
    ):
        return False
    if not (isinstance(former, Table) and isinstance(descriptor, Table)):
        return True
    if former.is_closed:
        return True  # nobody reads or writes it but whoever publishes this
    before, after = _ranks(former), _ranks(descriptor)
    return all(
        abs(after.get(key, _absent(key)) - before.get(key, _absent(key))) <= 1 for key in before | after
    )


def _ranks(table: Table) -> dict[tuple[str, int], int]:
    return {(type(each).__name__, each.id): _rank(each) for each in elements(table)}


def _rank(element: Element) -> int:
    """An index that nobody reads any more is to writers what a write_only one is."""
    if isinstance(element, Index) and element.is_unread and element.state is ElementState.PUBLIC:
        return RANKS[ElementState.WRITE_ONLY]
    return RANKS[element.state]


def _absent(key: tuple[str, int]) -> int:
    """Nothing is stored for a constraint: it comes as write_only, and goes from there."""
    return 1 if key[0] in (Check.__name__, ForeignKey.__name__) else 0
