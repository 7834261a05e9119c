"""INSERT of rows with two foreign keys into tables that lie in the lake: beside PostgreSQL.

    bulk.references          rows per second of INSERTs of 800 rows       PostgreSQL's rows per second
    bulk.references.promised rows per second                              10,000, as promised
    bulk.references.none     seconds per row                              the same without the foreign keys

The rows refer to orders and articles at random, so most of them to rows that no other row refers to. Each
INSERT is a durable transaction of its own. Afterwards one that refers to nothing must fail on both sides.

Walk: `bench.__main__` -> `run`; `bench.bulk.places` lays the tables in the lake.
"""

import random
from typing import Any

import psycopg
import pyarrow as pa

from bench.bulk.places import lay, node
from bench.ratio import Bar, Ratio, compare
from bench.sql.places import Place, peer
from bench.store.rounds import alternate

ROWS, QUICK_ROWS = 200_000, 2_000
INSERT_ROWS = 800
PROMISED = 10_000
"""Rows per second."""

TARGETS = ("orders", "articles")
TABLES = [f"CREATE TABLE {name} (id int PRIMARY KEY, name text, total numeric(12, 2))" for name in TARGETS]
TABLES += [
    "CREATE TABLE lines "
    "(id int PRIMARY KEY, order_id int REFERENCES orders, article_id int REFERENCES articles)",
    "CREATE TABLE plain (id int PRIMARY KEY, order_id int, article_id int)",
]


def run(quick: bool) -> list[Ratio]:
    rows, rounds, inserts = (QUICK_ROWS, 1, 1) if quick else (ROWS, 5, 5)
    with node() as place, peer() as postgres:
        with place.sql.connect() as connection:
            for definition in TABLES:
                connection.execute(definition)
        for name in TARGETS:
            lay(place, name, _columns(rows))
        _load(postgres, rows)
        with place.sql.connect() as mine, postgres.connect() as theirs:
            sides = [
                _Inserts(mine, "lines", rows),
                _Inserts(theirs, "lines", rows),
                _Inserts(mine, "plain", rows),
            ]
            for side in sides:
                side.run(1)
            paces = alternate(rounds, *[lambda side=side: side.run(inserts) for side in sides])
            for side in sides[:2]:
                side.check_refused()
    ours, theirs_pace, plain = paces
    return [
        compare(
            "bulk.references",
            ours=ours.rate,
            peer=theirs_pace.rate,
            unit="rows/s",
            bar=Bar.NONE,
            limit=0.0,
        ),
        compare(
            "bulk.references.promised",
            ours=ours.rate,
            peer=PROMISED,
            unit="rows/s",
            bar=Bar.AT_LEAST,
            limit=1.0,
        ),
        compare(
            "bulk.references.none",
            ours=1e6 / ours.rate,
            peer=1e6 / plain.rate,
            unit="us/row",
            bar=Bar.NONE,
            limit=0.0,
        ),
    ]


def _columns(rows: int) -> dict[str, Any]:
    from tenure.table.arrow import decimals_of

    numbers = range(rows)
    return {
        "id": pa.array(numbers, pa.int32()),
        "name": pa.array([f"name {number}" for number in numbers]),
        "total": decimals_of(pa.array(numbers, pa.int64()), pa.decimal128(12, 2)),
    }


def _load(postgres: Place, rows: int) -> None:
    with postgres.connect() as connection:
        for definition in TABLES:
            connection.execute(definition)
        for name in TARGETS:
            connection.execute(
                f"INSERT INTO {name} SELECT i, 'name ' || i, i / 100.0 FROM generate_series(0, {rows - 1}) i"
            )
        connection.execute("VACUUM ANALYZE")


class _Inserts:
    """INSERTs of many rows each over one connection, the rows always new."""

    def __init__(self, connection: "psycopg.Connection[Any]", table: str, rows: int) -> None:
        self._connection = connection
        self._table = table
        self._rows = rows
        self._next = 0
        self._rng = random.Random(1)

    def run(self, times: int) -> int:
        for _ in range(times):
            first, self._next = self._next, self._next + INSERT_ROWS
            values = [f"({id}, {self._target()}, {self._target()})" for id in range(first, self._next)]
            answer = self._connection.execute(f"INSERT INTO {self._table} VALUES {', '.join(values)}")
            assert answer.rowcount == INSERT_ROWS
        return times * INSERT_ROWS

    def _target(self) -> int:
        return self._rng.randrange(self._rows)

    def check_refused(self) -> None:
        missing = (
            f"INSERT INTO {self._table} VALUES ({self._next}, 0, 0), ({self._next + 1}, 1, {self._rows})"
        )
        try:
            self._connection.execute(missing)
        except psycopg.errors.ForeignKeyViolation as error:
            told = error.diag.constraint_name
        else:
            told = None
        assert told == "lines_article_id_fkey", told
