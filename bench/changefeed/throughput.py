"""Rows per second from a watched table into NDJSON files, in CPU of the feed's thread.

The rows are committed a thousand at a time; after each commit the feed takes them. Only the feed's steps and
the commits of its sink are measured, by the clock of the thread.

Walk: `bench.__main__` -> `run` -> `bench.changefeed.places`.
"""

import time

from bench.changefeed.places import feed_node
from bench.ratio import Bar, Ratio, compare
from bench.store.rounds import note

PROMISE_ROWS = 20_000
BATCH_ROWS = 1_000


def run(quick: bool) -> list[Ratio]:
    batches = 3 if quick else 200
    with feed_node() as node:
        table, sink = node.create("watched"), node.files(1)
        feed = node.feed([table], sink)
        seconds = 0.0
        for number in range(batches):
            node.write(table, range(number * BATCH_ROWS, (number + 1) * BATCH_ROWS))
            began = time.thread_time()
            while feed.step():
                pass
            feed.committed(sink.commit(feed.position))
            seconds += time.thread_time() - began
        rows = feed.position.rows
        feed.close()
    assert rows == batches * BATCH_ROWS, f"{rows} rows were emitted"
    note(f"changefeed.throughput: {seconds / rows * 1e6:.1f} us of CPU a row, {rows} rows")
    rate = rows / seconds
    return [
        compare(
            "changefeed.throughput",
            ours=rate,
            peer=PROMISE_ROWS,
            unit="rows/s",
            bar=Bar.AT_LEAST,
            limit=1.0,
        )
    ]
