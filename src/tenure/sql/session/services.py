"""What SQL is made of: the parts of a node that statements use, handed over by `node.py`.

Walk: `node.py` makes one; sessions, blocks and statements take from it what they need.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tenure.base.env import Env
from tenure.base.node_memory import NodeMemory
from tenure.bulk.lakes import Lake
from tenure.catalog.accounts.users import Users
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.leases.blockers import Blocker
from tenure.catalog.leases.lease_scheme import LeaseScheme
from tenure.catalog.leases.wait_records import Awaited
from tenure.cluster.inquiries import NOBODY, Ask
from tenure.cluster.jobs.job_table import Jobs
from tenure.cluster.locks.advisory_locks import AdvisoryLocks
from tenure.cluster.locks.row_locks import RowLocks
from tenure.cluster.sessions.session_records import SessionId
from tenure.cluster.settings import ClusterSettings
from tenure.expr.types.datatype import Datum, Type
from tenure.kv.store import Store
from tenure.schema_change.changer import SchemaChanger
from tenure.sql.session.long_turns import LongTurns
from tenure.storage.locations import Locations
from tenure.table.rowids import RowIds
from tenure.table.rows import Layouts
from tenure.table.sequences import Sequences

if TYPE_CHECKING:
    from tenure.sql.duck.offload import Duck
    from tenure.sql.session.plan_cache import PlanCache
    from tenure.sql.session.session import Session
    from tenure.sql.tables.virtual import VirtualTables


class Codecs(Protocol):
    """Values in the wire's binary format, for COPY; the door knows it."""

    def encoders(self, types: Sequence[Type]) -> Sequence[Callable[[Datum], bytes]]: ...

    def decoders(self, types: Sequence[Type]) -> Sequence[Callable[[bytes], Datum]]: ...


NO_TABLES: set[int] = set()


@dataclass(frozen=True, slots=True)
class Parts:
    env: Env
    store: Store
    catalog: Catalog
    leases: LeaseScheme
    changer: SchemaChanger
    layouts: Layouts
    rowids: RowIds
    settings: ClusterSettings
    jobs: Jobs
    users: Users
    locks: RowLocks
    advisory: AdvisoryLocks
    sequences: Sequences
    plans: "PlanCache"
    virtual: "VirtualTables"
    next_owner: Callable[[], int]
    """Numbers for whoever locks, unlike any other on this node."""
    memory: NodeMemory
    """The accounts of what users, sessions and statements hold."""
    codecs: "Codecs"
    is_alive: Callable[[SessionId], bool]
    """Whether a node's session is there, from the store."""
    blockers: Callable[[Sequence[Awaited]], list[Blocker]]
    """The lease rows that hold a wait up, read fresh."""
    node: Callable[[], SessionId]
    """The session of this node."""
    ask: Ask = lambda subject, check: NOBODY
    """What the other nodes say about something that only they know."""
    sessions: "dict[int, Session]" = field(default_factory=dict)
    """The SQL sessions of this node by number, kept by whoever opens them."""
    started_micros: int = 0
    long_turns: LongTurns = field(default_factory=LongTurns)
    """Of this node's door."""
    lake: Lake | None = None
    """Where bulk work puts rows, and the files that statements may name; None without `--lake`."""
    locations: Locations | None = None
    spark_trouble: Callable[[], str] = lambda: ""
    """Why this node cannot start a process with Spark; empty if it can, or none is wanted."""
    duck: "Duck | None" = None
    """What takes large queries over."""
    runs_inline: bool = False
    """Reads of the store are quick enough for the door's loop: the engine is embedded."""

    @property
    def far_tables(self) -> set[int]:
        """Those with rows in an object store, for which the door's loop must not wait."""
        return NO_TABLES if self.lake is None else self.lake.bases.far_tables
