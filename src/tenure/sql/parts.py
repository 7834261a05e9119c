"""What SQL is made of: the parts of a node that statements use, handed over by `node.py`.

Walk: `node.py` makes one; sessions, blocks and statements take from it what they need.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tenure.base.env import Env
from tenure.base.node_memory import NodeMemory
from tenure.bulk.lakes import Lake
from tenure.catalog.blockers import Blocker
from tenure.catalog.scheme import LeaseScheme
from tenure.catalog.stored import Catalog
from tenure.catalog.users import Users
from tenure.catalog.wait_records import Awaited
from tenure.cluster.advisory import AdvisoryLocks
from tenure.cluster.inquiries import NOBODY, Ask
from tenure.cluster.jobs import Jobs
from tenure.cluster.locks import RowLocks
from tenure.cluster.sessions import SessionId
from tenure.cluster.settings import ClusterSettings
from tenure.expr.datatype import Datum, Type
from tenure.kv.store import Store
from tenure.schema_change.changer import SchemaChanger
from tenure.sql.long_turns import LongTurns
from tenure.storage.locations import Locations
from tenure.table.rowids import RowIds
from tenure.table.rows import Layouts
from tenure.table.sequences import Sequences

if TYPE_CHECKING:
    from tenure.sql.duck.taking import Duck
    from tenure.sql.plan_cache import PlanCache
    from tenure.sql.session import Session
    from tenure.sql.tables.virtual import VirtualTables


class Codecs(Protocol):
    """Values in the wire's binary format, for COPY; the door knows it."""

    def encoders(self, types: Sequence[Type]) -> Sequence[Callable[[Datum], bytes]]: ...

    def decoders(self, types: Sequence[Type]) -> Sequence[Callable[[bytes], Datum]]: ...


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
