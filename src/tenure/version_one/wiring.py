"""A node's part in a cluster that is not finalized: how it acts as version 1, or for nodes of version 1.

    version 1            jobs held by instances that live by heartbeats; a lease for each descriptor
    not yet finalized    both ways at once
    finalized            nothing of this: the node does not even import it

Walk: `composition.older_versions` makes a `VersionOne` when the cluster's version says so; this calls the
constructors of its package.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tenure.base.errors import ClusterFinalized, SessionLost
from tenure.base.settings import LIVENESS_TTL, Settings
from tenure.base.timestamp import ZERO_AT
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.leases.blockers import LeaseTable
from tenure.catalog.leases.lease_scheme import LeaseScheme
from tenure.catalog.leases.node_leases import Leases
from tenure.cluster.jobs.claims import Claims
from tenure.cluster.sessions.liveness import NodeSession
from tenure.cluster.sessions.session_records import Sessions
from tenure.cluster.sessions.versions import Versions
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.version_one.descriptor_leases import DescriptorLeases
from tenure.version_one.expiring_lease_rows import OldLeaseRows
from tenure.version_one.expiring_lease_table import ExpiringLeaseTable
from tenure.version_one.expiring_scheme import ExpiringLeases
from tenure.version_one.mixed_scheme import MixedLeases
from tenure.version_one.old_claims import MixedClaims, OldClaims
from tenure.version_one.old_heartbeats import OldHeartbeats
from tenure.version_one.old_liveness import OldLiveness, reap_old


class SchemeWithTables(NamedTuple):
    """The lease scheme of a node, and the tables of rows that it waits for."""

    leases: LeaseScheme
    tables: Callable[[], Sequence[LeaseTable]]


class VersionOne:
    def __init__(
        self, store: Store, sessions: Sessions, versions: Versions, settings: Callable[[], Settings]
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._versions = versions
        self._settings = settings
        self._heartbeats = OldHeartbeats(store.keyspace)
        self.old_claims: Claims = OldClaims(sessions, self._heartbeats)
        self.mixed_claims: Claims = MixedClaims(sessions, self._heartbeats)

    def liveness(self, on_lost: Callable[[NodeSession], None]) -> OldLiveness:
        """The liveness of a node that was told to be of version 1."""
        return OldLiveness(
            self._store,
            self._sessions,
            self._heartbeats,
            self._versions,
            self._settings,
            address="",
            on_lost=on_lost,
        )

    def beat(self, txn: Transaction, instance: int) -> None:
        """Writes a newer node's heartbeat in the older way, beside that of its session."""
        self._heartbeats.beat(txn, instance, ttl_seconds=self._settings()[LIVENESS_TTL])

    def reap(self) -> None:
        """Removes instances of version 1 that are dead: a slow step for a loop."""
        reap_old(self._store, self._sessions, self._heartbeats)

    def expiring_leases(self, catalog: Catalog, session: Callable[[], NodeSession]) -> SchemeWithTables:
        """The lease scheme of a node that was told to be of version 1."""

        def check(txn: Transaction) -> None:
            """A node of version 1 that was thought dead may not come back after finalizing."""
            instance = self._sessions.instances.get(txn, session().id.instance)
            if instance is None or instance.epoch_at != ZERO_AT:
                raise SessionLost("this node's instance id is gone; it is getting a new one")

        leases, table = self._descriptor_leases(catalog, session, check)
        scheme = ExpiringLeases(self._store, catalog, leases, session, self._settings)
        return SchemeWithTables(scheme, lambda: (table,))

    def mixed_leases(
        self,
        catalog: Catalog,
        session: Callable[[], NodeSession],
        leases: Leases,
        table: LeaseTable,
        is_finalized: Callable[[], bool],
    ) -> SchemeWithTables:
        """A newer node's schema leases and their table, with expiring leases beside until finalized."""

        def check(txn: Transaction) -> None:
            if self._versions.is_finalized(txn):
                raise ClusterFinalized("the cluster is finalized: expiring leases are of the past")

        beside, old_table = self._descriptor_leases(catalog, session, check)
        mixed = MixedLeases(self._store, catalog, leases, beside, old_table, is_finalized)
        return SchemeWithTables(mixed, lambda: (table,) if mixed.is_over else (table, old_table))

    def _descriptor_leases(
        self,
        catalog: Catalog,
        session: Callable[[], NodeSession],
        check: Callable[[Transaction], None],
    ) -> tuple[DescriptorLeases, ExpiringLeaseTable]:
        rows = OldLeaseRows(self._store.keyspace, catalog)
        leases = DescriptorLeases(
            self._store, catalog, rows, lambda: session().id.instance, self._settings, check=check
        )
        return leases, ExpiringLeaseTable(self._store, rows, leases.owner)
