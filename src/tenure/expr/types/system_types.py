"""The types of PostgreSQL's catalogs: oid, name, "char", void, regclass and the other reg types.

    oid        int, unsigned          regclass, regtype, ...   Reg(oid, name): an object's number and
    name       str of 63 bytes at most                         the name that it is shown by
    "char"     str of one byte        void                     None: what returns nothing

A Reg carries its name, as only the catalog knows it: casting text or a number to one asks the
Context. As a number, and in comparisons, it is its oid.

Walk: `expr.types.type_names` makes the types, `expr.types.casts` takes the rules; `sql.names.regs` finds
what a reg names, and `sql.tables.pg_catalog` makes the rows.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tenure.base.errors import InvalidText, OutOfRange
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.numbers import whole_number
from tenure.expr.types.strings import check_characters

OID_END = 2**32
NAME_BYTES_MAX = 63
REGS = (
    "regclass",
    "regtype",
    "regproc",
    "regprocedure",
    "regnamespace",
    "regrole",
    "regcollation",
    "regoperator",
)


_OCTAL = re.compile("([+-]?)0([0-9]+)")


@dataclass(frozen=True, slots=True)
class Reg:
    oid: int
    name: str


@dataclass(frozen=True)
class OidType(Type):
    category = "N"
    is_preferred = True

    def parse(self, text: str) -> int:
        stripped = text.strip()
        # As C's strtoul reads it: a leading zero makes it octal.
        octal = _OCTAL.fullmatch(stripped)
        value = whole_number(f"{octal[1]}0o{octal[2]}" if octal else stripped)
        if value is None or "_" in text or stripped[1:2] in ("o", "O", "b", "B"):
            raise InvalidText(f'invalid input syntax for type oid: "{text}"')
        if not -OID_END // 2 <= value < OID_END:
            raise OutOfRange(f'value "{text}" is out of range for type oid')
        return value % OID_END

    def _accept(self, value: Datum) -> int:
        if type(value) is not int:
            raise self._refuse(value)
        return to_oid(value)


def to_oid(value: int) -> int:
    if not 0 <= value < OID_END:
        raise OutOfRange("OID out of range")
    return value


@dataclass(frozen=True)
class NameType(Type):
    category = "S"

    def parse(self, text: str) -> str:
        return to_name(check_characters(text))

    def render(self, value: str) -> str:
        return value

    def _accept(self, value: Datum) -> str:
        if not isinstance(value, str):
            raise self._refuse(value)
        return self.parse(value)


def to_name(text: str) -> str:
    """Cut to what fits, at a whole character."""
    if len(text) * 4 <= NAME_BYTES_MAX:
        return text
    return text.encode()[:NAME_BYTES_MAX].decode(errors="ignore")


_OCTAL_BYTE = re.compile(r"\\([0-3][0-7][0-7])")


def to_letter(text: str) -> str:
    """The first byte of a text, or the one that it writes in octal."""
    if octal := _OCTAL_BYTE.fullmatch(text):
        return letter_of_byte(int(octal[1], 8))
    return letter_of_byte(text.encode()[0]) if text else ""


def letter_of_byte(byte: int) -> str:
    return chr(byte) if byte else ""


def letter_text(letter: str) -> str:
    """A byte that is no character by itself is written in octal."""
    return letter if letter.isascii() else f"\\{ord(letter):03o}"


@dataclass(frozen=True)
class LetterType(Type):
    """PostgreSQL's "char", in quotes: one byte, as the character of that number; "" is the byte 0."""

    category = "Z"

    def parse(self, text: str) -> str:
        return to_letter(check_characters(text))

    def render(self, value: str) -> str:
        return letter_text(value)

    def _accept(self, value: Datum) -> str:
        if not isinstance(value, str):
            raise self._refuse(value)
        return self.parse(value)


@dataclass(frozen=True)
class VoidType(Type):
    category = "P"
    has_order = False

    def parse(self, text: str) -> str:
        return ""

    def render(self, value: Datum) -> str:
        return ""

    def _accept(self, value: Datum) -> Datum:
        return value


@dataclass(frozen=True)
class RegType(Type):
    category = "N"
    compares_natively = False

    def comparable(self, value: Reg) -> int:
        return value.oid

    def parse(self, text: str) -> Reg:
        """Reads a number or "-"; names need the catalog, and are read by the Context."""
        if text == "-":
            return Reg(0, "-")
        oid = whole_number(text)
        if oid is None:
            raise InvalidText(f'invalid input syntax for type {self.sql_name}: "{text}"')
        return Reg(to_oid(oid), text)

    def render(self, value: Reg) -> str:
        return value.name

    def _accept(self, value: Datum) -> Reg:
        if not isinstance(value, Reg):
            raise self._refuse(value)
        return value

    def _key(self, value: Reg) -> int:
        return value.oid

    def _from_key(self, key: int) -> Reg:
        return Reg(key, str(key))

    def _pack(self, value: Reg) -> Any:
        return [value.oid, value.name]

    def _unpack(self, packed: Any) -> Reg:
        return Reg(*packed)


MAKERS: dict[str, Callable[[TypeRef], Type]] = {
    "oid": OidType,
    "name": NameType,
    '"char"': LetterType,
    "void": VoidType,
    **dict.fromkeys(REGS, RegType),
}

Rule = tuple[str, Callable[[Datum], Datum] | None]


def _signed(value: int) -> int:
    return value - OID_END if value >= OID_END // 2 else value


def _letter(value: int) -> str:
    if not -128 <= value <= 127:
        raise OutOfRange('"char" out of range')
    return letter_of_byte(value % 256)


