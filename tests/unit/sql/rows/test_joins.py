"""Joins, against each-with-each in plain Python."""

from collections.abc import Sequence
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.errors import OutOfMemory
from tenure.base.memory import lone_account
from tenure.expr.tree.build import Typed, call
from tenure.expr.tree.expressions import And, ContextValue, Node
from tenure.kv.store import Store
from tenure.sql.plans.plan import Access, Join, JoinKind, Query
from tenure.sql.rows.runner import compile
from tests.unit.sql.plans import (
    INT,
    NUMERIC,
    Desk,
    both,
    col,
    compare,
    ints,
    project,
    scan,
    series,
    values,
    without_tables,
)
from tests.unit.table.tables import A, index, table

T = table(index(2, "t_a", A))
Pair = tuple[int | None, int | None]

_numbers = st.one_of(st.none(), st.integers(0, 3))
_rows = st.lists(st.tuples(_numbers, _numbers), min_size=1, max_size=6)


@pytest.fixture
def desk(store: Store) -> Desk:
    return Desk(store, T)


def naive(kind: JoinKind, left: list[Pair], right: list[Pair], *, residual: bool) -> list[tuple[Any, ...]]:
    def matches(a: Pair, b: Pair) -> bool:
        is_equal = a[0] is not None and a[0] == b[0]
        return is_equal and (not residual or (None not in (a[1], b[1]) and a[1] < b[1]))  # type: ignore[operator]

    pairs = [(a, b) for a, b in product(left, right) if matches(a, b)]
    lonely_left = [a for a in left if not any(matches(a, b) for b in right)]
    lonely_right = [b for b in right if not any(matches(a, b) for a in left)]
    match kind:
        case JoinKind.SEMI:
            return [a for a in left if a not in lonely_left]
        case JoinKind.ANTI:
            return list(lonely_left)
    joined: list[tuple[Any, ...]] = [a + b for a, b in pairs]
    if kind in (JoinKind.LEFT, JoinKind.FULL):
        joined += [(*a, None, None) for a in lonely_left]
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        joined += [(None, None, *b) for b in lonely_right]
    return joined


def condition(left: Any, right: Any, *, residual: bool, hashed: bool) -> Node:
    equal = compare("=", both(left, right, 0), both(left, right, 2))
    if not hashed:
        # The same, in a form that no hash helps with.
        no_less = compare(">=", both(left, right, 0), both(left, right, 2))
        equal = And((no_less, compare("<=", both(left, right, 0), both(left, right, 2))))
    if not residual:
        return equal
    return And((equal, compare("<", both(left, right, 1), both(left, right, 3))))


def as_sorted(rows: Sequence[tuple[Any, ...]]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.mark.invariant("join-equal")
@pytest.mark.parametrize("kind", JoinKind)
@given(_rows, _rows, st.booleans(), st.booleans())
def test_joins_give_what_each_with_each_gives(
    kind: JoinKind, left: list[Pair], right: list[Pair], residual: bool, hashed: bool
) -> None:
    a, b = ints(*left), ints(*right)
    plan = Join(kind, a, b, condition(a, b, residual=residual, hashed=hashed))
    found = list(compile(Query(plan)).rows(without_tables()))
    assert as_sorted(found) == as_sorted(naive(kind, left, right, residual=residual))


def test_a_cross_join_gives_all_pairs_in_order(desk: Desk) -> None:
    assert desk.answer(Join(JoinKind.INNER, ints(1, 2), ints(3, 4))) == [(1, 3), (1, 4), (2, 3), (2, 4)]


def test_numbers_of_another_scale_match(desk: Desk) -> None:
    left, right = values([NUMERIC], [Decimal("1.0")]), values([NUMERIC], [Decimal("1.00")])
    plan = Join(JoinKind.INNER, left, right, compare("=", both(left, right, 0), both(left, right, 1)))
    assert repr(desk.answer(plan)) == "[(Decimal('1.0'), Decimal('1.00'))]"


def test_two_equalities_are_one_key_and_null_matches_nothing(desk: Desk) -> None:
    left, right = ints((1, None), (1, 2)), ints((1, None), (1, 2))
    equal = And(
        (
            compare("=", both(left, right, 0), both(left, right, 2)),
            compare("=", both(left, right, 1), both(left, right, 3)),
        )
    )
    assert desk.answer(Join(JoinKind.INNER, left, right, equal)) == [(1, 2, 1, 2)]


def test_a_lateral_side_takes_values_of_each_left_row(desk: Desk) -> None:
    left = ints(1, 2)
    right = project(ints(10), call("+", col(ints(10), 0), _given(0)))
    plan = Join(JoinKind.INNER, left, right, lateral=((0, 0),))
    assert desk.answer(Query(plan, givens=1)) == [(1, 11), (2, 12)]


def test_a_lookup_by_index_is_a_lateral_join(desk: Desk) -> None:
    for row in [(1, 10, 1), (2, 20, 2), (3, 10, 3)]:
        desk.insert(*row)
    left = ints(10, 30, None)
    right = scan(T, "id", "a", access=Access(2, (ContextValue(0, INT.ref),)))
    plan = Join(JoinKind.LEFT, left, right, lateral=((0, 0),))
    assert desk.answer(Query(plan, givens=1)) == [
        (10, 1, 10),
        (10, 3, 10),
        (30, None, None),
        (None, None, None),
    ]


def test_a_join_that_holds_too_much_is_refused(desk: Desk) -> None:
    plan = Join(JoinKind.INNER, ints(1), series(1, 10_000))
    with pytest.raises(OutOfMemory) as caught:
        desk.answer(plan, memory=lone_account(100_000))
    assert caught.value.sqlstate == "53200"
    assert "sql.query_memory" in caught.value.hint


def test_what_a_join_held_is_given_back(desk: Desk) -> None:
    memory = lone_account(1 << 30)
    desk.answer(Join(JoinKind.INNER, ints(1), series(1, 3_000)), memory=memory)
    assert memory.held_bytes == 0


def _given(number: int) -> Typed:
    return Typed(ContextValue(number, INT.ref), INT)
