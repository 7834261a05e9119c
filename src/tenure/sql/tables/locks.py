"""`tenure_internal.locks`: who holds and who awaits rows, tables and numbers.

Those of this node are shown from its memory. Tables that other nodes hold are shown as well: this node's
writers may be waiting for them.

Walk: `sql.tables.node` lists it; SHOW LOCKS queries it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tenure.cluster.lock_records import LockRecord, LockRecords, in_the_way
from tenure.cluster.lock_table import Mode, Name
from tenure.cluster.table_holds import table_of
from tenure.expr.datatype import Datum
from tenure.kv.keys import ADVISORY_LOCKS, ROW_LOCKS, TABLE_LOCKS
from tenure.sql.tables.system import time_of
from tenure.sql.tables.virtual import Definition, Rows, define

if TYPE_CHECKING:
    from tenure.sql.execution import Execution

_KINDS = {ROW_LOCKS: "row", ADVISORY_LOCKS: "advisory", TABLE_LOCKS: "table"}


def definitions() -> Iterator[Definition]:
    yield define(
        "tenure_internal.locks",
        _locks,
        "Row, table and advisory locks of this node's transactions, and the table locks of all nodes.",
        ("kind", "text not null", "row, table or advisory."),
        ("key", "bytea not null", "The key, a digest of a long one, or the lock's name."),
        ("relation", "text", "The table, of a table lock."),
        ("mode", "text not null", "share or exclusive: a table that is held is locked exclusively."),
        ("is_held", "bool not null", "Whether it is held; else it is waited for."),
        ("node_id", "int8 not null", "The node whose transaction holds or awaits it."),
        ("owner", "int8 not null", "The number of who holds or awaits it, on that node."),
        ("session_id", "int8", "Its session, if that is on this node."),
        ("started", "timestamptz", "When its owner began."),
    )


def _locks(execution: "Execution") -> Rows:
    parts, own = execution.session.parts, execution.session.parts.node().instance
    sessions = {each.surroundings.owner_number: each.number for each in list(parts.sessions.values())}
    for each in parts.locks.standings():
        owner = each.owner
        standing = each.is_held, own, owner.number, sessions.get(owner.number), time_of(owner.started_at)
        yield (*_what(execution, each.name, each.mode), *standing)
    for record, is_held in _of_others(execution):
        standing = is_held, record.instance, record.owner, None, time_of(record.started_at)
        yield (*_what(execution, Name(TABLE_LOCKS, record.key), Mode(record.mode)), *standing)


def _what(execution: "Execution", name: Name, mode: Mode) -> tuple[Datum, ...]:
    relation = None
    if name.table == TABLE_LOCKS:
        found = execution.block.descriptor(table_of(name.key))
        relation = None if found is None else found.name
    return _KINDS[name.table], name.key, relation, mode.name.lower()


def _of_others(execution: "Execution") -> Iterator[tuple[LockRecord, bool]]:
    """As of now, whatever time the transaction reads at: a lock is over by the time of its commit."""
    parts = execution.session.parts
    own, records = parts.node(), LockRecords(parts.store.keyspace)
    lines: dict[bytes, list[LockRecord]] = {}
    for record in records.of_table(parts.store.snapshot(), TABLE_LOCKS):
        if record.awaits is None:
            lines.setdefault(record.key, []).append(record)
    for line in lines.values():
        for record in line:
            if record.session != own:
                yield record, not in_the_way(record, line, ())
