"""The services of a node that SQL is built on: the store, the catalog, locks, settings, memory.

None of them refers to a SQL session. Objects that do, such as the plan cache and the system tables, are
passed to the modules that need them.

Walk: `composition.sql_layer` makes one; blocks, sessions and statements read it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tenure.base.env import Env
from tenure.base.node_memory import NodeMemory
from tenure.bulk.lakes import Lake
from tenure.catalog.accounts.users import Users
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.leases.crossed_waits import CrossedWaits
from tenure.catalog.leases.lease_scheme import LeaseScheme
from tenure.changefeed.job import FeedServices
from tenure.cluster.jobs.job_table import Jobs
from tenure.cluster.locks.advisory_locks import AdvisoryLocks
from tenure.cluster.locks.row_locks import RowLocks
from tenure.cluster.notifications import Notifications
from tenure.cluster.sessions.session_records import SessionId
from tenure.cluster.settings import ClusterSettings
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.encodings import Encoding
from tenure.kv.store import Store
from tenure.retention.snapshots import NamedSnapshots
from tenure.retention.sweeping.services import SweepServices
from tenure.schema_change.changer import SchemaChanger
from tenure.sql.duck.offload import Duck
from tenure.sql.session.map_turns import MapTurns
from tenure.sql.session.open_reads import OpenReads
from tenure.storage.locations import Locations
from tenure.table.rowids import RowIds
from tenure.table.rows import Layouts
from tenure.table.sequences import Sequences
from tenure.table.temporary_rows import TemporaryRows


class Codecs(Protocol):
    """Values in the wire's binary format, for COPY; the door knows it."""

    def encoders(self, types: Sequence[Type], encoding: Encoding) -> Sequence[Callable[[Datum], bytes]]: ...

    def decoders(self, types: Sequence[Type], encoding: Encoding) -> Sequence[Callable[[bytes], Datum]]: ...


NO_TABLES: set[int] = set()


@dataclass(frozen=True, slots=True)
class BulkServices:
    """Services for statements that start jobs, wait for them, or name files."""

    env: Env
    store: Store
    jobs: Jobs
    catalog: Catalog
    """Has the names of what jobs wait for."""
    renew_lease: Callable[[], object]
    """Lets the next statement find what a job has just published."""
    lake: Lake | None = None
    """Where bulk work puts rows; None without `--lake`."""
    locations: Locations | None = None
    """The files that statements may name."""
    feeds: FeedServices | None = None
    """What changefeeds read from, and where their files go."""
    sweeps: SweepServices | None = None
    """What RUN GC NOW works on."""
    spark_trouble: Callable[[], str] = lambda: ""
    """Why this node cannot start a process with Spark; empty if it can, or does not try."""


@dataclass(frozen=True, slots=True)
class Services:
    env: Env
    store: Store
    catalog: Catalog
    leases: LeaseScheme
    changer: SchemaChanger
    layouts: Layouts
    rowids: RowIds
    settings: ClusterSettings
    users: Users
    locks: RowLocks
    advisory: AdvisoryLocks
    notifications: Notifications
    sequences: Sequences
    temporary_rows: TemporaryRows
    next_owner: Callable[[], int]
    """Gives each owner of locks a number of its own on this node."""
    memory: NodeMemory
    """The accounts of what users, sessions and statements hold."""
    codecs: Codecs
    bulk: BulkServices
    open_reads: OpenReads
    snapshots: NamedSnapshots
    map_turns: MapTurns
    crossed_waits: CrossedWaits
    is_alive: Callable[[SessionId], bool]
    """Whether a node's session is there, from the store."""
    started_micros: int = 0
    duck: Duck | None = None
    """Runs large queries, or parts of them."""
    runs_inline: bool = False
    """Reads of the store are quick enough for the door's loop: the engine is embedded."""

    @property
    def far_tables(self) -> set[int]:
        """Those with rows in an object store, for which the door's loop must not wait."""
        return NO_TABLES if self.bulk.lake is None else self.bulk.lake.bases.far_tables
