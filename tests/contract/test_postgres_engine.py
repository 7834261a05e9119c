"""The PostgreSQL engine alone: refusals at start-up, broken connections, plans, secrets."""

import os
import re
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tenure.base.env import SystemEnv
from tenure.base.errors import (
    AccessDenied,
    CommitTooLarge,
    Disconnected,
    InvalidParameter,
    NewerFormat,
    TenureError,
    Unavailable,
    UnfitEngine,
    for_operator,
)
from tenure.storage.engine import EVERY_HEAD, Commit, Write
from tenure.storage.postgres.postgres_engine import PostgresEngine
from tenure.storage.postgres.probe import excessive_rights
from tenure.storage.postgres.session import StoreConnection
from tests import postgres_server
from tests.contract.engine_client import HEAD, Client, key, span, write
from tests.postgres_server import Server

SCHEMA = f"tenure_alone_{os.getpid()}"
"""Also the name of its sessions, so that a test ends its own and not those of other workers."""
PASSWORD = "s3cret-word"


@pytest.fixture
def engine(postgres: Server) -> Iterator[PostgresEngine]:
    engine = open_engine(f"{postgres.dsn} application_name={SCHEMA}")
    yield engine
    engine.close()
    postgres_server.drop_schema(postgres, SCHEMA)


@pytest.fixture
def admin(postgres: Server) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("SET search_path = {}").format(sql.Identifier(SCHEMA)))
        yield connection


def open_engine(dsn: str) -> PostgresEngine:
    return PostgresEngine(dsn, SystemEnv(), schema=SCHEMA, pool_size=2)


def test_a_wrong_password_is_access_denied_and_not_shown(postgres: Server) -> None:
    dsn = postgres_server.add_role_with_password(postgres, "the-right-one")
    with pytest.raises(AccessDenied) as caught:
        open_engine(dsn.replace("the-right-one", PASSWORD))
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))
    assert caught.value.hint


def test_a_malformed_connection_string_is_refused_and_not_shown() -> None:
    with pytest.raises(InvalidParameter) as caught:
        open_engine(f"host=localhost password={PASSWORD} {PASSWORD}")
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))


def test_the_password_is_in_no_representation(postgres: Server) -> None:
    dsn = postgres_server.add_role_with_password(postgres, PASSWORD)
    engine = open_engine(dsn)
    try:
        parts = [engine, *vars(engine).values()]
        assert not [part for part in parts if PASSWORD in repr(part)]
    finally:
        engine.close()
        postgres_server.drop_schema(postgres, SCHEMA)


def test_an_unreachable_server_is_unavailable() -> None:
    with pytest.raises(Unavailable) as caught:
        open_engine("host=127.0.0.1 port=1 user=postgres dbname=postgres")
    assert "127.0.0.1" in for_operator(caught.value)


def test_what_clients_are_told_does_not_name_the_server(postgres: Server) -> None:
    for wrong in (
        "host=127.0.0.1 port=1 user=postgres dbname=postgres",
        postgres.dsn.replace("user=postgres", "user=stranger"),
        postgres.dsn.replace("dbname=postgres", "dbname=nowhere"),
    ):
        with pytest.raises(TenureError) as caught:
            open_engine(wrong)
        told = f"{caught.value} {caught.value.detail} {caught.value.hint}"
        assert not re.search(r"127\.0|port|stranger|nowhere|/", told), told


def test_a_missing_database_is_unavailable(postgres: Server) -> None:
    with pytest.raises(Unavailable) as caught:
        open_engine(postgres.dsn.replace("dbname=postgres", "dbname=nowhere"))
    assert "nowhere" in for_operator(caught.value)


def test_missing_rights_are_access_denied(postgres: Server, admin: psycopg.Connection) -> None:
    role = f"weak_{os.getpid()}"
    admin.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
    with pytest.raises(AccessDenied):
        open_engine(postgres.dsn.replace("user=postgres", f"user={role}"))


def test_an_account_that_may_too_much_is_warned_of(
    engine: PostgresEngine, caplog: pytest.LogCaptureFixture
) -> None:
    del engine  # the test server's own account is a superuser
    assert [each.message for each in caplog.get_records("setup") if each.levelname == "WARNING"] == [
        "the store's account may do more on the database server than a node needs: SUPERUSER"
    ]


