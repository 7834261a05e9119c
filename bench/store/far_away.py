"""Updates on a store that is 50 ms away: 64 clients, each on a row of its own, through a node.

The peer is the limit: one round trip per update, so 20 updates/s of each client. Ours reads, proves what it
has read and commits, each in round trips of its own; how many that are is what the ratio tells.

Walk: `bench.__main__` -> `run`; `tests.faults.distance` delays what goes to PostgreSQL and back.
"""

import tempfile
import time
from pathlib import Path
from threading import Thread
from typing import Any

import psycopg

from bench.ratio import Bar, Ratio, compare
from bench.store.places import postgres
from tests.faults.distance import far_from
from tests.unit.sql.served import serving

CLIENTS = 64
ROUND_TRIP_SECONDS = 0.05
CONNECTIONS = 80
"""So that no update waits for a connection."""


def run(quick: bool) -> list[Ratio]:
    seconds = 1.0 if quick else 10.0
    with (
        postgres() as server,
        tempfile.TemporaryDirectory() as directory,
        far_from(server.port, round_trip_seconds=ROUND_TRIP_SECONDS) as port,
        serving(Path(directory), store=_address(port)) as served,
    ):
        served.tag("CREATE TABLE t (id int PRIMARY KEY, v int)")
        served.tag(f"INSERT INTO t SELECT n, 0 FROM generate_series(0, {CLIENTS - 1}) AS n")
        clients = [served.connect() for _ in range(CLIENTS)]
        _update(clients, 0.0)  # connections and plans are made
        rate = _update(clients, seconds) / seconds
        for client in clients:
            client.close()
    peer = CLIENTS / ROUND_TRIP_SECONDS
    return [compare("far_away.updates", ours=rate, peer=peer, unit="updates/s", bar=Bar.NONE)]


def _address(port: int) -> str:
    return f"postgresql://postgres@127.0.0.1:{port}/postgres?connections={CONNECTIONS}"


def _update(clients: "list[psycopg.Connection[Any]]", seconds: float) -> int:
    """How many updates they make together, each at least one."""
    done = [0] * len(clients)
    until = time.monotonic() + seconds

    def work(number: int) -> None:
        while not done[number] or time.monotonic() < until:
            clients[number].execute("UPDATE t SET v = v + 1 WHERE id = %s", [number])
            done[number] += 1

    threads = [Thread(target=work, args=[number]) for number in range(len(clients))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done)
