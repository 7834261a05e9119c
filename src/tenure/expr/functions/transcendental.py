"""Logarithms, exponentials, angles and number theory.

The scale of a numeric logarithm or exponential follows PostgreSQL's estimate of the result's weight,
so that it has at least 16 significant digits.

Walk: `expr.function_table` lists these.
"""

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from math import inf, isinf, isnan

from tenure.base.errors import (
    ArraySizesDiffer,
    DivisionByZero,
    InvalidBucketCount,
    InvalidLogarithm,
    NullNotAllowed,
    OutOfRange,
)
from tenure.expr.functions.arithmetic import (
    DISPLAY_SCALE_MAX,
    NAN,
    SIGNIFICANT_DIGITS_MIN,
    SIZES,
    checked,
    float_multiply,
    leading,
    quotient,
    scale_of,
)
from tenure.expr.functions.function import Function, function
from tenure.expr.types.arrays import ArrayOf, dimensions
from tenure.expr.types.big_numbers import EXACT, decimal_of, exp, ln, whole
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.numbers import rounded, tidy

_RESULT_SCALE_MAX = 2000
_FACTORIAL_MAX = 32_177
GUARD_DIGITS = 30
"""More than the result will keep."""


def functions() -> Iterator[Function]:
    yield from _logarithms()
    yield from _angles()
    yield from _whole_numbers()
    yield from _buckets()
    yield function("scale", "numeric -> int4", lambda value: scale_of(value) if value.is_finite() else None)
    yield function("min_scale", "numeric -> int4", _min_scale)
    yield function("trim_scale", "numeric -> numeric", _trim_scale)


# Logarithms and exponentials


def _logarithms() -> Iterator[Function]:
    yield function("exp", "numeric -> numeric", numeric_exp)
    yield function("exp", "float8 -> float8", _float_exp)
    yield function("ln", "numeric -> numeric", numeric_ln)
    yield function("ln", "float8 -> float8", partial(_float_log, math.log))
    for name in ("log", "log10"):
        yield function(name, "numeric -> numeric", lambda value: numeric_log(Decimal(10), value))
        yield function(name, "float8 -> float8", partial(_float_log, math.log10))
    yield function("log", "numeric, numeric -> numeric", numeric_log)
    for name in ("cbrt", "||/"):
        yield function(name, "float8 -> float8", math.cbrt)


def _check_logarithm(value: Decimal | float) -> None:
    if value == 0:
        raise InvalidLogarithm("cannot take logarithm of zero")
    if value < 0:
        raise InvalidLogarithm("cannot take logarithm of a negative number")


def _float_log(run: Callable[[float], float], value: float) -> float:
    if isnan(value):
        return value
    _check_logarithm(value)
    return run(value)


def _float_exp(value: float) -> float:
    try:
        result = math.exp(value)
    except OverflowError:
        raise OutOfRange("value out of range: overflow") from None
    if result == 0 and value != -inf:
        raise OutOfRange("value out of range: underflow")
    return result


def numeric_exp(value: Decimal) -> Decimal:
    if not value.is_finite():
        return Decimal(0) if value == Decimal("-Infinity") else value
    if value >= 3 * _RESULT_SCALE_MAX:
        raise OutOfRange("value overflows numeric format")
    # log10 of the result, within bounds
    weight = max(-_RESULT_SCALE_MAX, min(float(value) * 0.434294481903252, _RESULT_SCALE_MAX))
    scale = _result_scale(int(weight), value)
    if value <= -3 * _RESULT_SCALE_MAX:
        return rounded(Decimal(0), scale)
    return rounded(exp(value, scale + int(max(weight, 0)) + GUARD_DIGITS), scale)


def _result_scale(weight: int, *arguments: Decimal) -> int:
    scale = max(SIGNIFICANT_DIGITS_MIN - weight, 0, *(scale_of(each) for each in arguments))
    return min(scale, DISPLAY_SCALE_MAX)


