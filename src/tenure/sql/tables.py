"""All system tables of a node.

Walk: `node.py` hands `definitions()` to `VirtualTables`.
"""

from collections.abc import Iterator

from tenure.sql import catalog_tables, node_tables, system_tables
from tenure.sql.virtual import Definition


def definitions() -> Iterator[Definition]:
    yield from system_tables.definitions()
    yield from catalog_tables.definitions()
    yield from node_tables.definitions()
