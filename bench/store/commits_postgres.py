"""Durable commits on PostgreSQL: 16 threads of ours beside psycopg loops of single commits.

    bare INSERT    into a table with a primary key: the least that a durable commit can be
    same tables    the row with its old revision, its indexes and the clock, in one statement

Both peers are one connection in autocommit with a prepared statement: one round trip and one fsync
per commit. Ours decides and writes a group in one round trip. CPU is the client's; the server's is
not counted. Where the peer wins: the latency and the CPU of a single commit.

Walk: `bench.__main__` -> `run`.
"""

import psycopg
from psycopg import sql

from bench.ratio import Bar, Ratio, compare
from bench.store.commits import KEYS_PER_THREAD, THREADS, Commits, numbered, ratios
from bench.store.places import postgres, postgres_store
from bench.store.rounds import alternate, note
from tenure.storage.postgres.section_sql import TABLES

INSERT = b"INSERT INTO bare (key, at, value) VALUES (%b, %b, %b)"
SAME_TABLES = b"""
WITH given AS (SELECT %b::bytea AS key, %b::bytea AS value),
now AS (UPDATE clock SET at = at + 1 RETURNING at),
moved AS (
    INSERT INTO past (key, at, until, value)
    SELECT live.key, live.at, now.at, live.value FROM now, given JOIN live ON live.key = given.key
)
INSERT INTO live (key, at, value) SELECT given.key, now.at, given.value FROM now, given
ON CONFLICT (key) DO UPDATE SET at = excluded.at, value = excluded.value"""


def run(quick: bool) -> list[Ratio]:
    commits, rounds = (160, 1) if quick else (8_000, 5)
    with (
        postgres() as server,
        postgres_store(server.dsn) as store,
        psycopg.connect(server.dsn, autocommit=True) as connection,
    ):
        ours = Commits(store)
        peer = BareLoops(connection)
        many, one, bare, same = alternate(
            rounds,
            lambda: ours.run(THREADS, commits),
            lambda: ours.run(1, commits // 8),
            lambda: peer.insert(commits // 4),
            lambda: peer.upsert(commits // 4),
        )
        ours.verify()
        peer.verify()
    note(f"commits.postgres: same tables, one by one {same.rate:,.0f}/s, {same.cpu_micros:.0f} us CPU")
    beside_same = compare(
        "commits.postgres.same_tables",
        ours=many.rate,
        peer=same.rate,
        unit="commits/s",
        bar=Bar.AT_LEAST,
        limit=4.0,
    )
    return [*ratios("commits.postgres", 4.0, many=many, one=one, bare=bare), beside_same]


class BareLoops:
    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._inserts = self._upserts = 0
        connection.execute("CREATE SCHEMA bare; SET search_path = bare")
        connection.execute(TABLES.encode())
        connection.execute("CREATE TABLE bare (key bytea PRIMARY KEY, at bigint NOT NULL, value bytea)")

    def insert(self, commits: int) -> int:
        for nr in range(self._inserts, self._inserts + commits):
            self._connection.execute(INSERT, (_key(nr), nr, numbered(nr)), prepare=True)
        self._inserts += commits
        return commits

    def upsert(self, commits: int) -> int:
        for nr in range(self._upserts, self._upserts + commits):
            key = _key(nr % (THREADS * KEYS_PER_THREAD))
            self._connection.execute(SAME_TABLES, (key, numbered(nr)), prepare=True)
        self._upserts += commits
        return commits

    def verify(self) -> None:
        assert self._count("bare") == self._inserts, "an INSERT is not there"
        assert self._count("live") + self._count("past") == self._upserts, "a revision is not there"

    def _count(self, table: str) -> int:
        query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))
        row = self._connection.execute(query).fetchone()
        assert row is not None
        return int(row[0])


def _key(nr: int) -> bytes:
    return bytes(10) + nr.to_bytes(4, "big")
