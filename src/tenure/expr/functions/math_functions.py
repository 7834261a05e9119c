"""Rounding, roots and powers.

    round(2.5) = 3 (numeric: half away from zero)   round(2.5::float8) = 2 (half to even)

The scale of a numeric result follows PostgreSQL's rules: at least 16 significant digits, and never
fewer after the point than the arguments have.

Walk: `expr.function_table` lists these.
"""

import math
from collections.abc import Callable, Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from math import inf, isqrt

from tenure.base.errors import InvalidPower, OutOfRange
from tenure.expr.functions.arithmetic import (
    DISPLAY_SCALE_MAX,
    NAN,
    SIGNIFICANT_DIGITS_MIN,
    SIZES,
    checked,
    leading,
    numeric_divide,
    quotient,
    scale_of,
    truncated,
)
from tenure.expr.functions.function import Function, function
from tenure.expr.types.big_numbers import EXACT, decimal_of, exp, ln, whole
from tenure.expr.types.numbers import DIGITS_BEFORE_MAX, rounded, tidy


def functions() -> Iterator[Function]:
    for name in ("abs", "@"):
        for family, size in SIZES.items():
            yield Function(name, (family,), family, checked(abs, size))
        yield function(name, "float4 -> float4", abs)
        yield function(name, "float8 -> float8", abs)
        yield function(name, "numeric -> numeric", lambda value: value.copy_abs())
    yield function("round", "numeric -> numeric", lambda value: _round(value, 0))
    yield function("round", "numeric, int4 -> numeric", _round)
    yield function("round", "float8 -> float8", _float_whole(round))
    yield function("trunc", "numeric -> numeric", lambda value: truncated(value, 0))
    yield function("trunc", "numeric, int4 -> numeric", _truncate)
    yield function("trunc", "float8 -> float8", _float_whole(math.trunc))
    for name in ("ceil", "ceiling"):
        yield function(name, "numeric -> numeric", lambda value: _whole(value, ROUND_CEILING))
        yield function(name, "float8 -> float8", _float_whole(math.ceil))
    yield function("floor", "numeric -> numeric", lambda value: _whole(value, ROUND_FLOOR))
    yield function("floor", "float8 -> float8", _float_whole(math.floor))
    yield function("sign", "numeric -> numeric", _sign)
    yield function("sign", "float8 -> float8", lambda value: float((value > 0) - (value < 0)))
    yield function("div", "numeric, numeric -> numeric", _divide_whole)
    for name in ("power", "pow", "^"):
        yield function(name, "numeric, numeric -> numeric", numeric_power)
        yield function(name, "float8, float8 -> float8", float_power)
    yield function("sqrt", "numeric -> numeric", numeric_sqrt)
    for name in ("sqrt", "|/"):
        yield function(name, "float8 -> float8", _float_sqrt)


def _round(value: Decimal, scale: int) -> Decimal:
    return rounded(value, _limited(scale)) if value.is_finite() else value


def _truncate(value: Decimal, scale: int) -> Decimal:
    return truncated(value, _limited(scale))


def _limited(scale: int) -> int:
    return max(-DIGITS_BEFORE_MAX, min(scale, DISPLAY_SCALE_MAX * 16 + 383))


def _whole(value: Decimal, rounding: str) -> Decimal:
    if not value.is_finite():
        return value
    return tidy(value.quantize(Decimal(1), rounding=rounding, context=EXACT))


def _float_whole(run: Callable[[float], int]) -> Callable[[float], float]:
    def whole(value: float) -> float:
        if value != value or abs(value) == inf:
            return value
        return math.copysign(float(run(value)), value)

    return whole


def _sign(value: Decimal) -> Decimal:
    return value if value.is_nan() else Decimal((value > 0) - (value < 0))


def _divide_whole(a: Decimal, b: Decimal) -> Decimal:
    if not a.is_finite() or not b.is_finite() or not b:
        return truncated(numeric_divide(a, b), 0)
    return tidy(EXACT.divide_int(a, b))


# Square roots


def _float_sqrt(value: float) -> float:
    if value < 0:
        raise InvalidPower("cannot take square root of a negative number")
    return math.sqrt(value)


def numeric_sqrt(value: Decimal) -> Decimal:
    if value.is_nan():
        return value
    if value < 0:
        raise InvalidPower("cannot take square root of a negative number")
    if value.is_infinite():
        return value
    weight = leading(value)[0]
    digits = weight * 4 // 2 + 1 if weight >= 0 else 1 - (1 - weight * 4) // 2
    scale = max(SIGNIFICANT_DIGITS_MIN - digits, scale_of(value), 0)
    scale = min(scale, DISPLAY_SCALE_MAX)
    square = whole(value.scaleb(2 * scale, EXACT))
    root = isqrt(square)
    root += square - root * root > root
    return tidy(decimal_of(root).scaleb(-scale, EXACT))


# Powers


def _check_power(base: Decimal | float, exponent: Decimal | float, *, is_whole: bool) -> None:
    if base == 0 and exponent < 0:
        raise InvalidPower("zero raised to a negative power is undefined")
    if base < 0 and not is_whole:
        raise InvalidPower("a negative number raised to a non-integer power yields a complex result")


