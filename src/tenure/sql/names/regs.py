"""Objects by name or number, for casts to regclass, regtype, regnamespace, regrole or regcollation.

    'app.users'::regclass       the table's descriptor id, shown as users where the search path has it

Walk: `sql.execution.expression_context` puts `find` into the Context, for casts to and from regclass and its
kin.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tenure.base.errors import (
    NotSupported,
    UndefinedFunction,
    UndefinedObject,
    UndefinedSchema,
    UndefinedTable,
)
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    EnumType,
    Schema,
    Sequence,
    Table,
    TypeRef,
    View,
)
from tenure.catalog.name_resolution import find as resolve
from tenure.catalog.name_resolution import schemas_of
from tenure.expr.functions.session_functions import type_reg
from tenure.expr.types.datatype import Datum
from tenure.expr.types.enums import EnumOf
from tenure.expr.types.system_types import (
    ENUM_ARRAY_OIDS_FROM,
    ENUM_OIDS_FROM,
    PSEUDO_TYPE_OIDS,
    TYPE_OIDS,
    Reg,
)
from tenure.expr.types.type_names import type_of
from tenure.sql.bind.types import type_at
from tenure.sql.names.object_numbers import CATALOG_SCHEMA, INFORMATION_SCHEMA, enum_of, part_of
from tenure.sql.names.session_names import SessionNames
from tenure.sql.session.block import Block
from tenure.sql.session.session_state import SessionState
from tenure.sql.session.variables import split_names
from tenure.sql.text import parse
from tenure.sql.text.quoting import quoted

OID = type_of(TypeRef("oid"))


class Reader(NamedTuple):
    """Who asks: a `TableReader`."""

    session: SessionState
    block: Block


def find(session: SessionState, block: Block, kind: str, sought: Datum) -> Reg:
    """The object of a kind by its name (text) or number. Raises PostgreSQL's error if there is none."""
    names, reader = SessionNames(session, block), Reader(session, block)
    if not isinstance(sought, int) and str(sought).isascii() and str(sought).isdecimal():
        sought = OID.parse(str(sought))
    if kind in ANSWERED:
        return _answered(reader, kind, sought)
    match kind:
        case "regclass":
            return _relation(names, reader, sought)
        case "regtype":
            return _type(names, sought)
        case "regnamespace":
            return _schema(names, sought)
        case "regrole":
            return _role(reader, sought)
        case "regcollation":
            return _numbered(COLLATIONS, "collation", sought)
    raise NotSupported(f"a value of type {kind} cannot be looked up")


ANSWERED = {
    **dict.fromkeys(("regproc", "regprocedure"), 'function "{}" does not exist'),
    "regoperator": "operator does not exist: {}",
}
"""Kinds that the system tables look up, with the words for what is not there."""


def _answered(reader: Reader, kind: str, sought: Datum) -> Reg:
    answer = reader.session.system_tables.answers(reader)(kind, (sought,))
    if answer is None:
        raise UndefinedFunction(ANSWERED[kind].format(sought))
    assert isinstance(answer, Reg)
    return answer


COLLATIONS = {"default": 100, "C": 950, "POSIX": 951}


def _numbered(numbers: Mapping[str, int], noun: str, sought: Datum) -> Reg:
    if isinstance(sought, int):
        return Reg(sought, next((f'"{name}"' for name, oid in numbers.items() if oid == sought), str(sought)))
    name = split_names(str(sought).replace(".", ","))[-1]
    if name not in numbers:
        raise UndefinedObject(f'{noun} "{sought}" for encoding "UTF8" does not exist')
    return Reg(numbers[name], f'"{name}"')


def _role(reader: Reader, sought: Datum) -> Reg:
    roles = {role.name: role.id for role in reader.session.rights(reader.block).graph}
    if isinstance(sought, int):
        return Reg(sought, next((quoted(name) for name, id in roles.items() if id == sought), str(sought)))
    name = split_names(str(sought))[0]
    if name not in roles:
        raise UndefinedObject(f'role "{sought}" does not exist')
    return Reg(roles[name], quoted(name))


