"""Functions of arrays, for any type of element.

Elements are equal as their type says; containment never finds NULL, array_position and
array_remove do.

Walk: `expr.function_table` lists these.
"""

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

from tenure.base.errors import (
    ArraySizesDiffer,
    LimitExceeded,
    NotOneDimension,
    NotSupported,
    NullNotAllowed,
    SubscriptError,
)
from tenure.base.interruptible import paced
from tenure.expr.functions.function import Context, Function, Volatility, function
from tenure.expr.types.array_text import DIMENSIONS_MAX, fold
from tenure.expr.types.arrays import ArrayOf, check_shape, dimensions, flatten
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.text_slices import ordered
from tenure.expr.types.text_slices import split as cut
from tenure.expr.types.value_lengths import charge_elements, join_all

_FILL_MAX = 2**24
"""The most elements that one call makes: fewer than PostgreSQL's 2^27, as each costs more memory here."""

NAME_LENGTH = 64


def functions() -> Iterator[Function]:
    yield function("cardinality", "anyarray -> int4", lambda array: sum(1 for _ in flatten(array)))
    yield function("array_ndims", "anyarray -> int4", lambda array: len(dimensions(array)) or None)
    for name in ("array_length", "array_upper"):
        yield function(name, "anyarray, int4 -> int4", length_of)
    yield function("array_lower", "anyarray, int4 -> int4", lambda array, at: length_of(array, at) and 1)
    yield function("subscript", "anyarray, int4 -> anyelement", _subscript)
    for vector, element in (("int2vector", "int2"), ("oidvector", "oid")):
        yield function("subscript", f"{vector}, int4 -> {element}", _vector_subscript)
    yield function("subscript", 'name, int4 -> "char"', _name_subscript)
    yield Function("array_element", ("anyarray", "int4"), "anyelement", _element, is_variadic=True)
    for arguments, run in (
        (("anycompatiblearray", "anycompatible"), lambda array, each: _append(array, each)),
        (("anycompatible", "anycompatiblearray"), lambda each, array: _prepend(each, array)),
        (("anycompatiblearray", "anycompatiblearray"), lambda a, b: _join(a, b)),
    ):
        yield Function("||", arguments, "anycompatiblearray", run, is_strict=False)
    yield Function(
        "array_append",
        ("anycompatiblearray", "anycompatible"),
        "anycompatiblearray",
        _append,
        is_strict=False,
    )
    yield Function(
        "array_prepend",
        ("anycompatible", "anycompatiblearray"),
        "anycompatiblearray",
        _prepend,
        is_strict=False,
    )
    yield Function(
        "array_cat",
        ("anycompatiblearray", "anycompatiblearray"),
        "anycompatiblearray",
        _join,
        is_strict=False,
    )
    yield from _searches()
    yield from _shapes()
    yield from _texts()


def _searches() -> Iterator[Function]:
    pair = ("anyarray", "anyarray")
    yield Function("@>", pair, "bool", _contains, wants_types=True)
    yield Function("<@", pair, "bool", lambda a, b: _swapped(_contains(b, a)), wants_types=True)
    yield Function("&&", pair, "bool", _overlaps, wants_types=True)
    search = ("anycompatiblearray", "anycompatible")
    yield Function("array_position", search, "int4", _position, is_strict=False, wants_types=True)
    yield Function("array_remove", search, "anycompatiblearray", _remove, is_strict=False, wants_types=True)
    three = ("anycompatiblearray", "anycompatible", "int4")
    yield Function("array_position", three, "int4", _position, is_strict=False, wants_types=True)
    yield Function("array_positions", search, "int4[]", _positions, is_strict=False, wants_types=True)
    replacing = ("anycompatiblearray", "anycompatible", "anycompatible")
    yield Function("array_replace", replacing, replacing[0], _replace, is_strict=False, wants_types=True)


def _shapes() -> Iterator[Function]:
    yield function("array_dims", "anyarray -> text", _dims)
    yield function("trim_array", "anyarray, int4 -> anyarray", _trim)
    yield function("array_reverse", "anyarray -> anyarray", lambda array: array[::-1])
    yield Function("array_slice", ("anyarray", "int4", "int4"), "anyarray", _slice)
    yield Function("array_sort", ("anyarray",), "anyarray", _sort, wants_types=True)
    yield Function("array_sort", ("anyarray", "bool"), "anyarray", _sort, wants_types=True)
    yield Function("array_fill", ("anyelement", "int4[]"), "anyarray", _fill, is_strict=False)


