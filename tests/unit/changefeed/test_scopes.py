"""Feeds of a whole schema or database: tables that come, and tables that leave."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.base.timestamp import parse
from tests.unit.changefeed.feeding import Feeding, SteppedFeed
from tests.unit.changefeed.test_file_feeds import FileFeed


@pytest.fixture
def scoped(feeding: Feeding) -> Iterator[SteppedFeed]:
    """A feed of the whole schema, which has a table t with one row."""
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    feeding.done("INSERT INTO t VALUES (1)")
    feed = SteppedFeed.of_schema(feeding)
    yield feed
    feed.feed.close()


def said(feed: SteppedFeed) -> list[tuple[str, Any]]:
    """What has come since the last time: the table and its row, or the events."""
    taken = len(feed.sink.messages)
    feed.catch_up()
    found = []
    for message in feed.sink.messages[taken:]:
        value = json.loads(message.value or "null")
        what = value["ddl"]["events"] if "ddl" in value else (value["after"] or {"key": value["key"]})
        found.append((message.topic.rsplit(".", 1)[-1], what))
    return found


def test_tables_that_are_there_are_scanned(scoped: SteppedFeed) -> None:
    assert said(scoped) == [("t", {"a": 1})]


@pytest.mark.invariant("scope-complete")
def test_rows_committed_with_a_new_table_are_delivered(scoped: SteppedFeed) -> None:
    said(scoped)
    for statement in (
        "BEGIN",
        "CREATE TABLE u (b int PRIMARY KEY)",
        "INSERT INTO u VALUES (5), (6)",
        "COMMIT",
        "INSERT INTO u VALUES (7)",
    ):
        scoped.feeding.done(statement)
    assert said(scoped) == [("u", {"b": 5}), ("u", {"b": 6}), ("u", {"b": 7})]


def test_rows_of_create_table_as_are_delivered_once(scoped: SteppedFeed) -> None:
    said(scoped)
    scoped.feeding.done("CREATE TABLE u AS SELECT a AS b FROM t")
    assert said(scoped) == [("u", {"b": 1})]


def test_a_dropped_table_ends_with_an_event_and_the_feed_goes_on(scoped: SteppedFeed) -> None:
    said(scoped)
    scoped.feeding.done("CREATE TABLE u (b int PRIMARY KEY)")
    scoped.feeding.done("INSERT INTO t VALUES (2)")
    scoped.feeding.done("DROP TABLE t")
    scoped.feeding.done("INSERT INTO u VALUES (1)")
    found = said(scoped)
    assert sorted(found, key=str) == [("t", ["drop"]), ("t", {"a": 2}), ("u", {"b": 1})]
    assert found.index(("t", {"a": 2})) < found.index(("t", ["drop"]))
    assert [each.table for each in scoped.feed.position.tables] == [scoped.feeding.table("u").id]


def test_a_table_that_moves_out_and_in_again_ends_and_comes_with_its_rows(scoped: SteppedFeed) -> None:
    said(scoped)
    feeding = scoped.feeding
    feeding.done(f"CREATE SCHEMA {feeding.schema}_away")
    feeding.done(f"ALTER TABLE t SET SCHEMA {feeding.schema}_away")
    feeding.done(f"INSERT INTO {feeding.schema}_away.t VALUES (2)")
    feeding.done(f"ALTER TABLE {feeding.schema}_away.t SET SCHEMA {feeding.schema}")
    feeding.done("INSERT INTO t VALUES (3)")
    assert said(scoped) == [("t", ["move"]), ("t", {"a": 1}), ("t", {"a": 2}), ("t", {"a": 3})]


def test_temporary_tables_are_never_part(scoped: SteppedFeed) -> None:
    said(scoped)
    scoped.feeding.done("CREATE TEMPORARY TABLE u (b int PRIMARY KEY)")
    scoped.feeding.done("INSERT INTO u VALUES (1)")
    assert said(scoped) == []


def test_a_dropped_schema_ends_its_feed_after_its_tables(scoped: SteppedFeed) -> None:
    said(scoped)
    scoped.feeding.done(f"DROP SCHEMA {scoped.feeding.schema} CASCADE")
    while scoped.feed.ending is None:
        scoped.feed.step()
    assert "was dropped" in str(scoped.feed.ending)
    assert json.loads(scoped.sink.messages[-1].value or "")["ddl"]["events"] == ["drop"]


def test_a_table_with_an_import_under_way_stays(scoped: SteppedFeed) -> None:
    said(scoped)
    scoped.feeding.file(f"{scoped.feeding.schema}.csv", "8\n9\n")
    scoped.feeding.done(f"IMPORT INTO t (a) CSV DATA ('{scoped.feeding.schema}.csv')")
    assert sorted(str(each) for each in said(scoped)) == ["('t', {'a': 8})", "('t', {'a': 9})"]


def test_a_run_that_starts_over_at_any_step_loses_and_repeats_no_table(scoped: SteppedFeed) -> None:
    feeding = scoped.feeding
    feeding.done("CREATE TABLE u (b int PRIMARY KEY)")
    feeding.done("INSERT INTO u VALUES (1)")
    feeding.done("DROP TABLE t")
    until_at = feeding.now()
    resolved = [0]
    while scoped.feed.position.resolved_at < until_at:
        scoped.feed.step()
        scoped.restart()
        resolved.append(scoped.feed.position.resolved_at)
    assert resolved == sorted(resolved)
    values = [json.loads(each.value or "") for each in scoped.sink.messages]
    assert sum("ddl" in each for each in values) == 1
    assert sorted(str(each["after"]) for each in values if "after" in each) == ["{'a': 1}", "{'b': 1}"]


def test_a_feed_of_a_database_has_the_tables_of_all_its_schemas(feeding: Feeding, directory: Path) -> None:
    name = f"{feeding.schema}_database"
    feeding.done(f"CREATE DATABASE {name}")
    feeding.done(f"CREATE TABLE {name}.public.t (a int PRIMARY KEY)")
    ((job,),) = feeding.rows(
        f"CREATE CHANGEFEED FOR DATABASE {name} INTO '{feeding.schema}' WITH updated, resolved = '50ms'"
    )
    feed = FileFeed(feeding, directory, job=int(job or 0))
    feeding.done(f"CREATE SCHEMA {name}.app")
    feeding.done(f"CREATE TABLE {name}.app.u (b int PRIMARY KEY)")
    feeding.done(f"INSERT INTO {name}.app.u VALUES (4)")
    feed.wait_for(feeding.now())
    lines = [line for _, lines in feed.batches() for line in lines]
    assert [(line["key"], line["after"]) for line in lines] == [([4], {"b": 4})]
    ((names,),) = feeding.rows(
        f"SELECT full_table_names FROM tenure_internal.changefeed_jobs WHERE job_id = {job}"
    )
    assert names == f"{{{name}.public.t,{name}.app.u}}"
    feeding.done(f"CANCEL JOB {job} AND WAIT")


def test_a_feed_of_a_schema_is_for_its_owner(feeding: Feeding) -> None:
    feeding.done(f"CREATE ROLE r_{feeding.schema}")
    feeding.done(f"GRANT pg_write_server_files TO r_{feeding.schema}")
    feeding.done(f"GRANT USAGE ON SCHEMA {feeding.schema} TO r_{feeding.schema}")
    feeding.done(f"SET ROLE r_{feeding.schema}")
    failed = feeding.talk.say(f"CREATE CHANGEFEED FOR SCHEMA {feeding.schema} INTO 'x'")
    feeding.done("RESET ROLE")
    assert failed.sqlstate == "42501"


def test_a_new_table_that_its_creator_may_not_follow_ends_the_feed(feeding: Feeding) -> None:
    role = f"r_{feeding.schema}"
    feeding.done(f"CREATE ROLE {role}")
    feeding.done(f"GRANT pg_write_server_files TO {role}")
    feeding.done(f"ALTER SCHEMA {feeding.schema} OWNER TO {role}")
    feeding.done(f"SET ROLE {role}")
    ((job,),) = feeding.rows(f"CREATE CHANGEFEED FOR SCHEMA {feeding.schema} INTO '{feeding.schema}'")
    feeding.done("RESET ROLE")
    feeding.done("CREATE TABLE secret (a int PRIMARY KEY)")
    ((*_, error, _),) = feeding.rows(f"SHOW JOB WHEN COMPLETE {job}")
    assert str(error) == "42501 permission denied for table secret"


def test_resolved_does_not_pass_a_table_that_is_still_to_come(scoped: SteppedFeed) -> None:
    said(scoped)
    scoped.feeding.done("CREATE TABLE u (b int PRIMARY KEY)")
    at = scoped.feeding.now()
    scoped.feeding.done("INSERT INTO u VALUES (1)")
    while scoped.feed.position.resolved_at < scoped.feeding.now():
        before = scoped.feed.position.resolved_at
        taken = len(scoped.sink.messages)
        scoped.feed.step()
        for message in scoped.sink.messages[taken:]:
            assert parse(json.loads(message.value or "")["updated"]) > before
    assert scoped.feed.position.resolved_at > at
