"""A node's part in the catalog, under any lease scheme, over an engine that several of them share."""

from collections.abc import Callable, Sequence

from tenure.base.env import ManualEnv
from tenure.base.errors import ClusterFinalized
from tenure.base.settings import DEFINITIONS, LEASE_POLL_INTERVAL, VERSION, Settings
from tenure.catalog.bootstrap import bootstrap
from tenure.catalog.changes.publisher import Publisher
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import AnyDescriptor, place_of, replace
from tenure.catalog.leases.blockers import LeaseTable, SchemaLeaseTable
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.catalog.leases.holder_eviction import Holders
from tenure.catalog.leases.lease_rows import LeaseRows
from tenure.catalog.leases.lease_scheme import LeaseScheme
from tenure.catalog.leases.lease_waits import LeaseWaiter, LeaseWaits
from tenure.catalog.leases.node_leases import Leases
from tenure.catalog.leases.wait_records import WaitRecords
from tenure.cluster.sessions.deaths import Deaths
from tenure.cluster.sessions.liveness import Liveness
from tenure.cluster.sessions.session_records import Sessions
from tenure.cluster.sessions.versions import Versions
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.engine import Engine
from tenure.version_one.descriptor_leases import DescriptorLeases
from tenure.version_one.expiring_lease_rows import OldLeaseRow, OldLeaseRows
from tenure.version_one.expiring_lease_table import ExpiringLeaseTable
from tenure.version_one.expiring_scheme import ExpiringLeases
from tenure.version_one.mixed_scheme import MixedLeases
from tenure.version_one.old_heartbeats import OldHeartbeats
from tenure.version_one.old_liveness import OldLiveness
from tests.unit.table.tables import table

TABLE = 200
"""The table that most tests use: t, of three columns."""

SETTINGS = Settings(DEFINITIONS).with_value(LEASE_POLL_INTERVAL, 0.1)
"""On a manual clock a wait moves the time: the slow poll shall not outlast a lease."""

SCHEMA, EXPIRING, MIXED = "schema", "expiring", "mixed"


