"""DDL inside transactions, together with rows, compared with PostgreSQL."""

import pytest

from tenure.node import Node
from tests.unit.sql.sessions import Oracle, compare

SCRIPTS = {
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
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_statements_are_answered_as_by_postgresql(nodes: Node, oracle: Oracle, name: str) -> None:
    compare(nodes, oracle, SCRIPTS[name])
