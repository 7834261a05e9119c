"""Sums, averages and spread: sum, avg, variance, stddev.

Whole numbers and numeric are summed exactly, and divided once at the end. Floats are summed in the
order of the rows, and their spread by the method of Youngs and Cramer, as PostgreSQL does it: the
last digit depends on it.

Walk: `expr.aggregates.aggregate_table` lists these.
"""

from collections.abc import Callable, Iterator
from decimal import Decimal
from math import inf, isqrt, nan, sqrt
from typing import Any

from tenure.base.errors import OutOfRange
from tenure.expr.aggregates.aggregate import AggregateFunction, Steps, folding
from tenure.expr.functions.arithmetic import (
    NAN,
    division_scale,
    float_checked,
    numeric_add,
    numeric_divide,
    quotient,
)
from tenure.expr.functions.time_arithmetic import add, divided
from tenure.expr.types.big_numbers import EXACT, decimal_of, whole
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.interval import Interval
from tenure.expr.types.numbers import tidy

_SPREADS = {
    "variance": (True, True),
    "var_samp": (True, True),
    "var_pop": (False, True),
    "stddev": (True, False),
    "stddev_samp": (True, False),
    "stddev_pop": (False, False),
}
"""Whether it is computed for a sample, and whether it is the variance (else its square root)."""


def aggregates() -> Iterator[AggregateFunction]:
    yield from _sums()
    yield from _averages()
    for name, (is_sample, is_square) in _SPREADS.items():
        finish = _numeric_spread(is_sample=is_sample, is_square=is_square)
        for family in ("int2", "int4", "int8", "numeric"):
            yield AggregateFunction(
                name, (family,), "numeric", _always(Steps(_no_squares, _add_square, finish))
            )
        float_finish = _float_spread(is_sample=is_sample, is_square=is_square)
        for family in ("float4", "float8"):
            yield AggregateFunction(
                name, (family,), "float8", _always(Steps(_no_floats, add_float, float_finish))
            )


def _always(steps: Steps) -> Callable[[Type], Steps]:
    return lambda kind: steps


def _sums() -> Iterator[AggregateFunction]:
    plus: Callable[[Any, Any], Any] = lambda a, b: a + b  # noqa: E731
    for family in ("int2", "int4"):
        yield AggregateFunction("sum", (family,), "int8", _always(folding(plus)))
    yield AggregateFunction("sum", ("int8",), "numeric", _always(folding(plus, _decimal)))
    yield AggregateFunction("sum", ("numeric",), "numeric", _always(folding(numeric_add)))
    yield AggregateFunction(
        "sum", ("float4",), "float4", _always(folding(float_checked(plus, is_single=True)))
    )
    yield AggregateFunction(
        "sum", ("float8",), "float8", _always(folding(float_checked(plus, is_single=False)))
    )
    yield AggregateFunction("sum", ("interval",), "interval", _always(folding(add)))


def _decimal(total: int | None) -> Decimal | None:
    return None if total is None else Decimal(total)


def _averages() -> Iterator[AggregateFunction]:
    for family in ("int2", "int4", "int8"):
        ints = Steps(lambda: (0, 0), lambda state, value: (state[0] + 1, state[1] + value), _int_mean)
        yield AggregateFunction("avg", (family,), "numeric", _always(ints))
    decimals = Steps(lambda: (0, Decimal(0)), _add_decimal, _decimal_mean)
    yield AggregateFunction("avg", ("numeric",), "numeric", _always(decimals))
    for family in ("float4", "float8"):
        yield AggregateFunction(
            "avg", (family,), "float8", _always(Steps(_no_floats, add_float, _float_mean))
        )
    spans = Steps(lambda: (0, Interval()), _add_span, _mean_span)
    yield AggregateFunction("avg", ("interval",), "interval", _always(spans))


def _int_mean(state: tuple[int, int]) -> Decimal | None:
    count, total = state
    return numeric_divide(Decimal(total), Decimal(count)) if count else None


def _add_decimal(state: tuple[int, Decimal], value: Decimal) -> tuple[int, Decimal]:
    return state[0] + 1, numeric_add(state[1], value)


def _decimal_mean(state: tuple[int, Decimal]) -> Decimal | None:
    count, total = state
    return numeric_divide(total, Decimal(count)) if count else None


def _add_span(state: tuple[int, Interval], value: Interval) -> tuple[int, Interval]:
    return state[0] + 1, add(state[1], value)


def _mean_span(state: tuple[int, Interval]) -> Interval | None:
    count, total = state
    return divided(total, float(count)) if count else None


# The spread of exact numbers

_Squares = tuple[int, Decimal, Decimal]
"""The count, the sum, and the sum of the squares."""


def _no_squares() -> _Squares:
    return 0, Decimal(0), Decimal(0)


def _add_square(state: _Squares, value: Decimal | int) -> _Squares:
    count, total, squares = state
    number = Decimal(value)
    if not number.is_finite():
        return count + 1, NAN, NAN
    return count + 1, EXACT.add(total, number), EXACT.add(squares, EXACT.multiply(number, number))


def _numeric_spread(*, is_sample: bool, is_square: bool) -> Callable[[_Squares], Decimal | None]:
    def finish(state: _Squares) -> Decimal | None:
        count, total, squares = state
        if count <= (1 if is_sample else 0):
            return None
        if total.is_nan():
            return NAN
        over = EXACT.subtract(EXACT.multiply(Decimal(count), squares), EXACT.multiply(total, total))
        if over <= 0:
            return Decimal(0)
        under = Decimal(count * (count - 1) if is_sample else count * count)
        scale = division_scale(over, under)
        variance = quotient(over, under, scale)
        return variance if is_square else _root(variance, scale)

    return finish


def _root(value: Decimal, scale: int) -> Decimal:
    square = whole(value.scaleb(2 * scale, EXACT))
    root = isqrt(square)
    root += square - root * root > root
    return tidy(decimal_of(root).scaleb(-scale, EXACT))


# Floats

Floats = tuple[float, float, float]
"""The count, the sum, and the sum of the squared distances from the mean."""


def _no_floats() -> Floats:
    return 0.0, 0.0, 0.0


def add_float(state: Floats, value: float) -> Floats:
    count, total, spread = state
    new_count, new_total = count + 1.0, total + value
    if count > 0:
        spread = more_spread(spread, value * new_count - new_total, new_count * count)
        if spread != spread or abs(spread) == inf or abs(new_total) == inf:
            check_finite((total, value), new_total, spread)
            spread = nan
    elif value != value or abs(value) == inf:
        spread = nan
    return new_count, new_total, spread


def more_spread(spread: float, distance: float, weight: float) -> float:
    return spread + distance * distance / weight


def check_finite(before: tuple[float, ...], *after: float) -> None:
    """Raises OutOfRange where finite numbers became infinite."""
    if all(abs(each) != inf for each in before) and any(abs(each) == inf for each in after):
        raise OutOfRange("value out of range: overflow")


def _float_mean(state: Floats) -> float | None:
    count, total, _ = state
    return total / count if count else None


def _float_spread(*, is_sample: bool, is_square: bool) -> Callable[[Floats], Datum]:
    def finish(state: Floats) -> float | None:
        count, _, spread = state
        if count <= (1 if is_sample else 0):
            return None
        variance = spread / (count - 1.0 if is_sample else count)
        return variance if is_square or variance != variance else sqrt(variance)

    return finish
