"""json and jsonb made of other values: to_json, json_build_object and what the aggregates need.

    numbers and booleans   as they are; NaN and the infinities as strings
    days and times         strings in ISO 8601
    arrays                 arrays
    json, jsonb            themselves
    everything else        its text, as a string

Walk: `expr.functions.json_building` and `expr.aggregates.collecting_aggregates` make values with these.
"""

from collections.abc import Callable
from datetime import tzinfo
from decimal import Decimal
from typing import Any

from tenure.base.errors import InvalidParameter
from tenure.base.interruptible import paced
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.types.arrays import ArrayOf
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.json_values import Jsonb, JsonbType, JsonType, jsonb_text, object_of, quoted
from tenure.expr.types.numbers import parse_numeric
from tenure.expr.types.time_types import DateType, InstantType, TimestampType, iso_text
from tenure.expr.types.type_names import type_of
from tenure.expr.types.value_lengths import join_all
from tenure.expr.types.zones import in_zone

_JSONB = type_of(TypeRef("jsonb"))


def json_text_of(kind: Type) -> Callable[[Datum, tzinfo], str]:
    """Returns the function that writes a value of the type, or NULL, as json."""
    write = _writer(kind)
    return lambda value, zone: "null" if value is None else write(value, zone)


def _writer(kind: Type) -> Callable[[Datum, tzinfo], str]:
    if kind.family == "bool":
        return lambda value, zone: "true" if value else "false"
    if kind.category == "N":
        return lambda value, zone: _number_text(kind.render(value))
    if isinstance(kind, JsonType):
        return lambda value, zone: str(value.text)
    if isinstance(kind, JsonbType):
        return lambda value, zone: jsonb_text(value.value)
    if isinstance(kind, ArrayOf):
        return _array_writer(json_text_of(kind.element))
    text = text_of(kind)
    return lambda value, zone: quoted(text(value, zone))


def _number_text(text: str) -> str:
    return text if text[-1].isdigit() else f'"{text}"'


def _array_writer(member: Callable[[Datum, tzinfo], str]) -> Callable[[Datum, tzinfo], str]:
    def write(value: Datum, zone: tzinfo) -> str:
        if isinstance(value, tuple):
            return "[" + str(join_all(",", [write(each, zone) for each in paced(value)])) + "]"
        return member(value, zone)

    return write


def text_of(kind: Type) -> Callable[[Datum, tzinfo], str]:
    """A value's text inside a json string, or as the name of a member."""
    if isinstance(kind, InstantType):
        return lambda value, zone: iso_text(in_zone(value, zone))
    if isinstance(kind, TimestampType):
        return lambda value, zone: iso_text(value)
    if isinstance(kind, DateType):
        return lambda value, zone: str(value.isoformat())
    if kind.family == "bool":
        return lambda value, zone: "true" if value else "false"
    return kind.render_in


def jsonb_value_of(kind: Type) -> Callable[[Datum, tzinfo], Any]:
    """Returns the function that turns a value of the type, or NULL, into the value inside a Jsonb."""
    convert = _converter(kind)
    return lambda value, zone: None if value is None else convert(value, zone)


def _converter(kind: Type) -> Callable[[Datum, tzinfo], Any]:
    if kind.family == "bool":
        return lambda value, zone: value
    if kind.category == "N":
        return lambda value, zone: _number(kind.render(value))
    if isinstance(kind, JsonType):
        return lambda value, zone: _JSONB.parse(value.text).value
    if isinstance(kind, JsonbType):
        return lambda value, zone: value.value
    if isinstance(kind, ArrayOf):
        return _array_converter(jsonb_value_of(kind.element))
    return text_of(kind)


def _number(text: str) -> Decimal | str:
    return parse_numeric(text) if text[-1].isdigit() else text


def _array_converter(member: Callable[[Datum, tzinfo], Any]) -> Callable[[Datum, tzinfo], Any]:
    def convert(value: Datum, zone: tzinfo) -> Any:
        if isinstance(value, tuple):
            return tuple([convert(each, zone) for each in paced(value)])
        return member(value, zone)

    return convert


def member_name(kind: Type) -> Callable[[Datum, tzinfo], str]:
    """Returns the function that makes the name of an object's member; it raises InvalidParameter if it
    cannot."""
    if isinstance(kind, ArrayOf | JsonType | JsonbType):
        return _refuse_name
    return text_of(kind)


def _refuse_name(value: Datum, zone: tzinfo) -> str:
    raise InvalidParameter("key value must be scalar, not array, composite, or json")


def jsonb_object(pairs: list[tuple[str, Any]]) -> Jsonb:
    return Jsonb(object_of(pairs))
