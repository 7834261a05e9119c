"""Resolving a name and taking a descriptor under a lease, with 40,000 tables.

    median                                           at most 5 microseconds
    p99 while another node changes schema all along  at most 5 times the quiet p99

A transaction binds, resolves and takes 20 tables, and ends; what is timed is one name and one
descriptor. Tables that are used have been used before, as in a service that runs.

Walk: `bench.__main__` -> `run`.
"""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.leases.places import (
    DATABASES,
    DATABASES_QUICK,
    TABLES,
    TABLES_QUICK,
    change,
    fill,
    nodes,
    objects,
)
from bench.ratio import Bar, Ratio, compare
from bench.store.rounds import note
from tenure.base.errors import RetryError
from tenure.catalog.descriptors.definitions import NameKey, Table, place_of
from tenure.node import Node

TRANSACTIONS, TRANSACTIONS_QUICK = 2_000, 20
PER_TRANSACTION = 20
USED = 1_000
"""How many of the tables are in use."""
MEDIAN_MICROS = 5.0
PAUSE_SECONDS = 0.02
"""Between two changes of the other node: some forty a second, as fast as a migration runs."""


def run(quick: bool) -> list[Ratio]:
    databases, tables = (DATABASES_QUICK, TABLES_QUICK) if quick else (DATABASES, TABLES)
    made = objects(databases, tables)
    with nodes(2) as (node, other):
        fill(node.store, node.catalog, made)
        node.leases.renew()
        used = [(place_of(each), each.id) for each in made if isinstance(each, Table)][:USED]
        times = TRANSACTIONS_QUICK if quick else TRANSACTIONS
        _measure(node, used, times)  # what is used has been decoded
        quiet = _measure(node, used, times)
        with _changing(other, [each.id for each in made[-100:]]):
            busy = _measure(node, used, times)
    median, quiet_p99, busy_p99 = _at(quiet, 0.5), _at(quiet, 0.99), _at(busy, 0.99)
    note(
        f"leases.lookup: p50 {median:.2f} us, p99 {quiet_p99:.1f} us; "
        f"while the schema changes p50 {_at(busy, 0.5):.2f} us, p99 {busy_p99:.1f} us"
    )
    return [
        compare("leases.lookup.p50", ours=median, peer=MEDIAN_MICROS, unit="us", bar=Bar.AT_MOST, limit=1.0),
        compare("leases.lookup.p99", ours=busy_p99, peer=quiet_p99, unit="us", bar=Bar.AT_MOST, limit=5.0),
    ]


def _measure(node: Node, used: list[tuple[NameKey, int]], transactions: int) -> list[float]:
    """Microseconds of each lookup."""
    rng = random.Random(1)
    took: list[float] = []
    for _ in range(transactions):
        use = node.leases.bind(node.store.begin())
        try:
            for place, expected in rng.sample(used, PER_TRANSACTION):
                began = time.perf_counter_ns()
                id = use.id_at(place)
                assert id is not None
                found = use.descriptor(id)
                took.append((time.perf_counter_ns() - began) / 1_000)
                assert found is not None and found.id == expected
        except RetryError:
            pass  # a table of its own was changed under it
        finally:
            use.close()
    return sorted(took)


@contextmanager
def _changing(node: Node, ids: list[int]) -> Iterator[None]:
    stop = threading.Event()
    changes = 0

    def work() -> None:
        nonlocal changes
        while True:
            change(node.store, node.catalog, ids[changes % len(ids)])
            changes += 1
            if stop.wait(PAUSE_SECONDS):
                return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert changes > 0, "the schema did not change"


def _at(took: list[float], part: float) -> float:
    return took[min(len(took) - 1, int(len(took) * part))]
