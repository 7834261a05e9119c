"""The system tables as they are described: names and columns are the same on every node.

Walk: tests list `described()`.
"""

from typing import Any, cast

from tenure.sql.tables.all import definitions
from tenure.sql.tables.node_view import NodeView
from tenure.sql.tables.virtual import VirtualDefinition


def described() -> list[VirtualDefinition]:
    """All but PostgreSQL's own."""
    no_node = cast(NodeView, cast(Any, None))  # only reading rows would ask it
    return [each for each in definitions(no_node) if each.schema != "pg_catalog"]
