"""One process under test: threads of random transactions against one store, until SIGTERM.

    python -m tests.faults.worker --store sqlite:PATH --log DIRECTORY --name p0.1 --seed 7 ...

Its wall clock can be wrong: `--offset-file` names a file with milliseconds, read again and again;
the store's own clock (for SQLite that of the host) stays right. A store that is away at the start
is waited for, as the supervisor of a node would do.

Walk: `harness` starts it; it runs `workload.Client`s, a heartbeat and SQLite's checkpointer.
"""

import argparse
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tenure.base.env import SystemEnv
from tenure.base.errors import OutcomeUnknown, TenureError, Unavailable
from tenure.kv.store import Store
from tenure.storage.postgres.postgres_engine import PostgresEngine
from tenure.storage.sqlite.sqlite_engine import SqliteEngine
from tests.faults.log import Log, read_log
from tests.faults.workload import PENDING_MAX, Attempt, Client

OFFSET_SECONDS = 0.02
"""How often the file with the clock's offset is read."""
CHECKPOINT_SECONDS = 0.2
OPEN_SECONDS_MAX = 60.0
JOIN_SECONDS_MAX = 40.0
PREDECESSORS = 3


class SkewedEnv(SystemEnv):
    """The machine's clock, wrong by what a file says."""

    def __init__(self, offset_file: Path | None) -> None:
        super().__init__()
        self._offset_file = offset_file
        self._read_again = 0.0
        self.offset_ms = 0.0

    def wall_micros(self) -> int:
        if self._offset_file is not None and time.monotonic() >= self._read_again:
            self._read_again = time.monotonic() + OFFSET_SECONDS
            self.offset_ms = float(self._offset_file.read_text() or self.offset_ms)
        return true_micros() + round(self.offset_ms * 1000)


def true_micros() -> int:
    return time.time_ns() // 1000


def open_engine(address: str, env: SystemEnv) -> SqliteEngine | PostgresEngine:
    """`sqlite:PATH`, or `SCHEMA@CONNECTION STRING`."""
    if address.startswith("sqlite:"):
        return SqliteEngine(address.removeprefix("sqlite:"), env, host_micros=true_micros)
    schema, _, dsn = address.partition("@")
    return PostgresEngine(dsn, env, schema=schema)


def open_store(address: str, env: SystemEnv) -> Store:
    """Opens the store; one that is away is waited for."""
    give_up = time.monotonic() + OPEN_SECONDS_MAX
    while True:
        try:
            return Store(open_engine(address, env), env)
        except (Unavailable, OutcomeUnknown):
            if time.monotonic() > give_up:
                raise
            time.sleep(0.1)


class Worker:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._stopping = threading.Event()
        self._env = SkewedEnv(arguments.offset_file)
        self._log = Log(arguments.log / f"{arguments.name}.jsonl", offset_ms=lambda: self._env.offset_ms)
        signal.signal(signal.SIGTERM, lambda *_: self._stopping.set())

    def run(self) -> None:
        store = open_store(self._arguments.store, self._env)
        self._log.write("start")
        runs: list[Callable[[], None]] = [
            partial(self._client, store, thread) for thread in range(self._arguments.threads)
        ]
        if self._arguments.beats:
            runs.append(partial(self._beat, store))
        if isinstance(store.engine, SqliteEngine):
            runs.append(partial(self._checkpoint, store.engine))
        threads = [threading.Thread(target=run, daemon=True) for run in runs]
        go = self._arguments.go
        while go is not None and not go.exists() and not self._stopping.wait(0.01):
            pass
        for thread in threads:
            thread.start()
        self._stopping.wait()
        give_up = time.monotonic() + JOIN_SECONDS_MAX
        for thread in (thread for thread in threads if thread.ident is not None):
            thread.join(max(0.1, give_up - time.monotonic()))
        stuck = sum(thread.is_alive() for thread in threads)
        self._log.write("end", stuck=stuck)
        if stuck == 0:
            _close(store)

    def _client(self, store: Store, thread: int) -> None:
        arguments = self._arguments
        client = Client(
            store,
            self._log,
            f"{arguments.name}.{thread}",
            random.Random(f"{arguments.seed}.{arguments.name}.{thread}"),
            pad_bytes=arguments.pad_bytes,
            unfinished=_unfinished(arguments.log, arguments.name, thread),
        )
        while not self._stopping.is_set():
            try:
                client.step()
            except Exception as error:
                self._log.write("claim", why=f"{type(error).__name__}: {error}")
                raise

    def _beat(self, store: Store) -> None:
        number = 0
        name = f"{self._arguments.name}.beat"
        while not self._stopping.wait(0.02):
            number += 1
            began = time.monotonic_ns()
            try:
                attempt = Attempt(store, self._log, f"{name}.{number}", urgent=True)
                attempt.put(f"h:{name}", "")
                if attempt.commit():
                    self._log.write("beat", ns=time.monotonic_ns() - began)
            except TenureError as error:
                self._log.write("trouble", state=error.sqlstate, why=str(error))

    def _checkpoint(self, engine: SqliteEngine) -> None:
        while not self._stopping.wait(CHECKPOINT_SECONDS):
            try:
                engine.checkpoint()
            except TenureError as error:
                self._log.write("checkpoint", state=error.sqlstate, why=str(error))


def _unfinished(directory: Path, name: str, thread: int) -> list[str]:
    """Operations that the same thread of the last killed predecessors did not see through."""
    process, _, incarnation = name.partition(".")
    wanted: dict[str, None] = {}
    for number in range(max(0, int(incarnation) - PREDECESSORS), int(incarnation)):
        path = directory / f"{process}.{number}.jsonl"
        ops: dict[str, str] = {}
        for event in read_log(path) if path.exists() else ():
            if event["e"] == "intent" and event["op"] and event["id"].split(".")[2] == str(thread):
                ops[event["id"]] = event["op"]
                wanted[event["op"]] = None
            elif event["e"] == "ack" and event["id"] in ops:
                wanted.pop(ops[event["id"]], None)
    return list(wanted)[-PENDING_MAX:]


def _close(store: Store) -> None:
    try:
        store.close()
        store.engine.close()
    except TenureError as error:
        print(f"closing the store: {error}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--name", required=True, help="process.incarnation, such as p0.3")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--offset-file", type=Path)
    parser.add_argument("--pad-bytes", type=int, default=0)
    parser.add_argument("--go", type=Path, help="a file that must exist before the load begins")
    parser.add_argument("--beats", action="store_true")
    Worker(parser.parse_args()).run()


if __name__ == "__main__":
    main()
