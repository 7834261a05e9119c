"""Blocks of rows and schema changes beside busy writers: tried again, they get their turn."""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pytest

from tenure.cluster.locks import table_holds
from tests.unit.sql.served import Served, serving

TRIES = 5
PATIENCE_SECONDS = 60.0
"""Far more than anything here takes, and far less than `lease.holder_grace`."""

Client = psycopg.Connection[Any]


@pytest.fixture(params=[1, 2], ids=["one node", "two nodes"])
def nodes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Served]]:
    with ExitStack() as stack:
        nodes = [stack.enter_context(serving(tmp_path)) for _ in range(request.param)]
        while len(nodes) > 1 and any(each.node.cluster.neighbours.is_alone() for each in nodes):
            time.sleep(0.01)  # a node that thinks it is alone tells nobody of its locks
        nodes[0].tag("CREATE TABLE t (id int PRIMARY KEY, v int)")
        nodes[0].tag("INSERT INTO t SELECT n, n FROM generate_series(1, 50) n")
        yield nodes


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def _block(client: Client, change: str) -> bool:
    """Scans the table and changes it; False if that was to be tried again."""
    try:
        with client.transaction():
            client.execute("UPDATE t SET v = v + 1 WHERE v < 0")
            client.execute(change.encode())
        return True
    except psycopg.errors.SerializationFailure:
        return False


def _lose(client: Client, writer: Client) -> None:
    """A block that scans the table and changes it, and is overtaken by a writer."""
    client.execute("BEGIN")
    client.execute("UPDATE t SET v = v + 1 WHERE v < 0")
    client.execute("ALTER TABLE t ADD c int")
    writer.execute("UPDATE t SET v = v + 1 WHERE id = 1")
    with pytest.raises(psycopg.errors.SerializationFailure):
        client.execute("COMMIT")


def _writing(threads: ThreadPoolExecutor, node: Served, statement: str) -> "Future[str | None]":
    """Somebody who writes, once it waits to."""

    def write() -> str | None:
        with node.connect() as client:
            return client.execute(statement.encode()).statusmessage

    writing = threads.submit(write)
    waits = "SELECT 1 FROM tenure_internal.locks WHERE NOT is_held AND mode = 'share' AND node_id = "
    (instance,) = node.rows("SELECT node_id FROM tenure_internal.sessions LIMIT 1")[0]
    while not writing.done() and not node.rows(f"{waits} {instance}") and not _waits_in_store(node):
        pass
    return writing


def _waits_in_store(node: Served) -> bool:
    """Whether a writer has its place in memory, and waits for another node's record."""
    held = node.rows("SELECT mode, node_id FROM tenure_internal.locks WHERE kind = 'table'")
    return len({node_id for _, node_id in held}) > 1 and any(mode == "share" for mode, _ in held)


def test_a_block_gets_its_turn_while_writers_go_on(nodes: list[Served], threads: ThreadPoolExecutor) -> None:
    stop = Event()

    def write(number: int) -> int:
        done = 0
        with nodes[number % len(nodes)].connect() as client:
            while not stop.is_set():
                client.execute(f"UPDATE t SET v = v + 1 WHERE id = {1 + (done * 3 + number) % 50}".encode())
                client.execute(f"INSERT INTO t VALUES ({1000 + done * 3 + number}, 1)".encode())
                done += 1
        return done

    writers = [threads.submit(write, number) for number in range(3)]
    with nodes[-1].connect() as client:
        tries = []
        for round in range(3):
            change = f"ALTER TABLE t ADD c{round} int"
            tries.append(next((n for n in range(1, TRIES + 1) if _block(client, change)), None))
    stop.set()
    assert None not in tries, "a block did not get its turn"
    assert all(each.result() for each in writers)
    ((rows,),) = nodes[0].rows("SELECT count(*) FROM t WHERE v < 0 OR id > 0")
    assert rows == 50 + sum(each.result() for each in writers)


def test_two_such_blocks_take_turns(nodes: list[Served], threads: ThreadPoolExecutor) -> None:
    def change(number: int) -> list[int | None]:
        with nodes[number % len(nodes)].connect() as client:
            changes = [f"ALTER TABLE t ADD c{number}_{round} int" for round in range(3)]
            tries = range(1, 4 * TRIES + 1)
            return [next((n for n in tries if _block(client, each)), None) for each in changes]

    for each in [threads.submit(change, number) for number in range(2)]:
        assert None not in each.result(), "two blocks kept each other from committing"


def test_writers_wait_for_the_next_try_of_a_block_that_lost(
    nodes: list[Served], threads: ThreadPoolExecutor
) -> None:
    with nodes[-1].connect() as client, nodes[0].connect() as other:
        _lose(client, other)
        client.execute("BEGIN")
        writing = _writing(threads, nodes[0], "INSERT INTO t VALUES (99, 99)")
        assert not writing.done()
        assert other.execute("SELECT count(*) FROM t").fetchone() == (50,)
        client.execute("UPDATE t SET v = v + 1 WHERE v < 0")
        client.execute("ALTER TABLE t ADD c int")
        client.execute("COMMIT")
        assert writing.result(PATIENCE_SECONDS) == "INSERT 0 1"
        assert other.execute("SELECT c FROM t WHERE id = 99").fetchall() == [(None,)]


def test_who_holds_a_table_is_shown_on_every_node(nodes: list[Served]) -> None:
    with nodes[-1].connect() as client, nodes[0].connect() as other:
        _lose(client, other)
        client.execute("BEGIN")
        shown = (
            "SELECT kind, table_name, mode, is_held, node_id FROM tenure_internal.locks WHERE kind = 'table'"
        )
        assert other.execute(shown).fetchall() == [
            ("table", "defaultdb.public.t", "exclusive", True, len(nodes))
        ]
        client.execute("ROLLBACK")


