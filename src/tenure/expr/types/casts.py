"""Casts between types, and when PostgreSQL makes them by itself.

    implicit     anywhere, without being asked      int4 to numeric, varchar to text
    assignment   when a column is given a value     numeric to int4, anything to text
    explicit     when the statement writes it       text to int4, int4 to bool

A cast goes from family to family by the table below, by text (to and from strings), by the
elements (arrays), or from an untyped literal; then the target's modifiers are applied: an explicit
cast cuts a string that is too long, the others refuse it (22001).

Casts between timestamptz and text, date, time or timestamp go by the session's time zone, which only
the Context knows: `zoned_cast`. `cast_function` makes the same casts in UTC.

Walk: `expr.tree.overload_resolution` asks `can_cast`, `expr.tree.compiled` asks `cast_function`.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import lru_cache
from math import inf
from typing import Any

from tenure.base.errors import CannotCast, InvalidParameter, NotSupported, OutOfRange, UserError
from tenure.catalog.descriptors.definitions import TypeRef, replace
from tenure.expr.types.arrays import ArrayOf
from tenure.expr.types.big_numbers import whole
from tenure.expr.types.catalog_types import VECTORS
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.enums import EnumOf
from tenure.expr.types.floats import FloatType, to_float4
from tenure.expr.types.interval import MICROS_PER_DAY, Interval
from tenure.expr.types.json_values import Json, Jsonb, JsonObject, jsonb_text
from tenure.expr.types.numbers import fits, numeric_text, parse_numeric, rounded
from tenure.expr.types.system_types import RegType, cast_rules, to_name
from tenure.expr.types.time_types import time_micros, time_of
from tenure.expr.types.time_words import WORDS
from tenure.expr.types.type_names import type_of
from tenure.expr.types.zone_words import EVERYWHERE, LOCAL
from tenure.expr.types.zones import from_zone, local_in

Convert = Callable[[Datum], Datum]
ZonedConvert = Callable[[Datum, tzinfo], Datum]

IMPLICIT, ASSIGNMENT, EXPLICIT = "implicit", "assignment", "explicit"
_RANK = {IMPLICIT: 0, ASSIGNMENT: 1, EXPLICIT: 2}
_STRINGS = ("text", "varchar", "char", "name")


def can_cast(source: Type, target: Type, context: str) -> bool:
    needed = _needed(source, target)
    return needed is not None and _RANK[needed] <= _RANK[context]


def cast_function(source: Type, target: Type, context: str) -> Convert | None:
    """Returns the function that casts a value that is not NULL; None if the value stays as it is.

    Raises CannotCast (42846) if there is no such cast in this context.
    """
    if not can_cast(source, target, context):
        raise CannotCast(f"cannot cast type {bare(source).sql_name} to {bare(target).sql_name}")
    convert = _family_cast(source, target)
    if not target.ref.modifiers or source.ref == target.ref:
        return convert
    fit = target.truncate if context == EXPLICIT else target.accept
    return fit if convert is None else _then(convert, fit)


def zoned_cast(source: Type, target: Type, context: str) -> ZonedConvert | None:
    """Returns the function that casts by the session's time zone; None if the zone does not matter."""
    if not can_cast(source, target, context):
        return None
    convert = _zoned_family_cast(source, target)
    if convert is None or not target.ref.modifiers:
        return convert
    fit = target.truncate if context == EXPLICIT else target.accept
    return lambda value, zone: fit(convert(value, zone))


def _zoned_family_cast(source: Type, target: Type) -> ZonedConvert | None:
    if target.follows_zone and source.family in (*_STRINGS, "unknown"):
        return bare(target).parse_in
    if source.follows_zone and target.family in _STRINGS:
        return source.render_in
    if isinstance(source, ArrayOf) and isinstance(target, ArrayOf):
        inner, array = _zoned_family_cast(source.element, target.element), target
        if inner is None:
            return None
        return lambda value, zone: array.map(value, lambda each: inner(each, zone))
    return _ZONED.get((source.family, target.family))


def asks_catalog(source: Type, target: Type) -> bool:
    """Whether the cast is to regclass or another reg type: the Context's `find_object` makes it."""
    return isinstance(target, RegType) and not isinstance(source, RegType)


def is_fixed(text: str, target: Type) -> bool:
    """Whether a literal means the same in every session. Raises as reading it does."""
    if isinstance(target, RegType):
        return False
    if not target.follows_zone:
        return True
    if any(word.lower() not in _PLAIN_WORDS for word in _WORD.findall(text)):
        _check_spoken(text, target)
        return False  # an abbreviation, which depends on the session's place
    return bool(target.parse_in(text, UTC) == target.parse_in(text, _ELSEWHERE))


