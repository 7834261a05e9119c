"""What users without a right must not reach, and what they are answered: as PostgreSQL answers them."""

import pytest

from tenure.node import Node
from tests.unit.sql.sessions import Oracle, Talk, compare
from tests.unit.sql.statements.ddl.test_roles import do, refused

BEGINNING = """
CREATE ROLE role_owner
CREATE ROLE role_guest
CREATE SCHEMA app AUTHORIZATION role_owner
CREATE SCHEMA hers AUTHORIZATION role_guest
GRANT USAGE ON SCHEMA app TO role_guest
SET ROLE role_owner
"""


def compare_as_guest(node: Node, oracle: Oracle, by_owner: str, by_guest: str) -> None:
    """Says statements of an owner, then those of a user that may only name what is in the owner's schema."""
    ends = "RESET ROLE\nDROP OWNED BY role_owner, role_guest CASCADE\nDROP ROLE role_owner, role_guest"
    compare(node, oracle, "\n".join((BEGINNING, by_owner, "SET ROLE role_guest", by_guest, ends)))


@pytest.mark.parametrize(
    "call",
    ["tenure_nextval({})", "tenure_setval({}, 7)", "pg_catalog.tenure_nextval({})"],
)
def test_functions_of_the_binder_cannot_be_called(node: Node, call: str) -> None:
    talk = Talk(node)
    do(talk, "CREATE SEQUENCE IF NOT EXISTS counted", "SELECT nextval('counted')")
    id = talk.say("SELECT 'counted'::regclass::oid").rows[0][0]
    assert refused(talk, f"SELECT {call.format(id)}") == "42883"
    talk.close()


def test_defaults_show_calls_of_sequences_as_they_are_written(node: Node, oracle: Oracle) -> None:
    script = """
CREATE SEQUENCE q
CREATE TABLE t (a bigint DEFAULT setval('q', '5'), b bigint DEFAULT currval('q'))
ALTER TABLE t ADD COLUMN c bigint, ALTER COLUMN c SET DEFAULT setval('q', '1', false)
SELECT column_name, column_default FROM information_schema.columns WHERE table_name = 't' ORDER BY 1
"""
    compare(node, oracle, script)
