"""Comparisons of every type that has them, by PostgreSQL's rules for equality and order.

    floats and numeric   NaN equals NaN and is greater than all else
    char(n)              trailing spaces count for nothing
    enums                by the order of the members
    arrays, jsonb        see `expr.types.arrays`, `expr.types.json_values`

Whole numbers, floats, and days with timestamps compare across their sizes without a cast, as in
PostgreSQL; that also decides which overload mixed arguments get. Beside a timestamptz, a day or a
timestamp is cast to one, by the session's time zone.

Walk: `expr.function_table` lists these; IN, CASE and IS DISTINCT are compiled with the function of `=`.
"""

import operator
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from itertools import product
from typing import Any

from tenure.expr.functions.function import Function
from tenure.expr.types.datatype import Type

Compare = Callable[[Any, Any], bool]

SIGNS: dict[str, Compare] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NATIVE = ("bool", "oid", "name", '"char"', "text", "bytea", "uuid", "time", "timestamptz", "interval")
_INTS, _FLOATS, _DAYS = ("int2", "int4", "int8"), ("float4", "float8"), ("date", "timestamp")


def functions() -> Iterator[Function]:
    for sign, compare in SIGNS.items():
        for family in _NATIVE:
            yield Function(sign, (family, family), "bool", compare)
        for pair in product(_INTS, _INTS):
            yield Function(sign, pair, "bool", compare)
        for pair in product(_FLOATS, _FLOATS):
            yield Function(sign, pair, "bool", FLOAT_COMPARISONS[sign])
        for pair in product(_DAYS, _DAYS):
            yield Function(sign, pair, "bool", _compare_days(pair, compare))
        yield Function(sign, ("numeric", "numeric"), "bool", NUMERIC_COMPARISONS[sign])
        yield Function(sign, ("char", "char"), "bool", _without_spaces(compare))
        for family in ("anyenum", "anyarray", "jsonb"):
            yield Function(sign, (family, family), "bool", _by_comparable(compare), wants_types=True)


FLOAT_COMPARISONS: dict[str, Compare] = {
    "=": lambda a, b: a == b or (a != a and b != b),
    "<>": lambda a, b: not (a == b or (a != a and b != b)),
    "<": lambda a, b: a < b or (b != b and a == a),
    "<=": lambda a, b: a <= b or b != b,
    ">": lambda a, b: a > b or (a != a and b == b),
    ">=": lambda a, b: a >= b or a != a,
}


def _numeric_less(a: Decimal, b: Decimal) -> bool:
    if a.is_nan() or b.is_nan():
        return b.is_nan() and not a.is_nan()
    return a < b


def _numeric_equal(a: Decimal, b: Decimal) -> bool:
    return a == b or (a.is_nan() and b.is_nan())


NUMERIC_COMPARISONS: dict[str, Compare] = {
    "=": _numeric_equal,
    "<>": lambda a, b: not _numeric_equal(a, b),
    "<": _numeric_less,
    "<=": lambda a, b: not _numeric_less(b, a),
    ">": lambda a, b: _numeric_less(b, a),
    ">=": lambda a, b: not _numeric_less(a, b),
}


def _compare_days(pair: tuple[str, str], compare: Compare) -> Compare:
    left, right = pair
    if left == right:
        return compare
    return lambda a, b: compare(_as_timestamp(a), _as_timestamp(b))


def _as_timestamp(value: date) -> datetime:
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)


def _without_spaces(compare: Compare) -> Compare:
    return lambda a, b: compare(a.rstrip(" "), b.rstrip(" "))


def _by_comparable(compare: Compare) -> Callable[[Type, Type], Compare]:
    def make(left: Type, right: Type) -> Compare:
        of_left, of_right = left.comparable, right.comparable
        return lambda a, b: compare(of_left(a), of_right(b))

    return make
