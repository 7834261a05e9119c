"""How a node leases the schema, by its version and the cluster's: wired apart from the node's other parts.

    version 1            leases that expire, one for each descriptor version
    not yet finalized    both ways at once
    finalized            one lease for the schema, which hangs on the node's session

Walk: `node.py` calls `lease_scheme` once, before anything uses the catalog.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tenure.base.errors import ClusterFinalized, SessionLost
from tenure.base.settings import Settings
from tenure.base.timestamp import ZERO_AT
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.expiring_leases.descriptor_leases import DescriptorLeases
from tenure.catalog.expiring_leases.expiring_scheme import ExpiringLeases
from tenure.catalog.expiring_leases.mixed_scheme import MixedLeases
from tenure.catalog.leases.blockers import ExpiringLeaseTable, LeaseTable, SchemaLeaseTable
from tenure.catalog.leases.expiring_lease_rows import OldLeaseRows
from tenure.catalog.leases.lease_rows import LeaseRows
from tenure.catalog.leases.lease_scheme import LeaseScheme
from tenure.catalog.leases.node_leases import Leases
from tenure.cluster.sessions.deaths import Deaths
from tenure.cluster.sessions.liveness import NodeSession
from tenure.cluster.sessions.session_records import Sessions
from tenure.cluster.sessions.versions import OLDEST, PROGRAM, Versions
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction


class Leaseholder(NamedTuple):
    """What of a node its leases need."""

    store: Store
    catalog: Catalog
    sessions: Sessions
    versions: Versions
    deaths: Deaths
    session: Callable[[], NodeSession]
    settings: Callable[[], Settings]
    is_alone: Callable[[], bool]
    is_finalized: Callable[[], bool]


def lease_scheme(node: Leaseholder, version: int) -> tuple[LeaseScheme, Callable[[], Sequence[LeaseTable]]]:
    """How a node of this version leases, and whose rows it waits for."""
    store, catalog, session, settings = node.store, node.catalog, node.session, node.settings
    old_rows = OldLeaseRows(store.keyspace, catalog)
    check = _check_old_instance(node) if version == OLDEST else _check_not_finalized(node)
    expiring = DescriptorLeases(
        store, catalog, old_rows, lambda: session().id.instance, settings, check=check
    )
    by_version = ExpiringLeaseTable(store, old_rows, expiring.owner)
    if version == OLDEST:
        return ExpiringLeases(store, catalog, expiring, session, settings), lambda: (by_version,)
    rows = LeaseRows(store.keyspace, node.sessions)
    leases = Leases(store, catalog, rows, session, settings, is_alone=node.is_alone)
    mixed = MixedLeases(store, catalog, leases, expiring, by_version, node.is_finalized)
    by_session = SchemaLeaseTable(store, rows, node.deaths, lambda: session().id)
    return mixed, lambda: (by_session,) if mixed.is_over else (by_session, by_version)


def _check_not_finalized(node: Leaseholder) -> Callable[[Transaction], None]:
    def check(txn: Transaction) -> None:
        if (node.versions.cluster(txn) or OLDEST) >= PROGRAM:
            raise ClusterFinalized("the cluster is finalized: expiring leases are of the past")

    return check


def _check_old_instance(node: Leaseholder) -> Callable[[Transaction], None]:
    def check(txn: Transaction) -> None:
        """A node of version 1 that was thought dead may not come back after finalizing."""
        instance = node.sessions.instances.get(txn, node.session().id.instance)
        if instance is None or instance.epoch_at != ZERO_AT:
            raise SessionLost("this node's instance id is gone; it is getting a new one")

    return check
