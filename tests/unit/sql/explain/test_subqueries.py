"""EXPLAIN of subqueries: nothing is asked of rows that there are none of yet, and DuckDB's part is marked."""

from collections.abc import Iterator

import pytest

from tenure.node import Node
from tests.unit.sql.sessions import Talk


@pytest.fixture(scope="module")
def talk(node: Node) -> Iterator[Talk]:
    talk = Talk(node)
    talk.say("CREATE TABLE outers (id int PRIMARY KEY, x int)")
    talk.say("CREATE TABLE inners (k int, n int, x int, PRIMARY KEY (k, n))")
    for name, values in (("outers", "g, g % 9"), ("inners", "g % 500, g, g % 7")):
        talk.say(f"INSERT INTO {name} SELECT {values} FROM generate_series(1, 3000) g")
    yield talk
    talk.close()


@pytest.mark.parametrize(
    "condition",
    [
        "x = (SELECT max(i.x) FROM inners i WHERE i.k = o.id)",
        "x > (SELECT avg(x) FROM inners)",
        "x IN (SELECT x FROM inners WHERE k = 3)",
        "(id, x) IN (SELECT k, x FROM inners)",
        "(id, x) < ANY (SELECT k, x FROM inners WHERE k < 10)",
        "EXISTS (SELECT 1 FROM inners i JOIN inners j ON j.k = i.n WHERE i.k = o.id)",
    ],
)
def test_explain_shows_a_plan_that_then_runs(talk: Talk, condition: str) -> None:
    text = f"SELECT count(*) FROM outers o WHERE {condition}"
    shown = talk.say(f"EXPLAIN {text}")
    assert not shown.sqlstate, shown.message
    assert len(shown.rows) > 2
    assert talk.say(text).rows


def test_a_correlated_lookup_is_part_of_what_duckdb_takes(talk: Talk) -> None:
    shown = talk.say(
        "EXPLAIN SELECT count(*) FROM outers o WHERE x = (SELECT max(i.x) FROM inners i WHERE i.k = o.id)"
    )
    assert any("in DuckDB" in (line or "") for (line,) in shown.rows)
