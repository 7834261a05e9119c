"""The contract of schema feeds: which version of a table is in force, by polling and by a watch."""

from collections.abc import Callable

import pytest

from tenure.base.timestamp import Timestamp
from tenure.changefeed.schema_feed import PolledSchema, SchemaFeed, WatchedSchema
from tenure.changefeed.table_events import EventKind
from tenure.kv.watch import ChangeBatch
from tests.unit.changefeed.feeding import Feeding

MakeFeed = Callable[[Feeding], tuple[SchemaFeed, Callable[[], Timestamp]]]


def polled(feeding: Feeding) -> tuple[SchemaFeed, Callable[[], Timestamp]]:
    feed = PolledSchema(feeding.node.store, feeding.node.catalog, feeding.table("t").id, feeding.now())
    return feed, feeding.now


def watched(feeding: Feeding) -> tuple[SchemaFeed, Callable[[], Timestamp]]:
    """Told of each batch of a watch of its spans."""
    store, since_at = feeding.node.store, feeding.now()
    feed = WatchedSchema(store, feeding.node.catalog, feeding.table("t").id, since_at)

    def follow() -> Timestamp:
        nonlocal since_at
        watch = store.watch(feed.spans, since_at=since_at)  # other types may count than last time
        batch = watch.next(0.0)
        watch.close()
        assert isinstance(batch, ChangeBatch)
        feed.note(batch.revisions, batch.resolved_at)
        since_at = batch.resolved_at
        return since_at

    return feed, follow


@pytest.fixture(params=[polled, watched])
def make(request: pytest.FixtureRequest) -> MakeFeed:
    made: MakeFeed = request.param
    return made


@pytest.mark.invariant("schema-at-row")
def test_the_version_in_force_is_the_newest_at_or_below_a_time(feeding: Feeding, make: MakeFeed) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    feed, follow = make(feeding)
    versions = []
    for name in "bcd":
        feeding.done(f"ALTER TABLE t ADD COLUMN {name} int")
        versions.append(feeding.table("t"))
    until_at = follow()
    for version in versions:
        assert feed.at(version.modified_at).table == version
        assert feed.at(version.modified_at - 1).table.version < version.version
    assert feed.at(until_at).table == versions[-1]


def test_events_are_peeked_and_popped_in_time_order(feeding: Feeding, make: MakeFeed) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    feed, follow = make(feeding)
    assert feed.peek(follow()) == []
    feeding.done("ALTER TABLE t ADD COLUMN b int DEFAULT 1")
    feeding.done("ALTER TABLE t RENAME TO u")
    feeding.done("ALTER TABLE u RENAME TO t")
    until_at = follow()
    events = feed.peek(until_at)
    assert [each.at for each in events] == sorted(each.at for each in events)
    kinds = [kind for each in events for kind in each.kinds]
    assert kinds == [EventKind.FILL_COLUMN, EventKind.RENAME, EventKind.RENAME]
    assert feed.pop(events[0].at) == events[:1]
    assert feed.peek(until_at) == events[1:]
    assert feed.pop(until_at) == events[1:]
    assert feed.peek(until_at) == []


def test_a_new_label_of_an_enum_is_an_event_of_its_tables(feeding: Feeding, make: MakeFeed) -> None:
    feeding.done("CREATE TYPE mood AS ENUM ('sad')")
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    feed, follow = make(feeding)
    feeding.done("ALTER TABLE t ADD COLUMN m mood")
    follow()
    feeding.done("ALTER TYPE mood ADD VALUE 'glad'")
    (enum,) = feed.at(follow()).enums
    assert [each.label for each in enum.members] == ["sad", "glad"]


def test_a_dropped_table_ends_with_an_event(feeding: Feeding, make: MakeFeed) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    feed, follow = make(feeding)
    feeding.done("DROP TABLE t")
    assert EventKind.DROP in feed.peek(follow())[-1].kinds
