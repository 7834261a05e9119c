"""References between databases: off, or on and as good as all others."""

from collections.abc import Iterator

import pytest

from tenure.node import Node
from tests.unit.schema_change.declared import inconsistent_names
from tests.unit.sql.sessions import Talk

ON, OFF = (f"SET CLUSTER SETTING sql.cross_database_references = {value}" for value in ("on", "off"))
REFERENCES = [
    "CREATE TABLE r (a int REFERENCES d.t)",
    "CREATE TABLE r (m d.mood)",
    "CREATE TABLE r (a int DEFAULT nextval('d.q'))",
    "CREATE VIEW w AS SELECT a FROM d.t",
    "ALTER TABLE own ADD FOREIGN KEY (a) REFERENCES d.t",
    "ALTER TABLE own ADD COLUMN m d.mood",
    "ALTER TABLE own ALTER COLUMN b SET DEFAULT nextval('d.q')",
]


@pytest.fixture
def talk(nodes: Node) -> Iterator[Talk]:
    talk = Talk(nodes)
    for line in (
        "CREATE DATABASE d",
        "CREATE TABLE d.t (a int PRIMARY KEY)",
        "CREATE TYPE d.mood AS ENUM ('fine')",
        "CREATE SEQUENCE d.q",
        "CREATE TABLE own (a int, b int)",
    ):
        assert not talk.say(line).sqlstate, line
    yield talk
    talk.close()
    assert inconsistent_names(nodes) == []


@pytest.mark.parametrize("statement", REFERENCES)
@pytest.mark.setting("sql.cross_database_references")
def test_they_are_refused_unless_the_setting_allows_them(talk: Talk, statement: str) -> None:
    said = talk.say(statement)
    assert (said.sqlstate, said.hint) == (
        "0A000",
        "The cluster setting sql.cross_database_references allows them.",
    )
    talk.say(ON)
    assert talk.say(statement).sqlstate == ""
    listed = talk.say("TABLE tenure_internal.cross_database_references").rows
    assert [(row[0], row[4]) for row in listed] == [("defaultdb", "d")]
    assert talk.say("DROP DATABASE d").sqlstate == "2BP01"
    assert talk.say("DROP SCHEMA d.public").sqlstate == "2BP01"
    assert talk.say("DROP DATABASE d CASCADE").tag == "DROP DATABASE"
    assert talk.say("TABLE tenure_internal.cross_database_references").rows == ()


def test_they_are_enforced_and_stay_when_the_setting_is_turned_off(talk: Talk) -> None:
    for line in (
        ON,
        "CREATE TABLE r (a int REFERENCES d.t, c int)",
        "CREATE VIEW w AS SELECT a FROM d.t",
        OFF,
    ):
        assert talk.say(line).sqlstate == ""
    assert talk.say("INSERT INTO r VALUES (1)").sqlstate == "23503"
    talk.say("INSERT INTO d.t VALUES (1)")
    assert talk.say("INSERT INTO r VALUES (1)").tag == "INSERT 0 1"
    assert talk.say("DELETE FROM d.t").sqlstate == "23503"
    assert talk.say("DROP TABLE d.t").sqlstate == "2BP01"
    assert talk.say("TABLE w").rows == (("1",),)
    assert talk.say("ALTER TABLE r ADD COLUMN n int").sqlstate == "", "a change beside them is none of them"
    assert talk.say("ALTER TABLE r ADD FOREIGN KEY (c) REFERENCES d.t").sqlstate == "", "they refer already"
    assert talk.say("CREATE VIEW w2 AS SELECT a FROM d.t").sqlstate == "0A000"


def test_in_a_block_a_refused_reference_leaves_the_rest(talk: Talk) -> None:
    for line in ("BEGIN", "CREATE TABLE x (a int)", "SAVEPOINT s"):
        talk.say(line)
    assert talk.say(REFERENCES[0]).sqlstate == "0A000"
    talk.say("ROLLBACK TO s")
    assert talk.say("COMMIT").tag == "COMMIT"
    assert talk.say("TABLE x").sqlstate == ""


def test_a_version_is_not_finalized_while_they_are_there_and_not_allowed(talk: Talk) -> None:
    version = talk.say("SHOW CLUSTER SETTING version").rows[0][0]
    finalize = f"SET CLUSTER SETTING version = {version}"
    assert talk.say(finalize).sqlstate == ""
    for line in (ON, "CREATE VIEW w AS SELECT a FROM d.t", finalize, OFF):
        assert talk.say(line).sqlstate == "", line
    said = talk.say(finalize)
    assert said.sqlstate == "55000"
    assert "tenure_internal.cross_database_references" in said.hint
    talk.say("DROP VIEW w")
    assert talk.say(finalize).sqlstate == ""
