"""Point SELECT, prepared, 8 clients of pgbench: beside a door with canned answers, beside PostgreSQL, and
with other work beside it.

    quiet    the statement alone: ours, the canned server and PostgreSQL take turns
    busy     the same beside one long aggregate (DuckDB's) in a loop and 50 INSERT a second

The canned server is the same door in the same process model whose session answers every statement with one
constant row: what is lost to it is what looking up a row costs. Here the busy p99 is compared with the
quiet p99 of the same node; PostgreSQL's, under the same work, is printed.

Walk: `bench.__main__` -> `run`.
"""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from bench.ratio import Bar, Ratio, compare
from bench.sql.driver import Measured, alternate, measure
from bench.sql.places import Place, ours, peer
from bench.store.rounds import note

SCRIPT = "\\set aid random(1, :scale)\nSELECT abalance FROM accounts WHERE aid = :aid;\n"
INSERTS = (
    "\\set id random(1, 1000000000000000)\n"
    "INSERT INTO events (id, aid, delta) VALUES (:id, 1, 1) ON CONFLICT DO NOTHING;\n"
)
INSERTS_PER_SECOND = 50
LONG = """
SELECT a.bid % 17, count(*), sum(a.abalance), min(b.aid), max(b.abalance), count(DISTINCT a.bid)
FROM accounts a JOIN accounts b ON a.bid = b.bid AND b.aid <= 1000 GROUP BY 1 ORDER BY 1"""
ACCOUNTS, QUICK_ACCOUNTS = 100_000, 2_000
LOAD_ROWS = 20_000


def run(quick: bool) -> list[Ratio]:
    rows, rounds, seconds = (QUICK_ACCOUNTS, 1, 1) if quick else (ACCOUNTS, 5, 4)
    with ours() as node, peer() as postgres, canned() as door:
        for place in (node, postgres):
            load(place, rows)
        script = SCRIPT.replace(":scale", str(rows))
        alternate((node, postgres, door), script, rounds=1, seconds=1)
        mine, theirs, constant = alternate((node, postgres, door), script, rounds=rounds, seconds=seconds)
        quiet, busy = _quiet_and_busy(node, script, rounds, seconds)
        their_quiet, their_busy = _quiet_and_busy(postgres, script, 1, seconds)
    note(
        f"sql.point: {mine.millis}; {mine.cpu_micros:.0f} us of CPU each, canned {constant.cpu_micros:.0f} us"
    )
    note(f"sql.point busy: {busy.millis}; {busy.per_second:.0f}/s")
    note(f"sql.point, PostgreSQL's p99 busy to quiet: {their_busy.millis.p99 / their_quiet.millis.p99:.1f}")
    return [
        compare(
            "sql.point",
            ours=mine.per_second,
            peer=constant.per_second,
            unit="1/s",
            bar=Bar.AT_LEAST,
            limit=0.4,
        ),
        compare(
            "sql.point.beside_postgres",
            ours=mine.per_second,
            peer=theirs.per_second,
            unit="1/s",
            bar=Bar.NONE,
        ),
        compare(
            "sql.point.busy_p99",
            ours=busy.millis.p99,
            peer=quiet.millis.p99,
            unit="ms",
            bar=Bar.AT_MOST,
            limit=3.0,
        ),
    ]


@contextmanager
def canned() -> Iterator[Place]:
    """The door with a session that answers with constants, as a process."""
    server = subprocess.Popen(
        [sys.executable, "-m", "bench.sql.canned_server", "real"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        yield Place(int(server.stdout.readline()), "root", "bench", (server.pid,))
    finally:
        server.communicate()


def load(place: Place, rows: int) -> None:
    """Accounts of which each has a balance that follows from its number, and a table for inserts."""
    with place.connect() as connection:
        connection.execute(
            "CREATE TABLE accounts (aid int PRIMARY KEY, bid int NOT NULL, abalance int, filler text)"
        )
        connection.execute("CREATE TABLE events (id bigint PRIMARY KEY, aid int, delta int)")
        for first in range(1, rows + 1, LOAD_ROWS):
            last = min(rows, first + LOAD_ROWS - 1)
            connection.execute(
                "INSERT INTO accounts SELECT g, g % 1000, g * 7, 'some words to fill a row with' "
                f"FROM generate_series({first}, {last}) g"
            )
        found = connection.execute("SELECT abalance FROM accounts WHERE aid = %s", (rows,)).fetchall()
        assert found == [(rows * 7,)], found
        if place.user == "postgres":
            connection.execute("VACUUM ANALYZE accounts")


def _quiet_and_busy(place: Place, script: str, rounds: int, seconds: float) -> tuple[Measured, Measured]:
    """The rounds of median p99, with and without other work beside them; they take turns."""
    quiet, busy = [], []
    for _ in range(rounds):
        quiet.append(measure(place, script, seconds=seconds))
        with _beside(place, seconds) as done:
            busy.append(measure(place, script, seconds=seconds))
        note(f"sql.point beside: {done['queries']} long queries, {done['inserts']} INSERTs in a round")
    return _median(quiet), _median(busy)


def _median(rounds: list[Measured]) -> Measured:
    return sorted(rounds, key=lambda each: each.millis.p99)[len(rounds) // 2]


@contextmanager
def _beside(place: Place, seconds: float) -> Iterator[dict[str, int]]:
    """One long query after the other, and INSERTs at a steady rate, until it is left."""
    over = threading.Event()
    done = {"queries": 0, "inserts": 0}
    errors: list[BaseException] = []

    def query() -> None:
        try:
            with place.connect() as connection:
                while not over.is_set():
                    connection.execute(LONG).fetchall()
                    done["queries"] += 1
        except psycopg.Error as error:
            errors.append(error)

    def insert() -> None:
        try:
            found = measure(place, INSERTS, seconds=seconds + 1, clients=1, rate=INSERTS_PER_SECOND)
            done["inserts"] = found.transactions
        except AssertionError as error:
            errors.append(error)

    threads = [threading.Thread(target=query), threading.Thread(target=insert)]
    for thread in threads:
        thread.start()
    try:
        yield done
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert not errors, errors
