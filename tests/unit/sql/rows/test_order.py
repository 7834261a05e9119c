"""Orders, limits, what is held, and what is asked on the way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.errors import NegativeLimit, OutOfMemory
from tenure.base.memory import lone_account
from tenure.expr.tree.build import Typed, call
from tenure.expr.tree.expressions import ContextValue, Nested
from tenure.kv.store import Store
from tenure.sql.plans.free_values import FreeValues
from tenure.sql.plans.plan import (
    Access,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Limit,
    Lock,
    NestedKind,
    Plan,
    Query,
    Shared,
    Sort,
    Subquery,
)
from tenure.sql.plans.plan_facts import is_bounded, is_point_query
from tenure.sql.rows.run import QueryRun, Rows
from tenure.sql.rows.runner import compile
from tests.unit.sql.plans import (
    INT,
    Desk,
    aggregate,
    aggregate_call,
    col,
    ints,
    key,
    number,
    project,
    scan,
    series,
    where,
    without_tables,
)
from tests.unit.table.tables import A, index, table

T = table(index(2, "t_a", A))

_numbers = st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 3)), st.integers(0, 3)), min_size=1)


@pytest.fixture
def desk(store: Store) -> Desk:
    return Desk(store, T)


def answer(plan: Plan) -> list[tuple[object, ...]]:
    return list(compile(Query(plan)).rows(without_tables()))


@given(_numbers, st.booleans(), st.booleans(), st.booleans(), st.integers(0, 5))
def test_the_first_of_a_sort_are_those_of_the_whole_sort(
    rows: list[tuple[int | None, int]], desc: bool, also_desc: bool, nulls_first: bool, count: int
) -> None:
    keys = (key(0, desc=desc, nulls_first=nulls_first), key(1, desc=also_desc))
    whole = Sort(ints(*rows), keys)
    assert answer(Limit(whole, count=number(count).node)) == answer(whole)[:count]


@given(_numbers, st.booleans(), st.booleans())
def test_a_sort_puts_nulls_where_it_is_told(
    rows: list[tuple[int | None, int]], desc: bool, nulls_first: bool
) -> None:
    found = [row[0] for row in answer(Sort(ints(*rows), (key(0, desc=desc, nulls_first=nulls_first),)))]
    values = sorted((row[0] for row in rows if row[0] is not None), reverse=desc)
    nulls = [None] * (len(rows) - len(values))
    assert found == ([*nulls, *values] if nulls_first else [*values, *nulls])


def test_equal_rows_keep_their_order() -> None:
    assert answer(Sort(ints((1, 9), (1, 3), (0, 5)), (key(0),))) == [(0, 5), (1, 9), (1, 3)]


def test_a_negative_limit_is_an_error() -> None:
    with pytest.raises(NegativeLimit):
        answer(Limit(ints(1), count=number(-1).node))


@pytest.mark.parametrize("plan", [Sort(series(1, 20_000), (key(0),)), Distinct(series(1, 20_000))])
def test_what_is_held_is_limited(desk: Desk, plan: Plan) -> None:
    with pytest.raises(OutOfMemory):
        desk.answer(plan, memory=lone_account(200_000))


def test_the_first_of_a_sort_need_little_memory(desk: Desk) -> None:
    plan = Limit(Sort(series(1, 20_000), (key(0, desc=True),)), count=number(2).node)
    assert desk.answer(plan, memory=lone_account(1_000_000)) == [(20_000,), (19_999,)]


def test_groups_are_limited(desk: Desk) -> None:
    numbers = series(1, 20_000)
    plan = aggregate(numbers, [col(numbers, 0)], aggregate_call("count"))
    with pytest.raises(OutOfMemory):
        desk.answer(plan, memory=lone_account(200_000))


def test_rows_are_locked_as_they_pass(desk: Desk) -> None:
    locked = []

    def lock(plan: Lock, row: tuple[object, ...]) -> bool:
        locked.append(row)
        return row != (2,)

    plan = Limit(Lock(ints(1, 2, 3, 4), T, (0,)), count=number(2).node)
    assert desk.answer(plan, lock=lock) == [(1,), (3,)]
    assert locked == [(1,), (2,), (3,)]


def test_a_node_may_be_taken_over(desk: Desk) -> None:
    def instead(plan: Plan, run: QueryRun) -> Rows | None:
        return iter([(7,)]) if isinstance(plan, Filter) else None

    plan = ints(1, 2)
    filtered = where(plan, call(">", col(plan, 0), number(1)))
    assert desk.answer(project(filtered, col(plan, 0), col(plan, 0)), instead=instead) == [(7, 7)]


def test_a_sort_that_is_given_lets_nobody_else_make_its_rows(desk: Desk) -> None:
    def instead(plan: Plan, run: QueryRun) -> Rows | None:
        return iter([(9,)]) if isinstance(plan, Distinct) else None

    plan = Sort(Distinct(ints(1, 2)), (key(0),), is_presorted=True)
    assert desk.answer(plan, instead=instead) == [(1,), (2,)]


def test_a_with_query_is_run_once(desk: Desk) -> None:
    seen = 0

    def watch(plan: Plan, rows: Rows) -> Rows:
        nonlocal seen
        seen += plan is numbers
        return rows

    numbers = series(1, 3)
    twice = Join(JoinKind.INNER, Shared(numbers.outputs, 0), Shared(numbers.outputs, 0))
    assert len(desk.answer(Query(twice, shared=(numbers,)), watch=watch)) == 9
    assert seen == 1


def test_a_subquery_remembers_what_it_was_asked(desk: Desk) -> None:
    runs = 0

    def watch(plan: Plan, rows: Rows) -> Rows:
        nonlocal runs
        runs += plan is inner
        return rows

    inner = project(ints(0), call("+", col(ints(0), 0), Typed(ContextValue(0, INT.ref), INT)))
    outer = ints(5, 6, 5, 5)
    asked = Typed(Nested(0, (col(outer, 0).node,), INT.ref), INT)
    query = Query(
        project(outer, asked), givens=1, nested=(Subquery(NestedKind.SCALAR, inner, (0,), type=INT),)
    )
    assert desk.answer(query, watch=watch) == [(5,), (6,), (5,), (5,)]
    assert runs == 2


def test_a_plan_is_bounded_if_all_its_tables_are_read_by_key() -> None:
    by_key = scan(T, access=Access(1, (number(1).node,), is_point=True))
    whole = scan(T)
    assert is_bounded(by_key, Query(by_key))
    assert is_point_query(Query(Limit(by_key)))
    assert not is_bounded(Join(JoinKind.INNER, by_key, whole), Query(whole))
    assert not is_point_query(Query(whole))


def test_values_that_a_lateral_join_fills_are_not_free() -> None:
    right = scan(T, access=Access(1, (ContextValue(4, INT.ref),), is_point=True))
    join = Join(JoinKind.INNER, ints(1), right, lateral=((4, 0),))
    assert FreeValues(Query(right)).givens(right) == {4}
    assert FreeValues(Query(join)).givens(join) == set()
