"""Plans as text."""

from collections.abc import Iterator
from itertools import count

import pytest

from tenure.base.env import ManualEnv
from tenure.kv.store import Store
from tenure.sql.access.planner import with_access
from tenure.sql.bind.binder import bind_query
from tenure.sql.bind.parameters import Parameters
from tenure.sql.explain.plan_text import analyzed, lines
from tenure.sql.plans.plan import Aggregate, Plan, Query
from tenure.sql.rows.run import QueryRun, Rows
from tenure.sql.rows.runner import compile
from tenure.sql.text.parse import one
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.sql.plans import Desk
from tests.unit.sql.two_sides import TABLES, Names, rows_of


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    env = ManualEnv()
    engine = SqliteEngine(MEMORY, env)
    desk = Desk(Store(engine, env), *TABLES.values())
    for each in TABLES.values():
        for row in rows_of(each.name):
            desk.insert(*row, id=each.id)
    yield desk
    engine.close()


def query(text: str) -> Query:
    parsed = one(text)
    assert parsed is not None
    return with_access(bind_query(parsed.tree, Names(), Parameters(), text=text))


def test_a_plan_is_written_as_a_tree(desk: Desk) -> None:
    text = """SELECT a.x, count(*) FROM a JOIN b ON a.id = b.a_id AND a.y < b.id
        WHERE b.v > 'aa' GROUP BY a.x ORDER BY 2 DESC"""
    assert list(lines(query(text), desk.run())) == [
        "Sort",
        "  Sort Key: count DESC",
        "  ->  Result",
        "        Output: x, ?column?",
        "        ->  HashAggregate",
        "              Group Key: x",
        "              Aggregates: count(*)",
        "              ->  Hash Join",
        "                    Hash Cond: (id = a_id)",
        "                    Join Filter: (y < id)",
        "                    ->  Seq Scan on a",
        "                    ->  Seq Scan on b",
        "                          Filter: (v > 'aa'::text)",
        "Executor: rows",
    ]


def test_indexes_and_spans_are_shown(desk: Desk) -> None:
    text = "SELECT id FROM a WHERE x = 2 AND y > 1 AND y <= 3 AND flag LIMIT 5"
    assert list(lines(query(text))) == [
        "Limit",
        "  Count: (5)::bigint",
        "  ->  Result",
        "        Output: id",
        "        ->  Index Scan using a_x_y on a",
        "              Index Cond: x = 2 AND y > 1 AND y <= 3",
        "              Filter: ((x = 2) AND (y > 1) AND (y <= 3) AND flag)",
    ]


def test_lookups_and_backward_scans_are_shown(desk: Desk) -> None:
    text = "SELECT b.id FROM a JOIN b ON b.a_id = a.id WHERE a.id = 7"
    shown = list(lines(query(text)))
    assert "  ->  Nested Loop" in shown
    assert "        ->  Point Lookup using a_pkey on a" in shown
    assert any("Index Cond: a_id = $1" in line for line in shown)
    assert any("Seq Scan Backward on a" in line for line in lines(query("SELECT * FROM a ORDER BY id DESC")))


def test_subqueries_stand_below_the_plan(desk: Desk) -> None:
    text = "SELECT (SELECT max(id) FROM b), (SELECT v FROM b WHERE b.id = a.id) FROM a"
    shown = list(lines(query(text)))
    assert "  InitPlan 1" in shown
    assert "  SubPlan 2" in shown


def test_analyze_counts_the_rows_of_each_node(desk: Desk) -> None:
    ticks = count()
    asked = query("SELECT id FROM a WHERE id IN (3, 4, 5000)")
    shown = list(analyzed(asked, compile(asked), desk.run(), lambda: next(ticks) / 1000))
    assert shown == [
        "Point Lookup using a_pkey on a (actual time=3.000 rows=2.00 loops=1)",
        "  Index Cond: id IN ('3'::bigint, '4'::bigint, '5000'::bigint)",
        "  Filter: (id IN ('3'::bigint, '4'::bigint, '5000'::bigint))",
        "Executor: rows",
    ]


def test_analyze_says_what_was_never_run(desk: Desk) -> None:
    asked = query("SELECT * FROM e JOIN a ON a.id = e.id")
    shown = list(analyzed(asked, compile(asked), desk.run(), lambda: 0.0))
    assert any("Seq Scan on a (never executed)" in line for line in shown)


def test_analyze_says_what_was_taken_over(desk: Desk) -> None:
    def instead(plan: Plan, run: QueryRun) -> Rows | None:
        return iter([(42,)]) if isinstance(plan, Aggregate) else None

    asked = query("SELECT count(*) FROM a")
    shown = list(analyzed(asked, compile(asked), desk.run(instead=instead), lambda: 0.0))
    assert any("Aggregate (actual time=0.000 rows=1.00 loops=1) in DuckDB" in line for line in shown)
    assert not any("never executed" in line for line in shown)  # below it, nobody here can tell
    assert shown[-1] == "Executor: rows and DuckDB"


def test_analyze_counts_what_is_done_before_the_first_row(desk: Desk) -> None:
    clock = ManualEnv()

    def instead(plan: Plan, run: QueryRun) -> Rows | None:
        if not isinstance(plan, Aggregate):
            return None
        clock.advance(2.0)
        return iter([(42,)])

    asked = query("SELECT count(*) FROM a")
    shown = list(analyzed(asked, compile(asked), desk.run(instead=instead), clock.monotonic))
    assert any("Aggregate (actual time=2000.000 rows=1.00 loops=1) in DuckDB" in line for line in shown)
