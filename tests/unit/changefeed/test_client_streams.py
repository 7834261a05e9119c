"""CREATE CHANGEFEED without INTO: a stream of rows to the client, over the wire."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tenure.base.timestamp import to_text
from tenure.changefeed import client_stream
from tenure.changefeed.client_stream import ClientStream
from tenure.changefeed.records import FeedPayload, FeedPosition, FeedTable
from tenure.changefeed.table_stream import first_position
from tests.unit.changefeed.feeding import Feeding
from tests.unit.sql.served import Served, serving

Row = tuple[Any, ...]
PATIENCE_STEPS = 1500


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("streams")) as served:
        yield served


@pytest.fixture
def table(served: Served) -> Iterator[str]:
    served.tag("CREATE TABLE t (a int PRIMARY KEY, b text)")
    yield "t"
    served.tag("DROP TABLE IF EXISTS t")


@contextmanager
def stream(served: Served, statement: str, user: str = "root") -> Iterator[Iterator[Row]]:
    client = served.connect(user)
    try:
        yield client.cursor().stream(statement.encode())
    finally:
        client.pgconn.finish()  # the stream is still under way


def until(served: Served, is_so: Callable[[], bool]) -> None:
    for _ in range(PATIENCE_STEPS):
        if is_so():
            return
        served.node.store.env.sleep(0.01)
    raise AssertionError("it did not come to that")


def listeners(served: Served) -> int:
    return served.node.feeds.sources.tail.listeners


def test_rows_that_are_there_come_first_and_changes_follow(served: Served, table: str) -> None:
    served.tag("INSERT INTO t VALUES (1, 'x')")
    with stream(served, "CREATE CHANGEFEED FOR t") as rows:
        assert next(rows) == ("defaultdb.public.t", "[1]", '{"after":{"a":1,"b":"x"}}')
        served.tag("UPDATE t SET b = 'y' WHERE a = 1")
        assert next(rows)[2] == '{"after":{"a":1,"b":"y"}}'
        served.tag("ALTER TABLE t ADD COLUMN c int")
        served.tag("DELETE FROM t WHERE a = 1")
        assert next(rows)[1:] == ("[1]", '{"after":null}')


def test_resolved_timestamps_are_rows_without_table_and_key(served: Served, table: str) -> None:
    with stream(served, "CREATE CHANGEFEED FOR t WITH resolved = '50ms'") as rows:
        table_name, key, value = next(rows)
        assert (table_name, key) == (None, None)
        assert "resolved" in json.loads(value)


def test_many_rows_come_in_batches(served: Served, table: str) -> None:
    served.tag("INSERT INTO t SELECT g, 'x' FROM generate_series(1, 3000) AS g")
    with stream(served, "CREATE CHANGEFEED FOR t WITH initial_scan = 'only'") as rows:
        assert [row[1] for row in rows] == [f"[{number}]" for number in range(1, 3001)]


def test_a_stream_with_an_end_ends(served: Served, table: str) -> None:
    ((now,),) = served.rows("SELECT cluster_logical_timestamp()")
    served.tag("INSERT INTO t VALUES (1, 'x')")
    ((end,),) = served.rows("SELECT cluster_logical_timestamp()")
    served.tag("INSERT INTO t VALUES (2, 'x')")
    rows = served.rows(f"CREATE CHANGEFEED FOR t WITH cursor = '{now}', end_time = '{end}'")
    assert [row[1] for row in rows] == ["[1]"]


def test_a_cancel_ends_it_and_the_session_goes_on(served: Served, table: str) -> None:
    with served.connect() as client:
        rows = client.cursor().stream(b"CREATE CHANGEFEED FOR t WITH resolved = '50ms'")
        next(rows)
        client.cancel_safe()
        with pytest.raises(psycopg.errors.QueryCanceled):
            for _ in rows:
                pass
        assert client.execute("SELECT 1").fetchall() == [(1,)]
    until(served, lambda: listeners(served) == 0)


def test_a_client_that_goes_away_leaves_nothing(served: Served, table: str) -> None:
    client = served.connect()
    rows = client.cursor().stream(b"CREATE CHANGEFEED FOR t WITH resolved = '50ms'")
    next(rows)
    assert listeners(served) > 0
    client.pgconn.finish()
    until(served, lambda: listeners(served) == 0)


def test_a_statement_timeout_ends_it(served: Served, table: str) -> None:
    timed = served.connect(options="-c statement_timeout=300ms")
    with timed, pytest.raises(psycopg.errors.QueryCanceled):
        timed.execute("CREATE CHANGEFEED FOR t")


@pytest.mark.setting("sql.user_statements_max")
def test_streams_that_wait_have_no_thread(served: Served, table: str) -> None:
    served.tag("CREATE ROLE many LOGIN")
    served.tag("GRANT CHANGEFEED ON t TO many")
    served.tag("SET CLUSTER SETTING sql.user_statements_max = 2")
    clients = [served.connect("many") for _ in range(6)]
    # Each has said something, so it runs: if it kept a thread, the others could not begin.
    streams = [each.cursor().stream(b"CREATE CHANGEFEED FOR t WITH resolved = '50ms'") for each in clients]
    for rows in streams:
        assert next(rows)[0] is None
    for client in clients:
        client.pgconn.finish()
    served.tag("RESET CLUSTER SETTING sql.user_statements_max")
    until(served, lambda: listeners(served) == 0)


def test_a_dropped_table_ends_the_stream_after_its_event(served: Served, table: str) -> None:
    with stream(served, "CREATE CHANGEFEED FOR t") as rows:
        served.tag("INSERT INTO t VALUES (1, 'x')")
        assert next(rows)[1] == "[1]"
        served.tag("DROP TABLE t")
        assert json.loads(next(rows)[2])["ddl"]["events"] == ["drop"]
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            next(rows)


def test_it_needs_the_privilege_and_ends_when_that_is_revoked(served: Served, table: str) -> None:
    served.tag("CREATE ROLE reader LOGIN")
    with served.connect("reader") as client:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            client.execute("CREATE CHANGEFEED FOR t")
        served.tag("GRANT CHANGEFEED ON t TO reader")
        rows = client.cursor().stream(b"CREATE CHANGEFEED FOR t WITH resolved = '50ms'")
        next(rows)
        served.tag("REVOKE CHANGEFEED ON t FROM reader")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            for _ in rows:
                pass


def test_transactions_come_in_the_order_of_their_commits(served: Served, table: str) -> None:
    served.tag("CREATE TABLE u (a int PRIMARY KEY)")
    for number in range(3):
        with served.root.transaction():
            served.tag(f"INSERT INTO u VALUES ({number})")
            served.tag(f"INSERT INTO t VALUES ({number}, 'x')")
    with stream(served, "CREATE CHANGEFEED FOR t, u WITH updated, ordering = 'transaction'") as rows:
        scanned = [next(rows)[:2] for _ in range(6)]
        assert sorted(scanned) == sorted(
            (f"defaultdb.public.{name}", f"[{number}]") for name in "tu" for number in range(3)
        )
        for number in range(10, 14):
            with served.root.transaction():
                served.tag(f"INSERT INTO u VALUES ({number})")
                served.tag(f"INSERT INTO t VALUES ({number}, 'x')")
        changes = [next(rows) for _ in range(8)]
        keys = [json.loads(key) for _, key, _ in changes]
        assert keys == [[number] for number in range(10, 14) for _ in "tu"]
    served.tag("DROP TABLE u")


def test_it_cannot_run_in_a_block(served: Served, table: str) -> None:
    with served.connect() as client:
        client.execute("BEGIN")
        with pytest.raises(psycopg.errors.ActiveSqlTransaction):
            client.execute("CREATE CHANGEFEED FOR t")


# ── without a wire ─────────────────────────────────────────────────────────────────────────────


@contextmanager
def client_stream_of(feeding: Feeding) -> Iterator[ClientStream]:
    table, options = feeding.table("t"), feeding.options(no_initial_scan=None)
    start = FeedPosition((first_position(table.id, options, feeding.now()),))
    made = ClientStream(
        feeding.sources(),
        FeedPayload((FeedTable(table.id, "t"),), "", options, start),
        role="root",
        admit=lambda position: None,
        check=lambda position: None,
        follow=feeding.node.feeds.follow,
    )
    try:
        yield made
    finally:
        made.close()


def test_a_slow_client_holds_little(feeding: Feeding, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_stream, "STREAM_BYTES", 3_000)
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    with client_stream_of(feeding) as slow:
        slow.take(1)
        keys = []
        for number in range(100):
            feeding.done(f"INSERT INTO t VALUES ({number})")
            if number % 10 == 9:
                keys += [row.key for row in slow.take(1)]
            assert slow.waiting_bytes <= 8_000
        while rows := slow.take(7):
            keys += [row.key for row in rows]
        assert keys == [f"[{number}]" for number in range(100)]


def test_history_that_a_slow_client_needs_is_kept(feeding: Feeding, directory: Path) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b int)")
    feeding.done("ALTER TABLE t CONFIGURE ZONE USING gc.ttlseconds = 1")
    feeding.done("CREATE TABLE u (a int PRIMARY KEY, b int)")
    feeding.done("ALTER TABLE u CONFIGURE ZONE USING gc.ttlseconds = 1")
    with client_stream_of(feeding) as slow:
        for number in range(5):
            feeding.done(f"UPSERT INTO t VALUES (1, {number})")
            feeding.done(f"UPSERT INTO u VALUES (1, {number})")
        then_at = feeding.now()
        while feeding.talk.say(f"SELECT * FROM u AS OF SYSTEM TIME '{to_text(then_at)}'").sqlstate != "72000":
            feeding.done("RUN GC NOW")
        values = [json.loads(row.value or "")["after"]["b"] for row in slow.take(100)]
        assert values == list(range(5))