def _texts() -> Iterator[Function]:
    for argument_types in (("anyarray", "text"), ("anyarray", "text", "text")):
        yield Function(
            "array_to_string",
            argument_types,
            "text",
            _to_string,
            Volatility.STABLE,
            is_strict=False,
            wants_types=True,
            wants_context=True,
        )
    yield Function("string_to_array", ("text", "text"), "text[]", split, is_strict=False)
    yield Function("string_to_array", ("text", "text", "text"), "text[]", split, is_strict=False)


def length_of(array: Datum, dimension: int) -> int | None:
    sides = dimensions(array)
    return sides[dimension - 1] if 1 <= dimension <= len(sides) else None


def _subscript(array: Datum, at: int) -> Datum:
    """NULL outside of the array, and for an array of more dimensions."""
    value = array[at - 1] if 1 <= at <= len(array) else None
    return None if isinstance(value, tuple) else value


def _name_subscript(name: str, place: int) -> str | None:
    """A name is 64 bytes, from 0 on; those behind its end are zero, which is shown as nothing."""
    if not 0 <= place < NAME_LENGTH:
        return None
    byte = name.encode()[place : place + 1]
    return byte.decode() if byte.isascii() else f"\\{byte[0]:03o}"


def _vector_subscript(vector: Datum, at: int) -> Datum:
    return _subscript(vector, at + 1)


def _element(array: Datum, *places: int) -> Datum:
    """array[i][j]...: NULL unless there are as many subscripts as dimensions, and all within."""
    if len(dimensions(array)) != len(places):
        return None
    for place in places:
        if not 1 <= place <= len(array):
            return None
        array = array[place - 1]
    return array


def _append(array: Datum, each: Datum) -> Datum:
    _refuse_dimensions(array)
    return (*(array or ()), each)


def _prepend(each: Datum, array: Datum) -> Datum:
    _refuse_dimensions(array)
    return (each, *(array or ()))


def _refuse_dimensions(array: Datum) -> None:
    if array and len(dimensions(array)) > 1:
        raise NotOneDimension("argument must be empty or one-dimensional array")


def _join(a: Datum, b: Datum) -> Datum:
    """If one array has n dimensions and the other n + 1, the first becomes a further member of the second."""
    if a is None or b is None:
        return b if a is None else a
    if not a or not b:
        return a or b
    deep_a, deep_b = len(dimensions(a)), len(dimensions(b))
    if abs(deep_a - deep_b) > 1:
        raise ArraySizesDiffer("cannot concatenate incompatible arrays")
    joined = a + b if deep_a == deep_b else (a, *b) if deep_a < deep_b else (*a, b)
    try:
        check_shape(joined)
    except ArraySizesDiffer:
        raise ArraySizesDiffer("cannot concatenate incompatible arrays") from None
    return joined


def _members(kind: Type) -> Callable[[Datum], set[Any]]:
    assert isinstance(kind, ArrayOf)
    of = kind.element.comparable
    return lambda array: {of(each) for each in flatten(array) if each is not None}


def _contains(left: Type, right: Type) -> Callable[[Datum, Datum], bool]:
    members_left, members_right = _members(left), _members(right)

    def contains(a: Datum, b: Datum) -> bool:
        return None not in tuple(flatten(b)) and members_right(b) <= members_left(a)

    return contains


def _swapped(run: Callable[[Datum, Datum], bool]) -> Callable[[Datum, Datum], bool]:
    return lambda a, b: run(b, a)


def _overlaps(left: Type, right: Type) -> Callable[[Datum, Datum], bool]:
    members_left, members_right = _members(left), _members(right)
    return lambda a, b: not members_left(a).isdisjoint(members_right(b))


def _sameness(kind: Type) -> Callable[[Datum, Datum], bool]:
    assert isinstance(kind, ArrayOf)
    of = kind.element.comparable

    def is_same(a: Datum, b: Datum) -> bool:
        if a is None or b is None:
            return a is b
        return bool(of(a) == of(b))

    return is_same


