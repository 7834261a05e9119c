"""pg_description and pg_shdescription: comments.

Walk: `sql.tables.pg_catalog.relations` collects `definitions`.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Check,
    Database,
    EnumType,
    ForeignKey,
    Schema,
    Table,
    TypeRef,
    View,
    visible,
)
from tenure.catalog.descriptors.definitions import Sequence as Sequence_
from tenure.expr.types.datatype import Datum
from tenure.sql.names.object_numbers import (
    CLASS_CATALOG,
    CONSTRAINT_CATALOG,
    DATABASE_CATALOG,
    NAMESPACE_CATALOG,
    TYPE_CATALOG,
    attribute_numbers,
    constraint_oid,
    enum_of,
    index_constraint_oid,
    part_oid,
    type_oid,
)
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.pg_catalog.classes import relation_id, shown_columns, shown_indexes
from tenure.sql.tables.pg_catalog.definition_text import checks_of, has_constraint
from tenure.sql.tables.pg_catalog.object_rows import CatalogReader, ObjectRows, Row
from tenure.sql.tables.pg_catalog.shapes import shape
from tenure.sql.tables.virtual import Rows, VirtualDefinition

DESCRIPTION, SHARED_DESCRIPTION = shape("pg_description"), shape("pg_shdescription")
KINDS = (Schema, Table, View, Sequence_, EnumType)
Comment = tuple[int, int, int, str]
"""The object's oid, its catalog, the column's number or 0, and the text."""


def definitions() -> Iterator[VirtualDefinition]:
    comments = ObjectRows(KINDS, _descriptions)
    yield DESCRIPTION.defined(comments.all, {"objoid": partial(rows_by_object, comments)})
    yield SHARED_DESCRIPTION.defined(_of_databases)


def rows_by_object(rows: ObjectRows, reader: TableReader, oids: Sequence[Datum]) -> Rows:
    """An oid may be one of several catalogs."""
    ids = [id for oid in oids for id in (relation_id(oid), enum_of(oid), oid)]
    return rows.of(reader, ids)


def _descriptions(each: AnyDescriptor, catalog: CatalogReader) -> Iterator[Row]:
    for oid, of, number, text in comments_of(each):
        if text:
            yield DESCRIPTION.row(objoid=oid, classoid=of, objsubid=number, description=text)


def comments_of(each: AnyDescriptor) -> Iterator[Comment]:
    match each:
        case Schema():
            yield each.id, NAMESPACE_CATALOG, 0, each.comment
        case EnumType():
            yield type_oid(TypeRef(each.name, enum=each.id)), TYPE_CATALOG, 0, each.comment
        case Table():
            yield from _comments_of_table(each)
        case View():
            yield each.id, CLASS_CATALOG, 0, each.comment
            for place, part in enumerate(each.columns, 1):
                yield each.id, CLASS_CATALOG, place, part.comment
        case Sequence_():
            yield each.id, CLASS_CATALOG, 0, each.comment


def _comments_of_table(table: Table) -> Iterator[Comment]:
    numbers = attribute_numbers(table)
    yield table.id, CLASS_CATALOG, 0, table.comment
    for column in shown_columns(table):
        yield table.id, CLASS_CATALOG, numbers[column.id], column.comment
    for index in shown_indexes(table):
        if has_constraint(table, index):
            yield index_constraint_oid(table.id, index.id), CONSTRAINT_CATALOG, 0, index.comment
        else:
            yield part_oid(table.id, index.id), CLASS_CATALOG, 0, index.comment
    constraints: list[Check | ForeignKey] = [*checks_of(table), *visible(table.foreign_keys)]
    for each in constraints:
        yield constraint_oid(table.id, each.id), CONSTRAINT_CATALOG, 0, each.comment


def _of_databases(reader: TableReader) -> Rows:
    for each in CatalogReader(reader).objects.by_id.in_schema(0):
        if isinstance(each, Database) and each.comment:
            yield SHARED_DESCRIPTION.row(objoid=each.id, classoid=DATABASE_CATALOG, description=each.comment)
