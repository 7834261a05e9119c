"""Looking into json and jsonb, and what jsonb contains.

    ->  ->>  #>  #>>    a member, as json or as text; NULL if there is none
    @>  <@  ?           containment by PostgreSQL's rules, and whether a key is there

A member taken out of a json keeps its text.

Walk: `expr.function_table` lists these.
"""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from typing import Any

from tenure.base.errors import ArraySizesDiffer, InvalidParameter
from tenure.base.interruptible import STEPS_PER_CHECK, check_now, paced
from tenure.expr.functions.function import Function, function
from tenure.expr.types.arrays import dimensions, flatten
from tenure.expr.types.casts import jsonb_kind
from tenure.expr.types.datatype import Datum
from tenure.expr.types.json_reading import after_blank, string_at, value_end
from tenure.expr.types.json_values import Json, Jsonb, JsonObject, jsonb_text, object_of
from tenure.expr.types.numbers import whole_number
from tenure.expr.types.text_slices import SLICE

_JSON = "json"


def functions() -> Iterator[Function]:
    for kind, step, as_text in (("jsonb", _step, jsonb_member_text), (_JSON, _json_step, json_text)):
        for key in ("text", "int4"):
            one = _step_into_scalar if kind == "jsonb" else step
            yield function("->", f"{kind}, {key} -> {kind}", one)
            yield function("->>", f"{kind}, {key} -> text", _then_text(one, as_text))
        walk, walk_to_text = _path(step), _then_text(_path(step), as_text)
        yield function("#>", f"{kind}, text[] -> {kind}", walk)
        yield function("#>>", f"{kind}, text[] -> text", walk_to_text)
        for name, result, run in (("path", kind, walk), ("path_text", "text", walk_to_text)):
            spread = partial(_spread, run)
            yield Function(f"{kind}_extract_{name}", (kind, "text"), result, spread, is_variadic=True)
    yield function("@>", "jsonb, jsonb -> bool", lambda a, b: contains(a.value, b.value))
    yield function("<@", "jsonb, jsonb -> bool", lambda a, b: contains(b.value, a.value))
    yield function("?", "jsonb, text -> bool", has_key)
    yield function("?|", "jsonb, text[] -> bool", lambda a, keys: not _keys(a).isdisjoint(_names(keys)))
    yield function("?&", "jsonb, text[] -> bool", lambda a, keys: _keys(a).issuperset(_names(keys)))
    yield function("||", "jsonb, jsonb -> jsonb", _concatenate)
    yield function("-", "jsonb, text -> jsonb", lambda a, key: _without_keys(a, (key,)))
    yield function("-", "jsonb, text[] -> jsonb", _without_keys)
    yield function("-", "jsonb, int4 -> jsonb", _without_element)
    yield function("jsonb_typeof", "jsonb -> text", lambda a: _type_name(a.value))
    yield function("jsonb_array_length", "jsonb -> int4", _array_length)
    yield function("json_typeof", "json -> text", _json_type_name)
    yield function("json_array_length", "json -> int4", _json_array_length)


# Members


def _step(value: Jsonb, key: str | int) -> Jsonb | None:
    inner = value.value
    if isinstance(key, str):
        return inner.get(key) if isinstance(inner, JsonObject) else None
    if isinstance(inner, JsonObject) or not isinstance(inner, tuple):
        return None
    return Jsonb(inner[key]) if -len(inner) <= key < len(inner) else None


def _step_into_scalar(value: Jsonb, key: str | int) -> Jsonb | None:
    """PostgreSQL keeps a scalar as an array of one element, so -> 0 and -> -1 find it."""
    return value if key in (0, -1) and not isinstance(value.value, tuple) else _step(value, key)


def jsonb_member_text(value: Jsonb) -> str | None:
    inner = value.value
    return inner if inner is None or isinstance(inner, str) else jsonb_text(inner)


def _then_text(
    step: Callable[..., Datum], as_text: Callable[[Datum], str | None]
) -> Callable[..., str | None]:
    def text_of(value: Datum, key: Datum) -> str | None:
        found = step(value, key)
        return None if found is None else as_text(found)

    return text_of


def _path(step: Callable[..., Datum]) -> Callable[[Datum, tuple[str | None, ...]], Datum]:
    def walk(value: Datum, path: tuple[str | None, ...]) -> Datum:
        for key in flatten(path):
            if value is None or key is None:
                return None
            at = whole_number(key.strip())
            found = step(value, key)
            value = found if found is not None or at is None else step(value, at)
        return value

    return walk


def _spread(walk: Callable[[Datum, Datum], Datum], value: Datum, *path: str) -> Datum:
    return walk(value, path)


# json: the same on text

_DECODER = json.JSONDecoder(parse_float=str, parse_int=str)
_SPACE = " \t\n\r"


def _json_step(value: Json, key: str | int) -> Json | None:
    members = raw_members(value.text.strip(_SPACE))
    if isinstance(key, str):
        return next((Json(raw) for name, raw in reversed(members) if name == key), None)
    raws = [raw for name, raw in members if name is None]
    return Json(raws[key]) if -len(raws) <= key < len(raws) else None


