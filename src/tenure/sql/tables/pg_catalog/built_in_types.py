"""What PostgreSQL's catalogs say of the built-in types that exist here.

    name: length category align storage, in and out functions, operator class of btree

Walk: `sql.tables.pg_catalog.types` makes rows of pg_type of these, `sql.tables.pg_catalog.classes` those of
pg_attribute.
"""

from collections.abc import Mapping
from typing import NamedTuple

from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.types.system_types import Reg

DEFAULT_COLLATION, C_COLLATION = 100, 950
BTREE, HEAP = 403, 2
"""Access methods."""


class BuiltIn(NamedTuple):
    length: int
    is_by_value: bool
    category: str
    is_preferred: bool
    align: str
    storage: str
    collation: int
    functions: tuple[Reg, ...]
    """Of input, output, receive, send; and for modifiers, where the type has them."""
    operators: tuple[int, str, int, str] | None
    """Its operator class of btree and the family of that: oids and names."""


_DECLARED = """
bool 1 v B! c p 0 boolin 1242 boolout 1243 boolrecv 2436 boolsend 2437 / 10003 bool_ops 424 bool_ops
bytea -1 r U i x 0 byteain 1244 byteaout 31 bytearecv 2412 byteasend 2413 / 10006 bytea_ops 428 bytea_ops
"char" 1 v Z c p 0 charin 1245 charout 33 charrecv 2434 charsend 2435 / 10007 char_ops 429 char_ops
name 64 r S c p 950 namein 34 nameout 35 namerecv 2422 namesend 2423 / 10028 name_ops 1994 text_ops
int8 8 v N d p 0 int8in 460 int8out 461 int8recv 2408 int8send 2409 / 3124 int8_ops 1976 integer_ops
int2 2 v N s p 0 int2in 38 int2out 39 int2recv 2404 int2send 2405 / 1979 int2_ops 1976 integer_ops
int2vector -1 r A i p 0 int2vectorin 40 int2vectorout 41 int2vectorrecv 2410 int2vectorsend 2411
int4 4 v N i p 0 int4in 42 int4out 43 int4recv 2406 int4send 2407 / 1978 int4_ops 1976 integer_ops
regproc 4 v N i p 0 regprocin 44 regprocout 45 regprocrecv 2444 regprocsend 2445
text -1 r S! i x 100 textin 46 textout 47 textrecv 2414 textsend 2415 / 3126 text_ops 1994 text_ops
oid 4 v N! i p 0 oidin 1798 oidout 1799 oidrecv 2418 oidsend 2419 / 1981 oid_ops 1989 oid_ops
xid 4 v U i p 0 xidin 50 xidout 51 xidrecv 2440 xidsend 2441
oidvector -1 r A i p 0 oidvectorin 54 oidvectorout 55 oidvectorrecv 2420 oidvectorsend 2421
json -1 r U i x 0 json_in 321 json_out 322 json_recv 323 json_send 324
pg_node_tree -1 r Z i x 100 pg_node_tree_in 195 pg_node_tree_out 196 pg_node_tree_recv 197
 pg_node_tree_send 198
float4 4 v N i p 0 float4in 200 float4out 201 float4recv 2424 float4send 2425
 / 10012 float4_ops 1970 float_ops
float8 8 v N! d p 0 float8in 214 float8out 215 float8recv 2426 float8send 2427
 / 3123 float8_ops 1970 float_ops
unknown -2 r X c p 0 unknownin 109 unknownout 110 unknownrecv 2416 unknownsend 2417
aclitem 16 r U d p 0 aclitemin 1031 aclitemout 1032
char -1 r S i x 100 bpcharin 1044 bpcharout 1045 bpcharrecv 2430 bpcharsend 2431 bpchartypmodin 2913
 bpchartypmodout 2914 / 10004 bpchar_ops 426 bpchar_ops
varchar -1 r S i x 100 varcharin 1046 varcharout 1047 varcharrecv 2432 varcharsend 2433 varchartypmodin 2915
 varchartypmodout 2916 / 3126 text_ops 1994 text_ops
date 4 v D i p 0 date_in 1084 date_out 1085 date_recv 2468 date_send 2469 / 3122 date_ops 434 datetime_ops
time 8 v D d p 0 time_in 1143 time_out 1144 time_recv 2470 time_send 2471 timetypmodin 2909
 timetypmodout 2910 / 10038 time_ops 1996 time_ops
timestamp 8 v D d p 0 timestamp_in 1312 timestamp_out 1313 timestamp_recv 2474 timestamp_send 2475
 timestamptypmodin 2905 timestamptypmodout 2906 / 3128 timestamp_ops 434 datetime_ops
timestamptz 8 v D! d p 0 timestamptz_in 1150 timestamptz_out 1151 timestamptz_recv 2476 timestamptz_send 2477
 timestamptztypmodin 2907 timestamptztypmodout 2908 / 3127 timestamptz_ops 434 datetime_ops
interval 16 r T! d p 0 interval_in 1160 interval_out 1161 interval_recv 2478 interval_send 2479
 intervaltypmodin 2903 intervaltypmodout 2904 / 10022 interval_ops 1982 interval_ops
numeric -1 r N i m 0 numeric_in 1701 numeric_out 1702 numeric_recv 2460 numeric_send 2461
 numerictypmodin 2917 numerictypmodout 2918 / 3125 numeric_ops 1988 numeric_ops
regprocedure 4 v N i p 0 regprocedurein 2212 regprocedureout 2213 regprocedurerecv 2446 regproceduresend 2447
regoperator 4 v N i p 0 regoperatorin 2214 regoperatorout 2215 regoperatorrecv 2450 regoperatorsend 2451
regclass 4 v N i p 0 regclassin 2218 regclassout 2219 regclassrecv 2452 regclasssend 2453
regtype 4 v N i p 0 regtypein 2220 regtypeout 2221 regtyperecv 2454 regtypesend 2455
void 4 v P i p 0 void_in 2298 void_out 2299 void_recv 3120 void_send 3121
uuid 16 r U c p 0 uuid_in 2952 uuid_out 2953 uuid_recv 2961 uuid_send 2962 / 10065 uuid_ops 2968 uuid_ops
jsonb -1 r U i x 0 jsonb_in 3806 jsonb_out 3804 jsonb_recv 3805 jsonb_send 3803
 / 10088 jsonb_ops 4033 jsonb_ops
regrole 4 v N i p 0 regrolein 4098 regroleout 4092 regrolerecv 4094 regrolesend 4095
regnamespace 4 v N i p 0 regnamespacein 4084 regnamespaceout 4085 regnamespacerecv 4087 regnamespacesend 4088
regcollation 4 v N i p 0 regcollationin 4193 regcollationout 4194 regcollationrecv 4196 regcollationsend 4197
"""


