"""What a node does for nodes of version 1, or as one, until the cluster is finalized.

The package `version_one` is imported when the cluster's version says that it is needed: a node of a finalized
cluster runs without it.

Walk: `composition.cluster_layer` makes an `OlderVersions`, hands `beat` to the session and `claims` to the
jobs; `composition.catalog_layer` asks `is_past`; this makes a `VersionOne`.
"""

from typing import TYPE_CHECKING

from tenure.base.settings import VERSION
from tenure.cluster.jobs.claims import Claims, SessionClaims
from tenure.cluster.sessions.session_records import Sessions
from tenure.cluster.sessions.versions import PROGRAM, Versions
from tenure.cluster.settings import ClusterSettings
from tenure.composition.options import NodeOptions
from tenure.kv.keys import OLD_LEASES
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction

if TYPE_CHECKING:
    from tenure.version_one.wiring import VersionOne  # imported where it is needed, by `version_one`


class OlderVersions:
    def __init__(
        self,
        options: NodeOptions,
        store: Store,
        sessions: Sessions,
        versions: Versions,
        settings: ClusterSettings,
    ) -> None:
        self._is_version_one = options.is_version_one
        self._store = store
        self._sessions = sessions
        self._versions = versions
        self._settings = settings
        self._by_session = SessionClaims(sessions)
        self._version_one: VersionOne | None = None

    def is_finalized(self) -> bool:
        """Whether no node of an older version exists or can join, as far as this node knows."""
        return self._settings.current()[VERSION] >= PROGRAM

    def is_past(self) -> bool:
        """Whether the cluster is finalized and has no expiring lease left: then there will never be one.

        A row of an expiring lease is written only in a transaction that finds the cluster not finalized.
        """
        snapshot = self._store.snapshot()
        span = self._store.keyspace.table_span(OLD_LEASES)
        return self._versions.is_finalized(snapshot) and not any(snapshot.scan(span, limit=1))

    def beat(self, txn: Transaction, instance: int) -> None:
        """Writes the heartbeat that nodes of version 1 look at."""
        # The transaction that makes the first session of a cluster also writes the version.
        if not self.is_finalized() and not self._versions.is_finalized(txn):
            self.version_one().beat(txn, instance)

    def claims(self) -> Claims:
        """The way in which this node claims jobs."""
        if self._is_version_one:
            return self.version_one().old_claims
        return self._by_session if self.is_finalized() else self.version_one().mixed_claims

    def reap(self) -> None:
        """Removes dead instances of version 1: a slow step for a loop."""
        if not self.is_finalized():
            self.version_one().reap()

    def version_one(self) -> "VersionOne":
        if self._version_one is None:
            from tenure.version_one.wiring import VersionOne

            self._version_one = VersionOne(
                self._store, self._sessions, self._versions, self._settings.current
            )
        return self._version_one
