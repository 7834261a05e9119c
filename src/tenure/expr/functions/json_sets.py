"""The members of json and jsonb as rows.

    jsonb_each('{"a": 1}')             (key, value)
    jsonb_array_elements('[1, 2]')     (value)
    jsonb_object_keys('{"a": 1}')      (jsonb_object_keys)

Walk: `expr.set_function_table` lists these.
"""

from collections.abc import Callable, Iterator
from typing import Any

from tenure.base.errors import InvalidParameter
from tenure.expr.functions.json_functions import json_text, jsonb_member_text, raw_members
from tenure.expr.functions.set_function import SetFunction, one_column
from tenure.expr.types.datatype import Datum
from tenure.expr.types.json_values import Json, Jsonb, JsonObject

_SPACE = " \t\n\r"


def set_functions() -> Iterator[SetFunction]:
    for kind, elements, pairs, as_text in (
        ("json", _json_elements, _json_pairs, json_text),
        ("jsonb", _jsonb_elements, _jsonb_pairs, jsonb_member_text),
    ):
        name = f"{kind}_array_elements"
        yield one_column(name, f"{kind} -> {kind}", _named(elements, name), column="value")
        yield one_column(
            f"{name}_text",
            f"{kind} -> text",
            _texts(_named(elements, f"{name}_text"), as_text),
            column="value",
        )
        for each, result, convert in (
            (f"{kind}_each", kind, _itself),
            (f"{kind}_each_text", "text", as_text),
        ):
            columns = (("key", "text"), ("value", result))
            yield SetFunction(each, (kind,), columns, _rows(_named(pairs, each), convert))
        name = f"{kind}_object_keys"
        yield one_column(name, f"{kind} -> text", _keys(_named(pairs, name)))


Members = Callable[[Any], Iterator[Any]]


def _named(run: Callable[[Any, str], Iterator[Any]], name: str) -> Members:
    return lambda value: run(value, name)


def _itself(value: Datum) -> Datum:
    return value


def _texts(elements: Members, as_text: Callable[[Any], str | None]) -> Members:
    return lambda value: (as_text(each) for each in elements(value))


def _rows(pairs: Members, convert: Callable[[Any], Datum]) -> Members:
    return lambda value: ((name, convert(member)) for name, member in pairs(value))


def _keys(pairs: Members) -> Members:
    return lambda value: (name for name, _ in pairs(value))


def _jsonb_elements(value: Jsonb, name: str) -> Iterator[Jsonb]:
    inner = value.value
    if isinstance(inner, JsonObject):
        raise InvalidParameter("cannot extract elements from an object")
    if not isinstance(inner, tuple):
        raise InvalidParameter("cannot extract elements from a scalar")
    return (Jsonb(each) for each in inner)


def _jsonb_pairs(value: Jsonb, name: str) -> Iterator[tuple[str, Jsonb]]:
    inner = value.value
    if not isinstance(inner, JsonObject):
        shape = "an array" if isinstance(inner, tuple) else "a scalar"
        raise InvalidParameter(f"cannot call {name} on {shape}")
    return ((key, Jsonb(each)) for key, each in inner)


def _json_elements(value: Json, name: str) -> Iterator[Json]:
    text = value.text.strip(_SPACE)
    if text[0] != "[":
        shape = "an object" if text[0] == "{" else "a scalar"
        raise InvalidParameter(f"cannot call {name} on {shape}")
    return (Json(raw) for _, raw in raw_members(text))


def _json_pairs(value: Json, name: str) -> Iterator[tuple[str, Json]]:
    text = value.text.strip(_SPACE)
    if text[0] != "{":
        shape = "an array" if text[0] == "[" else "a scalar"
        raise InvalidParameter(f"cannot call {name} on {shape}")
    return ((str(key), Json(raw)) for key, raw in raw_members(text))
