"""Changed copies of jsonb: jsonb_set, jsonb_insert, #-; and jsonb_pretty, jsonb_strip_nulls.

A path names a member by key and an element by its number, from the end if negative. What is not
there is left alone, or created at the end of the path.

Walk: `expr.function_table` lists these.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Any

from tenure.base.errors import ArraySizesDiffer, InvalidParameter, InvalidText, NullNotAllowed
from tenure.base.interruptible import paced
from tenure.expr.functions.function import Function, function
from tenure.expr.functions.json_functions import raw_members
from tenure.expr.types.arrays import dimensions
from tenure.expr.types.datatype import Datum
from tenure.expr.types.json_values import Json, Jsonb, JsonObject, jsonb_text, object_of, quoted
from tenure.expr.types.numbers import whole_number

_INDENT = "    "
_SPACE = " \t\n\r"


class _Change(Enum):
    REPLACE = "replace"
    """Changes existing members only."""
    SET = "set"
    """Creates the member if it is missing."""
    INSERT_BEFORE = "before"
    INSERT_AFTER = "after"
    DELETE = "delete"


def functions() -> Iterator[Function]:
    yield function("jsonb_set", "jsonb, text[], jsonb -> jsonb", _set)
    yield function("jsonb_set", "jsonb, text[], jsonb, bool -> jsonb", _set)
    yield function("jsonb_insert", "jsonb, text[], jsonb -> jsonb", _insert)
    yield function("jsonb_insert", "jsonb, text[], jsonb, bool -> jsonb", _insert)
    for name in ("#-", "jsonb_delete_path"):
        yield function(
            name, "jsonb, text[] -> jsonb", lambda value, path: _changed(value, path, None, _Change.DELETE)
        )
    yield function("jsonb_pretty", "jsonb -> text", lambda value: "".join(_pretty(value.value, "\n")))
    yield function("jsonb_strip_nulls", "jsonb -> jsonb", _strip_nulls)
    yield function("jsonb_strip_nulls", "jsonb, bool -> jsonb", _strip_nulls)
    yield function("json_strip_nulls", "json -> json", _json_strip_nulls)
    yield function("json_strip_nulls", "json, bool -> json", _json_strip_nulls)


def _set(value: Jsonb, path: Datum, new: Jsonb, creates: bool = True) -> Jsonb:
    return _changed(value, path, new, _Change.SET if creates else _Change.REPLACE)


def _insert(value: Jsonb, path: Datum, new: Jsonb, is_after: bool = False) -> Jsonb:
    return _changed(value, path, new, _Change.INSERT_AFTER if is_after else _Change.INSERT_BEFORE)


def _changed(value: Jsonb, path: Datum, new: Jsonb | None, change: _Change) -> Jsonb:
    if len(dimensions(path)) > 1:
        raise ArraySizesDiffer("wrong number of array subscripts")
    if not isinstance(value.value, tuple):
        word = "delete" if change is _Change.DELETE else "set"
        raise InvalidParameter(f"cannot {word} path in scalar")
    if not path or (not value.value and change in (_Change.REPLACE, _Change.DELETE)):
        return value
    inside = None if new is None else new.value
    return Jsonb(_Walk(path, inside, change).into(value.value, 0))


class _Walk:
    def __init__(self, path: tuple[str | None, ...], new: Any, change: _Change) -> None:
        self.path = path
        self.new = new
        self.change = change
        self.creates = change not in (_Change.REPLACE, _Change.DELETE)

    def into(self, value: Any, depth: int) -> Any:
        key = self.path[depth]
        if key is None:
            raise NullNotAllowed(f"path element at position {depth + 1} is null")
        if not isinstance(value, tuple):
            return value
        is_last = depth == len(self.path) - 1
        if isinstance(value, JsonObject):
            return self._in_object(dict(value), key, depth, is_last=is_last)
        return self._in_array(list(value), key, depth, is_last=is_last)

    def _in_object(self, members: dict[str, Any], key: str, depth: int, *, is_last: bool) -> JsonObject:
        if key in members:
            if not is_last:
                members[key] = self.into(members[key], depth + 1)
            elif self.change is _Change.DELETE:
                del members[key]
            elif self.change in (_Change.INSERT_BEFORE, _Change.INSERT_AFTER):
                raise InvalidParameter(
                    "cannot replace existing key",
                    hint="Try using the function jsonb_set to replace key value.",
                )
            else:
                members[key] = self.new
        elif is_last and self.creates:
            members[key] = self.new
        return object_of(members)

    def _in_array(self, elements: list[Any], key: str, depth: int, *, is_last: bool) -> tuple[Any, ...]:
        at = whole_number(key.strip(" \t\n\r\v\f"))
        if at is None:
            raise InvalidText(f'path element at position {depth + 1} is not an integer: "{key}"')
        at = at + len(elements) if at < 0 else at
        if not 0 <= at < len(elements):
            if is_last and self.creates:
                elements.insert(0 if at < 0 else len(elements), self.new)
        elif not is_last:
            elements[at] = self.into(elements[at], depth + 1)
        elif self.change is _Change.DELETE:
            del elements[at]
        elif self.change is _Change.INSERT_BEFORE:
            elements.insert(at, self.new)
        elif self.change is _Change.INSERT_AFTER:
            elements.insert(at + 1, self.new)
        else:
            elements[at] = self.new
        return tuple(elements)


# Writing and stripping


def _pretty(value: Any, newline: str) -> Iterator[str]:
    if not isinstance(value, tuple):
        yield jsonb_text(value)
        return
    is_object = isinstance(value, JsonObject)
    yield "{" if is_object else "["
    inner = newline + _INDENT
    for at, each in enumerate(paced(value)):
        yield "," + inner if at else inner
        if is_object:
            yield quoted(each[0]) + ": "
        yield from _pretty(each[1] if is_object else each, inner)
    yield newline + ("}" if is_object else "]")


def _strip_nulls(value: Jsonb, in_arrays: bool = False) -> Jsonb:
    return Jsonb(_stripped(value.value, in_arrays=in_arrays))


def _stripped(value: Any, *, in_arrays: bool) -> Any:
    if isinstance(value, JsonObject):
        return JsonObject(
            [(name, _stripped(each, in_arrays=in_arrays)) for name, each in paced(value) if each is not None]
        )
    if isinstance(value, tuple):
        kept = [each for each in paced(value) if each is not None or not in_arrays]
        return tuple([_stripped(each, in_arrays=in_arrays) for each in paced(kept)])
    return value


def _json_strip_nulls(value: Json, in_arrays: bool = False) -> Json:
    return Json(_json_stripped(value.text.strip(_SPACE), in_arrays=in_arrays))


def _json_stripped(text: str, *, in_arrays: bool) -> str:
    if text[:1] not in ("{", "["):
        return text
    is_object = text[0] == "{"
    members = [
        (f"{quoted(str(name))}:" if is_object else "") + _json_stripped(raw, in_arrays=in_arrays)
        for name, raw in paced(raw_members(text))
        if raw != "null" or not (is_object or in_arrays)
    ]
    return ("{" if is_object else "[") + ",".join(members) + ("}" if is_object else "]")
