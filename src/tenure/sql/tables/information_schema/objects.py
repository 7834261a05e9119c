"""schemata, tables, views, sequences and the catalog's name.

Walk: `sql.tables.information_schema.relations` collects `definitions`.
"""

from collections.abc import Iterator, Sequence

from tenure.catalog.descriptors.definitions import Schema, Table, View
from tenure.catalog.descriptors.definitions import Sequence as Sequence_
from tenure.catalog.name_resolution import PG_TEMP
from tenure.expr.types.datatype import Datum
from tenure.expr.types.type_names import type_of
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.information_schema.shapes import information_shape
from tenure.sql.tables.information_schema.visible_objects import VisibleCatalog, yes_or_no
from tenure.sql.tables.pg_catalog.classes import SYSTEM_SCHEMAS, system_relations
from tenure.sql.tables.virtual import Rows, VirtualDefinition

CATALOG_NAME, SCHEMATA = information_shape("information_schema_catalog_name"), information_shape("schemata")
TABLES, VIEWS, SEQUENCES = (information_shape(name) for name in ("tables", "views", "sequences"))
INTEGER_BITS = {"int2": 16, "int4": 32, "int8": 64}


def definitions() -> Iterator[VirtualDefinition]:
    yield CATALOG_NAME.defined(_catalog_name)
    yield SCHEMATA.defined(_schemata)
    yield TABLES.defined(_tables, {"table_name": _tables})
    yield VIEWS.defined(_views, {"table_name": _views})
    yield SEQUENCES.defined(_sequences)


def _catalog_name(reader: TableReader) -> Rows:
    yield CATALOG_NAME.row(catalog_name=reader.session.database_name)


def _schemata(reader: TableReader) -> Rows:
    catalog = VisibleCatalog(reader)
    for each in catalog.of(Schema):
        yield SCHEMATA.row(catalog_name=catalog.catalog_name, schema_name=each.name, schema_owner=each.owner)
    for name in SYSTEM_SCHEMAS if catalog.rights.is_superuser else ():
        yield SCHEMATA.row(catalog_name=catalog.catalog_name, schema_name=name, schema_owner="root")


def _tables(reader: TableReader, names: Sequence[Datum] | None = None) -> Rows:
    catalog = VisibleCatalog(reader)
    for table in catalog.of(Table, names):
        schema = catalog.schema_name(table)
        is_temporary = schema.startswith(PG_TEMP)
        yield TABLES.row(
            table_catalog=catalog.catalog_name,
            table_schema=schema,
            table_name=table.name,
            table_type="LOCAL TEMPORARY" if is_temporary else "BASE TABLE",
            is_insertable_into="YES",
            is_typed="NO",
            commit_action="PRESERVE" if is_temporary else None,
        )
    for view in catalog.of(View, names):
        yield _view_as_table(catalog, catalog.schema_name(view), view.name, "VIEW")
    for each in system_relations():
        if names is None or each.name in names:
            kind = "VIEW" if each.is_view else "BASE TABLE"
            yield _view_as_table(catalog, each.schema, each.name, kind)


def _view_as_table(catalog: VisibleCatalog, schema: str, name: str, kind: str) -> tuple[Datum, ...]:
    """Of what nobody can write to."""
    return TABLES.row(
        table_catalog=catalog.catalog_name,
        table_schema=schema,
        table_name=name,
        table_type=kind,
        is_insertable_into="NO",
        is_typed="NO",
    )


def _views(reader: TableReader, names: Sequence[Datum] | None = None) -> Rows:
    """The query is for those who may use the view as its owner."""
    catalog = VisibleCatalog(reader)
    for view in catalog.of(View, names):
        yield VIEWS.row(
            table_catalog=catalog.catalog_name,
            table_schema=catalog.schema_name(view),
            table_name=view.name,
            view_definition=catalog.definitions.view(view) if catalog.rights.owns(view) else None,
            check_option="NONE",
            is_updatable="NO",
            is_insertable_into="NO",
            is_trigger_updatable="NO",
            is_trigger_deletable="NO",
            is_trigger_insertable_into="NO",
        )


def _sequences(reader: TableReader) -> Rows:
    """Those of identity columns are part of their columns."""
    catalog = VisibleCatalog(reader)
    for each in catalog.of(Sequence_):
        if not _is_of_identity(each, catalog):
            yield SEQUENCES.row(
                sequence_catalog=catalog.catalog_name,
                sequence_schema=catalog.schema_name(each),
                sequence_name=each.name,
                data_type=type_of(each.value_type).sql_name,
                numeric_precision=INTEGER_BITS[each.value_type.name],
                numeric_precision_radix=2,
                numeric_scale=0,
                start_value=str(each.start),
                minimum_value=str(each.minimum),
                maximum_value=str(each.maximum),
                increment=str(each.increment),
                cycle_option=yes_or_no(each.is_cycle),
            )


def _is_of_identity(sequence: Sequence_, catalog: VisibleCatalog) -> bool:
    owner = sequence.owned_by
    table = None if owner is None else catalog.objects.by_id.get(owner.table)
    return owner is not None and isinstance(table, Table) and bool(table.column(owner.column).identity)
