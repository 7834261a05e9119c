"""A process is stopped inside SQLite's section: others read on, and can stop to wait for their commits."""

import logging
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tenure.storage.sqlite import poller as sqlite_poller
from tests.unit.sql.served import Served, serving
from tests.unit.storage.stopped_process import stopped_inside

LATE_SECONDS = 10.0
"""Statements end after 0.5 s; a machine that is busy may take its time."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path) as served:
        served.root.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
        served.root.execute("INSERT INTO t VALUES (1, 1)")
        yield served


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param(["INSERT INTO t VALUES (2, 2)"], id="on the loop"),
        pytest.param(["INSERT INTO t SELECT n, n FROM generate_series(2, 2000) n"], id="in a thread"),
        pytest.param(["BEGIN", "UPDATE t SET v = 9 WHERE id = 1", "COMMIT"], id="in a block"),
        pytest.param(["SELECT v FROM t AS OF SYSTEM TIME '-1ms'"], id="reading at a time"),
        pytest.param(["BEGIN AS OF SYSTEM TIME '-1ms'"], id="beginning at a time"),
    ],
)
def test_a_commit_that_waits_for_a_stopped_process_ends_with_its_time(
    served: Served, path: str, statements: list[str]
) -> None:
    with served.connect() as client:
        client.execute("SET statement_timeout = '500ms'")
        with stopped_inside(path):
            began = time.monotonic()
            for statement in statements[:-1]:
                client.execute(statement.encode())
            with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
                client.execute(statements[-1].encode())
            assert time.monotonic() - began < LATE_SECONDS
            assert client.info.transaction_status is not psycopg.pq.TransactionStatus.INTRANS
            assert served.rows("SELECT * FROM t") == [(1, 1)], "reads go on, and nothing was written"
    served.root.execute("INSERT INTO t VALUES (3, 3)")
    assert served.rows("SELECT * FROM t ORDER BY id") == [(1, 1), (3, 3)]


def test_a_commit_that_waits_for_a_stopped_process_can_be_canceled(served: Served, path: str) -> None:
    codes: list[str | None] = []

    def write(client: "psycopg.Connection[object]", number: int) -> None:
        try:
            client.execute(f"INSERT INTO t VALUES ({number}, 0)".encode())
            codes.append("")
        except psycopg.Error as error:
            codes.append(error.sqlstate)

    clients = [served.connect() for _ in range(5)]
    with stopped_inside(path):
        threads = [threading.Thread(target=write, args=(client, 10 + n)) for n, client in enumerate(clients)]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        for client in clients[1:]:
            client.cancel_safe(timeout=LATE_SECONDS)
        for thread in threads[1:]:
            thread.join(LATE_SECONDS)
        assert codes == ["57014"] * 4
    threads[0].join(LATE_SECONDS)
    assert codes == ["57014"] * 4 + [""], "the one that nobody canceled is committed"
    assert served.rows("SELECT id FROM t ORDER BY id") == [(1,), (10,)]
    for client in clients:
        client.close()


def test_a_client_that_goes_while_its_commit_waits_leaves_nothing_behind(served: Served, path: str) -> None:
    client = served.connect()
    with stopped_inside(path):
        client.pgconn.send_query(b"INSERT INTO t VALUES (2, 2)")
        time.sleep(0.3)
        client.close()
        time.sleep(0.3)
    # A pin that nobody gives up would hold this up for minutes.
    served.root.execute("SET statement_timeout = '20s'")
    served.root.execute("ALTER TABLE t ADD COLUMN w int")
    assert served.rows("SELECT id FROM t") == [(1,)]


def test_the_log_names_the_process_that_has_the_section(
    served: Served, path: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_poller, "WAIT_SECONDS_TOLD", 0.2)
    with served.connect() as client, caplog.at_level(logging.WARNING), stopped_inside(path) as process:
        client.execute("SET statement_timeout = '1s'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            client.execute("INSERT INTO t VALUES (2, 2)")
    assert f"held by process {process.pid}, which is stopped" in caplog.text


def test_a_node_lives_through_a_stop_that_is_longer_than_its_ttl(served: Served, path: str) -> None:
    """No other node can declare it dead meanwhile: that is a commit, too."""
    served.root.execute("SET CLUSTER SETTING liveness.ttl = '1s'")
    served.root.execute("SET CLUSTER SETTING liveness.heartbeat = '200ms'")
    time.sleep(1.0)
    with stopped_inside(path) as process:
        time.sleep(3.0)
        process.send_signal(signal.SIGCONT)
    served.root.execute("INSERT INTO t VALUES (2, 2)")
    assert served.rows("SELECT id FROM t ORDER BY id") == [(1,), (2,)]
