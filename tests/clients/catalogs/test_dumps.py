"""pg_dump of a node: PostgreSQL and Tenure load it, and what they then dump is the same."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from tests.clients.catalogs.world import Side
from tests.postgres_server import BIN

MORE = """
INSERT INTO users (name, price, tags, at) VALUES ('ann', 200, '{a,b}', '2020-01-02');
INSERT INTO users (name, price, tags, at) VALUES ('tab	"''\\', 5, '{}', NULL);
INSERT INTO app.orders (user_id, note, total, d) VALUES (1, 'x', 2.5, '2020-01-02');
INSERT INTO app.orders (user_id, note, total, d) VALUES (NULL, NULL, 'NaN', NULL);
INSERT INTO pair VALUES (1, 'b', 3);
INSERT INTO sub VALUES (1, 'b'), (NULL, 'b');
CREATE VIEW moody (who, total) AS SELECT u.name, o.total FROM users u JOIN app.orders o ON o.user_id = u.id
    WHERE u.feeling = 'ok'::mood;
CREATE VIEW above AS SELECT * FROM moody;
CREATE VIEW a_named_first AS WITH users AS (SELECT 1 AS id) SELECT users.id, count(*) FROM users GROUP BY id;
CREATE VIEW fixed AS VALUES (1, 'a');
GRANT SELECT (name), UPDATE (name) ON users TO reader;
ALTER TABLE app.orders ALTER COLUMN id RESTART WITH 1000;
SELECT setval('users_id_seq', 50), setval('counter', 7, false);
"""
QUERIES = [
    *(f"SELECT * FROM {name}" for name in ("moody", "above", "a_named_first", "fixed", "rich")),
    "SELECT * FROM users ORDER BY id",
    "SELECT * FROM app.orders ORDER BY id",
    "SELECT nextval('counter')",
    "SELECT attname, attacl::text FROM pg_attribute WHERE attrelid = 'users'::regclass AND attnum > 0",
]


def _run(program: str, side: Side, *arguments: str, given: str = "") -> str:
    where = ["-h", side.host, "-p", str(side.port), "-U", side.user, "-d", side.database]
    done = subprocess.run(
        [BIN / program, *where, *arguments],
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def _dump(side: Side, *options: str) -> str:
    """Without what names a version or one run, and with the superuser in one spelling."""
    text = _run("pg_dump", side, *options)
    text = re.sub(r"^(\\(un)?restrict|-- Dumped from) .*$", "", text, flags=re.MULTILINE)
    return re.sub(rf"\b{side.user}\b", "SUPERUSER", text)


def _load(side: Side, dump: str) -> None:
    text = dump.replace("SUPERUSER", side.user)
    _run("psql", side, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null", given=text)


def _same_place(side: Side, name: str) -> Side:
    side.run(f"CREATE DATABASE {name}")
    return side._replace(database=name)


@pytest.fixture(scope="module")
def filled(ours: Side) -> Side:
    ours.run("ALTER DEFAULT PRIVILEGES IN SCHEMA app GRANT SELECT ON TABLES TO reader")
    ours.run(MORE)
    return ours


@pytest.fixture
def empty_of_postgres(theirs: Side) -> Iterator[Side]:
    side = _same_place(theirs, f"loaded_{uuid4().hex[:12]}")
    yield side
    theirs.run(f"DROP DATABASE {side.database} WITH (FORCE)")


@pytest.fixture
def empty_of_ours(ours: Side) -> Side:
    return _same_place(ours, f"loaded_{uuid4().hex[:12]}")


def test_postgresql_loads_a_dump_and_has_the_same_objects_and_rows(
    filled: Side, empty_of_postgres: Side
) -> None:
    _load(empty_of_postgres, _dump(filled))
    for query in QUERIES:
        assert _answers(empty_of_postgres, query) == _answers(filled, query)
    without_views = (f"--exclude-table={each}" for each in ("rich", "moody", "a*", "fixed"))
    options = ["--schema-only", *without_views]
    assert _dump(empty_of_postgres, *options) == _dump(filled, *options)


def _answers(side: Side, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(side.dsn, autocommit=True) as connection:
        rows = connection.execute(query.encode()).fetchall()
    return [tuple(str(each).replace(side.user, "SUPERUSER") for each in row) for row in rows]


def test_tenure_loads_its_own_dump_and_dumps_the_same_again(filled: Side, empty_of_ours: Side) -> None:
    dump = _dump(filled)
    _load(empty_of_ours, dump)
    assert _dump(empty_of_ours) == dump


def test_tenure_loads_a_dump_of_postgresql(theirs: Side, empty_of_ours: Side) -> None:
    dump = _dump(theirs)
    _load(empty_of_ours, dump)
    tables = [part for part in dump.split("\n--\n") if part.startswith("\nCREATE TABLE")]
    again = _dump(empty_of_ours)
    assert len(tables) == 5
    assert [part for part in again.split("\n--\n") if part.startswith("\nCREATE TABLE")] == tables


def test_several_processes_dump_and_restore_together(
    filled: Side, empty_of_ours: Side, tmp_path: Path
) -> None:
    directory = str(tmp_path / "dump")
    _run("pg_dump", filled, "-Fd", "-j", "2", "-f", directory)
    _run("pg_restore", empty_of_ours, "-j", "2", directory)
    assert _dump(empty_of_ours) == _dump(filled)


@pytest.mark.parametrize("form", ["--inserts", "--serializable-deferrable", "--create", "--clean", "-Fc"])
def test_other_forms_of_a_dump_are_made(filled: Side, form: str, tmp_path: Path) -> None:
    _run("pg_dump", filled, form, "-f", str(tmp_path / "dump"))
    assert (tmp_path / "dump").stat().st_size


def test_a_user_without_rights_is_told_so(filled: Side) -> None:
    filled.run("CREATE ROLE nobody_here LOGIN PASSWORD 'secret'")
    plain = filled._replace(user="nobody_here")
    done = subprocess.run(
        [BIN / "pg_dump", f"{plain.dsn} password=secret"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "permission denied for" in done.stderr


def test_all_databases_are_dumped_with_their_roles(filled: Side) -> None:
    where = ["-h", filled.host, "-p", str(filled.port), "-U", filled.user, "-l", filled.database]
    done = subprocess.run(
        [BIN / "pg_dumpall", *where], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "CREATE ROLE reader" in done.stdout
    assert "CREATE TABLE public.users" in done.stdout
