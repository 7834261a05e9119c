"""SQLAlchemy's reflection of 500 tables with keys, indexes and foreign keys: beside PostgreSQL.

What is reflected must be the same on both sides.

Walk: `bench.__main__` -> `run`.
"""

import statistics
import time

import sqlalchemy as sa

from bench.clients.introspection import url_of
from bench.ratio import Bar, Ratio, compare
from bench.sql.places import Place, ours, peer

TABLES, TABLES_QUICK = 500, 10
ROUNDS, ROUNDS_QUICK = 3, 1


def run(quick: bool) -> list[Ratio]:
    tables, rounds = (TABLES_QUICK, ROUNDS_QUICK) if quick else (TABLES, ROUNDS)
    with ours() as node, peer() as postgres:
        for place in (node, postgres):
            _make(place, tables)
            _reflected(place)
        mine, theirs = [], []
        for _ in range(rounds):
            mine.append(_reflected(node))
            theirs.append(_reflected(postgres))
    assert mine[0][1] == theirs[0][1], "the same tables are reflected as others"
    assert len(mine[0][1]) == tables
    return [
        compare(
            "clients.reflection",
            ours=statistics.median(seconds for seconds, _ in mine),
            peer=statistics.median(seconds for seconds, _ in theirs),
            unit="s",
            bar=Bar.AT_MOST,
            limit=3.0,
        )
    ]


def _make(place: Place, tables: int) -> None:
    made = ["CREATE TABLE r0 (id int PRIMARY KEY, name text)"]
    for each in range(1, tables):
        made.append(
            f"CREATE TABLE r{each} (id serial PRIMARY KEY, parent int REFERENCES r{each - 1} ON DELETE"
            " CASCADE, name varchar(20) NOT NULL UNIQUE DEFAULT 'x', price numeric(8, 2) CHECK (price > 0))"
        )
        made.append(f"CREATE INDEX ON r{each} (parent, name)")
    with place.connect() as connection:
        for first in range(0, len(made), 100):
            connection.execute("; ".join(made[first : first + 100]).encode())


def _reflected(place: Place) -> tuple[float, dict[str, str]]:
    engine = sa.create_engine(url_of(place), poolclass=sa.NullPool)
    metadata = sa.MetaData()
    began = time.perf_counter()
    metadata.reflect(engine)
    seconds = time.perf_counter() - began
    return seconds, {name: _shown(table) for name, table in metadata.tables.items()}


def _shown(table: sa.Table) -> str:
    keys = sorted(str(each.target_fullname) for each in table.foreign_keys)
    indexes = sorted((str(each.name), [column.name for column in each.columns]) for each in table.indexes)
    columns = [(each.name, repr(each.type), each.nullable) for each in table.columns]
    return repr((columns, keys, indexes))
