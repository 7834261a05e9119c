"""A watch over 1,000 tables beside a watch over one: what it costs to hear of one commit.

Both hear of the same commits, each to the one table that both watch. The row is committed when `next` is
called, so nothing is waited for: what is measured is the look for it. SQLite and PostgreSQL are measured.
The watches take turns, in random order, so that neither always reads first what the other reads then.

Walk: `bench.__main__` -> `run` -> `kv.watch`.
"""

import random
import time
from functools import partial

from bench.ratio import Bar, Ratio, compare
from bench.store.places import (
    TABLE,
    VALUE,
    load,
    postgres,
    postgres_store,
    row_key,
    sqlite_store,
    store_path,
)
from bench.store.rounds import note, spread
from tenure.kv.gaps import Gap
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.kv.watch import Watch

TABLES = 1_000
LOST_SECONDS = 30.0


def run(quick: bool) -> list[Ratio]:
    tables, commits = (50, 20) if quick else (TABLES, 1_000)
    with store_path() as path, sqlite_store(path) as store:
        ratios = [_measure(store, tables, commits)]
    with postgres() as server, postgres_store(server.dsn) as store:
        ratios.append(_measure(store, tables, commits))
    return ratios


def _measure(store: Store, tables: int, commits: int) -> Ratio:
    store.transact(partial(_start_head_clock, row_key(store, 0, TABLE + tables)))
    for table in range(TABLE, TABLE + tables):
        load(store, [0], table=table)
    spans = [store.keyspace.index_span(table) for table in range(TABLE, TABLE + tables)]
    chooser, since_at = random.Random(commits), store.snapshot().at
    many, one = store.watch(spans, since_at=since_at), store.watch(spans[:1], since_at=since_at)
    millis: dict[Watch, list[float]] = {many: [], one: []}
    try:
        for number in range(commits):
            key, value = row_key(store, number), number.to_bytes(8, "big") + VALUE
            store.transact(lambda txn, key=key, value=value: txn.put(key, value))  # type: ignore[misc]
            for watch in chooser.sample([many, one], 2):
                millis[watch].append(_hear(watch, key, value))
    finally:
        many.close()
        one.close()
    name = f"gc.watch.{store.engine.name}.{tables}_tables"
    note(f"{name}: {spread(millis[many])}; one table: {spread(millis[one])}")
    ours, peer = spread(millis[many]).p50, spread(millis[one]).p50
    return compare(name, ours=ours, peer=peer, unit="ms", bar=Bar.AT_MOST, limit=2.0)


def _start_head_clock(key: bytes, txn: Transaction) -> None:
    """As a cluster does that is finalized; a commit writes something, so it writes a row."""
    txn.put(key, VALUE)
    txn.start_head_clock()


def _hear(watch: Watch, key: bytes, value: bytes) -> float:
    """Milliseconds until the watch has delivered this one change."""
    began = time.perf_counter()
    batch = watch.next(timeout=LOST_SECONDS, changes_only=True)
    millis = (time.perf_counter() - began) * 1e3
    assert not isinstance(batch, Gap), "nobody sweeps here"
    assert [(found, stored) for found, _, stored in batch.revisions] == [(key, value)], "another change"
    return millis
