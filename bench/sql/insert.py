"""Single-row INSERT, prepared, 8 clients of pgbench, each its own durable transaction: beside PostgreSQL.

Both find out at commit who was first and make every row durable before they answer. Ours shares an fsync
among the clients of a node, PostgreSQL among those that commit at once. Afterwards the rows are counted.

Walk: `bench.__main__` -> `run`; `bench.sql.processes` measures the same statements.
"""

from bench.ratio import Bar, Ratio, compare
from bench.sql.driver import alternate
from bench.sql.places import Place, ours, peer
from bench.store.rounds import note

TABLE = (
    "CREATE TABLE history (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), "
    "tid int, bid int, aid int, delta int, mtime timestamptz)"
)
SCRIPT = (
    "\\set aid random(1, 100000)\n\\set delta random(-5000, 5000)\n"
    "INSERT INTO history (tid, bid, aid, delta, mtime) VALUES (1, 1, :aid, :delta, CURRENT_TIMESTAMP);\n"
)


def run(quick: bool) -> list[Ratio]:
    rounds, seconds = (1, 1) if quick else (5, 4)
    with ours() as node, peer() as postgres:
        for place in (node, postgres):
            with place.connect() as connection:
                connection.execute(TABLE)
        mine, theirs = alternate((node, postgres), SCRIPT, rounds=rounds, seconds=seconds)
        assert count(node) >= mine.transactions
    note(f"sql.insert: {mine.millis}; {mine.cpu_micros:.0f} us of CPU each; PostgreSQL {theirs.millis}")
    return [
        compare(
            "sql.insert",
            ours=mine.per_second,
            peer=theirs.per_second,
            unit="1/s",
            bar=Bar.AT_LEAST,
            limit=0.35,
        )
    ]


def count(place: Place) -> int:
    with place.connect() as connection:
        found = connection.execute("SELECT count(*) FROM history").fetchone()
    assert found is not None
    return int(found[0])
