"""Clients that want the same rows: they queue, also across nodes, and nobody is failed without need."""

import random
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg.errors import DeadlockDetected, LockNotAvailable

from tests.clients.conftest import Cluster

CLIENTS, ROUNDS = 8, 15


def _at_once(work: Callable[[int], None], clients: int = CLIENTS) -> list[BaseException]:
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def test_a_hot_counter_fails_nobody(cluster: Cluster) -> None:
    cluster.run(
        "DROP TABLE IF EXISTS counters",
        "CREATE TABLE counters (id INT PRIMARY KEY, n INT NOT NULL)",
        "INSERT INTO counters VALUES (1, 0)",
    )
    connections = [cluster.connect(number % 2) for number in range(CLIENTS)]

    def count(number: int) -> None:
        for _ in range(ROUNDS):
            connections[number].execute("UPDATE counters SET n = n + 1 WHERE id = 1")

    assert _at_once(count) == []
    assert connections[0].execute("SELECT n FROM counters").fetchone() == (CLIENTS * ROUNDS,)


def test_transactions_of_a_bank_seldom_fail(cluster: Cluster) -> None:
    """TPC-B's shape: three updates of which one is hot, a read of what was written, an insert."""
    cluster.run(
        "DROP TABLE IF EXISTS accounts, tellers, branches, history",
        "CREATE TABLE accounts (id INT PRIMARY KEY, n INT NOT NULL)",
        "CREATE TABLE tellers (id INT PRIMARY KEY, n INT NOT NULL)",
        "CREATE TABLE branches (id INT PRIMARY KEY, n INT NOT NULL)",
        "CREATE TABLE history (account INT, teller INT, n INT)",
        "INSERT INTO accounts SELECT g, 0 FROM generate_series(1, 1000) g",
        "INSERT INTO tellers SELECT g, 0 FROM generate_series(1, 10) g",
        "INSERT INTO branches VALUES (1, 0)",
    )
    connections = [cluster.connect(number % 2) for number in range(CLIENTS)]
    failed: list[str | None] = []

    def work(number: int) -> None:
        dice = random.Random(number)
        for _ in range(ROUNDS):
            try:
                _transfer(
                    connections[number], dice.randint(1, 1000), dice.randint(1, 10), dice.randint(-9, 9)
                )
            except psycopg.errors.OperationalError as error:
                failed.append(error.sqlstate)

    assert _at_once(work) == []
    assert len(failed) <= CLIENTS * ROUNDS * 0.01, failed
    sums = [
        connections[0].execute(f"SELECT coalesce(sum(n), 0) FROM {table}").fetchone()
        for table in ("accounts", "tellers", "branches", "history")
    ]
    assert len(set(sums)) == 1


def _transfer(client: "psycopg.Connection[Any]", account: int, teller: int, n: int) -> None:
    with client.transaction():
        client.execute("UPDATE accounts SET n = n + %s WHERE id = %s", (n, account))
        client.execute("SELECT n FROM accounts WHERE id = %s", (account,))
        client.execute("UPDATE tellers SET n = n + %s WHERE id = %s", (n, teller))
        client.execute("UPDATE branches SET n = n + %s WHERE id = 1", (n,))
        client.execute("INSERT INTO history VALUES (%s, %s, %s)", (account, teller, n))


@pytest.fixture
def jobs(cluster: Cluster) -> Cluster:
    cluster.run(
        "DROP TABLE IF EXISTS jobs",
        "CREATE TABLE jobs (id INT PRIMARY KEY, state TEXT NOT NULL)",
        "INSERT INTO jobs SELECT g, 'open' FROM generate_series(1, 20) g",
    )
    return cluster


def test_skip_locked_gives_each_worker_another_row(jobs: Cluster) -> None:
    taken: list[int] = []
    connections = [jobs.connect(number % 2) for number in range(4)]

    def work(number: int) -> None:
        client = connections[number]
        while True:
            with client.transaction():
                found = client.execute(
                    "SELECT id FROM jobs WHERE state = 'open' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"
                ).fetchone()
                if found is None:
                    return
                client.execute("UPDATE jobs SET state = 'done' WHERE id = %s", found)
            taken.append(found[0])

    failures = _at_once(work, 4)
    assert [each for each in failures if getattr(each, "sqlstate", "") != "40001"] == []
    assert len(taken) == len(set(taken))


def test_nowait_and_offset_and_joins_lock_what_they_return(jobs: Cluster) -> None:
    one, other = jobs.connect(0), jobs.connect(1)
    one.execute("BEGIN")
    assert one.execute("SELECT id FROM jobs ORDER BY id LIMIT 2 OFFSET 1 FOR UPDATE").fetchall() == [
        (2,),
        (3,),
    ]
    with pytest.raises(LockNotAvailable):
        other.execute("SELECT id FROM jobs WHERE id = 2 FOR UPDATE NOWAIT")
    joined = "SELECT a.id, b.id FROM jobs a JOIN jobs b ON b.id = a.id + 1 WHERE a.id < 5 ORDER BY 1"
    assert other.execute(f"{joined} FOR UPDATE OF a SKIP LOCKED").fetchall() == [(4, 5)]
    one.execute("COMMIT")
    assert other.execute("SELECT id FROM jobs WHERE id = 2 FOR UPDATE").fetchall() == [(2,)]


def test_for_share_shares(jobs: Cluster) -> None:
    one, other = jobs.connect(0), jobs.connect(1)
    one.execute("BEGIN")
    one.execute("SELECT id FROM jobs WHERE id = 1 FOR SHARE")
    assert other.execute("SELECT id FROM jobs WHERE id = 1 FOR SHARE NOWAIT").fetchall() == [(1,)]
    with pytest.raises(LockNotAvailable):
        other.execute("SELECT id FROM jobs WHERE id = 1 FOR UPDATE NOWAIT")
    one.execute("ROLLBACK")


def test_a_row_and_a_number_in_one_cycle_are_a_deadlock(jobs: Cluster) -> None:
    one, other = jobs.connect(0), jobs.connect(0)
    for client in (one, other):
        client.execute("BEGIN")
    one.execute("SELECT pg_advisory_xact_lock(42)")
    other.execute("SELECT id FROM jobs WHERE id = 1 FOR UPDATE")

    def work(number: int) -> None:
        if number:
            other.execute("SELECT pg_advisory_xact_lock(42)")
            other.execute("COMMIT")
        else:
            one.execute("SELECT id FROM jobs WHERE id = 1 FOR UPDATE")
            one.execute("COMMIT")

    failures = []

    def until_one_gives_way(number: int) -> None:
        try:
            work(number)
        except DeadlockDetected as error:
            failures.append(error)
            (other if number else one).execute("ROLLBACK")

    assert _at_once(until_one_gives_way, 2) == []
    assert len(failures) == 1


def test_advisory_locks_exclude_across_nodes(cluster: Cluster) -> None:
    one, other = cluster.connect(0), cluster.connect(1)
    one.execute("SELECT pg_advisory_lock(9)")
    assert other.execute("SELECT pg_try_advisory_lock(9)").fetchone() == (False,)
    one.close()
    other.execute("SET lock_timeout = '20s'")
    other.execute("SELECT pg_advisory_lock(9)")
    assert other.execute("SELECT pg_advisory_unlock(9)").fetchone() == (True,)
