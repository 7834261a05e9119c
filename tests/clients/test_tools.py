"""PostgreSQL's tools, which connect to `postgres` and `template1`; what migrations begin with."""

import subprocess
from typing import Any

import psycopg
import pytest

from tenure.node import Node
from tests.clients.conftest import Cluster
from tests.postgres_server import BIN
from tests.unit.sql.sessions import Talk


def run(cluster: Cluster, tool: str, *arguments: str, node: int = 0) -> str:
    front = cluster.nodes[node].front
    assert front is not None
    command = [str(BIN / tool), "-h", front.host, "-p", str(front.port), "-U", "root", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def databases(cluster: Cluster) -> set[str]:
    found = cluster.connect(1).execute("SELECT datname FROM pg_database").fetchall()
    return {name for (name,) in found}


def test_createdb_and_dropdb(cluster: Cluster) -> None:
    run(cluster, "createdb", "made", "-E", "utf-8", "-T", "template1", "-O", "root")
    assert "made" in databases(cluster)
    run(cluster, "dropdb", "made")
    assert "made" not in databases(cluster)


def test_createuser_and_dropuser(cluster: Cluster) -> None:
    run(cluster, "createuser", "--createdb", "--no-superuser", "ada")
    found = cluster.connect(1).execute("SELECT rolcreatedb, rolsuper FROM pg_roles WHERE rolname = 'ada'")
    assert found.fetchall() == [(True, False)]
    run(cluster, "dropuser", "ada")


@pytest.mark.parametrize("database", ["postgres", "template1"])
def test_tools_connect_to_databases_that_postgresql_has(cluster: Cluster, database: str) -> None:
    assert run(cluster, "psql", "-d", database, "-Atc", "SELECT current_database()") == "defaultdb\n"


def test_a_database_of_that_name_comes_first(cluster: Cluster) -> None:
    cluster.run("CREATE DATABASE postgres")
    try:
        assert run(cluster, "psql", "-d", "postgres", "-Atc", "SELECT current_database()") == "postgres\n"
    finally:
        cluster.run("DROP DATABASE postgres")


def test_another_database_that_is_not_there_is_an_error(cluster: Cluster) -> None:
    with pytest.raises(psycopg.OperationalError, match='database "template9" does not exist'):
        psycopg.connect(cluster.address(database="template9"))


@pytest.fixture(scope="module")
def talk(lone: Node) -> Any:
    return Talk(lone)


@pytest.mark.parametrize(
    ("text", "notice"),
    [
        ("CREATE EXTENSION IF NOT EXISTS plpgsql", 'extension "plpgsql" already exists, skipping'),
        ('CREATE EXTENSION IF NOT EXISTS "uuid-ossp"', "uuid_generate_v4() is built in"),
        ("CREATE EXTENSION pgcrypto WITH SCHEMA public", "gen_random_uuid() is built in"),
    ],
)
def test_extensions_whose_usual_functions_are_built_in_are_accepted(
    talk: Talk, text: str, notice: str
) -> None:
    said = talk.say(text)
    assert said.tag == "CREATE EXTENSION"
    assert said.notices[0][1].startswith(notice)


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("CREATE EXTENSION plpgsql", "42710", 'extension "plpgsql" already exists'),
        ("CREATE EXTENSION IF NOT EXISTS postgis", "0A000", 'extension "postgis" is not available'),
        ("DO $$ BEGIN NULL; END $$", "0A000", "DO is not supported: there is no procedural language"),
        ("PREPARE TRANSACTION 'x'", "0A000", "two-phase commit is not supported"),
        ("COMMIT PREPARED 'x'", "0A000", "two-phase commit is not supported"),
    ],
)
def test_what_cannot_be_is_refused_by_name_and_with_a_hint(
    talk: Talk, text: str, sqlstate: str, message: str
) -> None:
    said = talk.say(text)
    assert (said.sqlstate, said.message) == (sqlstate, message)
    assert said.hint or sqlstate == "42710"
