"""columns: every column of the tables and views that a user may see, with its type taken apart.

Walk: `sql.tables.information_schema.relations` collects `definitions`.
"""

from collections.abc import Iterator, Sequence

from tenure.catalog.descriptors.definitions import Column, EnumType, Table, TypeRef, View
from tenure.catalog.descriptors.definitions import Sequence as Sequence_
from tenure.expr.types.datatype import Datum
from tenure.expr.types.type_names import type_of
from tenure.sql.names.object_numbers import attribute_numbers
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.information_schema.objects import INTEGER_BITS
from tenure.sql.tables.information_schema.shapes import information_shape
from tenure.sql.tables.information_schema.visible_objects import VisibleCatalog, yes_or_no
from tenure.sql.tables.pg_catalog.classes import shown_columns, system_relations
from tenure.sql.tables.pg_catalog.types import SHOWN_NAMES
from tenure.sql.tables.virtual import Rows, VirtualDefinition

COLUMNS = information_shape("columns")
UNBOUNDED_BYTES = 2**30
"""The length in bytes of a text without a limit."""
CHARACTER_BYTES = 4
FLOAT_BITS = {"float4": 24, "float8": 53}
MICROSECONDS = 6
TIMES = ("time", "timestamp", "timestamptz", "interval")


def definitions() -> Iterator[VirtualDefinition]:
    yield COLUMNS.defined(_columns, {"table_name": _columns})


def _columns(reader: TableReader, names: Sequence[Datum] | None = None) -> Rows:
    catalog = VisibleCatalog(reader)
    for table in catalog.of(Table, names):
        numbers, schema = attribute_numbers(table), catalog.schema_name(table)
        for column in shown_columns(table):
            if not catalog.shows_column(table, column.id):
                continue
            yield _column(
                catalog,
                (schema, table.name, column.name, numbers[column.id]),
                column.type,
                **_of_table(catalog, table, column),
            )
    for view in catalog.of(View, names):
        schema = catalog.schema_name(view)
        for place, part in enumerate(view.columns, 1):
            if not catalog.shows_column(view, place):
                continue
            yield _column(catalog, (schema, view.name, part.name, place), part.type)
    for each in system_relations():
        if names is None or each.name in names:
            for place, column_of_system in enumerate(each.columns, 1):
                where = (each.schema, each.name, column_of_system.name, place)
                is_nullable = yes_or_no(column_of_system.name not in each.required)
                yield _column(catalog, where, column_of_system.type.ref, is_nullable=is_nullable)


def _column(
    catalog: VisibleCatalog, where: tuple[str, str, str, int], ref: TypeRef, **values: Datum
) -> tuple[Datum, ...]:
    schema, table, name, number = where
    usual = {"is_nullable": "YES", "is_identity": "NO", "is_generated": "NEVER", "is_updatable": "NO"}
    return COLUMNS.row(
        table_catalog=catalog.catalog_name,
        table_schema=schema,
        table_name=table,
        column_name=name,
        ordinal_position=number,
        dtd_identifier=str(number),
        is_self_referencing="NO",
        identity_cycle=values.pop("identity_cycle", "NO"),
        udt_catalog=catalog.catalog_name,
        **_type(catalog, ref),
        **{**usual, **values},
    )


def _of_table(catalog: VisibleCatalog, table: Table, column: Column) -> dict[str, Datum]:
    """The default is told to those who own the table or have a privilege on it."""
    text = catalog.definitions.default(table, column)
    is_generated = column.generated is not None
    return {
        "column_default": None if is_generated or text is None else str(text),
        "is_nullable": yes_or_no(column.is_nullable),
        "is_updatable": "YES",
        "is_generated": "ALWAYS" if is_generated else "NEVER",
        "generation_expression": str(text) if is_generated else None,
        **(_identity(catalog, table, column) if column.identity else {}),
    }


def _identity(catalog: VisibleCatalog, table: Table, column: Column) -> dict[str, Datum]:
    found: dict[str, Datum] = {"is_identity": "YES", "identity_generation": column.identity.upper()}
    for id in () if column.default is None else column.default.sequences:
        sequence = catalog.objects.by_id.get(id)
        if isinstance(sequence, Sequence_):
            found |= {
                "identity_start": str(sequence.start),
                "identity_increment": str(sequence.increment),
                "identity_maximum": str(sequence.maximum),
                "identity_minimum": str(sequence.minimum),
                "identity_cycle": yes_or_no(sequence.is_cycle),
            }
    return found


def _type(catalog: VisibleCatalog, ref: TypeRef) -> dict[str, Datum]:
    if ref.enum:
        enum = catalog.objects.by_id.get(ref.enum)
        assert isinstance(enum, EnumType), "a column's type is there"
        schema, name = catalog.objects.schema_of(enum), enum.name
    else:
        schema, name = "pg_catalog", SHOWN_NAMES.get(ref.name, ref.name)
    if ref.is_array:
        return {"data_type": "ARRAY", "udt_schema": schema, "udt_name": f"_{name}"}
    if ref.name in ("int2vector", "oidvector"):
        return {"data_type": "ARRAY", "udt_schema": schema, "udt_name": name}
    kind = "USER-DEFINED" if ref.enum else type_of(TypeRef(ref.name)).sql_name
    if ref.name == "char":
        kind = "character"
    return {"data_type": kind, "udt_schema": schema, "udt_name": name, **_limits(ref)}


def _limits(ref: TypeRef) -> dict[str, Datum]:
    first = ref.modifiers[0] if ref.modifiers else None
    match ref.name:
        case "text":
            return {"character_octet_length": UNBOUNDED_BYTES}
        case "varchar" | "char":
            octets = UNBOUNDED_BYTES if first is None else first * CHARACTER_BYTES
            return {"character_maximum_length": first, "character_octet_length": octets}
        case "numeric":
            scale = ref.modifiers[1] if ref.modifiers else None
            return {"numeric_precision": first, "numeric_precision_radix": 10, "numeric_scale": scale}
        case "date":
            return {"datetime_precision": 0}
    if ref.name in INTEGER_BITS:
        bits = INTEGER_BITS[ref.name]
        return {"numeric_precision": bits, "numeric_precision_radix": 2, "numeric_scale": 0}
    if ref.name in FLOAT_BITS:
        return {"numeric_precision": FLOAT_BITS[ref.name], "numeric_precision_radix": 2}
    if ref.name in TIMES:
        return {"datetime_precision": MICROSECONDS if first is None else first}
    return {}
