"""pg_tables, pg_views, pg_indexes: the catalog in words instead of numbers.

Walk: `sql.tables.pg_catalog.relations` collects `definitions`.
"""

from collections.abc import Iterator, Sequence

from tenure.catalog.descriptors.definitions import Table, View, visible
from tenure.expr.types.datatype import Datum
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.pg_catalog.classes import shown_indexes
from tenure.sql.tables.pg_catalog.definition_text import Definitions
from tenure.sql.tables.pg_catalog.object_rows import CatalogReader, ObjectRows, Row
from tenure.sql.tables.pg_catalog.shapes import shape, shapes
from tenure.sql.tables.virtual import Rows, VirtualDefinition

TABLES, VIEWS, INDEXES = shape("pg_tables"), shape("pg_views"), shape("pg_indexes")
CATALOG, ROOT = "pg_catalog", "root"


def definitions() -> Iterator[VirtualDefinition]:
    tables = ObjectRows((Table,), _table, basis=_with_schema)
    views = ObjectRows((View,), _view, basis=_as_read)
    indexes = ObjectRows((Table,), _indexes, basis=_as_read)

    def tables_named(reader: TableReader, names: Sequence[Datum]) -> Rows:
        return (*tables.named(reader, names), *(row for row in _system_tables() if row[1] in names))

    yield TABLES.defined(lambda reader: (*tables.all(reader), *_system_tables()), {"tablename": tables_named})
    yield VIEWS.defined(views.all, {"viewname": views.named})
    yield INDEXES.defined(indexes.all, {"indexname": indexes.named, "tablename": indexes.named})


def _with_schema(each: Table, catalog: CatalogReader) -> tuple[object, ...]:
    return each, catalog.objects.by_id.get(each.schema)


def _as_read(each: Table | View, catalog: CatalogReader) -> tuple[object, ...]:
    """Not kept: the text of a query or a predicate depends on the search path."""
    return (object(),)


def _table(table: Table, catalog: CatalogReader) -> Iterator[Row]:
    yield TABLES.row(
        schemaname=catalog.objects.schema_of(table),
        tablename=table.name,
        tableowner=table.owner,
        hasindexes=any(True for _ in shown_indexes(table)),
        hasrules=False,
        hastriggers=bool(table.inbound) or any(True for _ in visible(table.foreign_keys)),
        rowsecurity=False,
    )


def _system_tables() -> Iterator[Row]:
    for each in shapes().values():
        if not each.is_view:
            yield TABLES.row(
                schemaname=CATALOG,
                tablename=each.name,
                tableowner=ROOT,
                hasindexes=False,
                hasrules=False,
                hastriggers=False,
                rowsecurity=False,
            )


def _view(view: View, catalog: CatalogReader) -> Iterator[Row]:
    yield VIEWS.row(
        schemaname=catalog.objects.schema_of(view),
        viewname=view.name,
        viewowner=view.owner,
        definition=Definitions(catalog).view(view),
    )


def _indexes(table: Table, catalog: CatalogReader) -> Iterator[Row]:
    writer = Definitions(catalog)
    for index in shown_indexes(table):
        yield INDEXES.row(
            schemaname=catalog.objects.schema_of(table),
            tablename=table.name,
            indexname=index.name,
            indexdef=writer.index(table, index),
        )
