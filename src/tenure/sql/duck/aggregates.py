"""Aggregates and window functions that DuckDB shares with PostgreSQL, by id.

    sum(int4)       CAST(sum({0}) AS BIGINT)            fails where int8 overflows
    sum(int8)       CAST(sum({0}) AS DECIMAL(38,0))     numeric without digits after the point
    avg(int4)       sum and count as text, divided as PostgreSQL divides when they are out

Arguments and keys are computed by an inner SELECT, so that here they are columns, named once each.
Sums of floats depend on the order of rows in PostgreSQL too; only their last digits may differ.

Walk: `sql.duck.rendering` -> `aggregate_sql`, `window_sql`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.types.datatype import Type
from tenure.expr.types.type_names import type_of
from tenure.sql.duck.duck_types import MEAN, MIXED_SUM, DuckType, NotShared, Value, decimal, shape_of
from tenure.sql.duck.expressions import Expressions
from tenure.sql.plans.plan import Aggregate, AggregateCall, Frame, FrameEdge, FrameMode, SortKey, WindowCall

_ORDERED = (
    *("int2", "int4", "int8", "float4", "float8", "numeric", "text", "char", "bytea", "date"),
    *("time", "timestamp", "timestamptz", "anyenum"),
)
_FINITE = "CASE WHEN NOT isfinite({0}) THEN error('as PostgreSQL') ELSE {0} END"
_MEAN = "CASE WHEN {1} = 0 THEN NULL ELSE CAST({0} AS VARCHAR) || '/' || CAST({1} AS VARCHAR) END"

TEMPLATES: dict[str, tuple[str, ...]] = {
    "count()": ("count(*)", "{0}"),
    "count(any)": ("count({})", "{0}"),
    **{f"min({each})": ("min({})", "{0}") for each in _ORDERED},
    **{f"max({each})": ("max({})", "{0}") for each in _ORDERED},
    **{f"{name}(bool)": ("bool_and({})", "{0}") for name in ("bool_and", "every")},
    "bool_or(bool)": ("bool_or({})", "{0}"),
    **{f"bit_and({each})": ("bit_and({})", "{0}") for each in ("int2", "int4", "int8")},
    **{f"bit_or({each})": ("bit_or({})", "{0}") for each in ("int2", "int4", "int8")},
    **{f"bit_xor({each})": ("bit_xor({})", "{0}") for each in ("int2", "int4", "int8")},
    "sum(int2)": ("sum({})", "CAST({0} AS BIGINT)"),
    "sum(int4)": ("sum({})", "CAST({0} AS BIGINT)"),
    "sum(int8)": ("sum({})", "CAST({0} AS DECIMAL(38,0))"),
    "sum(float8)": ("sum({})", _FINITE),
    "sum(numeric)": ("sum({})", "{0}"),
    "avg(int2)": ("sum({})", "count({})", _MEAN),
    "avg(int4)": ("sum({})", "count({})", _MEAN),
    "avg(int8)": ("sum({})", "count({})", _MEAN),
    "avg(numeric)": ("sum({})", "count({})", _MEAN),
    "avg(float4)": ("avg(CAST({} AS DOUBLE))", _FINITE),
    "avg(float8)": ("avg({})", _FINITE),
}
"""DuckDB's aggregates over the argument; last, the expression over their results."""

_OF_MIXED = {
    "sum(numeric)": (MIXED_SUM, "CAST({0} AS VARCHAR) || '/' || CAST({2} AS VARCHAR)"),
    "avg(numeric)": (
        MEAN,
        "CASE WHEN {1} = 0 THEN NULL ELSE "
        "CAST({0} AS VARCHAR) || '/' || CAST({1} AS VARCHAR) || '/' || CAST({2} AS VARCHAR) END",
    ),
}
"""The same for numbers with different scales: the result has the greatest of them."""

_WINDOWS = {
    "row_number()": "row_number()",
    "rank()": "rank()",
    "dense_rank()": "dense_rank()",
    "lag(anyelement)": "lag({})",
    "lead(anyelement)": "lead({})",
    "first_value(anyelement)": "first_value({})",
    "last_value(anyelement)": "last_value({})",
}

_INT4 = type_of(TypeRef("int4"))


@dataclass(frozen=True, slots=True)
class PreparedAggregates:
    prepared: list[Value]
    """Columns of the inner SELECT: keys, then arguments and conditions of the calls."""
    finish: Callable[[Sequence[Value]], tuple[list[Value], str]]
    """Turns the names of these into the columns of the outer SELECT and its GROUP BY."""


def aggregate_sql(plan: Aggregate, over: Expressions) -> PreparedAggregates:
    keys = [over.render(each) for each in plan.keys]
    if not all(each.shape.is_plain for each in keys):
        raise NotShared("groups of values that only pass through")
    if not keys and not plan.calls:
        raise NotShared("one group of everything, of which nothing is asked")
    operands = [_operand_values(call, over) for call in plan.calls]

    def finish(named: Sequence[Value]) -> tuple[list[Value], str]:
        columns = list(named[: len(keys)])
        at = len(keys)
        for call, of in zip(plan.calls, operands, strict=True):
            columns.append(_call(call, named[at : at + len(of)]))
            at += len(of)
        for places in plan.groupings:
            listed = ", ".join(named[place].sql for place in places)
            columns.append(Value(f"CAST(GROUPING({listed}) AS INTEGER)", _INT4, shape_of(_INT4)))
        return columns, _group_by(plan, [each.sql for each in named[: len(keys)]])

    return PreparedAggregates([*keys, *(each for of in operands for each in of)], finish)


