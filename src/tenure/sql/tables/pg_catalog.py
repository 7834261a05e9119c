"""The relations of pg_catalog that the simplest clients ask for: schemas, relations and types.

Object numbers are descriptor ids, so `pg_namespace.oid` is a schema's id and `pg_class.oid` a table's.

Walk: `sql.tables.all` lists these among the system tables; `sql.tables.virtual` finds them.
"""

from collections.abc import Iterator

from tenure.catalog.descriptors.definitions import EnumType, Schema, Sequence, Table, TypeRef, View, visible
from tenure.expr.types.system_types import ENUM_ARRAY_OIDS_FROM, ENUM_OIDS_FROM, TYPE_OIDS
from tenure.expr.types.type_names import type_of
from tenure.sql.plans.plan import OutputColumn
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.objects import objects
from tenure.sql.tables.virtual import Rows, VirtualDefinition

OID, NAME, CHAR, BOOL, INT2, INT4 = (
    type_of(TypeRef(name)) for name in ("oid", "name", '"char"', "bool", "int2", "int4")
)
_OWN_NAMES = {"char": "bpchar"}
CATALOG_OID = 11
"""PostgreSQL's number of the schema pg_catalog."""
ROOT_OID = 10
"""PostgreSQL's number of the first superuser; users have no numbers of their own yet."""


def _namespaces(reader: TableReader) -> Rows:
    database = reader.session.database
    for each in objects(reader).of(Schema):
        if each.database == database:
            yield each.id, each.name, ROOT_OID


def _classes(reader: TableReader) -> Rows:
    found = objects(reader)
    database = reader.session.database
    for table in found.of(Table):
        if table.database == database:
            columns = sum(1 for each in visible(table.columns) if not each.is_hidden)
            yield table.id, table.name, table.schema, ROOT_OID, "r", "p", columns, True, False
    for view in found.of(View):
        if view.database == database:
            yield view.id, view.name, view.schema, ROOT_OID, "v", "p", len(view.columns), False, False
    for sequence in found.of(Sequence):
        if sequence.database == database:
            yield sequence.id, sequence.name, sequence.schema, ROOT_OID, "S", "p", 3, False, False


def _types(reader: TableReader) -> Rows:
    for name, (oid, array) in TYPE_OIDS.items():
        shown = _OWN_NAMES.get(name, name.strip('"'))
        yield oid, shown, CATALOG_OID, "b", ",", 0, array
        if array:
            yield array, f"_{shown}", CATALOG_OID, "b", ",", oid, 0
    database = reader.session.database
    for each in objects(reader).of(EnumType):
        if each.database == database:
            oid, array = ENUM_OIDS_FROM + each.id, ENUM_ARRAY_OIDS_FROM + each.id
            yield oid, each.name, each.schema, "e", ",", 0, array
            yield array, f"_{each.name}", each.schema, "b", ",", oid, 0


def _nothing(reader: TableReader) -> Rows:
    return ()


def definitions() -> Iterator[VirtualDefinition]:
    yield VirtualDefinition(
        "pg_catalog",
        "pg_namespace",
        (OutputColumn("oid", OID), OutputColumn("nspname", NAME), OutputColumn("nspowner", OID)),
        _namespaces,
    )
    yield VirtualDefinition(
        "pg_catalog",
        "pg_class",
        (
            OutputColumn("oid", OID),
            OutputColumn("relname", NAME),
            OutputColumn("relnamespace", OID),
            OutputColumn("relowner", OID),
            OutputColumn("relkind", CHAR),
            OutputColumn("relpersistence", CHAR),
            OutputColumn("relnatts", INT2),
            OutputColumn("relhasindex", BOOL),
            OutputColumn("relispartition", BOOL),
        ),
        _classes,
    )
    yield VirtualDefinition(
        "pg_catalog",
        "pg_type",
        (
            OutputColumn("oid", OID),
            OutputColumn("typname", NAME),
            OutputColumn("typnamespace", OID),
            OutputColumn("typtype", CHAR),
            OutputColumn("typdelim", CHAR),
            OutputColumn("typelem", OID),
            OutputColumn("typarray", OID),
        ),
        _types,
    )
    yield VirtualDefinition(
        "pg_catalog",
        "pg_partitioned_table",
        (OutputColumn("partrelid", OID), OutputColumn("partstrat", CHAR), OutputColumn("partnatts", INT2)),
        _nothing,
    )
    yield VirtualDefinition(
        "pg_catalog",
        "pg_inherits",
        (OutputColumn("inhrelid", OID), OutputColumn("inhparent", OID), OutputColumn("inhseqno", INT4)),
        _nothing,
    )
