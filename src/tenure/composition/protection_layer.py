"""The protections of a node: their store, the node's copy of them, and what protects and releases by itself.

Walk: `node.py` calls `build_protections` after the catalog is there; this makes the `ProtectionStore`, the
`Tracker`, `JobProtections`, `LongReads` and the `Reconciler`, and starts their loops.
"""

from typing import NamedTuple

from tenure.cluster.sessions.session_records import parse_session_id
from tenure.composition.catalog_layer import CatalogLayer
from tenure.composition.cluster_layer import ClusterLayer
from tenure.composition.node_start import NodeStart
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.retention import long_reads, snapshots
from tenure.retention.job_protections import JobProtections, job_owner
from tenure.retention.long_reads import LongReads
from tenure.retention.protections.protection_records import JOB
from tenure.retention.protections.protection_store import ProtectionStore
from tenure.retention.reconciler import Owner, Reconciler
from tenure.retention.snapshots import NamedSnapshots
from tenure.retention.tracking.tracker import Tracker
from tenure.sql.session.open_reads import OpenReads


class ProtectionLayer(NamedTuple):
    store: ProtectionStore
    tracker: Tracker
    of_jobs: JobProtections
    open_reads: OpenReads
    long_reads: LongReads
    snapshots: NamedSnapshots
    reconciler: Reconciler


def build_protections(
    start: NodeStart, store: Store, cluster: ClusterLayer, catalog: CatalogLayer
) -> ProtectionLayer:
    settings, lifecycle = cluster.settings.current, start.lifecycle
    protections = ProtectionStore(store, catalog.catalog, settings)
    tracker = Tracker(store, settings)
    of_jobs = JobProtections(store.keyspace, protections)
    cluster.jobs.on_end.append(of_jobs.release_all)
    open_reads = OpenReads(start.env, catalog.leases)
    reads = LongReads(store, catalog.catalog, protections, open_reads.list_all, cluster.session_id, settings)
    named = NamedSnapshots(store.keyspace, protections, settings)
    reconciler = Reconciler(store, protections, _owners(cluster, named))
    if not start.options.is_version_one:
        lifecycle.on_stop(tracker.close)
        lifecycle.on_stop_close("long reads", reads.close)
        lifecycle.run(
            lifecycle.loop("protections", tracker.step, interrupt=tracker.wake),
            lifecycle.loop("long reads", reads.step),
            lifecycle.loop("reconciler", reconciler.step),
        )
    return ProtectionLayer(protections, tracker, of_jobs, open_reads, reads, named, reconciler)


def _owners(cluster: ClusterLayer, named: NamedSnapshots) -> dict[str, Owner]:
    """The kinds of owners of protections: jobs, named snapshots, and nodes for their long reads."""
    sessions = cluster.sessions

    def has_session(txn: Transaction, meta: bytes) -> bool:
        session = parse_session_id(meta)
        return session is not None and sessions.find(txn, session) is not None

    return {
        JOB: job_owner(cluster.jobs),
        snapshots.OWNER: Owner(named.exists, named.expire),
        # A read fails by itself once its protection is gone.
        long_reads.OWNER: Owner(has_session, lambda txn, meta, reason: None),
    }
