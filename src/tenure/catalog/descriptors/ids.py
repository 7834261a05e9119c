"""Ids for new descriptors, drawn in blocks, outside of any transaction.

    store   the next unused id                      node   [ 140 141 .. 155 ]  handed out from memory

An id is never reused. A failed transaction may have left references to its new object in others (the target
of a foreign key refers to it before its table is published), which are cleaned up later: another object with
the same id would be mistaken for it. No statement reads the counter in its own transaction, so statements
that create objects do not conflict.

The numbers of PostgreSQL's own catalogs are left out. Clients know those by heart (to pg_dump
1259 is pg_class), and ids are shown as oids.

Invariant (id-once): no two descriptors ever have the same id.

Walk: `schema_change.changer` hands `next` to SQL's CREATE statements.
"""

from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.kv.store import Store

BLOCK_IDS = 16
"""Ids drawn at once: a script's objects cost few commits, and a node that stops leaves a small gap."""

OIDS_OF_CATALOGS = frozenset(
    (
        *(826, 1213, 1214, 1247, 1249, 1255, 1259, 1260, 1261, 1262, 1417, 1418, 2224, 2328, 2396),
        *(*range(2600, 2614), *range(2615, 2621), 2753, 2964, 2995),
        *(3079, 3118, 3256, 3350, 3381, 3394, 3429, 3456, 3466, 3501, 3541, 3576, 3592, 3596),
        *(*range(3600, 3604), 3764, 6000, 6100, 6102, 6104, 6106, 6237, 6243),
    )
)
"""Of the relations of pg_catalog that are tables."""


class DescriptorIds:
    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog
        self._lock = store.env.lock()
        self._left: list[int] = []

    def next(self) -> int:
        with self._lock:
            while not self._left:
                first = self._store.transact(lambda txn: self._catalog.fresh_ids(txn, BLOCK_IDS))
                self._left = [id for id in range(first, first + BLOCK_IDS) if id not in OIDS_OF_CATALOGS]
            return self._left.pop(0)
