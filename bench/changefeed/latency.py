"""From a commit to its change in the sink: by the tail, by polling, and PostgreSQL's logical decoding.

    sent ──── commit returns ──── emitted        one INSERT at a time, by a client
      └────────── from the statement ┘
                    └── from the commit ┘        0 if the change was there before the client knew

Both servers write each commit durably. Logical decoding goes through pg_recvlogical and test_decoding, which
write a line for each change as it comes. A polling feed looks once a second; its commits
come at random times.

Walk: `bench.__main__` -> `run` -> `bench.changefeed.places`.
"""

import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg

from bench.changefeed.places import COLUMNS, NOTE, FeedNode, StampSink, feed_node
from bench.ratio import Bar, Ratio, compare
from bench.store.places import postgres
from bench.store.rounds import Spread, note, spread
from tenure.changefeed.feed import Feed
from tests import postgres_server

PROMISE_MILLIS = 3.0
POLL_SECONDS = 1.0
LOST_SECONDS = 30.0
WARM = 5
"""Commits that are not counted: caches fill."""


class Latency(NamedTuple):
    statement: Spread
    commit: Spread


def run(quick: bool) -> list[Ratio]:
    commits, polled = (10, 1) if quick else (500, 20)
    with feed_node() as node:
        sqlite = _ours("sqlite", node, commits)
        _note("sqlite, polled", _polled(node, polled))
    with postgres() as server, feed_node(f"postgresql://postgres@127.0.0.1:{server.port}/postgres") as node:
        ours = _ours("postgres", node, commits)
    peer = _peer(commits)
    name = "changefeed.latency"
    return [
        compare(
            f"{name}.sqlite",
            ours=sqlite.commit.p50,
            peer=PROMISE_MILLIS,
            unit="ms",
            bar=Bar.AT_MOST,
            limit=1.0,
        ),
        compare(
            f"{name}.postgres",
            ours=ours.commit.p50,
            peer=peer.commit.p50,
            unit="ms",
            bar=Bar.AT_MOST,
            limit=2.0,
        ),
    ]


def _ours(engine: str, node: FeedNode, commits: int) -> Latency:
    table, sink = node.create("tailed"), StampSink()
    feed = node.feed([table], sink)
    with _stepped(feed, lambda: feed.wait(0.2)):
        found = _measured(node.client, "tailed", commits, lambda number: sink.came.get(f"[{number}]"))
    return _note(engine, found)


def _polled(node: FeedNode, commits: int) -> Latency:
    table, sink = node.create("polled"), StampSink()
    feed = node.feed([table], sink)
    chooser = random.Random(commits)
    with _stepped(feed, lambda: time.sleep(POLL_SECONDS)):
        return _measured(
            node.client,
            "polled",
            commits,
            lambda number: sink.came.get(f"[{number}]"),
            before=lambda: time.sleep(chooser.random() * POLL_SECONDS),
            warm=0,
        )


@contextmanager
def _stepped(feed: Feed, rest: Callable[[], None]) -> Iterator[None]:
    """A thread that runs the feed, as a job does."""
    is_over = threading.Event()

    def run() -> None:
        while not is_over.is_set():
            if not feed.step():
                rest()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        feed.close()


def _measured(
    client: "psycopg.Connection[Any]",
    table: str,
    commits: int,
    came: Callable[[int], float | None],
    *,
    before: Callable[[], None] = lambda: None,
    warm: int = WARM,
) -> Latency:
    from_statement, from_commit = [], []
    for number in range(-warm, commits):
        before()
        sent = time.perf_counter()
        client.execute(f"INSERT INTO {table} VALUES ({number}, 1, '{NOTE}')".encode())
        committed = time.perf_counter()
        while (emitted := came(number)) is None:
            assert time.perf_counter() < committed + LOST_SECONDS, f"change {number} was not emitted"
            time.sleep(0.0001)
        if number >= 0:
            from_statement.append((emitted - sent) * 1e3)
            from_commit.append(max(0.0, emitted - committed) * 1e3)
    return Latency(spread(from_statement), spread(from_commit))


def _peer(commits: int) -> Latency:
    directory = postgres_server.make_directory()
    try:
        server = postgres_server.start(directory, "wal_level=logical")
        with psycopg.connect(server.dsn, autocommit=True) as client:
            client.execute(f"CREATE TABLE peer {COLUMNS}".encode())
            with _decoding(server) as came:
                return _note("PostgreSQL's logical decoding", _measured(client, "peer", commits, came.get))
    finally:
        postgres_server.remove_directory(directory)


@contextmanager
def _decoding(server: postgres_server.Server) -> Iterator[dict[int, float]]:
    """When each id has come out of pg_recvlogical."""
    command = [
        *(
            str(postgres_server.BIN / "pg_recvlogical"),
            "-d",
            server.dsn,
            "--slot=bench",
            "-P",
            "test_decoding",
        ),
        *("--create-slot", "--start", "--status-interval=1", "-f", "-"),
    ]
    came: dict[int, float] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdout is not None
        lines = process.stdout

        def read() -> None:
            for line in lines:
                if "INSERT: id[bigint]:" in line:
                    came[int(line.split("id[bigint]:")[1].split()[0])] = time.perf_counter()

        reader = threading.Thread(target=read)
        reader.start()
        try:
            _await_slot(server)
            yield came
        finally:
            process.terminate()
            reader.join()


def _await_slot(server: postgres_server.Server) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as client:
        began = time.perf_counter()
        while client.execute("SELECT 1 FROM pg_replication_slots WHERE active").fetchone() is None:
            assert time.perf_counter() < began + LOST_SECONDS, "pg_recvlogical did not start"
            time.sleep(0.01)


def _note(name: str, found: Latency) -> Latency:
    note(f"changefeed.latency, {name}: from the statement {found.statement}; from the commit {found.commit}")
    return found