class LeaseNode:
    def __init__(self, engine: Engine, env: ManualEnv, scheme: str, settings: Settings = SETTINGS) -> None:
        self.env = env
        self.settings = settings
        self.store = Store(engine, env, settings=settings)
        keyspace = self.store.keyspace
        self.sessions = Sessions(keyspace)
        self.versions = Versions(keyspace, self.sessions)
        self.catalog = Catalog(keyspace)
        self.rows = LeaseRows(keyspace, self.sessions)
        self.old_rows = OldLeaseRows(keyspace, self.catalog)
        self.store.transact(self._begin)
        self.liveness = self._old_liveness() if scheme == EXPIRING else self._liveness()
        self.liveness.step()
        self.deaths = Deaths(self.store, self.sessions)
        self.expiring = DescriptorLeases(
            self.store,
            self.catalog,
            self.old_rows,
            lambda: self.liveness.session().id.instance,
            lambda: self.settings,
            check=self._check,
        )
        self.leases, self.tables = self._scheme(scheme)
        records = WaitRecords(keyspace)
        session = self.liveness.session
        self.waits = LeaseWaits(
            self.store,
            self.leases,
            lambda: self.tables,
            records,
            self.sessions,
            self.deaths,
            session,
            lambda: settings,
        )
        self.holders = Holders(self.store, self.leases, records, self.deaths, lambda: settings)
        self.publisher = Publisher(self.store, self.catalog, self.waits)
        self.leases.renew()

    def _begin(self, txn: Transaction) -> None:
        if bootstrap(txn, self.store.keyspace, self.catalog):
            self.versions.join(txn, 1)

    def _liveness(self) -> Liveness:
        return Liveness(
            self.store,
            self.sessions,
            lambda: self.settings,
            address="",
            version=2,
            on_lost=lambda session: self.leases.end_session(session),
        )

    def _old_liveness(self) -> OldLiveness:
        heartbeats = OldHeartbeats(self.store.keyspace)
        return OldLiveness(
            self.store, self.sessions, heartbeats, self.versions, lambda: self.settings, address=""
        )

    def _check(self, txn: Transaction) -> None:
        if self.versions.cluster(txn) == 2:
            raise ClusterFinalized("finalized")

    def _scheme(self, scheme: str) -> tuple[LeaseScheme, Sequence[LeaseTable]]:
        session = self.liveness.session
        by_version = ExpiringLeaseTable(self.store, self.old_rows, self.expiring.owner)
        by_session = SchemaLeaseTable(self.store, self.rows, self.deaths, lambda: session().id)
        if scheme == EXPIRING:
            leases = ExpiringLeases(self.store, self.catalog, self.expiring, session, lambda: self.settings)
            return leases, (by_version,)
        self.schema_leases = Leases(self.store, self.catalog, self.rows, session, lambda: self.settings)
        if scheme == SCHEMA:
            return self.schema_leases, (by_session,)
        self.mixed = MixedLeases(
            self.store,
            self.catalog,
            self.schema_leases,
            self.expiring,
            by_version,
            lambda: self.settings[VERSION] == 2,
        )
        return self.mixed, (by_session, by_version)

    # ── using ──────────────────────────────────────────────────────────────────────────────────

    def bind(self) -> CatalogUse:
        return self.leases.bind(self.store.begin())

    def pinned(self, id: int = TABLE) -> CatalogUse:
        use = self.bind()
        assert use.descriptor(id) is not None, "there is no such descriptor"
        return use

    def writing(self, id: int = TABLE) -> CatalogUse:
        """A use that has something to commit."""
        use = self.pinned(id)
        use.txn.put(self.store.keyspace.key(TABLE, (use.number, id)), b"row")
        return use

    def version(self, id: int = TABLE) -> int:
        """What a transaction that begins now is given."""
        use = self.bind()
        descriptor = use.descriptor(id)
        use.close()
        return 0 if descriptor is None else descriptor.version

    # ── publishing ─────────────────────────────────────────────────────────────────────────────

    def create(self, id: int = TABLE, name: str = "t") -> None:
        made = replace(table(id=id, name=name, version=0), next_column=9, next_index=9)
        self.store.transact(lambda txn: self.publisher.publish(txn, [made], {}))

    def publish(
        self,
        id: int = TABLE,
        change: Callable[[AnyDescriptor], AnyDescriptor] = lambda descriptor: descriptor,
        *,
        use: CatalogUse | None = None,
        timeout: float | None = None,
    ) -> None:
        """Waits until the table is leased in one version only, and writes the next."""
        settled = self.publisher.settle([id], LeaseWaiter(self.store.clock.now(), use), timeout=timeout)
        changed = change(self.stored(id))
        self.store.transact(lambda txn: self.publisher.publish(txn, [changed], settled))

    def stored(self, id: int = TABLE) -> AnyDescriptor:
        descriptor = self.catalog.get(self.store.snapshot(), id)
        assert descriptor is not None, "there is no such descriptor"
        return descriptor

    def finalize(self) -> None:
        """Says so in the store; each node has still to learn of it."""
        self.store.transact(lambda txn: self.versions.finalize(txn, 2))

    def learn_of_finalizing(self) -> None:
        self.settings = self.settings.with_value(VERSION, 2)

    # ── looking in ─────────────────────────────────────────────────────────────────────────────

    def old_leases(self) -> list[OldLeaseRow]:
        return list(self.old_rows.list(self.store.snapshot()))

    def lease_rows(self) -> int:
        """How many rows there are, of either kind."""
        return len(self.old_leases()) + sum(1 for _ in self.rows.list(self.store.snapshot()))


def renamed(name: str) -> Callable[[AnyDescriptor], AnyDescriptor]:
    """Gives a table a new name; the old one drains."""
    return lambda former: replace(former, name=name, draining=(place_of(former),))
