"""Cursors and nested transactions as drivers use them, on two nodes, and the same said to PostgreSQL."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.clients.conftest import Cluster
from tests.postgres_server import Server

Connection = psycopg.Connection[Any]
Rows = list[tuple[Any, ...]]

ROWS = 5_000
SETUP = (
    "DROP TABLE IF EXISTS told",
    "CREATE TABLE told (k INT PRIMARY KEY, v INT NOT NULL)",
    f"INSERT INTO told SELECT i, 0 FROM generate_series(1, {ROWS}) i",
)


def _change_all(connection: Connection) -> None:
    connection.execute("UPDATE told SET v = v + 1")
    connection.execute("DELETE FROM told WHERE k % 3 = 0")
    connection.execute(f"INSERT INTO told SELECT i, 7 FROM generate_series({ROWS + 1}, {ROWS + 10}) i")


def _a_server_side_cursor(connection: Connection) -> Rows:
    with connection.transaction(), connection.cursor(name="c") as cursor:
        cursor.execute("SELECT k, v FROM told ORDER BY k")
        rows = cursor.fetchmany(10)
        _change_all(connection)
        return rows + cursor.fetchall()


def _a_cursor_that_scrolls(connection: Connection) -> Rows:
    with connection.transaction(), connection.cursor(name="c", scrollable=True) as cursor:
        cursor.execute("SELECT k, v FROM told WHERE v = 0 ORDER BY k")
        rows = cursor.fetchmany(2_000)
        _change_all(connection)
        cursor.scroll(-1_500)
        rows += cursor.fetchmany(1_000)
        cursor.scroll(3_000, mode="absolute")
        return rows + cursor.fetchall()


def _a_cursor_over_a_nested_transaction_that_fails(connection: Connection) -> Rows:
    rows: Rows = []
    with connection.transaction(), connection.cursor(name="c") as cursor:
        connection.execute("UPDATE told SET v = 1 WHERE k < 5")
        cursor.execute("SELECT k, v FROM told ORDER BY k")
        try:
            with connection.transaction():
                rows += cursor.fetchmany(3)
                _change_all(connection)
                rows += cursor.fetchmany(3)
                connection.execute("INSERT INTO told VALUES (1, 1)")
        except psycopg.errors.UniqueViolation:
            rows += cursor.fetchmany(3)
        _change_all(connection)
        return rows + cursor.fetchall()


def _a_cursor_that_is_held(connection: Connection) -> Rows:
    with connection.cursor(name="c", withhold=True) as cursor:
        with connection.transaction():
            cursor.execute("SELECT k, v FROM told ORDER BY k")
            rows = cursor.fetchmany(10)
            _change_all(connection)
        return rows + cursor.fetchall()


def _rows_locked_one_after_the_other(connection: Connection) -> Rows:
    """A driver's way through a table: fetch some rows, change them and others, fetch on."""
    rows: Rows = []
    with connection.transaction(), connection.cursor(name="c") as cursor:
        cursor.execute("SELECT k, v FROM told WHERE k <= 40 ORDER BY k FOR UPDATE")
        while some := cursor.fetchmany(7):
            rows += some
            connection.execute("UPDATE told SET v = v + 1 WHERE k = ANY(%s)", [[k for k, _ in some]])
            connection.execute("UPDATE told SET v = -1 WHERE k = %s", [some[-1][0] + 2])
    return rows


STORIES: tuple[Callable[[Connection], Rows], ...] = (
    _a_server_side_cursor,
    _a_cursor_that_scrolls,
    _a_cursor_over_a_nested_transaction_that_fails,
    _a_cursor_that_is_held,
    _rows_locked_one_after_the_other,
)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__.lstrip("_"))
def test_a_driver_s_cursor_gives_what_it_gives_in_postgres(
    cluster: Cluster, postgres: Server, story: Callable[[Connection], Rows]
) -> None:
    cluster.run(*SETUP)
    with psycopg.connect(postgres.dsn, autocommit=True) as oracle:
        for text in SETUP:
            oracle.execute(text)
        expected = story(oracle), oracle.execute("SELECT * FROM told ORDER BY k").fetchall()
    ours = cluster.connect(0)
    assert (story(ours), cluster.connect(1).execute("SELECT * FROM told ORDER BY k").fetchall()) == expected


@pytest.mark.parametrize("undone", [True, False], ids=["undone", "kept"])
def test_nested_transactions_on_two_nodes_commit_no_write_skew(cluster: Cluster, undone: bool) -> None:
    """What a nested transaction() read stays read when it is undone: one of the two has to give way."""
    cluster.run(*SETUP)
    clients = [cluster.connect(number) for number in (0, 1)]
    for client in clients:
        client.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
    for number, client in enumerate(clients):
        with client.transaction(force_rollback=undone):
            assert client.execute("SELECT v FROM told WHERE k = %s", [2 - number]).fetchone() == (0,)
    failed = []
    for number, client in enumerate(clients):
        try:
            client.execute("UPDATE told SET v = 1 WHERE k = %s", [1 + number])
            client.execute("COMMIT")
        except psycopg.errors.SerializationFailure:
            failed.append(number)
            client.execute("ROLLBACK")
    assert failed == [1]
