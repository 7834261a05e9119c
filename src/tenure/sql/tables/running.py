"""`tenure_internal.sessions`, `transactions` and `locks`: the activity of all nodes and their processes.

    this process    from memory
    the others      asked through the store, only when one of these tables is read

A session is named by what its client knows as its backend's pid, everywhere: the upper part of the number is
the node's instance id, so no other client in the cluster has it. Sessions that a node opens for itself, as
for an EXPORT, have small numbers, which are told apart by their node.

A node that does not answer in time is shown as one row of `sessions`, and a warning says what is missing.
Users without the superuser role see only their own sessions and transactions, and of the rows that others
have locked only the table.

Walk: `sql.tables.node` lists the definitions; they ask `cluster.inquiries`; `front` answers by `answer`.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple, TypeVar, cast

from tenure.base.timestamp import Timestamp
from tenure.catalog.accounts.predefined_roles import READ_STATISTICS
from tenure.catalog.descriptors.definitions import Table
from tenure.cluster.locks.lock_table import DigestName, LockEntry
from tenure.cluster.locks.table_holds import table_of
from tenure.kv.encoding import decode
from tenure.kv.keys import ADVISORY_LOCKS, TABLE_LOCKS
from tenure.kv.records import Record, pack, replace, unpack
from tenure.sql.session.session_state import SessionState, TableReader
from tenure.sql.tables.node_view import NodeView
from tenure.sql.tables.objects import Objects, objects
from tenure.sql.tables.session_state import STATEMENT_CHARS_MAX, state_of
from tenure.sql.tables.system import decimal_of, time_of
from tenure.sql.tables.virtual import Rows, VirtualDefinition, define
from tenure.storage.engine import HEAD_BYTES
from tenure.table.columns import key_text
from tenure.table.rows import key_values

R = TypeVar("R", bound=Record)

TOLD_CHARS_MAX = 1_000
"""The longest text of a statement that is sent to other nodes: an answer has thousands of sessions."""

NOT_ANSWERING = "not answering"


class RunningSession(Record, frozen=True):
    session: int
    user: str
    client_address: str
    database: str
    application: str
    state: str
    statement: str
    statement_micros: int
    transaction_micros: int


class RunningTransaction(Record, frozen=True):
    number: int
    session: int | None
    user: str | None
    started_at: Timestamp
    state: str
    statement: str
    lease_at: Timestamp | None
    descriptors: tuple[int, ...]


class ShownLock(Record, frozen=True):
    session: int | None
    user: str | None
    table: int
    """The table of the lock's record: of rows, of tables or of advisory locks."""
    key: bytes
    mode: str
    is_held: bool
    started_at: Timestamp


class Subject(NamedTuple):
    """Something that every node can tell about itself."""

    name: str
    record: type[Record]
    list: Callable[[NodeView], Iterator[Record]]


def answer(node: NodeView, name: str) -> list[bytes]:
    """This node's answer to an inquiry of another one; empty for an unknown kind."""
    subject = SUBJECTS.get(name)
    return [] if subject is None else [pack(_cut(each)) for each in subject.list(node)]


def _cut(record: Record) -> Record:
    match record:
        case RunningSession() | RunningTransaction():
            return replace(record, statement=record.statement[:TOLD_CHARS_MAX])
        case _:
            return record


def _everywhere(
    node: NodeView, reader: TableReader, name: str, kind: type[R]
) -> Iterator[tuple[int, R | None]]:
    """The answers of all nodes, each with its instance id; None for a node that does not answer."""
    session, subject = reader.session, SUBJECTS[name]
    own = node.session_id().instance
    for each in subject.list(node):
        assert isinstance(each, kind)
        yield own, each
    answers = node.ask(name, session.check)
    for instance, items in answers.items.items():
        for item in items:
            yield instance, unpack(item, kind)
    for instance in answers.silent:
        session.notice(f"node {instance} does not answer: its {name} are missing", "WARNING")
        yield instance, None


def _sees_all(reader: TableReader) -> bool:
    """Whether the sessions of other users are shown in full."""
    rights = reader.session.rights(reader.block)
    return rights.is_superuser or rights.has_rights_of(READ_STATISTICS)


# Sessions


def _list_sessions(node: NodeView) -> Iterator[RunningSession]:
    for each in list(node.sessions.values()):
        block = each.block
        yield RunningSession(
            each.pid,
            each.user,
            each.endpoints.client_address,
            each.database_name,
            each.variables["application_name"],
            state_of(each),
            each.activity.statement[:STATEMENT_CHARS_MAX],
            each.activity.since_micros,
            0 if block is None else block.now_micros,
        )


