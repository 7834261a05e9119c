"""Roles and memberships, as statements change them and sessions act by them."""

from pathlib import Path

import pytest

from tenure.base.errors import InsufficientPrivilege
from tenure.node import Node
from tests.unit.sql.sessions import Talk, running


def refused(talk: Talk, statement: str) -> str:
    said = talk.say(statement)
    assert said.sqlstate, f"{statement} should be refused"
    return said.sqlstate


def do(talk: Talk, *statements: str) -> None:
    for each in statements:
        said = talk.say(each)
        assert said.sqlstate == "", f"{each}: {said}"


def value(talk: Talk, query: str) -> object:
    return talk.say(query).rows[0][0]


def test_roles_and_memberships_are_made_changed_and_dropped(nodes: Node) -> None:
    talk = Talk(nodes)
    do(
        talk,
        "CREATE ROLE editors",
        "CREATE ROLE readers NOINHERIT",
        "CREATE USER ann IN ROLE editors ROLE readers",
        "GRANT editors TO readers WITH ADMIN TRUE, SET FALSE",
        "REVOKE ADMIN OPTION FOR editors FROM readers",
        "ALTER ROLE readers LOGIN CREATEDB",
        "REVOKE editors FROM readers",
        "DROP ROLE readers",
    )
    assert refused(talk, "GRANT ann TO editors") == "0LP01"
    assert refused(talk, "GRANT ann TO ann") == "0LP01"
    assert refused(talk, "GRANT nobody TO ann") == "42704"
    assert refused(talk, "CREATE ROLE ann") == "42710"
    assert refused(talk, "DROP ROLE root") == "55006"
    do(talk, "DROP ROLE editors, ann")
    talk.close()


def test_a_role_is_there_in_the_block_that_makes_it_and_gone_with_it(nodes: Node) -> None:
    talk = Talk(nodes)
    do(talk, "BEGIN", "CREATE ROLE a", "CREATE ROLE b ROLE a", "SAVEPOINT s", "DROP ROLE a")
    do(talk, "ROLLBACK TO s", "SET ROLE a")
    assert value(talk, "SELECT current_user") == "a"
    do(talk, "ROLLBACK")
    assert value(talk, "SELECT current_user") == "root"
    assert refused(talk, "DROP ROLE a") == "42704"
    talk.close()


@pytest.mark.invariant("role-objects")
def test_a_role_that_owns_something_is_not_dropped_and_is_told_what(nodes: Node) -> None:
    talk = Talk(nodes)
    do(talk, "CREATE ROLE ann", "CREATE SCHEMA hers AUTHORIZATION ann", "CREATE TABLE hers.t (a int)")
    do(talk, "ALTER TABLE hers.t OWNER TO ann")
    said = talk.say("DROP ROLE ann")
    assert (said.sqlstate, said.detail) == ("2BP01", "owner of schema hers\nowner of table t")
    assert said.hint == "Use REASSIGN OWNED and DROP OWNED in each database first."
    do(talk, "BEGIN", "DROP SCHEMA hers CASCADE", "DROP ROLE ann", "ROLLBACK")
    assert refused(talk, "DROP ROLE ann") == "2BP01"
    do(talk, "DROP SCHEMA hers CASCADE", "DROP ROLE ann")
    talk.close()


def test_set_role_is_for_members_and_a_rollback_undoes_it(nodes: Node) -> None:
    root = Talk(nodes)
    do(root, "CREATE USER ann", "CREATE ROLE editors ROLE ann", "CREATE ROLE others")
    ann = Talk(nodes, user="ann")
    assert refused(ann, "SET ROLE others") == "42501"
    assert refused(ann, "SET ROLE root") == "42501"
    assert refused(ann, "SET ROLE nobody") == "22023"
    assert refused(ann, "SELECT set_config('role', 'root', false)") == "42501"
    do(ann, "SET ROLE editors")
    assert ann.say("SELECT current_user, session_user, current_setting('role')").rows == (
        ("editors", "ann", "editors"),
    )
    do(ann, "BEGIN", "SET LOCAL ROLE ann", "COMMIT")
    assert value(ann, "SELECT current_user") == "editors"
    do(ann, "RESET ROLE")
    do(ann, "BEGIN", "SET ROLE editors", "ROLLBACK")
    assert value(ann, "SELECT current_user") == "ann"
    ann.close()
    root.close()


