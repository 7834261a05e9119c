"""IMPORT PGDUMP of what a real pg_dump writes: the same rows, constraints and names on both sides."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.postgres_server import BIN, Server
from tests.unit.lake_nodes import lake_node
from tests.unit.sql.sessions import Said, Talk

SOURCE = Path(__file__).with_name("source.sql").read_text()
DATABASE = f"dumped_{os.getpid()}"

TABLES = (
    "app.teams",
    "app.people",
    "app.pairs",
    "app.refs",
    '"We""ird; Schema"."Tä""ble; --"',
    "no_key",
    "empty",
    "kinds",
    "app.v",
    "app.v2",
)
FLAVOURS = {
    "copy.sql": (),
    "copy.sql.gz": ("--compress=gzip",),
    "inserts.sql": ("--inserts",),
    "inserts.sql.gz": ("--inserts", "--compress=gzip"),
    "columns.sql": ("--column-inserts", "--rows-per-insert=3"),
    "plain.sql": ("--no-owner", "--no-privileges", "--no-comments"),
}


@pytest.fixture(scope="module")
def source(postgres: Server) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres.dsn, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {DATABASE}")
        with psycopg.connect(postgres.dsn, dbname=DATABASE, autocommit=True) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute(SOURCE.encode())
            yield connection
        admin.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dumps")
    (directory / "files").mkdir()
    return directory


@pytest.fixture(scope="module")
def dumps(source: psycopg.Connection[Any], postgres: Server, directory: Path) -> None:
    for name, options in FLAVOURS.items():
        command = [
            str(BIN / "pg_dump"),
            *options,
            "-h",
            "127.0.0.1",
            "-p",
            str(postgres.port),
            "-U",
            "postgres",
        ]
        made = subprocess.run([*command, DATABASE], check=True, capture_output=True)
        (directory / "files" / name).write_bytes(made.stdout)


class Target:
    def __init__(self, talk: Talk) -> None:
        self.talk = talk

    def say(self, text: str) -> Said:
        return self.talk.say(text)

    def rows(self, query: str) -> list[tuple[str | None, ...]]:
        said = self.say(query)
        assert not said.sqlstate, (query, said)
        return sorted(said.rows, key=str)


@pytest.fixture(scope="module", params=FLAVOURS)
def target(
    dumps: None, directory: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Target]:
    """A node that has the dump, in a store of its own."""
    place = tmp_path_factory.mktemp("target")
    (place / "files").symlink_to(directory / "files")
    with lake_node(place) as node:
        talk = Talk(node)
        said = talk.say(f"IMPORT PGDUMP '{request.param}'")
        assert not said.sqlstate, said
        ((_, rows, _, _, rejected),) = said.rows
        assert (rows, rejected) == ("43", "0")
        yield Target(talk)
        talk.close()


def theirs(source: psycopg.Connection[Any], query: str) -> list[tuple[str | None, ...]]:
    cursor = psycopg.RawCursor(source)
    cursor.execute(query)
    result = cursor.pgresult
    assert result is not None
    rows = [
        tuple(_text(result.get_value(row, column)) for column in range(result.nfields))
        for row in range(result.ntuples)
    ]
    return sorted(rows, key=str)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


@pytest.mark.parametrize("table", TABLES)
def test_rows_are_the_same(source: psycopg.Connection[Any], target: Target, table: str) -> None:
    query = f"SELECT * FROM {table}"
    assert target.rows(query) == theirs(source, query)


def test_indexes_have_the_rows_too(target: Target) -> None:
    assert target.rows("SELECT id FROM app.people WHERE email = 'x@y' AND age > 10") == [("100",)]
    assert target.rows("SELECT id FROM app.people WHERE age = 11") == [("100",)]
    assert target.rows("SELECT a, b FROM app.pairs WHERE c = 6") == [("1", "y")]
    assert target.rows("SELECT id FROM app.teams WHERE name = 'b'") == [("2",)]


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("INSERT INTO app.teams (id, name) VALUES (1, 'new')", "23505"),
        ("INSERT INTO app.teams (name) VALUES ('a')", "23505"),
        ("INSERT INTO app.teams (name) VALUES (NULL)", "23502"),
        ("INSERT INTO app.teams (name, mood) VALUES ('c', 'new')", "22P02"),
        ("INSERT INTO app.people (age) VALUES (0)", "23514"),
        ("INSERT INTO app.people (team) VALUES (77)", "23503"),
        ("INSERT INTO app.people (boss) VALUES (77)", "23503"),
        ("INSERT INTO app.people (email, age) VALUES ('x@y', 12)", "23505"),
        ("INSERT INTO app.people (email) VALUES (repeat('x', 51))", "22001"),
        ("INSERT INTO app.pairs VALUES (1, 'x', 9)", "23505"),
        ("INSERT INTO app.pairs VALUES (1, 'z', 5)", "23505"),
        ("INSERT INTO app.refs (b, a) VALUES ('z', 1)", "23503"),
        ("INSERT INTO app.refs (id) VALUES (1)", "428C9"),
        ("DELETE FROM app.pairs", "23503"),
        ("DROP TYPE app.mood", "2BP01"),
        ("DROP TABLE app.teams", "2BP01"),
        ("DROP SEQUENCE app.teams_id_seq", "2BP01"),
        ('INSERT INTO "We""ird; Schema"."Tä""ble; --" VALUES (10, \'\', 0)', "23514"),
    ],
)
def test_constraints_hold_as_they_do_there(
    source: psycopg.Connection[Any], target: Target, text: str, sqlstate: str
) -> None:
    assert target.say(text).sqlstate == sqlstate
    with pytest.raises(psycopg.Error) as caught, source.transaction():
        source.execute(text.encode())
    assert caught.value.sqlstate == sqlstate


def test_deletes_cascade(target: Target) -> None:
    target.say("BEGIN")
    target.say("DELETE FROM app.teams WHERE id = 2")
    assert target.rows("SELECT id FROM app.people") == [("100",)]
    target.say("ROLLBACK")


def test_a_second_import_finds_the_names_taken(target: Target) -> None:
    before = target.rows("SELECT name FROM system.namespace")
    said = target.say("IMPORT PGDUMP 'plain.sql'")
    assert said.sqlstate == "42P06"
    assert said.detail.startswith('file "plain.sql", line ')
    assert target.rows("SELECT name FROM system.namespace") == before


@contextmanager
def fresh(directory: Path, place: Path) -> Iterator[Target]:
    (place / "files").symlink_to(directory / "files")
    with lake_node(place) as node:
        talk = Talk(node)
        yield Target(talk)
        talk.close()


@pytest.mark.parametrize("name", ["copy.sql", "inserts.sql"])
def test_sequences_go_on_where_they_were(dumps: None, directory: Path, tmp_path: Path, name: str) -> None:
    with fresh(directory, tmp_path) as target:
        assert not target.say(f"IMPORT PGDUMP '{name}'").sqlstate
        assert target.rows("SELECT last_value, is_called FROM app.free") == [("5", "t")]
        assert target.rows("SELECT last_value, is_called FROM app.untouched") == [("1", "f")]
        assert target.rows("INSERT INTO app.teams (name) VALUES ('next') RETURNING id, mood") == [("4", "ok")]
        made = target.rows("INSERT INTO app.people DEFAULT VALUES RETURNING id, joined")
        assert made == [("102", "2020-01-01")]
        assert target.rows("INSERT INTO app.refs DEFAULT VALUES RETURNING id") == [("4",)]
        default = 'INSERT INTO "We""ird; Schema"."Tä""ble; --" ("a b") VALUES (11) RETURNING "c;""d"'
        assert target.rows(default) == [("x\ny;'",)]


def test_a_schema_comes_without_rows_and_with_its_comments(
    dumps: None, directory: Path, tmp_path: Path
) -> None:
    with fresh(directory, tmp_path) as target:
        said = target.say("IMPORT PGDUMP 'copy.sql' WITH schema_only")
        ((_, rows, *_),) = said.rows
        assert rows == "0"
        assert target.rows("SELECT count(*) FROM app.people") == [("0",)]
        ((_, text),) = target.rows("SHOW CREATE TABLE app.people")
        for each in ("it''s; people", "'mail'", "two\nlines", "'grown'"):
            assert text is not None
            assert each in text
        (notice,) = [each for each in said.notices if "not taken over" in each[1]]
        assert "GRANT (1)" in notice[2]
        assert "OWNER TO (" in notice[2]
