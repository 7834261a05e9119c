"""Arithmetic on numbers, with PostgreSQL's result types, scales, rounding and errors.

    int      22003 where the result does not fit; division and remainder towards zero
    float    22003 where finite numbers give an infinite result, or a product or quotient becomes zero
    numeric  exact; a quotient has at least 16 significant digits, rounded half away from zero

Walk: `expr.function_table` lists these; `expr.functions.math_functions` uses the same rules.
"""

import operator
from collections.abc import Callable, Iterator
from decimal import ROUND_DOWN, Decimal
from itertools import product
from math import inf

from tenure.base.errors import DivisionByZero, OutOfRange
from tenure.expr.functions.function import Function
from tenure.expr.types.big_numbers import EXACT
from tenure.expr.types.floats import to_float4
from tenure.expr.types.numbers import SCALE_MAX, rounded, tidy

SIZES = {"int2": 2, "int4": 4, "int8": 8}
NAMES = {2: "smallint", 4: "integer", 8: "bigint"}
SIGNIFICANT_DIGITS_MIN, DISPLAY_SCALE_MAX = 16, 1000
"""NUMERIC_MIN_SIG_DIGITS and NUMERIC_MAX_DISPLAY_SCALE of PostgreSQL."""

NAN = Decimal("NaN")


def functions() -> Iterator[Function]:
    yield from _int_functions()
    yield from _float_functions()
    for name, run in {
        "+": numeric_add,
        "-": numeric_subtract,
        "*": numeric_multiply,
        "/": numeric_divide,
        "%": numeric_remainder,
    }.items():
        yield Function(name, ("numeric", "numeric"), "numeric", run)
    yield Function("mod", ("numeric", "numeric"), "numeric", numeric_remainder)
    yield Function("-", ("numeric",), "numeric", lambda a: tidy(a.copy_negate()))
    yield Function("+", ("numeric",), "numeric", lambda a: a)


# Whole numbers


def _int_functions() -> Iterator[Function]:
    arithmetic = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": divide_towards_zero}
    for pair in product(SIZES, SIZES):
        wider = max(pair, key=SIZES.__getitem__)
        for name, run in arithmetic.items():
            yield Function(name, pair, wider, checked(run, SIZES[wider]))
    for family, size in SIZES.items():
        pair = (family, family)
        yield Function("%", pair, family, remainder)
        yield Function("mod", pair, family, remainder)
        yield Function("&", pair, family, operator.and_)
        yield Function("|", pair, family, operator.or_)
        yield Function("#", pair, family, operator.xor)
        yield Function("<<", (family, "int4"), family, _shift_left(size))
        yield Function(">>", (family, "int4"), family, _shift_right(size))
        yield Function("~", (family,), family, operator.invert)
        yield Function("-", (family,), family, checked(operator.neg, size))
        yield Function("+", (family,), family, operator.pos)


def checked(run: Callable[..., int], size: int) -> Callable[..., int]:
    """Raises OutOfRange where the result does not fit into `size` bytes."""
    bound = 1 << 8 * size - 1

    def run_checked(*arguments: int) -> int:
        result = run(*arguments)
        if -bound <= result < bound:
            return result
        raise OutOfRange(f"{NAMES[size]} out of range")

    return run_checked


def divide_towards_zero(a: int, b: int) -> int:
    if b == 0:
        raise DivisionByZero
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def remainder(a: int, b: int) -> int:
    if b == 0:
        raise DivisionByZero
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def _shift_left(size: int) -> Callable[[int, int], int]:
    bits = 8 * size

    def shift(value: int, count: int) -> int:
        # As in C: the distance counts modulo 32 or 64, and bits shifted out are lost.
        shifted = value << (count % max(bits, 32)) & (1 << bits) - 1
        return shifted - (1 << bits) if shifted >> bits - 1 else shifted

    return shift


def _shift_right(size: int) -> Callable[[int, int], int]:
    return lambda value, count: value >> count % max(8 * size, 32)


# Floating point numbers


def _float_functions() -> Iterator[Function]:
    arithmetic: dict[str, Callable[[float, float], float]] = {
        "+": operator.add,
        "-": operator.sub,
        "*": float_multiply,
        "/": float_divide,
    }
    for pair in product(("float4", "float8"), repeat=2):
        wider = "float4" if pair == ("float4", "float4") else "float8"
        for name, run in arithmetic.items():
            yield Function(name, pair, wider, float_checked(run, is_single=wider == "float4"))
    for family in ("float4", "float8"):
        yield Function("-", (family,), family, operator.neg)
        yield Function("+", (family,), family, operator.pos)


