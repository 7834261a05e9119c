"""S15: hostile names and values through every kind of statement: they come back as they are."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from tests.security.node_process import NodeProcess, running

HOSTILE = [
    '"; drop table victims; --',
    "'; drop table victims; --",
    "a\"b'c`d\\e",
    "%s %(x)s {} $1 :x ?",
    "../../etc/passwd",
    "\u202eevil\u202c",
    "tab\tnew\nline\rreturn",
    "\x01\x1b[31m",
    "DROP",
    "naïve 名前 😀",
    "* ? / \\ : % #",
    " ",
]
LONG = "n" * 10_000


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    with running(tmp_path_factory.mktemp("node")) as node:
        with node.connect() as client:
            client.execute("CREATE TABLE victims (id int PRIMARY KEY)")
            client.execute("INSERT INTO victims VALUES (1)")
        yield node


@pytest.fixture
def client(node: NodeProcess) -> Iterator[psycopg.Connection]:
    with node.connect() as client:
        yield client
        assert client.execute("SELECT id FROM victims").fetchall() == [(1,)]


def say(client: psycopg.Connection, text: str, *names: str, **values: object) -> list[tuple[object, ...]]:
    """`text` has {} for each name and %(x)s for values."""
    parts = [sql.Identifier(name) for name in names]
    whole = sql.SQL(text).format(*parts).as_string(client)
    if values:  # psycopg takes every % for a place, in names too
        for name in {each for each in names if "%" in each}:
            whole = whole.replace(_quoted(name), _quoted(name).replace("%", "%%"))
    cursor = client.execute(whole, values or None)
    return cursor.fetchall() if cursor.description else []


def refusal(client: psycopg.Connection, text: str) -> str | None:
    try:
        client.execute(text)
    except psycopg.Error as error:
        return error.sqlstate
    return None


@pytest.mark.parametrize("name", HOSTILE)
def test_a_table_and_all_that_it_has_keep_their_names(client: psycopg.Connection, name: str) -> None:
    say(client, "CREATE TABLE {} ({} int PRIMARY KEY, v text, CONSTRAINT {} CHECK (v <> 'no'))", *[name] * 3)
    say(client, "CREATE INDEX {} ON {} (v)", f"i{name}", name)
    say(client, "INSERT INTO {} ({}, v) VALUES (%(id)s, %(v)s)", name, name, id=1, v=name)
    say(client, "UPDATE {} AS {} SET v = v WHERE {}.{} = 1", *[name] * 4)
    assert say(client, "SELECT {}, v AS {} FROM {}", name, f"x{name}", name) == [(1, name)]
    assert say(client, "SELECT v FROM {} WHERE v = %(v)s ORDER BY {}", name, name, v=name) == [(name,)]
    found = say(client, "SELECT relname FROM pg_class WHERE relname = %(v)s", v=name)
    assert found == [(name,)]
    with pytest.raises(psycopg.errors.CheckViolation) as caught:
        say(client, "INSERT INTO {} VALUES (2, 'no')", name)
    assert caught.value.diag.constraint_name == name
    say(client, "ALTER TABLE {} RENAME COLUMN {} TO {}", name, name, f"c{name}")
    say(client, "ALTER TABLE {} ADD COLUMN {} int DEFAULT 7", name, f"d{name}")
    say(client, "COMMENT ON TABLE {} IS 'none'", name)
    say(client, "DELETE FROM {} WHERE {} = 1", name, f"c{name}")
    say(client, "TRUNCATE {}", name)
    say(client, "DROP TABLE {}", name)


@pytest.mark.parametrize("name", HOSTILE)
def test_other_objects_keep_their_names(client: psycopg.Connection, name: str) -> None:
    say(client, "CREATE SCHEMA {}", name)
    say(client, "CREATE TABLE {}.{} (a int)", name, name)
    say(client, "CREATE VIEW {}.{} AS SELECT a AS {} FROM {}.{}", name, f"v{name}", name, name, name)
    assert say(client, "SELECT {} FROM {}.{}", name, name, f"v{name}") == []
    say(client, "CREATE SEQUENCE {}.{}", name, f"s{name}")
    sequence = sql.Literal(_quoted(name, f"s{name}"))
    assert client.execute(sql.SQL("SELECT nextval({})").format(sequence)).fetchone() == (1,)
    say(client, "DROP SCHEMA {} CASCADE", name)
    say(client, "CREATE DATABASE {}", name)
    assert name in [row[0] for row in say(client, "SHOW DATABASES")]
    say(client, "DROP DATABASE {}", name)
    made = sql.SQL("CREATE TYPE {} AS ENUM ({})").format(sql.Identifier(name), sql.Literal(name))
    client.execute(made)
    assert say(client, "SELECT (%(v)s::{})::text", name, v=name) == [(name,)]
    say(client, "DROP TYPE {}", name)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_a_session_are_kept_apart(client: psycopg.Connection, name: str) -> None:
    say(client, "BEGIN")
    say(client, "SAVEPOINT {}", name)
    say(client, "DECLARE {} CURSOR FOR SELECT 1", name)
    assert say(client, "FETCH ALL FROM {}", name) == [(1,)]
    say(client, "CLOSE {}", name)
    say(client, "ROLLBACK TO SAVEPOINT {}", name)
    say(client, "RELEASE SAVEPOINT {}", name)
    say(client, "COMMIT")
    say(client, "PREPARE {} AS SELECT 2", name)
    assert say(client, "EXECUTE {}", name) == [(2,)]
    say(client, "DEALLOCATE {}", name)
    say(client, "SELECT set_config('application_name', %(v)s, false)", v=name)
    assert say(client, "SELECT 1") == [(1,)]


@pytest.mark.parametrize("name", HOSTILE)
def test_users_keep_their_names_or_are_refused(client: psycopg.Connection, name: str) -> None:
    try:
        say(client, "CREATE USER {}", name)
    except psycopg.Error as error:
        if error.sqlstate not in ("42602", "42939", "22023"):
            raise
        return
    assert name in [row[0] for row in say(client, "SHOW USERS")]
    say(client, "DROP USER {}", name)


@pytest.mark.parametrize("value", HOSTILE)
def test_settings_take_any_value_or_say_what_is_wrong(client: psycopg.Connection, value: str) -> None:
    for setting in ("search_path", "timezone", "datestyle", "statement_timeout", "client_encoding"):
        with pytest.raises(psycopg.Error) if setting not in ("search_path",) else _nothing():
            say(client, "SELECT set_config(%(n)s, %(v)s, false)", n=setting, v=value)
    say(client, "RESET search_path")


def test_a_name_that_is_too_long_is_cut_as_postgresql_cuts_it(client: psycopg.Connection) -> None:
    say(client, "CREATE TABLE {} (a int)", LONG)
    assert say(client, "SELECT relname FROM pg_class WHERE relname LIKE 'nnn%'") == [("n" * 63,)]
    say(client, "DROP TABLE {}", LONG)


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ('CREATE TABLE "" (a int)', "42601"),
        ('CREATE TABLE t ("" int)', "42601"),
        ('SELECT 1 AS ""', "42601"),
        ('SELECT "unterminated', "42601"),
        ("SELECT 'unterminated", "42601"),
        ("SELECT $$unterminated", "42601"),
        ("SELECT /* unterminated", "42601"),
        ("SELECT E'\\000'", "22021"),
        ("SELECT U&'\\0000'", "42601"),
        ("SELECT chr(0)", "54000"),
        ("SELECT '\\x00'::text::bytea", None),
    ],
)
def test_what_is_no_name_or_text_is_refused(
    client: psycopg.Connection, text: str, sqlstate: str | None
) -> None:
    found = refusal(client, text)
    assert found == sqlstate or (sqlstate is not None and found in ("42601", "22021", "22025"))


def test_nul_in_a_statement_never_reaches_the_parser(node: NodeProcess) -> None:
    with node.connect() as client, pytest.raises((psycopg.DataError, ValueError, psycopg.Error)):
        client.execute("SELECT %s", ["a\0b"])


def _quoted(*parts: str) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


class _nothing:  # noqa: N801
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...
