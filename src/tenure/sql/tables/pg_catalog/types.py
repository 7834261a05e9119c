"""pg_type, pg_enum, pg_collation, pg_opclass and pg_opfamily: types and how their values are ordered.

Built-in types have PostgreSQL's own numbers. Each enum has an array type beside it. There is no composite
type for a table's rows.

Walk: `sql.tables.pg_catalog.relations` collects `definitions`.
"""

from collections.abc import Iterator, Sequence
from functools import cache, partial

from tenure.catalog.accounts.users import ROOT_ID
from tenure.catalog.descriptors.definitions import ElementState, EnumType, TypeRef
from tenure.expr.types.datatype import Datum
from tenure.expr.types.system_types import TYPE_OIDS, Reg
from tenure.sql.names.object_numbers import CATALOG_SCHEMA, enum_of, part_oid, type_oid
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.pg_catalog.built_in_types import (
    ARRAY_OPERATORS,
    BTREE,
    BUILT_IN,
    C_COLLATION,
    DEFAULT_COLLATION,
    ENUM,
    BuiltIn,
    built_in,
)
from tenure.sql.tables.pg_catalog.declared_rows import declared_rows
from tenure.sql.tables.pg_catalog.object_rows import CatalogReader, ObjectRows, Row
from tenure.sql.tables.pg_catalog.shapes import NO_PROCEDURE, shape
from tenure.sql.tables.virtual import Rows, VirtualDefinition

TYPE, ENUM_LABEL, COLLATION = shape("pg_type"), shape("pg_enum"), shape("pg_collation")
OPERATOR_CLASS, OPERATOR_FAMILY = shape("pg_opclass"), shape("pg_opfamily")
SHOWN_NAMES = {"char": "bpchar", '"char"': "char"}
"""In PostgreSQL's catalog, where they differ from those of descriptors."""
_SUBSCRIPTS = {
    "name": Reg(6180, "raw_array_subscript_handler"),
    "jsonb": Reg(6098, "jsonb_subscript_handler"),
}
_ARRAY_SUBSCRIPT = Reg(6179, "array_subscript_handler")
_ANALYZE_ARRAY = Reg(3816, "array_typanalyze")
_ELEMENTS = {"name": 18, "int2vector": 21, "oidvector": 26}
_PSEUDO = ("void", "unknown")
ANY_ARRAY, ANY_ENUM = 2277, 3500


def definitions() -> Iterator[VirtualDefinition]:
    types = ObjectRows((EnumType,), _enum_types, basis=_with_owner)
    labels = ObjectRows((EnumType,), _labels)
    yield TYPE.defined(
        lambda reader: (*_built_in_types().values(), *types.all(reader)),
        {
            "oid": partial(_types_by_oid, types),
            "typname": partial(_types_by_name, types),
            "typnamespace": partial(_types_by_schema, types),
        },
    )
    yield ENUM_LABEL.defined(
        labels.all, {"enumtypid": lambda reader, oids: labels.of(reader, map(enum_of, oids))}
    )
    yield COLLATION.defined(lambda reader: _collations())
    yield OPERATOR_CLASS.defined(lambda reader: _operator_classes())
    yield OPERATOR_FAMILY.defined(lambda reader: _operator_families())


def _types_by_oid(types: ObjectRows, reader: TableReader, oids: Sequence[Datum]) -> Rows:
    yield from (_built_in_types()[oid] for oid in dict.fromkeys(oids) if oid in _built_in_types())
    yield from types.of(reader, map(enum_of, oids))


def _types_by_name(types: ObjectRows, reader: TableReader, names: Sequence[Datum]) -> Rows:
    yield from (row for row in _built_in_types().values() if row[1] in names)
    yield from types.named(reader, [*names, *(str(each).removeprefix("_") for each in names)])


def _types_by_schema(types: ObjectRows, reader: TableReader, schemas: Sequence[Datum]) -> Rows:
    if CATALOG_SCHEMA in schemas:
        yield from _built_in_types().values()
    yield from types.in_schemas(reader, schemas)


def _with_owner(enum: EnumType, catalog: CatalogReader) -> tuple[object, ...]:
    return enum, catalog.privileges(enum.id), catalog.roles.role(enum.owner)


