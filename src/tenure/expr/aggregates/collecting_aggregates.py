"""Aggregates that keep all the rows: array_agg, string_agg, json_agg and similar ones.

Walk: `expr.aggregates.aggregate_table` lists these.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tenure.base.errors import ArraySizesDiffer, InvalidParameter, NullNotAllowed, UserError
from tenure.base.interruptible import paced
from tenure.expr.aggregates.aggregate import AggregateFunction, Steps
from tenure.expr.functions.function import Context
from tenure.expr.functions.json_making import json_text_of, jsonb_object, jsonb_value_of, member_name
from tenure.expr.types.arrays import ArrayOf, dimensions
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.json_values import Json, Jsonb, quoted
from tenure.expr.types.value_lengths import join_all


def aggregates() -> Iterator[AggregateFunction]:
    yield AggregateFunction("array_agg", ("anyelement",), "anyarray", lambda kind: _ELEMENTS, is_strict=False)
    yield AggregateFunction("array_agg", ("anyarray",), "anyarray", lambda kind: _ARRAYS, is_strict=False)
    for family, empty in (("text", ""), ("bytea", b"")):
        joined = _always(Steps(list, _gather_pair, partial(_join, empty)))
        yield AggregateFunction("string_agg", (family, family), family, joined, is_strict=False)
    json = partial(AggregateFunction, wants_context=True)
    for suffix, gather in (("", _gather_some), ("_strict", _gather_values)):
        array, binary = partial(_json_array, gather), partial(_jsonb_array, gather)
        yield json(f"json_agg{suffix}", ("anyelement",), "json", array, is_strict=False)
        yield json(f"jsonb_agg{suffix}", ("anyelement",), "jsonb", binary, is_strict=False)
    yield json("json_object_agg", ("any", "any"), "json", _json_object, is_strict=False)
    yield json("jsonb_object_agg", ("any", "any"), "jsonb", _jsonb_object, is_strict=False)


def _always(steps: Steps) -> Callable[..., Steps]:
    return lambda *types: steps


def _gather(rows: list[Datum], value: Datum) -> list[Datum]:
    rows.append(value)
    return rows


def _gather_pair(rows: list[Datum], *values: Datum) -> list[Datum]:
    rows.append(values)
    return rows


def _nothing() -> list[Datum] | None:
    return None


def _gather_some(rows: list[Datum] | None, value: Datum) -> list[Datum]:
    return _gather([] if rows is None else rows, value)


def _gather_values(rows: list[Datum] | None, value: Datum) -> list[Datum]:
    """Leaves out NULLs. A group that has rows gives a list, even if all of them are NULL."""
    gathered_rows = [] if rows is None else rows
    return gathered_rows if value is None else _gather(gathered_rows, value)


def _elements(rows: list[Datum]) -> Datum:
    return tuple(rows) if rows else None


def _gather_array(rows: list[Datum], value: Datum) -> list[Datum]:
    if value is None:
        raise NullNotAllowed("cannot accumulate null arrays")
    if not value:
        raise ArraySizesDiffer("cannot accumulate empty arrays")
    if rows and dimensions(rows[0]) != dimensions(value):
        raise ArraySizesDiffer("cannot accumulate arrays of different dimensionality")
    return _gather(rows, value)


_ELEMENTS, _ARRAYS = Steps(list, _gather, _elements), Steps(list, _gather_array, _elements)


def _join(empty: Any, rows: list[tuple[Any, Any]]) -> Datum:
    """A NULL is left out; each value but the first brings its own separator before it."""
    kept = [(value, between) for value, between in paced(rows) if value is not None]
    if not kept:
        return None
    pieces = [kept[0][0]]
    for value, between in paced(kept[1:]):
        pieces += [between or empty, value]
    return join_all(empty, pieces)


# json: written as PostgreSQL writes it, spaces and all


Gather = Callable[[list[Datum] | None, Datum], list[Datum]]


def _json_array(gather: Gather, context: Context, kind: Type) -> Steps:
    text, before = json_text_of(kind), "\n " if isinstance(kind, ArrayOf) else ""

    def finish(rows: list[Datum] | None) -> Json | None:
        if rows is None:
            return None
        # Each array except the first begins a new line; a NULL does not.
        starts = (before if at and each is not None else "" for at, each in enumerate(paced(rows)))
        texts = [start + text(each, context.zone) for start, each in zip(starts, rows, strict=True)]
        return Json("[" + ", ".join(texts) + "]")

    return Steps(_nothing, gather, finish)


def _jsonb_array(gather: Gather, context: Context, kind: Type) -> Steps:
    value_of = jsonb_value_of(kind)

    def finish(rows: list[Datum] | None) -> Jsonb | None:
        return None if rows is None else Jsonb(tuple([value_of(each, context.zone) for each in paced(rows)]))

    return Steps(_nothing, gather, finish)


def _json_object(context: Context, key: Type, kind: Type) -> Steps:
    text = json_text_of(kind)

    def finish(rows: list[tuple[str, Datum]]) -> Json | None:
        members = [f"{quoted(name)} : {text(value, context.zone)}" for name, value in paced(rows)]
        return Json("{ " + ", ".join(members) + " }") if rows else None

    refusal = NullNotAllowed("null value not allowed for object key")
    return Steps(list, partial(_gather_member, _named(key, context), refusal), finish)


def _jsonb_object(context: Context, key: Type, kind: Type) -> Steps:
    value_of = jsonb_value_of(kind)

    def finish(rows: list[tuple[str, Datum]]) -> Jsonb | None:
        pairs = [(name, value_of(value, context.zone)) for name, value in paced(rows)]
        return jsonb_object(pairs) if rows else None

    refusal = InvalidParameter("field name must not be null")
    return Steps(list, partial(_gather_member, _named(key, context), refusal), finish)


def _named(key: Type, context: Context) -> Callable[[Datum], str]:
    name = member_name(key)
    return lambda value: name(value, context.zone)


def _gather_member(
    named: Callable[[Datum], str], refusal: UserError, rows: list[Datum], key: Datum, value: Datum
) -> list[Datum]:
    if key is None:
        raise refusal
    return _gather_pair(rows, named(key), value)
