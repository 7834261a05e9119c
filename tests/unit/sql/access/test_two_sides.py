"""The same statements here, as bound and as planned, and in PostgreSQL."""

from collections.abc import Iterator
from typing import Any

import pytest

from tenure.base.env import ManualEnv
from tenure.kv.store import Store
from tenure.sql.access.planner import with_access
from tenure.sql.plans.free_values import nested_in
from tenure.sql.plans.plan import Plan, Scan, Sort, walk
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.postgres_server import Server
from tests.unit.sql.access.statements import GROUPS, JOINS, ORDERS, READS, SUBQUERIES, WINDOWS
from tests.unit.sql.two_sides import TwoSides


@pytest.fixture(scope="module")
def two_sides(postgres: Server) -> Iterator[TwoSides]:
    env = ManualEnv()
    engine = SqliteEngine(MEMORY, env)
    two_sides = TwoSides(Store(engine, env), postgres)
    yield two_sides
    two_sides.close()
    engine.close()


def statements(text: str) -> list[str]:
    return text.strip().splitlines()


def compare(two_sides: TwoSides, statement: str) -> None:
    theirs = comparable(statement, two_sides.theirs(statement))
    assert comparable(statement, two_sides.ours(statement, is_planned=False)) == theirs
    assert comparable(statement, two_sides.ours(statement, is_planned=True)) == theirs


def comparable(statement: str, answer: Any) -> Any:
    has_order = "ORDER BY" in statement.split(")")[-1]
    return answer if has_order or isinstance(answer, str) else sorted(answer, key=repr)


@pytest.mark.invariant("access-same")
@pytest.mark.parametrize("statement", statements(READS))
def test_conditions_find_what_postgres_finds(two_sides: TwoSides, statement: str) -> None:
    compare(two_sides, statement)


@pytest.mark.invariant("order-given")
@pytest.mark.parametrize("statement", statements(ORDERS))
def test_orders_and_limits_are_postgres_s(two_sides: TwoSides, statement: str) -> None:
    compare(two_sides, statement)


@pytest.mark.parametrize("statement", statements(JOINS))
def test_joins_give_what_postgres_gives(two_sides: TwoSides, statement: str) -> None:
    compare(two_sides, statement)


@pytest.mark.invariant("nested-null")
@pytest.mark.parametrize("statement", statements(SUBQUERIES))
def test_subqueries_answer_as_in_postgres(two_sides: TwoSides, statement: str) -> None:
    compare(two_sides, statement)


@pytest.mark.invariant("group-null")
@pytest.mark.parametrize("statement", statements(GROUPS))
def test_groups_are_those_of_postgres(two_sides: TwoSides, statement: str) -> None:
    compare(two_sides, statement)


@pytest.mark.parametrize("statement", statements(WINDOWS))
def test_windows_are_those_of_postgres(two_sides: TwoSides, statement: str) -> None:
    compare(two_sides, statement)


def planned(two_sides: TwoSides, statement: str) -> Plan:
    return with_access(two_sides.query(statement)).plan


