"""Types that are used in expressions only: they are dependencies, and need USAGE, as in PostgreSQL."""

from tenure.node import Node
from tests.unit.sql.sessions import Oracle, compare
from tests.unit.sql.statements.ddl.test_hostile_users import compare_as_guest

USERS = """
CREATE TYPE mood AS ENUM ('sad', 'ok')
CREATE TABLE d (a text DEFAULT 'ok'::mood::text, k int)
CREATE TABLE listed (a int, b text DEFAULT (ARRAY['ok'::mood])[1]::text)
CREATE TABLE checked (a int, CONSTRAINT fine CHECK ('ok'::mood > 'sad'::mood))
CREATE TABLE i (a int, b text)
CREATE INDEX ii ON i (a) WHERE 'ok'::mood > 'sad'::mood
CREATE TABLE g (a int, b int GENERATED ALWAYS AS (CASE WHEN 'ok'::mood > 'sad'::mood THEN a END) STORED)
CREATE TABLE m (a mood DEFAULT 'ok', b int)
CREATE TABLE later (a text)
ALTER TABLE later ALTER a SET DEFAULT 'ok'::mood::text
"""


def test_a_type_in_an_expression_is_not_dropped_alone(node: Node, oracle: Oracle) -> None:
    script = """
DROP TYPE mood
DROP TYPE mood CASCADE
INSERT INTO d (k) VALUES (1) RETURNING a
INSERT INTO listed (a) VALUES (1) RETURNING b
INSERT INTO checked VALUES (1)
INSERT INTO i VALUES (1)
INSERT INTO later DEFAULT VALUES RETURNING a
SELECT indexname FROM pg_indexes WHERE tablename = 'i'
SELECT table_name, column_name FROM information_schema.columns WHERE table_name IN ('g', 'm') ORDER BY 1
"""
    compare(node, oracle, USERS + script)


def test_a_type_is_free_again_when_the_last_expression_is_gone(node: Node, oracle: Oracle) -> None:
    script = """
DROP TABLE d, listed, checked, g, m
DROP INDEX ii
DROP TYPE mood
ALTER TABLE later ALTER a DROP DEFAULT
DROP TYPE mood
"""
    compare(node, oracle, USERS + script)


def test_a_default_needs_the_right_to_its_type(node: Node, oracle: Oracle) -> None:
    by_owner = "CREATE TYPE app.mood AS ENUM ('sad', 'ok')\nREVOKE USAGE ON TYPE app.mood FROM PUBLIC"
    by_guest = """
like: CREATE TABLE hers.t (a text DEFAULT 'ok'::app.mood::text)
CREATE TABLE hers.t (a text)
like: ALTER TABLE hers.t ALTER a SET DEFAULT 'ok'::app.mood::text
like: ALTER TABLE hers.t ADD CONSTRAINT c CHECK (a <> 'ok'::app.mood::text)
like: CREATE INDEX x ON hers.t (a) WHERE 'ok'::app.mood > 'sad'::app.mood
"""
    compare_as_guest(node, oracle, by_owner, by_guest)


def test_a_prepared_statement_reads_labels_as_its_block_has_them(node: Node, oracle: Oracle) -> None:
    script = """
CREATE TYPE mood AS ENUM ('sad', 'ok')
CREATE TABLE t (id int, m mood)
PREPARE ins AS INSERT INTO t VALUES ($1, $2)
BEGIN
ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'
EXECUTE ins (1, 'fine')
SAVEPOINT s
like: EXECUTE ins (2, 'ok')
ROLLBACK TO s
ALTER TYPE mood RENAME VALUE 'fine' TO 'good'
EXECUTE ins (3, 'good')
ROLLBACK TO s
EXECUTE ins (4, 'fine')
COMMIT
EXECUTE ins (5, 'fine')
TABLE t
DEALLOCATE ins
"""
    compare(node, oracle, script)