def session_rows(node: NodeView, reader: TableReader) -> Rows:
    own, is_all = reader.session, _sees_all(reader)
    for instance, each in _everywhere(node, reader, "sessions", RunningSession):
        if each is None:
            yield instance, 0, "", "", "", "", NOT_ANSWERING, None, None, None
        elif is_all or each.user == own.user:
            yield (
                instance,
                each.session,
                each.user,
                each.client_address,
                each.database,
                each.application,
                each.state,
                each.statement or None,
                _moment(each.statement_micros),
                _moment(each.transaction_micros),
            )


def session_with(node: NodeView, reader: TableReader, pid: int) -> RunningSession | None:
    """The session of any node, and of any user, that has this pg_backend_pid()."""
    found = (each for _, each in _everywhere(node, reader, "sessions", RunningSession))
    return next((each for each in found if each is not None and each.session == pid), None)


def _moment(micros: int) -> datetime | None:
    return datetime.fromtimestamp(micros / 1_000_000, UTC) if micros else None


# Transactions


def _list_transactions(node: NodeView) -> Iterator[RunningTransaction]:
    by_use = {block.begun: each for each in list(node.sessions.values()) if (block := each.block)}
    for use in node.leases.uses():
        session = by_use.get(use)
        yield RunningTransaction(
            use.number,
            None if session is None else session.pid,
            None if session is None else session.user,
            use.started_at,
            use.state.value,
            use.statement[:STATEMENT_CHARS_MAX],
            None if use.lease is None else use.lease.at,
            tuple(sorted(use.pins)),
        )


def _transactions(node: NodeView, reader: TableReader) -> Rows:
    own, is_all = reader.session, _sees_all(reader)
    for instance, each in _everywhere(node, reader, "transactions", RunningTransaction):
        if each is not None and (is_all or each.user == own.user):
            yield (
                instance,
                each.number,
                each.session,
                each.user,
                time_of(each.started_at),
                each.state,
                each.statement or None,
                None if each.lease_at is None else decimal_of(each.lease_at),
                each.descriptors,
            )


def transactions_by_number(node: NodeView, reader: TableReader) -> dict[tuple[int, int], RunningTransaction]:
    """The transactions of all nodes, by instance id and number."""
    found = _everywhere(node, reader, "transactions", RunningTransaction)
    return {(instance, each.number): each for instance, each in found if each is not None}


# Locks


def _list_locks(node: NodeView) -> Iterator[ShownLock]:
    owners = _owners(list(node.sessions.values()))
    for each in node.locks.entries():
        session = owners.get(each.owner.number)
        yield _locked(each, session)


def _owners(sessions: "Sequence[SessionState]") -> "dict[int, SessionState]":
    return {owner.number: each for each in sessions if (owner := each.locks.existing_owner) is not None}


def _locked(entry: LockEntry, session: SessionState | None) -> ShownLock:
    name = entry.name
    return ShownLock(
        None if session is None else session.pid,
        None if session is None else session.user,
        name.table,
        name.whole if isinstance(name, DigestName) else name.key,
        entry.mode.name.lower(),
        entry.is_held,
        entry.owner.started_at,
    )


def _locks(node: NodeView, reader: TableReader) -> Rows:
    own, is_all, descriptors = reader.session, _sees_all(reader), objects(reader)
    for instance, each in _everywhere(node, reader, "locks", ShownLock):
        if each is not None:
            is_shown = is_all or each.user == own.user
            yield (
                instance,
                each.session,
                *_what(node, reader, each, descriptors, is_shown),
                each.mode,
                each.is_held,
                time_of(each.started_at),
            )


class LockRow(NamedTuple):
    """A lock as pg_locks shows it."""

    kind: str
    session: int | None
    database: int | None
    table: int | None
    numbers: tuple[int, ...]
    """Of an advisory lock."""
    mode: str
    is_held: bool
    started: datetime | None