def float_checked(run: Callable[..., float], *, is_single: bool) -> Callable[..., float]:
    def run_checked(a: float, b: float) -> float:
        result = run(a, b)
        if abs(result) == inf and abs(a) != inf and abs(b) != inf:
            raise OutOfRange("value out of range: overflow")
        return to_float4(result) if is_single else result

    return run_checked


def float_multiply(a: float, b: float) -> float:
    result = a * b
    if result == 0 and a != 0 and b != 0:
        raise OutOfRange("value out of range: underflow")
    return result


def float_divide(a: float, b: float) -> float:
    if b == 0:
        if a != a:
            return a
        raise DivisionByZero
    result = a / b
    if result == 0 and a != 0 and abs(b) != inf:
        raise OutOfRange("value out of range: underflow")
    return result


# numeric


def scale_of(value: Decimal) -> int:
    return -int(value.as_tuple().exponent)


def numeric_add(a: Decimal, b: Decimal) -> Decimal:
    if a.is_nan() or b.is_nan() or (a.is_infinite() and b.is_infinite() and a != b):
        return NAN
    return tidy(EXACT.add(a, b))


def numeric_subtract(a: Decimal, b: Decimal) -> Decimal:
    return numeric_add(a, b.copy_negate())


def numeric_multiply(a: Decimal, b: Decimal) -> Decimal:
    if a.is_nan() or b.is_nan():
        return NAN
    if a.is_infinite() or b.is_infinite():
        return NAN if not a or not b else EXACT.multiply(a, b)
    exact = EXACT.multiply(a, b)
    return rounded(exact, SCALE_MAX) if scale_of(exact) > SCALE_MAX else tidy(exact)


def numeric_divide(a: Decimal, b: Decimal) -> Decimal:
    if a.is_nan() or b.is_nan():
        return NAN
    if a.is_infinite():
        if b.is_infinite():
            return NAN
        if not b:
            raise DivisionByZero
        return a if b > 0 else a.copy_negate()
    if b.is_infinite():
        return Decimal(0)
    if not b:
        raise DivisionByZero
    return quotient(a, b, division_scale(a, b))


def division_scale(a: Decimal, b: Decimal) -> int:
    """PostgreSQL's select_div_scale: it counts in digits of base 10000."""
    weight_a, first_a = leading(a)
    weight_b, first_b = leading(b)
    weight = weight_a - weight_b - (1 if first_a <= first_b else 0)
    scale = max(SIGNIFICANT_DIGITS_MIN - weight * 4, scale_of(a), scale_of(b), 0)
    return min(scale, DISPLAY_SCALE_MAX)


def leading(value: Decimal) -> tuple[int, int]:
    """The weight of the first digit in base 10000, and that digit; (0, 0) of zero."""
    if not value:
        return 0, 0
    weight = value.adjusted() // 4
    return weight, int(value.copy_abs().scaleb(-4 * weight, EXACT))


def quotient(a: Decimal, b: Decimal, scale: int) -> Decimal:
    """a / b rounded half away from zero at this scale, exactly."""
    dividend, divisor = _as_whole(a.copy_abs(), b.copy_abs(), scale)
    whole, rest = EXACT.divmod(dividend, divisor)
    if EXACT.add(rest, rest) >= divisor:
        whole = EXACT.add(whole, Decimal(1))
    value = whole.scaleb(-scale, EXACT)
    return tidy(value if a.is_signed() == b.is_signed() else value.copy_negate())


def _as_whole(a: Decimal, b: Decimal, scale: int) -> tuple[Decimal, Decimal]:
    """Two whole numbers whose quotient is a / b × 10^scale."""
    shift = max(scale_of(a) - scale, scale_of(b), 0)
    return a.scaleb(scale + shift, EXACT), b.scaleb(shift, EXACT)


def numeric_remainder(a: Decimal, b: Decimal) -> Decimal:
    if a.is_nan() or b.is_nan():
        return NAN
    if a.is_infinite():
        if not b:
            raise DivisionByZero
        return NAN
    if b.is_infinite():
        return a
    if not b:
        raise DivisionByZero
    return tidy(EXACT.remainder(a, b))


def truncated(value: Decimal, scale: int) -> Decimal:
    if not value.is_finite():
        return value
    if scale >= scale_of(value):
        return rounded(value, scale)
    return tidy(value.quantize(Decimal((0, (1,), -scale)), rounding=ROUND_DOWN, context=EXACT))
