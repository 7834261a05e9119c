"""EXPLAIN (FORMAT JSON) and the options of EXPLAIN."""

import json
from typing import Any

import pytest

from tenure.node import Node
from tests.unit.sql.sessions import Oracle, Talk


@pytest.fixture(scope="module")
def talk(node: Node) -> Talk:
    talk = Talk(node)
    for text in (
        "CREATE TABLE people (id int PRIMARY KEY, city text)",
        "CREATE INDEX by_city ON people (city)",
        "INSERT INTO people VALUES (1, 'x'), (2, 'y'), (3, 'x')",
    ):
        assert not talk.say(text).sqlstate
    return talk


def explained(talk: Talk, options: str, text: str) -> Any:
    said = talk.say(f"EXPLAIN (FORMAT JSON{options}) {text}")
    assert (said.sqlstate, said.columns, len(said.rows)) == ("", ("QUERY PLAN",), 1), said
    (found,) = json.loads(said.rows[0][0] or "")
    return found


def test_a_node_has_the_keys_of_postgresql(talk: Talk) -> None:
    found = explained(talk, "", "SELECT id FROM people WHERE city = 'x'")
    scan = found["Plan"]
    while "Plans" in scan:
        (scan,) = scan["Plans"]
    assert scan["Node Type"] == "Index Scan"
    assert (scan["Relation Name"], scan["Index Name"]) == ("people", "by_city")
    assert "city" in scan["Index Cond"]
    assert found["Executor"] == "rows"
    assert found["Lease"].startswith("catalog as of ")


def test_analyze_says_how_many_rows_passed(talk: Talk) -> None:
    found = explained(talk, ", ANALYZE", "SELECT id FROM people WHERE city = 'x'")
    assert (found["Plan"]["Actual Rows"], found["Plan"]["Actual Loops"]) == (2.0, 1)
    assert found["Execution Time"] >= 0
    assert "Execution Time" not in explained(talk, ", ANALYZE, SUMMARY off", "SELECT 1")


def test_a_subquery_says_what_it_is(talk: Talk) -> None:
    found = explained(talk, "", "SELECT (SELECT max(id) FROM people)")
    (part,) = (each for each in found["Plan"]["Plans"] if "Subplan Name" in each)
    assert (part["Parent Relationship"], part["Subplan Name"]) == ("InitPlan", "InitPlan 1")


def test_a_statement_that_writes_has_its_source_below_it(talk: Talk) -> None:
    found = explained(talk, "", "UPDATE people SET city = 'z' WHERE id = 1")["Plan"]
    assert (found["Node Type"], found["Operation"], found["Relation Name"]) == (
        "ModifyTable",
        "Update",
        "people",
    )
    assert found["Plans"]
    talk.say("BEGIN")
    found = explained(talk, ", ANALYZE", "INSERT INTO people VALUES (9, 'q') RETURNING id")["Plan"]
    assert (found["Operation"], found["Actual Rows"]) == ("Insert", 1.0)
    assert talk.say("SELECT count(*) FROM people").rows == (("4",),)
    talk.say("ROLLBACK")


def test_text_and_json_tell_of_the_same_nodes(talk: Talk) -> None:
    text = "SELECT city, count(*) FROM people GROUP BY city ORDER BY 2"
    lines = [row[0] or "" for row in talk.say(f"EXPLAIN {text}").rows]
    titles = []
    waiting = [explained(talk, "", text)["Plan"]]
    while waiting:
        node = waiting.pop(0)
        titles.append(node["Node Type"])
        waiting += node.get("Plans", [])
    assert all(any(title in line for line in lines) for title in titles)


@pytest.mark.parametrize(
    "options",
    [
        *("FORMAT foo", "foo", "TIMING", "WAL", "SERIALIZE", "COSTS 3", "ANALYZE 2", "COSTS maybe"),
        *(
            "COSTS off",
            "GENERIC_PLAN",
            "SERIALIZE none",
            "MEMORY on",
            "ANALYZE, TIMING off, SERIALIZE",
            "BUFFERS",
        ),
    ],
)
def test_options_are_taken_and_refused_as_in_postgresql(node: Node, oracle: Oracle, options: str) -> None:
    talk = Talk(node)
    ours, theirs = (each.say(f"EXPLAIN ({options}) SELECT 1") for each in (talk, oracle))
    assert (ours.sqlstate, ours.message) == (theirs.sqlstate, theirs.message)
    talk.close()