def _functions(text: str) -> tuple[Reg, ...]:
    words = text.split()
    return tuple(Reg(int(oid), name) for name, oid in zip(words[::2], words[1::2], strict=True))


_ARRAY_FUNCTIONS = _functions("array_in 750 array_out 751 array_recv 2400 array_send 2401")
_ENUM_FUNCTIONS = _functions("enum_in 3506 enum_out 3507 enum_recv 3532 enum_send 3533")
ENUM = BuiltIn(4, True, "E", False, "i", "p", 0, _ENUM_FUNCTIONS, (10069, "enum_ops", 3522, "enum_ops"))
ARRAY_OPERATORS = (10000, "array_ops", 397, "array_ops")


def _declared() -> dict[str, BuiltIn]:
    found = {}
    for line in _DECLARED.strip().replace("\n ", " ").splitlines():
        words, _, operators = line.partition(" / ")
        name, length, by_value, category, align, storage, collation, *functions = words.split()
        of_class = operators.split()
        found[name] = BuiltIn(
            int(length),
            by_value == "v",
            category[0],
            category.endswith("!"),
            align,
            storage,
            int(collation),
            _functions(" ".join(functions)),
            (int(of_class[0]), of_class[1], int(of_class[2]), of_class[3]) if of_class else None,
        )
    return found


BUILT_IN: Mapping[str, BuiltIn] = _declared()


def built_in(ref: TypeRef) -> BuiltIn:
    """Of any type: arrays and enums are described by what they have in common."""
    element = ENUM if ref.enum else BUILT_IN[ref.name]
    return array_of(element) if ref.is_array else element


def array_of(element: BuiltIn) -> BuiltIn:
    align = "d" if element.align == "d" else "i"
    return BuiltIn(-1, False, "A", False, align, "x", element.collation, _ARRAY_FUNCTIONS, ARRAY_OPERATORS)


_OF_TEXTS = ("text_ops", "varchar_ops", "text_pattern_ops", "varchar_pattern_ops")
_OF_STRINGS = {
    **{"text": _OF_TEXTS, "varchar": _OF_TEXTS},
    "char": ("bpchar_ops", "bpchar_pattern_ops"),
}


def operator_classes(ref: TypeRef) -> tuple[str, ...]:
    """The names of the classes of btree by which a column of this type may be indexed."""
    kind = built_in(ref)
    usual = () if kind.operators is None else (kind.operators[1],)
    return usual if ref.is_array else _OF_STRINGS.get(ref.name, usual)


OPERATOR_CLASSES = frozenset(
    [*(each.operators[1] for each in BUILT_IN.values() if each.operators), "enum_ops", "array_ops"]
    + [name for names in _OF_STRINGS.values() for name in names]
)
