"""A store with a catalog, tables that are published as DDL would, and protections of them."""

from collections.abc import Callable
from typing import TypeVar

from tenure.base.env import ManualEnv
from tenure.base.settings import DEFINITIONS, Settings
from tenure.base.timestamp import Timestamp
from tenure.catalog.bootstrap import bootstrap
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import (
    DEFAULT_DATABASE,
    DEFAULT_SCHEMA,
    AnyDescriptor,
    Table,
    next_version,
    replace,
)
from tenure.catalog.descriptors.protection_meta import ProtectionMeta
from tenure.catalog.descriptors.zones import Zone, ZoneKey, all_zones, zones
from tenure.kv.store import Store
from tenure.kv.thresholds import publish_threshold
from tenure.kv.transaction import Transaction
from tenure.retention.protections.protection_catalog import ProtectionCatalog, StoredProtections
from tenure.retention.protections.protection_records import Mode, Targets
from tenure.retention.protections.protection_store import ProtectionStore
from tenure.storage.engine import Engine
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.catalog.tables import users

T = TypeVar("T")

OWNER = ("job", b"7")


class ProtectedStore:
    """What a node has of retention, over one engine."""

    def __init__(self, engine: Engine | None = None, env: ManualEnv | None = None) -> None:
        self.env = env or ManualEnv()
        self.engine = engine or SqliteEngine(MEMORY, self.env)
        self.store = Store(self.engine, self.env)
        self.keyspace = self.store.keyspace
        self.catalog = Catalog(self.keyspace)
        self.settings = Settings(DEFINITIONS)
        self.protections = ProtectionStore(self.store, self.catalog, lambda: self.settings)
        self.listing = ProtectionCatalog(self.keyspace)
        self.transact(lambda txn: bootstrap(txn, self.keyspace, self.catalog))

    def transact(self, run: Callable[[Transaction], T]) -> T:
        return self.store.transact(run, attempts=1)

    def now(self) -> Timestamp:
        return self.store.snapshot().at

    def state(self) -> StoredProtections:
        return self.listing.list_all(self.store.snapshot())

    def meta(self) -> ProtectionMeta:
        return self.state().meta

    # ── the catalog ────────────────────────────────────────────────────────────────────────────

    def create(self, id: int, *, schema: int = DEFAULT_SCHEMA, database: int = DEFAULT_DATABASE) -> Timestamp:
        return self.publish(users(id=id, name=f"t{id}", schema=schema, database=database))

    def publish(self, descriptor: AnyDescriptor) -> Timestamp:
        """Writes a version, and returns its modification time."""
        txn = self.store.begin()
        self.catalog.put(txn, descriptor)
        return txn.commit()

    def alter(self, id: int, **fields: object) -> Timestamp:
        table = self.catalog.get(self.store.snapshot(), id)
        assert isinstance(table, Table)
        return self.publish(replace(next_version(table), **fields))

    def head(self, table: int, index: int = 1) -> bytes:
        return self.keyspace.head(table, index)

    # ── retention ──────────────────────────────────────────────────────────────────────────────

    def set_ttl(self, seconds: int, descriptor: int = 0, index: int = 0) -> None:
        self.transact(lambda txn: zones(self.keyspace).put(txn, Zone(descriptor, index, seconds)))

    def zones(self) -> dict[ZoneKey, Zone]:
        return all_zones(self.store.snapshot(), self.keyspace)

    def raise_threshold(self, head: bytes, at: Timestamp) -> None:
        self.transact(lambda txn: publish_threshold(txn, self.keyspace, head, at))

    def protect(self, at: Timestamp, mode: Mode, *objects: int) -> bytes:
        return self.transact(
            lambda txn: self.protections.protect(txn, at, mode, *OWNER, Targets(tuple(objects)))
        )

    def release(self, id: bytes) -> None:
        self.transact(lambda txn: self.protections.release(txn, id))
