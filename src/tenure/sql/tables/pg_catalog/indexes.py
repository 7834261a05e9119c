"""pg_index and pg_constraint: keys, references and conditions.

Walk: `sql.tables.pg_catalog.relations` collects `definitions`.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from tenure.catalog.descriptors.definitions import Action, Deferral, ForeignKey, Index, Table, visible
from tenure.expr.types.datatype import Datum
from tenure.sql.names.object_numbers import (
    attribute_numbers,
    constraint_oid,
    index_constraint_oid,
    not_null_oid,
    part_oid,
)
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.pg_catalog.built_in_types import built_in
from tenure.sql.tables.pg_catalog.classes import relation_id, shown_columns, shown_indexes
from tenure.sql.tables.pg_catalog.definition_text import Definitions, checks_of, has_constraint, not_null_name
from tenure.sql.tables.pg_catalog.object_rows import CatalogReader, ObjectRows, Row
from tenure.sql.tables.pg_catalog.shapes import shape
from tenure.sql.tables.virtual import Rows, VirtualDefinition

INDEX, CONSTRAINT = shape("pg_index"), shape("pg_constraint")
DESCENDING = 3
"""In indoption: DESC and NULLS FIRST."""
_ACTIONS = {
    **{Action.NO_ACTION: "a", Action.RESTRICT: "r", Action.CASCADE: "c"},
    **{Action.SET_NULL: "n", Action.SET_DEFAULT: "d"},
}


def definitions() -> Iterator[VirtualDefinition]:
    indexes = ObjectRows((Table,), _indexes, basis=_unless_partial)
    constraints = ObjectRows((Table,), _constraints, basis=_with_targets)
    yield INDEX.defined(indexes.all, {"indexrelid": partial(_of_parts, indexes), "indrelid": indexes.of})
    yield CONSTRAINT.defined(
        constraints.all,
        {
            "oid": partial(_of_parts, constraints),
            "conrelid": constraints.of,
            "confrelid": partial(_referring, constraints),
            "conindid": partial(_of_index, constraints),
            "connamespace": constraints.in_schemas,
        },
    )


def _of_parts(rows: ObjectRows, reader: TableReader, oids: Sequence[Datum]) -> Rows:
    return rows.of(reader, map(relation_id, oids))


def _of_index(rows: ObjectRows, reader: TableReader, oids: Sequence[Datum]) -> Rows:
    """Constraints of the index itself, and foreign keys that rely on it."""
    tables = [relation_id(oid) for oid in oids]
    return rows.of(reader, [*tables, *_inbound(reader, tables)])


def _referring(rows: ObjectRows, reader: TableReader, oids: Sequence[Datum]) -> Rows:
    return rows.of(reader, _inbound(reader, oids)) if any(oids) else rows.all(reader)


def _inbound(reader: TableReader, tables: Sequence[Datum]) -> Iterator[int]:
    by_id = CatalogReader(reader).objects.by_id
    for id in tables:
        table = by_id.get(id)
        if isinstance(table, Table):
            yield from (each.table for each in table.inbound)


def _unless_partial(table: Table, catalog: CatalogReader) -> tuple[object, ...]:
    """The text of a predicate depends on the search path, so such a row is not kept."""
    is_partial = any(each.predicate is not None for each in table.indexes)
    return (object(),) if is_partial else (table,)


def _with_targets(table: Table, catalog: CatalogReader) -> tuple[object, ...]:
    """CHECKs are written as text, which depends on the search path."""
    if table.checks:
        return (object(),)
    return table, *(catalog.objects.by_id.get(each.target) for each in table.foreign_keys)


def _indexes(table: Table, catalog: CatalogReader) -> Iterator[Row]:
    numbers, writer = attribute_numbers(table), Definitions(catalog)
    for index in shown_indexes(table):
        columns = [table.column(part.column) for part in index.parts]
        kinds = [built_in(each.type) for each in columns]
        is_primary = index.id == table.primary
        yield INDEX.row(
            indexrelid=part_oid(table.id, index.id),
            indrelid=table.id,
            indnatts=len(columns),
            indnkeyatts=len(columns),
            indisunique=index.is_unique or is_primary,
            indisprimary=is_primary,
            indimmediate=not index.is_deferrable,
            indisvalid=True,
            indisready=True,
            indislive=True,
            indkey=tuple(numbers[each.id] for each in columns),
            indcollation=tuple(each.collation for each in kinds),
            indclass=tuple(each.operators[0] if each.operators else 0 for each in kinds),
            indoption=tuple(DESCENDING * part.is_descending for part in index.parts),
            indpred=None if index.predicate is None else writer.node_text(table, index.predicate),
        )


def _constraints(table: Table, catalog: CatalogReader) -> Iterator[Row]:
    numbers, writer = attribute_numbers(table), Definitions(catalog)
    common = {"connamespace": table.schema, "conrelid": table.id, "conislocal": True, "conenforced": True}
    for index in shown_indexes(table):
        if has_constraint(table, index):
            yield _index_constraint(table, index, numbers, common)
    for check in checks_of(table):
        yield CONSTRAINT.row(
            oid=constraint_oid(table.id, check.id),
            conname=check.name,
            contype="c",
            convalidated=check.is_validated,
            conkey=tuple(numbers[each] for each in check.expression.columns),
            conbin=writer.node_text(table, check.expression),
            **common,
        )
    for key in visible(table.foreign_keys):
        yield _reference(table, key, numbers, catalog, common)
    for column in shown_columns(table):
        if not column.is_nullable:
            yield CONSTRAINT.row(
                oid=not_null_oid(table.id, column.id),
                conname=not_null_name(table, column),
                contype="n",
                convalidated=True,
                conkey=(numbers[column.id],),
                **common,
            )


def _index_constraint(table: Table, index: Index, numbers: dict[int, int], common: dict[str, Datum]) -> Row:
    return CONSTRAINT.row(
        oid=index_constraint_oid(table.id, index.id),
        conname=index.name,
        contype="p" if index.id == table.primary else "u",
        condeferrable=index.is_deferrable,
        convalidated=True,
        conindid=part_oid(table.id, index.id),
        connoinherit=True,
        conkey=tuple(numbers[part.column] for part in index.parts),
        **common,
    )


def _reference(
    table: Table, key: ForeignKey, numbers: dict[int, int], catalog: CatalogReader, common: dict[str, Datum]
) -> Row:
    target = table if key.target == table.id else catalog.objects.by_id[key.target]
    assert isinstance(target, Table), "a foreign key refers to a table"
    there, operators = attribute_numbers(target), tuple(_equality(table, each) for each in key.columns)
    return CONSTRAINT.row(
        oid=constraint_oid(table.id, key.id),
        conname=key.name,
        contype="f",
        condeferrable=key.deferral is not Deferral.NEVER,
        condeferred=key.deferral is Deferral.AT_FIRST,
        convalidated=key.is_validated,
        conindid=index_of_key(target, key.target_columns),
        confrelid=target.id,
        confupdtype=_ACTIONS[key.on_update],
        confdeltype=_ACTIONS[key.on_delete],
        confmatchtype="s",
        connoinherit=True,
        conkey=tuple(numbers[each] for each in key.columns),
        confkey=tuple(there[each] for each in key.target_columns),
        conpfeqop=operators,
        conppeqop=operators,
        conffeqop=operators,
        **common,
    )


_EQUALITIES = {
    **{"bool": 91, "int2": 94, "int4": 96, "int8": 410, "text": 98, "varchar": 98, "char": 1054},
    **{"float4": 620, "float8": 670, "numeric": 1752, "date": 1093, "time": 1108, "timestamp": 2060},
    **{"timestamptz": 1320, "interval": 1330, "uuid": 2972, "bytea": 1955, "jsonb": 3240, "oid": 607},
}
"""PostgreSQL's oids of the operator = of a type with itself; of enums 3516, of arrays 1070."""


def _equality(table: Table, column: int) -> int:
    ref = table.column(column).type
    if ref.is_array:
        return 1070
    return 3516 if ref.enum else _EQUALITIES.get(ref.name, 0)


def index_of_key(target: Table, columns: Sequence[int]) -> int:
    index = target_index(target, columns)
    return 0 if index is None else part_oid(target.id, index.id)


def target_index(target: Table, columns: Sequence[int]) -> Index | None:
    """The index by which a foreign key to these columns finds the row that it refers to."""
    for index in shown_indexes(target):
        is_unique = index.is_unique or index.id == target.primary
        if is_unique and sorted(part.column for part in index.parts) == sorted(columns):
            return index
    return None
