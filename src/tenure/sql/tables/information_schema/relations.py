"""All views of information_schema: those with rows, and the rest, which are there and empty.

Users see the objects that they own or have any privilege on, as in PostgreSQL.

Walk: `sql.tables.all` lists `definitions` among the system tables.
"""

from collections.abc import Iterator

from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.information_schema import columns, constraints, objects, privileges
from tenure.sql.tables.information_schema.shapes import information_shapes
from tenure.sql.tables.virtual import Rows, VirtualDefinition


def definitions() -> Iterator[VirtualDefinition]:
    filled = [
        *objects.definitions(),
        *columns.definitions(),
        *constraints.definitions(),
        *privileges.definitions(),
    ]
    yield from filled
    names = {each.name for each in filled}
    yield from (each.defined(_nothing) for each in information_shapes().values() if each.name not in names)


def _nothing(reader: TableReader) -> Rows:
    return ()
