"""Ids for new descriptors, taken in blocks, outside of any transaction.

    store   the next id that nobody has taken        node   [ 140 141 .. 155 ]  handed out from memory

An id that was given is never given again. A transaction that fails may have left marks of the object it was
about to make in others (a foreign key is known to its target before its table is there), which are
cleaned up later: another object by the same id would be taken for the one they mean. No statement reads the
counter in its own transaction, so statements that make objects do not conflict.

Invariant (id-once): no two descriptors ever have the same id.

Walk: `schema_change.changer` hands `next` to SQL's CREATE statements.
"""

from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.kv.store import Store

BLOCK_IDS = 16
"""Ids taken at once: what a script makes costs few commits, what a node leaves behind is a small gap."""


class DescriptorIds:
    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog
        self._lock = store.env.lock()
        self._left = range(0)

    def next(self) -> int:
        with self._lock:
            if not self._left:
                first = self._store.transact(lambda txn: self._catalog.fresh_ids(txn, BLOCK_IDS))
                self._left = range(first, first + BLOCK_IDS)
            id, self._left = self._left[0], self._left[1:]
            return id
