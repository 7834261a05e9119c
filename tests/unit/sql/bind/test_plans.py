"""How plans look that the binder makes: what is given, what is shared, what is hidden."""

from collections.abc import Sequence

from tenure.expr.tree.expressions import ColumnRef, ContextValue, Nested, nodes
from tenure.sql.bind.binder import bind_query
from tenure.sql.bind.parameters import Parameters
from tenure.sql.plans.plan import (
    Aggregate,
    Distinct,
    Filter,
    FunctionScan,
    Join,
    JoinKind,
    Limit,
    Lock,
    NestedKind,
    Plan,
    Project,
    ProjectSet,
    Query,
    Recursive,
    Scan,
    Shared,
    Sort,
    Values,
    Virtual,
    Window,
    expressions,
    inputs,
    walk,
)
from tenure.sql.text.parse import one
from tests.unit.sql.schema import KnownNames


def bound(text: str) -> Query:
    found = one(text)
    assert found is not None
    return bind_query(found.tree, KnownNames(), Parameters())


def kinds(plan: Plan) -> list[type]:
    """From the top down, along the left side."""
    below: Sequence[Plan] = inputs(plan)
    return [type(plan), *(kinds(below[0]) if below else [])]


def asked(query: Query) -> list[Nested]:
    trees = [tree for part in walk(query.plan) for tree in expressions(part)]
    return [node for tree in trees for node in nodes(tree) if isinstance(node, Nested)]


def test_a_whole_table_is_just_a_scan() -> None:
    assert kinds(bound("SELECT * FROM people").plan) == [Scan]


def test_clauses_stand_one_upon_the_other() -> None:
    text = (
        "SELECT city, count(*), rank() OVER (ORDER BY count(*)) FROM people WHERE age > 1 "
        "GROUP BY city HAVING count(*) > 1 ORDER BY 2 LIMIT 3"
    )
    assert kinds(bound(text).plan) == [Limit, Sort, Project, Window, Filter, Aggregate, Filter, Scan]


def test_a_column_that_only_orders_is_projected_away() -> None:
    plan = bound("SELECT id FROM people ORDER BY name").plan
    assert kinds(plan) == [Project, Sort, Project, Scan]
    assert [each.name for each in plan.outputs] == ["id"]
    assert len(inputs(plan)[0].outputs) == 2


def test_no_from_is_one_row_without_columns() -> None:
    plan = bound("SELECT 1").plan
    assert isinstance(plan, Project)
    assert plan.input == Values((), ((),))


def test_a_subquery_without_outer_values_takes_nothing() -> None:
    query = bound("SELECT id FROM people WHERE age = (SELECT max(age) FROM people)")
    assert [each.takes for each in query.nested] == [()]
    assert [each.arguments for each in asked(query)] == [()]


def test_a_correlated_subquery_takes_what_it_reads_of_the_outer_row() -> None:
    query = bound(
        "SELECT id FROM people p WHERE EXISTS (SELECT 1 FROM orders WHERE person = p.id AND id = $1)"
    )
    (subquery,) = query.nested
    assert subquery.takes == (1,)
    assert [each.arguments for each in asked(query)] == [(ColumnRef(0),)]
    assert query.givens == 2


def test_outer_values_are_numbered_after_all_parameters() -> None:
    query = bound(
        "SELECT id FROM people p WHERE EXISTS (SELECT 1 FROM orders WHERE person = p.id) "
        "AND age = $3::int AND $1 AND $2"
    )
    assert [each.takes for each in query.nested] == [(3,)]


def test_a_value_from_two_levels_out_is_handed_through() -> None:
    query = bound(
        "SELECT id FROM people p WHERE EXISTS "
        "(SELECT 1 FROM orders o WHERE EXISTS (SELECT 1 FROM t WHERE t.a = p.age))"
    )
    inner, outer = query.nested
    assert inner.takes == outer.takes == (0,)
    (passed,) = [
        node
        for part in walk(outer.plan)
        for tree in expressions(part)
        for node in nodes(tree)
        if isinstance(node, Nested)
    ]
    assert [type(each) for each in passed.arguments] == [ContextValue]


def test_an_aggregate_of_outer_columns_belongs_to_the_outer_query() -> None:
    query = bound("SELECT (SELECT max(p.age)) FROM people p")
    assert kinds(query.plan) == [Project, Aggregate, Scan]
    assert [each.arguments for each in asked(query)] == [(ColumnRef(0),)]


def test_in_asks_by_its_comparison() -> None:
    query = bound("SELECT id FROM people WHERE id IN (SELECT id FROM orders)")
    (subquery,) = query.nested
    assert (subquery.kind, subquery.functions) == (NestedKind.IN, ("=(int8,int4)",))


def test_a_row_before_a_subquery_is_an_operand_for_each_column() -> None:
    query = bound("SELECT id FROM people WHERE (id, age) < ANY (SELECT id, id FROM orders)")
    (subquery,) = query.nested
    assert subquery.functions == ("<(int8,int4)", "<(int4,int4)")
    assert not subquery.takes  # so it is run once


def test_lateral_items_get_the_columns_of_their_left() -> None:
    plan = bound("SELECT * FROM t, u, LATERAL (SELECT u.a + t.a) s").plan
    join = next(each for each in walk(plan) if isinstance(each, Join) and each.lateral)
    assert sorted(position for _, position in join.lateral) == [0, 4]


def test_each_join_hands_over_only_what_its_own_left_side_has() -> None:
    plan = bound("SELECT * FROM t, u JOIN LATERAL (SELECT u.a + t.a) s ON true").plan
    outer, inner = [each for each in walk(plan) if isinstance(each, Join)]
    assert [position for _, position in outer.lateral] == [0]
    assert [position for _, position in inner.lateral] == [0]
    assert outer.lateral[0][0] != inner.lateral[0][0]


