"""One batch of a removal: it costs the same whether a kept point keeps 0 or 1,000,000 older revisions.

    keys with a kept revision    |--v--------p------------v'-----------threshold    stays for p
    keys with garbage            |-----------p---v----v'---------------threshold    goes

Two tables have the same garbage, one of them also the kept revisions, in blocks of keys between the blocks of
garbage. Each removal goes over its span as a sweep does: behind a cursor, in commits of the rows that a first
batch looks at. The two take turns. Batches that have removed all they looked at are compared, on SQLite and
PostgreSQL. What the whole removal takes is printed: it has to go by what is kept once.

Walk: `bench.__main__` -> `run` -> `kv.transaction`, as `retention.sweeping.removal` does.
"""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.ratio import Bar, Ratio, compare
from bench.store.places import (
    OTHER_TABLE,
    TABLE,
    load,
    postgres,
    postgres_store,
    row_key,
    sqlite_store,
    store_path,
)
from bench.store.rounds import note
from tenure.base.timestamp import Timestamp
from tenure.kv.store import Store
from tenure.retention.sweeping.removal import BATCH_ROWS
from tenure.storage.engine import Removal, Removes

GARBAGE, KEPT = 200_000, 1_000_000
GARBAGE_QUICK, KEPT_QUICK = 2_000, 3_000
BLOCKS = 10
"""Of neighbouring keys with garbage, and as many with kept revisions between them."""
SAME = 1.2
"""The ratio up to which two costs count as the same."""


def run(quick: bool) -> list[Ratio]:
    garbage, kept = (GARBAGE_QUICK, KEPT_QUICK) if quick else (GARBAGE, KEPT)
    limit = BATCH_ROWS // 20 if quick else BATCH_ROWS
    ratios = []
    for engine in (_sqlite, _postgres):
        with engine() as store:
            ratios.append(_measure(store, garbage, kept, limit))
    return ratios


@contextmanager
def _sqlite() -> Iterator[Store]:
    with store_path() as path, sqlite_store(path) as store:
        yield store


@contextmanager
def _postgres() -> Iterator[Store]:
    with postgres() as server, postgres_store(server.dsn) as store:
        yield store


def _measure(store: Store, garbage: int, kept: int, limit: int) -> Ratio:
    kept_keys, garbage_keys = _blocks(kept, garbage)
    load(store, kept_keys)
    point_at = store.snapshot().at
    load(store, kept_keys)
    for table in (TABLE, OTHER_TABLE):
        for _ in range(2):
            load(store, garbage_keys, table=table)
    threshold_at = store.snapshot().at
    beside, alone = (Walk(store, table, threshold_at, point_at, limit) for table in (TABLE, OTHER_TABLE))
    while not (beside.is_over and alone.is_over):
        beside.to_full_batch()
        alone.to_full_batch()
    assert beside.removed == alone.removed == garbage, "a removal took too much, or too little"
    past = store.snapshot(point_at)
    assert all(past.get(row_key(store, number)) for number in kept_keys[:: max(1, kept // 100)])
    name = f"gc.batches.{store.engine.name}.{kept}_kept"
    note(f"{name}: removed {garbage} in {beside.seconds:.2f} s; with nothing kept {alone.seconds:.2f} s")
    ours, peer = statistics.median(beside.full_millis), statistics.median(alone.full_millis)
    return compare(name, ours=ours, peer=peer, unit="ms/batch", bar=Bar.AT_MOST, limit=SAME)


def _blocks(kept: int, garbage: int) -> tuple[list[int], list[int]]:
    """The numbers of the keys with kept revisions, and of those with garbage, in turns."""
    kept_keys, garbage_keys = list[int](), list[int]()
    for block in range(BLOCKS):
        first = block * (kept + garbage) // BLOCKS
        kept_keys += range(first, first + kept // BLOCKS)
        garbage_keys += range(first + kept // BLOCKS, first + (kept + garbage) // BLOCKS)
    return kept_keys, garbage_keys


class Walk:
    """A removal of one table, batch by batch behind its cursor."""

    def __init__(
        self, store: Store, table: int, threshold_at: Timestamp, point_at: Timestamp, limit: int
    ) -> None:
        self._store = store
        span = store.keyspace.index_span(table)
        self._removal = Removal(*span, Removes.SUPERSEDED, threshold_at, limit, points=(point_at,))
        self.is_over = False
        self.removed = 0
        self.seconds = 0.0
        self.full_millis: list[float] = []
        """Of the batches that removed all they looked at."""

    def to_full_batch(self) -> None:
        """Goes on until a batch has removed all it looked at, or to the end."""
        is_full = False
        while not (is_full or self.is_over):
            is_full = self._step()

    def _step(self) -> bool:
        began = time.perf_counter()
        txn = self._store.begin()
        txn.remove(self._removal)
        txn.commit()
        seconds = time.perf_counter() - began
        is_full = txn.removed == self._removal.limit
        if is_full:
            self.full_millis.append(seconds * 1e3)
        self.removed += txn.removed
        self.seconds += seconds
        self.is_over = not txn.removed_up_to
        self._removal = self._removal._replace(after=txn.removed_up_to)
        return is_full
