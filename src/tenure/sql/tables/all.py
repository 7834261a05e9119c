"""All system tables of a node.

Walk: `front` asks for the `system_tables` of its node and hands them to the sessions.
"""

from functools import partial

from tenure.sql.tables import catalog as catalog_tables
from tenure.sql.tables import changefeed_jobs, cross_references, gc_status, grants
from tenure.sql.tables import memory as memory_tables
from tenure.sql.tables import node as node_tables
from tenure.sql.tables import retention as retention_tables
from tenure.sql.tables import system as system_records
from tenure.sql.tables.information_schema import relations as information_schema
from tenure.sql.tables.node_view import NodeView
from tenure.sql.tables.pg_catalog import relations as pg_catalog
from tenure.sql.tables.pg_catalog.answers import CatalogAnswers
from tenure.sql.tables.virtual import VirtualDefinition, VirtualTables


def system_tables(node: NodeView) -> VirtualTables:
    return VirtualTables(definitions(node), node.sequences, answers=partial(CatalogAnswers, node))


def definitions(node: NodeView) -> list[VirtualDefinition]:
    found: list[VirtualDefinition] = []
    found += system_records.definitions(node)
    found += catalog_tables.definitions(lambda: found)
    found += cross_references.definitions()
    found += grants.definitions()
    found += node_tables.definitions(node)
    found += memory_tables.definitions(node)
    found += gc_status.definitions(node)
    found += changefeed_jobs.definitions(node)
    found += retention_tables.definitions(node)
    found += pg_catalog.definitions(node)
    found += information_schema.definitions()
    return found
