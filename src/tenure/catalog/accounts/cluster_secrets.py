"""Secrets of the cluster's own: the same on every node, made by the first node that needs one, shown nowhere.

They are in the store, in a table that no SQL reads: who has the store's files has them too.

Walk: `catalog.accounts.users` has one for logins, `bulk.sealing` one for what jobs must keep to themselves.
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

    def made(self, txn: Transaction, name: str, fresh: bytes) -> bytes:
        """The secret of a name; `fresh` becomes it if there is none yet."""
        known = self.get(txn, name)
        if known is not None:
            return known
        self._secrets.put(txn, Secret(name, fresh))
        return fresh
