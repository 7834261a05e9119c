"""Collecting garbage revisions, beside PostgreSQL's DELETE + VACUUM of as many dead rows.

Both have the same rows with 100 older revisions each: ours in the store, as rows that were updated have them;
PostgreSQL in a history table, where a row says until when it was the newest. Ours is RUN GC NOW, with its
pauses. PostgreSQL has its own defaults.

    collection           revisions per second
    collection.open      revisions left if a reader has been open since before: PostgreSQL can reclaim nothing
                         of a history table that a reader may still see, ours keeps what that reader sees

The reader asks its question again afterwards. On both sides it must get the same answer.

deltalake is a peer of `bench.gc.files`.

Walk: `bench.__main__` -> `run`; RUN GC NOW -> `retention.sweeping.rounds`.
"""

import time

from bench.gc.history_table import REVISIONS, Client, delete, fill, rows_left, vacuum
from bench.gc.places import GcNode, gc_node, wait_for
from bench.ratio import Bar, Ratio, compare
from bench.sql.places import peer
from bench.store.rounds import note, timed
from tenure.catalog.descriptors.definitions import Table

ROWS, ROWS_OPEN = 50_000, 5_000
"""Five million garbage revisions; half a million beside a reader."""
ROWS_QUICK, ROWS_OPEN_QUICK = 50, 20
TTL_SECONDS, READER_TTL_SECONDS = 1, 2
"""A reader is protected after 80 % of its ttl."""
LEFT_SHARE = 0.1

QUESTION = "SELECT count(*), sum(version) FROM {}"


def run(quick: bool) -> list[Ratio]:
    rows, rows_open = (ROWS_QUICK, ROWS_OPEN_QUICK) if quick else (ROWS, ROWS_OPEN)
    with gc_node() as node, peer() as postgres, postgres.connect() as theirs:
        node.set_ttl(TTL_SECONDS)
        ratios = [_collect(node, theirs, rows)]
        node.set_ttl(READER_TTL_SECONDS)
        return [*ratios, _collect_beside_reader(node, theirs, postgres.connect(), rows_open)]


def _collect(node: GcNode, theirs: Client, rows: int) -> Ratio:
    table = node.create("collected")
    node.write(table, range(rows), range(REVISIONS + 1))
    fill(theirs, "collected", rows)
    wait_for(TTL_SECONDS)
    mine = timed(lambda: node.collect(table))
    assert mine.times == rows * REVISIONS, f"{mine.times} revisions were removed"
    assert node.ask(QUESTION.format("collected")) == [(rows, rows * REVISIONS)]
    assert sum(1 for _ in node.revisions(table)) == rows
    began = time.perf_counter()
    delete(theirs, "collected")
    vacuum_began = time.perf_counter()
    vacuum(theirs, "collected")
    ended = time.perf_counter()
    assert rows_left(theirs, "collected") == rows, "PostgreSQL has not reclaimed its rows"
    note(
        f"gc.collection: {mine.seconds:.1f} s, {mine.cpu_micros:.1f} us of CPU a revision; PostgreSQL: "
        f"DELETE {vacuum_began - began:.1f} s, VACUUM {ended - vacuum_began:.1f} s"
    )
    rate = rows * REVISIONS / (ended - began)
    name = f"gc.collection.{rows * REVISIONS}"
    return compare(name, ours=mine.rate, peer=rate, unit="1/s", bar=Bar.AT_LEAST, limit=1.0)


def _collect_beside_reader(node: GcNode, theirs: Client, reader: Client, rows: int) -> Ratio:
    ours_left = _ours_beside_reader(node, rows)
    with reader:
        theirs_left = _theirs_beside_reader(theirs, reader, rows)
    note(
        f"gc.collection.open: of {rows * (REVISIONS + 1)} revisions {ours_left} are left, "
        f"in PostgreSQL {theirs_left}"
    )
    return compare(
        "gc.collection.open",
        ours=ours_left,
        peer=theirs_left,
        unit="revisions",
        bar=Bar.AT_MOST,
        limit=LEFT_SHARE,
    )


def _ours_beside_reader(node: GcNode, rows: int) -> int:
    table, question = node.create("read"), QUESTION.format("read")
    half = REVISIONS // 2
    node.write(table, range(rows), range(half))
    with node.connect() as reader:
        reader.execute("BEGIN READ ONLY")
        before = reader.execute(question.encode()).fetchall()
        assert before == [(rows, rows * (half - 1))], before
        node.write(table, range(rows), range(half, REVISIONS + 1))
        wait_for(READER_TTL_SECONDS)
        node.collect(table)
        assert reader.execute(question.encode()).fetchall() == before, "the reader's answer has changed"
        reader.execute("COMMIT")
    _check_versions(node, table, {half - 1, REVISIONS}, rows)
    return sum(1 for _ in node.revisions(table))


def _check_versions(node: GcNode, table: Table, expected: set[int], rows: int) -> None:
    """What the reader sees is left, and the newest; nothing else."""
    layout = node.node.layouts.of(table)
    decoded = (layout.row(layout.primary, key, value or b"") for key, _, value in node.revisions(table))
    found = [row.values[2] for row in decoded]
    assert len(found) == rows * len(expected) and set(found) == expected, set(found)


def _theirs_beside_reader(theirs: Client, reader: Client, rows: int) -> int:
    fill(theirs, "read", rows)
    reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    question = QUESTION.format("read").encode()
    before = reader.execute(question).fetchall()
    delete(theirs, "read")
    vacuum(theirs, "read")
    assert reader.execute(question).fetchall() == before
    left = rows_left(theirs, "read")
    reader.execute("COMMIT")
    return left
