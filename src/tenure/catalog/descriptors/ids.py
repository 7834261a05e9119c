"""Ids for new descriptors, drawn in blocks, outside of any transaction.

    store   the next unused id                      node   [ 140 141 .. 155 ]  handed out from memory

An id is never reused. A failed transaction may have left references to its new object in others (the target
of a foreign key refers to it before its table is published), which are cleaned up later: another object with
the same id would be mistaken for it. No statement reads the counter in its own transaction, so statements
that create objects do not conflict.

Invariant (id-once): no two descriptors ever have the same id.

Walk: `schema_change.changer` hands `next` to SQL's CREATE statements.
"""

from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.kv.store import Store

BLOCK_IDS = 16
"""Ids drawn at once: a script's objects cost few commits, and a node that stops leaves a small gap."""


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