def raw_members(text: str) -> list[tuple[str | None, str]]:
    """Name (None in an array) and text of each member; none of a scalar."""
    members: list[tuple[str | None, str]] = []
    if text[:1] not in ("{", "["):
        return members
    position = after_blank(text, 1)
    end_of = value_end if len(text) > SLICE else _short_end
    while text[position] not in "}]":
        name: str | None = None
        if text[0] == "{":
            name, position = string_at(text, position)
            position = after_blank(text, after_blank(text, position) + 1)
        end = end_of(text, position)
        members.append((name, text[position:end]))
        position = after_blank(text, end)
        if text[position] == ",":
            position = after_blank(text, position + 1)
        if len(members) % STEPS_PER_CHECK == 0:
            check_now()
    return members


def _short_end(text: str, position: int) -> int:
    return _DECODER.raw_decode(text, position)[1]


def json_text(value: Json) -> str | None:
    text = value.text.strip(_SPACE)
    if text == "null":
        return None
    if text.startswith('"'):
        return string_at(text, 0)[0]
    return text


# jsonb: containment and changes


def contains(whole: Any, part: Any) -> bool:
    """An array at the top contains a scalar that is among its elements; nowhere else do kinds mix."""
    if _is_array(whole) and not isinstance(part, tuple):
        return any(_equal_scalars(each, part) for each in paced(whole))
    return _contains(whole, part)


def _contains(whole: Any, part: Any) -> bool:
    if isinstance(part, JsonObject):
        if not isinstance(whole, JsonObject):
            return False
        have = dict(whole)
        return all(name in have and _contains(have[name], each) for name, each in paced(part))
    if _is_array(part):
        return _is_array(whole) and _contains_all(whole, part)
    return _equal_scalars(whole, part)


def _contains_all(whole: tuple[Any, ...], part: tuple[Any, ...]) -> bool:
    scalars = {(type(each), each) for each in paced(whole) if not isinstance(each, tuple)}
    inner = [each for each in paced(whole) if isinstance(each, tuple)]
    for each in paced(part):
        if not isinstance(each, tuple):
            if (type(each), each) not in scalars:
                return False
        elif not any(_contains(mine, each) for mine in paced(inner)):
            return False
        else:
            check_now()  # each element was searched for among all of them
    return True


def _is_array(value: Any) -> bool:
    return isinstance(value, tuple) and not isinstance(value, JsonObject)


def _equal_scalars(a: Any, b: Any) -> bool:
    return type(a) is type(b) and not isinstance(a, tuple) and bool(a == b)


def has_key(value: Jsonb, key: str) -> bool:
    """A key of an object, a string in an array, or the very string."""
    inner = value.value
    if isinstance(inner, JsonObject):
        return any(name == key for name, _ in inner)
    return key in inner if isinstance(inner, tuple) else inner == key and isinstance(inner, str)


def _keys(value: Jsonb) -> set[str]:
    """All for which `has_key` holds."""
    inner = value.value
    if isinstance(inner, JsonObject):
        return {name for name, _ in paced(inner)}
    return {each for each in paced(inner if isinstance(inner, tuple) else (inner,)) if isinstance(each, str)}


def _names(keys: Datum) -> Iterator[str]:
    return (each for each in flatten(keys) if each is not None)


def _concatenate(a: Jsonb, b: Jsonb) -> Jsonb:
    left, right = a.value, b.value
    if isinstance(left, JsonObject) and isinstance(right, JsonObject):
        return Jsonb(object_of({**dict(left), **dict(right)}))
    return Jsonb(_as_array(left) + _as_array(right))


def _as_array(value: Any) -> tuple[Any, ...]:
    return value if _is_array(value) else (value,)


def _without_keys(value: Jsonb, keys: Datum) -> Jsonb:
    if len(dimensions(keys)) > 1:
        raise ArraySizesDiffer("wrong number of array subscripts")
    inner, unwanted = value.value, set(_names(keys))
    if isinstance(inner, JsonObject):
        return Jsonb(JsonObject([pair for pair in paced(inner) if pair[0] not in unwanted]))
    if isinstance(inner, tuple):
        kept = [each for each in paced(inner) if not isinstance(each, str) or each not in unwanted]
        return Jsonb(tuple(kept))
    raise InvalidParameter("cannot delete from scalar")


def _without_element(value: Jsonb, at: int) -> Jsonb:
    inner = value.value
    if not isinstance(inner, tuple):
        raise InvalidParameter("cannot delete from scalar")
    if isinstance(inner, JsonObject):
        raise InvalidParameter("cannot delete from object using integer index")
    at = at + len(inner) if at < 0 else at
    return Jsonb(inner[:at] + inner[at + 1 :] if 0 <= at < len(inner) else inner)


def _type_name(value: Any) -> str:
    return "number" if isinstance(value, Decimal) else jsonb_kind(value)


def _array_length(value: Jsonb) -> int:
    if not _is_array(value.value):
        shape = "non-array" if isinstance(value.value, JsonObject) else "scalar"
        raise InvalidParameter(f"cannot get array length of a {shape}")
    return len(value.value)


_JSON_TYPES = {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean", "n": "null"}


def _json_type_name(value: Json) -> str:
    return _JSON_TYPES.get(value.text.strip(_SPACE)[0], "number")


def _json_array_length(value: Json) -> int:
    kind = _json_type_name(value)
    if kind != "array":
        shape = "non-array" if kind == "object" else "scalar"
        raise InvalidParameter(f"cannot get array length of a {shape}")
    return len(raw_members(value.text.strip(_SPACE)))
