"""SHOW GRANTS: who was granted what.

    SHOW GRANTS [ON { [TABLE] t | SEQUENCE q | TYPE y | SCHEMA [d.]s | DATABASE d } [, ...]]
                [FOR role [, ...]]

Without ON, of the session's database and all that is in it. To name an object needs what it always needs,
USAGE on its schema; that of a schema any privilege on it, of a database CONNECT. Of the grants, each user is
shown those that `tenure_internal.grants` has for it.

Walk: `statements.statement_table` -> `GRANT_SHOWS` -> `statements.show.shows.query`.
"""

from collections.abc import Callable
from typing import TypeVar

from tenure.base.errors import UndefinedObject
from tenure.catalog.accounts.privileges import CONNECT, CREATE, USAGE
from tenure.catalog.descriptors.definitions import AnyDescriptor, EnumType, NameKey, Table, View
from tenure.catalog.descriptors.definitions import Sequence as Sequence_
from tenure.catalog.descriptors.role_records import PUBLIC_ROLE
from tenure.sql.execution.planner import Planner, WordsPlanner
from tenure.sql.execution.statement import Statement
from tenure.sql.statements.show.shows import database_named, object_named, query, schema_named
from tenure.sql.text.quoting import literal
from tenure.sql.text.tenure_statements import TokenReader

T = TypeVar("T")

COLUMNS = (
    "database_name, schema_name, object_name, object_type, column_name, grantor, grantee, privilege_type, "
    "is_grantable"
)


def grants(planner: Planner, reader: TokenReader) -> Statement:
    conditions = []
    if reader.take("on"):
        ids = _listed(reader, _target(planner, reader))
        conditions.append(f"object_id IN ({', '.join(str(each.id) for each in ids)})")
    else:
        conditions.append(f"database_name = {literal(planner.session.database_name)}")
    if reader.take("for"):
        roles = _listed(reader, lambda: _role(planner, reader.name()))
        conditions.append(f"grantee IN ({', '.join(map(literal, roles))})")
    reader.end()
    return query(
        planner,
        f"SELECT {COLUMNS} FROM tenure_internal.grants WHERE {' AND '.join(conditions)} "
        "ORDER BY 1, 2 NULLS FIRST, 4, 3, 5 NULLS FIRST, 7, 6, 8",
    )


def _listed(reader: TokenReader, read: Callable[[], T]) -> list[T]:
    found = [read()]
    while reader.take(","):
        found.append(read())
    return found


def _target(planner: Planner, reader: TokenReader) -> Callable[[], AnyDescriptor]:
    """Reads an object of the kind that is named once, before the first."""
    if reader.take("database"):
        return lambda: _database(planner, reader.name())
    if reader.take("schema"):
        return lambda: _schema(planner, reader.names())
    kinds: tuple[type, ...] = (Table, View, Sequence_)
    if reader.take("sequence"):
        kinds = (Sequence_,)
    elif reader.take("type"):
        kinds = (EnumType,)
    else:
        reader.take("table")
    return lambda: object_named(planner, reader.names(), kinds)


def _database(planner: Planner, name: str) -> AnyDescriptor:
    id = planner.names.id_at(NameKey(0, 0, database_named(planner, name)))
    found = None if id is None else planner.names.descriptor(id)
    assert found is not None, "a database that was found has a descriptor"
    planner.names.needs.add(found.id, CONNECT)
    return found


def _schema(planner: Planner, named: list[str]) -> AnyDescriptor:
    found = schema_named(planner, named)
    planner.names.needs.add(found.id, USAGE | CREATE)
    return found


def _role(planner: Planner, name: str) -> str:
    graph = planner.session.rights(planner.block).graph
    if name != PUBLIC_ROLE and graph.role(name) is None:
        raise UndefinedObject(f'role "{name}" does not exist')
    return name


GRANT_SHOWS: dict[tuple[str, ...], WordsPlanner] = {("show", "grants"): grants}
