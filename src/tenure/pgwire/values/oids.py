"""The oids by which PostgreSQL's clients identify types.

    built-in types      PostgreSQL's own oids, sizes and modifiers
    enum, id n          100_000 + n
    its array           1_000_100_000 + n

Clients keep tables of the built-in oids, so these must be the real ones. An enum's are derived from
its descriptor's id: stable as long as the enum is there, the same on every node, and read back by
subtraction. They lie above everything that PostgreSQL gives to its own (below 16,384).

Walk: `pgwire` describes columns and parameters with `oid_of` and reads Parse with `type_with_oid`.
"""

from typing import NamedTuple

from tenure.base.errors import UndefinedObject
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr import type_of
from tenure.expr.types.arrays import ArrayOf
from tenure.expr.types.datatype import Type
from tenure.expr.types.system_types import (
    ENUM_ARRAY_OIDS_FROM,
    ENUM_OIDS_FROM,
    NO_MODIFIER,
    REGS,
    TYPE_OIDS,
    modifier_of,
)
from tenure.expr.types.type_names import EnumLookup

UNSPECIFIED, UNKNOWN = 0, 705
ENUM_ARRAYS_END = 2**31
"""Some clients read an oid as a signed number."""


class TypeInfo(NamedTuple):
    """As RowDescription sends it."""

    oid: int
    size: int
    """In bytes; -1: it varies."""
    modifier: int = NO_MODIFIER


class _BuiltIn(NamedTuple):
    oid: int
    array: int
    size: int = -1


_SIZES = {
    **{
        "bool": 1,
        '"char"': 1,
        "int2": 2,
        "int4": 4,
        "int8": 8,
        "float4": 4,
        "float8": 8,
        "name": 64,
        "oid": 4,
    },
    **{"date": 4, "time": 8, "timestamp": 8, "timestamptz": 8, "interval": 16, "uuid": 16, "void": 4},
    **{"unknown": -2, **dict.fromkeys(REGS, 4)},
}
"""The sizes of types with a fixed length; -1 is any length."""
_BUILT_IN = {name: _BuiltIn(oid, array, _SIZES.get(name, -1)) for name, (oid, array) in TYPE_OIDS.items()}
_STAND_INS = {
    19: "text",
    1003: "text[]",
    2205: "text",
    2206: "text",
    2275: "text",
}
"""The type of a parameter of such a type: name, cstring, regclass and regtype look like text."""


def oid_of(type: Type) -> TypeInfo:
    element = type.element if isinstance(type, ArrayOf) and type.ref.is_array else type
    ref = element.ref
    if ref.enum:
        return TypeInfo(ENUM_ARRAY_OIDS_FROM + ref.enum, -1) if element is not type else _enum_info(ref.enum)
    built_in = _BUILT_IN[ref.name]
    modifier = modifier_of(ref)
    if element is not type:
        return TypeInfo(built_in.array, -1, modifier)
    return TypeInfo(built_in.oid, built_in.size, modifier)


def _enum_info(id: int) -> TypeInfo:
    return TypeInfo(ENUM_OIDS_FROM + id, 4)


def type_with_oid(oid: int, enum: EnumLookup | None = None) -> Type | None:
    """Returns None where the statement must determine the type: unspecified, unknown, or an enum that is not
    looked up. Raises UndefinedObject (42704) if no type has this oid.
    """
    if oid in (UNSPECIFIED, UNKNOWN):
        return None
    if oid in _BY_OID:
        return _BY_OID[oid]
    if not ENUM_OIDS_FROM < oid < ENUM_ARRAYS_END:
        raise UndefinedObject(f"type with OID {oid} does not exist")
    if enum is None:
        return None
    is_array = oid > ENUM_ARRAY_OIDS_FROM
    id = oid - (ENUM_ARRAY_OIDS_FROM if is_array else ENUM_OIDS_FROM)
    return type_of(TypeRef(enum(id).name, is_array=is_array, enum=id), enum)


def _by_oid() -> dict[int, Type]:
    types: dict[int, Type] = {}
    for name, built_in in _BUILT_IN.items():
        if name not in ("name", "void", "unknown", *REGS):
            types[built_in.oid] = type_of(TypeRef(name))
            types[built_in.array] = type_of(TypeRef(name, is_array=True))
    for oid, name in _STAND_INS.items():
        types[oid] = type_of(TypeRef(name.removesuffix("[]"), is_array=name.endswith("[]")))
    return types


_BY_OID = _by_oid()
