"""Changefeeds into Parquet files: typed columns, the same manifests, and the same promises as NDJSON."""

import json
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tenure.base.timestamp import parse
from tests.seeds import seeds
from tests.unit.changefeed.feeding import Feeding, Rebuilt
from tests.unit.changefeed.random_work import RandomWork
from tests.unit.changefeed.test_file_feeds import FileFeed


def tables_of(feed: FileFeed) -> list[tuple[dict[str, Any], list[pa.Table]]]:
    """Each manifest, and its files."""
    found = []
    for manifest in feed.manifests():
        tables = [pq.read_table(feed.files.parent / file["name"]) for file in manifest["files"]]
        assert [each.num_rows for each in tables] == [file["rows"] for file in manifest["files"]]
        found.append((manifest, tables))
    return found


def changes_of(feed: FileFeed) -> list[dict[str, Any]]:
    return [row for _, tables in tables_of(feed) for table in tables for row in table.to_pylist()]


def test_columns_have_their_types(feeding: Feeding, directory: Path) -> None:
    feeding.done(
        "CREATE TABLE t (a int PRIMARY KEY, n numeric(10,2), d date, z timestamptz, "
        "s text, b bytea, j jsonb, f float8[])"
    )
    feeding.done(
        "INSERT INTO t VALUES (1, 1.5, '2026-01-02', '2026-01-02 03:04:05+00', "
        "'x', '\\x00ff', '{\"k\": 1}', '{1,2}')"
    )
    feed = FileFeed(feeding, directory, ", format = 'parquet', initial_scan = 'only'")
    feeding.done(f"SHOW JOB WHEN COMPLETE {feed.job}")
    ((_, (table,)),) = [each for each in tables_of(feed) if each[1]]
    after = table.schema.field("after").type
    assert [str(after.field(n).type) for n in range(after.num_fields)] == [
        *("int32", "decimal128(10, 2)", "date32[day]", "timestamp[us, tz=UTC]"),
        *("string", "binary", "string", "string"),
    ]
    (row,) = table.to_pylist()
    assert row["key"] == {"a": 1}
    assert row["after"] == {
        "a": 1,
        "n": Decimal("1.50"),
        "d": date(2026, 1, 2),
        "z": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "s": "x",
        "b": b"\x00\xff",
        "j": '{"k": 1}',
        "f": "{1,2}",
    }


def test_deletions_have_no_row_and_diff_has_the_row_before(feeding: Feeding, directory: Path) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b text)")
    feed = FileFeed(
        feeding, directory, ", format = 'parquet', no_initial_scan, diff, topic_in_value, mvcc_timestamp"
    )
    feeding.done("INSERT INTO t VALUES (1, 'x')")
    feeding.done("UPDATE t SET b = NULL WHERE a = 1")
    feeding.done("DELETE FROM t")
    feed.wait_for(feeding.now())
    feeding.done(f"CANCEL JOB {feed.job} AND WAIT")
    changes = changes_of(feed)
    assert [(each["after"], each["before"]) for each in changes] == [
        ({"a": 1, "b": "x"}, None),
        ({"a": 1, "b": None}, {"a": 1, "b": "x"}),
        (None, {"a": 1, "b": None}),
    ]
    assert {each["topic"] for each in changes} == {f"defaultdb.{feeding.schema}.t"}
    assert all(each["updated"] == each["mvcc_timestamp"] for each in changes)


def test_a_file_has_one_schema_and_files_are_in_order(feeding: Feeding, directory: Path) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    feed = FileFeed(feeding, directory, ", format = 'parquet', schema_change_policy = 'nobackfill'")
    feeding.done(f"PAUSE JOB {feed.job} AND WAIT")
    feeding.done("INSERT INTO t VALUES (1)")
    feeding.done("ALTER TABLE t ADD COLUMN b int DEFAULT 7")
    feeding.done("INSERT INTO t VALUES (2)")
    feeding.done("ALTER TABLE t DROP COLUMN b")
    feeding.done("INSERT INTO t VALUES (3)")
    feeding.done(f"RESUME JOB {feed.job}")
    feed.wait_for(feeding.now())
    feeding.done(f"CANCEL JOB {feed.job} AND WAIT")
    assert [each["after"] for each in changes_of(feed)] == [{"a": 1}, {"a": 2, "b": 7}, {"a": 3}]


@pytest.mark.parametrize("columns", ["", "b text"])
def test_a_table_without_a_key_has_its_hidden_row_id_as_key(
    feeding: Feeding, directory: Path, columns: str
) -> None:
    feeding.done(f"CREATE TABLE t ({columns})")
    feeding.done("INSERT INTO t DEFAULT VALUES")
    feed = FileFeed(feeding, directory, ", format = 'parquet', initial_scan = 'only'")
    feeding.done(f"SHOW JOB WHEN COMPLETE {feed.job}")
    (change,) = changes_of(feed)
    assert len(change["key"]) == 1 and change["after"] is not None


def test_a_value_that_parquet_cannot_hold_ends_the_feed(feeding: Feeding, directory: Path) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, n numeric(10,2))")
    feeding.done("INSERT INTO t VALUES (1, 'NaN')")
    feed = FileFeed(feeding, directory, ", format = 'parquet'")
    ((*_, error, _),) = feeding.rows(f"SHOW JOB WHEN COMPLETE {feed.job}")
    assert str(error).startswith('22003 column "n" has a value')


@pytest.mark.parametrize("sink", ["https://hooks.test/", "kafka://h"])
def test_parquet_is_for_files(feeding: Feeding, sink: str) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    feeding.done("SET CLUSTER SETTING changefeed.kafka.brokers = '*'")
    said = feeding.talk.say(f"CREATE CHANGEFEED FOR t INTO '{sink}' WITH format = 'parquet'")
    assert (said.sqlstate, said.message) == ("22023", 'the format "parquet" is for files')
    feeding.done("RESET CLUSTER SETTING changefeed.kafka.brokers")


@pytest.mark.parametrize("seed", seeds(10, few=2))
def test_files_rebuild_the_table_at_every_resolved_timestamp(
    feeding: Feeding, directory: Path, seed: int
) -> None:
    rng = random.Random(seed)
    work = RandomWork(feeding, rng)
    feed = FileFeed(feeding, directory, ", format = 'parquet'")
    for _ in range(25):
        work.step()
    feed.wait_for(feeding.now())
    feeding.done(f"CANCEL JOB {feed.job} AND WAIT")
    rebuilt = Rebuilt()
    for manifest, tables in tables_of(feed):
        for row in (row for table in tables for row in table.to_pylist()):
            rebuilt.take({**row, "key": json.dumps(row["key"])})
        if manifest["resolved"] is None:
            continue
        at = parse(manifest["resolved"])
        rebuilt.resolve(at)
        if feeding.is_offline("t", at):
            continue
        theirs, columns = feeding.stored("t", at)
        rows = rebuilt.at(at).values()
        ours = [["" if row.get(each) is None else str(row[each]) for each in columns] for row in rows]
        assert sorted(ours) == theirs
