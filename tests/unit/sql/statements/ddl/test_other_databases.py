"""Schemas of other databases, and databases with CASCADE or RESTRICT."""

from collections.abc import Iterator

import pytest

from tenure.node import Node
from tests.unit.schema_change.declared import inconsistent_names
from tests.unit.sql.sessions import Talk


@pytest.fixture
def talk(nodes: Node) -> Iterator[Talk]:
    talk = Talk(nodes)
    for statement in (
        "CREATE DATABASE d",
        "CREATE SCHEMA d.one CREATE TABLE t (a int PRIMARY KEY) CREATE VIEW v AS SELECT a FROM t",
        "CREATE SCHEMA d.two",
        "CREATE TYPE d.two.mood AS ENUM ('fine')",
        "CREATE TABLE d.two.r (a int REFERENCES d.one.t, m d.two.mood, s serial)",
        "CREATE VIEW d.two.w AS SELECT a FROM d.one.v",
    ):
        said = talk.say(statement)
        assert not said.sqlstate, (statement, said)
    yield talk
    talk.close()
    assert inconsistent_names(nodes) == []


def schemas(talk: Talk) -> list[str | None]:
    return [row[0] for row in talk.say("SHOW SCHEMAS FROM d").rows if row[1] == "root"]


def test_a_schema_of_another_database_is_renamed_and_given_to_another(talk: Talk) -> None:
    assert talk.say("ALTER SCHEMA d.one RENAME TO three").tag == "ALTER SCHEMA"
    assert talk.say("SELECT * FROM d.three.v").sqlstate == ""
    assert talk.say("ALTER SCHEMA d.one RENAME TO four").sqlstate == "3F000"
    assert talk.say("ALTER SCHEMA d.two RENAME TO three").sqlstate == "42P06"
    assert talk.say("ALTER SCHEMA nope.two RENAME TO three").sqlstate == "3D000"
    assert talk.say("ALTER SCHEMA d.two RENAME TO pg_x").sqlstate == "42939"
    assert talk.say("ALTER SCHEMA system.public RENAME TO x").sqlstate == "2BP01"
    talk.say("CREATE USER ann")
    assert talk.say("ALTER SCHEMA d.two OWNER TO ann").tag == "ALTER SCHEMA"
    assert schemas(talk) == ["public", "three"]
    assert talk.say("ALTER SCHEMA d.two.x RENAME TO y").sqlstate == "42601"
    assert talk.say('ALTER SCHEMA d."two" OWNER TO root;').tag == "ALTER SCHEMA"
    assert talk.say("SHOW CREATE SCHEMA d.two").rows == (("two", "CREATE SCHEMA two;"),)


def test_schemas_are_dropped_with_exactly_what_depends_on_them(talk: Talk) -> None:
    said = talk.say("DROP SCHEMA d.one")
    assert (said.sqlstate, said.detail.splitlines()) == (
        "2BP01",
        [
            "table one.t depends on schema one",
            "constraint r_a_fkey on table two.r depends on table one.t",
            "view one.v depends on schema one",
            "view two.w depends on view one.v",
        ],
    )
    assert talk.say("DROP SCHEMA d.one, d.two RESTRICT").sqlstate == "2BP01"
    said = talk.say("DROP SCHEMA d.one CASCADE")
    assert (said.tag, said.notices[0][1]) == ("DROP SCHEMA", "drop cascades to 4 other objects")
    assert talk.say("SELECT * FROM d.two.r").columns == ("a", "m", "s")
    assert talk.say("SELECT * FROM d.two.w").sqlstate == "42P01"
    assert talk.say("SELECT conname FROM pg_constraint WHERE conname = 'r_a_fkey'").rows == ()
    assert talk.say("DROP SCHEMA IF EXISTS d.one, nope.x, d.two CASCADE").notices[:2] == (
        ("00000", 'schema "d.one" does not exist, skipping', ""),
        ("00000", 'database "nope" does not exist, skipping', ""),
    )
    assert schemas(talk) == ["public"]
    assert talk.say("DROP SCHEMA d.one").sqlstate == "3F000"
    assert talk.say("DROP SCHEMA nope.one").sqlstate == "3D000"
    assert talk.say("DROP SCHEMA system.public CASCADE").sqlstate == "2BP01"


def test_schemas_of_several_databases_go_together_and_come_back_with_a_rollback(talk: Talk) -> None:
    talk.say("CREATE SCHEMA here")
    talk.say("BEGIN")
    assert talk.say("DROP SCHEMA here, d.one, d.two CASCADE").tag == "DROP SCHEMA"
    assert schemas(talk) == ["public"]
    assert talk.say("SELECT * FROM d.one.t").sqlstate == "42P01"
    talk.say("ROLLBACK")
    assert schemas(talk) == ["one", "public", "two"]
    assert talk.say("SELECT * FROM d.one.t").sqlstate == ""
    assert talk.say("DROP SCHEMA here, d.one, d.two CASCADE").tag == "DROP SCHEMA"
    assert schemas(talk) == ["public"]


def test_a_database_goes_with_its_schemas_unless_that_is_restricted(talk: Talk) -> None:
    said = talk.say("DROP DATABASE d RESTRICT")
    assert said.sqlstate == "2BP01"
    assert said.detail.splitlines()[0] == "schema one depends on database d"
    talk.say("BEGIN")
    assert talk.say("DROP DATABASE d CASCADE").sqlstate == "25001"
    talk.say("ROLLBACK")
    assert talk.say("DROP DATABASE d CASCADE").tag == "DROP DATABASE"
    assert talk.say("DROP DATABASE d CASCADE").sqlstate == "3D000"
    assert talk.say("DROP DATABASE IF EXISTS d RESTRICT").tag == "DROP DATABASE"
    talk.say("CREATE DATABASE d")
    assert talk.say("DROP DATABASE d RESTRICT;").tag == "DROP DATABASE"
    assert talk.say("DROP DATABASE defaultdb CASCADE").sqlstate == "55006"


@pytest.mark.parametrize(
    "statement",
    [
        "DROP SCHEMA d.",
        "DROP SCHEMA d.one d.two",
        "ALTER SCHEMA d.one SET x = 1",
        "DROP DATABASE CASCADE",
        "DROP DATABASE d, e CASCADE",
        "SELECT 1; DROP SCHEMA one two",
    ],
)
def test_what_is_no_such_statement_is_a_syntax_error(talk: Talk, statement: str) -> None:
    assert talk.say(statement).sqlstate == "42601"
