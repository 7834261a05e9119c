"""A node in a process of its own, so that what it takes can be measured; and a neighbour who works beside.

with running(tmp_path) as node, node.neighbour() as neighbour:
    node.ask("SELECT ...")      the SQLSTATE of an error, or None
    neighbour.answered()        its point reads went on, and the node's session was extended
    node.resident_bytes()
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg

SOURCE = Path(__file__).resolve().parents[2] / "src"
MIB = 1 << 20
ENDS_WITHIN_SECONDS = 30


class NodeProcess:
    def __init__(self, process: "subprocess.Popen[str]", ready_line: str, log: Path) -> None:
        self.process = process
        self.ready_line = ready_line
        self.host, port = ready_line.split()[1].removeprefix("sql=").split(":")
        self.port = int(port)
        self.log = log

    @property
    def dsn(self) -> str:
        return f"host={self.host} port={self.port} user=root dbname=defaultdb"

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.dsn, autocommit=True)

    def ask(self, text: str, *, seconds: float = 5.0) -> str | None:
        """The SQLSTATE of what went wrong; None if all went well."""
        with self.connect() as client:
            client.execute(f"SET statement_timeout = '{seconds}s'")
            try:
                client.execute(text)
            except psycopg.Error as error:
                if client.closed:
                    raise
                return error.sqlstate
        return None

    def resident_bytes(self, field: str = "VmRSS") -> int:
        """VmHWM is the most it ever had."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024
        raise AssertionError("the node is gone")

    def forget_peak(self) -> None:
        """What VmHWM says counts from here on."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    @contextmanager
    def neighbour(self) -> Iterator["Neighbour"]:
        neighbour = Neighbour(self)
        thread = threading.Thread(target=neighbour.work)
        thread.start()
        try:
            yield neighbour
        finally:
            neighbour.is_over.set()
            thread.join()
        assert neighbour.error is None, neighbour.error


class Neighbour:
    """Reads one row by its key, again and again."""

    def __init__(self, node: NodeProcess) -> None:
        self.is_over = threading.Event()
        self.error: Exception | None = None
        self.slowest_seconds = 0.0
        self.answers = 0
        self._client = node.connect()
        self._client.execute("CREATE TABLE IF NOT EXISTS neighbours (id int PRIMARY KEY, name text)")
        self._client.execute("INSERT INTO neighbours VALUES (1, 'ann') ON CONFLICT DO NOTHING")

    def work(self) -> None:
        try:
            while not self.is_over.wait(0.01):
                start = time.monotonic()
                row = self._client.execute("SELECT name FROM neighbours WHERE id = 1").fetchone()
                assert row == ("ann",)
                self.answers += 1
                self.slowest_seconds = max(self.slowest_seconds, time.monotonic() - start)
        except Exception as error:
            self.error = error
        finally:
            self._client.close()


@contextmanager
def running(
    folder: Path, *options: str, environment: Mapping[str, str] | None = None
) -> Iterator[NodeProcess]:
    log = folder / "log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "tenure.cli", "start", "--sql", "127.0.0.1:0", *options],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(SOURCE), **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, log.read_text()
        yield NodeProcess(process, line, log)
        process.terminate()
        assert process.wait(ENDS_WITHIN_SECONDS) == 0, log.read_text()[-2000:]
        assert "Traceback" not in log.read_text()
    finally:
        process.kill()
        process.communicate()
