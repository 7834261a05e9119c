"""SHOW statements that PostgreSQL does not have: each is a query over the tables of `tenure_internal`.

    SHOW TABLES FROM app  ─►  SELECT schema_name, table_name, ... FROM tenure_internal.tables WHERE ...

Names in them are resolved as everywhere else: what does not exist is an error, not an empty answer. The
columns are named as in CockroachDB.

Walk: `statements.statement_table` -> one of `SHOWS` -> `query` -> `statements.dml.queries`.
"""

from collections.abc import Sequence
from dataclasses import replace

from tenure.base.errors import UndefinedDatabase, UndefinedSchema, UndefinedTable, WrongObjectType
from tenure.catalog.accounts.privileges import CONNECT, CREATE, USAGE
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Database,
    DescriptorState,
    EnumType,
    NameKey,
    Schema,
    Table,
    View,
)
from tenure.catalog.descriptors.definitions import Sequence as Sequence_
from tenure.sql.bind.relations import VirtualTable
from tenure.sql.execution.planner import Planner, WordsPlanner
from tenure.sql.execution.statement import Statement
from tenure.sql.statements.dml import queries
from tenure.sql.text import parse
from tenure.sql.text.quoting import literal
from tenure.sql.text.tenure_statements import TokenReader


def query(planner: Planner, text: str) -> queries.Select:
    """Plans a query of ours in the place of the statement."""
    parsed = parse.one(text)
    assert parsed is not None
    return replace(queries.plan_query(planner, parsed.tree), tag="SHOW")


# The catalog


def databases(planner: Planner, reader: TokenReader) -> Statement:
    reader.end()
    return query(planner, "SELECT database_name, owner FROM tenure_internal.databases ORDER BY 1")


def schemas(planner: Planner, reader: TokenReader) -> Statement:
    name = reader.name() if reader.take("from") else None
    database = database_named(planner, name)
    if name is not None:
        planner.names.needs.add(planner.names.id_at(NameKey(0, 0, name)) or 0, CONNECT)
    reader.end()
    return query(
        planner,
        "SELECT schema_name, owner FROM tenure_internal.schemas "
        f"WHERE database_name = {literal(database)} ORDER BY 1",
    )


def tables(planner: Planner, reader: TokenReader) -> Statement:
    named = reader.names() if reader.take("from") else []
    has_comment = reader.take("with", "comment")
    reader.end()
    comment = ", comment" if has_comment else ""
    if len(named) == 1 and planner.session.system_tables.has_schema(named[0]):
        return query(
            planner,
            f"SELECT schema_name, table_name, 'system table' AS type, NULL::text AS owner{comment} "
            f"FROM tenure_internal.system_tables WHERE schema_name = {literal(named[0])} ORDER BY 2",
        )
    where = _where(planner, named)
    return query(
        planner,
        f"SELECT schema_name, table_name, type, owner{comment} FROM tenure_internal.tables "
        f"WHERE {where} ORDER BY 1, 2",
    )


def sequences(planner: Planner, reader: TokenReader) -> Statement:
    where = _where(planner, reader.names() if reader.take("from") else [])
    reader.end()
    return query(
        planner,
        "SELECT schema_name AS sequence_schema, sequence_name FROM tenure_internal.sequences "
        f"WHERE {where} ORDER BY 1, 2",
    )


def enums(planner: Planner, reader: TokenReader) -> Statement:
    where = _where(planner, reader.names() if reader.take("from") else [])
    reader.end()
    return query(
        planner,
        "SELECT schema_name AS schema, name, values, owner FROM tenure_internal.enums "
        f"WHERE {where} ORDER BY 1, 2",
    )


def columns(planner: Planner, reader: TokenReader) -> Statement:
    reader.expect("from")
    name = reader.names()
    has_comment = reader.take("with", "comment")
    reader.end()
    comment = ", comment" if has_comment else ""
    virtual = planner.session.system_tables.table(name, planner.names.path)
    if virtual is not None:
        return _system_columns(planner, virtual, comment)
    found = object_named(planner, name, (Table, View))
    return query(
        planner,
        "SELECT column_name, data_type, is_nullable, column_default, generation_expression, indices, "
        f"is_hidden{comment} FROM tenure_internal.columns WHERE table_id = {found.id} "
        "ORDER BY ordinal_position",
    )


def _system_columns(planner: Planner, table: VirtualTable, comment: str) -> Statement:
    schema, _, name = table.key.partition(".")
    return query(
        planner,
        "SELECT column_name, data_type, is_nullable, NULL::text AS column_default, "
        f"NULL::text AS generation_expression, '{{}}'::text[] AS indices, false AS is_hidden{comment} "
        f"FROM tenure_internal.system_columns WHERE schema_name = {literal(schema)} "
        f"AND table_name = {literal(name)} ORDER BY ordinal_position",
    )


