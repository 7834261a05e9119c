"""Types by name: from SQL's words to a `TypeRef`, and from that to the `Type` that works with its values.

    parse_type_name("character varying(10)[]")  TypeRef("varchar", (10,), is_array=True)
    type_of(ref)                                ArrayOf(VarcharType(10))

The names in a TypeRef are short and fixed, as they are stored: bool int2 int4 int8 float4 float8
numeric text varchar char bytea uuid date time timestamp timestamptz interval json jsonb, those of
catalogs (oid, name, "char", void, the reg types, int2vector and its kin), and unknown for a literal
whose type is yet to be found. An enum has its name and its id.

Walk: `sql` reads names of types with this; `table` and `expr` ask for the type of a column.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from tenure.base.errors import InvalidParameter, NotSupported, SyntaxFault, UndefinedObject
from tenure.catalog.descriptors.definitions import EnumType, TypeRef, replace
from tenure.expr.types import system_types
from tenure.expr.types.arrays import ArrayOf
from tenure.expr.types.catalog_types import CATALOG_TYPES, catalog_type
from tenure.expr.types.datatype import Type
from tenure.expr.types.enums import EnumOf
from tenure.expr.types.floats import FloatType
from tenure.expr.types.json_values import JsonbType, JsonType
from tenure.expr.types.numbers import IntType, NumericType
from tenure.expr.types.strings import (
    BoolType,
    BytesType,
    CharType,
    TextType,
    UnknownType,
    UuidType,
    VarcharType,
)
from tenure.expr.types.time_types import DateType, InstantType, IntervalType, TimestampType, TimeType

EnumLookup = Callable[[int], EnumType]

NUMERIC_PRECISION_MAX, NUMERIC_SCALE_MAX = 1000, 1000
STRING_LENGTH_MAX = 10_485_760
"""PostgreSQL's limits for modifiers."""

_MAKERS: dict[str, Callable[[TypeRef], Type]] = {
    "bool": BoolType,
    "int2": lambda ref: IntType(ref, 2),
    "int4": lambda ref: IntType(ref, 4),
    "int8": lambda ref: IntType(ref, 8),
    "float4": lambda ref: FloatType(ref, 4),
    "float8": lambda ref: PreferredFloat(ref, 8),
    "numeric": lambda ref: NumericType(ref, *ref.modifiers),
    "text": TextType,
    "varchar": lambda ref: VarcharType(ref, *ref.modifiers),
    "char": lambda ref: CharType(ref, *ref.modifiers),
    "bytea": BytesType,
    "uuid": UuidType,
    "date": DateType,
    "time": lambda ref: TimeType(ref, *ref.modifiers),
    "timestamp": lambda ref: TimestampType(ref, *ref.modifiers),
    "timestamptz": lambda ref: InstantType(ref, *ref.modifiers),
    "interval": lambda ref: IntervalType(ref, *ref.modifiers),
    "json": JsonType,
    "jsonb": JsonbType,
    "unknown": UnknownType,
    **system_types.MAKERS,
    **dict.fromkeys(CATALOG_TYPES, catalog_type),
}


class PreferredFloat(FloatType):
    """float8, which overload resolution favours among the numbers."""

    is_preferred = True


_ALIASES = {
    "boolean": "bool",
    "smallint": "int2",
    "int": "int4",
    "integer": "int4",
    "bigint": "int8",
    "real": "float4",
    "double precision": "float8",
    "float": "float8",
    "decimal": "numeric",
    "dec": "numeric",
    "character varying": "varchar",
    "char varying": "varchar",
    "string": "text",
    "character": "char",
    "bpchar": "char",
    "bytes": "bytea",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
    "time without time zone": "time",
}
_NAME = re.compile(
    r"\s*(?:pg_catalog\s*\.\s*)?([a-z_][a-z0-9_ ]*?|\"char\")\s*(?:\(\s*(-?\d+(?:\s*,\s*-?\d+)*)\s*\))?"
    r"\s*((?:with|without)\s+time\s+zone)?\s*(array(?:\s*\[\s*\d+\s*\])?|(?:\[\s*\d*\s*\]\s*)+)?\s*",
    re.IGNORECASE,
)
_WITH_PRECISION = ("time", "timestamp", "timestamptz", "interval")


