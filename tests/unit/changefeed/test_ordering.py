"""`ordering = 'transaction'`: whole transactions, in the order of their commits."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tenure.base.timestamp import parse
from tenure.changefeed import ordering
from tenure.changefeed.messages import Message
from tenure.changefeed.ordering import OrderedSink
from tenure.changefeed.records import FeedPosition, TablePosition
from tests.seeds import seeds
from tests.unit.changefeed.feeding import Feeding, ListSink
from tests.unit.changefeed.test_file_feeds import FileFeed


def message(at: int, key: int) -> Message:
    return Message("t", f"[{key}]", f'{{"n": {at}}}', at)


def resolved(at: int) -> FeedPosition:
    return FeedPosition((TablePosition(1, at),))


@pytest.mark.invariant("transaction-order")
@pytest.mark.parametrize("memory_bytes", [1, 700, 1 << 20])
@pytest.mark.parametrize("seed", seeds(20, few=3))
def test_a_sink_gets_messages_sorted_by_time(
    monkeypatch: pytest.MonkeyPatch, memory_bytes: int, seed: int
) -> None:
    monkeypatch.setattr(ordering, "MEMORY_BYTES", memory_bytes)
    rng, inner = random.Random(seed), ListSink()
    sink, at = OrderedSink(inner), 0
    sent: list[Message] = []
    for _ in range(20):
        for _ in range(rng.randrange(4)):
            piece = [message(at + rng.randrange(1, 30), key) for key in range(rng.randrange(5))]
            sent += piece
            sink.emit(piece)
        at += rng.randrange(10)
        sink.commit(resolved(at))
        assert sorted(inner.messages) == sorted(each for each in sent if each.at <= at)
    assert [each.at for each in inner.messages] == sorted(each.at for each in inner.messages)
    sink.close()


def test_messages_of_one_time_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "MEMORY_BYTES", 1)
    inner = ListSink()
    sink = OrderedSink(inner)
    for key in (3, 1, 2):
        sink.emit([message(5, key)])
    sink.commit(resolved(5))
    assert [each.key for each in inner.messages] == ["[3]", "[1]", "[2]"]


def lines_of(feed: FileFeed) -> list[tuple[str, Any]]:
    """The timestamps of the lines, batch by batch, each sorted by file and checked against resolved."""
    found, resolved_at = [], 0
    for manifest, batch in feed.batches():
        times = [parse(line["updated"]) for line in batch]
        assert all(resolved_at < at <= parse(manifest["resolved"]) for at in times), "not a whole transaction"
        resolved_at = parse(manifest["resolved"])
        found += [(line["updated"], line["key"]) for line in batch]
    return found


def test_batches_of_files_have_whole_transactions(feeding: Feeding, directory: Path) -> None:
    for name in ("t", "u"):
        feeding.done(f"CREATE TABLE {name} (a int PRIMARY KEY)")
    feeding.done("INSERT INTO t SELECT generate_series(1, 50)")
    ((job,),) = feeding.rows(
        f"CREATE CHANGEFEED FOR t, u INTO '{feeding.schema}'"
        " WITH updated, resolved = '50ms', ordering = 'transaction'"
    )
    feed = FileFeed(feeding, directory, job=int(job or 0))
    for number in range(100, 110):
        feeding.done("BEGIN")
        feeding.done(f"INSERT INTO t VALUES ({number})")
        feeding.done(f"INSERT INTO u VALUES ({number})")
        feeding.done("COMMIT")
        if number == 105:
            feeding.done(f"PAUSE JOB {job} AND WAIT")
            feeding.done("ALTER TABLE t ADD COLUMN b int DEFAULT 1")
            feeding.done(f"RESUME JOB {job}")
    feed.wait_for(feeding.now())
    lines = lines_of(feed)
    assert len(lines) == len({(at, str(key)) for at, key in lines}) + 10, "t and u share times and keys"
    assert len(lines) == 50 + 2 * 10 + 56
    feeding.done(f"CANCEL JOB {job} AND WAIT")


def test_a_feed_that_starts_over_at_any_step_has_all_in_order(feeding: Feeding) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b int)")
    feeding.done("CREATE TABLE u (a int PRIMARY KEY, b int)")
    feeding.done("INSERT INTO t VALUES (1, 0), (2, 0)")
    inner = ListSink()
    with feeding.feed("t", "u", ordering="transaction") as feed:
        for number in range(16):
            feeding.done(f"UPSERT INTO t VALUES ({number % 3}, {number})")
            feeding.done(f"UPSERT INTO u VALUES ({number % 3}, {number})")
            if number == 6:
                feeding.done("TRUNCATE t")
            sink = OrderedSink(inner)
            feed.restart(sink)
            for _ in range(number % 4):
                feed.feed.step()
            feed.position = ordering.held_back(feed.feed.position, feed.feed.beginnings)
            sink.commit(feed.position)
        while feed.feed.position.resolved_at < feeding.now():
            feed.feed.step()
        sink.commit(feed.feed.position)
    times = [each.at for each in inner.messages]
    assert times == sorted(times)
    last = {(each.topic, each.key): json.loads(each.value or "")["after"] for each in inner.messages}
    assert sorted(row["b"] for row in last.values() if row) == [13, 13, 14, 14, 15, 15]
