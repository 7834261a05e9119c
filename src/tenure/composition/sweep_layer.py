"""The parts that the sweeps of a node work on.

Walk: `composition.job_layer` calls `build_sweeps` -> `SweepServices`.
"""

from functools import partial

from tenure.bulk import flush
from tenure.composition.catalog_layer import CatalogLayer
from tenure.composition.cluster_layer import ClusterLayer
from tenure.composition.protection_layer import ProtectionLayer
from tenure.composition.table_layer import TableLayer
from tenure.kv.store import Store
from tenure.retention.sweeping.services import SweepServices
from tenure.table.lake.manifests import Manifests
from tenure.table.lake.publishing import Merges


def build_sweeps(
    store: Store,
    cluster: ClusterLayer,
    catalog: CatalogLayer,
    protections: ProtectionLayer,
    tables: TableLayer,
) -> SweepServices:
    settings, lake = cluster.settings.current, tables.lake
    return SweepServices(
        store,
        catalog.catalog,
        catalog.publisher,
        cluster.jobs,
        protections.tracker,
        Manifests(store.keyspace),
        Merges(store.keyspace),
        tables.sequences,
        settings,
        start_merge=None if lake is None else partial(flush.start_by_sweep, lake),
    )
