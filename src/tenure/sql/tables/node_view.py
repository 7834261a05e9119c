"""The sources of a node's system tables: records of the store, sessions, plans, leases, and the other nodes.

Walk: `composition.sql_layer` makes one; `sql.tables.all` hands it to the tables of the node.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tenure.base.node_memory import NodeMemory
from tenure.catalog.accounts.users import Users
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.leases.blockers import Blocker
from tenure.catalog.leases.lease_scheme import LeaseScheme
from tenure.catalog.leases.wait_records import AwaitedDescriptor
from tenure.cluster.inquiries import NOBODY, Ask
from tenure.cluster.locks.row_locks import RowLocks
from tenure.cluster.sessions.session_records import SessionId
from tenure.cluster.settings import ClusterSettings
from tenure.kv.store import Store
from tenure.sql.execution.plan_cache import PlanCache
from tenure.sql.session.long_turns import LongTurns
from tenure.sql.session.services import BulkServices
from tenure.sql.session.session_state import SessionState
from tenure.table.sequences import Sequences


@dataclass(frozen=True, slots=True)
class NodeView:
    store: Store
    catalog: Catalog
    leases: LeaseScheme
    users: Users
    settings: ClusterSettings
    locks: RowLocks
    sequences: Sequences
    memory: NodeMemory
    bulk: BulkServices
    plans: PlanCache
    session_id: Callable[[], SessionId]
    """The session of this node in the cluster."""
    blockers: Callable[[Sequence[AwaitedDescriptor]], list[Blocker]]
    """The lease rows that hold a wait up, read fresh."""
    started_micros: int = 0
    ask: Ask = lambda subject, check: NOBODY
    """Asks the other nodes about something that only they know."""
    signal: Callable[[int, bytes], None] = lambda pid, what: None
    """Cancels a statement or ends a session of any node: see `cluster.cancels`."""
    sessions: dict[int, SessionState] = field(default_factory=dict)
    """The SQL sessions of this node by number: `sql.clients.sql_sessions` keeps them."""
    long_turns: LongTurns = field(default_factory=LongTurns)
    """The long turns of this node's door."""
