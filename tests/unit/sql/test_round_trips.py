"""How often a statement asks a store in PostgreSQL: each time is a round trip, and that may be a long way."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.storage.postgres import session as postgres_session
from tenure.storage.postgres.session import Arguments, Rows, StoreConnection
from tests import postgres_server
from tests.unit.sql.served import Served, serving

STATEMENTS = "sql"
"""The name of the threads that run statements; what runs beside them in loops does not count."""


class Trips:
    """Counts what statements ask."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._count = 0
        run = postgres_session.run

        def counted(connection: StoreConnection, query: bytes, arguments: Arguments) -> Rows:
            if threading.current_thread().name == STATEMENTS:
                self._count += 1
            return run(connection, query, arguments)

        monkeypatch.setattr(postgres_session, "run", counted)

    def of(self, served: Served, statement: str) -> int:
        served.root.execute(statement.encode())
        self._count = 0
        served.root.execute(statement.encode())
        return self._count

    def of_each(self, served: Served, *statements: str) -> list[int]:
        """The statements of one block."""
        counts = []
        for statement in statements:
            self._count = 0
            served.root.execute(statement.encode())
            counts.append(self._count)
        return counts


@pytest.fixture
def served(tmp_path: Path, postgres_directory: Path) -> Iterator[Served]:
    port = postgres_server.start(postgres_directory).port
    with serving(tmp_path, store=f"postgresql://postgres@127.0.0.1:{port}/postgres") as served:
        served.tag("CREATE TABLE t (id int PRIMARY KEY, v int, w int)")
        served.tag("CREATE INDEX ON t (w)")
        served.tag("INSERT INTO t SELECT n, 0, n FROM generate_series(1, 100) AS n")
        yield served


def test_statements_ask_the_store_as_often_as_they_must(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips = Trips(monkeypatch)
    counts = {
        "SELECT v FROM t WHERE id = 3": 1,
        "SELECT sum(v) FROM t WHERE id IN (3, 5, 7, 9)": 1,
        "UPDATE t SET v = v + 1 WHERE id = 3": 2,
        "UPDATE t SET v = v + 1 WHERE id IN (3, 5, 7)": 3,
        "UPDATE t SET w = w + 1000 WHERE id = 5": 2,
        "INSERT INTO t (id, v) VALUES (1000 + (random() * 1e9)::int, 1)": 1,
    }
    assert {statement: trips.of(served, statement) for statement in counts} == counts


def test_a_block_asks_for_a_row_that_it_has_locked_no_more(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = "UPDATE t SET v = v + 1 WHERE id = 3"
    block = ["BEGIN", "SELECT v FROM t WHERE id = 3 FOR UPDATE", update, update, "COMMIT"]
    trips = Trips(monkeypatch)
    trips.of_each(served, *block)
    assert trips.of_each(served, *block) == [0, 2, 0, 0, 1]


def test_a_statement_alone_asks_as_often_if_blocks_are_read_committed(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips = Trips(monkeypatch)
    statements = (
        "SELECT v FROM t WHERE id = 3",
        "UPDATE t SET v = v + 1 WHERE id IN (3, 5, 7)",
        "UPDATE t SET w = w + 1000 WHERE id = 5",
        "INSERT INTO t (id, v) VALUES (1000 + (random() * 1e9)::int, 1)",
    )

    def counts() -> list[int]:
        """The most of some tries: a commit may be sent by another thread, with others."""
        return [max(trips.of(served, statement) for _ in range(3)) for statement in statements]

    serializable = counts()
    served.tag("SET default_transaction_isolation = 'read committed'")
    assert counts() == serializable


def test_a_read_committed_block_proves_each_time_at_which_it_has_written(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.tag("SET default_transaction_isolation = 'read committed'")
    update = "UPDATE t SET v = v + 1 WHERE id = "
    block = ["BEGIN", update + "3", "SELECT v FROM t WHERE id = 3", update + "4", update + "5"]
    trips = Trips(monkeypatch)
    trips.of_each(served, *block, "COMMIT")
    tries = [trips.of_each(served, *block, "COMMIT") for _ in range(3)]
    assert all(each[:-1] == [0, 1, 0, 1, 1] for each in tries)
    assert min(each[-1] for each in tries) <= 1, "while nobody else commits"
    with served.connect() as other:
        for statement in block:
            served.tag(statement)
            other.execute("UPDATE t SET v = v + 1 WHERE id = 50")
    assert trips.of_each(served, "COMMIT")[0] in (2, 3), "and a check of each earlier time"
