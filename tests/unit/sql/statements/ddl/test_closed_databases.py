"""Databases that a user may not connect to: nothing in them is read or shown from another one."""

from collections.abc import Iterator

import pytest

from tenure.node import Node
from tests.unit.sql.sessions import Talk
from tests.unit.sql.statements.ddl.test_roles import do, refused


@pytest.fixture(scope="module")
def closed(node: Node) -> Iterator[Talk]:
    """A user who may read a table of a database, but not connect to that."""
    root = Talk(node)
    do(
        root,
        *("CREATE USER guest", "CREATE DATABASE closed", "REVOKE CONNECT ON DATABASE closed FROM PUBLIC"),
        *(
            "CREATE TABLE closed.public.hidden_t (a int)",
            "CREATE VIEW closed.public.hidden_v AS SELECT a FROM closed.public.hidden_t",
        ),
        *("GRANT ALL ON closed.public.hidden_t TO guest", "GRANT SELECT ON closed.public.hidden_v TO guest"),
        *(
            "CREATE SCHEMA closed.hidden_s",
            "CREATE SNAPSHOT hidden_kept FOR TABLE closed.public.hidden_t",
            "CREATE SCHEMA hers AUTHORIZATION guest",
        ),
    )
    guest = Talk(node, user="guest")
    yield guest
    guest.close()
    root.close()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM closed.public.hidden_t",
        "SELECT * FROM closed.public.missing",
        "COPY closed.public.hidden_t TO STDOUT",
        "INSERT INTO closed.public.hidden_t VALUES (1)",
        "SELECT * FROM closed.public.hidden_t AS OF SYSTEM TIME '-1us'",
        "SELECT 'closed.public.hidden_t'::regclass",
        "SHOW CREATE TABLE closed.public.hidden_t",
        "CREATE TABLE hers.copy (LIKE closed.public.hidden_t)",
        "CREATE TABLE closed.public.x (a int)",
        "SHOW COLUMNS FROM closed.public.hidden_t",
    ],
)
def test_another_database_needs_the_right_to_connect_to_it(closed: Talk, statement: str) -> None:
    assert refused(closed, statement) == "42501"


@pytest.mark.parametrize(
    "table",
    [
        *("tables", "columns", "indexes", "create_statements", "dump", "schemas", "descriptor_cache"),
        *("zone_configurations", "snapshots", "cross_database_references", "grants"),
    ],
)
def test_objects_of_a_closed_database_are_not_listed(closed: Talk, table: str) -> None:
    rows = closed.say(f"SELECT * FROM tenure_internal.{table}").rows
    shown = [row for row in rows if any("hidden" in str(value) for value in row)]
    assert shown == []


def test_a_prepared_statement_loses_another_database(node: Node) -> None:
    root = Talk(node)
    do(root, "CREATE USER visitor", "CREATE DATABASE shut", "CREATE TABLE shut.public.t (a int)")
    do(root, "GRANT SELECT ON shut.public.t TO visitor")
    guest = Talk(node, user="visitor")
    do(guest, "PREPARE q AS SELECT * FROM shut.public.t", "EXECUTE q")
    do(root, "REVOKE CONNECT ON DATABASE shut FROM PUBLIC")
    assert refused(guest, "EXECUTE q") == "42501"
    guest.close()
    root.close()
