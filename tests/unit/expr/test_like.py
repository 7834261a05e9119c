"""LIKE takes time linear in the text, whatever the pattern."""

import pytest

from tenure.base.errors import InvalidEscape
from tenure.expr.functions.like import ilike, like

LONG = "a" * 50_000


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "pattern", ["%a" * 50 + "%b", "%_" * 50 + "b", "a%" * 200 + "c", "%a_a%" * 20 + "x%"]
)
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    assert not like(LONG, pattern)
    assert not ilike(LONG, pattern)


@pytest.mark.timeout(20)
def test_an_escape_at_the_end_is_found_in_one_pass() -> None:
    with pytest.raises(InvalidEscape):
        like(LONG, "%a%a%a%a\\")
    assert not like(LONG, "%b%a\\")
