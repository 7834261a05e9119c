"""pg_stat_activity, pg_locks, pg_settings, pg_prepared_statements, pg_cursors: what sessions do and have.

pg_stat_activity has the SQL sessions of all nodes; users without the superuser role see only their own.

Walk: `sql.tables.pg_catalog.relations` collects `definitions`.
"""

from collections.abc import Iterator
from functools import partial

from tenure.catalog.descriptors.definitions import Database
from tenure.expr.functions.session_functions import type_reg
from tenure.expr.types.datatype import Datum
from tenure.sql.session.session_state import TableReader
from tenure.sql.session.variables import DEFINITIONS, Variable
from tenure.sql.tables.node_view import NodeView
from tenure.sql.tables.pg_catalog.object_rows import CatalogReader
from tenure.sql.tables.pg_catalog.shapes import shape
from tenure.sql.tables.running import NOT_ANSWERING, all_locks, session_rows
from tenure.sql.tables.virtual import Rows, VirtualDefinition

ACTIVITY, LOCKS, SETTINGS = shape("pg_stat_activity"), shape("pg_locks"), shape("pg_settings")
PREPARED, CURSORS = shape("pg_prepared_statements"), shape("pg_cursors")
LOCK_KINDS = {"row": "tuple", "table": "relation", "advisory": "advisory"}
LOCK_MODES = {"exclusive": "ExclusiveLock", "share": "ShareLock"}
ONE_NUMBER, TWO_NUMBERS = 1, 2
"""In objsubid: how an advisory lock was named."""
HALF = 1 << 32
MEMBERS = ("node", "pid", "user", "address", "database", "application", "state", "query", "since", "began")
"""The columns of `tenure_internal.sessions`."""


def definitions(node: NodeView) -> Iterator[VirtualDefinition]:
    yield ACTIVITY.defined(partial(_activity, node))
    yield LOCKS.defined(partial(_locks, node))
    yield SETTINGS.defined(_settings)
    yield PREPARED.defined(_prepared)
    yield CURSORS.defined(_cursors)


def _activity(node: NodeView, reader: TableReader) -> Rows:
    catalog = CatalogReader(reader)
    databases = {
        each.name: each.id for each in catalog.objects.by_id.in_schema(0) if isinstance(each, Database)
    }
    for row in session_rows(node, reader):
        each = dict(zip(MEMBERS, row, strict=True))
        if each["state"] != NOT_ANSWERING:
            yield ACTIVITY.row(
                datid=databases.get(each["database"]),
                datname=each["database"],
                pid=each["pid"],
                usesysid=catalog.role_oid(each["user"]),
                usename=each["user"],
                application_name=each["application"],
                client_addr=each["address"] or None,
                xact_start=each["began"],
                query_start=each["since"],
                state_change=each["since"],
                state=each["state"],
                query=each["query"] or "",
                backend_type="client backend",
            )


def _locks(node: NodeView, reader: TableReader) -> Rows:
    """Row, table and advisory locks of all nodes; what a row lock is on is told by tenure_internal.locks."""
    for lock in all_locks(node, reader):
        yield LOCKS.row(
            locktype=LOCK_KINDS[lock.kind],
            database=lock.database,
            relation=lock.table,
            **_advisory(lock.numbers),
            pid=lock.session,
            mode=LOCK_MODES[lock.mode],
            granted=lock.is_held,
            fastpath=False,
            waitstart=None if lock.is_held else lock.started,
        )


def _advisory(numbers: tuple[int, ...]) -> dict[str, Datum]:
    if not numbers:
        return {}
    if len(numbers) == 1:
        high, low = divmod(numbers[0] % HALF**2, HALF)
        return {"classid": high, "objid": low, "objsubid": ONE_NUMBER}
    first, second = (each % HALF for each in numbers)
    return {"classid": first, "objid": second, "objsubid": TWO_NUMBERS}


def _prepared(reader: TableReader) -> Rows:
    """When they were prepared, and how often planned, is not kept."""
    named = reader.session.named_statements
    for each in () if named is None else named.prepared_statements():
        yield PREPARED.row(
            name=each.name,
            statement=each.text,
            parameter_types=tuple(map(type_reg, each.parameters)),
            result_types=None if each.columns is None else tuple(map(type_reg, each.columns)),
            from_sql=each.from_sql,
        )


def _cursors(reader: TableReader) -> Rows:
    named = reader.session.named_statements
    for each in () if named is None else named.cursors():
        yield CURSORS.row(
            name=each.name,
            statement=each.text,
            is_holdable=each.is_held,
            is_binary=False,
            is_scrollable=each.is_scrollable,
        )


def _settings(reader: TableReader) -> Rows:
    variables = reader.session.variables
    for each in sorted(DEFINITIONS, key=lambda each: each.name.lower()):
        name, value = variables.show(each.name)
        yield _setting(each, name, value)


def _setting(variable: Variable, name: str, value: Datum) -> tuple[Datum, ...]:
    is_switch = variable.default in ("on", "off")
    return SETTINGS.row(
        name=name,
        setting=value,
        category="Tenure" if "." in name else "Client Connection Defaults",
        short_desc=variable.description,
        context="internal" if variable.is_fixed else "user",
        vartype="bool" if is_switch else "string",
        source="default" if value == variable.default else "session",
        boot_val=variable.default,
        reset_val=variable.default,
        pending_restart=False,
    )
