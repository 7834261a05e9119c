"""CREATE CHANGEFEED ... AS SELECT: filters and projections."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.changefeed.feeding import Feeding
from tests.unit.changefeed.test_file_feeds import FileFeed


@pytest.fixture
def table(feeding: Feeding) -> Feeding:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b numeric, c text)")
    return feeding


def created(feeding: Feeding, directory: Path, query: str, options: str = "") -> FileFeed:
    ((job,),) = feeding.rows(
        f"CREATE CHANGEFEED INTO '{feeding.schema}' WITH updated, resolved = '50ms'{options} AS {query}"
    )
    return FileFeed(feeding, directory, job=int(job or 0))


def emitted(feed: FileFeed) -> list[tuple[Any, Any]]:
    feed.wait_for(feed.feeding.now())
    return [(line["key"][0], line["after"]) for _, lines in feed.batches() for line in lines]


def test_only_rows_that_match_come_with_what_is_selected(table: Feeding, directory: Path) -> None:
    table.done("INSERT INTO t VALUES (1, 1.5, 'x'), (2, 20, 'y')")
    feed = created(table, directory, "SELECT a, b * 2 AS double, upper(c) AS c FROM t WHERE b > 10")
    table.done("INSERT INTO t VALUES (3, 30.25, 'z'), (4, 4, 'z')")
    assert emitted(feed) == [
        (2, {"a": 2, "double": 40, "c": "Y"}),
        (3, {"a": 3, "double": 60.50, "c": "Z"}),
    ]
    table.done(f"CANCEL JOB {feed.job} AND WAIT")


def test_a_row_that_stops_to_match_is_deleted(table: Feeding, directory: Path) -> None:
    feed = created(table, directory, "SELECT a FROM t WHERE b > 10")
    for statement in (
        "INSERT INTO t VALUES (1, 20)",
        "UPDATE t SET b = 5 WHERE a = 1",
        "UPDATE t SET b = 6 WHERE a = 1",
        "DELETE FROM t WHERE a = 1",
        "INSERT INTO t VALUES (2, 20)",
        "DELETE FROM t WHERE a = 2",
    ):
        table.done(statement)
    assert emitted(feed) == [(1, {"a": 1}), (1, None), (2, {"a": 2}), (2, None)]
    table.done(f"CANCEL JOB {feed.job} AND WAIT")


def test_a_renamed_column_stays_selected_and_a_dropped_one_ends_the_feed(
    table: Feeding, directory: Path
) -> None:
    feed = created(table, directory, "SELECT *, a + 1 AS next FROM t WHERE c = 'x'", ", diff")
    table.done("ALTER TABLE t RENAME COLUMN c TO d")
    table.done("INSERT INTO t VALUES (1, 2, 'x')")
    assert emitted(feed) == [(1, {"a": 1, "b": 2, "c": "x", "next": 2})]
    table.done("ALTER TABLE t DROP COLUMN b")
    ((*_, error, _),) = table.rows(f"SHOW JOB WHEN COMPLETE {feed.job}")
    assert "no longer all columns" in str(error)


def test_it_streams_to_the_client_too(table: Feeding) -> None:
    table.done("INSERT INTO t VALUES (1, 2, 'x'), (2, 3, 'y')")
    rows = table.rows("CREATE CHANGEFEED WITH initial_scan = 'only' AS SELECT c FROM t WHERE a = 2")
    assert [json.loads(value or "") for _, _, value in rows] == [{"after": {"c": "y"}}]


@pytest.mark.parametrize(
    ("query", "sqlstate"),
    [
        ("SELECT a FROM t, t AS u", "0A000"),
        ("SELECT count(*) AS n FROM t", "42803"),
        ("SELECT a FROM t ORDER BY a", "0A000"),
        ("SELECT a FROM t LIMIT 1", "0A000"),
        ("SELECT (SELECT 1) AS a FROM t", "0A000"),
        ("SELECT a + 1 FROM t", "42601"),
        ("SELECT a, b AS a FROM t", "42601"),
        ("SELECT random() AS r FROM t", "42P17"),
        ("SELECT nothing FROM t", "42703"),
        ("SELECT a FROM nothing", "42P01"),
        ("SELECT a FROM t WHERE b", "42804"),
        ("DELETE FROM t", "42601"),
    ],
)
def test_what_is_no_plain_query_of_a_table_is_refused(table: Feeding, query: str, sqlstate: str) -> None:
    said = table.talk.say(f"CREATE CHANGEFEED WITH initial_scan = 'only' AS {query}")
    assert said.sqlstate == sqlstate, said