def test_a_condition_of_a_join_is_over_its_own_rows() -> None:
    plan = bound("SELECT 1 FROM people, t JOIN u ON t.a = u.a").plan
    inner = [each for each in walk(plan) if isinstance(each, Join)][-1]
    assert inner.condition is not None
    assert {node.column for node in nodes(inner.condition) if isinstance(node, ColumnRef)} == {0, 4}


def test_functions_in_from_are_lateral_of_themselves() -> None:
    plan = bound("SELECT * FROM people p, unnest(p.tags) tag").plan
    join = next(each for each in walk(plan) if isinstance(each, Join))
    assert isinstance(join.right, FunctionScan)
    assert [position for _, position in join.lateral] == [6]


def test_a_with_query_read_once_stands_where_it_is_read() -> None:
    query = bound("WITH c AS (SELECT id FROM people) SELECT * FROM c")
    assert query.shared == ()


def test_a_with_query_read_twice_is_shared() -> None:
    query = bound("WITH c AS (SELECT id FROM people) SELECT * FROM c a, c b")
    assert len(query.shared) == 1
    assert [type(each) for each in walk(query.plan)] == [Join, Shared, Shared]


def test_materialized_is_always_shared_and_not_materialized_never() -> None:
    assert len(bound("WITH c AS MATERIALIZED (SELECT 1) SELECT * FROM c").shared) == 1
    assert bound("WITH c AS NOT MATERIALIZED (SELECT 1) SELECT * FROM c a, c b").shared == ()


def test_a_with_query_that_takes_outer_values_is_not_shared() -> None:
    query = bound("SELECT (WITH c AS (SELECT p.id AS i) SELECT a.i FROM c a, c b) FROM people p")
    assert query.shared == ()


def test_a_recursive_query_reads_its_working_rows() -> None:
    query = bound("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT * FROM n")
    (shared,) = query.shared
    assert isinstance(shared, Recursive)
    assert shared.is_all


def test_rows_are_locked_after_sorting_and_before_counting() -> None:
    plan = bound("SELECT name FROM people ORDER BY age LIMIT 1 FOR UPDATE SKIP LOCKED").plan
    assert kinds(plan) == [Project, Limit, Lock, Sort, Project, Scan]
    lock = next(each for each in walk(plan) if isinstance(each, Lock))
    assert (lock.key, lock.wait, lock.is_shared) == ((2,), "skip", False)


def test_every_table_is_locked_unless_of_says_which() -> None:
    both = bound("SELECT 1 FROM people, orders FOR SHARE").plan
    assert [each.table.name for each in walk(both) if isinstance(each, Lock)] == ["orders", "people"]
    one_of_them = bound("SELECT 1 FROM people p, orders FOR SHARE OF p NOWAIT").plan
    (lock,) = [each for each in walk(one_of_them) if isinstance(each, Lock)]
    assert (lock.table.name, lock.wait, lock.is_shared) == ("people", "nowait", True)


def test_locks_reach_into_subqueries_of_from() -> None:
    plan = bound("SELECT * FROM (SELECT a FROM t) s FOR UPDATE").plan
    assert Lock in kinds(plan)


def test_sets_inside_sets_are_made_one_after_the_other() -> None:
    plan = bound("SELECT generate_series(1, generate_series(1, 3))").plan
    assert kinds(plan) == [Project, ProjectSet, ProjectSet, Values]


def test_distinct_on_goes_by_its_expressions_after_sorting() -> None:
    plan = bound("SELECT DISTINCT ON (city) name FROM people ORDER BY city, age").plan
    assert kinds(plan) == [Project, Distinct, Sort, Project, Scan]


def test_a_view_is_its_query() -> None:
    plan = bound("SELECT called FROM adults WHERE id = 1").plan
    assert kinds(plan) == [Project, Filter, Project, Filter, Scan]


def test_a_system_table_is_made_when_asked_for() -> None:
    assert kinds(bound("SELECT id FROM nodes").plan) == [Virtual]


def test_a_system_table_may_be_called_by_its_schema() -> None:
    assert [each.name for each in bound("SELECT system.nodes.id FROM nodes").outputs] == ["id"]


def test_columns_know_the_table_they_come_from() -> None:
    plan = bound("SELECT s.id, s.id + 1 FROM (SELECT id FROM people) s").plan
    assert [(each.table, each.number) for each in plan.outputs] == [(201, 1), (0, 0)]


def test_a_merged_column_of_a_full_join_is_either() -> None:
    plan = bound("SELECT a FROM t FULL JOIN u USING (a)").plan
    assert isinstance(plan, Project)
    join = plan.input
    assert isinstance(join, Join)
    assert join.kind is JoinKind.FULL
    assert len([node for node in nodes(plan.expressions[0]) if isinstance(node, ColumnRef)]) == 2


def test_grouping_sets_name_positions_of_keys() -> None:
    plan = bound("SELECT a, b, grouping(b) FROM t GROUP BY ROLLUP (a, b)").plan
    made = next(each for each in walk(plan) if isinstance(each, Aggregate))
    assert made.sets == ((0, 1), (0,), ())
    assert made.groupings == ((1,),)


def test_equal_aggregates_are_computed_once() -> None:
    plan = bound("SELECT count(*), count(*) + 1 FROM t HAVING count(*) > 1").plan
    made = next(each for each in walk(plan) if isinstance(each, Aggregate))
    assert len(made.calls) == 1