def parse_type_name(text: str) -> TypeRef:
    """Reads a built-in type's name as SQL writes it. Raises UndefinedObject (42704) if there is none."""
    found = _NAME.fullmatch(text)
    if not found:
        raise UndefinedObject(f'type "{text}" does not exist')
    words, numbers, zone, brackets = found.groups()
    name = " ".join(f"{words} {zone or ''}".lower().split())
    modifiers = tuple(int(each) for each in numbers.split(",")) if numbers else ()
    if name == "float" and modifiers:
        name, modifiers = _float_of(modifiers), ()
    if name in ("char", "character") and not modifiers:
        modifiers = (1,)
    name = _ALIASES.get(name, name)
    if name not in _MAKERS or name == "unknown":
        raise _unknown_type(name, text)
    return TypeRef(name, check_modifiers(name, modifiers), is_array=bool(brackets))


def is_type_name(name: str) -> bool:
    """Whether a built-in type has this short name; "char" is not its name in PostgreSQL."""
    return name in _MAKERS and name not in ("char", "unknown", "void")


def type_of(ref: TypeRef, enum: EnumLookup | None = None) -> Type:
    """Raises UndefinedObject if there is no such type; `enum` gives the descriptor of an enum by its id."""
    if not ref.enum:
        return _built_in(ref)
    if enum is None:
        raise UndefinedObject(f'type "{ref.name}" cannot be used here')
    return _enum(ref, enum(ref.enum))


@lru_cache(maxsize=4096)
def _built_in(ref: TypeRef) -> Type:
    if ref.is_array:
        return ArrayOf(ref, _built_in(replace(ref, is_array=False)))
    if ref.name not in _MAKERS:
        raise UndefinedObject(f'type "{ref.name}" does not exist')
    return _MAKERS[ref.name](ref)


@lru_cache(maxsize=1024)
def _enum(ref: TypeRef, descriptor: EnumType) -> Type:
    if ref.is_array:
        return ArrayOf(ref, _enum(replace(ref, is_array=False), descriptor))
    return EnumOf(ref, descriptor)


def check_modifiers(name: str, modifiers: tuple[int, ...]) -> tuple[int, ...]:
    """Returns them as they are stored: numeric(5) as (5, 0). Raises InvalidParameter (22023)."""
    if not modifiers:
        return ()
    if name == "numeric":
        if len(modifiers) > 2:
            raise InvalidParameter("invalid NUMERIC type modifier")
        precision, scale = (*modifiers, 0)[:2]
        if not 1 <= precision <= NUMERIC_PRECISION_MAX:
            raise InvalidParameter(
                f"NUMERIC precision {precision} must be between 1 and {NUMERIC_PRECISION_MAX}"
            )
        if abs(scale) > NUMERIC_SCALE_MAX:
            raise InvalidParameter(f"NUMERIC scale {scale} must be between -1000 and {NUMERIC_SCALE_MAX}")
        return precision, scale
    if name in ("varchar", "char") and len(modifiers) == 1:
        if modifiers[0] < 1:
            raise InvalidParameter(f"length for type {name} must be at least 1")
        if modifiers[0] > STRING_LENGTH_MAX:
            raise InvalidParameter(f"length for type {name} cannot exceed {STRING_LENGTH_MAX}")
        return modifiers
    if name in _WITH_PRECISION and len(modifiers) == 1:
        return (min(modifiers[0], 6),)
    raise SyntaxFault(f'type modifier is not allowed for type "{name}"')


def _float_of(modifiers: tuple[int, ...]) -> str:
    bits = modifiers[0]
    if not 1 <= bits <= 53:
        raise InvalidParameter("precision for type float must be between 1 and 53 bits")
    return "float4" if bits <= 24 else "float8"


def _unknown_type(name: str, text: str) -> Exception:
    if name in ("time with time zone", "timetz") or name.startswith("interval "):
        return NotSupported(f"type {name} is not supported")
    return UndefinedObject(f'type "{text.strip()}" does not exist')
