"""pg_database, pg_namespace, pg_tablespace, pg_am, pg_language: where objects are, and what they are kept by.

pg_namespace has the schemas of the session's database, pg_catalog and information_schema. The schemas of
other system tables (system, tenure_internal) are not in it: tools that compare a database with a model would
take their tables for the database's own.

Walk: `sql.tables.pg_catalog.relations` collects `definitions`.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from tenure.catalog.accounts.users import ROOT_ID
from tenure.catalog.descriptors.definitions import Database, Schema
from tenure.expr.types.datatype import Datum
from tenure.expr.types.system_types import Reg
from tenure.sql.names.object_numbers import NAMESPACE_CATALOG
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.pg_catalog.built_in_types import BTREE, HEAP
from tenure.sql.tables.pg_catalog.classes import SYSTEM_SCHEMAS
from tenure.sql.tables.pg_catalog.object_rows import CatalogReader, ObjectRows, Row
from tenure.sql.tables.pg_catalog.shapes import shape
from tenure.sql.tables.virtual import Rows, VirtualDefinition

DATABASE, NAMESPACE, TABLESPACE = shape("pg_database"), shape("pg_namespace"), shape("pg_tablespace")
ACCESS_METHOD, LANGUAGE, INITIAL_PRIVILEGES = shape("pg_am"), shape("pg_language"), shape("pg_init_privs")
UTF8 = 6
"""PostgreSQL's number of the encoding."""
DEFAULT_TABLESPACE = 1663


def definitions() -> Iterator[VirtualDefinition]:
    schemas = ObjectRows((Schema,), _schema, basis=_with_owner)
    yield NAMESPACE.defined(
        lambda reader: (*_system_schemas(), *schemas.all(reader)),
        {"oid": partial(_schemas_by_oid, schemas), "nspname": partial(_schemas_by_name, schemas)},
    )
    yield DATABASE.defined(_databases)
    yield TABLESPACE.defined(lambda reader: _tablespaces())
    yield ACCESS_METHOD.defined(lambda reader: _access_methods())
    yield LANGUAGE.defined(lambda reader: _languages())
    yield INITIAL_PRIVILEGES.defined(lambda reader: _initial_privileges())


def _with_owner(schema: Schema, catalog: CatalogReader) -> tuple[object, ...]:
    return schema, catalog.privileges(schema.id), catalog.roles.role(schema.owner)


def _schema(schema: Schema, catalog: CatalogReader) -> Iterator[Row]:
    yield NAMESPACE.row(
        oid=schema.id,
        nspname=schema.name,
        nspowner=catalog.role_oid(schema.owner),
        nspacl=catalog.acl(schema),
    )


_OF_SYSTEM_SCHEMAS = ("root=UC/root", "=U/root")


def _system_schemas() -> Iterator[Row]:
    for name, oid in SYSTEM_SCHEMAS.items():
        yield NAMESPACE.row(oid=oid, nspname=name, nspowner=ROOT_ID, nspacl=_OF_SYSTEM_SCHEMAS)


def _initial_privileges() -> Iterator[Row]:
    """Those that a schema has from the start: nobody has granted them, and no dump has to."""
    for oid in SYSTEM_SCHEMAS.values():
        yield INITIAL_PRIVILEGES.row(
            objoid=oid, classoid=NAMESPACE_CATALOG, privtype="i", initprivs=_OF_SYSTEM_SCHEMAS
        )


def _schemas_by_oid(schemas: ObjectRows, reader: TableReader, oids: Sequence[Datum]) -> Rows:
    return (*(row for row in _system_schemas() if row[0] in oids), *schemas.of(reader, oids))


def _schemas_by_name(schemas: ObjectRows, reader: TableReader, names: Sequence[Datum]) -> Rows:
    return (*(row for row in _system_schemas() if row[1] in names), *schemas.named(reader, names))


def _databases(reader: TableReader) -> Rows:
    catalog = CatalogReader(reader)
    for each in catalog.objects.by_id.in_schema(0):
        if isinstance(each, Database):
            yield DATABASE.row(
                oid=each.id,
                datname=each.name,
                datdba=catalog.role_oid(each.owner),
                encoding=UTF8,
                datlocprovider="c",
                datallowconn=True,
                datconnlimit=-1,
                dattablespace=DEFAULT_TABLESPACE,
                datcollate="C",
                datctype="C",
                datacl=catalog.acl(each),
            )


def _tablespaces() -> Iterator[Row]:
    for oid, name in ((DEFAULT_TABLESPACE, "pg_default"), (1664, "pg_global")):
        yield TABLESPACE.row(oid=oid, spcname=name, spcowner=ROOT_ID)


def _access_methods() -> Iterator[Row]:
    yield ACCESS_METHOD.row(oid=HEAP, amname="heap", amhandler=Reg(3, "heap_tableam_handler"), amtype="t")
    yield ACCESS_METHOD.row(oid=BTREE, amname="btree", amhandler=Reg(330, "bthandler"), amtype="i")


def _languages() -> Iterator[Row]:
    for oid, name in ((12, "internal"), (13, "c"), (14, "sql")):
        yield LANGUAGE.row(oid=oid, lanname=name, lanowner=ROOT_ID, lanpltrusted=name == "sql")
