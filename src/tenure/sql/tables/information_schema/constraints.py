"""table_constraints, key_column_usage, referential_constraints, check_constraints, constraint_column_usage.

Walk: `sql.tables.information_schema.relations` collects `definitions`.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tenure.catalog.descriptors.definitions import Deferral, ForeignKey, Index, Table, visible
from tenure.expr.types.datatype import Datum
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.information_schema.shapes import information_shape
from tenure.sql.tables.information_schema.visible_objects import VisibleCatalog, yes_or_no
from tenure.sql.tables.pg_catalog.classes import shown_columns, shown_indexes
from tenure.sql.tables.pg_catalog.definition_text import checks_of, has_constraint, not_null_name
from tenure.sql.tables.pg_catalog.indexes import target_index
from tenure.sql.tables.virtual import Rows, VirtualDefinition

CONSTRAINTS, KEY_COLUMNS, REFERENCES = (
    information_shape(name) for name in ("table_constraints", "key_column_usage", "referential_constraints")
)
CHECKS, USED_COLUMNS, USED_TABLES = (
    information_shape(name)
    for name in ("check_constraints", "constraint_column_usage", "constraint_table_usage")
)
PRIMARY_KEY, UNIQUE, CHECK, FOREIGN_KEY = "PRIMARY KEY", "UNIQUE", "CHECK", "FOREIGN KEY"


class Constraint(NamedTuple):
    table: Table
    name: str
    kind: str
    columns: tuple[int, ...]
    unique: Index | None = None
    key: ForeignKey | None = None
    clause: str = ""
    """What a CHECK demands."""


def definitions() -> Iterator[VirtualDefinition]:
    yield CONSTRAINTS.defined(_table_constraints, {"table_name": _table_constraints})
    yield KEY_COLUMNS.defined(_key_columns, {"table_name": _key_columns})
    yield REFERENCES.defined(_references)
    yield CHECKS.defined(_checks)
    yield USED_COLUMNS.defined(_used_columns)
    yield USED_TABLES.defined(_used_tables)


def _constraints(catalog: VisibleCatalog, names: Sequence[Datum] | None = None) -> Iterator[Constraint]:
    for table in catalog.of(Table, names):
        for index in shown_indexes(table):
            if has_constraint(table, index):
                kind = PRIMARY_KEY if index.id == table.primary else UNIQUE
                columns = tuple(part.column for part in index.parts)
                yield Constraint(table, index.name, kind, columns, index)
        for check in checks_of(table):
            clause = catalog.definitions.expression(table, check.expression)
            yield Constraint(table, check.name, CHECK, check.expression.columns, clause=clause)
        for key in visible(table.foreign_keys):
            yield Constraint(table, key.name, FOREIGN_KEY, key.columns, key=key)
        for column in shown_columns(table):
            if not column.is_nullable:
                clause = f"{column.name} IS NOT NULL"  # without quotes, as PostgreSQL has it
                yield Constraint(table, not_null_name(table, column), CHECK, (column.id,), clause=clause)


def _is_deferrable(constraint: Constraint) -> bool:
    if constraint.key is not None:
        return constraint.key.deferral is not Deferral.NEVER
    return constraint.unique is not None and constraint.unique.is_deferrable


def _name(catalog: VisibleCatalog, each: Constraint) -> dict[str, Datum]:
    return {
        "constraint_catalog": catalog.catalog_name,
        "constraint_schema": catalog.schema_name(each.table),
        "constraint_name": each.name,
    }


def _place(catalog: VisibleCatalog, table: Table) -> dict[str, Datum]:
    return {
        "table_catalog": catalog.catalog_name,
        "table_schema": catalog.schema_name(table),
        "table_name": table.name,
    }


def _table_constraints(reader: TableReader, names: Sequence[Datum] | None = None) -> Rows:
    catalog = VisibleCatalog(reader)
    for each in _constraints(catalog, names):
        yield CONSTRAINTS.row(
            **_name(catalog, each),
            **_place(catalog, each.table),
            constraint_type=each.kind,
            is_deferrable=yes_or_no(_is_deferrable(each)),
            initially_deferred=yes_or_no(each.key is not None and each.key.deferral is Deferral.AT_FIRST),
            enforced="YES",
            nulls_distinct="YES" if each.kind == UNIQUE else None,
        )


def _key_columns(reader: TableReader, names: Sequence[Datum] | None = None) -> Rows:
    catalog = VisibleCatalog(reader)
    for each in _constraints(catalog, names):
        if each.kind == CHECK:
            continue
        for place, column in enumerate(each.columns, 1):
            yield KEY_COLUMNS.row(
                **_name(catalog, each),
                **_place(catalog, each.table),
                column_name=each.table.column(column).name,
                ordinal_position=place,
                position_in_unique_constraint=_place_in_target(catalog, each, place),
            )


def _place_in_target(catalog: VisibleCatalog, each: Constraint, place: int) -> int | None:
    if each.key is None:
        return None
    target = _target(catalog, each.table, each.key)
    index = target_index(target, each.key.target_columns)
    columns = list(each.key.target_columns) if index is None else [part.column for part in index.parts]
    return columns.index(each.key.target_columns[place - 1]) + 1


def _target(catalog: VisibleCatalog, table: Table, key: ForeignKey) -> Table:
    found = table if key.target == table.id else catalog.objects.by_id[key.target]
    assert isinstance(found, Table), "a foreign key refers to a table"
    return found


def _references(reader: TableReader) -> Rows:
    catalog = VisibleCatalog(reader)
    for each in _constraints(catalog):
        if each.key is None:
            continue
        target = _target(catalog, each.table, each.key)
        index = target_index(target, each.key.target_columns)
        is_named = index is not None and has_constraint(target, index)
        yield REFERENCES.row(
            **_name(catalog, each),
            unique_constraint_catalog=catalog.catalog_name if is_named else None,
            unique_constraint_schema=catalog.schema_name(target) if is_named else None,
            unique_constraint_name=index.name if index is not None and is_named else None,
            match_option="NONE",
            update_rule=each.key.on_update.value.upper(),
            delete_rule=each.key.on_delete.value.upper(),
        )


def _checks(reader: TableReader) -> Rows:
    """Told to owners of the tables."""
    catalog = VisibleCatalog(reader)
    for each in _constraints(catalog):
        if each.kind == CHECK and catalog.rights.owns(each.table):
            yield CHECKS.row(**_name(catalog, each), check_clause=each.clause)


def _used_columns(reader: TableReader) -> Rows:
    """Of a foreign key: those that it refers to. Told to owners of the tables."""
    catalog = VisibleCatalog(reader)
    for each in _constraints(catalog):
        table, columns = each.table, each.columns
        if each.key is not None:
            table, columns = _target(catalog, table, each.key), each.key.target_columns
        for column in dict.fromkeys(columns) if catalog.rights.owns(table) else ():
            yield USED_COLUMNS.row(
                **_place(catalog, table), column_name=table.column(column).name, **_name(catalog, each)
            )


def _used_tables(reader: TableReader) -> Rows:
    catalog = VisibleCatalog(reader)
    for each in _constraints(catalog):
        if each.kind == CHECK:
            continue
        table = each.table if each.key is None else _target(catalog, each.table, each.key)
        if catalog.rights.owns(table):
            yield USED_TABLES.row(**_place(catalog, table), **_name(catalog, each))
