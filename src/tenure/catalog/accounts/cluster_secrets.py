"""The cluster's own secrets: the same on every node, made by the first node that needs one, never displayed.

They are in the store, in a table that no SQL reads: a user who can read the store's files has them too.

Walk: `catalog.accounts.users` has one for logins, `catalog.accounts.sealing` one for credentials in jobs'
records.
"""

from tenure.kv.keys import CLUSTER_SECRETS, Keyspace
from tenure.kv.records import Record, Records
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction


class Secret(Record, frozen=True):
    name: str
    value: bytes

    def __repr__(self) -> str:
        return f"Secret({self.name!r})"


class ClusterSecrets:
    def __init__(self, keyspace: Keyspace) -> None:
        self._secrets = Records(keyspace, CLUSTER_SECRETS, Secret, key=("name",))

    def get(self, txn: Transaction | Snapshot, name: str) -> bytes | None:
        found = self._secrets.get(txn, name)
        return None if found is None else found.value

    def get_or_put(self, txn: Transaction, name: str, fresh: bytes) -> bytes:
        """The secret of a name; `fresh` is stored if there is none yet."""
        stored = self.get(txn, name)
        if stored is not None:
            return stored
        self._secrets.put(txn, Secret(name, fresh))
        return fresh
