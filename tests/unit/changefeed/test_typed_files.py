"""Changefeeds into Parquet and Avro files: typed columns, the same manifests and promises as NDJSON."""

import json
import random
import sys
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest

from tenure.base.timestamp import parse
from tests.seeds import seeds
from tests.unit.changefeed.feeding import Feeding, Rebuilt
from tests.unit.changefeed.random_work import RandomWork
from tests.unit.changefeed.test_file_feeds import FileFeed

FORMATS = ("parquet", "avro")


def rows_of(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()  # type: ignore[no-any-return]
    with path.open("rb") as file:
        return [row for row in fastavro.reader(file) if isinstance(row, dict)]


def batches_of(feed: FileFeed) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Each manifest, and the rows of its files."""
    found = []
    for manifest in feed.manifests():
        files = [rows_of(feed.files.parent / file["name"]) for file in manifest["files"]]
        assert [len(each) for each in files] == [file["rows"] for file in manifest["files"]]
        found.append((manifest, [row for rows in files for row in rows]))
    return found


def changes_of(feed: FileFeed) -> list[dict[str, Any]]:
    return [row for _, rows in batches_of(feed) for row in rows]


def files_of(feed: FileFeed) -> list[Path]:
    return [feed.files.parent / file["name"] for manifest in feed.manifests() for file in manifest["files"]]


COLUMNS = (
    "a int PRIMARY KEY, n numeric(10,2), d date, z timestamptz, l timestamp, "
    "s text, b bytea, j jsonb, f float8[], g float8, h bool, t time"
)
VALUES = (
    "1, 1.5, '2026-01-02', '2026-01-02 03:04:05+00', '2026-01-02 03:04:05', "
    "'x', '\\x00ff', '{\"k\": 1}', '{1,2}', 0.5, true, '03:04:05'"
)
AFTER = {
    "a": 1,
    "n": Decimal("1.50"),
    "d": date(2026, 1, 2),
    "z": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    "l": datetime(2026, 1, 2, 3, 4, 5),
    "s": "x",
    "b": b"\x00\xff",
    "j": '{"k": 1}',
    "f": "{1,2}",
    "g": 0.5,
    "h": True,
    "t": time(3, 4, 5),
}


@pytest.mark.parametrize("format", FORMATS)
def test_values_have_their_types(feeding: Feeding, directory: Path, format: str) -> None:
    feeding.done(f"CREATE TABLE t ({COLUMNS})")
    feeding.done(f"INSERT INTO t VALUES ({VALUES})")
    feeding.done("INSERT INTO t (a) VALUES (2)")
    feed = FileFeed(feeding, directory, f", format = '{format}', initial_scan = 'only'")
    feeding.done(f"SHOW JOB WHEN COMPLETE {feed.job}")
    first, second = changes_of(feed)
    assert (first["key"], first["after"]) == ({"a": 1}, AFTER)
    assert (second["key"], second["after"]) == ({"a": 2}, {**dict.fromkeys(AFTER), "a": 2})


@pytest.mark.parametrize("format", FORMATS)
def test_schema_changes_are_lines_in_a_file_of_their_own(
    feeding: Feeding, directory: Path, format: str
) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    feed = FileFeed(feeding, directory, f", format = '{format}'")
    feeding.done("INSERT INTO t VALUES (1)")
    feeding.done("DROP TABLE t")
    feeding.done(f"SHOW JOB WHEN COMPLETE {feed.job}")
    row, event = files_of(feed)
    assert [each["after"] for each in rows_of(row)] == [{"a": 1}]
    assert event.suffix == ".ndjson"
    assert json.loads(event.read_text())["ddl"]["events"] == ["drop"]


def test_an_avro_file_has_its_schema(feeding: Feeding, directory: Path) -> None:
    feeding.done('CREATE TABLE t (a int PRIMARY KEY, "1 ö" int, "a b" int, a_u0020_b numeric(10,2))')
    feeding.done("INSERT INTO t VALUES (1, 2, 3, 4.5)")
    feed = FileFeed(feeding, directory, ", format = 'avro', initial_scan = 'only'")
    feeding.done(f"SHOW JOB WHEN COMPLETE {feed.job}")
    with files_of(feed)[0].open("rb") as file:
        reader = fastavro.reader(file)
        schema = reader.writer_schema
        (row,) = reader
    assert isinstance(schema, dict) and isinstance(row, dict)
    assert schema["name"] == f"defaultdb_u002e_{feeding.schema}_u002e_t"
    (_, after, _) = schema["fields"]
    members = after["type"][1]["fields"]
    assert [each["column"] for each in members] == ["a", "1 ö", "a b", "a_u0020_b"]
    assert [each["name"] for each in members] == ["a", "_1_u0020__u00f6_", "a_u0020_b", "a_u0020_b_"]
    assert [*row["after"].values()] == [1, 2, 3, Decimal("4.50")]


def test_without_the_library_the_statement_says_what_to_install(
    feeding: Feeding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    said = feeding.talk.say(f"CREATE CHANGEFEED FOR t INTO '{feeding.schema}' WITH format = 'avro'")
    assert (said.sqlstate, said.hint) == ("0A000", "Install it on every node: pip install 'tenure[avro]'.")


@pytest.mark.parametrize("format", FORMATS)
def test_deletions_have_no_row_and_diff_has_the_row_before(
    feeding: Feeding, directory: Path, format: str
) -> None:
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


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_has_one_schema_and_files_are_in_order(feeding: Feeding, directory: Path, format: str) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    options = f", format = '{format}', schema_change_policy = 'nobackfill'"
    feed = FileFeed(feeding, directory, options)
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
@pytest.mark.parametrize("format", FORMATS)
def test_a_table_without_a_key_has_its_hidden_row_id_as_key(
    feeding: Feeding, directory: Path, columns: str, format: str
) -> None:
    feeding.done(f"CREATE TABLE t ({columns})")
    feeding.done("INSERT INTO t DEFAULT VALUES")
    feed = FileFeed(feeding, directory, f", format = '{format}', initial_scan = 'only'")
    feeding.done(f"SHOW JOB WHEN COMPLETE {feed.job}")
    (change,) = changes_of(feed)
    assert len(change["key"]) == 1 and change["after"] is not None


@pytest.mark.parametrize("format", FORMATS)
def test_a_value_that_the_files_type_cannot_hold_ends_the_feed(
    feeding: Feeding, directory: Path, format: str
) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, n numeric(10,2))")
    feeding.done("INSERT INTO t VALUES (1, 'NaN')")
    feed = FileFeed(feeding, directory, f", format = '{format}'")
    ((*_, error, _),) = feeding.rows(f"SHOW JOB WHEN COMPLETE {feed.job}")
    assert str(error).startswith('22003 column "n" has a value')


@pytest.mark.parametrize("sink", ["https://hooks.test/", "kafka://h"])
def test_these_formats_are_for_files(feeding: Feeding, sink: str) -> None:
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
    feed = FileFeed(feeding, directory, f", format = '{FORMATS[seed % 2]}'")
    for _ in range(25):
        work.step()
    feed.wait_for(feeding.now())
    feeding.done(f"CANCEL JOB {feed.job} AND WAIT")
    rebuilt = Rebuilt()
    for manifest, rows in batches_of(feed):
        for row in rows:
            rebuilt.take({**row, "key": json.dumps(row["key"])})
        if manifest["resolved"] is None:
            continue
        at = parse(manifest["resolved"])
        rebuilt.resolve(at)
        if feeding.is_offline("t", at):
            continue
        theirs, columns = feeding.stored("t", at)
        found = rebuilt.at(at).values()
        ours = [["" if row.get(each) is None else str(row[each]) for each in columns] for _, row in found]
        assert sorted(ours) == theirs
