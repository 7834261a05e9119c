"""ALTER CHANGEFEED: what a feed follows changes while it runs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.base.timestamp import parse
from tests.unit.changefeed.feeding import Feeding
from tests.unit.changefeed.test_file_feeds import FileFeed


@pytest.fixture
def feed(feeding: Feeding, directory: Path) -> Iterator[FileFeed]:
    """A feed of t, beside a table u with one row."""
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    feeding.done("CREATE TABLE u (a int PRIMARY KEY)")
    feeding.done("INSERT INTO u VALUES (10)")
    feed = FileFeed(feeding, directory)
    yield feed
    feeding.talk.say(f"CANCEL JOB {feed.job} AND WAIT")


def lines(feed: FileFeed) -> list[tuple[str, Any]]:
    """The table and the key of each line; checks that no resolved timestamp was a lie."""
    found, resolved_at = [], 0
    for manifest, batch in feed.batches():
        names = [name for file in manifest["files"] for name in [file["table"]] * file["rows"]]
        for name, line in zip(names, batch, strict=True):
            assert parse(line["updated"]) > resolved_at, "a change comes after it was resolved"
            found.append((name.rsplit(".", 1)[-1], line["key"][0]))
        if manifest["resolved"]:
            assert parse(manifest["resolved"]) >= resolved_at, "resolved goes back"
            resolved_at = parse(manifest["resolved"])
    return found


def altered(feed: FileFeed, change: str, *, paused: bool = False) -> None:
    feeding = feed.feeding
    feed.wait_for(feeding.now())
    if paused:
        feeding.done(f"PAUSE JOB {feed.job} AND WAIT")
    feeding.done(f"ALTER CHANGEFEED {feed.job} {change}")
    if paused:
        feeding.done(f"RESUME JOB {feed.job}")


@pytest.mark.parametrize("paused", [False, True])
def test_a_table_that_is_added_is_followed_from_then_on(feed: FileFeed, paused: bool) -> None:
    altered(feed, "ADD u", paused=paused)
    feed.feeding.done("INSERT INTO u VALUES (11)")
    feed.feeding.done("INSERT INTO t VALUES (1)")
    feed.wait_for_alteration(1)
    feed.wait_for(feed.feeding.now())
    assert sorted(lines(feed)) == [("t", 1), ("u", 11)]


def test_a_table_that_is_added_with_a_scan_comes_with_its_rows(feed: FileFeed) -> None:
    altered(feed, "ADD TABLE u WITH initial_scan")
    feed.feeding.done("INSERT INTO u VALUES (11)")
    feed.wait_for_alteration(1)
    feed.wait_for(feed.feeding.now())
    assert sorted(lines(feed)) == [("u", 10), ("u", 11)]


def test_a_table_that_is_dropped_from_it_is_followed_no_more(feed: FileFeed) -> None:
    altered(feed, "ADD u")
    feed.wait_for_alteration(1)
    altered(feed, "DROP t")
    feed.wait_for_alteration(2)
    feed.feeding.done("INSERT INTO t VALUES (1)")
    feed.feeding.done("INSERT INTO u VALUES (11)")
    feed.wait_for(feed.feeding.now())
    assert lines(feed) == [("u", 11)]


def test_options_are_set_and_unset_while_it_runs(feed: FileFeed) -> None:
    feeding = feed.feeding
    altered(feed, "SET diff, envelope = 'wrapped' UNSET updated")
    feed.wait_for_alteration(1)
    feeding.done("INSERT INTO t VALUES (1)")
    feed.wait_for(feeding.now())
    ((line,),) = [batch for _, batch in feed.batches() if batch]
    assert line == {"after": {"a": 1}, "before": None, "key": [1]}
    assert feeding.talk.say(f"ALTER CHANGEFEED {feed.job} UNSET updated").sqlstate == "22023"


def test_history_of_a_table_that_is_added_is_kept(feed: FileFeed) -> None:
    feeding = feed.feeding
    altered(feed, "ADD u")
    now, protections = feeding.node.store.snapshot(), feeding.node.job_protections
    assert len(protections.ids(now, feed.job)) == 2


@pytest.mark.parametrize(
    ("change", "sqlstate"),
    [
        ("ADD t", "22023"),
        ("DROP u", "22023"),
        ("DROP t", "22023"),
        ("ADD nothing", "42P01"),
        ("SET cursor = '-1s'", "22023"),
        ("SET nonsense", "22023"),
        ("UNSET diff", "22023"),
        ("ADD u DROP u", "42601"),
        ("ADD u WITH diff", "42601"),
        ("", "42601"),
    ],
)
def test_what_makes_no_sense_is_refused(feed: FileFeed, change: str, sqlstate: str) -> None:
    assert feed.feeding.talk.say(f"ALTER CHANGEFEED {feed.job} {change}").sqlstate == sqlstate


def test_only_its_owner_alters_it_and_needs_the_privilege(feed: FileFeed) -> None:
    feeding, role = feed.feeding, f"r_{feed.feeding.schema}"
    feeding.done(f"CREATE ROLE {role}")
    feeding.done(f"GRANT USAGE ON SCHEMA {feeding.schema} TO {role}")
    feeding.done(f"SET ROLE {role}")
    refused = [
        feeding.talk.say(f"ALTER CHANGEFEED {feed.job} {each}").sqlstate for each in ("ADD u", "SET diff")
    ]
    feeding.done("RESET ROLE")
    assert refused == ["42501", "42501"]


def test_a_feed_that_is_over_is_not_altered(feed: FileFeed) -> None:
    feed.feeding.done(f"CANCEL JOB {feed.job} AND WAIT")
    assert feed.feeding.talk.say(f"ALTER CHANGEFEED {feed.job} ADD u").sqlstate == "42704"
    assert feed.feeding.talk.say("ALTER CHANGEFEED 7 ADD u").sqlstate == "42704"
