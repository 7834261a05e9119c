"""Clients that vanish: killed in a transaction, in a COPY, in a result, or silent for ever.

What they had begun is undone, what they had locked is free, and nothing of them is kept: no session, no
transaction, no lock, no descriptor, no memory to speak of.

Walk: `__main__` and `test_sql_smoke` call `sql_clients` with a `Run`; the clients are `sql_vanishing`.
"""

import os
import signal
import socket
import struct
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import psycopg

from tests.faults.harness import ROOT, Result, Run, wait_for
from tests.faults.sql_nodes import SqlNodes
from tests.faults.sql_vanishing import PLACES

FREE_SECONDS_MAX = 5.0
"""How soon after a client's death its locks are free: a closed socket is seen at once."""

IDLE_SECONDS = 1.5
THINGS = 60
SOCKETS = 60
GROWTH_BYTES_MAX = 100 << 20
DESCRIPTORS_MAX = 40
"""More than before: the store keeps a connection for each thread that reads at once; fewer than SOCKETS."""

Vanishing = subprocess.Popen[str]


def sql_clients(run: Run) -> Result:
    """Nobody but themselves notices when clients vanish."""
    result = Result()
    rounds, until = 0, time.monotonic() + run.seconds
    with SqlNodes(run, "sql_clients") as nodes:
        nodes.start("n0")
        nodes.execute(
            "n0",
            "CREATE TABLE things (id int PRIMARY KEY, what text)",
            f"INSERT INTO things SELECT n, 'start' FROM generate_series(0, {THINGS}) n",
        )
        _knock(nodes)
        before = _held(nodes)
        resident = 0
        while not rounds or time.monotonic() < until:
            _vanish(nodes, result, is_silent=False)
            _vanish(nodes, result, is_silent=True)
            _knock(nodes)
            rounds += 1
            resident = resident or _resident_bytes(nodes)
        _compare(nodes, before, result)
        growth = _resident_bytes(nodes) - resident
        result.require(growth < GROWTH_BYTES_MAX, f"memory: {growth >> 20} MiB more after {rounds} rounds")
        nodes.stop(result)
    result.counts |= {"rounds": rounds, "vanished": rounds * (1 + len(PLACES)), "growth MiB": growth >> 20}
    return result


def _vanish(nodes: SqlNodes, result: Result, *, is_silent: bool) -> None:
    """Clients that get everywhere and are killed there; or stopped, so that nothing is heard of them."""
    options = f" options='-c idle_in_transaction_session_timeout={IDLE_SECONDS}s'" if is_silent else ""
    places = ["transaction"] if is_silent else list(PLACES)
    with closing(nodes.connect("n0")) as blocker:
        blocker.execute("BEGIN")
        blocker.execute("SELECT * FROM things WHERE id = 0 FOR UPDATE")
        clients = [_start(nodes.dsn("n0") + options, where, n) for n, where in enumerate(places, 1)]
        try:
            for client in clients:
                assert client.stdout is not None
                assert client.stdout.readline() == "there\n"
            for client in clients:
                client.send_signal(signal.SIGSTOP if is_silent else signal.SIGKILL)
            began = time.monotonic()
            for number, where in enumerate(places, 1):
                _require_free(nodes, result, number, f"{where}{', silent' if is_silent else ''}", began)
        finally:
            for client in clients:
                client.kill()
                client.communicate()
        blocker.execute("ROLLBACK")
    with closing(nodes.connect("n0")) as reader:
        wrong = reader.execute("SELECT id, what FROM things WHERE id > 1000 OR what <> 'start'").fetchall()
    result.require(not wrong, f"rollback: what vanished clients wrote is there: {wrong[:3]}")


def _start(dsn: str, where: str, number: int) -> Vanishing:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.faults.sql_vanishing", dsn, where, str(number)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        stdout=subprocess.PIPE,
        text=True,
    )


def _require_free(nodes: SqlNodes, result: Result, number: int, where: str, began: float) -> None:
    with closing(nodes.connect("n0")) as client:

        def is_free() -> bool:
            try:
                client.execute("SELECT * FROM things WHERE id = %s FOR UPDATE NOWAIT", (number,))
            except psycopg.errors.LockNotAvailable:
                return False
            return True

        is_freed = wait_for(is_free, FREE_SECONDS_MAX + IDLE_SECONDS)
    took = time.monotonic() - began
    result.require(is_freed, f"lock: that of a client in {where} is held after {took:.1f} s")


def _knock(nodes: SqlNodes) -> None:
    """Connections that end at every point of a login: silently, halfway, with a reset."""
    port = nodes.ports["n0"]
    startup = struct.pack("!ii", 8 + 22, 196608) + b"user\0root\0database\0d\0\0"
    for n in range(SOCKETS):
        with socket.create_connection(("127.0.0.1", port), 10) as knocking:
            knocking.sendall(startup[: n % (len(startup) + 1)])
            if n % 3 == 0:
                knocking.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _held(nodes: SqlNodes) -> dict[str, int]:
    """What the node keeps for clients, seen by one of them."""
    counts = {}
    with closing(nodes.connect("n0")) as client:
        for what in ("sessions", "transactions", "locks"):
            ((count,),) = client.execute(f"SELECT count(*) FROM tenure_internal.{what}".encode()).fetchall()
            counts[what] = count
    counts["descriptors"] = len(list(Path(f"/proc/{nodes.process('n0').pid}/fd").iterdir()))
    return counts


def _compare(nodes: SqlNodes, before: dict[str, int], result: Result) -> None:
    def leaks() -> dict[str, int]:
        more = {what: count - before[what] for what, count in _held(nodes).items()}
        return {
            what: count
            for what, count in more.items()
            if count > (DESCRIPTORS_MAX if what == "descriptors" else 0)
        }

    wait_for(lambda: not leaks(), 5.0)
    result.require(not leaks(), f"leak: {leaks()} more than before")


def _resident_bytes(nodes: SqlNodes) -> int:
    pages = Path(f"/proc/{nodes.process('n0').pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
