"""Where rows come from."""

from datetime import date
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.base.env import ManualEnv
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.tree.build import call, const
from tenure.expr.tree.expressions import ContextValue, MakeArray
from tenure.expr.types.json_values import Jsonb
from tenure.kv.store import Store
from tenure.sql.plans.plan import Access, Among, Limit, Project, ProjectSet, Query, SpanEnd, Values, Virtual
from tenure.sql.rows.runner import compile
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tenure.table.columns import filled_with
from tenure.table.read import rows
from tests.unit.sql.plans import (
    INT,
    Desk,
    col,
    compare,
    function_scan,
    ints,
    named,
    number,
    project,
    scan,
    series,
    set_call,
    where,
)
from tests.unit.table.tables import A, B, column, index, table

T = table(index(2, "t_a", A), index(3, "t_b", B, unique=True), index(4, "t_ab_desc", A, B, descending=(B,)))


@pytest.fixture
def desk(store: Store) -> Desk:
    desk = Desk(store, T)
    for row in [(1, 10, 100), (2, 20, None), (3, 10, 300), (4, None, 400), (5, 30, 50)]:
        desk.insert(*row)
    return desk


def test_a_table_is_read_whole_in_the_order_of_its_key(desk: Desk) -> None:
    assert desk.answer(scan(T, "b", "id")) == [(1, 100), (2, None), (3, 300), (4, 400), (5, 50)]


def test_a_table_is_read_backwards(desk: Desk) -> None:
    assert desk.answer(scan(T, "id", is_reverse=True)) == [(5,), (4,), (3,), (2,), (1,)]


def test_a_condition_of_a_scan_leaves_out_what_is_not_true(desk: Desk) -> None:
    plan = scan(T, "id", "a")
    assert desk.answer(scan(T, "id", "a", condition=compare(">", col(plan, 1), number(10)))) == [
        (2, 20),
        (5, 30),
    ]


def test_a_point_is_looked_up_by_key(desk: Desk) -> None:
    access = Access(1, (ContextValue(0, INT.ref),), is_point=True)
    query = Query(scan(T, access=access), parameters=(INT,), givens=1)
    assert desk.answer(query, given=[3]) == [(3, 10, 300)]
    assert desk.answer(query, given=[9]) == []
    assert desk.answer(query, given=[None]) == []


def test_a_point_of_a_secondary_index_leads_to_its_row(desk: Desk) -> None:
    access = Access(3, (number(300).node,), is_point=True)
    assert desk.answer(scan(T, access=access)) == [(3, 10, 300)]


def test_a_prefix_of_an_index_gives_its_rows(desk: Desk) -> None:
    assert desk.answer(scan(T, "id", access=Access(2, (number(10).node,)))) == [(1,), (3,)]


def test_values_among_several_come_once_each_and_in_order(desk: Desk) -> None:
    among = Among((number(30).node, number(10).node, number(10).node, number(None).node))
    assert desk.answer(scan(T, "id", access=Access(2, (among,)))) == [(1,), (3,), (5,)]
    assert desk.answer(scan(T, "id", access=Access(2, (among,)), is_reverse=True)) == [(5,), (3,), (1,)]


def test_values_of_an_array_are_looked_up(desk: Desk) -> None:
    array = MakeArray(named("int8[]").ref, (number(4).node, number(2).node, number(7).node))
    access = Access(1, (Among(array=array),), is_point=True)
    assert desk.answer(scan(T, "id", access=access)) == [(2,), (4,)]


@pytest.mark.invariant("scan-null")
def test_a_bound_leaves_out_nulls(desk: Desk) -> None:
    start = SpanEnd(number(10).node, is_inclusive=False)
    assert desk.answer(scan(T, "id", access=Access(2, start=start))) == [(2,), (5,)]


def test_bounds_follow_the_order_of_a_descending_index(desk: Desk) -> None:
    bound = SpanEnd(number(100).node, is_inclusive=True)
    up_to = Access(4, (number(10).node,), start=bound)
    assert desk.answer(scan(T, "id", access=up_to)) == [(1,)]
    down_to = Access(4, (number(10).node,), end=bound)
    assert desk.answer(scan(T, "id", access=down_to)) == [(3,), (1,)]


def test_a_bound_that_is_null_means_no_rows(desk: Desk) -> None:
    assert desk.answer(scan(T, access=Access(2, start=SpanEnd(number(None).node, is_inclusive=True)))) == []


