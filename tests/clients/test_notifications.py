"""LISTEN and NOTIFY with real clients: within a node as PostgreSQL has it, and across nodes."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import asyncpg  # type: ignore[import-untyped]
import psycopg
import pytest

from tenure.node import Node
from tests.clients.conftest import Cluster
from tests.postgres_server import Server

SECONDS = 60.0
"""No test waits so long; a notification takes some milliseconds."""

Script = Callable[["psycopg.Connection[Any]", "psycopg.Connection[Any]"], object]


def heard(connection: "psycopg.Connection[Any]") -> list[tuple[str, str]]:
    """All that has come for it, up to a mark that it sends itself; this says that nothing else came."""
    mark = f"mark_{uuid4().hex[:8]}"
    connection.execute(f"LISTEN {mark}")
    with psycopg.connect(connection.info.dsn, autocommit=True) as other:
        other.execute(f"NOTIFY {mark}")
    found: list[tuple[str, str]] = []
    arriving = connection.notifies(timeout=SECONDS)
    for each in arriving:
        if each.channel == mark:
            break
        found.append((each.channel, each.payload))
    else:
        raise AssertionError("the mark did not come")
    arriving.close()
    connection.execute(f"UNLISTEN {mark}")
    return found


@pytest.fixture
def addresses(lone: Node, postgres: Server) -> tuple[str, str]:
    assert lone.front is not None
    return f"host={lone.front.host} port={lone.front.port} user=root dbname=defaultdb", postgres.dsn


def agree(addresses: tuple[str, str], script: Script) -> object:
    """What two connections to a node, and two to PostgreSQL, answer."""
    answers = []
    for address in addresses:
        with (
            psycopg.connect(address, autocommit=True) as first,
            psycopg.connect(address, autocommit=True) as second,
        ):
            answers.append(script(first, second))
    ours, theirs = answers
    assert ours == theirs
    return ours


def test_a_transaction_notifies_at_its_commit_and_of_the_same_once(addresses: tuple[str, str]) -> None:
    def script(listening: Any, sending: Any) -> object:
        listening.execute("LISTEN a")
        with sending.transaction():
            for text in (
                "NOTIFY a, '1'",
                "NOTIFY a, '2'",
                "SELECT pg_notify('a', '1')",
                "NOTIFY b",
                "NOTIFY a",
            ):
                sending.execute(text)
            before = heard(listening)
        return before, heard(listening)

    assert agree(addresses, script) == ([], [("a", "1"), ("a", "2"), ("a", "")])


def test_what_was_rolled_back_notifies_nobody(addresses: tuple[str, str]) -> None:
    def script(listening: Any, sending: Any) -> object:
        listening.execute("LISTEN a")
        sending.execute("BEGIN")
        sending.execute("NOTIFY a, 'kept'")
        sending.execute("SAVEPOINT s")
        sending.execute("NOTIFY a, 'kept'")
        sending.execute("NOTIFY a, 'given up'")
        sending.execute("ROLLBACK TO s")
        sending.execute("NOTIFY a, 'later'")
        sending.execute("COMMIT")
        sending.execute("BEGIN")
        sending.execute("NOTIFY a, 'never'")
        sending.execute("ROLLBACK")
        return heard(listening)

    assert agree(addresses, script) == [("a", "kept"), ("a", "later")]


def test_listen_counts_from_the_commit_of_its_block(addresses: tuple[str, str]) -> None:
    def script(listening: Any, sending: Any) -> object:
        listening.execute("BEGIN")
        listening.execute("LISTEN a")
        listening.execute("SAVEPOINT s")
        listening.execute("LISTEN b")
        listening.execute("ROLLBACK TO s")
        listening.execute("LISTEN c")
        sending.execute("NOTIFY a, 'too early'")
        listening.execute("NOTIFY a, 'its own'")
        listening.execute("COMMIT")
        channels = listening.execute("SELECT * FROM pg_listening_channels() AS n ORDER BY n").fetchall()
        for channel in "abc":
            sending.execute(f"NOTIFY {channel}, 'later'")
        return channels, heard(listening)

    arrived = [("a", "its own"), ("a", "later"), ("c", "later")]
    assert agree(addresses, script) == ([("a",), ("c",)], arrived)


def test_a_rollback_takes_listen_and_unlisten_back(addresses: tuple[str, str]) -> None:
    def script(listening: Any, sending: Any) -> object:
        listening.execute("LISTEN kept")
        listening.execute("BEGIN")
        listening.execute("UNLISTEN *")
        listening.execute("LISTEN given_up")
        listening.execute("ROLLBACK")
        for channel in ("kept", "given_up"):
            sending.execute(f"NOTIFY {channel}")
        return heard(listening)

    assert agree(addresses, script) == [("kept", "")]


@pytest.mark.parametrize("text", ["UNLISTEN a", "UNLISTEN *", "DISCARD ALL"])
def test_unlisten_ends_it(addresses: tuple[str, str], text: str) -> None:
    def script(listening: Any, sending: Any) -> object:
        listening.execute("LISTEN a")
        listening.execute("LISTEN a")
        listening.execute(text)
        sending.execute("NOTIFY a")
        return heard(listening), listening.execute("SELECT pg_listening_channels()").fetchall()

    assert agree(addresses, script) == ([], [])


def test_a_session_hears_itself_with_the_answer(addresses: tuple[str, str]) -> None:
    def script(listening: Any, sending: Any) -> object:
        found: list[tuple[str, bool]] = []
        listening.add_notify_handler(
            lambda each: found.append((each.payload, each.pid == listening.info.backend_pid))
        )
        listening.execute("LISTEN a")
        listening.execute("NOTIFY a, 'alone'")
        with listening.transaction():
            listening.execute("NOTIFY a, 'in a block'")
            listening.execute("SELECT 1")
            found.append(("not yet", True))
        return found

    assert agree(addresses, script) == [("alone", True), ("not yet", True), ("in a block", True)]


def test_a_client_in_a_transaction_is_told_when_that_ends(addresses: tuple[str, str]) -> None:
    def script(listening: Any, sending: Any) -> object:
        found: list[str] = []
        listening.add_notify_handler(lambda each: found.append(each.payload))
        listening.execute("LISTEN a")
        listening.execute("LISTEN b")
        listening.execute("BEGIN")
        sending.execute("NOTIFY a, 'x'")
        listening.execute("NOTIFY b, 'y'")
        listening.execute("SELECT 1")
        found.append("still inside")
        listening.execute("COMMIT")  # its own comes with this, and what was committed before comes first
        return found

    assert agree(addresses, script) == ["still inside", "x", "y"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT pg_notify('', 'x')",
        "SELECT pg_notify(NULL, 'x')",
        "SELECT pg_notify('a', NULL)",
        f"SELECT pg_notify('{'c' * 64}', 'x')",
        f"SELECT pg_notify('{'c' * 63}', 'x')",
        f"NOTIFY a, '{'p' * 8000}'",
        f"NOTIFY a, '{'p' * 7999}'",
        "SELECT pg_notification_queue_usage() < 1",
        "NOTIFY \"Mixed Case\", 'x'",
        "BEGIN READ ONLY; NOTIFY a, 'x'; COMMIT",
    ],
)
def test_limits_are_those_of_postgresql(addresses: tuple[str, str], text: str) -> None:
    def script(listening: Any, sending: Any) -> object:
        listening.execute('LISTEN a; LISTEN "Mixed Case"')
        try:
            status = sending.execute(text).statusmessage
        except psycopg.Error as error:
            status = error.sqlstate, error.diag.message_primary
        return status, heard(listening)

    agree(addresses, script)


def test_another_database_does_not_hear(cluster: Cluster) -> None:
    cluster.run("CREATE DATABASE IF NOT EXISTS elsewhere")
    with psycopg.connect(cluster.address(0, "elsewhere"), autocommit=True) as listening:
        listening.execute("LISTEN a")
        cluster.run("NOTIFY a")
        assert heard(listening) == []


def test_listeners_of_all_nodes_hear_in_one_order(cluster: Cluster) -> None:
    connections = [cluster.connect(node) for node in (0, 1)]
    for each in connections:
        each.execute("LISTEN order_")
    sent = [f"{number} by {number % 2}" for number in range(20)]
    for number, payload in enumerate(sent):
        cluster.run(f"NOTIFY order_, '{payload}'", node=number % 2)
    for each in connections:
        assert [found.payload for found in each.notifies(timeout=SECONDS, stop_after=20)] == sent
        each.close()


def test_a_statement_and_its_notification_commit_together(cluster: Cluster) -> None:
    cluster.run("CREATE TABLE IF NOT EXISTS queued (id int PRIMARY KEY)", "DELETE FROM queued")
    listening, sending = cluster.connect(1), cluster.connect(0)
    listening.execute("LISTEN queued")
    sending.execute("WITH new AS (SELECT 1 AS id) SELECT pg_notify('queued', id::text) FROM new")
    with sending.transaction():
        sending.execute("INSERT INTO queued VALUES (7)")
        sending.execute("NOTIFY queued, '7'")
    found = [each.payload for each in listening.notifies(timeout=SECONDS, stop_after=2)]
    assert found == ["1", "7"]
    assert listening.execute("SELECT id FROM queued").fetchall() == [(7,)]


def test_asyncpg_hears_by_its_listener(cluster: Cluster) -> None:
    front = cluster.nodes[1].front
    assert front is not None

    async def run() -> list[tuple[str, str]]:
        connection = await asyncpg.connect(
            host=front.host, port=front.port, user="root", database="defaultdb", timeout=SECONDS
        )
        found: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

        def hear(_: Any, pid: int, channel: str, payload: str) -> None:
            found.put_nowait((channel, payload))

        await connection.add_listener("News", hear)
        await asyncio.to_thread(cluster.run, "NOTIFY \"News\", 'one'")
        async with connection.transaction():
            await connection.execute("SELECT pg_notify($1, $2)", "News", "two")
        heard = [await asyncio.wait_for(found.get(), SECONDS) for _ in range(2)]
        await connection.remove_listener("News", hear)
        await connection.close()
        return heard

    assert asyncio.run(run()) == [("News", "one"), ("News", "two")]


def test_a_listener_that_is_gone_leaves_nothing(cluster: Cluster) -> None:
    front = cluster.nodes[0].front
    assert front is not None
    listening = cluster.connect(0)
    listening.execute("LISTEN gone")
    listening.close()
    staying = cluster.connect(0)
    staying.execute("LISTEN stays")
    with psycopg.connect(cluster.address(0)) as other:
        while len(other.execute("SELECT 1 FROM pg_stat_activity WHERE query = 'LISTEN gone'").fetchall()):
            pass
    cluster.run("NOTIFY gone", "NOTIFY stays")
    assert heard(staying) == [("stays", "")]
    assert not any(channel == "gone" for _, channel in front.services.notifications._listeners)


def test_a_client_that_stays_in_a_transaction_is_ended_when_too_much_waits(
    lone: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.sql.session.channels.ARRIVED_BYTES_MAX", 20_000)
    assert lone.front is not None
    address = f"host={lone.front.host} port={lone.front.port} user=root dbname=defaultdb"
    with psycopg.connect(address) as listening, psycopg.connect(address, autocommit=True) as sending:
        listening.execute("LISTEN a")
        listening.commit()
        sending.execute("LISTEN a")
        listening.execute("SELECT 1")
        for number in range(20):
            sending.execute(f"NOTIFY a, '{number}{'x' * 2000}'")
        listening.commit()
        told: list[str | None] = []
        listening.add_notice_handler(lambda each: told.append(each.message_primary))
        with pytest.raises(psycopg.OperationalError):
            list(listening.notifies(timeout=SECONDS))
        assert told == ["terminating connection because notifications for it were lost"]
