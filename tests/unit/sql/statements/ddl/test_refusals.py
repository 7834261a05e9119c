"""What is refused, by which SQLSTATE; what is accepted without effect says so."""

from collections.abc import Iterator

import pytest

from tenure.node import Node
from tests.unit.sql.sessions import Talk

REFUSED = {
    "CREATE TABLE x (a int) INHERITS (t)": "0A000",
    "CREATE TABLE x (a int) PARTITION BY RANGE (a)": "0A000",
    'CREATE TABLE x (a text COLLATE "en_US")': "0A000",
    "CREATE TABLE x (a int, EXCLUDE USING gist (a WITH =))": "0A000",
    "CREATE TABLE x (a int DEFAULT $1)": "42P02",
    "CREATE TABLE x (a int CHECK (a > $1))": "42P02",
    "CREATE TABLE x AS SELECT $1": "42P02",
    "CREATE TABLE x (a int) ON COMMIT DROP": "42P16",
    "CREATE TABLE pg_catalog.x (a int)": "42501",
    "CREATE VIEW x AS SELECT $1": "42P02",
    "CREATE VIEW x AS SELECT * FROM t AS OF SYSTEM TIME '-1s'": "0A000",
    "CREATE MATERIALIZED VIEW x AS SELECT 1": "0A000",
    "CREATE SCHEMA information_schema": "42P06",
    "CREATE TYPE x AS (a int)": "0A000",
    "CREATE TYPE x AS RANGE (subtype = int)": "0A000",
    "CREATE DOMAIN x AS int": "0A000",
    "CREATE DATABASE x ENCODING 'LATIN1'": "0A000",
    "CREATE USER x VALID UNTIL '2030-01-01'": "0A000",
    "CREATE USER x PASSWORD 'md5aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'": "0A000",
    "ALTER USER root NOLOGIN": "0A000",
    "ALTER TABLE t ENABLE ROW LEVEL SECURITY": "0A000",
    "ALTER TABLE t ADD PRIMARY KEY USING INDEX foo": "0A000",
    "CREATE INDEX ON t ((a + 1))": "0A000",
    "CREATE INDEX ON t USING gin (a)": "0A000",
    "DROP SCHEMA pg_catalog": "42501",
    "COMMENT ON COLUMN t IS 'x'": "42601",
    "COMMENT ON ROLE root IS 'x'": "0A000",
    "GRANT ALL ON LANGUAGE sql TO public": "0A000",
    "SELECT nextval(a::text) FROM t": "0A000",
}

WITHOUT_EFFECT = [
    "ALTER TABLE t SET (fillfactor = 70)",
    "ALTER TABLE t ALTER a SET STATISTICS 5",
    "ALTER TABLE t ADD CONSTRAINT u UNIQUE (a) INITIALLY DEFERRED",
    "CREATE TABLE with_parameters (a int) WITH (fillfactor = 70)",
    "CREATE ROLE maker REPLICATION",
]


@pytest.fixture(scope="module")
def talk(node: Node) -> Iterator[Talk]:
    talk = Talk(node)
    talk.say("CREATE TABLE t (a int)")
    yield talk
    talk.close()


@pytest.mark.parametrize("statement", REFUSED)
def test_a_statement_is_refused_by_its_sqlstate(talk: Talk, statement: str) -> None:
    assert talk.say(statement).sqlstate == REFUSED[statement]


@pytest.mark.parametrize("statement", WITHOUT_EFFECT)
def test_what_has_no_effect_is_accepted_and_said(talk: Talk, statement: str) -> None:
    said = talk.say(statement)
    assert said.sqlstate == ""
    assert len(said.notices) == 1
