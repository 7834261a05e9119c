"""random(min, max): each number of the interval is as likely as every other, however wide it is."""

from collections import Counter
from decimal import Decimal
from random import Random
from uuid import UUID

import pytest

from tenure.expr.functions.function import Context
from tenure.expr.functions.id_functions import _random_int, _random_numeric

DRAWS = 3_000


def _context(seed: int) -> Context:
    rng = Random(seed)
    return Context(0, 0, lambda: UUID(int=rng.getrandbits(128), version=4), lambda: 0)


@pytest.mark.parametrize("third", [1, 1 << 20, 1 << 60, 1 << 61, (1 << 63) // 3, 1 << 200])
def test_thirds_of_an_interval_are_drawn_equally_often(third: int) -> None:
    """A remainder of random bits would favour the first third of three times 2 ** 61 by half."""
    context = _context(seed=1)
    drawn = Counter(_random_int(context, -third, 2 * third - 1) // third for _ in range(DRAWS))
    assert set(drawn) == {-1, 0, 1}
    assert all(abs(count - DRAWS / 3) < 150 for count in drawn.values())


def test_both_ends_are_drawn() -> None:
    context = _context(seed=2)
    assert {_random_int(context, 5, 7) for _ in range(100)} == {5, 6, 7}
    assert _random_int(context, 9, 9) == 9
    assert {_random_numeric(context, Decimal("0.1"), Decimal("0.3")) for _ in range(100)} == {
        Decimal("0.1"),
        Decimal("0.2"),
        Decimal("0.3"),
    }
