"""`tenure_internal.*` about the catalog: what SHOW TABLES, SHOW COLUMNS and others query.

    databases · schemas · tables · columns · indexes · constraints · enums · sequences
    create_statements · dump          the SQL that makes them
    system_tables · system_columns      these very tables, and all others that no user made

They show the catalog as the transaction sees it: as of its lease, with its own changes.

Walk: `sql.tables.all` collects `definitions`; SHOW statements query them.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from tenure.catalog.descriptors.definitions import (
    PUBLIC_SCHEMA,
    Column,
    Contained,
    Database,
    EnumType,
    Index,
    Schema,
    Table,
    TypeRef,
    View,
    visible,
)
from tenure.catalog.descriptors.definitions import Sequence as Sequence_
from tenure.expr.types.datatype import Datum
from tenure.expr.types.enums import EnumOf
from tenure.expr.types.type_names import type_of
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.create_text import (
    column_type,
    constraint_text,
    expression_text,
    foreign_key_statements,
    index_text,
    statements,
    table_statements,
)
from tenure.sql.tables.objects import Objects, objects
from tenure.sql.tables.virtual import Rows, VirtualDefinition, define

KINDS = {Table: "table", View: "view", Sequence_: "sequence", EnumType: "type", Schema: "schema"}
_NAMED = (
    ("database_name", "text not null", "The database."),
    ("schema_name", "text not null", "The schema."),
)


Listed = Callable[[], Iterable[VirtualDefinition]]


def _databases(reader: TableReader) -> Rows:
    for each in objects(reader).of(Database):
        yield each.id, each.name, each.owner, each.comment or None


def _schemas(listed: Listed, reader: TableReader) -> Rows:
    descriptors = objects(reader)
    for each in descriptors.of(Schema):
        yield descriptors.database_of(each), each.name, each.id, each.owner, each.comment or None
    own = sorted({each.schema for each in listed()})
    for database in descriptors.of(Database):
        yield from ((database.name, name, None, None, None) for name in own)


def _tables(reader: TableReader) -> Rows:
    descriptors = objects(reader)
    found: list[Contained] = [*descriptors.of(Table), *descriptors.of(View), *descriptors.of(Sequence_)]
    for each in found:
        yield (
            descriptors.database_of(each),
            descriptors.schema_of(each),
            each.name,
            each.id,
            KINDS[type(each)],
            each.owner,
            each.state.value,
            each.version,
            each.comment or None,
        )


def _columns(reader: TableReader) -> Rows:
    descriptors = objects(reader)
    for table in descriptors.of(Table):
        for place, column in enumerate(visible(table.columns), 1):
            yield (table.id, place, *_column(table, column, descriptors))
    for view in descriptors.of(View):
        for place, part in enumerate(view.columns, 1):
            shown = Column(place, part.name, part.type)
            kind = column_type(shown, descriptors)
            yield view.id, place, part.name, kind, True, None, None, None, (), False, part.comment or None


def _column(table: Table, column: Column, descriptors: Objects) -> tuple[Datum, ...]:
    default = column.default if not column.identity else None
    return (
        column.name,
        column_type(column, descriptors),
        column.is_nullable,
        None if default is None else expression_text(table, default, descriptors),
        column.identity or None,
        None if column.generated is None else expression_text(table, column.generated, descriptors),
        tuple(_indexes_with(table, column)),
        column.is_hidden,
        column.comment or None,
    )


def _indexes_with(table: Table, column: Column) -> Iterator[str]:
    for index in visible(table.indexes):
        if index.id == table.primary or any(part.column == column.id for part in index.parts):
            yield index.name


def _indexes(reader: TableReader) -> Rows:
    descriptors = objects(reader)
    for table in descriptors.of(Table):
        for index in visible(table.indexes):
            text = index_text(table, index, descriptors)
            for place, part in enumerate(index.parts, 1):
                yield (
                    table.id,
                    table.name,
                    index.id,
                    index.name,
                    not index.is_unique,
                    index.id == table.primary,
                    place,
                    table.column(part.column).name,
                    "DESC" if part.is_descending else "ASC",
                    text,
                    index.comment or None,
                )


def _constraints(reader: TableReader) -> Rows:
    descriptors = objects(reader)
    for table in descriptors.of(Table):
        for index in visible(table.indexes):
            if index.is_constraint or (index.id == table.primary and not _is_hidden(table, index)):
                kind = "PRIMARY KEY" if index.id == table.primary else "UNIQUE"
                yield table.id, table.name, index.name, kind, constraint_text(table, index, descriptors), True
        for check in visible(table.checks):
            if not check.not_null:
                details = constraint_text(table, check, descriptors)
                yield table.id, table.name, check.name, "CHECK", details, check.is_validated
        for key in visible(table.foreign_keys):
            details = constraint_text(table, key, descriptors)
            yield table.id, table.name, key.name, "FOREIGN KEY", details, key.is_validated


def _is_hidden(table: Table, index: Index) -> bool:
    return any(table.column(part.column).is_hidden for part in index.parts)


def _enums(reader: TableReader) -> Rows:
    descriptors = objects(reader)
    for each in descriptors.of(EnumType):
        labels = EnumOf(TypeRef(each.name, enum=each.id), each).labels
        yield (
            descriptors.database_of(each),
            descriptors.schema_of(each),
            each.name,
            each.id,
            labels,
            each.owner,
        )


def _sequences(reader: TableReader) -> Rows:
    descriptors = objects(reader)
    for each in descriptors.of(Sequence_):
        yield (
            descriptors.database_of(each),
            descriptors.schema_of(each),
            each.name,
            each.id,
            type_of(each.value_type).sql_name,
            each.start,
            each.increment,
            each.minimum,
            each.maximum,
            each.cache,
            each.is_cycle,
            each.owner,
        )


def _create_statements(reader: TableReader) -> Rows:
    descriptors = objects(reader)
    for each in descriptors.of(Schema):
        yield (
            descriptors.database_of(each),
            each.name,
            each.name,
            each.id,
            "schema",
            _text(statements(each, descriptors)),
        )
    found: list[Contained] = [
        *descriptors.of(EnumType),
        *descriptors.of(Sequence_),
        *descriptors.of(Table),
        *descriptors.of(View),
    ]
    for one in found:
        text, schema = _text(statements(one, descriptors)), descriptors.schema_of(one)
        yield descriptors.database_of(one), schema, one.name, one.id, KINDS[type(one)], text


def _dump(reader: TableReader) -> Rows:
    for place, (database, kind, text) in enumerate(_ordered(objects(reader)), 1):
        yield database, place, kind, f"{text};"


def _ordered(descriptors: Objects) -> Iterator[tuple[str, str, str]]:
    """The statements that make all objects, each after its dependencies: foreign keys after all tables."""
    for schema in descriptors.of(Schema):
        if schema.name != PUBLIC_SCHEMA:
            yield from (
                (descriptors.database_of(schema), "schema", text) for text in statements(schema, descriptors)
            )
    for enum in descriptors.of(EnumType):
        yield from ((descriptors.database_of(enum), "type", text) for text in statements(enum, descriptors))
    for sequence in descriptors.of(Sequence_):
        if sequence.owned_by is None:
            database = descriptors.database_of(sequence)
            yield from ((database, "sequence", text) for text in statements(sequence, descriptors))
    tables = descriptors.of(Table)
    for table in tables:
        create_texts = table_statements(table, descriptors, has_foreign_keys=False)
        yield from ((descriptors.database_of(table), "table", text) for text in create_texts)
    for table in tables:
        keys = foreign_key_statements(table, descriptors)
        yield from ((descriptors.database_of(table), "constraint", text) for text in keys)
    for view in sorted(descriptors.of(View), key=lambda each: each.id):
        yield from ((descriptors.database_of(view), "view", text) for text in statements(view, descriptors))


def _text(statements: list[str]) -> str:
    return ";\n".join(statements) + ";"


def _system_tables(listed: Listed, reader: TableReader) -> Rows:
    for each in listed():
        yield each.schema, each.name, each.key or None, each.is_restricted, each.about


def _system_columns(listed: Listed, reader: TableReader) -> Rows:
    for each in listed():
        notes = each.notes or ("",) * len(each.columns)
        for place, (column, note) in enumerate(zip(each.columns, notes, strict=True), 1):
            is_nullable = column.name not in each.required
            yield each.schema, each.name, place, column.name, column.type.sql_name, is_nullable, note


def definitions(listed: Listed) -> Iterator[VirtualDefinition]:
    """`listed` gives all system tables, these among them."""
    yield from _places(listed)
    yield from _of_tables()
    yield from _others()
    yield from _texts()
    yield from _of_system(listed)


def _places(listed: Listed) -> Iterator[VirtualDefinition]:
    yield define(
        "tenure_internal.databases",
        _databases,
        "The databases.",
        ("id", "int8 not null", "The descriptor's id."),
        ("database_name", "text not null", "The name."),
        ("owner", "text not null", "Who owns it."),
        ("comment", "text", "What COMMENT ON says."),
        key=("id",),
    )
    yield define(
        "tenure_internal.schemas",
        partial(_schemas, listed),
        "The schemas of all databases; those of system tables are in every one.",
        ("database_name", "text not null", "The database."),
        ("schema_name", "text not null", "The name."),
        ("id", "int8", "The descriptor's id; null of a schema of system tables."),
        ("owner", "text", "Who owns it."),
        ("comment", "text", "What COMMENT ON says."),
        key=("database_name", "schema_name"),
    )
    yield define(
        "tenure_internal.tables",
        _tables,
        "The tables, views and sequences of all databases.",
        *_NAMED,
        ("table_name", "text not null", "The name."),
        ("id", "int8 not null", "The descriptor's id."),
        ("type", "text not null", "table, view or sequence."),
        ("owner", "text not null", "Who owns it."),
        ("state", "text not null", "public, or offline while a job fills it."),
        ("version", "int8 not null", "The descriptor's version."),
        ("comment", "text", "What COMMENT ON says."),
        key=("id",),
    )


def _of_tables() -> Iterator[VirtualDefinition]:
    yield define(
        "tenure_internal.columns",
        _columns,
        "The columns of tables and views.",
        ("table_id", "int8 not null", "The table or view."),
        ("ordinal_position", "int8 not null", "The place among the others, from 1 on."),
        ("column_name", "text not null", "The name."),
        ("data_type", "text not null", "The type."),
        ("is_nullable", "bool not null", "Whether it may be null."),
        ("column_default", "text", "The default."),
        ("identity", "text", "always or by default, of an identity column."),
        ("generation_expression", "text", "Of a generated column: how its value follows from the others."),
        ("indices", "text[] not null", "The indexes that hold it."),
        ("is_hidden", "bool not null", "Whether SELECT * leaves it out."),
        ("comment", "text", "What COMMENT ON says."),
        key=("table_id", "ordinal_position"),
    )
    yield define(
        "tenure_internal.indexes",
        _indexes,
        "The indexes of tables, a row for each of their columns.",
        ("table_id", "int8 not null", "The table."),
        ("table_name", "text not null", "Its name."),
        ("index_id", "int8 not null", "The index, within the table."),
        ("index_name", "text not null", "The name."),
        ("non_unique", "bool not null", "Whether several rows may be alike in it."),
        ("is_primary", "bool not null", "Whether it is the primary index, which holds whole rows."),
        ("seq_in_index", "int8 not null", "The column's place in the key, from 1 on."),
        ("column_name", "text not null", "The column."),
        ("direction", "text not null", "ASC or DESC."),
        ("definition", "text not null", "The index as CREATE INDEX."),
        ("comment", "text", "What COMMENT ON says."),
        key=("table_id", "index_id", "seq_in_index"),
    )
    yield define(
        "tenure_internal.constraints",
        _constraints,
        "The constraints of tables; NOT NULL is part of its column.",
        ("table_id", "int8 not null", "The table."),
        ("table_name", "text not null", "Its name."),
        ("constraint_name", "text not null", "The name."),
        ("constraint_type", "text not null", "PRIMARY KEY, UNIQUE, CHECK or FOREIGN KEY."),
        ("details", "text not null", "What it demands, as SQL."),
        ("validated", "bool not null", "Whether it holds for all rows; false of one added NOT VALID."),
        key=("table_id", "constraint_name"),
    )


def _others() -> Iterator[VirtualDefinition]:
    yield define(
        "tenure_internal.enums",
        _enums,
        "The enum types.",
        *_NAMED,
        ("name", "text not null", "The name."),
        ("id", "int8 not null", "The descriptor's id."),
        ("values", "text[] not null", "The labels in their order."),
        ("owner", "text not null", "Who owns it."),
        key=("id",),
    )
    yield define(
        "tenure_internal.sequences",
        _sequences,
        "The sequences; which value comes next, they do not tell.",
        *_NAMED,
        ("sequence_name", "text not null", "The name."),
        ("id", "int8 not null", "The descriptor's id."),
        ("data_type", "text not null", "The type of its values."),
        ("start_value", "int8 not null", "The first value."),
        ("increment", "int8 not null", "How far apart values are."),
        ("minimum_value", "int8 not null", "The least value."),
        ("maximum_value", "int8 not null", "The greatest value."),
        ("cache_size", "int8 not null", "How many a node takes at once."),
        ("cycle", "bool not null", "Whether it starts over at its end."),
        ("owner", "text not null", "Who owns it."),
        key=("id",),
    )


def _texts() -> Iterator[VirtualDefinition]:
    yield define(
        "tenure_internal.create_statements",
        _create_statements,
        "Objects as the SQL that makes them.",
        *_NAMED,
        ("name", "text not null", "The name."),
        ("id", "int8 not null", "The descriptor's id."),
        ("type", "text not null", "schema, type, sequence, table or view."),
        ("create_statement", "text not null", "One statement or several, each ended by a semicolon."),
        key=("id",),
    )
    yield define(
        "tenure_internal.dump",
        _dump,
        "The statements that make all objects of a database, in an order that loads.",
        ("database_name", "text not null", "The database."),
        ("place", "int8 not null", "The order."),
        ("type", "text not null", "schema, type, sequence, table, constraint or view."),
        ("create_statement", "text not null", "The statement, ended by a semicolon."),
        key=("place",),
    )


def _of_system(listed: Listed) -> Iterator[VirtualDefinition]:
    yield define(
        "tenure_internal.system_tables",
        partial(_system_tables, listed),
        "All system tables.",
        ("schema_name", "text not null", "The schema."),
        ("table_name", "text not null", "The name."),
        ("key", "text[]", "The columns that tell one row from another; null: none do."),
        ("is_restricted", "bool not null", "Whether it is for superusers alone."),
        ("comment", "text not null", "What it shows."),
        key=("schema_name", "table_name"),
    )
    yield define(
        "tenure_internal.system_columns",
        partial(_system_columns, listed),
        "The columns of all system tables.",
        ("schema_name", "text not null", "The schema."),
        ("table_name", "text not null", "The table."),
        ("ordinal_position", "int8 not null", "The place among the others, from 1 on."),
        ("column_name", "text not null", "The name."),
        ("data_type", "text not null", "The type."),
        ("is_nullable", "bool not null", "Whether it may be null."),
        ("comment", "text not null", "What it tells."),
        key=("schema_name", "table_name", "ordinal_position"),
    )
