"""What the door alone costs: prepared queries with a canned answer, driven by pgbench.

The session behind it does nothing, so what is left is the protocol and asyncio. The bare loop knows no
protocol: it answers each message's first byte with fixed bytes, and shows what asyncio and the
kernel cost without us. CPU is that of the server's process, whatever pgbench takes.

Walk: `bench.__main__` calls `run`; it starts `bench.sql.canned_server` and pgbench.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from bench.ratio import Bar, Ratio, compare
from tests.postgres_server import BIN

SCRIPT = "\\set aid random(1, 100000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
CLIENTS = 8
SECONDS, QUICK_SECONDS = 8, 1
PROMISED_MICROS = 25.0
_RATE = re.compile(r"^tps = ([\d.]+)", re.MULTILINE)
_COUNT = re.compile(r"transactions actually processed: (\d+)")
_FAILED = re.compile(r"number of failed transactions: (\d+)")


class Measured(NamedTuple):
    per_second: float
    cpu_micros: float


def run(quick: bool) -> list[Ratio]:
    seconds = QUICK_SECONDS if quick else SECONDS
    bare, real = measure("bare", seconds), measure("real", seconds)
    return [
        compare(
            "the door's CPU per prepared query",
            ours=real.cpu_micros,
            peer=PROMISED_MICROS,
            unit="us",
            bar=Bar.AT_MOST,
            limit=1.0,
        ),
        compare(
            "prepared queries through the door, to a bare loop",
            ours=real.per_second,
            peer=bare.per_second,
            unit="1/s",
            bar=Bar.NONE,
        ),
        compare(
            "CPU per prepared query, to a bare loop",
            ours=real.cpu_micros,
            peer=bare.cpu_micros,
            unit="us",
            bar=Bar.NONE,
        ),
    ]


def measure(kind: str, seconds: int) -> Measured:
    server = subprocess.Popen(
        [sys.executable, "-m", "bench.sql.canned_server", kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    port = int(server.stdout.readline())
    before = _cpu_seconds(server.pid)
    said = _pgbench(port, seconds)
    cpu_seconds = _cpu_seconds(server.pid) - before
    server.communicate()
    queries = _found(_COUNT, said)
    assert queries > 0 and _found(_FAILED, said) == 0, said
    return Measured(_found(_RATE, said), cpu_seconds / queries * 1e6)


def _pgbench(port: int, seconds: int) -> str:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "select.sql"
        script.write_text(SCRIPT, encoding="utf-8")
        options = ["-n", "-M", "prepared", "-c", str(CLIENTS), "-T", str(seconds), "-f", str(script)]
        where = ["-h", "127.0.0.1", "-p", str(port), "-U", "root", "bench"]
        env = {**os.environ, "PGSSLMODE": "disable", "PGGSSENCMODE": "disable"}
        return subprocess.run(
            [BIN / "pgbench", *options, *where], env=env, capture_output=True, text=True, check=True
        ).stdout


def _found(pattern: re.Pattern[str], said: str) -> float:
    found = pattern.search(said)
    assert found is not None, said
    return float(found[1])


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    for each in run(quick="--quick" in sys.argv):
        print(each)
