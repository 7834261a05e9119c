"""What a node pays to know the catalog: the first load, and one change among 40,000 descriptors.

    first load       at most 5 s
    refresh          at most 1/1000 of the first load
    memory           printed, per cached descriptor

The cached catalog is compared with a full read at the end.

Walk: `bench.__main__` -> `run`.
"""

import gc
import statistics
import time
import tracemalloc

from bench.leases.places import DATABASES, DATABASES_QUICK, TABLES, TABLES_QUICK, change, fill, objects
from bench.ratio import Bar, Ratio, compare
from bench.store.places import sqlite_store, store_path
from bench.store.rounds import note
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import AnyDescriptor, place_of
from tenure.catalog.leases.catalog_cache import Cache
from tenure.kv.store import Store

LOADS, LOADS_QUICK = 3, 1
REFRESHES, REFRESHES_QUICK = 50, 3
FIRST_LOAD_SECONDS = 5.0


def run(quick: bool) -> list[Ratio]:
    databases, tables = (DATABASES_QUICK, TABLES_QUICK) if quick else (DATABASES, TABLES)
    made = objects(databases, tables)
    with store_path() as path, sqlite_store(path) as store:
        catalog = Catalog(store.keyspace)
        fill(store, catalog, made)
        load = statistics.median(_load(store, catalog) for _ in range(LOADS_QUICK if quick else LOADS))
        cache = Cache(catalog)
        cache.advance(store.snapshot())
        times = REFRESHES_QUICK if quick else REFRESHES
        refresh = statistics.median(_refresh(store, cache, made[-number - 1].id) for number in range(times))
        _verify(store, cache, made)
        held = _bytes_per_descriptor(store, catalog, len(made))
    note(
        f"leases.refresh: {len(made):,} descriptors, first load {load:.2f} s, refresh {refresh * 1e3:.3f} ms "
        f"(1/{load / refresh:,.0f}), {held:,.0f} bytes per cached descriptor with its name"
    )
    limit = 1 / 1000 * (TABLES / tables)
    return [
        compare(
            "leases.first_load", ours=load, peer=FIRST_LOAD_SECONDS, unit="s", bar=Bar.AT_MOST, limit=1.0
        ),
        compare("leases.refresh", ours=refresh, peer=load, unit="s", bar=Bar.AT_MOST, limit=limit),
    ]


def _load(store: Store, catalog: Catalog) -> float:
    gc.collect()
    cache = Cache(catalog)
    began = time.perf_counter()
    cache.advance(store.snapshot())
    return time.perf_counter() - began


def _refresh(store: Store, cache: Cache, id: int) -> float:
    change(store, cache.catalog, id)
    began = time.perf_counter()
    cache.advance(store.snapshot())
    return time.perf_counter() - began


def _verify(store: Store, cache: Cache, made: list[AnyDescriptor]) -> None:
    snapshot = store.snapshot(cache.newest.at)
    for each in made[:: max(1, len(made) // 200)]:
        assert cache.newest.descriptor(each.id) == cache.catalog.get(snapshot, each.id)
        assert cache.newest.id_at(place_of(each)) == each.id
    changed = cache.newest.descriptor(made[-1].id)
    assert changed is not None and changed.version == 2, "the refresh missed a change"


def _bytes_per_descriptor(store: Store, catalog: Catalog, count: int) -> float:
    gc.collect()
    tracemalloc.start()
    cache = Cache(catalog)
    cache.advance(store.snapshot())
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held / count