def indexes(plan: Plan) -> list[str]:
    """Which index each table is read by, with how many columns fixed and bounds."""
    found = []
    for scan in walk(plan):
        if not isinstance(scan, Scan):
            continue
        if scan.access is None:
            found.append(scan.table.name)
            continue
        name = scan.table.index(scan.access.index).name
        bounds = (scan.access.start is not None) + (scan.access.end is not None)
        found.append(f"{name} {len(scan.access.prefix)}+{bounds}{' point' if scan.access.is_point else ''}")
    return found


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT * FROM a WHERE id = 7", ["a_pkey 1+0 point"]),
        ("SELECT * FROM a WHERE id IN (7, 8)", ["a_pkey 1+0 point"]),
        ("SELECT * FROM a WHERE id = ANY ('{1,2}')", ["a_pkey 1+0 point"]),
        ("SELECT * FROM a WHERE id > 7", ["a_pkey 0+1"]),
        ("SELECT * FROM a WHERE x = 7", ["a_x 1+0"]),
        ("SELECT * FROM a WHERE x = 7 AND y > 3", ["a_x_y 1+1"]),
        ("SELECT * FROM a WHERE x = 7 AND y = 3", ["a_x_y 2+0"]),
        ("SELECT * FROM a WHERE x > 7", ["a"]),
        ("SELECT * FROM a WHERE x BETWEEN 7 AND 8", ["a_x 0+2"]),
        ("SELECT * FROM a WHERE s = 'q'", ["a_s 1+0 point"]),
        ("SELECT * FROM a WHERE x = 3.0", ["a"]),
        ("SELECT * FROM a WHERE x = 3000000000", ["a_x 1+0"]),
        ("SELECT * FROM a WHERE d = '2024-01-01'", ["a"]),
        ("SELECT * FROM a WHERE x > 3 AND d = '2024-01-01'", ["a_partial 1+0"]),
        ("SELECT * FROM a WHERE x > 4 AND d = '2024-01-01'", ["a"]),
        ("SELECT * FROM a WHERE flag", ["a_flag 1+0"]),
        ("SELECT * FROM b WHERE v = 'aa'", ["b_v 1+0"]),
        ("SELECT * FROM p WHERE k = 'a' AND m IN (1, 2)", ["p_pkey 2+0 point"]),
        ("SELECT * FROM b, a WHERE a.id = b.a_id AND a.id = 5", ["a_pkey 1+0 point", "b_a 1+0"]),
        ("SELECT * FROM a LEFT JOIN b ON a.id = b.a_id WHERE a.id = 5", ["a_pkey 1+0 point", "b_a 1+0"]),
        ("SELECT * FROM a JOIN b ON a.id = b.a_id", ["a", "b"]),
        ("SELECT * FROM a WHERE id IN (SELECT a_id FROM b WHERE v = 'aa')", ["a_pkey 1+0 point"]),
        ("SELECT * FROM a WHERE id IN (SELECT a_id FROM b)", ["a"]),
        ("SELECT * FROM a WHERE id NOT IN (SELECT a_id FROM b WHERE v = 'aa')", ["a"]),
        ("SELECT * FROM a JOIN unnest('{1,2}'::bigint[]) AS u ON u = a.id", ["a_pkey 1+0 point"]),
        ("SELECT * FROM a JOIN (SELECT * FROM b LIMIT 3) AS q ON q.a_id = a.id", ["b", "a_pkey 1+0 point"]),
        (
            "SELECT * FROM a JOIN b ON a.id = b.a_id JOIN p ON p.m = a.x AND p.k = b.v WHERE b.id = 5",
            ["b_pkey 1+0 point", "a_pkey 1+0 point", "p_pkey 2+0 point"],
        ),
        ("SELECT * FROM (SELECT * FROM a) AS q WHERE id = 5", ["a_pkey 1+0 point"]),
        ("SELECT x, count(*) FROM a GROUP BY x HAVING x = 3", ["a_x 1+0"]),
    ],
)
def test_an_index_is_chosen_by_the_condition(
    two_sides: TwoSides, statement: str, expected: list[str]
) -> None:
    assert indexes(planned(two_sides, statement)) == expected


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT id FROM a ORDER BY id", [True]),
        ("SELECT id FROM a ORDER BY id DESC", [True]),
        ("SELECT id FROM a ORDER BY x", [False]),
        ("SELECT id FROM a ORDER BY x LIMIT 3", [True]),
        ("SELECT id FROM a ORDER BY x NULLS FIRST LIMIT 3", [False]),
        ("SELECT id FROM a ORDER BY x, y DESC LIMIT 3", [True]),
        ("SELECT id FROM a ORDER BY x, y LIMIT 3", [False]),
        ("SELECT id FROM a WHERE x = 3 ORDER BY id", [True]),
        ("SELECT k FROM p WHERE k = 'k' ORDER BY m DESC", [True]),
        ("SELECT a.id FROM a JOIN b ON b.a_id = a.id ORDER BY a.id, a.x", [True]),
        ("SELECT a.id FROM a FULL JOIN b ON b.a_id = a.id ORDER BY a.id", [False]),
    ],
)
def test_a_sort_is_left_out_where_an_index_has_the_order(
    two_sides: TwoSides, statement: str, expected: list[bool]
) -> None:
    sorts = [node.is_presorted for node in walk(planned(two_sides, statement)) if isinstance(node, Sort)]
    assert sorts == expected


def test_a_scan_gives_only_the_columns_that_are_needed(two_sides: TwoSides) -> None:
    plan = planned(two_sides, "SELECT count(*) FROM a JOIN b ON a.id = b.a_id WHERE a.x > 2")
    assert [[output.name for output in node.outputs] for node in walk(plan) if isinstance(node, Scan)] == [
        ["id", "x"],
        ["a_id"],
    ]


def nested_in_plan(two_sides: TwoSides, statement: str) -> bool:
    return any(True for node in walk(planned(two_sides, statement)) for _ in nested_in(node))


def test_aggregates_by_outer_values_are_joined_where_no_index_leads_to_their_rows(
    two_sides: TwoSides,
) -> None:
    ask = "SELECT id FROM a WHERE y < (SELECT avg(i.id) FROM a AS i WHERE i.{0} = a.{0})".format
    assert not nested_in_plan(two_sides, ask("y"))
    listed = "SELECT id, (SELECT avg(i.id) FROM a AS i WHERE i.{0} = a.{0}) FROM a".format
    assert not nested_in_plan(two_sides, listed("y"))
    assert nested_in_plan(two_sides, listed("x"))
    assert nested_in_plan(two_sides, "SELECT (SELECT avg(i.f) FROM a AS i WHERE i.y = a.y) FROM a")
