"""A standalone Spark cluster on this machine: a master and two workers, each under an address of its own.

Spark starts a twin of a slow task only on another host; any 127.x address is one, as far as it can tell.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from pyspark.find_spark_home import _find_spark_home

from tenure.pipeline.spark import JAVA_OPTIONS
from tests.pipeline.waiting import await_true, children_of

HOSTS = ("127.0.0.2", "127.0.0.3")
WORKER_MEGABYTES = 512
START_SECONDS, STOP_SECONDS = 180.0, 10.0


class Standalone:
    """Has room for so many drivers at once, each of which takes a core of either worker."""

    def __init__(self, directory: Path, *, drivers: int = 1) -> None:
        self._directory = directory
        self._drivers = drivers
        self._port = _free_port()
        self.master = f"spark://127.0.0.1:{self._port}"
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self._start("master.Master", "--host", "127.0.0.1", "--port", str(self._port), "--webui-port", "0")
        for host in HOSTS:
            self._start(
                *("worker.Worker", "--host", host, "--cores", str(self._drivers)),
                *("--memory", f"{self._drivers * WORKER_MEGABYTES}m"),
                *("--webui-port", "0", "--work-dir", str(self._directory / host), self.master),
            )
        try:
            await_true(lambda: _is_open(self._port), seconds=START_SECONDS)
        except BaseException:
            self._stop()
            raise
        return self

    def _start(self, *command: str) -> None:
        environ = {
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS,
            "SPARK_DAEMON_MEMORY": "128m",
        }
        script = Path(_find_spark_home()) / "bin" / "spark-class"
        name, *arguments = command
        with (self._directory / "log").open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    [script, f"org.apache.spark.deploy.{name}", *arguments],
                    env=environ,
                    stdout=log,
                    stderr=log,
                )
            )

    def executors(self) -> list[int]:
        """Their processes, each of which a worker has started."""
        return [pid for worker in self._processes[1:] for pid in children_of(worker.pid)]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
