"""Nodes that serve SQL, as processes of their own over one store, to be killed, stopped and drained.

    with SqlNodes(run, "sql_bank") as nodes:
        nodes.start("n0", "n1")
        with nodes.connect("n1") as client: ...
        nodes.kill("n0"); nodes.start("n0")

A node that is started again serves the same port as before.

Walk: the scenarios `sql_*` use this; it runs `tenure start`.
"""

import os
import random
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

from tenure.base.env import SystemEnv
from tenure.base.settings import DEFINITIONS, Settings
from tenure.cluster.settings import ClusterSettings
from tenure.kv.store import Store
from tenure.storage.addresses import open_engine
from tests.faults.harness import ROOT, Result, Run

TTL_SECONDS = 2.0
HEARTBEAT_SECONDS = 0.4
"""A fifth of the ttl: a machine that is busy with other things may miss a few."""

SETTINGS = {
    "liveness.ttl": f"{TTL_SECONDS}s",
    "liveness.heartbeat": f"{HEARTBEAT_SECONDS}s",
    "jobs.adopt_interval": "1s",
}

EXIT_SECONDS_MAX = 40.0
CONNECT_SECONDS = 20
TROUBLE_MARKS = ("Traceback", "AssertionError", "was never retrieved")


class SqlNodes:
    def __init__(self, run: Run, name: str, *, more: tuple[str, ...] = ()) -> None:
        self.engine, self.server = run.engine, run.server
        self.rng = random.Random(run.seed)
        self.directory = run.files / f"{name}-{run.seed}"
        self.directory.mkdir(parents=True)
        self._more = more
        self.store = self._make_store(name)
        set_up(self.store)
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self.ports: dict[str, int] = {}
        self.violations: list[str] = []

    def _make_store(self, name: str) -> str:
        if self.engine == "sqlite":
            return f"sqlite:{self.directory}/store.db"
        assert self.server is not None
        database = f"{name}_{random.SystemRandom().randrange(1 << 32):08x}"
        with psycopg.connect(self.server.dsn, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {database}".encode())
        return f"postgresql://postgres@127.0.0.1:{self.server.port}/{database}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()

    def start(self, *names: str) -> None:
        """Starts nodes, all at once, and waits until each is ready."""
        for name in names:
            self.launch(name)
        for name in names:
            self.await_ready(name)

    def launch(self, name: str) -> None:
        at = f"127.0.0.1:{self.ports.setdefault(name, _free_port())}"
        command = [sys.executable, "-m", "tenure.cli", "start", "--insecure", "--store", self.store]
        command += ["--sql", at, *self._more]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        former = self._processes.get(name)
        if former is not None and former.stdout is not None:
            former.stdout.close()
        with self.log(name).open("ab") as errors:
            self._processes[name] = subprocess.Popen(
                command,
                env=environment,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def await_ready(self, name: str) -> None:
        process = self._processes[name]
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("ready"), f"{name} cannot start: {self.log(name).read_text()[-2000:]}"

    def log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def process(self, name: str) -> "subprocess.Popen[str]":
        return self._processes[name]

    def signal(self, name: str, number: signal.Signals) -> None:
        self._processes[name].send_signal(number)

    def kill(self, name: str) -> None:
        self._processes[name].kill()
        self._processes[name].wait()

    def exit_of(self, name: str, within_seconds: float = EXIT_SECONDS_MAX) -> int | None:
        """What a node that was told to end exits with; None if it does not."""
        try:
            return self._processes[name].wait(within_seconds)
        except subprocess.TimeoutExpired:
            return None

    def dsn(self, name: str) -> str:
        return (
            f"host=127.0.0.1 port={self.ports[name]} user=root dbname=defaultdb sslmode=disable"
            f" gssencmode=disable connect_timeout={CONNECT_SECONDS}"
        )

    def connect(self, name: str = "", **options: Any) -> "psycopg.Connection[tuple[Any, ...]]":
        """A client, in autocommit mode; of any node if none is named."""
        name = name or self.rng.choice(list(self.ports))
        return psycopg.connect(self.dsn(name), autocommit=True, **options)

    def execute(self, name: str, *statements: str) -> list[tuple[Any, ...]]:
        """The rows of the last one."""
        with self.connect(name) as client:
            for statement in statements:
                cursor = client.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []

    def stop(self, result: Result) -> None:
        """Drains them all; one that does not exit with 0 is a violation, and so is a crash in a log."""
        for process in self._processes.values():
            process.terminate()
        for name in self._processes:
            code = self.exit_of(name)
            result.require(code == 0, f"{name} exited with {code}: {self.log(name).read_text()[-1500:]}")
        for name in self._processes:
            result.violations += self.crashes(name)
        result.violations += self.violations

    def crashes(self, name: str) -> list[str]:
        text = self.log(name).read_text()
        found = [mark for mark in TROUBLE_MARKS if mark in text]
        return [f"{name}'s log: {text[max(0, text.index(mark) - 300) :][:2500]}" for mark in found[:1]]


def cut(connection: "psycopg.Connection[tuple[Any, ...]]") -> bool:
    """Ends a client's connection under its hands."""
    if connection.closed:
        return False
    try:
        with socket.socket(fileno=os.dup(connection.fileno())) as twin:
            twin.shutdown(socket.SHUT_RDWR)
    except (OSError, psycopg.Error):
        return False
    return True


def set_up(address: str) -> None:
    """Nodes are declared dead after TTL_SECONDS. Set before there are any: a session that was made for a
    longer time lasts that long if its node dies before the next heartbeat."""
    env = SystemEnv()
    with closing(open_engine(address, env)) as engine, closing(Store(engine, env)) as store:
        settings = ClusterSettings(store, Settings(DEFINITIONS))
        for name, text in SETTINGS.items():
            store.transact(lambda txn, name=name, text=text: settings.set(txn, name, text))  # type: ignore[misc]
        settings.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
