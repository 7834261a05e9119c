"""The catalog of a node: descriptors, leases, waiting for those of other nodes, publishing.

Walk: `node.py` calls `build_catalog` once the node has a session; this chooses the lease scheme by the
node's version and the cluster's, and makes `LeaseWaits`, `Holders` and the `Publisher`.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tenure.catalog.bootstrap import bootstrap
from tenure.catalog.changes.lock_schedule import LockSchedule
from tenure.catalog.changes.publisher import Publisher
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.leases.blockers import LeaseTable, SchemaLeaseTable
from tenure.catalog.leases.holder_eviction import Holders
from tenure.catalog.leases.lease_rows import LeaseRows
from tenure.catalog.leases.lease_scheme import LeaseScheme
from tenure.catalog.leases.lease_waits import LeaseWaits
from tenure.catalog.leases.node_leases import Leases
from tenure.catalog.leases.wait_records import WaitRecords
from tenure.composition.cluster_layer import ClusterLayer
from tenure.composition.node_start import NodeStart
from tenure.kv.store import Store


class CatalogLayer(NamedTuple):
    catalog: Catalog
    leases: LeaseScheme
    lease_tables: Callable[[], Sequence[LeaseTable]]
    """The lease holders that this node waits for."""
    lease_waits: LeaseWaits
    holders: Holders
    publisher: Publisher
    locks: LockSchedule


def build_catalog(start: NodeStart, store: Store, cluster: ClusterLayer) -> CatalogLayer:
    keyspace = store.keyspace
    catalog = Catalog(keyspace)
    store.transact(lambda txn: bootstrap(txn, keyspace, catalog))
    session, settings, deaths = cluster.liveness.session, cluster.settings.current, cluster.deaths
    leases, tables = _lease_scheme(start, store, catalog, cluster)
    cluster.on_lost.append(leases.end_session)
    start.lifecycle.on_stop(leases.close)
    start.lifecycle.on_stop_close("leases", leases.release)
    records = WaitRecords(keyspace)
    waits = LeaseWaits(store, leases, tables, records, cluster.sessions, deaths, session, settings)
    holders = Holders(store, leases, records, deaths, settings)
    start.lifecycle.on_stop(holders.close)
    publisher = Publisher(store, catalog, waits)
    locks = LockSchedule(store, catalog, leases, publisher, cluster.jobs, cluster.older.is_finalized)
    return CatalogLayer(catalog, leases, tables, waits, holders, publisher, locks)


def _lease_scheme(
    start: NodeStart, store: Store, catalog: Catalog, cluster: ClusterLayer
) -> tuple[LeaseScheme, Callable[[], Sequence[LeaseTable]]]:
    """The lease scheme of this node, and the lease holders that it waits for."""
    session, older = cluster.liveness.session, cluster.older
    if start.options.is_version_one:
        return older.version_one().expiring_leases(catalog, session)
    rows = LeaseRows(store.keyspace, cluster.sessions)
    leases = Leases(
        store, catalog, rows, session, cluster.settings.current, is_alone=cluster.neighbours.is_alone
    )
    table = SchemaLeaseTable(store, rows, cluster.deaths, cluster.session_id)
    if older.is_past():
        return leases, lambda: (table,)
    return older.version_one().mixed_leases(catalog, session, leases, table, older.is_finalized)
