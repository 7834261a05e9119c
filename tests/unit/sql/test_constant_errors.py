"""Constants of a query that fail do so when it is planned: where PostgreSQL's EXPLAIN fails, and only
there."""

import pytest

from tenure.base.errors import UserError
from tenure.expr.tree.folding import folds
from tenure.sql.bind.binder import bind_query
from tenure.sql.bind.parameters import Parameters
from tenure.sql.text.parse import one
from tests.unit.expr.oracle import CONTEXT
from tests.unit.sql.sessions import Oracle
from tests.unit.sql.two_sides import Names

FAILING = """
SELECT 1 / 0
SELECT id FROM e WHERE false AND id = 1 OR z = 1 / 0
SELECT 40000::int2 FROM e
SELECT id + 1 / 0 FROM e
SELECT CASE WHEN id < 0 THEN 1 / 0 END FROM e
SELECT COALESCE(z, 1 / 0) FROM e
SELECT 1 / s.z FROM (SELECT 0 AS z) s WHERE false
SELECT id FROM e WHERE id IN (1, 1 / 0)
SELECT count(*) FROM e HAVING 1 / 0 > 1
SELECT count(1 / 0) FROM e
SELECT id FROM e GROUP BY id, 1 / 0 + id
SELECT id FROM e ORDER BY id + 1 / 0
SELECT id FROM e LIMIT 1 / 0
SELECT (SELECT 1 / 0 FROM e) FROM e
SELECT id FROM e WHERE EXISTS (SELECT 1 FROM b WHERE b.id = 1 / 0)
SELECT e.id FROM e JOIN b ON b.id = e.id AND e.z = 1 / 0
SELECT e.id FROM e LEFT JOIN b ON b.id = e.id AND b.a_id = 1 / 0
SELECT s.x FROM e LEFT JOIN (SELECT 1 / 0 AS x) s ON true
WITH w AS MATERIALIZED (SELECT 1 / 0 AS x FROM e) SELECT x FROM w
SELECT x FROM (SELECT 1 / 0 AS x, id FROM e LIMIT 1) s
SELECT x FROM (SELECT 1 AS x, id FROM e UNION ALL SELECT 0, id FROM b) s WHERE id < 0 AND 1 / x > 0
SELECT x FROM (SELECT 0 AS x, count(*) AS n FROM e GROUP BY id) s WHERE 1 / x > 0
SELECT DISTINCT 1 / 0 FROM e
SELECT rank() OVER (ORDER BY id + 1 / 0) FROM e
SELECT id FROM e UNION SELECT 1 / 0
"""

PASSING = """
SELECT id / 0 FROM e
SELECT CASE WHEN false THEN 1 / 0 END
SELECT COALESCE(1, 1 / 0)
SELECT id FROM e WHERE false AND z = 1 / 0
SELECT id FROM e WHERE true OR z = 1 / 0
SELECT s.id FROM (SELECT id, 1 / 0 AS x FROM e) s
SELECT count(*) FROM (SELECT 1 / 0 AS x FROM e) s
SELECT n FROM (SELECT id AS n, max(1 / 0) AS x FROM e GROUP BY id) s
WITH w AS (SELECT 1 / 0) SELECT id FROM e
SELECT s.id FROM (SELECT id, 1 / 0 AS x FROM e OFFSET 0) s
SELECT id FROM e WHERE EXISTS (SELECT 1 / 0 FROM b)
SELECT (now() - now()) / 0 FROM e
SELECT x FROM (SELECT 0 AS x, id FROM e LIMIT 1) s WHERE 1 / x > 0
SELECT x FROM (SELECT 0 AS x, row_number() OVER () AS n FROM e) s WHERE 1 / x > 0
SELECT id FROM e WHERE id = NULL AND NULL::int / 0 = 1
"""

TABLES = """
CREATE TABLE e (id int PRIMARY KEY, z int);
CREATE TABLE b (id int PRIMARY KEY, a_id bigint, v varchar(5), c char(4), w int[])
"""


def statements(text: str) -> list[str]:
    return text.strip().splitlines()


def plan_error(text: str) -> str:
    """The SQLSTATE that the constants of a query fail with before anything is read; "" if they do not."""
    parsed = one(text)
    assert parsed is not None
    query = bind_query(parsed.tree, Names(), Parameters(()), text=text)
    try:
        for fold in folds(query.constants, 0, None):
            fold(CONTEXT)
    except UserError as error:
        return error.sqlstate
    return ""


@pytest.mark.parametrize("text", statements(FAILING))
def test_constants_that_are_needed_fail_when_the_query_is_planned(text: str) -> None:
    assert plan_error(text) in ("22012", "22003")


@pytest.mark.parametrize("text", statements(PASSING))
def test_what_is_not_needed_or_depends_on_a_row_fails_nothing(text: str) -> None:
    assert plan_error(text) == ""


def test_the_plans_of_postgres_fail_for_the_same_queries(oracle: Oracle) -> None:
    oracle.start_over()
    assert oracle.say(TABLES).sqlstate == ""
    texts = statements(FAILING + PASSING)
    theirs = {each: oracle.say(f"EXPLAIN {each}").sqlstate for each in texts if each}
    assert {each: plan_error(each) for each in theirs} == theirs