def test_a_block_that_does_not_come_to_an_end_does_not_hold_writers_up_for_ever(
    nodes: list[Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_holds, "HOLD_SECONDS", 0.2)
    with nodes[-1].connect() as client, nodes[0].connect() as other:
        _lose(client, other)
        client.execute("BEGIN")
        other.execute("INSERT INTO t VALUES (99, 99)")
        client.execute("ROLLBACK")


def test_a_writer_that_waits_keeps_its_lock_timeout(nodes: list[Served]) -> None:
    with nodes[-1].connect() as client, nodes[-1].connect() as other:
        _lose(client, other)
        client.execute("BEGIN")
        other.execute("SET lock_timeout = '20ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute("INSERT INTO t VALUES (99, 99)")
        client.execute("ROLLBACK")
        other.execute("INSERT INTO t VALUES (99, 99)")


def test_a_block_that_has_written_the_table_before_goes_on(nodes: list[Served]) -> None:
    with nodes[-1].connect() as client, nodes[-1].connect() as other, nodes[-1].connect() as earlier:
        _lose(client, other)
        earlier.execute("BEGIN")
        earlier.execute("INSERT INTO t VALUES (98, 98)")
        client.execute("BEGIN")
        earlier.execute("INSERT INTO t VALUES (99, 99)")
        earlier.execute("COMMIT")
        client.execute("ROLLBACK")


def test_a_block_without_changes_of_the_schema_holds_nothing(nodes: list[Served]) -> None:
    with nodes[-1].connect() as client, nodes[0].connect() as other:
        client.execute("BEGIN")
        client.execute("UPDATE t SET v = v + 1 WHERE v < 0")
        other.execute("UPDATE t SET v = v + 1 WHERE id = 1")
        client.execute("INSERT INTO t VALUES (98, 98)")
        with pytest.raises(psycopg.errors.SerializationFailure):
            client.execute("COMMIT")
        client.execute("BEGIN")
        other.execute("INSERT INTO t VALUES (99, 99)")
        client.execute("ROLLBACK")


def test_statements_between_two_tries_do_not_matter(nodes: list[Served]) -> None:
    with nodes[-1].connect() as client, nodes[0].connect() as other:
        _lose(client, other)
        client.execute("SELECT 1")
        client.execute("INSERT INTO t VALUES (98, 98)")
        client.execute("BEGIN")
        held = "SELECT count(*) FROM tenure_internal.locks WHERE kind = 'table'"
        assert client.execute(held).fetchone() == (1,)
        client.execute("ROLLBACK")
        client.execute("BEGIN")
        assert client.execute(held).fetchone() == (0,)
        client.execute("ROLLBACK")


def test_several_statements_sent_together_are_a_block_too(nodes: list[Served]) -> None:
    held = "SELECT count(*) FROM tenure_internal.locks WHERE kind = 'table'"
    with nodes[-1].connect() as client, nodes[0].connect() as other:
        _lose(client, other)
        told = client.execute(f"SELECT 1; {held}".encode())
        assert told.nextset() and told.fetchone() == (1,)
        assert client.execute(held.encode()).fetchone() == (0,)


# ── who waits for a lock is not in the way of the change that its holder makes ─────────────────


def test_a_row_may_be_waited_for_that_a_block_has_which_changes_its_table(
    nodes: list[Served], threads: ThreadPoolExecutor
) -> None:
    with nodes[-1].connect() as client, nodes[0].connect() as other:
        client.execute("BEGIN")
        client.execute("UPDATE t SET v = 0 WHERE id = 1")
        writing = threads.submit(other.execute, "UPDATE t SET v = v + 1 WHERE id = 1")
        client.execute("ALTER TABLE t ADD c int")
        threads.submit(client.execute, "COMMIT").result(PATIENCE_SECONDS)
        writing.result(PATIENCE_SECONDS)
        assert other.execute("SELECT v, c FROM t WHERE id = 1").fetchone() == (1, None)


def test_a_number_may_be_waited_for_that_a_session_has_which_changes_a_table(
    nodes: list[Served], threads: ThreadPoolExecutor
) -> None:
    with nodes[-1].connect() as client, nodes[0].connect() as other:
        client.execute("SELECT pg_advisory_lock(7)")
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM t")
        waiting = threads.submit(other.execute, "SELECT pg_advisory_lock(7)")
        threads.submit(client.execute, "ALTER TABLE t ADD c int").result(PATIENCE_SECONDS)
        client.execute("SELECT pg_advisory_unlock(7)")
        with pytest.raises(psycopg.errors.SerializationFailure):
            waiting.result(PATIENCE_SECONDS)
        other.execute("ROLLBACK")
        assert client.execute("SELECT pg_try_advisory_lock(7)").fetchone() == (True,)


def test_a_wait_for_a_row_whose_table_stays_goes_on(nodes: list[Served], threads: ThreadPoolExecutor) -> None:
    with nodes[-1].connect() as client, nodes[0].connect() as other:
        client.execute("BEGIN")
        client.execute("UPDATE t SET v = 0 WHERE id = 1")
        other.execute("BEGIN")
        other.execute("SELECT v FROM t WHERE id = 2")
        writing = threads.submit(other.execute, "UPDATE t SET v = v + 1 WHERE id = 1")
        client.execute("SELECT pg_sleep(0.3)")
        client.execute("COMMIT")
        writing.result(PATIENCE_SECONDS)
        other.execute("COMMIT")
        assert other.execute("SELECT v FROM t WHERE id = 1").fetchone() == (1,)
