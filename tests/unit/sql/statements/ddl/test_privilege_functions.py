"""has_table_privilege() and its like, pg_has_role(): as PostgreSQL answers them for the same roles."""

from collections.abc import Iterator

import pytest

from tenure.node import Node
from tests.unit.sql.sessions import Oracle, Talk
from tests.unit.sql.statements.ddl.test_privileges import ROLES, SETUP, dropped, named, said_as
from tests.unit.sql.statements.ddl.test_roles import do

EXPRESSIONS = """
has_table_privilege('app.t', 'select')
has_table_privilege('app.t', 'SELECT, INSERT')
has_table_privilege('app.t', ' Insert ,update')
has_table_privilege('app.t', 'SELECT WITH GRANT OPTION')
has_table_privilege('app.t', 'maintain')
has_table_privilege('app.t', 'usage')
has_table_privilege('app.t', 'nonsense')
has_table_privilege('app.missing', 'select')
has_table_privilege('missing.t', 'select')
has_table_privilege('role_reader', 'app.t', 'select')
has_table_privilege('role_outside', 'app.t', 'select')
has_table_privilege('role_missing', 'app.t', 'select')
has_table_privilege('public', 'app.t', 'select')
has_table_privilege('app.t'::regclass, 'select')
has_table_privilege('role_reader'::name, 'app.t'::regclass, 'insert')
has_table_privilege('pg_catalog.pg_class', 'select')
has_table_privilege('pg_catalog.pg_class', 'insert')
has_table_privilege('pg_catalog.pg_class'::regclass, 'select')
has_table_privilege('pg_catalog.pg_class'::regclass, 'insert')
has_schema_privilege('pg_catalog'::regnamespace, 'usage')
has_schema_privilege('information_schema'::regnamespace, 'create')
has_table_privilege('app.s', 'select')
has_table_privilege(4000000000::oid, 'select')
has_table_privilege(NULL, 'select')
has_any_column_privilege('app.t', 'select')
has_any_column_privilege('app.t', 'update')
has_any_column_privilege('app.t', 'delete')
has_column_privilege('app.t', 'a', 'select')
has_column_privilege('app.t', 'b', 'select')
has_column_privilege('app.t', 'b', 'update')
has_column_privilege('role_columns', 'app.t', 'b', 'insert')
has_column_privilege('app.v', 'a', 'select with grant option')
has_column_privilege('app.t', 'missing', 'select')
has_column_privilege('app.t', 1::int2, 'select')
has_column_privilege('app.t', 99::int2, 'select')
has_sequence_privilege('app.s', 'usage')
has_sequence_privilege('app.s', 'update')
has_sequence_privilege('app.t', 'usage')
has_schema_privilege('app', 'usage')
has_schema_privilege('app', 'create')
has_schema_privilege('public', 'create')
has_schema_privilege('pg_catalog', 'usage')
has_schema_privilege('missing', 'usage')
has_schema_privilege('app'::regnamespace, 'usage')
has_database_privilege(current_database(), 'connect')
has_database_privilege(current_database(), 'create')
has_database_privilege(current_database(), 'temp')
has_database_privilege('missing', 'connect')
has_type_privilege('app.mood', 'usage')
has_type_privilege('integer', 'usage')
has_type_privilege('app.missing', 'usage')
has_type_privilege('app.mood'::regtype, 'usage')
pg_has_role('role_club', 'member')
pg_has_role('role_club', 'usage')
pg_has_role('role_club', 'set')
pg_has_role('role_club', 'member with admin option')
pg_has_role('role_member', 'role_club', 'usage')
pg_has_role('role_outside', 'role_club', 'usage')
pg_has_role('role_outside', 'role_club', 'member')
pg_has_role('role_missing', 'usage')
pg_has_role('role_club', 'nonsense')
""".strip().splitlines()


@pytest.fixture(scope="module")
def sides(node: Node, oracle: Oracle) -> Iterator[tuple[Talk, Oracle]]:
    talk = Talk(node)
    for each in SETUP:
        ours, theirs = talk.say(named(each)), oracle.say(named(each))
        assert (ours.sqlstate, theirs.sqlstate) == ("", ""), (each, ours, theirs)
    yield talk, oracle
    talk.close()
    dropped(oracle)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_each_role_is_told_what_postgresql_tells(sides: tuple[Talk, Oracle], expression: str) -> None:
    answers = []
    for side in sides:
        said = {role: said_as(side, role, f"SELECT {expression}") for role in ROLES}
        answers.append({role: (each.sqlstate, each.rows) for role, each in said.items()})
    assert answers[0] == answers[1]


def test_objects_are_chosen_by_privileges_in_queries(sides: tuple[Talk, Oracle]) -> None:
    query = (
        "SELECT n.nspname, count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = 'app' AND c.relkind = 'r' AND has_table_privilege(c.oid, 'INSERT') GROUP BY 1"
    )
    for role in ("writer", "owner", "nobody"):
        ours, theirs = (said_as(side, role, query) for side in sides)
        assert (ours.sqlstate, ours.rows) == (theirs.sqlstate, theirs.rows)


def test_what_the_transaction_grants_is_told_in_it(node: Node) -> None:
    talk = Talk(node)
    do(talk, "CREATE TABLE own (a int)", "CREATE ROLE asked", "BEGIN", "GRANT SELECT (a) ON own TO asked")
    assert talk.say("SELECT has_column_privilege('asked', 'own', 'a', 'select')").rows == (("t",),)
    talk.say("ROLLBACK")
    assert talk.say("SELECT has_column_privilege('asked', 'own', 'a', 'select')").rows == (("f",),)
    talk.close()


def test_a_column_that_took_anothers_place_is_asked_by_its_number(node: Node) -> None:
    talk = Talk(node)
    do(
        talk,
        "CREATE TABLE retyped (a int, b int)",
        "CREATE ROLE reader",
        "GRANT SELECT (a) ON retyped TO reader",
    )
    do(talk, "ALTER TABLE retyped ALTER COLUMN a TYPE text USING a::text")
    said = talk.say(
        "SELECT attname, has_column_privilege('reader', attrelid, attnum, 'select') FROM pg_attribute "
        "WHERE attrelid = 'retyped'::regclass AND attnum > 0 ORDER BY attnum"
    )
    assert said.rows == (("a", "t"), ("b", "f"))
    talk.close()