@cache
def _built_in_types() -> dict[int, Row]:
    found = {}
    for name, (oid, array) in TYPE_OIDS.items():
        shown = SHOWN_NAMES.get(name, name)
        common = {"typnamespace": CATALOG_SCHEMA, "typowner": ROOT_ID}
        found[oid] = _type(
            oid,
            shown,
            BUILT_IN[name],
            typtype="p" if name in _PSEUDO else "b",
            typsubscript=_SUBSCRIPTS.get(name, _ARRAY_SUBSCRIPT if name in _ELEMENTS else NO_PROCEDURE),
            typelem=_ELEMENTS.get(name, 0),
            typarray=array,
            **common,
        )
        if array:
            found[array] = _array_type(array, f"_{shown}", TypeRef(name, is_array=True), oid, **common)
    for values, _ in declared_rows(TYPE):
        found[values["oid"]] = TYPE.row(typnamespace=CATALOG_SCHEMA, typowner=ROOT_ID, **values)
    return found


def _type(oid: int, name: str, kind: BuiltIn, **values: Datum) -> Row:
    functions = (*kind.functions, *[NO_PROCEDURE] * 6)[:6]
    names = ("typinput", "typoutput", "typreceive", "typsend", "typmodin", "typmodout")
    values = {"typtype": "b", **dict(zip(names, functions, strict=True)), **values}
    return TYPE.row(
        oid=oid,
        typname=name,
        typlen=kind.length,
        typbyval=kind.is_by_value,
        typcategory=kind.category,
        typispreferred=kind.is_preferred,
        typisdefined=True,
        typdelim=",",
        typalign=kind.align,
        typstorage=kind.storage,
        typtypmod=-1,
        typcollation=kind.collation,
        **values,
    )


def _array_type(oid: int, name: str, ref: TypeRef, element: int, **values: Datum) -> Row:
    return _type(
        oid,
        name,
        built_in(ref),
        typsubscript=_ARRAY_SUBSCRIPT,
        typanalyze=_ANALYZE_ARRAY,
        typelem=element,
        **values,
    )


def _enum_types(enum: EnumType, catalog: CatalogReader) -> Iterator[Row]:
    ref, array = TypeRef(enum.name, enum=enum.id), TypeRef(enum.name, enum=enum.id, is_array=True)
    owner = catalog.role_oid(enum.owner)
    common = {"typnamespace": enum.schema, "typowner": owner, "typacl": catalog.acl(enum)}
    yield _type(type_oid(ref), enum.name, ENUM, typtype="e", typarray=type_oid(array), **common)
    yield _array_type(type_oid(array), f"_{enum.name}", array, type_oid(ref), **{**common, "typacl": None})


def _labels(enum: EnumType, catalog: CatalogReader) -> Iterator[Row]:
    readable = sorted(
        (each for each in enum.members if each.state is ElementState.PUBLIC), key=lambda each: each.physical
    )
    for place, member in enumerate(readable, 1):
        yield ENUM_LABEL.row(
            oid=part_oid(enum.id, place),
            enumtypid=type_oid(TypeRef(enum.name, enum=enum.id)),
            enumsortorder=float(place),
            enumlabel=member.label,
        )


# ── order ──────────────────────────────────────────────────────────────────────────────────────


def _collations() -> Iterator[Row]:
    common = {"collnamespace": CATALOG_SCHEMA, "collowner": ROOT_ID, "collisdeterministic": True}
    for oid, name, provider, locale in (
        (DEFAULT_COLLATION, "default", "d", None),
        (C_COLLATION, "C", "c", "C"),
        (951, "POSIX", "c", "POSIX"),
    ):
        yield COLLATION.row(
            oid=oid,
            collname=name,
            collprovider=provider,
            collencoding=-1,
            collcollate=locale,
            collctype=locale,
            **common,
        )


def _operators() -> dict[int, tuple[int, str, int, str, int]]:
    """By the oid of the class: class, name, family, its name, and the type."""
    found = {}
    for name, kind in BUILT_IN.items():
        if kind.operators is not None and name != "varchar":
            found[kind.operators[0]] = (*kind.operators, TYPE_OIDS[name][0])
    found[ARRAY_OPERATORS[0]] = (*ARRAY_OPERATORS, ANY_ARRAY)
    assert ENUM.operators is not None
    found[ENUM.operators[0]] = (*ENUM.operators, ANY_ENUM)
    return found


def _operator_classes() -> Iterator[Row]:
    for oid, name, family, _, kind in _operators().values():
        yield OPERATOR_CLASS.row(
            oid=oid,
            opcmethod=BTREE,
            opcname=name,
            opcnamespace=CATALOG_SCHEMA,
            opcowner=ROOT_ID,
            opcfamily=family,
            opcintype=kind,
            opcdefault=True,
        )


def _operator_families() -> Iterator[Row]:
    families = {family: name for _, _, family, name, _ in _operators().values()}
    for oid, name in families.items():
        yield OPERATOR_FAMILY.row(
            oid=oid, opfmethod=BTREE, opfname=name, opfnamespace=CATALOG_SCHEMA, opfowner=ROOT_ID
        )
