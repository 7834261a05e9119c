"""pgbench, driven from Python: rates, and the latency of each transaction.

Rounds of ours and of the peers take turns, and the round of median rate counts: noise that lasts hits all of
them. pgbench is one process with one thread, so on two cores it has one and the server the other.

Walk: `bench.sql.point`, `.insert` and `.processes` call `measure` and `alternate`.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.sql.places import Place, cpu_seconds
from bench.store.rounds import Spread, spread
from tests.postgres_server import BIN

CLIENTS = 8
_RATE = re.compile(r"^tps = ([\d.]+)", re.MULTILINE)
_COUNT = re.compile(r"transactions actually processed: (\d+)")
_FAILED = re.compile(r"number of failed transactions: (\d+)")


class Measured(NamedTuple):
    per_second: float
    transactions: int
    cpu_micros: float
    """Of the server's processes, for one transaction; 0 for PostgreSQL, whose processes come and go."""
    millis: Spread


def measure(
    place: Place, script: str, *, seconds: float, clients: int = CLIENTS, rate: float = 0, scale: int = 1
) -> Measured:
    """Runs a script with prepared statements; raises if a transaction failed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "script.sql"
        path.write_text(script, encoding="utf-8")
        options = ["-n", "-M", "prepared", "-c", str(clients), "-T", f"{max(1, round(seconds))}"]
        options += ["-f", str(path), "-D", f"scale={scale}", "--log", f"--log-prefix={folder}/log"]
        if rate:
            options += ["-R", str(rate)]
        where = ["-h", "127.0.0.1", "-p", str(place.port), "-U", place.user, place.database]
        env = {**os.environ, "PGSSLMODE": "disable", "PGGSSENCMODE": "disable"}
        before = cpu_seconds(place.pids)
        done = subprocess.run(
            [BIN / "pgbench", *options, *where], env=env, capture_output=True, text=True, check=False
        )
        used = cpu_seconds(place.pids) - before
        assert done.returncode == 0, done.stdout + done.stderr
        count, failed = int(_found(_COUNT, done.stdout)), _found(_FAILED, done.stdout)
        assert count > 0 and not failed, done.stdout + done.stderr
        return Measured(
            _found(_RATE, done.stdout), count, used / count * 1e6, spread(_latencies(Path(folder)))
        )


def _latencies(folder: Path) -> list[float]:
    """Milliseconds; the third field of each line of the log is the latency in microseconds."""
    return [
        int(line.split(" ", 3)[2]) / 1000
        for path in folder.glob("log*")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def alternate(places: Sequence[Place], script: str, *, rounds: int, seconds: float) -> list[Measured]:
    """The round of median rate of each place; they take turns."""
    measured: list[list[Measured]] = [[] for _ in places]
    for _ in range(rounds):
        for place, of_place in zip(places, measured, strict=True):
            of_place.append(measure(place, script, seconds=seconds))
    return [sorted(each, key=lambda found: found.per_second)[len(each) // 2] for each in measured]


def _found(pattern: re.Pattern[str], said: str) -> float:
    found = pattern.search(said)
    assert found is not None, said
    return float(found[1])