def indexes(planner: Planner, reader: TokenReader) -> Statement:
    reader.expect("from")
    found = object_named(planner, reader.names(), (Table,))
    reader.end()
    return query(
        planner,
        "SELECT table_name, index_name, non_unique, seq_in_index, column_name, direction, definition "
        f"FROM tenure_internal.indexes WHERE table_id = {found.id} ORDER BY index_name, seq_in_index",
    )


def constraints(planner: Planner, reader: TokenReader) -> Statement:
    reader.expect("from")
    found = object_named(planner, reader.names(), (Table,))
    reader.end()
    return query(
        planner,
        "SELECT table_name, constraint_name, constraint_type, details, validated "
        f"FROM tenure_internal.constraints WHERE table_id = {found.id} ORDER BY constraint_name",
    )


# SHOW CREATE


def create(planner: Planner, reader: TokenReader) -> Statement:
    """SHOW CREATE [TABLE | VIEW | SEQUENCE | TYPE] name: a word is not needed."""
    found = object_named(planner, reader.names(), (Table, View, Sequence_, EnumType))
    return _created(planner, reader, found, "table")


def create_table(planner: Planner, reader: TokenReader) -> Statement:
    return _created(planner, reader, object_named(planner, reader.names(), (Table, View, Sequence_)), "table")


def create_view(planner: Planner, reader: TokenReader) -> Statement:
    return _created(planner, reader, object_named(planner, reader.names(), (View,)), "table")


def create_sequence(planner: Planner, reader: TokenReader) -> Statement:
    return _created(planner, reader, object_named(planner, reader.names(), (Sequence_,)), "table")


def create_type(planner: Planner, reader: TokenReader) -> Statement:
    return _created(planner, reader, object_named(planner, reader.names(), (EnumType,)), "type")


def create_schema(planner: Planner, reader: TokenReader) -> Statement:
    schema = schema_named(planner, reader.names())
    planner.names.needs.add(schema.id, USAGE | CREATE)
    return _created(planner, reader, schema, "schema")


def _created(planner: Planner, reader: TokenReader, found: AnyDescriptor, kind: str) -> Statement:
    reader.end()
    return query(
        planner,
        f"SELECT name AS {kind}_name, create_statement FROM tenure_internal.create_statements "
        f"WHERE id = {found.id}",
    )


def create_all(planner: Planner, reader: TokenReader) -> Statement:
    """SHOW CREATE ALL [SCHEMAS | TYPES | TABLES]: what makes the whole database, in an order that loads."""
    word = reader.peek()
    kinds = {
        "schemas": ("schema",),
        "types": ("type",),
        "tables": ("sequence", "table", "view", "constraint"),
    }
    wanted = kinds.get(word, tuple(each for group in kinds.values() for each in group))
    if word in kinds:
        reader.take(word)
    reader.end()
    listed = ", ".join(literal(each) for each in wanted)
    return query(
        planner,
        f"SELECT create_statement FROM tenure_internal.dump WHERE type IN ({listed}) "
        f"AND database_name = {literal(planner.session.database_name)} ORDER BY place",
    )


# Work


def users(planner: Planner, reader: TokenReader) -> Statement:
    """Without the predefined roles, as in psql."""
    reader.end()
    return query(
        planner,
        "SELECT username, options, member_of FROM tenure_internal.users "
        "WHERE left(username, 3) <> 'pg_' ORDER BY 1",
    )


def leases(planner: Planner, reader: TokenReader) -> Statement:
    reader.end()
    return query(planner, "SELECT * FROM tenure_internal.leases ORDER BY lease_at")


def blockers(planner: Planner, reader: TokenReader) -> Statement:
    where = f"WHERE job_id = {reader.number()}" if reader.take("for", "job") else ""
    reader.end()
    return query(
        planner,
        f"SELECT * FROM tenure_internal.blockers {where} ORDER BY waiting_since, descriptor_id, node_id",
    )


def sessions(planner: Planner, reader: TokenReader) -> Statement:
    reader.end()
    return query(planner, "SELECT * FROM tenure_internal.sessions ORDER BY node_id, session_id")


def memory(planner: Planner, reader: TokenReader) -> Statement:
    reader.end()
    return query(planner, "SELECT * FROM tenure_internal.memory ORDER BY level, user_name, session_id")


