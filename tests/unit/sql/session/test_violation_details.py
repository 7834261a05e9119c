"""Errors of constraints show keys and rows to those who may read them, as PostgreSQL does."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.postgres_server import Server
from tests.unit.sql.served import Served, serving

SETUP = """
CREATE TABLE u (a int PRIMARY KEY);
CREATE TABLE t (a int PRIMARY KEY, b int UNIQUE, c int NOT NULL CHECK (c > 0), d int REFERENCES u);
INSERT INTO u VALUES (1);
INSERT INTO t VALUES (1, 10, 5, 1), (2, 20, 5, NULL);
CREATE ROLE reader LOGIN;
CREATE ROLE columns LOGIN;
CREATE ROLE writer LOGIN;
GRANT ALL ON t, u TO reader;
GRANT INSERT, UPDATE, DELETE ON t, u TO columns, writer;
GRANT SELECT (a, b) ON t TO columns;
""".strip().split("\n")

STATEMENTS = [
    "INSERT INTO t VALUES (1, 30, 5, NULL)",
    "INSERT INTO t VALUES (3, 10, 5, NULL)",
    "UPDATE t SET b = 10",
    "INSERT INTO t VALUES (3, 30, 5, 7)",
    "UPDATE t SET d = 9",
    "DELETE FROM u",
]
"""Their details are PostgreSQL's."""
FAILING_ROWS = ["UPDATE t SET c = 0", "UPDATE t SET c = NULL", "INSERT INTO t VALUES (4, 4, -1, NULL)"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("details")) as made:
        for each in SETUP:
            made.tag(each)
        yield made


def _detail(connection: "psycopg.Connection[tuple[object, ...]]", statement: str) -> str | None:
    with pytest.raises(psycopg.errors.IntegrityError) as caught:
        connection.execute(statement.encode())
    return caught.value.diag.message_detail


@pytest.mark.parametrize("role", ["reader", "columns", "writer"])
def test_keys_are_shown_as_by_postgresql(served: Served, postgres: Server, role: str) -> None:
    with psycopg.connect(postgres.dsn) as theirs, served.connect(role) as ours:
        for each in SETUP:
            theirs.execute(each.encode())
        for each in STATEMENTS:
            theirs.execute(f"SET LOCAL ROLE {role}".encode())
            theirs.execute("SAVEPOINT before")
            expected = _detail(theirs, each)
            theirs.execute("ROLLBACK TO before")
            assert _detail(ours, each) == expected, each
        theirs.rollback()


def test_a_failing_row_is_shown_to_those_who_may_read_the_table(served: Served) -> None:
    for each in FAILING_ROWS:
        with served.connect("reader") as reader, served.connect("writer") as writer:
            assert str(_detail(reader, each)).startswith("Failing row contains")
            assert _detail(writer, each) is None


def test_a_block_shows_no_more(served: Served) -> None:
    with served.connect("writer") as writer:
        for each in ("BEGIN", "SAVEPOINT s"):
            writer.execute(each.encode())
        assert _detail(writer, "INSERT INTO t VALUES (1, 30, 5, NULL)") is None
        writer.execute("ROLLBACK TO s")
        assert _detail(writer, "UPDATE t SET c = 0") is None
        writer.execute("ROLLBACK")


def test_a_prepared_statement_shows_no_more(served: Served) -> None:
    with served.connect("writer") as writer, pytest.raises(psycopg.errors.UniqueViolation) as caught:
        writer.execute("INSERT INTO t VALUES (%s, 30, 5, NULL)", [1], prepare=True)
    assert caught.value.diag.message_detail is None
