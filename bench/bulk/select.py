"""Aggregates and joins over a base in the lake and a delta on top: beside DuckDB on the bare files, and
PostgreSQL.

The delta changes, deletes and adds rows all over the base. DuckDB alone reads the files without it: what it
takes is what reading costs at least. Answers are compared with PostgreSQL's, which has the same rows. Between
two rounds some rows are changed, and each round asks with other constants. As in a node, a loop takes in what
has changed; what it has not by then, the query does.

Walk: `bench.__main__` -> `run` -> `bench.bulk.bases` makes the base.
"""

import logging
import os
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import psycopg

from bench.bulk.bases import CUSTOMER_ROWS, DDL, Based, based, sale
from bench.ratio import Bar, Ratio, compare
from bench.store.rounds import note
from tenure.base.loops import Loop
from tenure.table.columnar import KEEP_UP_SECONDS
from tests import postgres_server

LOG = logging.getLogger(__name__)

SIZES, QUICK_SIZES = (1_000_000, 10_000_000), (20_000,)
DELTA_ROWS, QUICK_DELTA_ROWS = 200_000, 2_000
NEW_SHARE = 0.1
"""Of the delta: rows that the base does not have."""
ROUNDS, QUICK_ROUNDS = 4, 1
CHANGED_ROWS = 500
"""Between two rounds."""

BARE_MOST = 2.0
PEER_MOST = 1 / 3
"""At the larger size; at the smaller one both are fast."""

QUERIES = {
    "groups": "SELECT city, count(*), sum(price), avg(qty) FROM sales WHERE cust > {} GROUP BY city",
    "one sum": "SELECT count(*), sum(price) FROM sales WHERE day >= date '2020-01-01' + {}",
    "join": "SELECT region, sum(price), count(*) FROM sales JOIN customers ON customers.id = sales.cust "
    "WHERE qty > {} GROUP BY region",
    "distinct": "SELECT count(DISTINCT cust) FROM sales WHERE city <> 'city{}'",
    "top": "SELECT id, price FROM sales WHERE qty >= {} ORDER BY price DESC, id LIMIT 20",
}

Ask = Callable[[str], list[tuple[Any, ...]]]


def run(quick: bool) -> list[Ratio]:
    sizes, delta = (QUICK_SIZES, QUICK_DELTA_ROWS) if quick else (SIZES, DELTA_ROWS)
    found: list[Ratio] = []
    for rows in sizes:
        found += measured(rows, delta, QUICK_ROUNDS if quick else ROUNDS, is_largest=rows == max(sizes))
    return found


def measured(rows: int, delta: int, rounds: int, *, is_largest: bool) -> list[Ratio]:
    took: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    with based(rows) as ours, _kept_up(ours), _postgres(rows) as connection, _bare(ours) as bare:
        peer: Ask = lambda text: connection.execute(text.encode()).fetchall()  # noqa: E731
        rng = random.Random(1)
        _change(ours, connection, _delta(rng, rows, delta))
        connection.execute("VACUUM ANALYZE")
        for name, text in QUERIES.items():
            note(
                f"bulk.select {name}, {rows} rows, first: {_timed(ours.ask, text.format(0))[0] * 1000:.0f} ms"
            )
        constants = iter(range(1, 1000))
        for _ in range(rounds):
            for name, text in QUERIES.items():
                _change(ours, connection, _delta(rng, rows, min(CHANGED_ROWS, delta)))
                query = text.format(next(constants))
                took[name].append(_all(ours.ask, bare, peer, query))
        assert ours.duck.failed_count == 0, "DuckDB did not answer"
    return [each for name in QUERIES for each in _ratios(name, rows, took[name], is_largest)]


def _ratios(
    name: str, rows: int, took: list[tuple[float, float, float]], is_largest: bool
) -> Iterator[Ratio]:
    mine, bare, peer = (min(each) * 1000 for each in zip(*took, strict=True))
    title = f"bulk.select {name}, {rows:,} rows"
    yield compare(f"{title}, bare", ours=mine, peer=bare, unit="ms", bar=Bar.AT_MOST, limit=BARE_MOST)
    bar = Bar.AT_MOST if is_largest else Bar.NONE
    yield compare(f"{title}, PostgreSQL", ours=mine, peer=peer, unit="ms", bar=bar, limit=PEER_MOST)


