"""All relations of pg_catalog: those with rows, and the rest, which are there and empty.

Walk: `sql.tables.all` lists `definitions` among the system tables; `sql.tables.virtual` finds them.
"""

from collections.abc import Iterator, Sequence

from tenure.expr.types.datatype import Datum
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.node_view import NodeView
from tenure.sql.tables.pg_catalog import (
    classes,
    databases,
    default_privileges,
    dependencies,
    descriptions,
    functions,
    indexes,
    listings,
    node_state,
    operators,
    roles,
    rules,
    sequences,
    types,
)
from tenure.sql.tables.pg_catalog.shapes import shapes
from tenure.sql.tables.virtual import Rows, VirtualDefinition

RESTRICTED = ("pg_statistic", "pg_user_mapping", "pg_subscription", "pg_hba_file_rules", "pg_file_settings")
"""Of those without rows: PostgreSQL shows them to superusers alone."""


def definitions(node: NodeView) -> Iterator[VirtualDefinition]:
    filled = [
        *classes.definitions(),
        *indexes.definitions(),
        *types.definitions(),
        *functions.definitions(),
        *operators.definitions(),
        *databases.definitions(),
        *roles.definitions(),
        *sequences.definitions(node),
        *default_privileges.definitions(node),
        *rules.definitions(),
        *descriptions.definitions(),
        *dependencies.definitions(),
        *listings.definitions(),
        *node_state.definitions(node),
    ]
    yield from filled
    names = {each.name for each in filled}
    for name, shape in shapes().items():
        if name not in names:
            lookups = {column.name: _nothing for column in shape.columns}
            yield shape.defined(_nothing, lookups, is_restricted=name in RESTRICTED)


def _nothing(reader: TableReader, values: Sequence[Datum] = ()) -> Rows:
    """Also by the values of any column: so a join begins with what is empty."""
    return ()
