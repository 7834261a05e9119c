"""ALTER ROLE ... RENAME TO: everything that named the role names it afterwards."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.catalog.accounts.users import Users
from tenure.node import Node
from tests.unit.sql.sessions import ROLE, Oracle, Talk, running
from tests.unit.sql.statements.ddl.test_roles import do, refused, value


@pytest.fixture
def root(nodes: Node) -> Iterator[Talk]:
    talk = Talk(nodes)
    do(talk, "CREATE USER ann", "CREATE ROLE club", "CREATE TABLE t (a int PRIMARY KEY, b int)")
    yield talk
    talk.close()


def test_what_a_role_owns_and_may_do_stays_its_own(root: Talk, nodes: Node) -> None:
    do(root, "CREATE SCHEMA s AUTHORIZATION ann", "CREATE TABLE s.own (a serial)", "GRANT club TO ann")
    do(root, "ALTER TABLE s.own OWNER TO ann", "GRANT SELECT (b) ON t TO ann WITH GRANT OPTION")
    do(root, "GRANT UPDATE ON t TO club", "ALTER DEFAULT PRIVILEGES FOR ROLE ann GRANT ALL ON TABLES TO club")
    do(root, "SET ROLE ann", "GRANT SELECT (b) ON t TO club", "RESET ROLE")
    do(root, "ALTER ROLE ann RENAME TO eve")
    eve = Talk(nodes, user="eve")
    do(eve, "INSERT INTO s.own DEFAULT VALUES", "SELECT b FROM t", "UPDATE t SET b = 1", "SET ROLE club")
    do(eve, "SELECT b FROM t", "RESET ROLE", "CREATE TABLE s.new (a int)", "SET ROLE club")
    do(root, "GRANT USAGE ON SCHEMA s TO club")
    do(eve, "SELECT * FROM s.new", "RESET ROLE")
    do(root, "REVOKE SELECT (b) ON t FROM eve CASCADE")
    assert refused(root, "DROP ROLE ann") == "42704"
    assert root.say("DROP ROLE eve").detail.count("eve") == 1, "default privileges belong to it"
    eve.close()
    do(root, "DROP OWNED BY eve CASCADE", "DROP ROLE eve", "CREATE ROLE ann", "DROP ROLE ann")


def test_a_session_goes_on_under_the_new_name(root: Talk, nodes: Node) -> None:
    do(root, "GRANT SELECT ON t TO ann", "GRANT club TO ann", "GRANT UPDATE ON t TO club")
    user, member = Talk(nodes, user="ann"), Talk(nodes, user="ann")
    do(user, "PREPARE q AS SELECT * FROM t", "EXECUTE q")
    do(member, "SET ROLE club")
    do(root, "ALTER ROLE ann RENAME TO eve", "ALTER ROLE club RENAME TO team")
    do(user, "EXECUTE q")
    assert value(user, "SELECT current_user || session_user") == "eveeve"
    do(member, "UPDATE t SET b = 1")
    assert value(member, "SELECT current_user || session_user") == "teameve"
    user.close()
    member.close()


def test_a_session_of_a_dropped_role_is_not_that_of_its_namesake(root: Talk, nodes: Node) -> None:
    user = Talk(nodes, user="ann")
    do(user, "SELECT 1")
    do(root, "DROP ROLE ann", "CREATE USER ann SUPERUSER")
    assert refused(user, "SELECT * FROM public.t") == "42501"
    assert refused(user, "CREATE ROLE mine") == "42501"
    do(root, "ALTER ROLE ann RENAME TO eve", "ALTER ROLE club RENAME TO ann", "GRANT SELECT ON t TO ann")
    assert refused(user, "SELECT * FROM public.t") == "42501"
    user.close()


def test_a_session_that_never_spoke_is_not_that_of_its_namesake(root: Talk, nodes: Node) -> None:
    user = Talk(nodes, user="ann")
    do(root, "DROP ROLE ann", "CREATE USER ann SUPERUSER")
    assert refused(user, "SELECT * FROM public.t") == "42501"
    assert refused(user, "CREATE ROLE mine") == "42501"
    user.close()


def test_reset_role_leads_back_to_the_role_that_logged_in(root: Talk, nodes: Node) -> None:
    user = Talk(nodes, user="ann")
    do(root, "ALTER ROLE ann RENAME TO eve", "CREATE ROLE ann", "GRANT ann TO eve")
    do(user, "SET ROLE ann")
    assert value(user, "SELECT current_user || session_user") == "anneve"
    do(user, "RESET ROLE")
    assert value(user, "SELECT current_user || session_user") == "eveeve"
    user.close()


def test_a_renamed_user_logs_in_with_the_same_password(root: Talk, nodes: Node) -> None:
    do(root, "ALTER ROLE ann PASSWORD 'secret'", "ALTER ROLE ann RENAME TO eve")
    snapshot = nodes.store.snapshot()
    users = Users(nodes.store.keyspace)
    assert users.get(snapshot, "ann") is None
    eve = users.get(snapshot, "eve")
    assert eve is not None
    assert eve.verifier.startswith("SCRAM-SHA-256$")


def test_a_rename_is_undone_with_its_block(root: Talk, nodes: Node) -> None:
    do(
        root,
        "CREATE SCHEMA s AUTHORIZATION ann",
        "BEGIN",
        "ALTER ROLE ann RENAME TO eve",
        "SET LOCAL ROLE eve",
    )
    do(root, "CREATE TABLE s.x (a int)", "ROLLBACK")
    user = Talk(nodes, user="ann")
    do(user, "CREATE TABLE s.x (a int)")
    user.close()
    do(root, "BEGIN", "SAVEPOINT p", "ALTER ROLE ann RENAME TO eve", "ROLLBACK TO p", "COMMIT")
    assert refused(root, "DROP ROLE eve") == "42704"


def test_a_rename_counts_on_another_node_when_it_returns(tmp_path: Path) -> None:
    with running(tmp_path) as here, running(tmp_path) as there:
        root = Talk(here)
        do(root, "CREATE USER ann", "CREATE TABLE t (a int PRIMARY KEY)", "GRANT SELECT ON t TO ann")
        user, other = Talk(there, user="ann"), Talk(there)
        do(user, "SELECT * FROM t")
        do(root, "ALTER ROLE ann RENAME TO eve")
        do(user, "SELECT * FROM t")
        do(other, "REVOKE SELECT ON t FROM eve")
        assert refused(user, "SELECT * FROM t") == "42501"
        for each in (root, user, other):
            each.close()


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER ROLE role_a RENAME TO role_b",
        "ALTER ROLE role_a RENAME TO pg_mine",
        "ALTER ROLE role_missing RENAME TO role_c",
        "ALTER ROLE role_a RENAME TO role_c",
        "ALTER ROLE role_super RENAME TO role_c",
        "ALTER ROLE role_maker RENAME TO role_c",
        "ALTER USER role_a RENAME TO role_c",
        "ALTER GROUP role_a RENAME TO role_c",
    ],
)
def test_renames_are_let_or_refused_as_by_postgresql(node: Node, oracle: Oracle, statement: str) -> None:
    talk = Talk(node)
    said: list[dict[str, str]] = []
    for side in (talk, oracle):
        for each in ("role_maker CREATEROLE", "role_b", "role_super SUPERUSER", "role_plain"):
            do(side, f"CREATE ROLE {each}".replace("role_", ROLE))  # type: ignore[arg-type]
        do(side, *(f"{each}".replace("role_", ROLE) for each in MADE_BY_MAKER))  # type: ignore[arg-type]
        answers = {}
        for role in ("root", "maker", "plain"):
            side.say("BEGIN")
            if role != "root":
                side.say(f"SET LOCAL ROLE {ROLE}{role}")
            answers[role] = side.say(statement.replace("role_", ROLE)).sqlstate
            side.say("ROLLBACK")
        said.append(answers)
        for role in ("a", "b", "super", "plain", "maker"):
            side.say(f"DROP ROLE {ROLE}{role}")
    talk.close()
    assert said[0] == said[1]


MADE_BY_MAKER = ("SET ROLE role_maker", "CREATE ROLE role_a", "RESET ROLE")