def test_a_session_cannot_be_opened_in_a_role_that_its_user_may_not_have(nodes: Node) -> None:
    root = Talk(nodes)
    do(root, "CREATE USER ann")
    root.close()
    assert nodes.front is not None
    with pytest.raises(InsufficientPrivilege, match="permission denied to set role"):
        nodes.front.sessions.open(user="ann", database="defaultdb", options={"role": "root"})


def test_a_role_with_createrole_gives_no_more_than_it_has(nodes: Node) -> None:
    root = Talk(nodes)
    do(root, "CREATE USER maker CREATEROLE", "CREATE ROLE secret")
    maker = Talk(nodes, user="maker")
    do(maker, "CREATE ROLE mine", "GRANT mine TO maker", "SET ROLE mine", "RESET ROLE")
    assert refused(maker, "CREATE ROLE x SUPERUSER") == "42501"
    assert refused(maker, "ALTER ROLE mine SUPERUSER") == "42501"
    assert refused(maker, "GRANT secret TO maker") == "42501"
    assert refused(maker, "GRANT root TO maker") == "42501"
    assert refused(maker, "ALTER ROLE root PASSWORD 'x'") == "42501"
    assert refused(maker, "DROP ROLE secret") == "42501"
    do(maker, "DROP ROLE mine")
    maker.close()
    root.close()


def test_the_admin_option_goes_with_what_was_granted_by_it(nodes: Node) -> None:
    root = Talk(nodes)
    do(root, "CREATE USER ann", "CREATE ROLE bob", "CREATE ROLE club")
    do(root, "GRANT club TO ann WITH ADMIN OPTION")
    ann = Talk(nodes, user="ann")
    do(ann, "GRANT club TO bob")
    assert refused(root, "REVOKE club FROM ann") == "2BP01"
    assert refused(root, "DROP ROLE ann") == "2BP01"
    do(root, "REVOKE club FROM ann CASCADE", "DROP ROLE club")
    ann.close()
    root.close()


def test_two_nodes_together_make_no_cycle(tmp_path: Path) -> None:
    with running(tmp_path) as here, running(tmp_path) as there:
        one, other = Talk(here), Talk(there)
        do(one, "CREATE ROLE a", "CREATE ROLE b")
        do(one, "BEGIN", "GRANT a TO b")
        do(other, "BEGIN", "GRANT b TO a")
        do(one, "COMMIT")
        assert refused(other, "COMMIT") == "40001"
        assert refused(other, "GRANT b TO a") == "0LP01"
        one.close()
        other.close()


def test_a_table_and_the_drop_of_its_owner_do_not_both_commit(tmp_path: Path) -> None:
    with running(tmp_path) as here, running(tmp_path) as there:
        one, other = Talk(here), Talk(there)
        do(one, "CREATE ROLE a", "CREATE TABLE t (a int)")
        do(other, "BEGIN", "ALTER TABLE t OWNER TO a")
        do(one, "DROP ROLE a")
        assert refused(other, "COMMIT") in ("40001", "42704")
        one.close()
        other.close()


def test_a_role_can_own_what_its_own_transaction_makes(nodes: Node) -> None:
    talk = Talk(nodes)
    do(talk, "BEGIN", "CREATE ROLE fresh", "CREATE SCHEMA s AUTHORIZATION fresh", "COMMIT")
    assert talk.say("DROP ROLE fresh").detail == "owner of schema s"
    talk.close()
