"""What every scenario needs: a store, processes that use it, and the verdict in the end.

    place = Place(...)                  where the store is: a SQLite file, or a schema in a server
    with Fleet(place, seed) as fleet:   its processes; none outlives it
        fleet.start("p0") ... fleet.kill("p0")
    fleet.verdict()                     stops nothing, reads all logs and the whole history

Walk: the scenarios (`crashes`, `cuts`, `clocks`, `inputs`, `beats`) use this; this uses
`worker` (as processes) and `checker`.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import apsw

from tenure.base.env import SystemEnv
from tenure.kv.store import Store
from tests import postgres_server
from tests.faults import names
from tests.faults.checker import SETUP, Entry, Verdict, check
from tests.faults.log import Event, read_logs
from tests.faults.worker import open_store

ROOT = Path(__file__).resolve().parents[2]
STOP_SECONDS_MAX = 60.0
READY_SECONDS_MAX = 60.0
HISTORY_PAGE = 5_000
LONG_SECONDS = 20.0
"""Whoever asks for less wants little work."""

ACK = b'{"e":"ack"'


@dataclass(frozen=True)
class Place:
    """A store of its own for one scenario."""

    engine: str
    address: str
    directory: Path
    """For logs and small files."""
    server: postgres_server.Server | None = None

    @property
    def path(self) -> Path:
        """The SQLite file."""
        return Path(self.address.removeprefix("sqlite:"))


@dataclass(frozen=True)
class Run:
    """What a scenario is asked for."""

    engine: str
    seconds: float
    seed: int
    server: postgres_server.Server | None
    files: Path = Path(tempfile.gettempdir())
    """Where logs, SQLite files and the like go; whoever asks removes it."""

    @property
    def is_quick(self) -> bool:
        return self.seconds < LONG_SECONDS

    @property
    def rng(self) -> random.Random:
        return random.Random(self.seed)

    def place(self, name: str) -> Place:
        directory = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.files))
        (directory / "log").mkdir()
        if self.engine == "sqlite":
            return Place("sqlite", f"sqlite:{directory}/store.db", directory)
        assert self.server is not None
        schema = f"{name}_{random.SystemRandom().randrange(1 << 32):08x}"
        return Place("postgres", f"{schema}@{dsn(self.server)}", directory, self.server)


def dsn(server: postgres_server.Server, port: int | None = None) -> str:
    """By TCP and unencrypted, so that a proxy can tell the messages apart."""
    return (
        f"host=127.0.0.1 port={port or server.port} user=postgres dbname=postgres"
        " sslmode=disable gssencmode=disable"
    )


@dataclass
class Result:
    counts: dict[str, object] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    skipped: str = ""

    def require(self, holds: bool, why: str) -> None:
        if not holds:
            self.violations.append(why)

    @contextmanager
    def naming(self, name: str) -> Iterator[None]:
        """What goes wrong inside says under which blow, of which a line tells; others fall all the same."""
        before, began = len(self.violations), time.monotonic()
        try:
            yield
        except Exception:
            self.violations.append(traceback.format_exc())
        self.violations[before:] = [f"{name}: {wrong}" for wrong in self.violations[before:]]
        word = "VIOLATION" if self.violations[before:] else "ok"
        print(f"    {name:40} {time.monotonic() - began:5.1f} s  {word}", file=sys.stderr, flush=True)


def merged(*results: Result) -> Result:
    """One result of several, none of them skipped."""
    whole = Result()
    for result in results:
        whole.counts |= result.counts
        whole.violations += result.violations
    return whole


class Fleet:
    """The processes of a scenario."""

    def __init__(self, place: Place, seed: int) -> None:
        self.place = place
        self.logs = place.directory / "log"
        self._seed = seed
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._incarnations: dict[str, int] = {}
        self._troubles: list[str] = []
        self._set_up()

    def _set_up(self) -> None:
        _open_accounts(self.place)

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

    def start(self, name: str, *, threads: int = 4, address: str = "", more: tuple[str, ...] = ()) -> None:
        self._launch("tests.faults.worker", name, address, ("--threads", str(threads), *more))

    def _launch(self, program: str, name: str, address: str, more: tuple[str, ...]) -> None:
        incarnation = self._incarnations[name] = self._incarnations.get(name, -1) + 1
        command = [sys.executable, "-m", program, "--store", address or self.place.address]
        command += ["--log", str(self.logs), "--name", f"{name}.{incarnation}", "--seed", str(self._seed)]
        command += more
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        errors = (self.place.directory / "errors").open("ab")
        with errors:
            self._processes[name] = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors
            )

    def await_ready(self, *, seconds: float = READY_SECONDS_MAX) -> None:
        """Waits until each process has opened the store; fails if one cannot."""
        wanted = {f"{name}.{number}" for name, number in self._incarnations.items()}
        wait_for(lambda: self._ready() >= wanted or not self._all_run(), seconds)
        missing = sorted(wanted - self._ready())
        errors = (self.place.directory / "errors").read_text()[-2000:]
        assert not missing, f"{missing} did not open the store: {errors}"

    def _ready(self) -> set[str]:
        return {path.stem for path in self.logs.glob("*.jsonl") if path.stat().st_size > 0}

    def _all_run(self) -> bool:
        return all(process.poll() is None for process in self._processes.values())

    def signal(self, name: str, number: signal.Signals) -> None:
        self._processes[name].send_signal(number)

    def kill(self, name: str) -> None:
        self._processes[name].kill()
        self._processes[name].wait()

    def is_running(self, name: str) -> bool:
        return self._processes[name].poll() is None

    def stop(self) -> None:
        """Ends all processes in order; one that cannot end, or ended by itself, is a violation."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                self._troubles.append(f"process: {name} ended by itself with {process.returncode}")
            process.terminate()
        give_up = time.monotonic() + STOP_SECONDS_MAX
        for name, process in self._processes.items():
            try:
                process.wait(max(0.1, give_up - time.monotonic()))
            except subprocess.TimeoutExpired:
                self._troubles.append(f"process: {name} does not end")
                process.kill()
                process.wait()

    def lengths(self) -> dict[Path, int]:
        """How long each log is now; see `count`."""
        return {path: path.stat().st_size for path in self.logs.glob("*.jsonl")}

    def count(self, mark: bytes, since: dict[Path, int], name: str = "") -> int:
        """How often something was logged since then, by one process or by all."""
        counted = 0
        for path in self.logs.glob(f"{name}*.jsonl"):
            with path.open("rb") as log:
                log.seek(since.get(path, 0))
                counted += log.read().count(mark)
        return counted

    def events(self) -> list[tuple[str, list[Event]]]:
        return read_logs(self.logs)

    def verdict(self, result: Result) -> Verdict:
        """Compares the logs with the store, and puts the outcome into the result."""
        verdict = check(self.events(), whole_history(self.place.address))
        if self.place.engine == "sqlite":
            self._troubles += integrity(self.place.path)
        result.violations += [*self._troubles, *verdict.violations]
        if self._troubles:
            result.violations.append((self.place.directory / "errors").read_text()[-2000:])
        counts = verdict.counts
        result.counts |= {
            "acked": counts["ack"],
            "failed": counts["failed"],
            "unknown": f"{counts['settled as landed']} landed + {counts['settled as not landed']} not",
            "reads": counts["read"],
        }
        return verdict