def _group_by(plan: Aggregate, keys: list[str]) -> str:
    if plan.sets is not None:
        sets = ", ".join(f"({', '.join(keys[place] for place in places)})" for places in plan.sets)
        return f" GROUP BY GROUPING SETS ({sets})"
    return f" GROUP BY {', '.join(keys)}" if keys else ""


def _operand_values(call: AggregateCall | WindowCall, over: Expressions) -> list[Value]:
    """The arguments of a call, the digits of one if they differ, and its condition if it has one."""
    values = [over.render(each) for each in call.arguments]
    if call.function in _OF_MIXED and values[0].digits:
        values = [values[0]._replace(digits=""), Value(values[0].digits, _INT4, shape_of(_INT4))]
    if call.condition is not None:
        over.condition(call.condition)
        values.append(over.render(call.condition))
    return values


def _call(call: AggregateCall, operands: Sequence[Value]) -> Value:
    if call.order:
        raise NotShared("an aggregate in an order")
    distinct = "DISTINCT " if call.is_distinct else ""
    return _call_sql(call.function, call, operands, distinct, "")


def _call_sql(
    id: str, call: AggregateCall | WindowCall, operands: Sequence[Value], distinct: str, over: str
) -> Value:
    if id not in TEMPLATES:
        raise NotShared(id)
    *aggregates, result = TEMPLATES[id]
    arguments = operands[: len(call.arguments)]
    if any(not each.shape.is_plain for each in arguments) and (id != "count(any)" or distinct):
        raise NotShared(f"{id} of values that only pass through")
    condition = f" FILTER (WHERE {operands[-1].sql})" if call.condition is not None else ""
    if len(operands) > len(arguments) + (call.condition is not None):
        (sums, digits), filtered = operands[:2], condition + over
        shape, result = _OF_MIXED[id]
        total, count = f"sum({distinct}{sums.sql})", f"count({distinct}{sums.sql})"
        # The scale of the summed value: CASE gives one for NULL, too.
        most = f"max(CASE WHEN {sums.sql} IS NOT NULL THEN {digits.sql} END)"
        return Value(result.format(*[each + filtered for each in (total, count, most)]), call.type, shape)
    argument = distinct + (arguments[0].sql if arguments else "")
    calls = [each.format(argument) + condition + over for each in aggregates]
    return Value(result.format(*calls), call.type, _shape(id, call.type, arguments))


def _shape(id: str, kind: Type, arguments: Sequence[Value]) -> DuckType:
    """Exact numbers have more exact shapes than their type says."""
    if id in ("avg(int2)", "avg(int4)", "avg(int8)", "avg(numeric)"):
        return MEAN
    if id == "sum(int8)":
        return decimal(38, 0)
    if id == "sum(numeric)":
        return decimal(38, arguments[0].shape.scale)
    return arguments[0].shape if id.startswith(("min(", "max(")) else shape_of(kind)


# Windows


def window_sql(call: WindowCall, over: Expressions) -> Value:
    operands = _operand_values(call, over)
    partition = [over.render(each) for each in call.partition]
    if not all(each.shape.is_plain for each in partition):
        raise NotShared("partitions by values that only pass through")
    clauses = []
    if partition:
        clauses.append(f"PARTITION BY {', '.join(each.sql for each in partition)}")
    if call.order:
        clauses.append(f"ORDER BY {', '.join(_term(key, over) for key in call.order)}")
    clauses.append(_frame(call.frame))
    window = f" OVER ({' '.join(clauses)})"
    if call.is_aggregate:
        if "float" in call.function:
            raise NotShared("floats summed over a window")
        return _call_sql(call.function, call, operands, "", window)
    template = _WINDOWS.get(call.function)
    if template is None or call.condition is not None:
        raise NotShared(call.function)
    shape = operands[0].shape if operands else shape_of(call.type)
    return Value(template.format(*[each.sql for each in operands]) + window, call.type, shape)


def _term(key: SortKey, over: Expressions) -> str:
    value = over.render(key.node)
    if not value.shape.is_plain:
        raise NotShared("an order of values that only pass through")
    way = "DESC" if key.is_descending else "ASC"
    return f"{value.sql} {way} NULLS {'FIRST' if key.nulls_first else 'LAST'}"


def _frame(frame: Frame) -> str:
    """Frames without offsets, which mean the same everywhere."""
    offsets = (FrameEdge.PRECEDING, FrameEdge.FOLLOWING)
    if frame.mode is FrameMode.GROUPS or frame.exclude or frame.start in offsets or frame.end in offsets:
        raise NotShared("a frame with an offset")
    return f"{frame.mode.value.upper()} BETWEEN {frame.start.value.upper()} AND {frame.end.value.upper()}"
