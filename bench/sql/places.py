"""Where SQL is measured: a node of ours as a process, a PostgreSQL, and the two behind one set of calls.

Both are reached by TCP on loopback. What each makes durable is the same: PostgreSQL with its own defaults
(`fsync`, `synchronous_commit`), ours on SQLite with `synchronous=FULL`.

Walk: the modules of `bench.sql` open a `Place` here, and drive it by psycopg or `bench.sql.driver`.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from bench.store.places import postgres, store_path

READY_SECONDS = 60
STOP_SECONDS = 60


class Place(NamedTuple):
    """Where a client connects; `pids` are the processes of ours that serve it."""

    port: int
    user: str
    database: str
    pids: tuple[int, ...] = ()
    start_seconds: float = 0.0

    @property
    def dsn(self) -> str:
        return f"host=127.0.0.1 port={self.port} user={self.user} dbname={self.database} sslmode=disable"

    def connect(self) -> "psycopg.Connection[tuple[Any, ...]]":
        return psycopg.connect(self.dsn, autocommit=True)


@contextmanager
def peer() -> Iterator[Place]:
    with postgres() as server:
        yield Place(server.port, "postgres", "postgres")


@contextmanager
def ours(processes: int = 1) -> Iterator[Place]:
    """A node over a store of its own, which is gone afterwards."""
    with store_path() as path, node(path, processes=processes) as place:
        yield place


@contextmanager
def node(path: str, *, processes: int = 1) -> Iterator[Place]:
    """`tenure start`, from the call to its ready line and to its end."""
    command = [sys.executable, "-m", "tenure.cli", "start", "--store", f"sqlite:{path}"]
    command += ["--sql", "127.0.0.1:0", "--insecure", "--processes", str(processes)]
    with tempfile.TemporaryFile("w+") as log:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            seconds = time.perf_counter() - began
            log.seek(0)
            assert line.startswith("ready "), log.read()
            port = int(line.split()[1].rpartition(":")[2])
            pids = (process.pid,) if processes == 1 else _children(process.pid)
            yield Place(port, "root", "defaultdb", pids, seconds)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(STOP_SECONDS)


def _children(pid: int) -> tuple[int, ...]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    return tuple(int(each) for each in found)


class Memory(NamedTuple):
    """Megabytes (of 2^20 bytes) resident: now, and at most since the last `forget_peak`."""

    now: float
    peak: float


def memory(pid: int) -> Memory:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    found = {
        name: value.split()[0] for name, _, value in (line.partition(":") for line in lines) if value.split()
    }
    return Memory(int(found["VmRSS"]) / 1024, int(found["VmHWM"]) / 1024)


def forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="utf-8")


def cpu_seconds(pids: tuple[int, ...]) -> float:
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
