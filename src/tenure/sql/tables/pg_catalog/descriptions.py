"""pg_description, pg_shdescription and pg_depend: comments, and what depends on what.

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
    DEFAULT_CATALOG,
    NAMESPACE_CATALOG,
    REWRITE_CATALOG,
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

DESCRIPTION, SHARED_DESCRIPTION, DEPENDENCY = (
    shape(name) for name in ("pg_description", "pg_shdescription", "pg_depend")
)
KINDS = (Schema, Table, View, Sequence_, EnumType)
Comment = tuple[int, int, int, str]
"""The object's oid, its catalog, the column's number or 0, and the text."""


def definitions() -> Iterator[VirtualDefinition]:
    comments = ObjectRows(KINDS, _descriptions)
    dependencies = ObjectRows((Table, View, Sequence_), _dependencies, basis=_with_sequences)
    yield DESCRIPTION.defined(comments.all, {"objoid": partial(_by_object, comments)})
    yield SHARED_DESCRIPTION.defined(_of_databases)
    yield DEPENDENCY.defined(dependencies.all, {"objid": partial(_by_object, dependencies)})


def _by_object(rows: ObjectRows, reader: TableReader, oids: Sequence[Datum]) -> Rows:
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


# ── pg_depend ──────────────────────────────────────────────────────────────────────────────────

NORMAL, AUTOMATIC, INTERNAL = "n", "a", "i"


def _with_sequences(each: AnyDescriptor, catalog: CatalogReader) -> tuple[object, ...]:
    """A sequence's number of its owner's column follows from the table."""
    owner = each.owned_by if isinstance(each, Sequence_) else None
    return (each,) if owner is None else (each, catalog.objects.by_id.get(owner.table))


def _dependencies(each: Table | View | Sequence_, catalog: CatalogReader) -> Iterator[Row]:
    yield _depends(CLASS_CATALOG, each.id, 0, (NAMESPACE_CATALOG, each.schema, 0), NORMAL)
    match each:
        case Table():
            yield from _of_table(each)
        case View():
            rule = part_oid(each.id, 0)
            yield _depends(REWRITE_CATALOG, rule, 0, (CLASS_CATALOG, each.id, 0), INTERNAL)
            for source in each.depends:
                for column in source.columns or (0,):
                    yield _depends(REWRITE_CATALOG, rule, 0, (CLASS_CATALOG, source.id, column), NORMAL)
        case Sequence_():
            yield from _of_sequence(each, catalog)


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