@pytest.mark.parametrize(
    ("rights", "found"),
    [
        ("LOGIN", []),
        ("LOGIN CREATEDB", ["CREATEDB"]),
        ("LOGIN IN ROLE pg_read_server_files", ["pg_read_server_files"]),
        ("LOGIN REPLICATION IN ROLE pg_execute_server_program", ["REPLICATION", "pg_execute_server_program"]),
    ],
)
def test_what_an_account_may_do_besides_is_found(
    postgres: Server, admin: psycopg.Connection, rights: str, found: list[str]
) -> None:
    role = sql.Identifier(f"rights_{os.getpid()}")
    admin.execute(sql.SQL("CREATE ROLE {} " + rights).format(role))
    try:
        as_role = postgres.dsn.replace("user=postgres", f"user=rights_{os.getpid()}")
        with StoreConnection.connect(as_role) as connection:
            assert excessive_rights(connection) == found
    finally:
        admin.execute(sql.SQL("DROP ROLE {}").format(role))


def test_a_newer_format_is_refused(
    postgres: Server, engine: PostgresEngine, admin: psycopg.Connection
) -> None:
    admin.execute("UPDATE meta SET value = '999' WHERE name = 'format'")
    with pytest.raises(NewerFormat, match="999") as caught:
        open_engine(postgres.dsn)
    assert "Upgrade" in caught.value.hint


def test_a_store_of_the_version_before_gets_what_it_lacks(
    postgres: Server, engine: PostgresEngine, admin: psycopg.Connection
) -> None:
    """Its rows were written without the head clock, so that is trusted only when a commit says so."""
    client = Client(engine)
    at = client.put("a")
    admin.execute("DROP TABLE head_clock")
    admin.execute("UPDATE meta SET value = 'of the version before' WHERE name = 'digest'")
    upgraded = Client(open_engine(postgres.dsn))
    assert upgraded.engine.moved_heads(at).heads is None
    start_at = upgraded.try_one(Commit(0, moves=(EVERY_HEAD,))).at
    assert client.engine.moved_heads(start_at).heads == frozenset()
    client.put("b")
    assert upgraded.engine.moved_heads(start_at).heads == frozenset({HEAD})
    upgraded.engine.close()


def test_two_nodes_may_open_a_new_store_at_once(postgres: Server) -> None:
    failures: list[BaseException] = []

    def open_and_close() -> None:
        try:
            open_engine(postgres.dsn).close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=open_and_close) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    postgres_server.drop_schema(postgres, SCHEMA)
    assert failures == []


def test_a_server_without_fsync_is_unfit(postgres_directory: Path) -> None:
    server = postgres_server.start(postgres_directory, "fsync=off")
    with pytest.raises(UnfitEngine, match="fsync") as caught:
        open_engine(server.dsn)
    assert caught.value.hint
    server = postgres_server.restart(postgres_directory)
    open_engine(server.socket_dsn).close()


def test_a_database_that_reads_with_an_old_snapshot_is_unfit(
    postgres: Server, engine: PostgresEngine, admin: psycopg.Connection
) -> None:
    # One SQL statement that locks and reads is what the section must not be.
    admin.execute(
        """CREATE OR REPLACE FUNCTION probe_read(probe_id bytea) RETURNS bigint LANGUAGE sql VOLATILE AS $$
        SELECT v.value FROM probe l, probe v
        WHERE l.id = probe_id AND l.part = 'lock' AND v.id = probe_id AND v.part = 'value'
        FOR UPDATE OF l $$"""
    )
    with pytest.raises(UnfitEngine, match="sees what the lock waited for"):
        open_engine(postgres.dsn)


def test_a_read_survives_its_connections(engine: PostgresEngine, admin: psycopg.Connection) -> None:
    client = Client(engine)
    client.put("a")
    _end_sessions(admin)
    assert client.get("a") is not None
    assert client.put("b") > 0  # a connection that broke while idle is replaced before it is used


def test_a_commit_that_is_cut_off_is_disconnected_and_settled(
    engine: PostgresEngine, admin: psycopg.Connection
) -> None:
    client = Client(engine)
    at = client.put("a")
    caught: list[TenureError] = []

    def commit() -> None:
        try:
            client.put("b")
        except TenureError as error:
            caught.append(error)

    with admin.transaction():
        admin.execute("SELECT at FROM clock FOR UPDATE")
        thread = threading.Thread(target=commit)
        thread.start()
        while not admin.execute(_WAITING).fetchall():
            pass
        _end_sessions(admin)
        thread.join()
    assert [type(error) for error in caught] == [Disconnected]
    assert engine.settle(client.lane, client.seq) is None
    assert client.get("b") is None
    assert client.put("c") == at + 1


