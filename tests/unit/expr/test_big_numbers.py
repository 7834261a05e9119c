"""Conversions, exponentials and logarithms of numbers with many digits give what Python gives."""

from decimal import Context, Decimal
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.expr.functions.math_functions import numeric_power
from tenure.expr.types.big_numbers import EXACT, decimal_of, exp, ln, whole
from tenure.expr.types.numbers import whole_number

pytestmark = pytest.mark.hypothesis

SEEDS = st.integers(0, 2**32)


def _digits(seed: int, count: int) -> str:
    rng = Random(seed)
    return "".join(rng.choices("0123456789", k=count))


@given(SEEDS, st.sampled_from([1, 1999, 2001, 5000, 20_000]), st.sampled_from(["", "-"]))
def test_whole_numbers_are_converted_both_ways(seed: int, count: int, sign: str) -> None:
    value = EXACT.create_decimal(f"{sign}{_digits(seed, count)}")
    assert whole(value) == int(value)
    assert decimal_of(int(value)) == value
    assert whole(value.scaleb(-3, EXACT)) == int(value.scaleb(-3, EXACT))


@given(SEEDS, st.sampled_from([30, 599, 601, 700, 1200]), st.integers(-3, 3))
def test_exponentials_and_logarithms_have_all_their_digits(seed: int, digits: int, weight: int) -> None:
    value = EXACT.create_decimal(f"1.{_digits(seed, 40)}").scaleb(weight, EXACT)
    assert _is_near(exp(value, digits), Context(prec=digits + 10).exp(value), digits)
    assert _is_near(ln(value, digits), Context(prec=digits + 10).ln(value), digits)


@given(SEEDS, st.integers(18, 90), st.sampled_from([1, -1]))
def test_logarithms_near_one_have_all_their_digits(seed: int, zeros: int, sign: int) -> None:
    value = EXACT.add(Decimal(1), sign * EXACT.create_decimal(f"0.{'0' * zeros}1{_digits(seed, 20)}"))
    assert _is_near(ln(value, 60), Context(prec=200).ln(value), 60)


def _is_near(found: Decimal, expected: Decimal, digits: int) -> bool:
    if not expected:
        return not found
    difference = EXACT.subtract(found, expected)
    return not difference or difference.adjusted() <= expected.adjusted() - digits + 1


@given(st.decimals("0.001", "500", places=12), st.decimals("-40", "40", places=9))
def test_broken_powers_are_pythons(base: Decimal, exponent: Decimal) -> None:
    found = numeric_power(base, exponent)
    expected = Context(prec=400).power(base, exponent)
    assert abs(EXACT.subtract(found, expected)) <= Decimal((0, (6,), int(found.as_tuple().exponent) - 1))


@pytest.mark.parametrize("text", ["9" * 10_000, "0x" + "f" * 10_000, "1" + "_1" * 10_000])
def test_what_no_type_holds_is_not_converted(text: str) -> None:
    value = whole_number(text)
    assert value is not None
    assert value > 2**64
    assert whole_number("0" * 10_000 + "7") == 7
