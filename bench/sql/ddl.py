"""CREATE TABLE with two indexes, a hundred times, each statement its own transaction: beside PostgreSQL.

Three statements a table: CREATE TABLE with a primary key, then two CREATE INDEX. Each of ours is one durable
commit, published to all nodes before it answers; with two processes another node has to take it in first,
which is printed.

Walk: `bench.__main__` -> `run`.
"""

import statistics
import time

from bench.ratio import Bar, Ratio, compare
from bench.sql.places import Place, ours, peer
from bench.store.rounds import note

STATEMENTS = (
    "CREATE TABLE {0} (id bigint PRIMARY KEY, a int NOT NULL, b text, c timestamptz DEFAULT now())",
    "CREATE INDEX {0}_a ON {0} (a)",
    "CREATE INDEX {0}_b_c ON {0} (b, c)",
)


def run(quick: bool) -> list[Ratio]:
    tables, rounds = (5, 1) if quick else (100, 3)
    with ours() as node, peer() as postgres:
        mine, theirs = [], []
        for number in range(rounds):
            mine.append(_create(node, f"r{number}", tables))
            theirs.append(_create(postgres, f"r{number}", tables))
    with ours(processes=2) as several:
        spread_out = _create(several, "r0", tables)
    note(f"sql.ddl: {statistics.median(mine) / tables * 1000:.1f} ms a table; {tables} with two processes")
    return [
        compare(
            "sql.ddl",
            ours=statistics.median(mine),
            peer=statistics.median(theirs),
            unit="s",
            bar=Bar.AT_MOST,
            limit=2.0,
        ),
        compare(
            "sql.ddl.two_processes",
            ours=spread_out,
            peer=statistics.median(theirs),
            unit="s",
            bar=Bar.NONE,
        ),
    ]


def _create(place: Place, prefix: str, tables: int) -> float:
    with place.connect() as connection:
        began = time.perf_counter()
        for number in range(tables):
            for statement in STATEMENTS:
                connection.execute(statement.format(f"{prefix}_{number}"))
        seconds = time.perf_counter() - began
        found = connection.execute(
            "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND starts_with(relname, %s)",
            (f"{prefix}_",),
        ).fetchone()
        assert found == (tables,), found
        connection.execute(f"DROP INDEX {prefix}_{tables - 1}_b_c")
    return seconds
