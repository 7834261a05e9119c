"""What the system tables of a node show besides the store: its sessions, plans, leases and the other nodes.

Walk: `composition.sql_layer` makes one; `sql.tables.all` hands it to the tables of the node.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tenure.catalog.leases.blockers import Blocker
from tenure.catalog.leases.wait_records import Awaited
from tenure.cluster.inquiries import NOBODY, Ask
from tenure.cluster.sessions.session_records import SessionId
from tenure.sql.execution.plan_cache import PlanCache
from tenure.sql.session.long_turns import LongTurns
from tenure.sql.session.services import Services
from tenure.sql.session.session_state import SessionState


@dataclass(frozen=True, slots=True)
class NodeView:
    services: Services
    plans: PlanCache
    session_id: Callable[[], SessionId]
    """The session of this node in the cluster."""
    blockers: Callable[[Sequence[Awaited]], list[Blocker]]
    """The lease rows that hold a wait up, read fresh."""
    ask: Ask = lambda subject, check: NOBODY
    """Asks the other nodes about something that only they know."""
    sessions: dict[int, SessionState] = field(default_factory=dict)
    """The SQL sessions of this node by number: `sql.clients.sql_sessions` keeps them."""
    long_turns: LongTurns = field(default_factory=LongTurns)
    """Of this node's door."""
