"""Objects by name or number, for casts to regclass, regtype or regnamespace.

    'app.users'::regclass       the table's descriptor id, shown as users where the search path has it

Walk: `sql.execution.expression_context` puts `find` into the Context, for casts to and from regclass and its
kin.
"""

from collections.abc import Iterator

from tenure.base.errors import NotSupported, UndefinedObject, UndefinedSchema, UndefinedTable
from tenure.catalog.descriptors.definitions import AnyDescriptor, EnumType, Schema, TypeRef
from tenure.catalog.name_resolution import find as resolve
from tenure.catalog.name_resolution import schemas_of
from tenure.expr.functions.session_functions import type_reg
from tenure.expr.types.datatype import Datum
from tenure.expr.types.enums import EnumOf
from tenure.expr.types.system_types import ENUM_OIDS_FROM, TYPE_OIDS, Reg
from tenure.expr.types.type_names import type_of
from tenure.sql.bind.types import type_at
from tenure.sql.names.session_names import SessionNames
from tenure.sql.session.block import Block
from tenure.sql.session.session_state import SessionState
from tenure.sql.session.variables import split_names
from tenure.sql.text import parse
from tenure.sql.text.quoting import quoted


def find(session: SessionState, block: Block, kind: str, sought: Datum) -> Reg:
    """The object of a kind by its name (text) or number. Raises PostgreSQL's error if there is none."""
    names = SessionNames(session, block)
    match kind:
        case "regclass":
            return _relation(names, sought)
        case "regtype":
            return _type(names, sought)
        case "regnamespace":
            return _schema(names, sought)
    raise NotSupported(f"a value of type {kind} cannot be looked up")


def _relation(names: SessionNames, sought: Datum) -> Reg:
    if isinstance(sought, int):
        found = names.descriptor(sought)
        return Reg(sought, str(sought) if found is None else _shown(names, found))
    parts = split_names(str(sought).replace(".", ","))
    found = names.object(parts)
    if found is None or isinstance(found, EnumType):
        raise UndefinedTable(f'relation "{sought}" does not exist')
    return Reg(found.id, _shown(names, found))


def _shown(names: SessionNames, found: AnyDescriptor) -> str:
    """By its bare name where the search path finds it so."""
    if resolve(names, [found.name], names.path) is found or isinstance(found, Schema):
        return quoted(found.name)
    schema = names.descriptor(getattr(found, "schema", 0))
    return quoted(found.name) if schema is None else f"{quoted(schema.name)}.{quoted(found.name)}"


def _type(names: SessionNames, sought: Datum) -> Reg:
    if isinstance(sought, int):
        return Reg(sought, _BY_OID.get(sought) or _enum_name(names, sought) or str(sought))
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


_BY_OID = dict(_names_by_oid())


def _enum_name(names: SessionNames, oid: int) -> str:
    found = names.descriptor(oid - ENUM_OIDS_FROM) if oid > ENUM_OIDS_FROM else None
    return _shown(names, found) if isinstance(found, EnumType) else ""


def _schema(names: SessionNames, sought: Datum) -> Reg:
    if isinstance(sought, int):
        found = names.descriptor(sought)
        return Reg(sought, str(sought) if found is None else quoted(found.name))
    name = split_names(str(sought))[0]
    for schema in schemas_of(names, [name], names.path):
        return Reg(schema.id, quoted(schema.name))
    raise UndefinedSchema(f'schema "{sought}" does not exist')
