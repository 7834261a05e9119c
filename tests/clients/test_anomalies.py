"""What the isolation of two clients on two nodes must not allow: each history is as if one came first.

Every transaction is told to the end: it commits, waits for the other, or fails with 40001 or 40P01; then
what is left must be what some order of those that committed leaves.
"""

import threading
from collections.abc import Callable
from itertools import permutations
from typing import Any

import psycopg
import pytest

from tests.clients.conftest import TTL_SECONDS, Cluster

RETRY = ("40001", "40P01")
Step = tuple[int, str]
Rows = list[tuple[Any, ...]]


@pytest.fixture
def accounts(cluster: Cluster) -> Cluster:
    cluster.run(
        "DROP TABLE IF EXISTS accounts",
        "CREATE TABLE accounts (id INT PRIMARY KEY, value INT NOT NULL)",
        "INSERT INTO accounts VALUES (1, 10), (2, 20)",
    )
    return cluster


class Script:
    """One client's transaction: statements in order, each of which may block until another client goes on."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self._connection = connection
        self._threads: list[threading.Thread] = []
        self.said: list[Rows] = []
        self.failed = ""

    def say(self, text: str) -> None:
        """Begins a statement; waits for it, unless it is itself made to wait."""
        for thread in self._threads:
            thread.join()
        thread = threading.Thread(target=self._run, args=(text,))
        self._threads.append(thread)
        thread.start()
        thread.join(BLOCKED_SECONDS)

    def _run(self, text: str) -> None:
        if self.failed and text != "COMMIT":
            return
        try:
            cursor = self._connection.execute(text)
            if cursor.description:
                self.said.append(cursor.fetchall())
        except psycopg.Error as error:
            self.failed = self.failed or error.sqlstate or "?"

    def end(self) -> bool:
        """Whether it committed."""
        for thread in self._threads:
            thread.join()
        assert self.failed in ("", *RETRY), self.failed
        return not self.failed


BLOCKED_SECONDS = 0.3
"""Whoever has not answered by then waits for a lock."""


def _play(cluster: Cluster, steps: list[Step], level: str) -> list[Script]:
    count = max(number for number, _ in steps) + 1
    scripts = [Script(cluster.connect(number % 2)) for number in range(count)]
    for script in scripts:
        script.say(f"BEGIN ISOLATION LEVEL {level}")
    for number, text in steps:
        scripts[number].say(text)
    return scripts


def _one_by_one(cluster: Cluster, order: list[list[str]]) -> tuple[list[list[Rows]], Rows]:
    """What transactions say, and leave, if they run one after the other."""
    cluster.run("DELETE FROM accounts", "INSERT INTO accounts VALUES (1, 10), (2, 20)")
    heard = []
    for texts in order:
        script = Script(cluster.connect())
        for text in ("BEGIN", *texts):
            script.say(text)
        assert script.end()
        heard.append(script.said)
    return heard, _state(cluster)


def _state(cluster: Cluster) -> Rows:
    return cluster.connect().execute("SELECT id, value FROM accounts ORDER BY id").fetchall()


HISTORIES: dict[str, list[Step]] = {
    "dirty write": [
        (0, "UPDATE accounts SET value = 11 WHERE id = 1"),
        (1, "UPDATE accounts SET value = 12 WHERE id = 1"),
        (0, "UPDATE accounts SET value = 21 WHERE id = 2"),
        (0, "COMMIT"),
        (1, "UPDATE accounts SET value = 22 WHERE id = 2"),
        (1, "COMMIT"),
    ],
    "intermediate read": [
        (0, "UPDATE accounts SET value = 101 WHERE id = 1"),
        (1, "SELECT value FROM accounts ORDER BY id"),
        (0, "UPDATE accounts SET value = 11 WHERE id = 1"),
        (0, "COMMIT"),
        (1, "SELECT value FROM accounts ORDER BY id"),
        (1, "COMMIT"),
    ],
    "circular flow": [
        (0, "UPDATE accounts SET value = 11 WHERE id = 1"),
        (1, "UPDATE accounts SET value = 22 WHERE id = 2"),
        (0, "SELECT value FROM accounts WHERE id = 2"),
        (1, "SELECT value FROM accounts WHERE id = 1"),
        (0, "COMMIT"),
        (1, "COMMIT"),
    ],
    "lost update": [
        (0, "SELECT value FROM accounts WHERE id = 1"),
        (1, "SELECT value FROM accounts WHERE id = 1"),
        (0, "UPDATE accounts SET value = 11 WHERE id = 1"),
        (1, "UPDATE accounts SET value = 12 WHERE id = 1"),
        (0, "COMMIT"),
        (1, "COMMIT"),
    ],
    "read skew": [
        (0, "SELECT value FROM accounts WHERE id = 1"),
        (1, "UPDATE accounts SET value = 12 WHERE id = 1"),
        (1, "UPDATE accounts SET value = 18 WHERE id = 2"),
        (1, "COMMIT"),
        (0, "SELECT value FROM accounts WHERE id = 2"),
        (0, "COMMIT"),
    ],
    "read skew by a write": [
        (0, "SELECT value FROM accounts WHERE id = 1"),
        (1, "UPDATE accounts SET value = 12 WHERE id = 1"),
        (1, "UPDATE accounts SET value = 18 WHERE id = 2"),
        (1, "COMMIT"),
        (0, "DELETE FROM accounts WHERE value = 20"),
        (0, "COMMIT"),
    ],
    "phantom": [
        (0, "SELECT count(*) FROM accounts WHERE value % 3 = 0"),
        (1, "INSERT INTO accounts VALUES (3, 30)"),
        (1, "COMMIT"),
        (0, "SELECT count(*) FROM accounts WHERE value % 3 = 0"),
        (0, "COMMIT"),
    ],
    "phantom by a write": [
        (0, "UPDATE accounts SET value = value + 10"),
        (1, "DELETE FROM accounts WHERE value = 20"),
        (0, "COMMIT"),
        (1, "COMMIT"),
    ],
    "write skew": [
        (0, "SELECT sum(value) FROM accounts"),
        (1, "SELECT sum(value) FROM accounts"),
        (0, "UPDATE accounts SET value = value - 15 WHERE id = 1"),
        (1, "UPDATE accounts SET value = value - 15 WHERE id = 2"),
        (0, "COMMIT"),
        (1, "COMMIT"),
    ],
    "write skew of new rows": [
        (0, "SELECT count(*) FROM accounts WHERE value % 3 = 0"),
        (1, "SELECT count(*) FROM accounts WHERE value % 3 = 0"),
        (0, "INSERT INTO accounts VALUES (3, 30)"),
        (1, "INSERT INTO accounts VALUES (4, 42)"),
        (0, "COMMIT"),
        (1, "COMMIT"),
    ],
    "a reader between two writers": [
        (0, "SELECT value FROM accounts ORDER BY id"),
        (1, "UPDATE accounts SET value = value + 5 WHERE id = 2"),
        (1, "COMMIT"),
        (2, "SELECT value FROM accounts ORDER BY id"),
        (2, "COMMIT"),
        (0, "UPDATE accounts SET value = 0 WHERE id = 1"),
        (0, "COMMIT"),
    ],
    "write skew of reads that a savepoint undid": [
        (0, "SAVEPOINT s"),
        (1, "SAVEPOINT s"),
        (0, "SELECT value FROM accounts WHERE id = 2"),
        (1, "SELECT value FROM accounts WHERE id = 1"),
        (0, "ROLLBACK TO s"),
        (1, "ROLLBACK TO s"),
        (0, "UPDATE accounts SET value = 0 WHERE id = 1"),
        (1, "UPDATE accounts SET value = 0 WHERE id = 2"),
        (0, "COMMIT"),
        (1, "COMMIT"),
    ],
    "a read repeated after going back to a savepoint": [
        (0, "SAVEPOINT s"),
        (0, "SELECT value FROM accounts WHERE id = 1"),
        (1, "UPDATE accounts SET value = 11 WHERE id = 1"),
        (1, "COMMIT"),
        (0, "ROLLBACK TO s"),
        (0, "SELECT value FROM accounts WHERE id = 1"),
        (0, "COMMIT"),
    ],
    "read skew of a cursor": [
        (0, "DECLARE c CURSOR FOR SELECT value FROM accounts WHERE id = 2"),
        (1, "UPDATE accounts SET value = 11 WHERE id = 1"),
        (1, "UPDATE accounts SET value = 21 WHERE id = 2"),
        (1, "COMMIT"),
        (0, "SELECT value FROM accounts WHERE id = 1 FOR UPDATE"),
        (0, "FETCH ALL FROM c"),
        (0, "COMMIT"),
    ],
    "write skew of a cursor": [
        (0, "DECLARE c CURSOR FOR SELECT value FROM accounts WHERE id = 2"),
        (1, "SELECT value FROM accounts WHERE id = 1"),
        (0, "UPDATE accounts SET value = 0 WHERE id = 1"),
        (1, "UPDATE accounts SET value = 0 WHERE id = 2"),
        (1, "COMMIT"),
        (0, "FETCH ALL FROM c"),
        (0, "COMMIT"),
    ],
}


@pytest.mark.parametrize("level", ["SERIALIZABLE", "REPEATABLE READ"])
@pytest.mark.parametrize("name", HISTORIES)
def test_transactions_that_commit_could_have_run_one_after_the_other(
    accounts: Cluster, name: str, level: str
) -> None:
    steps = HISTORIES[name]
    scripts = _play(accounts, steps, level)
    committed = [number for number, script in enumerate(scripts) if script.end()]
    assert committed, "somebody gets through"
    heard, left = [scripts[number].said for number in committed], _state(accounts)
    for order in permutations(range(len(committed))):
        texts = [[text for who, text in steps if who == committed[place]] for place in order]
        said, state = _one_by_one(accounts, texts)
        if state == left and [said[order.index(place)] for place in range(len(committed))] == heard:
            return
    pytest.fail(f"{heard} and {left} come from no order of {committed}")


def test_an_aborted_write_is_never_read(accounts: Cluster) -> None:
    writer, reader = accounts.connect(0), accounts.connect(1)
    writer.execute("BEGIN")
    writer.execute("UPDATE accounts SET value = 101 WHERE id = 1")
    assert reader.execute("SELECT value FROM accounts WHERE id = 1").fetchone() == (10,)
    writer.execute("ROLLBACK")
    assert reader.execute("SELECT value FROM accounts WHERE id = 1").fetchone() == (10,)


# ── a transaction that is older than a lease may get ───────────────────────────────────────────

Meanwhile = Callable[[Cluster], None]


def _nothing(cluster: Cluster) -> None:
    pass


def _change_another_table(cluster: Cluster) -> None:
    cluster.run("ALTER TABLE other ADD COLUMN b INT", node=1)


def _make_a_table_here(cluster: Cluster) -> None:
    cluster.run("CREATE TABLE third (a INT PRIMARY KEY)", node=0)


@pytest.mark.parametrize("meanwhile", [_nothing, _change_another_table, _make_a_table_here])
def test_a_transaction_longer_than_the_liveness_ttl_commits(impatient: Cluster, meanwhile: Meanwhile) -> None:
    impatient.run(
        "CREATE TABLE t (id INT PRIMARY KEY, value INT)",
        "CREATE TABLE other (a INT PRIMARY KEY)",
        "INSERT INTO t VALUES (1, 1)",
    )
    client = impatient.connect(0)
    client.execute("BEGIN")
    assert client.execute("SELECT value FROM t").fetchall() == [(1,)]
    meanwhile(impatient)
    client.execute(f"SELECT pg_sleep({3 * TTL_SECONDS})")
    client.execute("INSERT INTO t VALUES (2, 2)")
    client.execute("COMMIT")
    assert impatient.connect(1).execute("SELECT count(*) FROM t").fetchone() == (2,)
