"""Functions that make json and jsonb of other values, and say whether a text is JSON.

    json_build_object('a', 1, 'b', now())     json_build_array(1, 'x')     to_jsonb(value)

Walk: `expr.function_table` lists these; `expr.functions.json_making` says how values are written.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from tenure.base.errors import ArraySizesDiffer, InvalidParameter, InvalidText, NullNotAllowed
from tenure.base.interruptible import paced
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.functions.function import Context, Function, Volatility, function
from tenure.expr.functions.json_making import json_text_of, jsonb_object, jsonb_value_of, member_name
from tenure.expr.types.arrays import dimensions, flatten
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.json_values import Json, Jsonb, quoted
from tenure.expr.types.type_names import type_of
from tenure.expr.types.value_lengths import join_all


def functions() -> Iterator[Function]:
    of_any = partial(Function, volatility=Volatility.STABLE, wants_types=True, wants_context=True)
    yield of_any("to_json", ("anyelement",), "json", _to_json)
    yield of_any("to_jsonb", ("anyelement",), "jsonb", _to_jsonb)
    yield of_any("array_to_json", ("anyarray",), "json", _to_json)
    of_many = partial(of_any, is_strict=False)
    for arguments, is_variadic in (((), False), (("any",), True)):
        several = partial(of_many, arguments=arguments, is_variadic=is_variadic)
        yield several("json_build_array", result="json", run=_json_array)
        yield several("jsonb_build_array", result="jsonb", run=_jsonb_array)
        yield several("json_build_object", result="json", run=_json_object)
        yield several("jsonb_build_object", result="jsonb", run=_jsonb_object)
    absent = partial(of_many, arguments=("any",), is_variadic=True)
    yield absent("tenure_json_array_absent", result="json", run=_present(_json_array, size=1))
    yield absent("tenure_jsonb_array_absent", result="jsonb", run=_present(_jsonb_array, size=1))
    yield absent("tenure_json_object_absent", result="json", run=_present(_json_object, size=2))
    yield absent("tenure_jsonb_object_absent", result="jsonb", run=_present(_jsonb_object, size=2))
    yield function("tenure_is_json", "text, text -> bool", _is_json)
    for kind, build in (("json", _json_of_texts), ("jsonb", _jsonb_of_texts)):
        yield function(f"{kind}_object", f"text[] -> {kind}", _of_list(build))
        yield function(f"{kind}_object", f"text[], text[] -> {kind}", _of_two_lists(build))


def _to_json(kind: Type) -> Callable[[Context, Datum], Json]:
    text = json_text_of(kind)
    return lambda context, value: Json(text(value, context.zone))


def _to_jsonb(kind: Type) -> Callable[[Context, Datum], Jsonb]:
    value_of = jsonb_value_of(kind)
    return lambda context, value: Jsonb(value_of(value, context.zone))


def _json_array(*types: Type) -> Callable[..., Json]:
    texts = [json_text_of(each) for each in types]

    def build(context: Context, *values: Datum) -> Json:
        members = [text(value, context.zone) for text, value in zip(texts, values, strict=True)]
        return Json(_enclosed("[", members, "]"))

    return build


def _jsonb_array(*types: Type) -> Callable[..., Jsonb]:
    converts = [jsonb_value_of(each) for each in types]

    def build(context: Context, *values: Datum) -> Jsonb:
        pairs = zip(converts, values, strict=True)
        return Jsonb(tuple(convert(value, context.zone) for convert, value in pairs))

    return build


def _present(build: Callable[..., Callable[..., Datum]], *, size: int) -> Callable[..., Callable[..., Datum]]:
    """The same without members whose value, the last of so many arguments, is NULL."""

    def typed(*types: Type) -> Callable[..., Datum]:
        def run(context: Context, *values: Datum) -> Datum:
            if size == 2:
                _check_even(types)
            kept = [at for at in range(len(values)) if values[at - at % size + size - 1] is not None]
            return build(*[types[at] for at in kept])(context, *[values[at] for at in kept])

        return run

    return typed


_FIRST = {"{": "object", "[": "array"}


def _is_json(text: str, what: str) -> bool:
    """`what`: any, object, array or scalar."""
    try:
        type_of(TypeRef("json")).parse(text)
    except InvalidText:
        return False
    return what in ("any", _FIRST.get(text.lstrip(" \t\n\r")[:1], "scalar"))


def _check_even(types: tuple[Type, ...]) -> None:
    if len(types) % 2:
        raise InvalidParameter("argument list must have even number of elements")


def _json_object(*types: Type) -> Callable[..., Json]:
    names = [member_name(each) for each in types[::2]]
    texts = [json_text_of(each) for each in types[1::2]]

    def build(context: Context, *values: Datum) -> Json:
        _check_even(types)
        members = []
        for name, text, key, value in zip(names, texts, values[::2], values[1::2], strict=True):
            if key is None:
                raise NullNotAllowed("null value not allowed for object key")
            members.append(f"{quoted(name(key, context.zone))} : {text(value, context.zone)}")
        return Json(_enclosed("{", members, "}"))

    return build


def _jsonb_object(*types: Type) -> Callable[..., Jsonb]:
    names = [member_name(each) for each in types[::2]]
    converts = [jsonb_value_of(each) for each in types[1::2]]

    def build(context: Context, *values: Datum) -> Jsonb:
        _check_even(types)
        pairs: list[tuple[str, Any]] = []
        for name, convert, key, value in zip(names, converts, values[::2], values[1::2], strict=True):
            if key is None:
                raise InvalidParameter(f"argument {2 * len(pairs) + 1}: key must not be null")
            pairs.append((name(key, context.zone), convert(value, context.zone)))
        return jsonb_object(pairs)

    return build


# Of lists of texts

_Pairs = list[tuple[str, str | None]]


def _of_list(make: Callable[[_Pairs], Datum]) -> Callable[[Datum], Datum]:
    """{name, value, ...}, or {{name, value}, ...}."""

    def run(array: Datum) -> Datum:
        sides = dimensions(array)
        if len(sides) > 2:
            raise ArraySizesDiffer("wrong number of array subscripts")
        if len(sides) == 2 and sides[1] != 2:
            raise ArraySizesDiffer("array must have two columns")
        flat = list(flatten(array))
        if len(flat) % 2:
            raise ArraySizesDiffer("array must have even number of elements")
        return make(_checked(list(zip(flat[::2], flat[1::2], strict=True))))

    return run


def _of_two_lists(make: Callable[[_Pairs], Datum]) -> Callable[[Datum, Datum], Datum]:
    def run(names: Datum, values: Datum) -> Datum:
        if len(dimensions(names)) > 1 or len(dimensions(values)) > 1:
            raise ArraySizesDiffer("wrong number of array subscripts")
        if len(names) != len(values):
            raise ArraySizesDiffer("mismatched array dimensions")
        return make(_checked(list(zip(names, values, strict=True))))

    return run


def _checked(pairs: list[tuple[str | None, str | None]]) -> _Pairs:
    checked: _Pairs = []
    for name, value in paced(pairs):
        if name is None:
            raise NullNotAllowed("null value not allowed for object key")
        checked.append((name, value))
    return checked


def _json_of_texts(pairs: _Pairs) -> Json:
    members = [
        f"{quoted(name)} : {'null' if value is None else quoted(value)}" for name, value in paced(pairs)
    ]
    return Json(_enclosed("{", members, "}"))


def _jsonb_of_texts(pairs: _Pairs) -> Jsonb:
    return jsonb_object([(name, value) for name, value in pairs])


def _enclosed(first: str, members: Sequence[str], last: str) -> str:
    """Refuses what is too long before it is joined: joining it takes a second."""
    return f"{first}{join_all(', ', members)}{last}"
