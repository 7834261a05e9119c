"""Aggregates and joins over a million rows, some of which change between the runs: beside PostgreSQL.

All rows lie in the delta: nothing is in a lake yet. Before each round 1 % of them is changed, and the
constants of each query are others, so that neither side can answer from what it answered before. Every answer
is compared with PostgreSQL's. The first round, in which our columns are made and PostgreSQL's pages read, is
printed but not counted.

Walk: `bench.__main__` -> `run`.
"""

import statistics
import time
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from bench.ratio import Bar, Ratio, compare
from bench.sql.places import Place, ours, peer
from bench.store.rounds import note

ROWS, QUICK_ROWS = 1_000_000, 5_000
LOAD_ROWS = 20_000
CHANGED = 100
"""One row in so many is changed between two rounds."""

QUERIES = {
    "group": "SELECT region, count(*), sum(cents), avg(cents), max(qty) FROM sales "
    "WHERE qty > {n} GROUP BY region ORDER BY region",
    "filter": "SELECT count(*), sum(cents * qty), min(sold_at) FROM sales "
    "WHERE cents BETWEEN {n} * 100 AND {n} * 100 + 50000 AND status = 'open'",
    "join_1k": "SELECT p.kind, count(*), sum(s.cents) FROM sales s JOIN products p ON p.id = s.product "
    "WHERE s.qty <> {n} GROUP BY p.kind ORDER BY p.kind",
    "join_100k": "SELECT c.city, count(*), sum(s.cents) FROM sales s JOIN customers c ON c.id = s.customer "
    "WHERE c.grade > {n} % 5 GROUP BY c.city ORDER BY c.city",
    "top": "SELECT id, cents FROM sales WHERE qty >= {n} ORDER BY cents DESC, id LIMIT 20",
    "distinct": "SELECT status, count(DISTINCT customer) FROM sales WHERE product <> {n} GROUP BY status "
    "ORDER BY status",
    "window": "SELECT region, day, total, sum(total) OVER (PARTITION BY region ORDER BY day) FROM ("
    "SELECT region, date_trunc('day', sold_at) AS day, sum(cents) AS total FROM sales "
    "WHERE qty > {n} GROUP BY 1, 2) t ORDER BY region, day LIMIT 500",
    "numeric": "SELECT region, sum(price), avg(price) FROM sales WHERE product > {n} GROUP BY region "
    "ORDER BY region",
}

TABLES = (
    "CREATE TABLE products (id int PRIMARY KEY, kind text NOT NULL)",
    "CREATE TABLE customers (id int PRIMARY KEY, city text NOT NULL, grade int NOT NULL)",
    "CREATE TABLE sales (id bigint PRIMARY KEY, customer int NOT NULL, product int NOT NULL, "
    "region int NOT NULL, status text NOT NULL, cents bigint NOT NULL, qty int NOT NULL, "
    "price numeric(12, 2) NOT NULL, sold_at timestamp NOT NULL)",
)
STATES = ("open", "paid", "sent", "back")


def run(quick: bool) -> list[Ratio]:
    rows, rounds = (QUICK_ROWS, 1) if quick else (ROWS, 5)
    with ours() as node, peer() as postgres:
        for place in (node, postgres):
            _load(place, rows)
        found: list[dict[str, tuple[float, float]]] = []
        for number in range(rounds + 1):
            for place in (node, postgres):
                _change(place, rows, number)
            found.append({name: _both(node, postgres, name, number) for name in QUERIES})
    for name, (mine, theirs) in found[0].items():
        note(f"sql.analytics.{name}, first: {mine * 1000:.0f} ms, PostgreSQL {theirs * 1000:.0f} ms")
    return [_ratio(name, [each[name] for each in found[1:]]) for name in QUERIES]


def _ratio(name: str, rounds: Sequence[tuple[float, float]]) -> Ratio:
    return compare(
        f"sql.analytics.{name}",
        ours=statistics.median(mine for mine, _ in rounds) * 1000,
        peer=statistics.median(theirs for _, theirs in rounds) * 1000,
        unit="ms",
        bar=Bar.AT_MOST,
        limit=1.0,
    )


class Timed(NamedTuple):
    seconds: float
    rows: list[tuple[Any, ...]]


def _both(node: Place, postgres: Place, name: str, number: int) -> tuple[float, float]:
    query = QUERIES[name].format(n=1 + number)
    mine, theirs = _timed(node, query), _timed(postgres, query)
    assert list(_plain(mine.rows)) == list(_plain(theirs.rows)), f"{name}: {mine.rows[:5]} {theirs.rows[:5]}"
    return mine.seconds, theirs.seconds


def _timed(place: Place, query: str) -> Timed:
    with place.connect() as connection:
        connection.execute("SELECT 1")
        began = time.perf_counter()
        rows = connection.execute(query).fetchall()
        return Timed(time.perf_counter() - began, rows)


def _plain(rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    for row in rows:
        yield tuple(str(each) if isinstance(each, Decimal) else each for each in row)


def _load(place: Place, rows: int) -> None:
    began = time.perf_counter()
    with place.connect() as connection:
        for statement in TABLES:
            connection.execute(statement)
        connection.execute("INSERT INTO products SELECT g, 'kind ' || g % 12 FROM generate_series(0, 999) g")
        for first in range(0, 100_000, LOAD_ROWS):
            connection.execute(
                "INSERT INTO customers SELECT g, 'city ' || g % 50, g % 7 "
                f"FROM generate_series({first}, {first + LOAD_ROWS - 1}) g"
            )
        for first in range(0, rows, LOAD_ROWS):
            with connection.cursor() as cursor, cursor.copy("COPY sales FROM STDIN") as copy:
                copy.write("".join(map(_line, range(first, min(rows, first + LOAD_ROWS)))))
        if place.user == "postgres":
            connection.execute("VACUUM ANALYZE")
    note(f"sql.analytics: {rows} rows loaded into {place.user}'s in {time.perf_counter() - began:.1f} s")


def _line(number: int) -> str:
    """A row that follows from its number, in the text format of COPY."""
    mixed = number * 2_654_435_761 % 4_294_967_296
    cents = mixed % 1_000_003
    return (
        f"{number}\t{mixed % 100_000}\t{mixed // 7 % 1_000}\t{mixed // 11 % 20}\t{STATES[mixed // 13 % 4]}"
        f"\t{cents}\t{mixed // 17 % 40}\t{cents // 100}.{cents % 100:02d}"
        f"\t2024-{1 + mixed % 12:02d}-{1 + mixed // 19 % 28:02d} {mixed // 23 % 24:02d}:00:00\n"
    )


def _change(place: Place, rows: int, number: int) -> None:
    """Changes one row in a hundred, others each time."""
    began = time.perf_counter()
    with place.connect() as connection:
        done = connection.execute(
            "UPDATE sales SET cents = cents + 1, qty = (qty + 3) % 40 "
            f"WHERE id % {CHANGED} = {number % CHANGED}"
        )
        assert done.rowcount == -(-rows // CHANGED), done.rowcount
    seconds = time.perf_counter() - began
    note(f"sql.analytics: {done.rowcount} rows of {place.user}'s changed in {seconds:.2f} s")
