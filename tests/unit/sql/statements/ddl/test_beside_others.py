"""What is defined through one node is there on another at once; what others see of a statement."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tenure.node import Node
from tests.unit.sql.sessions import Talk, running


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Node, Node]]:
    with running(tmp_path) as first, running(tmp_path) as second:
        yield first, second


def _connected(node: Node) -> "psycopg.Connection[tuple[object, ...]]":
    assert node.front is not None
    where = f"host={node.front.host} port={node.front.port} user=root dbname=defaultdb"
    return psycopg.connect(where, autocommit=True)


def test_a_table_made_through_one_node_is_used_through_another_at_once(pair: tuple[Node, Node]) -> None:
    with _connected(pair[0]) as here, _connected(pair[1]) as there:
        for round in range(5):
            here.execute(f"CREATE TABLE t{round} (id int PRIMARY KEY, v text)")
            there.execute(f"INSERT INTO t{round} VALUES (1, 'x')")
            there.execute(f"ALTER TABLE t{round} ADD COLUMN w int DEFAULT 7")
            assert here.execute(f"SELECT * FROM t{round}").fetchall() == [(1, "x", 7)]
            here.execute(f"DROP TABLE t{round}")
            with pytest.raises(psycopg.errors.UndefinedTable):
                there.execute(f"SELECT * FROM t{round}")


def test_views_sequences_and_types_are_known_to_all_nodes_at_once(pair: tuple[Node, Node]) -> None:
    with _connected(pair[0]) as here, _connected(pair[1]) as there:
        here.execute("CREATE TYPE mood AS ENUM ('sad', 'glad')")
        there.execute("CREATE TABLE people (name text, mood mood)")
        here.execute("ALTER TYPE mood ADD VALUE 'calm' BEFORE 'glad'")
        there.execute("INSERT INTO people VALUES ('ann', 'calm'), ('bob', 'glad')")
        here.execute("CREATE VIEW moods AS SELECT mood FROM people")
        there.execute("ALTER TABLE people RENAME COLUMN mood TO feeling")
        assert here.execute("SELECT * FROM moods ORDER BY mood").fetchall() == [("calm",), ("glad",)]
        here.execute("CREATE SEQUENCE numbers")
        mine = here.execute("SELECT nextval('numbers')").fetchone()
        theirs = there.execute("SELECT nextval('numbers')").fetchone()
        assert mine != theirs


def test_an_index_made_through_one_node_is_dropped_by_its_name_through_another(
    pair: tuple[Node, Node],
) -> None:
    with _connected(pair[0]) as here, _connected(pair[1]) as there:
        here.execute("CREATE TABLE t (a int)")
        here.execute("CREATE INDEX i ON t (a)")
        with pytest.raises(psycopg.errors.DuplicateTable):
            there.execute("CREATE INDEX i ON t (a)")
        there.execute("DROP INDEX i")
        with pytest.raises(psycopg.errors.UndefinedObject):
            here.execute("DROP INDEX i")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE USER hidden PASSWORD 'plaice'",
        "CREATE ROLE hidden WITH LOGIN ENCRYPTED PASSWORD 'plaice' SUPERUSER",
        "ALTER ROLE root password 'plaice'",
        "ALTER USER root WITH PASSWORD E'pl\\x61ice'",
    ],
)
def test_nobody_sees_the_password_of_a_statement(
    tmp_path: Path, statement: str, caplog: pytest.LogCaptureFixture
) -> None:
    with running(tmp_path) as node:
        talk = Talk(node)
        assert talk.say(statement).sqlstate == ""
        assert "plai" not in talk.session.state.activity.statement
        assert "plai" not in caplog.text
        assert node.front is not None
        services = node.front.services
        assert all("plai" not in repr(each) for each in services.users.all(services.store.snapshot()))
        talk.close()


def test_a_password_is_checked_from_the_next_login_on(tmp_path: Path) -> None:
    with running(tmp_path) as node:
        talk = Talk(node)
        talk.say("CREATE USER ann PASSWORD 'right'")
        assert node.front is not None
        services = node.front.services
        user = services.users.get(services.store.snapshot(), "ann")
        assert user is not None
        assert user.can_login
        assert user.verifier.startswith("SCRAM-SHA-256$")
        talk.say("ALTER USER ann PASSWORD NULL")
        user = services.users.get(services.store.snapshot(), "ann")
        assert user is not None
        assert user.verifier == ""
        talk.close()


def test_roles_are_made_by_superusers_only(tmp_path: Path) -> None:
    with running(tmp_path) as node:
        talk = Talk(node)
        talk.say("CREATE USER ann")
        talk.close()
        ann = Talk(node, user="ann")
        assert ann.say("CREATE USER bob").sqlstate == "42501"
        assert ann.say("ALTER USER root PASSWORD 'x'").sqlstate == "42501"
        assert ann.say("ALTER USER ann SUPERUSER").sqlstate == "42501"
        assert ann.say("DROP USER root").sqlstate == "42501"
        assert ann.say("ALTER USER ann PASSWORD 'x'").sqlstate == ""
        ann.close()


def test_a_name_that_is_too_long_is_cut_and_said_to_be(tmp_path: Path) -> None:
    with running(tmp_path) as node:
        talk = Talk(node)
        long = "x" * 70
        said = talk.say(f"CREATE TABLE {long} (a int)")
        assert said.notices == (("42622", f'identifier "{long}" will be truncated to "{long[:63]}"', ""),)
        assert talk.say(f"SELECT * FROM {long[:63]}").sqlstate == ""
        talk.close()


def test_databases_are_made_renamed_and_dropped_whole(tmp_path: Path) -> None:
    with running(tmp_path) as node:
        talk = Talk(node)
        assert talk.say("CREATE DATABASE d").tag == "CREATE DATABASE"
        assert talk.say("CREATE DATABASE d").sqlstate == "42P04"
        assert talk.say("CREATE DATABASE IF NOT EXISTS d").notices[0][1] == (
            'database "d" already exists, skipping'
        )
        assert talk.say("CREATE SCHEMA d.s").tag == "CREATE SCHEMA"
        assert talk.say("CREATE TABLE d.s.t (a int)").tag == "CREATE TABLE"
        assert talk.say("INSERT INTO d.s.t VALUES (1)").tag == "INSERT 0 1"
        assert talk.say("ALTER DATABASE d RENAME TO e").tag == "ALTER DATABASE"
        assert talk.say("SELECT * FROM e.s.t").rows == (("1",),)
        assert talk.say("DROP DATABASE d").sqlstate == "3D000"
        assert talk.say("DROP DATABASE defaultdb").sqlstate == "55006"
        assert talk.say("DROP DATABASE system").sqlstate == "2BP01"
        assert talk.say("DROP DATABASE e").tag == "DROP DATABASE"
        assert talk.say("SELECT * FROM e.s.t").sqlstate == "42P01"
        assert talk.say("DROP DATABASE IF EXISTS e").notices[0][1] == (
            'database "e" does not exist, skipping'
        )
        talk.close()
