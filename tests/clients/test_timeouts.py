"""Statements, transactions and sessions that take too long, and statements that somebody cancels."""

import select
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.errors import LockNotAvailable, QueryCanceled

from tests.clients.conftest import Cluster

SOON_SECONDS = 10.0
"""Generous: the machine may be busy. What is stopped would take minutes."""

LONG = {
    "a sleep": "SELECT pg_sleep(300)",
    "a row lock": "UPDATE busy SET n = 2 WHERE id = 1",
    "an advisory lock": "SELECT pg_advisory_lock(1234)",
    "a query by rows": "SELECT count(*) FROM generate_series(1, 1000000000) g",
    "a join in DuckDB": "SELECT sum(a.n * b.n * c.n * d.n) FROM busy a, busy b, busy c, busy d",
    "an insert": "INSERT INTO busy SELECT g, length(pg_sleep(1)::text) FROM generate_series(501, 9999) g",
}


@pytest.fixture
def busy(cluster: Cluster) -> Iterator[Cluster]:
    """A table of 500 rows; the first of them, and a number, are locked by somebody."""
    cluster.run(
        "DROP TABLE IF EXISTS busy",
        "CREATE TABLE busy (id INT PRIMARY KEY, n INT)",
        "INSERT INTO busy SELECT g, g FROM generate_series(1, 500) g",
    )
    holder = cluster.connect(1)
    holder.execute("SELECT pg_advisory_lock(1234)")
    holder.execute("BEGIN")
    holder.execute("SELECT 1 FROM busy WHERE id = 1 FOR UPDATE")
    yield cluster
    holder.close()


@pytest.mark.parametrize("what", LONG)
def test_statement_timeout_ends(busy: Cluster, what: str) -> None:
    client = busy.connect(0)
    client.execute("SET statement_timeout = '200ms'")
    began = time.monotonic()
    with pytest.raises(QueryCanceled, match="statement timeout"):
        client.execute(LONG[what])
    assert time.monotonic() - began < SOON_SECONDS
    client.execute("SET statement_timeout = 0")
    assert client.execute("SELECT count(*) FROM busy").fetchone() == (500,)


@pytest.mark.parametrize("what", LONG)
def test_a_cancel_ends(busy: Cluster, what: str) -> None:
    client = busy.connect(0)
    timer = threading.Timer(0.3, client.cancel_safe)
    timer.start()
    began = time.monotonic()
    with pytest.raises(QueryCanceled, match="user request"):
        client.execute(LONG[what])
    assert time.monotonic() - began < SOON_SECONDS
    timer.join()


def test_a_cancel_reaches_a_session_of_another_node(busy: Cluster) -> None:
    client = busy.connect(0)
    other = busy.nodes[1].front
    assert other is not None
    pid = client.info.backend_pid
    request = b"".join(number.to_bytes(4, "big") for number in (16, 80877102, pid, _secret(busy, pid)))

    def cancel() -> None:
        with socket.create_connection((other.host, other.port)) as connection:
            connection.sendall(request)
            connection.recv(1)

    timer = threading.Timer(0.3, cancel)
    timer.start()
    with pytest.raises(QueryCanceled):
        client.execute("SELECT pg_sleep(300)")
    timer.join()


def _secret(cluster: Cluster, pid: int) -> int:
    """What the client was given at its start: libpq keeps it to itself, its node's door knows it too."""
    front = cluster.nodes[0].front
    assert front is not None
    return int.from_bytes(front._server._seats._occupied[pid].secret, "big")


def test_a_session_is_known_by_the_pid_that_its_client_got(cluster: Cluster) -> None:
    client = cluster.connect(1)
    assert client.execute("SELECT pg_backend_pid()").fetchone() == (client.info.backend_pid,)


def test_statement_timeout_ends_a_schema_change_that_waits(busy: Cluster) -> None:
    user, changer = busy.connect(1), busy.connect(0)
    user.execute("BEGIN")
    user.execute("SELECT count(*) FROM busy")
    changer.execute("SET statement_timeout = '500ms'")
    began = time.monotonic()
    with pytest.raises(QueryCanceled):
        changer.execute("ALTER TABLE busy ADD COLUMN late INT NOT NULL DEFAULT 5")
    assert time.monotonic() - began < SOON_SECONDS
    user.execute("ROLLBACK")


def test_lock_timeout_ends_a_wait(busy: Cluster) -> None:
    client = busy.connect(0)
    client.execute("SET lock_timeout = '100ms'")
    with pytest.raises(LockNotAvailable, match="lock timeout"):
        client.execute(LONG["a row lock"])
    with pytest.raises(LockNotAvailable, match="lock timeout"):
        client.execute(LONG["an advisory lock"])


def _end_of(client: "psycopg.Connection[Any]") -> str | None:
    """What a session that is idle is told when it is ended."""
    deadline = time.monotonic() + SOON_SECONDS
    while time.monotonic() < deadline:
        time.sleep(0.1)
        client.pgconn.consume_input()
        if client.pgconn.status != psycopg.pq.ConnStatus.OK or _is_readable(client):
            break
    with pytest.raises(psycopg.Error) as caught:
        client.execute("SELECT 1")
    assert client.closed
    return caught.value.sqlstate


def _is_readable(client: "psycopg.Connection[Any]") -> bool:
    return bool(select.select([client.fileno()], [], [], 0)[0])


@pytest.mark.parametrize(
    ("setting", "begin", "sqlstate"),
    [
        ("idle_session_timeout", "SELECT 1", "57P05"),
        ("idle_in_transaction_session_timeout", "BEGIN", "25P03"),
        ("transaction_timeout", "BEGIN", "25P04"),
    ],
)
def test_a_session_that_says_nothing_is_ended(
    cluster: Cluster, setting: str, begin: str, sqlstate: str
) -> None:
    client = cluster.connect()
    client.execute(f"SET {setting} = '300ms'")
    client.execute(begin)
    assert _end_of(client) in (sqlstate, None)


def test_a_transaction_that_takes_too_long_ends_its_session(cluster: Cluster) -> None:
    client = cluster.connect()
    client.execute("SET transaction_timeout = '300ms'")
    client.execute("BEGIN")
    with pytest.raises(psycopg.errors.TransactionTimeout):
        client.execute("SELECT pg_sleep(300)")
    assert client.closed
