"""Numbers of very many digits: conversions, exponentials and logarithms that are fast or can be interrupted.

Python's conversion between `int` and `Decimal` is quadratic: it takes half a second for 131,072 digits. Its
exp and ln take seconds for a few thousand digits. None of them releases the GIL.

    whole, decimal_of   by halves: multiplication is fast
    exp                 of value / 2^k by its series, squared k times
    ln                  Newton's steps on exp; near one by its own series

Walk: `expr.functions.arithmetic`, `expr.functions.math_functions` and `expr.functions.transcendental` call
these.
"""

from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from itertools import count
from math import isqrt

from tenure.base.interruptible import check_now

EXACT = Context(prec=400_000, rounding=ROUND_HALF_UP, Emax=MAX_EMAX, Emin=MIN_EMIN)
"""Twice the digits of the greatest numeric: all results but quotients are exact in it."""

DIGITS_AT_ONCE = 2_000
BITS_AT_ONCE = 6_000
"""The digits that Python converts at once, in some 50 microseconds."""

PLAIN_DIGITS_MAX = 600
"""The digits up to which Python's own exp and ln take at most a millisecond."""

NEAR_ONE = -20
"""Below this weight of (value - 1), ln uses its own series: Python's ln would take seconds."""


def whole(value: Decimal) -> int:
    """int(value)"""
    text = format(value.to_integral_value("ROUND_DOWN", EXACT), "f")
    return -_from_digits(text[1:]) if text.startswith("-") else _from_digits(text)


def _from_digits(digits: str) -> int:
    if len(digits) <= DIGITS_AT_ONCE:
        return int(digits)
    low = len(digits) // 2
    return _from_digits(digits[:-low]) * _power_of_ten(low) + _from_digits(digits[-low:])


@lru_cache(maxsize=64)
def _power_of_ten(exponent: int) -> int:
    return int(10**exponent)


def decimal_of(value: int) -> Decimal:
    """Decimal(value)"""
    if value.bit_length() <= BITS_AT_ONCE:
        return Decimal(value)
    if value < 0:
        return decimal_of(-value).copy_negate()
    low = value.bit_length() // 2
    high = EXACT.multiply(decimal_of(value >> low), EXACT.power(Decimal(2), low))
    return EXACT.add(high, decimal_of(value & ((1 << low) - 1)))


def _precise(digits: int) -> Context:
    return Context(prec=digits, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN)


def exp(value: Decimal, digits: int) -> Decimal:
    """e^value to so many significant digits."""
    near = _precise(digits + 20).plus(value)
    if digits <= PLAIN_DIGITS_MAX:
        return _precise(digits).exp(near)
    halvings = isqrt(4 * digits) + max(0, 4 * near.adjusted())
    context = _precise(digits + 20 + halvings // 3)
    step = context.divide(near, context.power(Decimal(2), halvings))
    total = _exp_series(context, step)
    for _ in range(halvings):
        check_now()
        total = context.multiply(total, total)
    return _precise(digits).plus(total)


def _exp_series(context: Context, step: Decimal) -> Decimal:
    total = term = Decimal(1)
    for number in count(1):
        check_now()
        term = context.divide(context.multiply(term, step), Decimal(number))
        if not term or term.adjusted() < -context.prec:
            break
        total = context.add(total, term)
    return total


def ln(value: Decimal, digits: int) -> Decimal:
    """To so many significant digits."""
    beyond = EXACT.subtract(value, Decimal(1))
    if beyond and beyond.adjusted() < NEAR_ONE:
        return _ln_beyond_one(beyond, digits)
    near = _precise(digits + 20).plus(value)
    result = _precise(min(digits, PLAIN_DIGITS_MAX)).ln(near)
    if digits <= PLAIN_DIGITS_MAX:
        return result
    exact_digits = PLAIN_DIGITS_MAX - abs(NEAR_ONE) - 10
    while exact_digits < digits:
        # Each step makes three digits of one.
        exact_digits = min(3 * exact_digits, digits + 10)
        context = _precise(exact_digits + 30)
        power = exp(result, exact_digits + 30)
        change = context.divide(context.subtract(near, power), context.add(near, power))
        result = context.add(result, context.multiply(Decimal(2), change))
    return _precise(digits).plus(result)


def _ln_beyond_one(beyond: Decimal, digits: int) -> Decimal:
    """ln(1 + x) = x - x^2/2 + x^3/3 ..."""
    context = _precise(digits + 10)
    step = power = total = context.plus(beyond)
    for number in count(2):
        check_now()
        power = context.multiply(power, step.copy_negate())
        term = context.divide(power, Decimal(number))
        if term.adjusted() < total.adjusted() - digits - 10:
            break
        total = context.add(total, term)
    return _precise(digits).plus(total)
