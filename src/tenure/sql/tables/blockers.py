"""`tenure_internal.blockers`: the transactions that schema changes wait for, and how to end the wait.

Walk: `sql.tables.node` lists it; SHOW BLOCKERS queries it.
"""

from collections.abc import Iterator, Mapping
from functools import partial

from tenure.catalog.leases.blockers import Blocker
from tenure.catalog.leases.lease_rows import LeaseHolder
from tenure.catalog.leases.wait_records import AwaitedDescriptor, LeaseWait, WaitRecords
from tenure.expr.types.datatype import Datum
from tenure.sql.execution.session_facts import session_bytes
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.node_view import NodeView
from tenure.sql.tables.running import RunningTransaction, transactions_by_number
from tenure.sql.tables.session_state import STATEMENT_CHARS_MAX, state_of
from tenure.sql.tables.system import time_of
from tenure.sql.tables.virtual import Rows, VirtualDefinition, define, is_superuser


def definitions(node: NodeView) -> Iterator[VirtualDefinition]:
    yield define(
        "tenure_internal.blockers",
        partial(_blockers, node),
        "What schema changes of any node wait for: leases on versions that are to go. Short waits are not "
        "recorded.",
        ("waiting_node_id", "int8 not null", "The node that waits."),
        ("wait_number", "int8 not null", "Which of its waits."),
        ("waiting_since", "timestamptz", "Since when."),
        ("descriptor_id", "int8 not null", "What is to change."),
        ("descriptor_name", "text", "Its name."),
        ("job_id", "int8", "The schema change's job."),
        ("node_id", "int8 not null", "The node that is waited for."),
        ("node_session_id", "bytea", "That node's session; null of a lease that expires by itself."),
        ("transaction", "int8", "The transaction there, where the node has told it."),
        ("session_id", "int8", "The SQL session of it: its pg_backend_pid(); null of a job's."),
        ("started", "timestamptz", "When that began."),
        ("statement", "text", "What it was doing; null for who is no superuser."),
        ("hint", "text", "Whether its session is idle, and what ends it."),
    )


def _blockers(node: NodeView, reader: TableReader) -> Rows:
    """Read as of now, not of the transaction's time: waits are over by the time of its commit."""
    store, is_all = node.store, is_superuser(reader)
    waits = list(WaitRecords(store.keyspace).list(store.snapshot()))
    running = transactions_by_number(node, reader) if waits else {}
    for wait in waits:
        for blocker in node.blockers(wait.awaited):
            for awaited in blocker.covered:
                yield from _blocked(node, reader, wait, awaited, blocker, running, is_all)


def _blocked(
    node: NodeView,
    reader: TableReader,
    wait: LeaseWait,
    awaited: AwaitedDescriptor,
    blocker: Blocker,
    running: Mapping[tuple[int, int], RunningTransaction],
    is_all: bool,
) -> Iterator[tuple[Datum, ...]]:
    row = blocker.row
    found = node.catalog.get(node.store.snapshot(), awaited.descriptor)
    what = (
        wait.instance,
        wait.number,
        time_of(wait.since_at),
        awaited.descriptor,
        None if found is None else found.name,
        (getattr(found, "job", 0) or None),
        row.instance,
        None if blocker.session is None else session_bytes(blocker.session),
    )
    named = [each for each in row.holders if each.descriptor == awaited.descriptor]
    for each in named:
        found_there = running.get((row.instance, each.transaction))
        session = None if found_there is None else found_there.session
        shown = each.statement[:STATEMENT_CHARS_MAX] if is_all else None
        hint = _how_to_end(node, row.instance, each, session, user=None if is_all else reader.session.user)
        yield (*what, each.transaction, session, time_of(each.started_at), shown, hint)
    if not named:
        yield (*what, None, None, None, None, None)


def _how_to_end(
    node: NodeView, instance: int, holder: LeaseHolder, session: int | None, *, user: str | None
) -> str:
    """The advice for a transaction that blocks a schema change: one that lasts is mostly idle.

    `user`: the only one whose sessions are named; None: all are.
    """
    if instance != node.session_id().instance:
        who = f"SHOW SESSIONS tells what session {session} on node {instance} does"
        return (
            f"{who}; {_LIMIT}" if session is not None else "it ends with the statement or the job that runs"
        )
    for each in list(node.sessions.values()):
        use = None if each.block is None else each.block.begun
        if use is not None and use.number == holder.transaction:
            is_known = user is None or each.user == user
            who = f"session {each.pid} of user {each.user}" if is_known else "its session"
            what = f"{who} is {state_of(each)}"
            return what if each.activity.is_active else f"{what}: have it COMMIT or ROLLBACK; {_LIMIT}"
    return "it ends with the statement or the job that runs"


_LIMIT = "sql.idle_in_transaction_session_timeout ends those that stay idle"
