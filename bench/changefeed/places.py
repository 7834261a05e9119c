"""Feeds of a node in this process, with sinks that say when a change came.

Walk: `bench.changefeed.latency`, `bench.changefeed.throughput` and `bench.changefeed.crowds` open a
`feed_node` and its `Feed`s here.
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from tenure.base.env import SystemEnv
from tenure.base.timestamp import parse
from tenure.catalog.descriptors.definitions import Table
from tenure.changefeed.feed import Feed
from tenure.changefeed.messages import Message
from tenure.changefeed.options import FeedOptions, read_options
from tenure.changefeed.records import FeedPosition, FeedTable
from tenure.changefeed.sinks.files import FileSink
from tenure.changefeed.sinks.sink import Sink, SinkRun
from tenure.changefeed.table_stream import first_position
from tenure.front import Listen
from tenure.kv.transaction import Transaction
from tenure.node import Node, NodeOptions
from tenure.table.rows import Row
from tests.unit.table.trees import CONTEXT

COLUMNS = "(id bigint PRIMARY KEY, version bigint NOT NULL, note text NOT NULL)"
NOTE = "n" * 80


class StampSink:
    """Says when each key has come."""

    def __init__(self) -> None:
        self.came: dict[str, float] = {}

    def resume(self, position: FeedPosition) -> FeedPosition:
        return position

    def emit(self, messages: Sequence[Message]) -> int:
        now = time.perf_counter()
        for each in messages:
            self.came[each.key] = now
        return 0

    def commit(self, position: FeedPosition) -> FeedPosition:
        return position

    def close(self) -> None:
        pass


class FeedNode:
    def __init__(self, directory: Path, store: str) -> None:
        options = NodeOptions(
            store or f"sqlite:{directory}/store.db", listen=Listen(port=0), files=str(directory / "files")
        )
        (directory / "files").mkdir()
        self.node = Node(options, SystemEnv())
        front = self.node.front
        assert front is not None
        self.client: psycopg.Connection[Any] = psycopg.connect(
            host=front.host, port=front.port, user="root", dbname="defaultdb", autocommit=True
        )

    def close(self) -> None:
        self.client.close()
        self.node.stop()

    def create(self, name: str) -> Table:
        self.client.execute(f"CREATE TABLE {name} {COLUMNS}".encode())
        row = self.client.execute(f"SELECT '{name}'::regclass::oid::int8".encode()).fetchone()
        assert row is not None
        table = self.node.catalog.get(self.node.store.snapshot(), row[0])
        assert isinstance(table, Table)
        return table

    def write(self, table: Table, ids: Sequence[int]) -> None:
        """One commit, past the SQL layer: what is measured is what comes after it."""
        layout = self.node.layouts.of(table)

        def run(txn: Transaction) -> None:
            for id in ids:
                row = Row(layout.key({1: id}), {1: id, 2: 1, 3: NOTE})
                entry = layout.entry(layout.primary, row, CONTEXT)
                assert entry is not None
                txn.put(entry.key, entry.value)

        self.node.store.transact(run)

    def feed(self, tables: Sequence[Table], sink: Sink) -> Feed:
        """A feed that has joined the tail."""
        options = read_options({"updated": None, "key_in_value": None, "no_initial_scan": None}, parse)
        now_at = self.node.store.snapshot().at
        begin = FeedPosition(tuple(first_position(each.id, options, now_at) for each in tables))
        named = [FeedTable(each.id, each.name) for each in tables]
        feed = Feed(self.node.feeds.sources, named, options, begin, sink)
        while feed.step():
            pass
        return feed

    def files(self, number: int) -> FileSink:
        """NDJSON files, as those of a job of this number."""
        location = self.node.locations.resolve("bench")
        store = self.node.store
        run = SinkRun(
            *(number, 1, FeedOptions(key_in_value=True), (), store.env),
            settings=lambda: store.settings,
            begin_send=lambda: store.env.monotonic() + 1.0,
            sleep=store.env.sleep,
        )
        sink = FileSink(location, run)
        sink.resume(FeedPosition(()))
        return sink


@contextmanager
def feed_node(store: str = "") -> Iterator[FeedNode]:
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as directory:
        node = FeedNode(Path(directory), store)
        try:
            yield node
        finally:
            node.close()