def test_a_limit_reads_no_more_than_it_needs(desk: Desk) -> None:
    run = desk.run()
    txn = desk.store.begin()
    run.source = txn
    plan = Limit(scan(T, "id"), count=number(2).node)
    assert list(compile(Query(plan)).rows(run)) == [(1,), (2,)]
    last = desk.layout().primary.prefix((3,))
    assert not any(lo <= last < hi for lo, hi in txn._reads.spans)


@settings(max_examples=40)
@given(st.lists(st.sampled_from([1, 2, 3, 4, 5, 6, 7]), max_size=7, unique=True))
@pytest.mark.invariant("reader-same")
def test_a_reader_gives_what_a_whole_row_has(wanted: list[int]) -> None:
    env = ManualEnv()
    store = Store(SqliteEngine(MEMORY, env), env)
    columns = [
        column(1, "id"),
        column(2, "n", TypeRef("numeric")),
        column(3, "d", TypeRef("date")),
        column(4, "j", TypeRef("jsonb")),
        column(5, "s", TypeRef("text"), filled=filled_with(named("text"), "old")),
        column(6, "u", TypeRef("uuid")),
        column(7, "x", TypeRef("int4")),
    ]
    wide = table(columns=columns, key=(5, 2, 1))
    desk = Desk(store, wide)
    desk.insert(1, Decimal("1.50"), date(2020, 1, 1), Jsonb({"a": 1}), "x", UUID(int=3), None)
    desk.insert(2, Decimal("0.0"), None, None, "y", None, 7)
    layout = desk.layout()
    read = layout.reader(layout.primary, tuple(wanted))
    entries = list(store.snapshot().scan(layout.primary.span()))
    whole = [tuple(row.values[id] for id in wanted) for row in rows(store.snapshot(), layout)]
    assert repr([read(*entry) for entry in entries]) == repr(whole)


def test_a_system_table_gives_the_columns_asked_for(desk: Desk) -> None:
    desk.system["nodes"] = [(1, "a", True), (2, "b", False)]
    outputs = ints((0, 0)).outputs
    assert desk.answer(Virtual(outputs, "nodes", (2, 0))) == [(True, 1), (False, 2)]
    assert desk.answer(Virtual(outputs[:1], "nodes", (1,))) == [("a",), ("b",)]


def test_a_query_without_a_table_has_one_row(desk: Desk) -> None:
    assert desk.answer(project(Values((), ((),)), number(7))) == [(7,)]


def test_a_filter_passes_only_what_is_true(desk: Desk) -> None:
    plan = ints(1, None, 3)
    assert desk.answer(where(plan, call(">", col(plan, 0), number(1)))) == [(3,)]


def test_a_projection_of_columns_changes_their_order(desk: Desk) -> None:
    plan = ints((1, 2, 3))
    assert desk.answer(project(plan, col(plan, 2), col(plan, 0))) == [(3, 1)]
    assert desk.answer(project(plan, col(plan, 1))) == [(2,)]
    assert desk.answer(Project((), plan, ())) == [()]


@pytest.mark.invariant("rows-lazy")
def test_what_a_limit_does_not_need_is_not_computed(desk: Desk) -> None:
    plan = ints(1, 0)
    divided = project(plan, call("/", number(1), col(plan, 0)))
    assert desk.answer(Limit(divided, count=number(1).node)) == [(1,)]


def test_functions_stand_side_by_side_and_are_filled_up(desk: Desk) -> None:
    first = set_call("generate_series", number(1), number(3))
    second = set_call("generate_series", number(7), number(7))
    assert desk.answer(function_scan(first, second, ordinality=True)) == [
        (1, 7, 1),
        (2, None, 2),
        (3, None, 3),
    ]


def test_a_select_list_with_sets_repeats_its_row(desk: Desk) -> None:
    plan = ints(2, 0, 1)
    each, kinds = set_call("generate_series", number(1), col(plan, 0))
    outputs = (*plan.outputs, *series(1, 1).outputs)
    assert kinds == (INT,)
    assert desk.answer(ProjectSet(outputs, plan, (each,))) == [(2, 1), (2, 2), (1, 1)]


def test_a_long_run_asks_whether_it_was_canceled(desk: Desk) -> None:
    desk.answer(series(1, 5_000))
    assert desk.checks >= 5


def test_a_constant_of_another_width_finds_its_row(desk: Desk) -> None:
    access = Access(1, (const(3, named("int4")).node,), is_point=True)
    assert desk.answer(scan(T, "id", access=access)) == [(3,)]
