"""Unique constraints that are DEFERRABLE are checked when a statement ends, others row by row."""

import pytest

from tenure.node import Node
from tests.unit.sql.sessions import Oracle, Talk, compare

SCRIPTS = {
    "shifted and swapped": """
CREATE TABLE t (a int PRIMARY KEY, i int UNIQUE DEFERRABLE, v text)
INSERT INTO t SELECT g, g, 'v' || g FROM generate_series(1, 50) g
UPDATE t SET i = i + 1
SELECT count(*), min(i), max(i), sum(i) FROM t
SELECT a FROM t WHERE i = 51
SELECT a FROM t WHERE i = 1
UPDATE t SET i = i - 1
UPDATE t SET i = 51 - i
SELECT a, i FROM t WHERE i IN (1, 2, 50) ORDER BY i
UPDATE t SET i = CASE a WHEN 1 THEN 49 ELSE 50 END WHERE a IN (1, 2)
SELECT a, i FROM t WHERE i > 48 ORDER BY i
UPDATE t SET i = 7 WHERE a IN (1, 2)
UPDATE t SET i = 7 WHERE a = 1
UPDATE t SET i = NULL WHERE a < 10
like: UPDATE t SET i = a WHERE a < 10
INSERT INTO t VALUES (60, 7, 'x')
SELECT count(*), count(DISTINCT i) FROM t
""",
    "a primary key": """
CREATE TABLE t (a int, i int, v text, CONSTRAINT k PRIMARY KEY (a) DEFERRABLE INITIALLY IMMEDIATE)
CREATE INDEX t_v ON t (v)
INSERT INTO t SELECT g, g, 'v' || g FROM generate_series(1, 20) g
UPDATE t SET a = a + 1
SELECT a, v FROM t ORDER BY a LIMIT 3
SELECT a FROM t WHERE v = 'v7'
SELECT v FROM t WHERE a = 21
UPDATE t SET a = 1
UPDATE t SET a = NULL
SELECT count(*), sum(a) FROM t
INSERT INTO t VALUES (5, 5, 'x')
like: SELECT a, v FROM t GROUP BY a
""",
    "in a block": """
CREATE TABLE t (a int PRIMARY KEY, i int CONSTRAINT u UNIQUE DEFERRABLE)
INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)
BEGIN
INSERT INTO t VALUES (4, 4)
UPDATE t SET i = i + 1
SAVEPOINT s
UPDATE t SET i = 9
ROLLBACK TO s
SELECT * FROM t ORDER BY a
UPDATE t SET i = i + 1 WHERE a > 1
COMMIT
SELECT * FROM t ORDER BY a
SELECT a FROM t WHERE i = 6
""",
    "added later, and what they cannot be": """
CREATE TABLE t (a int, i int)
INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)
ALTER TABLE t ADD CONSTRAINT u UNIQUE (i) DEFERRABLE, ADD PRIMARY KEY (a) DEFERRABLE
UPDATE t SET i = i + 1, a = a + 1
SELECT * FROM t ORDER BY a
CREATE TABLE c (i int REFERENCES t)
CREATE TABLE c (i int REFERENCES t (i))
INSERT INTO t VALUES (2, 9) ON CONFLICT DO NOTHING
INSERT INTO t VALUES (2, 9) ON CONFLICT (a) DO NOTHING
INSERT INTO t VALUES (2, 9) ON CONFLICT ON CONSTRAINT u DO NOTHING
CREATE TABLE s (LIKE t INCLUDING ALL)
INSERT INTO s TABLE t
UPDATE s SET i = i + 1, a = a - 1
SELECT * FROM s ORDER BY a
TRUNCATE t
INSERT INTO t VALUES (1, 1), (2, 2)
UPDATE t SET i = i + 1
SELECT * FROM t ORDER BY a
CREATE TABLE wrong (a int DEFERRABLE)
""",
    "a cascade": """
CREATE TABLE p (a int PRIMARY KEY)
CREATE TABLE c (a int PRIMARY KEY, p int UNIQUE DEFERRABLE REFERENCES p ON UPDATE CASCADE)
INSERT INTO p VALUES (1), (2), (3)
INSERT INTO c VALUES (1, 1), (2, 2), (3, 3)
UPDATE c SET p = p % 3 + 1
SELECT * FROM c ORDER BY a
UPDATE p SET a = a + 10
SELECT * FROM c ORDER BY a
UPDATE c SET p = 77 WHERE a = 1
""",
    "not deferrable": """
CREATE TABLE t (a int PRIMARY KEY, i int UNIQUE)
INSERT INTO t SELECT g, g FROM generate_series(1, 30) g
UPDATE t SET i = i + 1
UPDATE t SET a = a + 1
UPDATE t SET i = i - 1
UPDATE t SET a = a - 1
SELECT count(*), sum(a), sum(i) FROM t
""",
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_keys_answer_as_in_postgres(script: str, node: Node, oracle: Oracle) -> None:
    compare(node, oracle, SCRIPTS[script])


def test_keys_that_are_not_deferrable_are_checked_in_the_order_of_the_primary_key(node: Node) -> None:
    talk = Talk(node)
    talk.say("CREATE TABLE shuffled (a int PRIMARY KEY, i int UNIQUE)")
    talk.say("INSERT INTO shuffled VALUES (3, 1), (2, 2), (1, 3)")
    assert talk.say("UPDATE shuffled SET i = i + 1").tag == "UPDATE 3"
    assert talk.say("UPDATE shuffled SET i = i - 1").sqlstate == "23505"
    moved = (
        "UPDATE shuffled s SET i = o.i - 1 FROM (SELECT a, i FROM shuffled ORDER BY i {}) o WHERE o.a = s.a"
    )
    assert [talk.say(moved.format(way)).sqlstate for way in ("", "DESC")] == ["23505", "23505"]


def test_what_is_initially_deferred_is_checked_with_the_statement_and_says_so(node: Node) -> None:
    talk = Talk(node)
    said = talk.say("CREATE TABLE at_first (a int PRIMARY KEY, i int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    assert [notice[1] for notice in said.notices] == [
        "unique constraints that are INITIALLY DEFERRED are checked at the end of each statement"
    ]
    talk.say("INSERT INTO at_first VALUES (1, 1), (2, 2)")
    assert talk.say("UPDATE at_first SET i = i + 1").tag == "UPDATE 2"
    assert talk.say("UPDATE at_first SET i = 1").sqlstate == "23505"
    assert not talk.say("CREATE TABLE plain (i int UNIQUE DEFERRABLE)").notices
    assert "UNIQUE (i) DEFERRABLE" in str(talk.say("SHOW CREATE TABLE at_first").rows)
