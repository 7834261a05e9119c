"""`pgbench -i -s 1`: four tables, 100,000 rows by COPY, then three primary keys: beside PostgreSQL.

    drop, create    seven statements
    generate        TRUNCATE and COPY of the rows in one transaction
    vacuum          accepted, and nothing to be done
    primary keys    ALTER TABLE ... ADD PRIMARY KEY, of a table without a key: its rows get other keys

Each side does it several times, so that all but the first drop the tables of the one before. Afterwards the
rows are counted, and one is looked up by its key.

Walk: `bench.__main__` -> `run`.
"""

import os
import re
import statistics
import subprocess

from bench.ratio import Bar, Ratio, compare
from bench.sql.places import Place, ours, peer
from bench.store.rounds import note
from tests.postgres_server import BIN

ACCOUNTS = 100_000
STEPS = "dtgvp"
QUICK_STEPS = "dtp"
"""Without rows: pgbench knows no smaller scale."""

_DONE = re.compile(r"done in ([\d.]+) s \((.*)\)")


def run(quick: bool) -> list[Ratio]:
    steps, rounds = (QUICK_STEPS, 1) if quick else (STEPS, 3)
    with ours() as node, peer() as postgres:
        mine, theirs = [], []
        for _ in range(rounds):
            mine.append(_initialize(node, steps))
            theirs.append(_initialize(postgres, steps))
        for place in (node, postgres):
            _check(place, 0 if quick else ACCOUNTS)
    return [
        compare(
            "sql.initializing",
            ours=statistics.median(mine),
            peer=statistics.median(theirs),
            unit="s",
            bar=Bar.AT_MOST,
            limit=5.0,
        )
    ]


def _initialize(place: Place, steps: str) -> float:
    """Returns what pgbench says that it took, in seconds."""
    command = [str(BIN / "pgbench"), "-i", "-s", "1", "-I", steps]
    command += ["-h", "127.0.0.1", "-p", str(place.port), "-U", place.user, place.database]
    env = {**os.environ, "PGSSLMODE": "disable", "PGGSSENCMODE": "disable"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    found = _DONE.search(done.stderr)
    assert done.returncode == 0 and found is not None, done.stderr
    note(f"sql.initializing, {place.user}: {found[0]}")
    return float(found[1])


def _check(place: Place, accounts: int) -> None:
    with place.connect() as connection:
        found = connection.execute("SELECT count(*), coalesce(sum(aid), 0) FROM pgbench_accounts").fetchall()
        assert found == [(accounts, accounts * (accounts + 1) // 2)], found
        by_key = connection.execute("SELECT bid FROM pgbench_accounts WHERE aid = %s", (accounts,)).fetchall()
        assert by_key == [(1,)] * bool(accounts), by_key
