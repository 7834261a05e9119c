"""GRANT and REVOKE on all of a schema's 1,000 tables in one statement, beside PostgreSQL.

    GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA app TO reader      at most 2 times PostgreSQL's time
    REVOKE INSERT ON ALL TABLES IN SCHEMA app FROM reader           printed

Each is one durable transaction. The two sides take turns.

Walk: `bench.__main__` -> `run` -> `sql.statements.ddl.privileges.grants`.
"""

import statistics
import time

import psycopg

from bench.ratio import Bar, Ratio, compare
from bench.sql.places import Place, ours, peer
from bench.store.rounds import note

TABLES, TABLES_QUICK = 1_000, 5
ROUNDS, ROUNDS_QUICK = 5, 1
PER_TRANSACTION = 100
TIMES = 2.0
GRANT = "GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA app TO reader{}"
REVOKE = "REVOKE INSERT ON ALL TABLES IN SCHEMA app FROM reader{}"


def run(quick: bool) -> list[Ratio]:
    tables, rounds = (TABLES_QUICK, ROUNDS_QUICK) if quick else (TABLES, ROUNDS)
    with ours() as node, peer() as postgres:
        places = (node, postgres)
        for place in places:
            _fill(place, tables, rounds)
        grants, revokes = _alternate(places, GRANT, rounds), _alternate(places, REVOKE, rounds)
        for place in places:
            _check(place, tables)
    note(f"names.granting: GRANT {grants[0]:.3f} s, PostgreSQL {grants[1]:.3f} s")
    return [
        compare(
            "names.granting.all_tables",
            ours=grants[0],
            peer=grants[1],
            unit="s",
            bar=Bar.AT_MOST,
            limit=TIMES,
        ),
        compare("names.granting.revoke", ours=revokes[0], peer=revokes[1], unit="s", bar=Bar.NONE),
    ]


def _fill(place: Place, tables: int, roles: int) -> None:
    with place.connect() as connection:
        connection.execute("CREATE SCHEMA app")
        for number in range(roles):
            connection.execute(f"CREATE ROLE reader{number}")
        for first in range(0, tables, PER_TRANSACTION):
            with connection.transaction():
                for number in range(first, min(tables, first + PER_TRANSACTION)):
                    connection.execute(f"CREATE TABLE app.t{number} (a int PRIMARY KEY, b int)")


def _alternate(places: tuple[Place, ...], statement: str, rounds: int) -> list[float]:
    """The median of each place, in seconds."""
    took: list[list[float]] = [[] for _ in places]
    for number in range(rounds):
        for place, of_place in zip(places, took, strict=True):
            with place.connect() as connection:
                began = time.perf_counter()
                connection.execute(statement.format(number))
                of_place.append(time.perf_counter() - began)
    return [statistics.median(each) for each in took]


def _check(place: Place, tables: int) -> None:
    """As one of the roles: reading is allowed, writing no more."""
    with place.connect() as connection:
        connection.execute("GRANT USAGE ON SCHEMA app TO reader0")
        connection.execute("SET ROLE reader0")
        for number in (0, tables - 1):
            assert connection.execute(f"SELECT count(*) FROM app.t{number}").fetchone() == (0,)
            try:
                connection.execute(f"INSERT INTO app.t{number} VALUES (1, 1)")
            except psycopg.errors.InsufficientPrivilege:
                continue
            raise AssertionError("a revoked privilege still counts")