def numeric_ln(value: Decimal) -> Decimal:
    if value.is_nan():
        return value
    _check_logarithm(value)
    if value.is_infinite():
        return value
    scale = _result_scale(_ln_weight(value), value)
    return rounded(ln(value, scale + 10 + GUARD_DIGITS), scale)


def _ln_weight(value: Decimal) -> int:
    """PostgreSQL's estimate of the decimal weight of ln(value), from its first digits in base 10000."""
    if Decimal("0.9") <= value <= Decimal("1.1"):
        weight, first = leading(EXACT.subtract(value, Decimal(1)))
        return weight * 4 + int(math.log10(first)) if first else 0
    weight, first = leading(value)
    digits, exponent = float(first), weight * 4
    second = int(value.scaleb(-4 * (weight - 1), EXACT)) % 10_000
    if value != Decimal(first).scaleb(4 * weight):
        digits, exponent = first * 10_000.0 + second, exponent - 4
    estimate = math.log(digits) + exponent * 2.302585092994046
    return int(math.log10(abs(estimate)))


def numeric_log(base: Decimal, value: Decimal) -> Decimal:
    if base.is_nan() or value.is_nan():
        return NAN
    for each in (base, value):
        if each < 0:
            raise InvalidLogarithm("cannot take logarithm of a negative number")
    for each in (base, value):
        _check_logarithm(each)
    if base.is_infinite():
        return NAN if value.is_infinite() else Decimal(0)
    if value.is_infinite():
        return value
    scale = _result_scale(_ln_weight(value) - _ln_weight(base), base, value)
    under = ln(base, scale + 40 + GUARD_DIGITS)
    if not under:
        raise DivisionByZero
    return rounded(quotient(ln(value, scale + 40 + GUARD_DIGITS), under, scale + 8), scale)


# Angles


def _angles() -> Iterator[Function]:
    for name, run in (("sin", math.sin), ("cos", math.cos), ("tan", math.tan)):
        yield function(name, "float8 -> float8", partial(_of_finite, run))
    yield function("cot", "float8 -> float8", _cot)
    for name, run in (("asin", math.asin), ("acos", math.acos), ("atanh", math.atanh), ("acosh", math.acosh)):
        yield function(name, "float8 -> float8", _within(run))
    for name, run in (("atan", math.atan), ("tanh", math.tanh), ("asinh", math.asinh)):
        yield function(name, "float8 -> float8", run)
    for name, run in (("sinh", math.sinh), ("cosh", math.cosh)):
        yield function(name, "float8 -> float8", partial(_hyperbolic, run))
    yield function("atan2", "float8, float8 -> float8", math.atan2)
    yield function(
        "degrees", "float8 -> float8", lambda value: _finite_product(value, value / 0.017453292519943295)
    )
    yield function("radians", "float8 -> float8", lambda value: float_multiply(value, 0.017453292519943295))
    yield Function("pi", (), "float8", lambda: math.pi)


def _of_finite(run: Callable[[float], float], value: float) -> float:
    if isinf(value):
        raise OutOfRange("input is out of range")
    return run(value)


def _cot(value: float) -> float:
    tangent = _of_finite(math.tan, value)
    return math.copysign(inf, tangent) if tangent == 0 else 1.0 / tangent


def _within(run: Callable[[float], float]) -> Callable[[float], float]:
    def checked_run(value: float) -> float:
        if run is math.atanh and abs(value) == 1:
            return math.copysign(inf, value)
        try:
            return run(value)
        except ValueError:
            raise OutOfRange("input is out of range") from None

    return checked_run


def _hyperbolic(run: Callable[[float], float], value: float) -> float:
    try:
        return run(value)
    except OverflowError:
        return math.copysign(inf, value) if run is math.sinh else inf


def _finite_product(value: float, result: float) -> float:
    if isinf(result) and not isinf(value):
        raise OutOfRange("value out of range: overflow")
    return result


# Whole numbers


