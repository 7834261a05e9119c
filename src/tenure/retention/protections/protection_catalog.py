"""Lists of protections, as of a transaction's or a snapshot's time.

Equal versions of the meta record mean equal lists: who has a list and reads the same version later may go on
with the list, as of the later time.

Walk: `tracking.tracker` reads `metadata`, and `list_all` when it has changed; system tables call `list_all`.
"""

from typing import NamedTuple

from tenure.catalog.descriptors.protection_meta import ProtectionMeta, protection_meta
from tenure.kv.keys import Keyspace
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.retention.protections.protection_records import Protection, protections


class StoredProtections(NamedTuple):
    meta: ProtectionMeta
    records: tuple[Protection, ...]


class ProtectionCatalog:
    def __init__(self, keyspace: Keyspace) -> None:
        self._meta = protection_meta(keyspace)
        self._records = protections(keyspace)

    def metadata(self, txn: Transaction | Snapshot) -> ProtectionMeta:
        return self._meta.get(txn) or ProtectionMeta()

    def list_all(self, txn: Transaction | Snapshot) -> StoredProtections:
        return StoredProtections(self.metadata(txn), tuple(self._records.scan(txn)))