def whole_history(address: str) -> Iterator[Entry]:
    """Every revision there is; and proves that the newest ones are what a scan shows."""
    store = open_store(address, SystemEnv())
    try:
        newest: dict[bytes, bytes | None] = {}
        span, since_at = store.keyspace.all(), 0
        until_at = store.engine.clock_at()
        while since_at < until_at:
            interval = store.history(span, since_at=since_at, until_at=until_at, limit=HISTORY_PAGE)
            for key, at, value in interval.revisions:
                newest[key] = value
                yield Entry(names.name_of(key), at, None if value is None else value.decode())
            since_at = interval.through_at
        shown = dict(store.snapshot(until_at).scan(span))
        assert shown == {key: value for key, value in newest.items() if value is not None}
    finally:
        _close(store)


def integrity(path: Path) -> list[str]:
    connection = apsw.Connection(str(path))
    try:
        answer = connection.pragma("integrity_check")
    finally:
        connection.close()
    return [] if answer == "ok" else [f"integrity_check: {answer}"]


def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def _open_accounts(place: Place) -> None:
    store = open_store(place.address, SystemEnv())
    try:
        txn = store.begin()
        for name in names.ACCOUNTS:
            value = names.value_of(str(names.BALANCE), SETUP)
            txn.put(names.key_of(store.keyspace, name), value.encode())
        txn.commit()
    finally:
        _close(store)


def _close(store: Store) -> None:
    store.close()
    store.engine.close()
