"""What more feeds, and more tables, cost: 20 feeds of a table beside one, and 1,000 tables beside one.

    feeds     100 rows are committed; each feed takes them into NDJSON files of its own
    tables    one row is committed to one of the tables; the feed of all of them takes it

CPU of the thread that steps the feeds is compared; the commits are not part of it.

Walk: `bench.__main__` -> `run` -> `bench.changefeed.places`.
"""

import time
from collections.abc import Sequence

from bench.changefeed.places import FeedNode, StampSink, feed_node
from bench.ratio import Bar, Ratio, compare
from bench.store.rounds import note
from tenure.catalog.descriptors.definitions import Table
from tenure.changefeed.feed import Feed

FEEDS = 20
TABLES = 1_000
BATCH_ROWS = 100


def run(quick: bool) -> list[Ratio]:
    with feed_node() as node:
        return [_feeds(node, 3 if quick else 100), _tables(node, *((20, 5) if quick else (TABLES, 300)))]


def _feeds(node: FeedNode, batches: int) -> Ratio:
    table = node.create("shared")
    sinks = [node.files(number) for number in range(FEEDS)]
    crowd = [node.feed([table], sink) for sink in sinks]
    many = _stepped(node, table, crowd, batches, first=0)
    for feed in crowd:
        assert feed.position.rows == batches * BATCH_ROWS, "a feed has missed rows"
        feed.close()
    lone = [node.feed([table], node.files(FEEDS))]
    one = _stepped(node, table, lone, batches, first=batches)
    lone[0].close()
    rows = batches * BATCH_ROWS
    note(
        f"changefeed.crowds.feeds: {many / rows * 1e6:.1f} us of CPU a row for {FEEDS}, "
        f"{one / rows * 1e6:.1f} for one"
    )
    return compare(
        f"changefeed.crowds.{FEEDS}_feeds", ours=many, peer=one, unit="s", bar=Bar.AT_MOST, limit=2.0
    )


def _stepped(node: FeedNode, table: Table, feeds: Sequence[Feed], batches: int, *, first: int) -> float:
    seconds = 0.0
    for number in range(first, first + batches):
        node.write(table, range(number * BATCH_ROWS, (number + 1) * BATCH_ROWS))
        seconds += _step(feeds)
    return seconds


def _tables(node: FeedNode, tables: int, commits: int) -> Ratio:
    made = [node.create(f"idle_{number}") for number in range(tables)]
    sinks = StampSink(), StampSink()
    many, one = node.feed(made, sinks[0]), node.feed(made[:1], sinks[1])
    seconds = [0.0, 0.0]
    for number in range(commits):
        node.write(made[0], [number])
        # In turn, so that neither always does the look of the tail for both.
        for place in (0, 1) if number % 2 else (1, 0):
            seconds[place] += _step([(many, one)[place]])
    many.close()
    one.close()
    assert len(sinks[0].came) == len(sinks[1].came) == commits, "a feed has missed rows"
    note(
        f"changefeed.crowds.tables: {seconds[0] / commits * 1e6:.0f} us of CPU a commit for {tables} tables, "
        f"{seconds[1] / commits * 1e6:.0f} for one"
    )
    return compare(
        f"changefeed.crowds.{tables}_tables",
        ours=seconds[0],
        peer=seconds[1],
        unit="s",
        bar=Bar.AT_MOST,
        limit=1.5,
    )


def _step(feeds: Sequence[Feed]) -> float:
    began = time.thread_time()
    for feed in feeds:
        while feed.step():
            pass
    return time.thread_time() - began
