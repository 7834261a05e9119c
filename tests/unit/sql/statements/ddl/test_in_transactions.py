"""DDL inside transactions, together with rows, compared with PostgreSQL."""

from pathlib import Path

import pytest

from tenure.node import Node
from tests.unit.sql.sessions import Oracle, Talk, compare, running

SCRIPTS = {
    "what_is_dropped_beside_rows_is_committed_and_said_to_be": """
CREATE TABLE t (id serial PRIMARY KEY, b int)
BEGIN
INSERT INTO t (b) VALUES (1)
DROP TABLE t
COMMIT
SELECT * FROM t
CREATE TABLE p (id int PRIMARY KEY, k int UNIQUE)
CREATE TABLE c (id int PRIMARY KEY, k int REFERENCES p (k))
INSERT INTO p VALUES (1, 1)
INSERT INTO c VALUES (1, 1)
BEGIN
ALTER TABLE p DROP COLUMN k CASCADE
INSERT INTO c VALUES (2, 77)
COMMIT
SELECT * FROM c ORDER BY id
SELECT * FROM p
ALTER TABLE c ADD COLUMN q int REFERENCES p
BEGIN
INSERT INTO p VALUES (2)
DROP TABLE p CASCADE
COMMIT
INSERT INTO c VALUES (3, 78, 5)
SELECT * FROM c ORDER BY id
""",
    "what_is_prepared_over_definitions_that_are_taken_back_is_planned_again": """
CREATE TABLE t (id int PRIMARY KEY, a int)
INSERT INTO t VALUES (1, 2)
PREPARE early AS INSERT INTO t (id, a) VALUES (8, 8)
BEGIN
ALTER TABLE t ADD COLUMN c int DEFAULT 5
PREPARE p AS SELECT * FROM t
PREPARE q AS SELECT c FROM t
PREPARE i AS INSERT INTO t VALUES (2, 3, 4)
PREPARE k AS SELECT c FROM t WHERE id = 1
EXECUTE p
EXECUTE k
EXECUTE early
SELECT * FROM t ORDER BY id
ROLLBACK
EXECUTE p
EXECUTE q
EXECUTE i
EXECUTE k
EXECUTE early
SELECT * FROM t ORDER BY id
ALTER TABLE t ADD COLUMN d int
SELECT * FROM t ORDER BY id
BEGIN
SAVEPOINT s
ALTER TABLE t RENAME COLUMN d TO e
PREPARE r AS SELECT * FROM t
ROLLBACK TO s
EXECUTE r
ROLLBACK
DEALLOCATE ALL
DROP TABLE t
""",
    "a_table_like_another_has_what_the_block_has_changed": """
CREATE TABLE t (id int PRIMARY KEY, a int, gone int)
BEGIN
ALTER TABLE t ADD COLUMN c int DEFAULT 5
ALTER TABLE t DROP COLUMN gone
ALTER TABLE t RENAME COLUMN id TO key
ALTER TABLE t ALTER COLUMN a SET NOT NULL
ALTER TABLE t ALTER COLUMN a SET DEFAULT 9
ALTER TABLE t ADD CONSTRAINT positive CHECK (a > 0)
ALTER TABLE t ADD UNIQUE (a)
CREATE TABLE u (LIKE t INCLUDING ALL)
INSERT INTO u (key) VALUES (1)
SELECT * FROM u
SAVEPOINT s
INSERT INTO u (key, a) VALUES (2, NULL)
ROLLBACK TO s
INSERT INTO u (key, a) VALUES (2, 9)
ROLLBACK TO s
INSERT INTO u (key, a) VALUES (2, 0)
ROLLBACK TO s
COMMIT
SELECT * FROM u
DROP TABLE t, u
""",
    "what_is_given_to_a_prepared_statement_without_parameters_is_not_looked_at": """
PREPARE p AS SELECT 1 AS one
EXECUTE p(1, nope)
PREPARE q AS SELECT $1::int AS one
EXECUTE q
EXECUTE q(1, 2)
DEALLOCATE ALL
""",
    "rows_and_definitions_together": """
BEGIN
CREATE TABLE t (id int PRIMARY KEY, a text)
INSERT INTO t VALUES (1, 'x')
SELECT * FROM t
ALTER TABLE t ADD COLUMN b int DEFAULT 7
SELECT * FROM t
UPDATE t SET b = 8, a = 'y'
CREATE INDEX ti ON t (b)
CREATE VIEW v AS SELECT b FROM t
SELECT * FROM v
COMMIT
SELECT * FROM t WHERE b = 8
SELECT * FROM v
BEGIN
ALTER TABLE t ADD COLUMN c int NOT NULL DEFAULT 3
INSERT INTO t VALUES (2, 'z', 9)
SELECT * FROM t ORDER BY id
ROLLBACK
SELECT * FROM t
BEGIN
CREATE TABLE n (a int)
SAVEPOINT s
ALTER TABLE t RENAME TO tt
INSERT INTO tt VALUES (5, 'q')
DROP TABLE n
SELECT * FROM n
ROLLBACK TO s
SELECT * FROM t
INSERT INTO n VALUES (1)
COMMIT
SELECT * FROM n
SELECT * FROM t
BEGIN
CREATE TABLE broken (a int, a int)
SELECT 1
ROLLBACK
BEGIN
DROP TABLE n
CREATE TABLE m (a int)
COMMIT
SELECT * FROM n
SELECT * FROM m
BEGIN READ ONLY
CREATE TABLE k (a int)
ROLLBACK
BEGIN
CREATE DATABASE in_block
ROLLBACK
BEGIN
CREATE TYPE e AS ENUM ('a', 'b')
CREATE TABLE et (x e)
INSERT INTO et VALUES ('b')
COMMIT
SELECT * FROM et
BEGIN
ALTER TABLE t ADD CONSTRAINT pos CHECK (b > 0)
INSERT INTO t VALUES (9, 'n', -1)
ROLLBACK
BEGIN
SELECT * FROM t ORDER BY id
ROLLBACK
BEGIN
DROP TABLE et
like: DROP TYPE e
CREATE TABLE et2 (x int)
COMMIT
BEGIN
CREATE TABLE fk (t int REFERENCES t)
INSERT INTO fk VALUES (1)
INSERT INTO fk VALUES (77)
ROLLBACK
BEGIN
CREATE TABLE fk (t int REFERENCES t)
INSERT INTO fk VALUES (1)
DELETE FROM t
ROLLBACK
TRUNCATE t
""",
    "changes_upon_changes": """
BEGIN
CREATE TABLE p (id int PRIMARY KEY)
CREATE TABLE c (p int REFERENCES p)
INSERT INTO p VALUES (1)
INSERT INTO c VALUES (1)
CREATE TYPE e AS ENUM ('x')
ALTER TABLE c ADD COLUMN e e DEFAULT 'x'
SELECT * FROM c
COMMIT
SELECT * FROM c
INSERT INTO c VALUES (2)
BEGIN
ALTER TABLE p ADD COLUMN a int DEFAULT 1
INSERT INTO p VALUES (2, 5)
UPDATE p SET a = a + 1
CREATE INDEX ON p (a)
SELECT * FROM p WHERE a > 1 ORDER BY id
ALTER TABLE p RENAME COLUMN a TO b
SELECT * FROM p ORDER BY id
COMMIT
SELECT * FROM p WHERE b = 2
SELECT * FROM p WHERE b = 6
BEGIN
ALTER TABLE p DROP COLUMN b
INSERT INTO p VALUES (3)
SELECT * FROM p ORDER BY id
COMMIT
SELECT * FROM p ORDER BY id
BEGIN
INSERT INTO p VALUES (4)
ROLLBACK
BEGIN
INSERT INTO p VALUES (4)
CREATE SEQUENCE sq
SELECT nextval('sq')
CREATE VIEW pv AS SELECT id * 2 AS d FROM p
SELECT sum(d) FROM pv
DROP VIEW pv
ALTER TABLE c RENAME TO cc
INSERT INTO cc VALUES (4)
TRUNCATE cc
SELECT count(*) FROM cc
ROLLBACK
SELECT count(*) FROM c
BEGIN
CREATE TABLE tmp AS SELECT id FROM p
SELECT count(*) FROM tmp
ALTER TABLE tmp ADD PRIMARY KEY (id)
DROP TABLE tmp
COMMIT
""",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_statements_are_answered_as_by_postgresql(nodes: Node, oracle: Oracle, name: str) -> None:
    compare(nodes, oracle, SCRIPTS[name])


NAMES_AGAIN = """
CREATE TABLE t (a int)
INSERT INTO t VALUES (1)
BEGIN
DROP TABLE t
SELECT * FROM t
ROLLBACK
BEGIN
DROP TABLE t
CREATE TABLE t (b text)
INSERT INTO t VALUES ('x')
SELECT * FROM t
COMMIT
SELECT * FROM t
BEGIN
CREATE TABLE new_t (b text, c int DEFAULT 7)
INSERT INTO new_t SELECT b FROM t
DROP TABLE t
ALTER TABLE new_t RENAME TO t
SELECT * FROM t
COMMIT
SELECT * FROM t
BEGIN
DROP TABLE t
CREATE TABLE t (z int)
DROP TABLE t
CREATE TABLE t (y int)
ROLLBACK
SELECT * FROM t
BEGIN
DROP TABLE t
CREATE TABLE t (z int)
DROP TABLE t
COMMIT
SELECT * FROM t
CREATE TABLE t (w int)
SELECT * FROM t
BEGIN
DROP TABLE t
CREATE VIEW t AS SELECT 1 AS one
SELECT * FROM t
COMMIT
SELECT * FROM t
CREATE SCHEMA s
BEGIN
DROP SCHEMA s
CREATE SCHEMA s
CREATE TABLE s.x (a int)
COMMIT
SELECT * FROM s.x
BEGIN
ALTER TABLE s.x RENAME TO y
ALTER TABLE s.y RENAME TO x
SELECT * FROM s.x
COMMIT
SELECT * FROM s.x
BEGIN
ALTER TABLE s.x RENAME TO x_old
CREATE TABLE s.x (n int)
INSERT INTO s.x VALUES (1)
COMMIT
SELECT * FROM s.x
SELECT * FROM s.x_old
BEGIN
ALTER TABLE s.x RENAME TO swap
ALTER TABLE s.x_old RENAME TO x
ALTER TABLE s.swap RENAME TO x_old
SELECT * FROM s.x_old
COMMIT
SELECT * FROM s.x_old
SELECT * FROM s.x
DROP TABLE s.x, s.x_old
"""


def test_names_that_are_given_up_are_taken_again_in_one_transaction(node: Node, oracle: Oracle) -> None:
    compare(node, oracle, NAMES_AGAIN)


def test_with_other_nodes_a_name_is_given_up_and_taken_in_two_transactions(tmp_path: Path) -> None:
    with running(tmp_path) as node, running(tmp_path):
        talk = Talk(node)
        talk.say("CREATE TABLE t (a int)")
        talk.say("BEGIN")
        talk.say("DROP TABLE t")
        assert talk.say("CREATE TABLE t (b int)").sqlstate == ""
        assert talk.say("COMMIT").sqlstate == "55006"
        assert talk.say("SELECT * FROM t").columns == ("a",)
        assert talk.say("DROP TABLE t").sqlstate == ""
        assert talk.say("CREATE TABLE t (b int)").sqlstate == ""
        assert talk.say("SELECT * FROM t").columns == ("b",)
        talk.close()