def _relation(names: SessionNames, reader: Reader, sought: Datum) -> Reg:
    tables = reader.session.system_tables
    if isinstance(sought, int):
        return Reg(sought, _relation_name(names, reader, sought))
    path = split_names(str(sought).replace(".", ","))
    system = tables.table(path, names.path)
    if system is not None and (oid := tables.oid(system.key)):
        return Reg(oid, tables.name_of(oid) or "")
    found = names.object(path)
    if found is None:
        index = tables.answers(reader)(INDEX_NAMED, (path,))
        if index is not None:
            return Reg(index, _relation_name(names, reader, index))
    if found is None or isinstance(found, EnumType):
        raise UndefinedTable(f'relation "{sought}" does not exist')
    return Reg(found.id, _shown(names, found))


INDEX_NAMED, INDEX_NAME = "index named", "name of index"
"""Answers of the system tables: an index is a part of its table and has no entry in the namespace."""


def _relation_name(names: SessionNames, reader: Reader, oid: int) -> str:
    tables = reader.session.system_tables
    if oid == 0:
        return "-"
    if part_of(oid) is not None:
        return str(tables.answers(reader)(INDEX_NAME, (oid,)) or oid)
    found = names.descriptor(oid)
    if isinstance(found, Table | View | Sequence):
        return _shown(names, found)
    return tables.name_of(oid) or str(oid)


def _shown(names: SessionNames, found: AnyDescriptor) -> str:
    """By its bare name where the search path finds it so."""
    if resolve(names, [found.name], names.path) is found or isinstance(found, Schema):
        return quoted(found.name)
    schema = names.descriptor(getattr(found, "schema", 0))
    return quoted(found.name) if schema is None else f"{quoted(schema.name)}.{quoted(found.name)}"


def _type(names: SessionNames, sought: Datum) -> Reg:
    if isinstance(sought, int):
        return Reg(sought, TYPE_NAMES.get(sought) or _enum_name(names, sought) or str(sought or "-"))
    plain = str(sought).removeprefix("pg_catalog.").lower()
    if plain in PSEUDO_TYPE_OIDS:
        return Reg(PSEUDO_TYPE_OIDS[plain], plain)
    try:
        found = type_at(parse.type_name(str(sought)), names)
    except NotSupported as error:
        raise UndefinedObject(f'type "{sought}" does not exist') from error
    if isinstance(found, EnumOf):
        enum = names.descriptor(found.ref.enum)
        assert enum is not None
        return Reg(ENUM_OIDS_FROM + enum.id, _shown(names, enum))
    return type_reg(found)


def _names_by_oid() -> Iterator[tuple[int, str]]:
    for name, oids in TYPE_OIDS.items():
        for oid, is_array in zip(oids, (False, True), strict=True):
            if oid:
                yield oid, type_reg(type_of(TypeRef(name, is_array=is_array))).name


TYPE_NAMES = {**dict(_names_by_oid()), **{oid: name for name, oid in PSEUDO_TYPE_OIDS.items()}}


def _enum_name(names: SessionNames, oid: int) -> str:
    found = names.descriptor(enum_of(oid)) if oid > ENUM_OIDS_FROM else None
    suffix = "[]" if oid > ENUM_ARRAY_OIDS_FROM else ""
    return _shown(names, found) + suffix if isinstance(found, EnumType) else ""


_SYSTEM_SCHEMAS = {"pg_catalog": CATALOG_SCHEMA, "information_schema": INFORMATION_SCHEMA}


def _schema(names: SessionNames, sought: Datum) -> Reg:
    if isinstance(sought, int):
        if sought in _SYSTEM_SCHEMAS.values():
            return Reg(sought, next(name for name, oid in _SYSTEM_SCHEMAS.items() if oid == sought))
        found = names.descriptor(sought)
        return Reg(sought, str(sought) if not isinstance(found, Schema) else quoted(found.name))
    name = split_names(str(sought))[0]
    if name in _SYSTEM_SCHEMAS:
        return Reg(_SYSTEM_SCHEMAS[name], name)
    for schema in schemas_of(names, [name], names.path):
        return Reg(schema.id, quoted(schema.name))
    raise UndefinedSchema(f'schema "{sought}" does not exist')
