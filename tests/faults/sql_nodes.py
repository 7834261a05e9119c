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
import socket
from contextlib import closing
from typing import Any

import psycopg

from tenure.base.env import SystemEnv
from tenure.base.settings import DEFINITIONS, Settings
from tenure.cluster.settings import ClusterSettings
from tenure.kv.store import Store
from tenure.storage.addresses import open_engine
from tests.faults.harness import Result, Run
from tests.faults.job_fleet import own_place, remove
from tests.faults.processes import Processes

TTL_SECONDS = 2.0
HEARTBEATS = 5
"""Within a ttl: a machine that is busy with other things may miss a few."""

CONNECT_SECONDS = 20
TROUBLE_MARKS = ("Traceback", "AssertionError", "was never retrieved")


class SqlNodes(Processes):
    def __init__(
        self, run: Run, name: str, *, more: tuple[str, ...] = (), has_passwords: bool = False
    ) -> None:
        self._place = own_place(run, name)
        super().__init__(self._place.directory)
        self.engine, self.server = run.engine, run.server
        self.rng = random.Random(run.seed)
        self._more = more if has_passwords else ("--insecure", *more)
        self.store = self._place.address
        self.lake = self._place.directory / "lake"
        """A store in PostgreSQL has none beside it."""
        set_up(self.store)
        self.ports: dict[str, int] = {}
        self.instances: dict[str, int] = {}
        """The instance ids of those that were started."""
        self.violations: list[str] = []

    def close(self, *, grace_seconds: float = 0.0) -> None:
        super().close(grace_seconds=grace_seconds)
        remove(self._place)

    def start(self, *names: str) -> None:
        """Starts nodes, all at once, and waits until each is ready."""
        for name in names:
            self.launch(name)
        for name in names:
            said = dict(field.partition("=")[::2] for field in self.await_ready(name).split())
            self.instances[name] = int(said["instance"])

    def launch(self, name: str) -> None:
        at = f"127.0.0.1:{self.ports.setdefault(name, _free_port())}"
        options = ("--store", self.store, "--lake", str(self.lake), "--sql", at, *self._more)
        self.spawn(name, "tenure.cli", "start", *options)

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


def set_up(address: str, *, ttl_seconds: float = TTL_SECONDS) -> None:
    """Nodes are declared dead after that. Set before there are any: a session that was made for a
    longer time lasts that long if its node dies before the next heartbeat."""
    values = {
        "liveness.ttl": f"{ttl_seconds}s",
        "liveness.heartbeat": f"{ttl_seconds / HEARTBEATS}s",
        "jobs.adopt_interval": "1s",
    }
    env = SystemEnv()
    with closing(open_engine(address, env)) as engine, closing(Store(engine, env)) as store:
        settings = ClusterSettings(store, Settings(DEFINITIONS))
        for name, text in values.items():
            store.transact(lambda txn, name=name, text=text: settings.set(txn, name, text))  # type: ignore[misc]
        settings.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
