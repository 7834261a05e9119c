"""What `x.t` costs with 10,000 schemas in the database, where `x` is a schema and where it is a database.

    median of either reading                              at most 3 microseconds
    reads of the store while `x` is found to be no schema none

A transaction binds, resolves 20 names and ends; what is timed is one name, from its parts to the pinned
table. Its tables are in 20 schemas, or in one other database. All have been used before, as in a service that
runs.

Walk: `bench.__main__` -> `run` -> `catalog.name_resolution.find`.
"""

import random
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bench.leases.places import FIRST_ID, nodes
from bench.names.places import database_name, fill_databases, fill_schemas, schema_name, table_name
from bench.ratio import Bar, Ratio, compare
from bench.store.rounds import note
from tenure.catalog.descriptors.definitions import DEFAULT_DATABASE
from tenure.catalog.name_resolution import Path, find
from tenure.node import Node

SCHEMAS, SCHEMAS_QUICK = 10_000, 100
DATABASES = 100
TRANSACTIONS, TRANSACTIONS_QUICK = 2_000, 20
PER_TRANSACTION = 20
USED = 1_000
"""How many of the schemas are in use."""
MEDIAN_MICROS = 3.0
READS = ("get", "get_many", "scan", "history", "revisions")
"""The calls of an engine that read rows."""


Names = list[tuple[str, str]]


def run(quick: bool) -> list[Ratio]:
    schemas, times = (SCHEMAS_QUICK, TRANSACTIONS_QUICK) if quick else (SCHEMAS, TRANSACTIONS)
    with nodes(1) as (node,):
        fill_schemas(node, schemas)
        fill_databases(node, DATABASES, first_id=FIRST_ID + 2 * schemas, tables=PER_TRANSACTION)
        used = [(schema_name(number), table_name(0)) for number in range(min(schemas, USED))]
        as_schemas = [random.Random(each).sample(used, PER_TRANSACTION) for each in range(times)]
        as_databases = [_names_in(each % DATABASES) for each in range(times)]
        for names in (as_schemas, as_databases):
            _measure(node, names)  # what is used has been decoded
        of_schema = _measure(node, as_schemas)
        with _counted_reads(node) as reads:
            of_database = _measure(node, as_databases)
    assert not reads, f"resolving a name has read the store: {reads[:5]}"
    note(f"names.resolution: x is a schema {of_schema:.2f} us, x is a database {of_database:.2f} us")
    return [
        compare(
            f"names.resolution.{name}", ours=micros, peer=MEDIAN_MICROS, unit="us", bar=Bar.AT_MOST, limit=1.0
        )
        for name, micros in (("schema", of_schema), ("database", of_database))
    ]


def _names_in(database: int) -> Names:
    return [(database_name(database), table_name(number)) for number in range(PER_TRANSACTION)]


def _measure(node: Node, transactions: Sequence[Names]) -> float:
    """The median of one name, in microseconds."""
    path = Path(DEFAULT_DATABASE, user="root")
    took: list[int] = []
    for names in transactions:
        use = node.leases.bind(node.store.begin())
        for name in names:
            began = time.perf_counter_ns()
            found = find(use, name, path)
            took.append(time.perf_counter_ns() - began)
            assert found is not None and found.name == name[-1]
        use.close()
    return statistics.median(took) / 1_000


@contextmanager
def _counted_reads(node: Node) -> Iterator[list[str]]:
    """The reads of this thread, by the name of the engine's call."""
    engine, own, reads = node.store.engine, threading.get_ident(), list[str]()

    def counting(name: str) -> None:
        call = getattr(engine, name)

        def counted(*arguments: object, **options: object) -> object:
            if threading.get_ident() == own:
                reads.append(name)
            return call(*arguments, **options)

        setattr(engine, name, counted)

    for name in READS:
        counting(name)
    try:
        yield reads
    finally:
        for name in READS:
            delattr(engine, name)
