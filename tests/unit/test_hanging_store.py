"""A store that answers nothing: statements end when they must, and all goes on when it comes back."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread, Timer
from typing import Any

import psycopg
import pytest

from tests import postgres_server
from tests.unit.sql.served import Served, serving

Hang = Callable[[], None]


@pytest.fixture
def served(tmp_path: Path, postgres_directory: Path) -> Iterator[Served]:
    port = postgres_server.start(postgres_directory).port
    with serving(tmp_path, store=f"postgresql://postgres@127.0.0.1:{port}/postgres") as served:
        served.tag("CREATE TABLE t (id int PRIMARY KEY, v int)")
        served.tag("INSERT INTO t SELECT n, 0 FROM generate_series(1, 20) AS n")
        yield served


@contextmanager
def hanging(directory: Path) -> Iterator[None]:
    """All processes of the server are stopped meanwhile."""
    postmaster = int((directory / "data" / "postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    pids = [postmaster, *map(int, children)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


READS = ["SELECT sum(v) FROM t", "UPDATE t SET v = 1 WHERE id = 3", "SHOW SESSIONS"]


@pytest.mark.parametrize("statement", READS)
def test_a_statement_that_reads_ends_when_its_time_is_up(
    served: Served, postgres_directory: Path, statement: str
) -> None:
    served.tag("SET statement_timeout = '300ms'")
    with hanging(postgres_directory), pytest.raises(psycopg.errors.QueryCanceled, match="timeout"):
        served.rows(statement)
    assert served.rows("SELECT count(*) FROM t") == [(20,)]


@pytest.mark.parametrize("statement", READS)
def test_a_statement_that_reads_can_be_canceled(
    served: Served, postgres_directory: Path, statement: str
) -> None:
    with hanging(postgres_directory):
        cancel = Timer(0.2, served.root.cancel_safe)
        cancel.start()
        with pytest.raises(psycopg.errors.QueryCanceled, match="user request"):
            served.rows(statement)
        cancel.join()
    assert served.rows("SELECT count(*) FROM t") == [(20,)]


def test_a_commit_that_is_not_decided_is_told_as_such(served: Served, postgres_directory: Path) -> None:
    served.tag("SET statement_timeout = '300ms'")
    served.tag("BEGIN")
    served.tag("UPDATE t SET v = 1 WHERE id = 3")
    with hanging(postgres_directory):
        state = served.refusal("COMMIT").sqlstate
    served.tag("UPDATE t SET v = v + 10 WHERE id = 3")  # by now it has landed, or never will
    ((value,),) = served.rows("SELECT v FROM t WHERE id = 3")
    # 57014 if another commit of the node was under way, so that this one was not sent.
    assert (state, value) in [("40003", 10), ("40003", 11), ("57014", 10)]


def test_those_who_commit_together_end_each_when_it_must(served: Served, postgres_directory: Path) -> None:
    """The leader of a group and its members alike; what came later was not sent, and is taken back."""
    clients = [served.connect(options="-c statement_timeout=300ms") for _ in range(8)]
    for number, client in enumerate(clients, 1):
        client.execute("BEGIN")
        client.execute("UPDATE t SET v = v + 1 WHERE id = %s", [number])
    with hanging(postgres_directory):
        states = _states(clients, "COMMIT")
    assert states <= {"40003", "57014"}
    for number in range(1, 9):
        served.tag(f"UPDATE t SET v = v + 10 WHERE id = {number}")
    assert {row[0] for row in served.rows("SELECT v FROM t WHERE id <= 8")} <= {10, 11}
    for client in clients:
        client.close()


def test_more_statements_than_connections_all_end(served: Served, postgres_directory: Path) -> None:
    clients = [served.connect(options="-c statement_timeout=300ms") for _ in range(20)]
    with hanging(postgres_directory):
        assert _states(clients, "SELECT sum(v) FROM t") == {"57014"}
    for client in clients:
        assert client.execute("SELECT count(*) FROM t").fetchone() == (20,)
        client.close()


def _states(clients: "list[psycopg.Connection[Any]]", statement: str) -> set[str]:
    """The SQLSTATEs of a statement that all of them run at once."""
    states: list[str] = []

    def run(client: "psycopg.Connection[Any]") -> None:
        try:
            client.execute(statement.encode())
        except psycopg.Error as error:
            states.append(error.sqlstate or "")

    threads = [Thread(target=run, args=[client]) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(states) == len(clients)
    return set(states)
