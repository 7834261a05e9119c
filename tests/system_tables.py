"""The system tables as they are described: names and columns are the same on every node.

Walk: tests list `described()`.
"""

from typing import Any, cast

from tenure.sql.tables.all import definitions
from tenure.sql.tables.node_view import NodeView
from tenure.sql.tables.virtual import VirtualDefinition


def described() -> list[VirtualDefinition]:
    """All but those that are PostgreSQL's."""
    return [each for each in _all() if each.schema not in CATALOGS]


def catalogs() -> list[VirtualDefinition]:
    """Those of pg_catalog and information_schema."""
    return [each for each in _all() if each.schema in CATALOGS]


CATALOGS = ("pg_catalog", "information_schema")


def _all() -> list[VirtualDefinition]:
    no_node = cast(NodeView, cast(Any, None))  # only reading rows would ask it
    return definitions(no_node)
