"""Statements sent together of which one commits by itself: what follows it answers as in PostgreSQL."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.postgres_server import Server
from tests.unit.sql.served import Served, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("together")) as node:
        yield node


def answers(connection: "psycopg.Connection[Any]", statements: list[str]) -> list[str]:
    """The tags, warnings and SQLSTATEs of statements that one Sync ends."""
    found: list[str] = []
    connection.add_notice_handler(lambda each: found.append(f"{each.severity} {each.message_primary}"))
    try:
        with connection.pipeline():
            cursors = [connection.cursor() for _ in statements]
            for cursor, statement in zip(cursors, statements, strict=True):
                cursor.execute(statement.encode())
    except psycopg.Error as error:
        found.append(f"{error.sqlstate} {error.diag.message_primary}")
    return found + [cursor.statusmessage or "" for cursor in cursors]


@pytest.mark.parametrize(
    "statements",
    [
        ["DISCARD ALL", "SET LOCAL work_mem = '1MB'"],
        ["SELECT 1", "SET LOCAL work_mem = '1MB'"],
        ["DISCARD ALL", "DISCARD ALL"],
        ["SELECT 1", "DISCARD ALL"],
        ["DISCARD ALL", "SELECT 1", "DISCARD ALL"],
        ["DISCARD ALL", "COMMIT"],
    ],
)
def test_a_statement_after_one_that_commits_by_itself_is_the_first_of_others(
    served: Served, postgres: Server, statements: list[str]
) -> None:
    with psycopg.connect(postgres.dsn, autocommit=True) as theirs:
        expected = answers(theirs, statements)
    with served.connect() as ours:
        assert answers(ours, statements) == expected
