"""Lookups by key in a base of a million rows: from row groups that are held, from the page cache, and cold.

Walk: `bench.__main__` -> `run` -> `bench.bulk.bases` makes the base; `LakeBase.get` is what is measured.
"""

import os
import random
import statistics
import time
from collections.abc import Callable

from bench.bulk.bases import SALES, Based, based
from bench.ratio import Bar, Ratio, compare
from tenure.kv.keys import Span
from tenure.table.lake.base import LakeBase
from tenure.table.lake.groups import DecodedGroups

ROWS, QUICK_ROWS = 1_000_000, 20_000
LOOKUPS, QUICK_LOOKUPS = 300, 10
RANGE_ROWS = 100

HELD_MS, PAGE_CACHE_MS, COLD_MS = 0.1, 2.0, 10.0
"""What was promised, as medians."""


def run(quick: bool) -> list[Ratio]:
    rows, lookups = (QUICK_ROWS, QUICK_LOOKUPS) if quick else (ROWS, LOOKUPS)
    rng = random.Random(1)
    with based(rows) as place:
        ids = [rng.randrange(rows) for _ in range(lookups)]
        held = _base(place, 1 << 30)
        _milliseconds(place, ids, lambda id: held)
        unheld = _base(place, 0)
        found = [
            _ratio("held", _milliseconds(place, ids, lambda id: held), HELD_MS),
            _ratio("page cache", _milliseconds(place, ids, lambda id: unheld), PAGE_CACHE_MS),
            _ratio("cold", _milliseconds(place, ids, lambda id: _cold(place)), COLD_MS),
            _ratio(f"range of {RANGE_ROWS}, held", _ranges(place, held, ids), 2.0),
        ]
    return found


def _ratio(name: str, milliseconds: float, promised: float) -> Ratio:
    return compare(
        f"bulk.point {name}", ours=milliseconds, peer=promised, unit="ms", bar=Bar.AT_MOST, limit=1.0
    )


def _base(place: Based, cache_bytes: int) -> LakeBase:
    """The base of sales with a cache of its own."""
    head = place.store.keyspace.head(SALES.id, 1)
    known = place.bases.of(head)
    assert isinstance(known, LakeBase)
    return LakeBase(
        known.manifest, DecodedGroups(place.bases.checked, place.env, bytes_max=cache_bytes), head
    )


def _cold(place: Based) -> LakeBase:
    """Nothing of the files is in memory: neither here nor, as far as the system obeys, in its page cache."""
    for name in place.file_names["sales"]:
        file = os.open(name, os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)
    return _base(place, 0)


def _milliseconds(place: Based, ids: list[int], base: Callable[[int], LakeBase]) -> float:
    at = place.store.snapshot().at
    took = []
    for id in ids:
        key, found = place.key(id), base(id)
        began = time.perf_counter()
        value = found.get(key, at)
        took.append(time.perf_counter() - began)
        assert value is not None, f"row {id} is not there"
    return statistics.median(took) * 1000


def _ranges(place: Based, base: LakeBase, ids: list[int]) -> float:
    at = place.store.snapshot().at
    took = []
    for id in ids:
        span = Span(place.key(id), place.key(id + RANGE_ROWS))
        began = time.perf_counter()
        rows = base.page(span, at, RANGE_ROWS, reverse=False)
        took.append(time.perf_counter() - began)
        assert rows[0][0] == place.key(id), f"row {id} is not there"
    return statistics.median(took) * 1000