def _whole_numbers() -> Iterator[Function]:
    for family in ("int4", "int8"):
        size = SIZES[family]
        yield function("gcd", f"{family}, {family} -> {family}", checked(math.gcd, size))
        yield function("lcm", f"{family}, {family} -> {family}", checked(math.lcm, size))
    yield function("gcd", "numeric, numeric -> numeric", partial(_of_scaled, math.gcd))
    yield function("lcm", "numeric, numeric -> numeric", partial(_of_scaled, math.lcm))
    yield function("factorial", "int8 -> numeric", _factorial)


def _of_scaled(run: Callable[[int, int], int], a: Decimal, b: Decimal) -> Decimal:
    if not a.is_finite() or not b.is_finite():
        return NAN
    scale = max(scale_of(a), scale_of(b))
    found = run(whole(a.scaleb(scale, EXACT)), whole(b.scaleb(scale, EXACT)))
    return tidy(decimal_of(found).scaleb(-scale, EXACT))


def _factorial(value: int) -> Decimal:
    if value < 0:
        raise OutOfRange("factorial of a negative number is undefined")
    if value > _FACTORIAL_MAX:
        raise OutOfRange("value overflows numeric format")
    return decimal_of(math.factorial(value))


def _min_scale(value: Decimal) -> int | None:
    return scale_of(_trim_scale(value)) if value.is_finite() else None


def _trim_scale(value: Decimal) -> Decimal:
    return tidy(value.normalize(EXACT)) if value.is_finite() else value


# width_bucket


def _buckets() -> Iterator[Function]:
    yield function("width_bucket", "float8, float8, float8, int4 -> int4", _float_bucket)
    yield function("width_bucket", "numeric, numeric, numeric, int4 -> int4", _numeric_bucket)
    arguments = ("anycompatible", "anycompatiblearray")
    yield Function("width_bucket", arguments, "int4", _array_bucket, wants_types=True)


def _check_buckets(low: float | Decimal, high: float | Decimal, count: int) -> None:
    if count <= 0:
        raise InvalidBucketCount("count must be greater than zero")
    if abs(low) == inf or abs(high) == inf:
        raise InvalidBucketCount("lower and upper bounds must be finite")
    if low == high:
        raise InvalidBucketCount("lower bound cannot equal upper bound")


def _beyond(count: int) -> int:
    return checked(lambda: count + 1, 4)()


def _float_bucket(value: float, low: float, high: float, count: int) -> int:
    if count > 0 and (isnan(value) or isnan(low) or isnan(high)):
        raise InvalidBucketCount("operand, lower bound, and upper bound cannot be NaN")
    _check_buckets(low, high, count)
    start, end, at = (low, high, value) if low < high else (-low, -high, -value)
    if at < start:
        return 0
    if at >= end:
        return _beyond(count)
    width = end - start
    share = (at - start) / width if not isinf(width) else (at / 2 - start / 2) / (end / 2 - start / 2)
    return min(int(count * share), count - 1) + 1


def _numeric_bucket(value: Decimal, low: Decimal, high: Decimal, count: int) -> int:
    if count > 0 and (value.is_nan() or low.is_nan() or high.is_nan()):
        raise InvalidBucketCount("operand, lower bound, and upper bound cannot be NaN")
    _check_buckets(low, high, count)
    if low > high:
        value, low, high = value.copy_negate(), low.copy_negate(), high.copy_negate()
    if value < low:
        return 0
    if value >= high:
        return _beyond(count)
    over, under = EXACT.multiply(EXACT.subtract(value, low), Decimal(count)), EXACT.subtract(high, low)
    return int(EXACT.divide_int(over, under)) + 1


def _array_bucket(kind: Type, array: Type) -> Callable[[Datum, Datum], int]:
    assert isinstance(array, ArrayOf)
    of = array.element.comparable

    def bucket(value: Datum, thresholds: Datum) -> int:
        if len(dimensions(thresholds)) > 1:
            raise ArraySizesDiffer("thresholds must be one-dimensional array")
        if None in thresholds:
            raise NullNotAllowed("thresholds array must not contain NULLs")
        key, low, high = of(value), 0, len(thresholds)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if key < of(thresholds[middle]) else (middle + 1, high)
        return low

    return bucket
