"""Where bulk work is measured: a node and a worker with Spark, over a store and a lake of their own.

The worker is started by hand and not by the node, so that its start can be timed and its processes are known:
itself, Java below it, and below that the Python workers which do the tasks.

Walk: `bench.bulk.importing` and `bench.bulk.worker` open a `Crew` here.
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
from typing import IO, NamedTuple

from bench.sql.places import Place, memory

STOP_SECONDS = 60


class Crew(NamedTuple):
    """A node and its worker."""

    sql: Place
    worker: int
    """Its process."""
    worker_seconds: float
    """From its start to its ready line."""

    def task_megabytes(self) -> float:
        """The most that one of the Python workers ever held. Those not busy for a minute are gone."""
        workers = [pid for pid in descendants(self.worker) if "pyspark.daemon" in _command_line(pid)]
        return max((memory(pid).peak for pid in workers), default=0.0)

    def cpu_seconds(self) -> float:
        """Of the node, the worker and all below them, those that have ended among them."""
        pids = [*self.sql.pids, self.worker, *descendants(self.worker)]
        return sum(map(_cpu_seconds, pids))


@contextmanager
def crew(files: Path, *, executors: int) -> Iterator[Crew]:
    """`tenure start` and `tenure worker`; statements read from and write to `files`."""
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as directory:
        shared = ["--store", f"sqlite:{directory}/store.db", "--lake", f"{directory}/lake"]
        shared += ["--files", str(files), "--spark-master", f"local[{executors}]"]
        with _process(["start", "--sql", "127.0.0.1:0", "--insecure", *shared]) as node:
            port = int(node.ready.split()[1].rpartition(":")[2])
            with _process(["worker", *shared]) as worker:
                place = Place(port, "root", "defaultdb", (node.pid,), node.seconds)
                yield Crew(place, worker.pid, worker.seconds)


class _Process(NamedTuple):
    pid: int
    ready: str
    seconds: float


@contextmanager
def _process(arguments: list[str]) -> Iterator[_Process]:
    with tempfile.TemporaryFile("w+") as log:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "tenure.cli", *arguments], stdout=subprocess.PIPE, stderr=log, text=True
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            seconds = time.perf_counter() - began
            assert line.startswith("ready "), _read(log)
            yield _Process(process.pid, line, seconds)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(STOP_SECONDS)


def _read(log: IO[str]) -> str:
    log.seek(0)
    return log.read()


def descendants(pid: int) -> list[int]:
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(each) for each in path.read_text(encoding="utf-8").split()]
        except OSError:  # its thread has ended
            continue
        for child in children:
            found += [child, *descendants(child)]
    return found


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")