def float_power(base: float, exponent: float) -> float:
    if base != base or exponent != exponent:
        return 1.0 if base == 1 or exponent == 0 else math.nan
    is_whole = abs(exponent) == inf or exponent == math.floor(exponent)
    _check_power(base, exponent, is_whole=is_whole)
    try:
        result = math.pow(base, exponent)
    except OverflowError:
        raise OutOfRange("value out of range: overflow") from None
    if result == 0 and base != 0 and abs(base) != inf and abs(exponent) != inf:
        raise OutOfRange("value out of range: underflow")
    return result


def numeric_power(base: Decimal, exponent: Decimal) -> Decimal:
    if base.is_nan() or exponent.is_nan():
        return Decimal(1) if (exponent == 0 if base.is_nan() else base == 1) else NAN
    is_whole = exponent.is_infinite() or exponent == exponent.to_integral_value(context=EXACT)
    _check_power(base, exponent, is_whole=is_whole)
    if base.is_infinite() or exponent.is_infinite():
        return _infinite_power(base, exponent)
    if is_whole and -(2**31) <= exponent < 2**31:
        return _whole_power(base, int(exponent), scale_of(exponent))
    if not base:
        return Decimal(0).quantize(Decimal((0, (1,), -SIGNIFICANT_DIGITS_MIN)))
    power = _broken_power(base.copy_abs(), exponent)
    return tidy(power.copy_negate()) if base < 0 and EXACT.remainder(exponent, Decimal(2)) else power


def _infinite_power(base: Decimal, exponent: Decimal) -> Decimal:
    """POSIX's rules for pow(3)."""
    if base == 1 or exponent == 0 or (base == -1 and exponent.is_infinite()):
        return Decimal(1)
    if base == 0:
        return Decimal(0)
    if exponent.is_infinite():
        grows = (base.copy_abs() > 1) == (exponent > 0)
        return Decimal("Infinity") if grows else Decimal(0)
    if exponent < 0:
        return Decimal(0)
    is_odd = EXACT.remainder(exponent, Decimal(2)) != 0
    return base if base > 0 or is_odd else base.copy_negate()


def _whole_power(base: Decimal, exponent: int, exponent_scale: int) -> Decimal:
    # An estimate of the result's decimal weight, from the first digits, as power_var_int makes it.
    estimate = exponent * _log10(base) if base else 0.0
    if estimate > DIGITS_BEFORE_MAX:
        raise OutOfRange("value overflows numeric format")
    if estimate + 1 < -DISPLAY_SCALE_MAX:
        return Decimal(0).quantize(Decimal((0, (1,), -DISPLAY_SCALE_MAX)), context=EXACT)
    scale = max(SIGNIFICANT_DIGITS_MIN - int(estimate), scale_of(base), exponent_scale, 0)
    scale = min(scale, DISPLAY_SCALE_MAX)
    if exponent == 0:
        return rounded(Decimal(1), scale)
    if exponent < 0:
        return quotient(Decimal(1), _raised(base, -exponent, scale - 2 * int(estimate)), scale)
    return rounded(_raised(base, exponent, scale + int(abs(estimate))), scale)


def _raised(base: Decimal, exponent: int, digits: int) -> Decimal:
    """base^exponent with more digits than the result will keep; exact where that is short."""
    if exponent * len(base.as_tuple().digits) <= 5000:
        return EXACT.power(base, exponent)
    precision = max(digits, 0) + 40 + 2 * exponent.bit_length()
    return Context(prec=precision, Emax=EXACT.Emax, Emin=EXACT.Emin).power(base, exponent)


def _log10(value: Decimal) -> float:
    return math.log10(float(value.copy_abs().scaleb(-value.adjusted(), EXACT))) + value.adjusted()


def _broken_power(base: Decimal, exponent: Decimal) -> Decimal:
    logarithm = _rough_logarithm(base, exponent)
    if abs(logarithm) > 2000 * 3.01:
        if logarithm > 0:
            raise OutOfRange("value overflows numeric format")
        return Decimal(0).quantize(Decimal((0, (1,), -DISPLAY_SCALE_MAX)), context=EXACT)
    weight = int(logarithm * 0.434294481903252)
    scale = max(SIGNIFICANT_DIGITS_MIN - weight, scale_of(base), scale_of(exponent), 0)
    scale = min(scale, DISPLAY_SCALE_MAX)
    digits = scale + max(weight, 0) + 30
    # Each digit before the point of e's exponent costs one digit behind it.
    logarithm_digits = digits + max(exponent.adjusted(), 0) + 10
    power = EXACT.multiply(ln(base, logarithm_digits), _shortened(exponent, logarithm_digits))
    return rounded(exp(power, digits), scale)


def _shortened(value: Decimal, digits: int) -> Decimal:
    return Context(prec=digits, Emax=EXACT.Emax, Emin=EXACT.Emin).plus(value)


def _rough_logarithm(base: Decimal, exponent: Decimal) -> float:
    """exponent * ln(base) to about eight digits, rounded where PostgreSQL rounds it."""
    exact = ln(base, 60)
    if Decimal("0.9") <= base <= Decimal("1.1"):
        weight, first = leading(EXACT.subtract(base, Decimal(1)))
        digits = weight * 4 + int(math.log10(first)) if first else 0
    else:
        digits = int(math.log10(abs(float(exact))))
    scale = max(8 - digits, 0)
    return float(rounded(EXACT.multiply(rounded(exact, scale), exponent), scale))
