"""pg_class, pg_attribute, pg_attrdef: relations and their columns.

Tables, views, sequences and indexes are relations, and so are those of pg_catalog itself. The hidden column
of a table without a primary key, and the index on it, are not shown.

Walk: `sql.tables.pg_catalog.relations` collects `definitions`.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial

from tenure.catalog.accounts.users import ROOT_ID
from tenure.catalog.descriptors.definitions import Column, Index, Table, TypeRef, View, visible
from tenure.catalog.descriptors.definitions import Sequence as Sequence_
from tenure.catalog.name_resolution import PG_TEMP
from tenure.expr.types.datatype import Datum
from tenure.expr.types.system_types import modifier_of
from tenure.sql.names.object_numbers import (
    CATALOG_SCHEMA,
    INFORMATION_SCHEMA,
    attribute_numbers,
    part_of,
    part_oid,
    type_oid,
)
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.information_schema.shapes import information_shapes
from tenure.sql.tables.pg_catalog.built_in_types import BTREE, HEAP, built_in
from tenure.sql.tables.pg_catalog.definition_text import Definitions
from tenure.sql.tables.pg_catalog.object_rows import CatalogReader, ObjectRows, Row
from tenure.sql.tables.pg_catalog.shapes import Shape, shape, shapes
from tenure.sql.tables.virtual import Rows, VirtualDefinition

CLASS, ATTRIBUTE, DEFAULT = shape("pg_class"), shape("pg_attribute"), shape("pg_attrdef")
Relation = Table | View | Sequence_
RELATIONS = (Table, View, Sequence_)
_INT8, _BOOL = TypeRef("int8"), TypeRef("bool")
SEQUENCE_COLUMNS = (("last_value", _INT8), ("log_cnt", _INT8), ("is_called", _BOOL))


def definitions() -> Iterator[VirtualDefinition]:
    classes = ObjectRows(RELATIONS, _classes, basis=_basis)
    attributes = ObjectRows(RELATIONS, _attributes, basis=_attribute_basis)
    defaults = ObjectRows((Table,), _defaults, basis=_nothing_kept)
    yield CLASS.defined(
        lambda reader: (*classes.all(reader), *_system_classes().values()),
        {
            "oid": partial(_by_oid, classes),
            "relname": partial(_by_name, classes),
            "relnamespace": partial(_by_namespace, classes),
        },
    )
    yield ATTRIBUTE.defined(
        lambda reader: (*attributes.all(reader), *_flat(_system_attributes().values())),
        {"attrelid": partial(_attributes_by_oid, attributes)},
    )
    yield DEFAULT.defined(defaults.all, {"adrelid": defaults.of})


def _by_oid(classes: ObjectRows, reader: TableReader, oids: Sequence[Datum]) -> Rows:
    yield from classes.of(reader, map(relation_id, oids))
    system = _system_classes()
    yield from (system[oid] for oid in dict.fromkeys(oids) if oid in system)


def relation_id(oid: int) -> int:
    """The id of a relation by its oid; of an index, that of its table."""
    part = part_of(oid)
    return oid if part is None else part.table


def _by_name(classes: ObjectRows, reader: TableReader, names: Sequence[Datum]) -> Rows:
    yield from classes.named(reader, names)
    yield from (row for row in _system_classes().values() if row[1] in names)


def _by_namespace(classes: ObjectRows, reader: TableReader, schemas: Sequence[Datum]) -> Rows:
    yield from classes.in_schemas(reader, schemas)
    yield from (row for row in _system_classes().values() if row[2] in schemas)


def _attributes_by_oid(attributes: ObjectRows, reader: TableReader, oids: Sequence[Datum]) -> Rows:
    yield from attributes.of(reader, map(relation_id, oids))
    yield from _flat(_system_attributes().get(oid, ()) for oid in dict.fromkeys(oids))


def _flat(groups: Iterable[Iterable[Row]]) -> Iterator[Row]:
    return (row for group in groups for row in group)


def _basis(each: Relation, catalog: CatalogReader) -> tuple[object, ...]:
    return each, catalog.privileges(each.id), catalog.roles.role(each.owner)


def _attribute_basis(each: Relation, catalog: CatalogReader) -> tuple[object, ...]:
    if not isinstance(each, Table):
        return (each,)
    return each, *(catalog.privileges(each.id, column.id) for column in each.columns)


def _nothing_kept(each: Table, catalog: CatalogReader) -> tuple[object, ...]:
    """The text of a default depends on the search path."""
    return (object(),)


# ── pg_class ───────────────────────────────────────────────────────────────────────────────────


def _classes(each: Relation, catalog: CatalogReader) -> Iterator[Row]:
    match each:
        case Table():
            yield _table(each, catalog)
            yield from (_index(each, index, catalog) for index in shown_indexes(each))
        case View():
            yield _relation(each, catalog, "v", natts=len(each.columns), hasrules=True)
        case Sequence_():
            yield _relation(each, catalog, "S", natts=len(SEQUENCE_COLUMNS))


def shown_indexes(table: Table) -> Iterator[Index]:
    """All but a primary index over the hidden column."""
    hidden = {each.id for each in table.columns if each.is_hidden}
    for index in visible(table.indexes):
        if not any(part.column in hidden for part in index.parts):
            yield index


def shown_columns(table: Table) -> list[Column]:
    return [each for each in visible(table.columns) if not each.is_hidden]


def _table(table: Table, catalog: CatalogReader) -> Row:
    return _relation(
        table,
        catalog,
        "r",
        natts=len(shown_columns(table)),
        am=HEAP,
        filenode=table.id,
        replident="d",
        hasindex=any(True for _ in shown_indexes(table)),
        hastriggers=bool(table.inbound) or any(True for _ in visible(table.foreign_keys)),
        checks=sum(1 for each in visible(table.checks) if not each.not_null),
    )


def _index(table: Table, index: Index, catalog: CatalogReader) -> Row:
    oid = part_oid(table.id, index.id)
    return _relation(
        table,
        catalog,
        "i",
        oid=oid,
        name=index.name,
        natts=len(index.parts),
        am=BTREE,
        filenode=oid,
        acl=None,
    )


def _relation(each: Relation, catalog: CatalogReader, kind: str, **values: Datum) -> Row:
    values = {"oid": each.id, "name": each.name, "acl": catalog.acl(each), "replident": "n", **values}
    oid = values.pop("oid")
    return CLASS.row(
        oid=oid,
        relnamespace=each.schema,
        relowner=catalog.role_oid(each.owner),
        relkind=kind,
        relpersistence="t" if catalog.objects.schema_of(each).startswith(PG_TEMP) else "p",
        relispopulated=True,
        reltuples=-1.0 if kind == "r" else 0.0,
        **{f"rel{name}": value for name, value in values.items()},
    )


# ── pg_attribute ───────────────────────────────────────────────────────────────────────────────


def _attributes(each: Relation, catalog: CatalogReader) -> Iterator[Row]:
    match each:
        case Table():
            yield from _table_attributes(each, catalog)
            for index in shown_indexes(each):
                yield from _index_attributes(each, index)
        case View():
            for place, part in enumerate(each.columns, 1):
                yield attribute(each.id, place, part.name, part.type)
        case Sequence_():
            for place, (name, kind) in enumerate(SEQUENCE_COLUMNS, 1):
                yield attribute(each.id, place, name, kind, attnotnull=True)


def _table_attributes(table: Table, catalog: CatalogReader) -> Iterator[Row]:
    numbers = attribute_numbers(table)
    for column in shown_columns(table):
        is_identity = bool(column.identity)
        yield attribute(
            table.id,
            numbers[column.id],
            column.name,
            column.type,
            attnotnull=not column.is_nullable,
            atthasdef=column.generated is not None or (column.default is not None and not is_identity),
            attidentity={"always": "a", "by default": "d"}.get(column.identity, ""),
            attgenerated="s" if column.generated is not None else "",
            attacl=catalog.acl(table, column.id),
        )


def _index_attributes(table: Table, index: Index) -> Iterator[Row]:
    for place, part in enumerate(index.parts, 1):
        column = table.column(part.column)
        yield attribute(part_oid(table.id, index.id), place, column.name, column.type)


def attribute(relation: int, number: int, name: str, ref: TypeRef, **values: Datum) -> Row:
    kind = built_in(ref)
    return ATTRIBUTE.row(
        attrelid=relation,
        attname=name,
        atttypid=type_oid(ref),
        attlen=kind.length,
        attnum=number,
        atttypmod=modifier_of(ref),
        attndims=int(ref.is_array),
        attbyval=kind.is_by_value,
        attalign=kind.align,
        attstorage=kind.storage,
        attislocal=True,
        attcollation=kind.collation,
        **values,
    )


# ── pg_attrdef ─────────────────────────────────────────────────────────────────────────────────


def _defaults(table: Table, catalog: CatalogReader) -> Iterator[Row]:
    numbers, writer = attribute_numbers(table), Definitions(catalog)
    for column in shown_columns(table):
        text = writer.default(table, column)
        if text is not None:
            number = numbers[column.id]
            yield DEFAULT.row(oid=part_oid(table.id, column.id), adrelid=table.id, adnum=number, adbin=text)


# ── the relations of pg_catalog itself ─────────────────────────────────────────────────────────


@cache
def _system_classes() -> dict[int, Row]:
    return {each.oid: _system_class(each) for each in system_relations()}


SYSTEM_SCHEMAS = {"pg_catalog": CATALOG_SCHEMA, "information_schema": INFORMATION_SCHEMA}


def system_relations() -> Iterator[Shape]:
    yield from shapes().values()
    yield from information_shapes().values()


def _system_class(each: Shape) -> Row:
    return CLASS.row(
        oid=each.oid,
        relname=each.name,
        relnamespace=SYSTEM_SCHEMAS[each.schema],
        relowner=ROOT_ID,
        relam=0 if each.is_view else HEAP,
        relkind="v" if each.is_view else "r",
        relpersistence="p",
        relnatts=len(each.columns),
        relhasrules=each.is_view,
        relispopulated=True,
        relreplident="n",
    )


@cache
def _system_attributes() -> dict[int, list[Row]]:
    return {
        each.oid: [
            attribute(each.oid, place, column.name, column.type.ref, attnotnull=column.name in each.required)
            for place, column in enumerate(each.columns, 1)
        ]
        for each in system_relations()
    }