def _letter_code(value: str) -> int:
    byte = ord(value[0]) if value else 0
    return byte - 256 if byte > 127 else byte


def cast_rules() -> dict[tuple[str, str], Rule]:
    """As in pg_cast; casts that need the catalog are made by the compiler, with the Context."""
    rules: dict[tuple[str, str], Rule] = {
        ("int2", "oid"): ("implicit", lambda value: value % OID_END),
        ("int4", "oid"): ("implicit", lambda value: value % OID_END),
        ("int8", "oid"): ("implicit", to_oid),
        ("oid", "int4"): ("assignment", _signed),
        ("oid", "int8"): ("assignment", None),
        ("name", "text"): ("implicit", None),
        ("name", "varchar"): ("assignment", None),
        ("name", "char"): ("assignment", None),
        ("text", "name"): ("implicit", to_name),
        ("varchar", "name"): ("implicit", to_name),
        ("char", "name"): ("implicit", lambda value: to_name(value.rstrip(" "))),
        ('"char"', "text"): ("implicit", letter_text),
        ('"char"', "varchar"): ("assignment", letter_text),
        ('"char"', "char"): ("assignment", letter_text),
        ('"char"', "int4"): ("explicit", _letter_code),
        ("int4", '"char"'): ("explicit", _letter),
        **{(kind, '"char"'): ("assignment", to_letter) for kind in ("text", "varchar", "char")},
    }
    for reg in REGS:
        rules[reg, "oid"] = ("implicit", lambda value: value.oid)
        rules[reg, "int4"] = ("assignment", lambda value: _signed(value.oid))
        rules[reg, "int8"] = ("assignment", lambda value: value.oid)
        for number in ("int2", "int4", "int8", "oid"):
            rules[number, reg] = ("implicit", lambda value: Reg(to_oid(value), str(value)))
    for text in ("text", "varchar"):
        rules[text, "regclass"] = ("implicit", RegType(TypeRef("regclass")).parse)
    return rules


TYPE_OIDS = {
    **{"bool": (16, 1000), "bytea": (17, 1001), '"char"': (18, 1002), "name": (19, 1003), "int8": (20, 1016)},
    **{"int2": (21, 1005), "int2vector": (22, 1006), "oidvector": (30, 1013), "xid": (28, 1011)},
    **{"pg_node_tree": (194, 0), "aclitem": (1033, 1034)},
    **{"int4": (23, 1007), "regproc": (24, 1008), "text": (25, 1009), "oid": (26, 1028)},
    **{"json": (114, 199), "float4": (700, 1021), "float8": (701, 1022), "unknown": (705, 0)},
    **{"char": (1042, 1014), "varchar": (1043, 1015), "date": (1082, 1182), "time": (1083, 1183)},
    **{"timestamp": (1114, 1115), "timestamptz": (1184, 1185), "interval": (1186, 1187)},
    **{"numeric": (1700, 1231), "regprocedure": (2202, 2207), "regclass": (2205, 2210)},
    **{"regtype": (2206, 2211), "void": (2278, 0), "uuid": (2950, 2951), "jsonb": (3802, 3807)},
    **{"regrole": (4096, 4097), "regnamespace": (4089, 4090), "regcollation": (4191, 4192)},
    **{"regoperator": (2204, 2209)},
}
"""PostgreSQL's oids of each type and of its array type: clients have them built in."""

PSEUDO_TYPE_OIDS = {
    **{
        "table_am_handler": 269,
        "index_am_handler": 325,
        "pg_ddl_command": 32,
        "record": 2249,
        "cstring": 2275,
    },
    **{'"any"': 2276, "anyarray": 2277, "trigger": 2279, "language_handler": 2280, "internal": 2281},
    **{"anyelement": 2283, "anynonarray": 2776, "fdw_handler": 3115, "tsm_handler": 3310, "anyenum": 3500},
    **{"anyrange": 3831, "event_trigger": 3838, "anymultirange": 4537, "anycompatiblemultirange": 4538},
    **{"anycompatible": 5077, "anycompatiblearray": 5078, "anycompatiblenonarray": 5079},
    **{"anycompatiblerange": 5080},
}
"""Types that no value has, in the arguments of functions, as format_type() writes them."""

NO_MODIFIER = -1
_HEADER = 4
"""PostgreSQL counts a length word into the modifiers of strings and numeric."""
_FULL_RANGE = 0x7FFF << 16
"""In an interval's modifier: all fields, from years to seconds."""


def modifier_of(ref: TypeRef) -> int:
    """A type's modifiers as PostgreSQL's one number."""
    if not ref.modifiers:
        return NO_MODIFIER
    first = ref.modifiers[0]
    match ref.name:
        case "numeric":
            return (first << 16 | ref.modifiers[1] & 0x7FF) + _HEADER
        case "varchar" | "char":
            return first + _HEADER
        case "interval":
            return _FULL_RANGE | first
        case _:
            return first


def modifiers_in(name: str, modifier: int) -> tuple[int, ...]:
    """The modifiers of a type's short name that PostgreSQL's number stands for."""
    match name:
        case "varchar" | "char":
            return (modifier - _HEADER,)
        case "numeric":
            scale = modifier - _HEADER & 0x7FF
            return modifier - _HEADER >> 16, scale - 0x800 if scale > 0x3FF else scale
        case "time" | "timestamp" | "timestamptz":
            return (modifier,)
        case "interval":
            return (modifier & 0xFFFF,) if modifier & 0xFFFF <= 6 else ()
    return ()


ENUM_OIDS_FROM, ENUM_ARRAY_OIDS_FROM = 100_000, 1_000_100_000
"""An enum's number, and that of its array, is its descriptor's id above these."""
