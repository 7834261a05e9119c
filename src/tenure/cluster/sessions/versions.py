"""The cluster's version: which nodes may run together, and which features they may use.

    program   the version that a process is built as: PROGRAM, or the older one it was told to be
    cluster   the setting `version` in the store: what every node of the cluster supports

Programs one version apart run together. While the cluster's version is lower than a program's, the cluster is
not finalized and the newer nodes keep doing what the older ones need. Setting `version` finalizes; it is
refused while an instance of an older version exists, and from then on such an instance cannot join. Both
transactions read and write the same records, so they cannot interleave.

    version   since it, nodes ...
    1         hold jobs by instance id, which lives by heartbeats of its own, and lease descriptors one
              by one, for some minutes: all of it is in `version_one`
    2         keep the head clock of the store (`storage.engine`), hold jobs by node sessions, and lease
              the whole catalog under one (`catalog.leases.node_leases`)

Invariant (version-join): no instance that is older than the cluster's version joins, and the version is not
raised past an existing instance.

Walk: `liveness` calls `join` in the transaction that makes its session; SET calls `finalize`.
"""

from tenure.base.errors import NewerFormat, OlderInstances
from tenure.base.settings import VERSION
from tenure.cluster.sessions.session_records import Sessions
from tenure.cluster.settings import StoredSetting
from tenure.kv.keys import SETTINGS, Keyspace
from tenure.kv.records import Records
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction

PROGRAM = 2
"""The version of this program."""

HEAD_CLOCK = 2
"""The first version whose nodes keep the head clock with every commit."""

OLDEST = 1
"""The oldest version that it can emulate and share a cluster with."""


class Versions:
    def __init__(self, keyspace: Keyspace, sessions: Sessions) -> None:
        self._settings = Records(keyspace, SETTINGS, StoredSetting, key=("name",))
        self._sessions = sessions

    def cluster(self, txn: Transaction | Snapshot) -> int | None:
        """The cluster's version; None for a store that no node has joined yet."""
        stored = self._settings.get(txn, VERSION.name)
        return None if stored is None else VERSION.parse(stored.text)

    def is_finalized(self, txn: Transaction | Snapshot) -> bool:
        """Whether no node of an older version exists or can join; once true it stays true."""
        return (self.cluster(txn) or OLDEST) >= PROGRAM

    def join(self, txn: Transaction, program: int) -> None:
        """Admits a node if the cluster's version allows; the first node sets the cluster's version to its
        own.
        """
        cluster = self.cluster(txn)
        if cluster is None:
            _start_head_clock(txn, program)
            self._settings.put(txn, StoredSetting(VERSION.name, VERSION.render(program)))
        elif cluster > program:
            raise NewerFormat(
                f"the cluster has version {cluster}; this program is of version {program}",
                hint="Upgrade this node to the version of the others.",
            )
        elif cluster < program - 1:
            raise NewerFormat(
                f"the cluster has version {cluster}; this program, of version {program}, "
                f"can join from version {program - 1} on",
                hint=f"Upgrade the cluster to version {program - 1} first, and finalize it.",
            )

    def finalize(self, txn: Transaction, version: int) -> None:
        """Raises the cluster's version; refused while an instance of an older one exists."""
        cluster = self.cluster(txn)
        if cluster is not None and version < cluster:
            raise OlderInstances(f"the cluster has version {cluster} and cannot go back to {version}")
        older = [each for each in self._sessions.instances.scan(txn) if each.version < version]
        if older:
            names = ", ".join(f"{each.id} (version {each.version})" for each in older)
            raise OlderInstances(
                f"version {version} cannot be finalized: older instances are there: {names}",
                hint="Upgrade or stop them first; a dead one goes away with its session.",
            )
        _start_head_clock(txn, version)
        self._settings.put(txn, StoredSetting(VERSION.name, VERSION.render(version)))


def _start_head_clock(txn: Transaction, version: int) -> None:
    """No node of an older version writes from this commit on, so watches may trust the head clock."""
    if version >= HEAD_CLOCK:
        txn.start_head_clock()
