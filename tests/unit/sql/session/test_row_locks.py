"""SELECT ... FOR UPDATE wherever it stands: what is locked, what is passed over."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.unit.sql.served import Served, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory: Path = tmp_path_factory.mktemp("row_locks")
    with serving(directory) as served:
        yield served


@pytest.fixture(autouse=True)
def jobs(served: Served) -> None:
    served.tag("DROP TABLE IF EXISTS jobs")
    served.tag("DROP TABLE IF EXISTS taken")
    served.tag("CREATE TABLE jobs (id int PRIMARY KEY, state text)")
    served.tag("CREATE TABLE taken (id int PRIMARY KEY)")
    served.tag("INSERT INTO jobs SELECT n, 'new' FROM generate_series(1, 60) n")


def _locked_ids(served: Served) -> list[int]:
    with served.connect() as other:
        free = other.execute("SELECT id FROM jobs FOR UPDATE SKIP LOCKED").fetchall()
    return sorted(set(range(1, 61)) - {id for (id,) in free})


def _holding(client: "psycopg.Connection[Any]", statement: str) -> list[tuple[Any, ...]]:
    client.execute("BEGIN")
    return client.execute(statement.encode()).fetchall()


def test_rows_of_a_subquery_are_locked_whatever_becomes_of_them_above(served: Served) -> None:
    with served.connect() as client:
        counted = _holding(client, "SELECT count(*) FROM (SELECT id FROM jobs WHERE id < 4 FOR UPDATE) s")
        assert counted == [(3,)]
        assert _locked_ids(served) == [1, 2, 3]


def test_rows_of_both_joined_tables_are_locked(served: Served) -> None:
    with served.connect() as client:
        served.tag("INSERT INTO taken VALUES (2)")
        assert _holding(client, "SELECT state FROM jobs JOIN taken USING (id) FOR UPDATE") == [("new",)]
        assert _locked_ids(served) == [2]
        assert served.rows("SELECT * FROM taken FOR UPDATE SKIP LOCKED") == []


def test_rows_of_a_with_query_are_locked(served: Served) -> None:
    with served.connect() as client:
        query = "WITH w AS (SELECT id FROM jobs WHERE id = 5 FOR UPDATE) SELECT max(id) FROM w"
        assert _holding(client, query) == [(5,)]
        assert _locked_ids(served) == [5]


def test_limit_1_skip_locked_finds_the_first_that_is_free(served: Served) -> None:
    with served.connect() as client:
        _holding(client, "SELECT id FROM jobs WHERE id <= 40 FOR UPDATE")
        first = served.rows("SELECT id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED")
        assert first == [(41,)]


def test_many_rows_are_passed_over_together(served: Served) -> None:
    with served.connect() as client:
        _holding(client, "SELECT id FROM jobs WHERE id % 2 = 0 FOR UPDATE")
        free = served.rows("SELECT count(*) FROM (SELECT id FROM jobs FOR UPDATE SKIP LOCKED) s")
        assert free == [(30,)]


def test_an_update_takes_the_next_free_row_of_a_queue(served: Served) -> None:
    take = (
        "UPDATE jobs SET state = 'taken' WHERE id = (SELECT id FROM jobs WHERE state = 'new' "
        "ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id"
    )
    with served.connect() as one, served.connect() as two:
        assert _holding(one, take) == [(1,)]
        assert _holding(two, take) == [(2,)]
        one.execute("ROLLBACK")
        two.execute("COMMIT")
    assert served.rows(take) == [(1,)]


def test_a_delete_takes_the_free_rows_of_a_queue(served: Served) -> None:
    take = (
        "DELETE FROM jobs WHERE id IN "
        "(SELECT id FROM jobs ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED) RETURNING id"
    )
    with served.connect() as one:
        assert _holding(one, take) == [(1,), (2,)]
        assert served.rows(take) == [(3,), (4,)]
        one.execute("ROLLBACK")


def test_an_insert_locks_what_it_selects(served: Served) -> None:
    with served.connect() as client:
        client.execute("BEGIN")
        client.execute("INSERT INTO taken SELECT id FROM jobs WHERE id > 58 FOR UPDATE")
        assert _locked_ids(served) == [59, 60]


def test_nowait_in_a_subquery_is_an_error(served: Served) -> None:
    with served.connect() as client:
        _holding(client, "SELECT id FROM jobs WHERE id = 1 FOR UPDATE")
        refusal = served.refusal("SELECT * FROM (SELECT id FROM jobs FOR UPDATE NOWAIT) s")
        assert refusal.sqlstate == "55P03"


FIRST_FREE = "SELECT id FROM jobs WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"


@pytest.mark.parametrize("has_index", [False, True], ids=["scanned", "indexed"])
@pytest.mark.parametrize("done", ["UPDATE jobs SET state = 'done'", "DELETE FROM jobs"])
def test_workers_on_one_queue_do_not_fail_each_other(served: Served, has_index: bool, done: str) -> None:
    if has_index:
        served.tag("CREATE INDEX ON jobs (state, id)")
    with served.connect() as one, served.connect() as two:
        assert _holding(one, FIRST_FREE) == [(1,)]
        assert _holding(two, FIRST_FREE) == [(2,)]
        one.execute(f"{done} WHERE id = 1".encode())
        one.execute("COMMIT")
        served.tag("INSERT INTO jobs VALUES (0, 'new')")
        two.execute("UPDATE jobs SET state = 'done' WHERE id = 2")
        two.execute("COMMIT")
    assert served.rows("SELECT state FROM jobs WHERE id = 2") == [("done",)]


def test_a_worker_that_changes_what_it_takes_does_not_fail_another(served: Served) -> None:
    take = f"UPDATE jobs SET state = 'taken' WHERE id IN ({FIRST_FREE}) RETURNING id"
    with served.connect() as one, served.connect() as two:
        assert _holding(one, take) == [(1,)]
        assert _holding(two, take) == [(2,)]
        one.execute("COMMIT")
        two.execute("COMMIT")
    assert served.rows("SELECT count(*) FROM jobs WHERE state = 'taken'") == [(2,)]


def test_a_row_that_another_has_just_done_is_not_taken_again(served: Served) -> None:
    with served.connect() as two:
        two.execute("BEGIN")
        two.execute("SELECT 1 FROM taken")  # its time is before the change
        served.tag("UPDATE jobs SET state = 'done' WHERE id = 1")
        assert two.execute(FIRST_FREE.encode()).fetchall() == [(2,)]
        two.execute("ROLLBACK")


def test_what_else_is_read_of_the_queue_still_holds_at_commit(served: Served) -> None:
    counting = FIRST_FREE.replace("SELECT id", "SELECT id, (SELECT count(*) FROM jobs WHERE state = 'done')")
    with served.connect() as one, served.connect() as two:
        assert _holding(one, FIRST_FREE) == [(1,)]
        assert _holding(two, counting) == [(2, 0)]
        one.execute("UPDATE jobs SET state = 'done' WHERE id = 1")
        one.execute("COMMIT")
        two.execute("INSERT INTO taken VALUES (2)")
        with pytest.raises(psycopg.errors.SerializationFailure):
            two.execute("COMMIT")


# Rows that others refer to


@pytest.fixture
def orders(served: Served) -> None:
    served.tag("DROP TABLE IF EXISTS lines, orders")
    served.tag("CREATE TABLE orders (id int PRIMARY KEY, total int)")
    served.tag("CREATE TABLE lines (id int PRIMARY KEY, order_id int REFERENCES orders)")
    served.tag("INSERT INTO orders VALUES (1, 0)")


@pytest.mark.usefixtures("orders")
def test_adding_to_an_order_and_updating_it_do_not_fail_each_other(served: Served) -> None:
    with served.connect() as one:
        one.execute("BEGIN")
        one.execute("INSERT INTO lines VALUES (1, 1)")
        served.tag("UPDATE orders SET total = total + 1")
        one.execute("UPDATE orders SET total = total + 10")
        one.execute("COMMIT")
        one.execute("BEGIN")
        one.execute("INSERT INTO lines VALUES (2, 1)")
        served.tag("UPDATE orders SET total = total + 100")
        one.execute("COMMIT")
    assert served.rows("SELECT total FROM orders") == [(111,)]


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize("other", ["DELETE FROM orders", "UPDATE orders SET id = 2"])
def test_an_order_that_is_gone_gets_no_line(served: Served, other: str) -> None:
    with served.connect() as one:
        one.execute("BEGIN")
        one.execute("INSERT INTO lines VALUES (1, 1)")
        served.tag(other)
        with pytest.raises(psycopg.errors.SerializationFailure):
            one.execute("COMMIT")
    assert served.rows("SELECT count(*) FROM lines") == [(0,)]


@pytest.mark.usefixtures("orders")
def test_an_order_is_deleted_with_the_line_that_was_added_to_it(served: Served) -> None:
    with served.connect() as one:
        one.execute("BEGIN")
        one.execute("INSERT INTO lines VALUES (1, 1)")
        one.execute("DELETE FROM lines")
        one.execute("DELETE FROM orders")
        one.execute("COMMIT")
    assert served.rows("SELECT count(*) FROM orders") == [(0,)]


@pytest.mark.usefixtures("orders")
def test_an_order_that_was_read_must_not_change(served: Served) -> None:
    with served.connect() as one:
        assert _holding(one, "SELECT total FROM orders") == [(0,)]
        one.execute("INSERT INTO lines VALUES (1, 1)")
        served.tag("UPDATE orders SET total = 5")
        with pytest.raises(psycopg.errors.SerializationFailure):
            one.execute("COMMIT")


def test_who_inserts_the_same_row_on_conflict_do_nothing_queues(served: Served) -> None:
    insert = "INSERT INTO taken VALUES (1) ON CONFLICT DO NOTHING"
    with served.connect() as one, served.connect() as two, ThreadPoolExecutor(1) as pool:
        for client in (one, two):
            client.execute("BEGIN")
        assert one.execute(insert).statusmessage == "INSERT 0 1"
        waiting = pool.submit(two.execute, insert)
        assert not wait([waiting], timeout=0.2).done
        one.execute("COMMIT")
        assert waiting.result().statusmessage == "INSERT 0 0"
        two.execute("COMMIT")