_WAITING = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%commit_group%'"


def _end_sessions(admin: psycopg.Connection) -> None:
    end = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = %s"
    admin.execute(end, [SCHEMA])


@pytest.mark.invariant("I5")
def test_a_crash_of_the_server_loses_nothing_committed(postgres_directory: Path) -> None:
    server = postgres_server.start(postgres_directory)
    engine = open_engine(server.dsn)
    client = Client(engine)
    at = client.put("a")
    postgres_server.stop(postgres_directory, immediate=True)
    with pytest.raises(Unavailable):
        client.get("a")
    with pytest.raises(Unavailable):
        client.put("b")
    postgres_server.start(postgres_directory)
    assert engine.settle(client.lane, client.seq) is None
    assert client.get("a") == (key("a"), at, b"v")
    assert client.put("c") == at + 1
    engine.close()


def test_a_listener_comes_back_by_itself(engine: PostgresEngine, admin: psycopg.Connection) -> None:
    woken = threading.Event()
    engine.subscribe(woken.set)
    assert woken.wait(20)  # once when it begins to listen
    woken.clear()
    _end_sessions(admin)
    assert woken.wait(20)


def test_a_closed_engine_connects_no_more(engine: PostgresEngine) -> None:
    client = Client(engine)
    engine.close()
    with pytest.raises(Unavailable, match="closed"):
        client.get("a")
    with pytest.raises(Unavailable, match="closed"):
        client.put("a")


def test_reads_wait_for_their_turn_in_the_pool(engine: PostgresEngine) -> None:
    client = Client(engine)
    client.put("a")
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(client.get("a"))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20


def test_a_key_too_long_for_the_index_is_refused(engine: PostgresEngine) -> None:
    client = Client(engine)
    noise = SystemEnv().rng.randbytes(6000)
    with pytest.raises(CommitTooLarge):
        client.write(Write(HEAD + noise, b""))
    client.put("a")


def test_a_large_value_is_kept_whole(engine: PostgresEngine) -> None:
    client = Client(engine)
    value = bytes(range(256)) * 8000
    client.put("a", value)
    assert client.value("a") == value


Read = Callable[[Client, int], object]


@pytest.mark.parametrize(
    "read",
    [
        lambda client, at: client.scan(HEAD, HEAD + b"\xff", since_at=at),
        lambda client, at: client.scan(b"tnt1", b"tnt2", since_at=at),
        lambda client, at: client.history(at),
        lambda client, at: client.history(0, limit=10),
        lambda client, at: client.engine.check(Commit(at - 1, spans=((b"tnt1", b"tnt2"),))),
        lambda client, at: client.scan(limit=10),
        lambda client, at: client.scan(at=at, limit=10, reverse=True),
        lambda client, at: client.scan(*span("005", "006"), at=at - 1, limit=10),
        lambda client, at: client.get("000500", at),
        lambda client, at: client.commit(Commit(at, spans=((b"tnt1", b"tnt2"),), writes=(write("n"),))),
    ],
)
def test_the_cost_follows_what_is_asked_for(
    engine: PostgresEngine, admin: psycopg.Connection, read: Read
) -> None:
    """Counts the index entries that a read goes through: a few, of ten thousand keys."""
    client = Client(engine)
    for start in range(0, 10_000, 200):
        client.write(*(write(f"{number:06}") for number in range(start, start + 200)))
    at = client.engine.clock_at()
    client.put("000500", b"changed")
    read(client, at)  # prepares
    before = _entries_read(admin)
    read(client, at)
    assert _entries_read(admin) - before <= 1000


def _entries_read(admin: psycopg.Connection) -> int:
    # Sessions report what they did when they end, at the latest.
    _end_sessions(admin)
    row = admin.execute(
        "SELECT sum(idx_tup_read) + (SELECT sum(seq_tup_read) FROM pg_stat_user_tables"
        " WHERE schemaname = %(schema)s AND relname IN ('live', 'past'))"
        " FROM pg_stat_user_indexes WHERE schemaname = %(schema)s",
        {"schema": SCHEMA},
    ).fetchone()
    assert row is not None
    return int(row[0])