def _check_spoken(text: str, target: Type) -> None:
    """Raises if a literal with abbreviations of time zones cannot be read in any zone."""
    try:
        target.parse_in(text, UTC)
    except UserError as error:
        try:
            target.parse_in(_WORD.sub(lambda found: _plain_word(found[0]), text), UTC)
        except UserError:
            raise error from None


def _plain_word(word: str) -> str:
    return "UTC" if word.lower() in LOCAL else word


def _then(first: Convert, second: Convert) -> Convert:
    def both(value: Datum) -> Datum:
        value = first(value)
        return None if value is None else second(value)

    return both


@lru_cache(maxsize=4096)
def bare(kind: Type) -> Type:
    """The type without its modifiers."""
    if not kind.ref.modifiers:
        return kind
    ref = replace(kind.ref, modifiers=())
    return type_of(ref)


def _needed(source: Type, target: Type) -> str | None:
    """The least context in which the cast may be made."""
    if source.family == target.family or source.family == "unknown":
        return IMPLICIT
    if isinstance(source, ArrayOf) and isinstance(target, ArrayOf):
        return EXPLICIT if target.family in VECTORS else _needed(source.element, target.element)
    rule = _RULES.get((source.family, target.family))
    if rule is not None:
        return rule[0]
    if target.family in _STRINGS:
        return ASSIGNMENT
    return EXPLICIT if source.family in _STRINGS else None


def _family_cast(source: Type, target: Type) -> Convert | None:
    if source.family == target.family:
        return None
    if source.family == "unknown":
        return bare(target).parse
    if isinstance(source, ArrayOf) and isinstance(target, ArrayOf):
        inner = _family_cast(source.element, target.element)
        array = target
        return None if inner is None else (lambda value: array.map(value, inner))
    rule = _RULES.get((source.family, target.family))
    if rule is not None:
        return rule[1]
    if target.family == "name":
        return lambda value: to_name(source.render(value))
    if target.family in _STRINGS:
        return None if isinstance(source, EnumOf) else source.render
    return bare(target).parse


# The table: (from, to) gives the context and what is done; None if the value stays as it is.


def _to_int(size: int, name: str) -> Convert:
    def convert(value: Any) -> int:
        if isinstance(value, Decimal):
            if not value.is_finite():
                raise NotSupported(f"cannot convert {'NaN' if value.is_nan() else 'infinity'} to {name}")
            value = whole(rounded(value, 0))
        elif isinstance(value, float):
            if value != value or abs(value) == inf:
                raise OutOfRange(f"{name} out of range")
            value = round(value)
        if not fits(value, size):
            raise OutOfRange(f"{name} out of range")
        return int(value)

    return convert


_FLOAT4, _FLOAT8 = FloatType(TypeRef("float4"), 4), FloatType(TypeRef("float8"), 8)
_JSONB = type_of(TypeRef("jsonb"))


def _to_float(kind: FloatType) -> Convert:
    return lambda value: kind.parse(numeric_text(value) if isinstance(value, Decimal) else str(value))


def _float_to_numeric(digits: int) -> Convert:
    def convert(value: float) -> Decimal:
        if value != value or abs(value) == inf:
            return Decimal(value)
        return parse_numeric(f"{value:.{digits}g}")

    return convert


def _int_to_bytes(size: int) -> Convert:
    return lambda value: value.to_bytes(size, "big", signed=True)


def _bytes_to_int(size: int, name: str) -> Convert:
    def convert(value: bytes) -> int:
        if len(value) > size:
            raise OutOfRange(f"{name} out of range")
        # Fewer bytes than the type has are filled with zeros: no sign is extended.
        return int.from_bytes(value, "big", signed=len(value) == size)

    return convert


def _strip(value: str) -> str:
    return value.rstrip(" ")


def _midnight(value: date) -> datetime:
    return datetime(value.year, value.month, value.day)


def _midnight_utc(value: date) -> datetime:
    return datetime(value.year, value.month, value.day, tzinfo=UTC)


def _interval_to_time(value: Interval) -> time:
    return time_of(value.micros % MICROS_PER_DAY)


def _jsonb_to(target: str, accepts: type, convert: Convert) -> Convert:
    def from_jsonb(value: Jsonb) -> Datum:
        inner = value.value
        if inner is None:
            return None
        if type(inner) is not accepts:
            raise InvalidParameter(f"cannot cast jsonb {jsonb_kind(inner)} to type {target}")
        return convert(inner)

    return from_jsonb


def jsonb_kind(value: Any) -> str:
    if isinstance(value, JsonObject):
        return "object"
    kinds = {type(None): "null", bool: "boolean", Decimal: "numeric", str: "string", tuple: "array"}
    return kinds[type(value)]


