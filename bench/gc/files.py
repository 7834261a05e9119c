"""Collecting garbage revisions that were flushed to the lake, beside PostgreSQL's DELETE + VACUUM of as many
and beside deltalake's optimize + vacuum.

    files.ended       all older revisions may go: past files leave the manifest by an edit, and are not read
    files.rewritten   a `protect_at` in the middle keeps one of each row: a merge writes past files again

The history of `bench.gc.collection` is flushed, and leaves the store, before the ttl ends. Ours is RUN GC NOW
with the merge that it starts; files that no manifest names are deleted after `lake.file_grace`, which is
not part of it. Merges run in the node, without Spark.

Walk: `bench.__main__` -> `run`; RUN GC NOW -> `retention.sweeping.file_sweeps`.
"""

import time

from bench.gc import delta_table
from bench.gc.history_table import REVISIONS, Client, delete, fill, vacuum
from bench.gc.places import GcNode, gc_node, wait_for
from bench.ratio import Bar, Ratio, compare
from bench.sql.places import peer
from bench.store.rounds import note
from tenure.bulk import flush
from tenure.bulk.upkeep import Upkeep
from tenure.catalog.descriptors.definitions import Table
from tenure.retention.protections.protection_records import Mode, Targets

ROWS, ROWS_QUICK = 10_000, 40
"""A million garbage revisions."""
LOAD_TTL, SWEEP_TTL = 14_400, 1
POLL_SECONDS = 0.05
LOST_SECONDS = 600.0


def run(quick: bool) -> list[Ratio]:
    rows = ROWS_QUICK if quick else ROWS
    with gc_node() as node, peer() as postgres, postgres.connect() as theirs:
        node.ask("SET CLUSTER SETTING lake.clean_after = '0s'")
        node.ask("SET CLUSTER SETTING pipeline.spark_min_rows = 1000000000")
        node.set_ttl(LOAD_TTL)
        ended, rewritten = (_written(node, name, rows) for name in ("ended", "rewritten"))
        node.set_ttl(SWEEP_TTL)
        wait_for(SWEEP_TTL)
        peer_seconds = _theirs(theirs, rows)
        ratios = [
            _collect(node, ended, rows, 0, peer_seconds, Bar.AT_LEAST),
            _collect(node, rewritten, rows, rows, peer_seconds, Bar.NONE),
        ]
    return [*ratios, *_beside_delta(ratios[0].ours, rows)]


def _written(node: GcNode, name: str, rows: int) -> Table:
    """A table whose history is in past files; that of `rewritten` is protected in the middle."""
    table = node.create(name)
    node.write(table, range(rows), range(REVISIONS // 2))
    if name == "rewritten":
        at, targets = node.now_at(), Targets((table.id,))
        protect = node.node.protections.protect
        node.store.transact(lambda txn: protect(txn, at, Mode.AT, "job", b"bench", targets))
    node.write(table, range(rows), range(REVISIONS // 2, REVISIONS + 1))
    _flush(node, table, rows)
    assert _past_rows(node, table) == rows * REVISIONS, "the history was not flushed"
    return table


def _flush(node: GcNode, table: Table, rows: int) -> None:
    """Flushes the primary index and waits until its revisions have left the store."""
    lake = node.node.lake
    assert lake is not None
    job = node.store.transact(
        lambda txn: flush.start(txn, lake, table.id, table.primary, rows=rows, name=table.name)
    )
    assert job is not None
    deadline, upkeep = time.monotonic() + LOST_SECONDS, Upkeep(lake)
    while lake.jobs.is_open(node.store.snapshot(), job.id) or any(True for _ in node.revisions(table)):
        assert time.monotonic() < deadline, "the flush has not ended"
        time.sleep(POLL_SECONDS)
        upkeep.step()


def _past_rows(node: GcNode, table: Table) -> int:
    lake = node.node.lake
    assert lake is not None
    manifest = lake.manifests.get(node.store.snapshot(), table.id, table.primary)
    assert manifest is not None
    return sum(file.rows for file in manifest.past)


def _theirs(client: Client, rows: int) -> float:
    fill(client, "collected", rows)
    began = time.perf_counter()
    delete(client, "collected")
    vacuum(client, "collected")
    return time.perf_counter() - began


def _beside_delta(ours: float, rows: int) -> list[Ratio]:
    """Where past files end whole, as all files of an older version do there."""
    found = delta_table.measure(rows)
    if found is None:
        note("gc.files.delta: deltalake is not installed")
        return []
    garbage = rows * REVISIONS
    note(
        f"gc.files.delta: {garbage} revisions in {found.seconds:.2f} s, "
        f"{found.cpu_seconds / garbage * 1e6:.2f} us of CPU each; a reader that was open gets: {found.reader}"
    )
    theirs = garbage / found.seconds
    return [
        compare("gc.files.delta", ours=ours, peer=theirs, unit="1/s", bar=Bar.AT_LEAST, limit=1.0),
    ]


def _collect(node: GcNode, table: Table, rows: int, kept: int, peer_seconds: float, bar: Bar) -> Ratio:
    garbage = rows * REVISIONS - kept
    began, cpu_began = time.perf_counter(), time.process_time()
    node.collect(table)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    left = _past_rows(node, table)
    assert left == kept, f"{left} past rows are left, and {kept} are needed"
    answer = node.ask(f"SELECT count(*), min(version) FROM {table.name}")
    assert answer == [(rows, REVISIONS)], answer
    name = f"gc.files.{table.name}"
    note(f"{name}: {garbage} revisions in {seconds:.2f} s, {cpu_seconds / garbage * 1e6:.2f} us of CPU each")
    ours, theirs = garbage / seconds, rows * REVISIONS / peer_seconds
    return compare(name, ours=ours, peer=theirs, unit="1/s", bar=bar, limit=1.0)
