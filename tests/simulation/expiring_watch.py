"""What must hold of expiring leases in the very instant of a commit.

    a version lands     I11, I12: no row of a version before the last is left; own ones count by their pins
    a row lands         I12: only of the newest version; I14: its expiration does not fall
    a row goes          I15: others' when it has expired; I16: one's own when nothing is pinned under it
    a user's commit     I13, I16: below the expiration of its rows, which are there

Walk: `schema_nodes.SchemaCluster` has it look at each commit, before `lease_watch.LeaseWatch` does.
"""

from collections.abc import Iterator

from tenure.base.timestamp import Timestamp, to_text
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import AnyDescriptor
from tenure.kv.keys import DESCRIPTORS, OLD_LEASES, Keyspace
from tenure.version_one.expiring_lease_rows import OldLeaseRow, OldLeaseRows
from tests.simulation.expiring_trace import key_of
from tests.simulation.lease_watch import is_one_step
from tests.simulation.schema_trace import RowKey, SchemaTrace, UseRecord
from tests.simulation.trace import Txn, head


class ExpiringWatch:
    def __init__(self, trace: SchemaTrace) -> None:
        self.trace = trace
        keyspace = Keyspace(1)
        self._catalog = Catalog(keyspace)
        self._records = OldLeaseRows(keyspace, self._catalog)._rows
        self._descriptors, self._old_leases = keyspace.head(DESCRIPTORS), keyspace.head(OLD_LEASES)
        self.rows: dict[bytes, OldLeaseRow] = {}
        self.owners: dict[bytes, str] = {}
        """By row: the process that wrote it first."""
        self.newest: dict[int, AnyDescriptor] = {}

    def landed(self, txn: Txn) -> None:
        assert txn.landed_at is not None
        record = self.trace.uses.get(txn.id)
        if record is not None:
            self._judge_use(txn, record, txn.landed_at)
        writes = txn.final_writes(txn.landed_at)
        for key, value in writes.items():
            if head(key) == self._descriptors and value is not None:
                self._publish(txn, self._catalog.decode(value))
        for key, value in writes.items():
            if head(key) == self._old_leases:
                self._write_row(txn, key, value, txn.landed_at)

    # ── versions ───────────────────────────────────────────────────────────────────────────────

    def _publish(self, txn: Txn, descriptor: AnyDescriptor) -> None:
        former = self.newest.get(descriptor.id)
        self.newest[descriptor.id] = descriptor
        if former is None:
            return
        is_alone = not is_one_step(former, descriptor)
        process, id = self.trace.processes[txn.id], former.id
        what = f"descriptor {id} left version {former.version}"
        for row in self._others(process, id):
            if row.version < former.version or is_alone:
                is_valid = (txn.landed_at or 0) < row.expires_at
                message = f"{what} beside an expiring lease of {row.instance} on version {row.version}"
                self.trace.wrong("I11" if is_valid and not is_alone else "I12", message, txn)
        for version, users in self._own_users(process, id, txn.landed_at or 0):
            if version < former.version:
                message = f"{what}, pinned in version {version} by its own node"
                self.trace.wrong("I12", message, txn, *users)
            elif is_alone and any(user is not txn for user in users):
                self.trace.wrong("I12", f"{what} by more than a step, used by its own node", txn, *users)

    def _others(self, process: str, id: int) -> Iterator[OldLeaseRow]:
        return (row for key, row in self.rows.items() if row.descriptor == id and self.owners[key] != process)

    def _own_users(self, process: str, id: int, at: Timestamp) -> Iterator[tuple[int, list[Txn]]]:
        """The versions of a descriptor pinned in a process under a valid lease, and for which transactions.

        What is pinned under an expired lease cannot be used any more: `_judge_use` and
        `expiring_predicates.readers` find a commit or a read under one (I13). docs/decisions/0056 has the
        schedule in which a node publishes beside such a pin of its own.
        """
        own = self.trace.expiring.get(process)
        for lease in () if own is None else own.every:
            if own is not None and lease.descriptor.id == id and lease.pin.uses and at < lease.expires_at:
                yield lease.descriptor.version, [own.record(use).txn for use in lease.pin.uses]

    # ── rows ───────────────────────────────────────────────────────────────────────────────────

    def _write_row(self, txn: Txn, key: bytes, value: bytes | None, at: Timestamp) -> None:
        former = self.rows.get(key)
        if value is None:
            if former is not None:
                self._judge_deletion(txn, key, former, at)
                del self.rows[key], self.owners[key]
            return
        row, process = self._records.decode(value), self.trace.processes[txn.id]
        newest = self.newest.get(row.descriptor)
        if newest is None or newest.version != row.version:
            message = f"{_named(row)} was written, which is not the newest version"
            self.trace.wrong("I12", message, txn)
        if row.expires_at <= at or (former is not None and row.expires_at < former.expires_at):
            self.trace.wrong("I14", f"{_named(row)} was to end at {to_text(row.expires_at)}", txn)
        if self.owners.setdefault(key, process) != process:
            self.trace.wrong("I15", f"{_named(row)} was written by another process", txn)
        self.trace.seen["expiring lease extended"] += former is not None
        self.rows[key] = row

    def _judge_deletion(self, txn: Txn, key: bytes, row: OldLeaseRow, at: Timestamp) -> None:
        if at >= row.expires_at:
            self.trace.seen["expired lease deleted"] += 1
            return
        process = self.trace.processes[txn.id]
        if process != self.owners[key]:
            self.trace.wrong("I15", f"{_named(row)} was deleted by another before its end", txn)
        own, row_key = self.trace.expiring.get(process), _key(row)
        for lease in () if own is None else own.every:
            if own is not None and key_of(lease) == row_key and lease.pin.uses:
                users = [own.record(use).txn for use in lease.pin.uses]
                self.trace.wrong("I16", f"{_named(row)} was given up while it is in use", txn, *users)
        for record in self.trace.uses.values():
            is_over = any(0 < ended < txn.begun for ended in (record.txn.ended, record.ended))
            if record.process == process and not is_over and row_key in record.rows.values():
                self.trace.wrong("I16", f"{_named(row)} was given up while it is in use", txn, record.txn)

    # ── uses ───────────────────────────────────────────────────────────────────────────────────

    def _judge_use(self, txn: Txn, record: UseRecord, at: Timestamp) -> None:
        if record.ended and record.rows:
            self.trace.wrong("I16", f"t{txn.id} was ended, and committed", txn)
        present = {_key(row): row for row in self.rows.values()} if record.rows else {}
        for key in record.rows.values():
            row = present.get(key)
            if row is None:
                message = f"t{txn.id} used {key.descriptor} v{key.version} without a row in system.lease"
                self.trace.wrong("I16", message, txn)
            elif at >= row.expires_at:
                message = f"t{txn.id} committed at {to_text(at)} under {_named(row)}, which had expired"
                self.trace.wrong("I13", message, txn)


def _key(row: OldLeaseRow) -> RowKey:
    return RowKey(row.descriptor, row.version, row.instance, row.started_at)


def _named(row: OldLeaseRow) -> str:
    return f"the lease of {row.instance} on {row.descriptor} v{row.version}"
