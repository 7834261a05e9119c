"""What changed since: 100 changes among 1,000,000 keys, beside a scan of them all, both engines.

The peer is our own full scan of the same span at the same time: what a reader without the diff
would have to do. The diff is measured twice: right after the changes, and after 200,000 newer
changes of another table, which it must not pay for.

Walk: `bench.__main__` -> `run`.
"""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.ratio import Bar, Ratio, compare
from bench.store.places import (
    OTHER_TABLE,
    TABLE,
    VALUE,
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
from tenure.kv.transaction import Transaction

KEYS, KEYS_QUICK = 1_000_000, 50_000
OTHER_CHANGES, OTHER_CHANGES_QUICK = 200_000, 5_000
CHANGES = 100
FULL_SCANS, DIFFS = 3, 15
CHANGED = b"changed" + VALUE[7:]


def run(quick: bool) -> list[Ratio]:
    with store_path() as path, sqlite_store(path) as store:
        ratios = _measure(store, quick=quick)
    with postgres() as server, postgres_store(server.dsn) as store:
        return ratios + _measure(store, quick=quick)


def _measure(store: Store, *, quick: bool) -> list[Ratio]:
    keys = KEYS_QUICK if quick else KEYS
    # The cost of the diff does not depend on the keys, that of the full scan does.
    limit = 1 / 500 * KEYS / keys
    name = f"incremental_scan.{store.engine.name}"
    load(store, range(keys))
    load(store, range(1000), table=OTHER_TABLE)
    since_at = store.snapshot().at
    expected = _change(store, keys)
    alone, full = _times(store, since_at, expected, keys)
    load(store, range(OTHER_CHANGES_QUICK if quick else OTHER_CHANGES), table=OTHER_TABLE)
    beside, full_again = _times(store, since_at, expected, keys)
    note(
        f"{name}: diff {alone * 1e3:.3f} ms, full scan {full:.3f} s (1/{full / alone:,.0f}); "
        f"with newer changes elsewhere {beside * 1e3:.3f} ms (1/{full_again / beside:,.0f})"
    )
    return [
        compare(name, ours=alone * 1e3, peer=full * 1e3, unit="ms", bar=Bar.AT_MOST, limit=limit),
        compare(
            f"{name}.busy_neighbour",
            ours=beside * 1e3,
            peer=full_again * 1e3,
            unit="ms",
            bar=Bar.AT_MOST,
            limit=limit,
        ),
    ]


def _change(store: Store, keys: int) -> dict[bytes, bytes | None]:
    """Overwrites 70 rows, deletes 20, inserts 10; returns what the diff must say."""
    step = keys // CHANGES
    changes: dict[bytes, bytes | None] = {}
    for nr in range(CHANGES):
        value = None if nr % 10 in (3, 6) else CHANGED
        number = keys + nr if nr % 10 == 9 else nr * step
        changes[row_key(store, number)] = value

    def write(txn: Transaction) -> None:
        for key, value in changes.items():
            txn.delete(key) if value is None else txn.put(key, value)

    store.transact(write)
    return changes


def _times(
    store: Store, since_at: Timestamp, expected: dict[bytes, bytes | None], keys: int
) -> tuple[float, float]:
    """Seconds of a diff and of a full scan, in turns, at a new snapshot."""
    snapshot = store.snapshot()
    span = store.keyspace.index_span(TABLE)
    diffs: list[float] = []
    fulls: list[float] = []
    rows = keys + sum(
        1 if key >= row_key(store, keys) else -(value is None) for key, value in expected.items()
    )
    for _ in range(FULL_SCANS):
        with _timing(fulls):
            found = sum(1 for _ in snapshot.scan(span))
        assert found == rows, f"a full scan found {found} rows of {rows}"
        for _ in range(DIFFS // FULL_SCANS):
            with _timing(diffs):
                changed = snapshot.diff(span, since_at=since_at)
            assert {revision.key: revision.value for revision in changed} == expected
    return statistics.median(diffs), statistics.median(fulls)


@contextmanager
def _timing(seconds: list[float]) -> Iterator[None]:
    began = time.perf_counter()
    yield
    seconds.append(time.perf_counter() - began)
