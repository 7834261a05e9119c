"""Functions that tell who may do what: has_table_privilege() and others, pg_has_role().

    has_table_privilege([user,] table, 'SELECT, INSERT WITH GRANT OPTION')

Users and objects are given by name or by oid. Several privileges are asked for one by one: one of them is
enough.

Walk: `expr.function_table` lists these; `sql.execution.privilege_answers` answers, by way of the Context.
"""

from collections.abc import Iterator

from tenure.expr.functions.callback_functions import asking
from tenure.expr.functions.function import Function, Volatility

OF_OBJECTS = {
    "has_table_privilege": "table",
    "has_any_column_privilege": "table",
    "has_sequence_privilege": "sequence",
    "has_schema_privilege": "schema",
    "has_database_privilege": "database",
    "has_type_privilege": "type",
}
"""The kind of object that each asks about."""
OF_COLUMNS, OF_ROLES = "has_column_privilege", "pg_has_role"
NAMES = frozenset((*OF_OBJECTS, OF_COLUMNS, OF_ROLES))

_ROLES, _OBJECTS, _COLUMNS = ("name", "oid"), ("text", "oid"), ("text", "int2")


def functions() -> Iterator[Function]:
    for name in OF_OBJECTS:
        for kind in _OBJECTS:
            yield from _with_user(name, (kind, "text"))
    for table in _OBJECTS:
        for column in _COLUMNS:
            yield from _with_user(OF_COLUMNS, (table, column, "text"))
    for role in _ROLES:
        yield from _with_user(OF_ROLES, (role, "text"))


def _with_user(name: str, arguments: tuple[str, ...]) -> Iterator[Function]:
    """Without a user it is the current one."""
    for user in ((), *((role,) for role in _ROLES)):
        signature = (*user, *arguments)
        yield Function(name, signature, "bool", asking(name), Volatility.STABLE, wants_context=True)
