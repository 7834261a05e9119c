"""All system tables of a node.

Walk: `node.py` hands `definitions()` to `VirtualTables`.
"""

from collections.abc import Iterator

from tenure.sql.tables import catalog as catalog_tables
from tenure.sql.tables import memory as memory_tables
from tenure.sql.tables import node as node_tables
from tenure.sql.tables import system as system_tables
from tenure.sql.tables.virtual import VirtualDefinition


def definitions() -> Iterator[VirtualDefinition]:
    yield from system_tables.definitions()
    yield from catalog_tables.definitions()
    yield from node_tables.definitions()
    yield from memory_tables.definitions()
