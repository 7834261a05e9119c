"""All system tables of a node.

Walk: `front` asks for the `system_tables` of its node and hands them to the sessions.
"""

from tenure.sql.tables import catalog as catalog_tables
from tenure.sql.tables import memory as memory_tables
from tenure.sql.tables import node as node_tables
from tenure.sql.tables import pg_catalog
from tenure.sql.tables import system as system_records
from tenure.sql.tables.node_view import NodeView
from tenure.sql.tables.virtual import VirtualDefinition, VirtualTables


def system_tables(node: NodeView) -> VirtualTables:
    return VirtualTables(definitions(node), node.sequences)


def definitions(node: NodeView) -> list[VirtualDefinition]:
    found: list[VirtualDefinition] = []
    found += system_records.definitions(node)
    found += catalog_tables.definitions(lambda: found)
    found += node_tables.definitions(node)
    found += memory_tables.definitions(node)
    found += pg_catalog.definitions()
    return found