def _all(ours: Ask, bare: Ask, peer: Ask, query: str) -> tuple[float, float, float]:
    alone, _ = _timed(bare, query)
    mine, found = _timed(ours, query)
    theirs, expected = _timed(peer, query)
    if sorted(map(_rounded, found)) != sorted(map(_rounded, expected)):
        raise AssertionError(f"different answers: {query}: {found[:3]} {expected[:3]}")
    return mine, alone, theirs


def _timed(ask: Ask, query: str) -> tuple[float, list[tuple[Any, ...]]]:
    began = time.perf_counter()
    found = ask(query)
    return time.perf_counter() - began, found


def _rounded(row: tuple[Any, ...]) -> str:
    return repr(tuple(round(each, 6) if isinstance(each, float) else each for each in row))


def _delta(rng: random.Random, rows: int, count: int) -> list[tuple[Any, ...]]:
    salt = rng.randrange(1, 1000)
    new = int(count * NEW_SHARE)
    ids = rng.sample(range(rows), count - new) + rng.sample(range(rows, 2 * rows), new)
    return [sale(id, salt) for id in sorted(ids)]


def _change(
    ours: Based, connection: "psycopg.Connection[tuple[Any, ...]]", delta: list[tuple[Any, ...]]
) -> None:
    ours.put(delta)
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE newer (LIKE sales) ON COMMIT DROP")
        with cursor.copy("COPY newer FROM STDIN") as copy:
            for row in delta:
                copy.write_row(row)
        cursor.execute(
            "INSERT INTO sales SELECT * FROM newer ON CONFLICT (id) DO UPDATE SET cust = excluded.cust, "
            "city = excluded.city, price = excluded.price, qty = excluded.qty, day = excluded.day"
        )


@contextmanager
def _kept_up(ours: Based) -> Iterator[None]:
    loop = Loop("columns", ours.duck.step, ours.env, interval_seconds=KEEP_UP_SECONDS, log=LOG)
    loop.start()
    try:
        yield
    finally:
        loop.stop()


@contextmanager
def _postgres(rows: int) -> "Iterator[psycopg.Connection[tuple[Any, ...]]]":
    directory = postgres_server.make_directory()
    try:
        server = postgres_server.start(directory)
        with psycopg.connect(server.socket_dsn, autocommit=True) as connection:
            for statement in DDL.strip().splitlines():
                connection.execute(statement.encode())
            connection.execute(
                f"INSERT INTO sales SELECT g, g * 7 % {CUSTOMER_ROWS}, 'city' || g % 50, "
                "(g * 31 % 100000) / 100.0, (g % 1000) * 0.5, date '2020-01-01' + (g % 1000)::int "
                f"FROM generate_series(0::bigint, {rows - 1}) g".encode()
            )
            connection.execute(
                "INSERT INTO customers SELECT g, 'name' || g, 'region' || g % 12 "
                f"FROM generate_series(0, {CUSTOMER_ROWS - 1}) g".encode()
            )
            yield connection
    finally:
        postgres_server.remove_directory(directory)


@contextmanager
def _bare(ours: Based) -> Iterator[Ask]:
    """DuckDB alone on the same files, with as many threads as ours has."""
    threads = max(1, (os.cpu_count() or 1) - 1)
    with duckdb.connect(":memory:", config={"threads": threads}) as connection:
        connection.execute("SET parquet_metadata_cache = true")
        columns = {
            "sales": ("id", "cust", "city", "price", "qty", "day"),
            "customers": ("id", "name", "region"),
        }
        for table, names in columns.items():
            named = ", ".join(f"c{at} AS {name}" for at, name in enumerate(names, 1))
            files = ", ".join(f"'{name}'" for name in ours.file_names[table])
            connection.execute(f"CREATE VIEW {table} AS SELECT {named} FROM read_parquet([{files}])")
        yield lambda text: connection.execute(text).fetchall()
