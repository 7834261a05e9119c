"""SHOW GRANTS, and the rights that SHOW statements about schemas and databases ask for."""

from collections.abc import Iterator

import pytest

from tenure.node import Node
from tests.unit.sql.sessions import Talk
from tests.unit.sql.statements.ddl.test_roles import do, refused


@pytest.fixture
def root(nodes: Node) -> Iterator[Talk]:
    talk = Talk(nodes)
    do(talk, "CREATE USER ann", "CREATE USER bob", "CREATE SCHEMA s", "CREATE TYPE s.mood AS ENUM ('ok')")
    do(talk, "CREATE TABLE s.t (a int PRIMARY KEY, b int)", "CREATE SEQUENCE s.q")
    do(talk, "GRANT USAGE ON SCHEMA s TO ann WITH GRANT OPTION", "GRANT SELECT (b) ON s.t TO ann")
    do(talk, "GRANT INSERT ON s.t TO bob", "GRANT USAGE ON s.q TO PUBLIC")
    yield talk
    talk.close()


def shown(talk: Talk, statement: str) -> list[tuple[str | None, ...]]:
    """Object, column, grantee, privilege and whether it may be granted on."""
    said = talk.say(statement)
    assert said.sqlstate == "", said
    return [(row[2], row[4], *row[6:]) for row in said.rows]


def test_grants_on_a_table_have_those_on_its_columns(root: Talk) -> None:
    rows = [row for row in shown(root, "SHOW GRANTS ON s.t") if row[2] != "root"]
    assert rows == [("t", "b", "ann", "SELECT", "f"), ("t", None, "bob", "INSERT", "f")]
    assert shown(root, "SHOW GRANTS ON TABLE s.t FOR bob") == [("t", None, "bob", "INSERT", "f")]


def test_grants_on_other_objects(root: Talk) -> None:
    assert ("s", None, "ann", "USAGE", "t") in shown(root, "SHOW GRANTS ON SCHEMA s")
    assert shown(root, "SHOW GRANTS ON SEQUENCE s.q FOR public") == [("q", None, "public", "USAGE", "f")]
    assert shown(root, "SHOW GRANTS ON TYPE s.mood FOR public") == [("mood", None, "public", "USAGE", "f")]
    assert ("defaultdb", None, "public", "CONNECT", "f") in shown(root, "SHOW GRANTS ON DATABASE defaultdb")


def test_all_grants_of_a_role(root: Talk) -> None:
    assert [(row[0], row[3]) for row in shown(root, "SHOW GRANTS FOR ann, bob")] == [
        ("t", "SELECT"),
        ("s", "USAGE"),
        ("t", "INSERT"),
    ]


def test_users_are_shown_what_concerns_them(root: Talk, nodes: Node) -> None:
    ann = Talk(nodes, user="ann")
    assert shown(ann, "SHOW GRANTS ON s.t") == [("t", "b", "ann", "SELECT", "f")]
    assert {row[2] for row in shown(ann, "SHOW GRANTS")} == {"ann", "public"}
    do(ann, "GRANT USAGE ON SCHEMA s TO bob")
    assert ("s", None, "bob", "USAGE", "f") in shown(ann, "SHOW GRANTS ON SCHEMA s")
    ann.close()


def test_grants_in_a_block_are_shown_in_it(root: Talk) -> None:
    do(root, "BEGIN", "GRANT DELETE ON s.t TO ann")
    assert ("t", None, "ann", "DELETE", "f") in shown(root, "SHOW GRANTS ON s.t")
    do(root, "ROLLBACK")
    assert ("t", None, "ann", "DELETE", "f") not in shown(root, "SHOW GRANTS ON s.t")


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("SHOW GRANTS ON s.t", "42501"),
        ("SHOW GRANTS ON SCHEMA s", "42501"),
        ("SHOW GRANTS ON DATABASE closed", "42501"),
        ("SHOW CREATE SCHEMA s", "42501"),
        ("SHOW SCHEMAS FROM closed", "42501"),
        ("SHOW GRANTS ON missing", "42P01"),
        ("SHOW GRANTS ON SCHEMA missing", "3F000"),
        ("SHOW GRANTS ON DATABASE missing", "3D000"),
        ("SHOW GRANTS ON TYPE public.missing", "42P01"),
        ("SHOW GRANTS FOR missing", "42704"),
        ("SHOW GRANTS ON", "42601"),
        ("SHOW GRANTS FOR ann ON t", "42601"),
    ],
)
def test_what_may_not_be_shown_is_refused(root: Talk, nodes: Node, statement: str, sqlstate: str) -> None:
    do(root, "CREATE DATABASE closed", "REVOKE CONNECT ON DATABASE closed FROM PUBLIC")
    bob = Talk(nodes, user="bob")
    assert refused(bob, statement) == sqlstate
    bob.close()


def test_a_schema_is_shown_to_those_who_may_use_it(root: Talk, nodes: Node) -> None:
    do(root, "CREATE DATABASE other", "GRANT CREATE ON SCHEMA s TO bob")
    bob = Talk(nodes, user="bob")
    do(bob, "SHOW CREATE SCHEMA s", "SHOW SCHEMAS FROM other", "SHOW SCHEMAS")
    bob.close()