_INTS = {"int2": (2, "smallint"), "int4": (4, "integer"), "int8": (8, "bigint")}


def _number_rules() -> dict[tuple[str, str], tuple[str, Convert | None]]:
    rules: dict[tuple[str, str], tuple[str, Convert | None]] = {}
    for source, (size, _) in _INTS.items():
        for target, (other_size, name) in _INTS.items():
            if size < other_size:
                rules[source, target] = IMPLICIT, None
            elif size > other_size:
                rules[source, target] = ASSIGNMENT, _to_int(other_size, name)
        rules[source, "numeric"] = IMPLICIT, Decimal
        rules[source, "float4"] = IMPLICIT, _to_float(_FLOAT4)
        rules[source, "float8"] = IMPLICIT, float
        rules[source, "bytea"] = EXPLICIT, _int_to_bytes(size)
    for target, (size, name) in _INTS.items():
        for source in ("float4", "float8", "numeric"):
            rules[source, target] = ASSIGNMENT, _to_int(size, name)
        rules["bytea", target] = EXPLICIT, _bytes_to_int(size, name)
        rules["jsonb", target] = EXPLICIT, _jsonb_to(name, Decimal, _to_int(size, name))
    return rules


_WORD = re.compile(r"(?<![a-z/_])[a-z]+(?![a-z/_])", re.IGNORECASE)
_PLAIN_WORDS = WORDS.keys() | EVERYWHERE
_ELSEWHERE = timezone(timedelta(hours=1))
_ZONED: dict[tuple[str, str], ZonedConvert] = {
    ("date", "timestamptz"): lambda value, zone: from_zone(_midnight(value), zone),
    ("timestamp", "timestamptz"): from_zone,
    ("timestamptz", "timestamp"): local_in,
    ("timestamptz", "date"): lambda value, zone: local_in(value, zone).date(),
    ("timestamptz", "time"): lambda value, zone: local_in(value, zone).time(),
}

_RULES: dict[tuple[str, str], tuple[str, Convert | None]] = {
    **_number_rules(),
    **cast_rules(),
    ("numeric", "float4"): (IMPLICIT, _to_float(_FLOAT4)),
    ("numeric", "float8"): (IMPLICIT, _to_float(_FLOAT8)),
    ("float4", "numeric"): (ASSIGNMENT, _float_to_numeric(6)),
    ("float8", "numeric"): (ASSIGNMENT, _float_to_numeric(15)),
    ("float4", "float8"): (IMPLICIT, None),
    ("float8", "float4"): (ASSIGNMENT, to_float4),
    ("bool", "int4"): (EXPLICIT, int),
    ("int4", "bool"): (EXPLICIT, bool),
    **{("bool", target): (ASSIGNMENT, lambda value: "true" if value else "false") for target in _STRINGS[:3]},
    ("text", "varchar"): (IMPLICIT, None),
    ("text", "char"): (IMPLICIT, None),
    ("varchar", "text"): (IMPLICIT, None),
    ("varchar", "char"): (IMPLICIT, None),
    ("char", "text"): (IMPLICIT, _strip),
    ("char", "varchar"): (IMPLICIT, _strip),
    ("date", "timestamp"): (IMPLICIT, _midnight),
    ("date", "timestamptz"): (IMPLICIT, _midnight_utc),
    ("timestamp", "timestamptz"): (IMPLICIT, lambda value: value.replace(tzinfo=UTC)),
    ("timestamp", "date"): (ASSIGNMENT, datetime.date),
    ("timestamp", "time"): (ASSIGNMENT, datetime.time),
    ("timestamptz", "timestamp"): (ASSIGNMENT, lambda value: value.replace(tzinfo=None)),
    ("timestamptz", "date"): (ASSIGNMENT, datetime.date),
    ("timestamptz", "time"): (ASSIGNMENT, datetime.time),
    ("time", "interval"): (IMPLICIT, lambda value: Interval(micros=time_micros(value))),
    ("interval", "time"): (ASSIGNMENT, _interval_to_time),
    ("json", "jsonb"): (ASSIGNMENT, lambda value: _JSONB.parse(value.text)),
    ("jsonb", "json"): (ASSIGNMENT, lambda value: Json(jsonb_text(value.value))),
    ("jsonb", "bool"): (EXPLICIT, _jsonb_to("boolean", bool, bool)),
    ("jsonb", "numeric"): (EXPLICIT, _jsonb_to("numeric", Decimal, lambda value: value)),
    ("jsonb", "float4"): (EXPLICIT, _jsonb_to("real", Decimal, _to_float(_FLOAT4))),
    ("jsonb", "float8"): (EXPLICIT, _jsonb_to("double precision", Decimal, _to_float(_FLOAT8))),
}