def statements(planner: Planner, reader: TokenReader) -> Statement:
    reader.end()
    return query(
        planner,
        "SELECT node_id, session_id, user_name, statement_start AS start, statement AS query, "
        "client_address, application_name FROM tenure_internal.sessions WHERE state = 'active' "
        "ORDER BY start",
    )


def transactions(planner: Planner, reader: TokenReader) -> Statement:
    reader.end()
    return query(planner, "SELECT * FROM tenure_internal.transactions ORDER BY node_id, number")


def nodes(planner: Planner, reader: TokenReader) -> Statement:
    reader.end()
    return query(planner, "SELECT * FROM tenure_internal.nodes ORDER BY node_id")


def locks(planner: Planner, reader: TokenReader) -> Statement:
    reader.end()
    return query(planner, "SELECT * FROM tenure_internal.locks ORDER BY kind, table_name, key, is_held DESC")


def protections(planner: Planner, reader: TokenReader) -> Statement:
    reader.end()
    return query(
        planner,
        "SELECT id, owner_kind, owner, job_id, mode, protected_at, age, expires, targets, pinned_bytes "
        "FROM tenure_internal.protected_timestamps ORDER BY ts, id",
    )


def snapshots(planner: Planner, reader: TokenReader) -> Statement:
    reader.end()
    return query(
        planner,
        "SELECT name, taken, target, owner, expires FROM tenure_internal.snapshots ORDER BY name",
    )


# Names


def _where(planner: Planner, named: Sequence[str]) -> str:
    """[database.]schema, or a database, of which all schemas count."""
    if not named:
        return f"database_name = {literal(planner.session.database_name)}"
    if len(named) == 1 and planner.names.schema_entry(planner.session.database, named[0]) is None:
        return f"database_name = {literal(database_named(planner, named[0]))}"
    schema = schema_named(planner, named)
    database = planner.names.descriptor(schema.database)
    assert database is not None
    return f"database_name = {literal(database.name)} AND schema_name = {literal(schema.name)}"


def database_named(planner: Planner, name: str | None) -> str:
    if name is None:
        return planner.session.database_name
    id = planner.names.id_at(NameKey(0, 0, name))
    found = None if id is None else planner.names.descriptor(id)
    if not isinstance(found, Database) or found.state is DescriptorState.DROPPED:
        raise UndefinedDatabase(f'database "{name}" does not exist')
    return name


def schema_named(planner: Planner, named: Sequence[str]) -> Schema:
    names, database = planner.names, planner.session.database
    if len(named) == 2:
        database = names.id_at(NameKey(0, 0, database_named(planner, named[0]))) or 0
    entry = names.schema_entry(database, named[-1])
    found = None if entry is None or entry.state is not DescriptorState.PUBLIC else names.descriptor(entry.id)
    if not isinstance(found, Schema) or len(named) > 2:
        raise UndefinedSchema(f'schema "{".".join(named)}" does not exist')
    return found


def object_named(planner: Planner, name: Sequence[str], kinds: tuple[type, ...]) -> AnyDescriptor:
    found = planner.names.object(name)
    if found is None:
        raise UndefinedTable(f'relation "{".".join(name)}" does not exist')
    if not isinstance(found, kinds):
        wanted = " or ".join(each.__name__.lower().removesuffix("type") for each in kinds)
        raise WrongObjectType(f'"{".".join(name)}" is not a {wanted}')
    return found


SHOWS: dict[tuple[str, ...], WordsPlanner] = {
    ("show", "databases"): databases,
    ("show", "schemas"): schemas,
    ("show", "tables"): tables,
    ("show", "sequences"): sequences,
    ("show", "enums"): enums,
    ("show", "types"): enums,
    ("show", "columns"): columns,
    ("show", "index"): indexes,
    ("show", "indexes"): indexes,
    ("show", "keys"): indexes,
    ("show", "constraint"): constraints,
    ("show", "constraints"): constraints,
    ("show", "create"): create,
    ("show", "create", "table"): create_table,
    ("show", "create", "view"): create_view,
    ("show", "create", "sequence"): create_sequence,
    ("show", "create", "type"): create_type,
    ("show", "create", "schema"): create_schema,
    ("show", "create", "all"): create_all,
    ("show", "users"): users,
    ("show", "roles"): users,
    ("show", "leases"): leases,
    ("show", "blockers"): blockers,
    ("show", "sessions"): sessions,
    ("show", "memory"): memory,
    ("show", "statements"): statements,
    ("show", "queries"): statements,
    ("show", "transactions"): transactions,
    ("show", "nodes"): nodes,
    ("show", "locks"): locks,
    ("show", "protected", "timestamps"): protections,
    ("show", "snapshots"): snapshots,
}
