"""pg_cancel_backend and pg_terminate_backend: a user ends a statement or session of any node.

As in PostgreSQL, sessions of roles whose privileges the user has may be ended, and all by members of
pg_signal_backend; those of superusers by superusers alone.

Walk: `sql.tables.pg_catalog.answers` calls `send`; the node's view hands it on through `cluster.cancels`.
"""

from typing import NamedTuple

from tenure.base.errors import InsufficientPrivilege
from tenure.catalog.accounts.predefined_roles import SIGNAL_SESSIONS
from tenure.cluster.cancels import CANCEL, TERMINATE
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.node_view import NodeView
from tenure.sql.tables.running import session_with


class Signal(NamedTuple):
    what: bytes
    verb: str
    """What the user is refused."""


SIGNALS = {
    "pg_cancel_backend": Signal(CANCEL, "cancel query"),
    "pg_terminate_backend": Signal(TERMINATE, "terminate process"),
}


def send(node: NodeView, reader: TableReader, signal: Signal, pid: int) -> bool:
    """Returns whether there is such a session; the effect comes soon after. Raises InsufficientPrivilege."""
    session = session_with(node, reader, pid)
    if session is None:
        reader.session.notice(f"PID {pid} is not a PostgreSQL backend process", "WARNING")
        return False
    rights = reader.session.rights(reader.block)
    if rights.graph.is_superuser(session.user) and not rights.is_superuser:
        raise InsufficientPrivilege(
            f"permission denied to {signal.verb}",
            detail="Only roles with the SUPERUSER attribute may do so of roles with the SUPERUSER attribute.",
        )
    if not (rights.has_rights_of(session.user) or rights.has_rights_of(SIGNAL_SESSIONS)):
        raise InsufficientPrivilege(
            f"permission denied to {signal.verb}",
            detail=f'Only roles with privileges of the session\'s role or of "{SIGNAL_SESSIONS}" may do so.',
        )
    node.signal(pid, signal.what)
    return True
