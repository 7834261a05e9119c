"""pg_depend: what depends on what.

A view depends on what it reads through its rule. A foreign key depends on the index that it relies on, so
that a dump makes that first.

Walk: `sql.tables.pg_catalog.relations` collects `definitions`.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Depends,
    EnumType,
    ForeignKey,
    Table,
    TypeRef,
    View,
    visible,
)
from tenure.catalog.descriptors.definitions import Sequence as Sequence_
from tenure.expr.tree.expressions import columns as columns_in
from tenure.expr.tree.expressions import decode
from tenure.sql.names.object_numbers import (
    CLASS_CATALOG,
    CONSTRAINT_CATALOG,
    DEFAULT_CATALOG,
    NAMESPACE_CATALOG,
    REWRITE_CATALOG,
    TYPE_CATALOG,
    attribute_numbers,
    constraint_oid,
    index_constraint_oid,
    part_oid,
    type_oid,
)
from tenure.sql.tables.pg_catalog.classes import shown_columns, shown_indexes
from tenure.sql.tables.pg_catalog.definition_text import checks_of, has_constraint
from tenure.sql.tables.pg_catalog.descriptions import rows_by_object
from tenure.sql.tables.pg_catalog.indexes import index_of_key
from tenure.sql.tables.pg_catalog.object_rows import CatalogReader, ObjectRows, Row
from tenure.sql.tables.pg_catalog.rules import rule_oid
from tenure.sql.tables.pg_catalog.shapes import shape
from tenure.sql.tables.virtual import VirtualDefinition

DEPENDENCY = shape("pg_depend")


def definitions() -> Iterator[VirtualDefinition]:
    dependencies = ObjectRows((Table, View, Sequence_, EnumType), _dependencies, basis=_with_others)
    yield DEPENDENCY.defined(dependencies.all, {"objid": partial(rows_by_object, dependencies)})


NORMAL, AUTOMATIC, INTERNAL = "n", "a", "i"


def _with_others(each: AnyDescriptor, catalog: CatalogReader) -> tuple[object, ...]:
    """A sequence's number of its owner's column follows from the table, a key's index from its target."""
    if isinstance(each, Table):
        return each, *(catalog.objects.by_id.get(key.target) for key in each.foreign_keys)
    owner = each.owned_by if isinstance(each, Sequence_) else None
    return (each,) if owner is None else (each, catalog.objects.by_id.get(owner.table))


def _dependencies(each: Table | View | Sequence_ | EnumType, catalog: CatalogReader) -> Iterator[Row]:
    schema = (NAMESPACE_CATALOG, each.schema, 0)
    if isinstance(each, EnumType):
        yield _depends(TYPE_CATALOG, type_oid(TypeRef(each.name, enum=each.id)), 0, schema, NORMAL)
        return
    yield _depends(CLASS_CATALOG, each.id, 0, schema, NORMAL)
    match each:
        case Table():
            yield from _of_table(each)
            for key in visible(each.foreign_keys):
                yield from _of_key(each, key, catalog)
        case View():
            rule = rule_oid(each)
            yield _depends(REWRITE_CATALOG, rule, 0, (CLASS_CATALOG, each.id, 0), INTERNAL)
            for source in each.depends:
                yield from _of_source(rule, source, catalog)
        case Sequence_():
            yield from _of_sequence(each, catalog)


def _of_source(rule: int, source: Depends, catalog: CatalogReader) -> Iterator[Row]:
    if isinstance(enum := catalog.objects.by_id.get(source.id), EnumType):
        on = (TYPE_CATALOG, type_oid(TypeRef(enum.name, enum=enum.id)), 0)
        yield _depends(REWRITE_CATALOG, rule, 0, on, NORMAL)
        return
    for column in source.columns or (0,):
        yield _depends(REWRITE_CATALOG, rule, 0, (CLASS_CATALOG, source.id, column), NORMAL)


def _of_table(table: Table) -> Iterator[Row]:
    numbers = attribute_numbers(table)
    for index in shown_indexes(table):
        oid = part_oid(table.id, index.id)
        if has_constraint(table, index):
            constraint = (CONSTRAINT_CATALOG, index_constraint_oid(table.id, index.id), 0)
            yield _depends(CLASS_CATALOG, oid, 0, constraint, INTERNAL)
            dependent, own = constraint[0], constraint[1]
        else:
            dependent, own = CLASS_CATALOG, oid
        for part in index.parts:
            key_column = (CLASS_CATALOG, table.id, numbers[part.column])
            yield _depends(dependent, own, 0, key_column, AUTOMATIC)
    for column in shown_columns(table):
        here = (CLASS_CATALOG, table.id, numbers[column.id])
        if column.type.enum:
            enum = type_oid(TypeRef(column.type.name, enum=column.type.enum, is_array=column.type.is_array))
            yield _depends(CLASS_CATALOG, table.id, here[2], (TYPE_CATALOG, enum, 0), NORMAL)
        if column.default is not None and not column.identity:
            default = part_oid(table.id, column.id)
            yield _depends(DEFAULT_CATALOG, default, 0, here, AUTOMATIC)
            for sequence in column.default.sequences:
                yield _depends(DEFAULT_CATALOG, default, 0, (CLASS_CATALOG, sequence, 0), NORMAL)
    for check in checks_of(table):
        for used in sorted(set(columns_in(decode(check.expression.tree)))):
            on = (CLASS_CATALOG, table.id, numbers[used])
            yield _depends(CONSTRAINT_CATALOG, constraint_oid(table.id, check.id), 0, on, AUTOMATIC)


def _of_key(table: Table, key: ForeignKey, catalog: CatalogReader) -> Iterator[Row]:
    target = table if key.target == table.id else catalog.objects.by_id[key.target]
    assert isinstance(target, Table), "a foreign key refers to a table"
    depends = partial(_depends, CONSTRAINT_CATALOG, constraint_oid(table.id, key.id), 0)
    yield from (depends(on, AUTOMATIC) for on in _columns(table, key.columns))
    yield from (depends(on, NORMAL) for on in _columns(target, key.target_columns))
    yield depends((CLASS_CATALOG, index_of_key(target, key.target_columns), 0), NORMAL)


def _columns(table: Table, columns: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    numbers = attribute_numbers(table)
    return ((CLASS_CATALOG, table.id, numbers[each]) for each in columns)


def _of_sequence(sequence: Sequence_, catalog: CatalogReader) -> Iterator[Row]:
    owner = sequence.owned_by
    table = None if owner is None else catalog.objects.by_id.get(owner.table)
    if owner is None or not isinstance(table, Table):
        return
    kind = INTERNAL if table.column(owner.column).identity else AUTOMATIC
    place = (CLASS_CATALOG, table.id, attribute_numbers(table)[owner.column])
    yield _depends(CLASS_CATALOG, sequence.id, 0, place, kind)


def _depends(catalog: int, oid: int, number: int, on: tuple[int, int, int], kind: str) -> Row:
    return DEPENDENCY.row(
        classid=catalog,
        objid=oid,
        objsubid=number,
        refclassid=on[0],
        refobjid=on[1],
        refobjsubid=on[2],
        deptype=kind,
    )
