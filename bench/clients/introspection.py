"""Listing and describing among 40,000 tables: psql's `\\dt` and `\\d t`, SHOW TABLES, get_table_names.

The same tables are in PostgreSQL. Each is asked several times in turns; what the first time takes is not
counted, as it reads the catalog from disk on both sides. Each has a bar beside PostgreSQL, and the promise of
a second. SHOW TABLES stands beside a query of pg_tables.

Walk: `bench.__main__` -> `run`.
"""

import os
import statistics
import subprocess
import time
from collections.abc import Callable

import sqlalchemy as sa

from bench.ratio import Bar, Ratio, compare
from bench.sql.places import Place, ours, peer
from tests.postgres_server import BIN

TABLES, TABLES_QUICK = 40_000, 40
BATCH = 500
"""Tables that are made in one transaction."""
ROUNDS = 5
SLOWER_AT_MOST = 3.0
PROMISE_SECONDS = 1.0

Ask = Callable[[Place], int]
"""Asks, and returns how many tables there were in the answer."""


def run(quick: bool) -> list[Ratio]:
    tables = TABLES_QUICK if quick else TABLES
    ratios = []
    with ours() as node, peer() as postgres:
        for place in (node, postgres):
            make_tables(place, tables)
        for name, ask, expected in (
            ("list", _psql(r"\dt", "t"), tables),
            ("describe", _psql(rf"\d t{tables // 2}", f'Table "public.t{tables // 2}"'), 1),
            ("show", _listed, tables),
            ("get_table_names", _table_names, tables),
        ):
            ratios += _compared(f"clients.introspection.{name}", ask, expected, node, postgres)
    return ratios


def make_tables(place: Place, count: int) -> None:
    with place.connect() as connection:
        for first in range(0, count, BATCH):
            numbers = range(first, min(first + BATCH, count))
            made = [
                f"CREATE TABLE t{each} (id int PRIMARY KEY, name text NOT NULL, at date)" for each in numbers
            ]
            connection.execute("; ".join(["BEGIN", *made, "COMMIT"]).encode())


def _compared(name: str, ask: Ask, expected: int, node: Place, postgres: Place) -> list[Ratio]:
    taken: dict[Place, list[float]] = {node: [], postgres: []}
    for _ in range(ROUNDS + 1):
        for place, seconds in taken.items():
            began = time.perf_counter()
            found = ask(place)
            seconds.append(time.perf_counter() - began)
            assert found == expected, f"{name} gave {found} instead of {expected}"
    mine, theirs = (statistics.median(seconds[1:]) for seconds in taken.values())
    return [
        compare(name, ours=mine, peer=theirs, unit="s", bar=Bar.AT_MOST, limit=SLOWER_AT_MOST),
        compare(f"{name}.promise", ours=mine, peer=PROMISE_SECONDS, unit="s", bar=Bar.AT_MOST, limit=1.0),
    ]


def _psql(command: str, begins: str) -> Ask:
    """The lines of psql's answer whose name, or which themselves, begin so."""

    def ask(place: Place) -> int:
        where = ["-h", "127.0.0.1", "-p", str(place.port), "-U", place.user, "-d", place.database]
        env = {**os.environ, "PGSSLMODE": "disable", "PGGSSENCMODE": "disable"}
        done = subprocess.run(
            [BIN / "psql", "-X", "-A", "-q", *where, "-c", command],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        return sum(line.removeprefix("public|").startswith(begins) for line in done.stdout.splitlines())

    return ask


def _listed(place: Place) -> int:
    """SHOW TABLES, which PostgreSQL does not have."""
    query = "SHOW TABLES" if place.user == "root" else "SELECT * FROM pg_tables WHERE schemaname = 'public'"
    with place.connect() as connection:
        return len(connection.execute(query.encode()).fetchall())


def url_of(place: Place) -> str:
    return f"postgresql+psycopg://{place.user}@127.0.0.1:{place.port}/{place.database}?sslmode=disable"


def _table_names(place: Place) -> int:
    engine = sa.create_engine(url_of(place), poolclass=sa.NullPool)
    return len(sa.inspect(engine).get_table_names())