def all_locks(node: NodeView, reader: TableReader) -> Iterator[LockRow]:
    own, is_all, by_id = reader.session, _sees_all(reader), objects(reader).by_id
    for _, each in _everywhere(node, reader, "locks", ShownLock):
        if each is None or not (is_all or each.user == own.user):
            continue
        rest = (each.mode, each.is_held, time_of(each.started_at))
        if each.table == ADVISORY_LOCKS:
            database, _, *numbers = cast("tuple[int, ...]", decode(each.key))
            yield LockRow("advisory", each.session, database, None, tuple(numbers), *rest)
            continue
        is_table = each.table == TABLE_LOCKS
        key = each.key
        id = table_of(key) if is_table else node.store.keyspace.table_and_index(key[:HEAD_BYTES])[0]
        table = by_id.get(id)
        home = table.database if isinstance(table, Table) else None
        yield LockRow("table" if is_table else "row", each.session, home, id, (), *rest)


def _what(
    node: NodeView, reader: TableReader, locked: ShownLock, descriptors: Objects, is_shown: bool
) -> tuple[str, str | None, str | None]:
    """Kind, table and key of a lock."""
    if locked.table == ADVISORY_LOCKS:
        _, _, *numbers = decode(locked.key)
        return "advisory", None, ", ".join(map(str, numbers))
    if locked.table == TABLE_LOCKS:
        return "table", _table_name(descriptors, table_of(locked.key)), None
    id, index = node.store.keyspace.table_and_index(locked.key[:HEAD_BYTES])
    table, name = descriptors.by_id.get(id), _table_name(descriptors, id)
    if not isinstance(table, Table):
        return "row", None, None
    layout = reader.block.layout(table)
    keyed = layout.indexes.get(index)
    if keyed is None or not is_shown:
        return "row", name, None
    return "row", name, key_text(layout.columns, keyed.columns, key_values(keyed, locked.key[HEAD_BYTES:]))


def _table_name(descriptors: Objects, id: int) -> str | None:
    table = descriptors.by_id.get(id)
    return (
        f"{descriptors.database_of(table)}.{descriptors.qualified(table)}"
        if isinstance(table, Table)
        else None
    )


SUBJECTS = {
    each.name: each
    for each in (
        Subject("sessions", RunningSession, _list_sessions),
        Subject("transactions", RunningTransaction, _list_transactions),
        Subject("locks", ShownLock, _list_locks),
    )
}


def definitions(node: NodeView) -> Iterator[VirtualDefinition]:
    yield define(
        "tenure_internal.sessions",
        partial(session_rows, node),
        "The SQL sessions of all nodes. A node that does not answer has one row.",
        ("node_id", "int8 not null", "The node's instance id."),
        ("session_id", "int8 not null", "The session: its pg_backend_pid()."),
        ("user_name", "text not null", "Whose it is."),
        ("client_address", "text not null", "Where the client is."),
        ("database_name", "text not null", "The database it is in."),
        ("application_name", "text not null", "What the client calls itself."),
        (
            "state",
            "text not null",
            "active, idle, idle in transaction, idle in transaction (aborted); not answering, of a node.",
        ),
        ("statement", "text", "What it is doing, or did last; without passwords."),
        ("statement_start", "timestamptz", "When that began."),
        ("transaction_start", "timestamptz", "When its transaction began, if one is open."),
        key=("node_id", "session_id"),
    )
    yield define(
        "tenure_internal.transactions",
        partial(_transactions, node),
        "The transactions of all nodes that use the catalog.",
        ("node_id", "int8 not null", "The node's instance id."),
        ("number", "int8 not null", "The number that SHOW BLOCKERS tells, on that node."),
        ("session_id", "int8", "The SQL session: its pg_backend_pid(); null of a job's."),
        ("user_name", "text", "Whose session it is."),
        ("started", "timestamptz", "When it began."),
        ("state", "text not null", "open, committing or over."),
        ("statement", "text", "What it is doing, or did last; without passwords."),
        ("lease_at", "numeric", "The time of the lease it is bound to."),
        ("descriptor_ids", "int8[] not null", "The descriptors it has pinned."),
        key=("node_id", "number"),
    )
    yield define(
        "tenure_internal.locks",
        partial(_locks, node),
        "Row, table and advisory locks of all nodes.",
        ("node_id", "int8 not null", "The node's instance id."),
        ("session_id", "int8", "The SQL session that holds or awaits it: its pg_backend_pid()."),
        ("kind", "text not null", "row, table or advisory."),
        ("table_name", "text", "The table, or that of the row, with database and schema."),
        ("key", "text", "The row's key, as in (id)=(5), for superusers and its own user; or the numbers."),
        ("mode", "text not null", "share or exclusive: a table that is held is locked exclusively."),
        ("is_held", "bool not null", "Whether it is held; else it is waited for."),
        ("started", "timestamptz", "When its session first locked something."),
    )
