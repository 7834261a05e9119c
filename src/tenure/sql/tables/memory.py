"""`tenure_internal.memory`: who holds how much memory on this node, and how much everybody may.

Users without the superuser role see the node's row and their own.

Walk: `sql.tables.all` collects it; SHOW MEMORY queries it.
"""

from collections.abc import Iterator
from functools import partial

from tenure.base.memory import Account
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.node_view import NodeView
from tenure.sql.tables.virtual import Rows, VirtualDefinition, define, is_superuser


def _memory(node: NodeView, reader: TableReader) -> Rows:
    own, is_all = reader.session, is_superuser(reader)
    memory = node.memory
    yield ("node", None, None, *_account(memory.node), memory.process.now_bytes())
    yield ("bulk work", None, None, *_account(memory.bulk_work), None)
    for gauge in memory.gauges:
        yield (gauge.account.name, None, None, *_account(gauge.account), None)
    for user, account in sorted(memory.users().items()):
        if is_all or user == own.user:
            yield ("user", user, None, *_account(account), None)
    for each in list(node.sessions.values()):
        if is_all or each.user == own.user:
            yield ("session", each.user, each.number, *_account(each.memory.account), None)


def _account(account: Account) -> tuple[int, int, int, str]:
    return account.held_bytes, account.peak_bytes, account.limit_bytes, account.setting


def definitions(node: NodeView) -> Iterator[VirtualDefinition]:
    yield define(
        "tenure_internal.memory",
        partial(_memory, node),
        "How much memory this node, its bulk work, its users and their sessions hold.",
        ("level", "text not null", "node, bulk work, columns, duckdb, user or session."),
        ("user_name", "text", "Whose it is; null of what belongs to no user."),
        ("session_id", "int8", "The session's number on this node."),
        ("held_bytes", "int8 not null", "What is charged now."),
        ("peak_bytes", "int8 not null", "The most that was charged at a time."),
        (
            "limit_bytes",
            "int8 not null",
            "What may be charged; more is refused (53200).",
        ),
        ("setting", "text not null", "The cluster setting that decides the limit."),
        ("resident_bytes", "int8", "Of the node: what its process really has."),
    )
