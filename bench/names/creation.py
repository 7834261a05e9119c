"""CREATE SCHEMA by many clients in one database, and what it costs with 10 and with 10,000 schemas there.

    statements a second, 16 clients, durable commits    at least 50
    CPU time of a statement, 10,000 schemas beside 10   at most 2 times
    history of a statement, likewise                    at most 2 times

History is what a statement adds to the store, in bytes: revisions of now and of then.

Walk: `bench.__main__` -> `run`.
"""

import sqlite3
import statistics
import threading
import time
from contextlib import closing
from typing import NamedTuple

from bench.leases.places import nodes_over
from bench.names.places import fill_schemas
from bench.ratio import Bar, Ratio, compare
from bench.sql.places import Place, cpu_seconds, node
from bench.store.places import store_path
from bench.store.rounds import note

CLIENTS, PER_CLIENT, PER_CLIENT_QUICK = 16, 40, 1
FEW, MANY, MANY_QUICK = 10, 10_000, 50
ALONE, ALONE_QUICK = 200, 3
RATE = 50.0
GROWTH = 2.0


def run(quick: bool) -> list[Ratio]:
    few = _measure(FEW, quick)
    many = _measure(MANY_QUICK if quick else MANY, quick)
    note(
        f"names.creation: {few.rate:.0f}/s and {few.millis:.1f} ms alone with few schemas, "
        f"{many.rate:.0f}/s and {many.millis:.1f} ms with many; {few.bytes:.0f} and {many.bytes:.0f} bytes"
    )
    return [
        compare("names.creation.rate", ours=many.rate, peer=RATE, unit="1/s", bar=Bar.AT_LEAST, limit=1.0),
        compare(
            "names.creation.cost",
            ours=many.cpu_millis,
            peer=few.cpu_millis,
            unit="ms",
            bar=Bar.AT_MOST,
            limit=GROWTH,
        ),
        compare(
            "names.creation.history",
            ours=many.bytes,
            peer=few.bytes,
            unit="bytes",
            bar=Bar.AT_MOST,
            limit=GROWTH,
        ),
    ]


class Measured(NamedTuple):
    rate: float
    millis: float
    cpu_millis: float
    bytes: float


def _measure(schemas: int, quick: bool) -> Measured:
    """In a database that has so many schemas before the first statement."""
    alone, per_client = (ALONE_QUICK, PER_CLIENT_QUICK) if quick else (ALONE, PER_CLIENT)
    with store_path() as path:
        with nodes_over(path) as (filling,):
            fill_schemas(filling, schemas)
        with node(path) as place:
            _create(place, "warm", ALONE_QUICK)
            before, cpu_before = _stored_bytes(path), cpu_seconds(place.pids)
            millis = _create(place, "alone", alone)
            cpu_millis = (cpu_seconds(place.pids) - cpu_before) / alone * 1e3
            grown = _stored_bytes(path) - before
            rate = _create_together(place, per_client)
            _check(place, schemas + ALONE_QUICK + alone + CLIENTS * per_client)
    return Measured(rate, millis, cpu_millis, grown / alone)


def _create(place: Place, prefix: str, count: int) -> float:
    """The median of one statement, in milliseconds."""
    took = []
    with place.connect() as connection:
        for number in range(count):
            began = time.perf_counter()
            connection.execute(f"CREATE SCHEMA {prefix}_{number}")
            took.append((time.perf_counter() - began) * 1e3)
    return statistics.median(took)


def _create_together(place: Place, per_client: int) -> float:
    """Statements a second."""
    threads = [
        threading.Thread(target=_create, args=(place, f"client{client}", per_client))
        for client in range(CLIENTS)
    ]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return CLIENTS * per_client / (time.perf_counter() - began)


def _check(place: Place, count: int) -> None:
    with place.connect() as connection:
        found = connection.execute(
            "SELECT count(*) FROM pg_namespace WHERE nspname ~ '^(app|warm|alone|client)'"
        ).fetchone()
        assert found == (count,), (found, count)


def _stored_bytes(path: str) -> int:
    with closing(sqlite3.connect(path)) as file:
        return sum(
            file.execute(f"SELECT sum(length(key) + coalesce(length(value), 0)) FROM {table}").fetchone()[0]
            for table in ("live", "past")
        )