def _position(array_type: Type, *_: Type) -> Callable[..., int | None]:
    is_same = _sameness(array_type)

    def position(array: Datum, sought: Datum, first: int | None = 1) -> int | None:
        if array is None:
            return None
        if len(dimensions(array)) > 1:
            raise NotSupported("searching for elements in multidimensional arrays is not supported")
        if not array or (sought is None and None not in array):
            return None
        if first is None:
            raise NullNotAllowed("initial position must not be null")
        places = range(max(first, 1), len(array) + 1)
        return next((at for at in paced(places) if is_same(array[at - 1], sought)), None)

    return position


def _positions(array_type: Type, sought_type: Type) -> Callable[[Datum, Datum], Datum]:
    is_same = _sameness(array_type)

    def positions(array: Datum, sought: Datum) -> Datum:
        if array is None:
            return None
        if len(dimensions(array)) > 1:
            raise NotSupported("searching for elements in multidimensional arrays is not supported")
        return tuple([at for at, each in enumerate(paced(array), 1) if is_same(each, sought)])

    return positions


def _replace(array_type: Type, *_: Type) -> Callable[[Datum, Datum, Datum], Datum]:
    is_same = _sameness(array_type)

    def replace(array: Datum, sought: Datum, new: Datum) -> Datum:
        if not isinstance(array, tuple):
            return new if is_same(array, sought) else array
        return tuple([replace(each, sought, new) for each in paced(array)])

    return lambda array, sought, new: None if array is None else replace(array, sought, new)


def _dims(array: Datum) -> str | None:
    return "".join([f"[1:{side}]" for side in dimensions(array)]) or None


def _trim(array: Datum, count: int) -> Datum:
    if not 0 <= count <= len(array):
        raise SubscriptError(f"number of elements to trim must be between 0 and {len(array)}")
    return array[: len(array) - count]


def _slice(array: Datum, first: int, last: int) -> Datum:
    """array[first:last] of the first dimension."""
    return array[max(first - 1, 0) : max(last, 0)]


def _sort(array_type: Type, *_: Type) -> Callable[..., Datum]:
    assert isinstance(array_type, ArrayOf)
    of = array_type.comparable

    def sort(array: Datum, is_descending: bool = False) -> Datum:
        values = [each for each in paced(array) if each is not None]
        nulls = (None,) * (len(array) - len(values))
        in_order = ordered(values, lambda each: of((each,)), is_descending=is_descending)
        return (*nulls, *in_order) if is_descending else (*in_order, *nulls)

    return sort


def _fill(value: Datum, sides: Datum) -> Datum:
    if sides is None:
        raise NullNotAllowed("dimension array or low bound array cannot be null")
    if len(dimensions(sides)) > 1:
        raise ArraySizesDiffer("wrong number of array subscripts")
    if any(each is None for each in sides):
        raise NullNotAllowed("dimension values cannot be null")
    if any(each < 0 for each in sides) or len(sides) > DIMENSIONS_MAX:
        raise LimitExceeded("array size exceeds the maximum allowed")
    count = prod(sides) if sides else 0
    if count > _FILL_MAX:
        raise LimitExceeded("array size exceeds the maximum allowed")
    return fold((value,) * count, tuple(sides))


def _remove(array_type: Type, sought_type: Type) -> Callable[[Datum, Datum], Datum]:
    is_same = _sameness(array_type)

    def remove(array: Datum, sought: Datum) -> Datum:
        if array is None:
            return None
        if len(dimensions(array)) > 1:
            raise NotSupported("removing elements from multidimensional arrays is not supported")
        return tuple([each for each in paced(array) if not is_same(each, sought)])

    return remove


def _to_string(array_type: Type, *_: Type) -> Callable[..., str | None]:
    assert isinstance(array_type, ArrayOf)
    write = array_type.element.render_in

    def joined(context: Context, array: Datum, between: str | None, null: str | None = None) -> str | None:
        if array is None or between is None:
            return None
        texts = [null if each is None else write(each, context.zone) for each in flatten(array)]
        return str(join_all(between, [each for each in texts if each is not None]))

    return joined


def split(text: str | None, separator: str | None, null: str | None = None) -> Datum:
    """A NULL separator cuts after every character; pieces that equal `null` become NULL."""
    if text is None:
        return None
    if not text:
        return ()
    charge_elements(len(text) if separator is None else text.count(separator) if separator else 1)
    if separator is None:
        pieces = list(text)
    else:
        pieces = cut(text, separator) if separator else [text]
    return (
        tuple(pieces) if null is None else tuple([None if each == null else each for each in paced(pieces)])
    )
