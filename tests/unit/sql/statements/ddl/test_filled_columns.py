"""A column that is added with a value of its own for each row takes one value for each."""

import pytest

from tenure.node import Node
from tests.unit.sql.sessions import Oracle, Talk, compare

ALONGSIDE = {
    "a generated column": "ADD COLUMN g int GENERATED ALWAYS AS (a + 1) STORED",
    "another serial": "ADD COLUMN other serial",
    "a volatile default": "ADD COLUMN r float8 DEFAULT random()",
    "another type": "ALTER COLUMN b TYPE text USING b || '!'",
    "a primary key": "ADD PRIMARY KEY (a)",
}


@pytest.mark.parametrize("alongside", ALONGSIDE)
def test_each_row_takes_one_number_of_a_new_sequence(nodes: Node, oracle: Oracle, alongside: str) -> None:
    compare(
        nodes,
        oracle,
        f"""
CREATE TABLE t (a int, b int)
INSERT INTO t SELECT g, g FROM generate_series(1, 40) g
ALTER TABLE t ADD COLUMN s serial, {ALONGSIDE[alongside]}
SELECT count(DISTINCT s), min(s), max(s) FROM t
UPDATE t SET b = b
SELECT count(DISTINCT s), min(s), max(s) FROM t
""",
    )


def test_a_new_default_that_is_volatile_is_kept_by_later_writes(node: Node) -> None:
    talk = Talk(node)
    talk.say("CREATE TABLE drawn (a int PRIMARY KEY)")
    talk.say("INSERT INTO drawn VALUES (1), (2)")
    talk.say("ALTER TABLE drawn ADD COLUMN r float8 DEFAULT random()")
    before = talk.say("SELECT a, r FROM drawn ORDER BY a").rows
    talk.say("UPDATE drawn SET a = a + 10")
    after = talk.say("SELECT a - 10, r FROM drawn ORDER BY a").rows
    assert before == after
