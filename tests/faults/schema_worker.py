"""One node under test: a real `Node` whose threads write and read rows and change the schema.

    python -m tests.faults.schema_worker --store sqlite:PATH --log DIRECTORY --name p0.1 --tables 102,103 ...

Logged besides what `schema_work` says: start, session (under which session it lives), stopping,
holding (a transaction is open that stays so) and trouble. Files beside the logs are commands: "quiet"
ends the load, "hold-p0" opens a transaction on the first table, "commit-p0" has it commit.

Failpoints: --ignore-end makes it deaf to the request to end its transactions, --deaf to all
notifications of the store.

Walk: `schema_fleet` starts it; it builds `tenure.node.Node` and hands it to `schema_work`.
"""

import argparse
import logging
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tenure.base.env import SystemEnv
from tenure.base.errors import OutcomeUnknown, SessionLost, TenureError, Unavailable
from tenure.base.settings import (
    DEFINITIONS,
    LEASE_HOLDER_GRACE,
    LIVENESS_HEARTBEAT,
    LIVENESS_TTL,
    WATCH_POLL_INTERVAL,
    Settings,
)
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.catalog.leases.lease_pins import bound
from tenure.cluster.sessions.session_records import SessionId
from tenure.node import Node, NodeOptions
from tenure.storage.postgres.postgres_engine import PostgresEngine
from tenure.storage.sqlite.sqlite_engine import SqliteEngine
from tests.faults.log import Log
from tests.faults.schema_work import ChangeWork, RowWork, Work, Write

OPEN_SECONDS_MAX = 60.0
SESSION_SECONDS = 0.02
ROW_SECONDS = 0.01
IDS_PER_THREAD = 1 << 24


class SchemaWorker:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._tables = [int(each) for each in arguments.tables.split(",")]
        self._stopping = threading.Event()
        self._log = Log(arguments.log / f"{arguments.name}.jsonl")
        self._commands = arguments.log.parent
        signal.signal(signal.SIGTERM, lambda *_: self._stopping.set())

    def run(self) -> None:
        self._node = self._open()
        if self._arguments.ignore_end:
            self._node.leases.end = lambda use, reason: False  # type: ignore[method-assign]
        loops = [partial(self._repeat, SESSION_SECONDS, self._look_at_session(), always=True)]
        loops += [
            partial(self._repeat, ROW_SECONDS, self._rows(n).step) for n in range(self._arguments.threads)
        ]
        if self._arguments.ddl_seconds:
            loops.append(partial(self._repeat, self._arguments.ddl_seconds, self._changes().step))
        if self._arguments.holds:
            loops.append(partial(self._repeat, SESSION_SECONDS, self._hold, always=True))
        threads = [threading.Thread(target=loop, daemon=True) for loop in loops]
        for thread in threads:
            thread.start()
        self._stopping.wait()
        for thread in threads:
            thread.join()
        self._log.write("stopping")
        self._node.stop()
        self._log.write("end")

    def _open(self) -> Node:
        """Starts the node; a store that is away is waited for, as a supervisor would."""
        give_up = time.monotonic() + OPEN_SECONDS_MAX
        while True:
            try:
                return Node(
                    NodeOptions(self._arguments.store, settings=settings_of(self._arguments)), SystemEnv()
                )
            except (Unavailable, OutcomeUnknown):
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.1)

    # ── the load ───────────────────────────────────────────────────────────────────────────────

    def _rows(self, number: int) -> RowWork:
        name = f"{self._arguments.name}-{number}"
        return RowWork(
            self._node,
            self._log,
            name,
            random.Random(f"{self._arguments.seed}.{name}"),
            tables=self._tables,
            first_id=self._first_id(number),
            pause_seconds=self._arguments.pause,
        )

    def _changes(self) -> ChangeWork:
        name = f"{self._arguments.name}-ddl"
        rng = random.Random(f"{self._arguments.seed}.{name}")
        first_id = self._first_id(self._arguments.threads)
        return ChangeWork(self._node, self._log, name, rng, tables=self._tables, first_id=first_id)

    def _first_id(self, thread: int) -> int:
        """Ids that no other thread of any process ever uses."""
        process, incarnation = self._arguments.name.removeprefix("p").split(".")
        number = (int(process) * 1_000 + int(incarnation)) * 10 + thread
        return number * IDS_PER_THREAD

    def _repeat(self, seconds: float, step: Callable[[], object], *, always: bool = False) -> None:
        quiet = self._commands / "quiet"
        while not self._stopping.wait(seconds):
            if quiet.exists() and not always:
                continue
            try:
                step()
            except TenureError as error:
                self._log.write("trouble", state=error.sqlstate, why=str(error))

    def _look_at_session(self) -> Callable[[], None]:
        while (known := self._session()) is None:
            time.sleep(SESSION_SECONDS)
        self._log.write("start", session=known)

        def look() -> None:
            nonlocal known
            session = self._session()
            if session not in (None, known):
                known = session
                self._log.write("session", session=known)

        return look

    def _session(self) -> SessionId | None:
        try:
            return self._node.liveness.session().id
        except SessionLost:
            return None

    # ── a long transaction ─────────────────────────────────────────────────────────────────────

    def _hold(self) -> None:
        """Opens a transaction when told to, and commits it when told to or when it was ended."""
        process = self._arguments.name.split(".")[0]
        begin, commit = self._commands / f"hold-{process}", self._commands / f"commit-{process}"
        if not begin.exists():
            return
        begin.unlink()
        work = Work(self._node, self._log, f"{self._arguments.name}-hold", random.Random())
        write = Write(self._tables[0], self._first_id(9), 0)
        op = work.next_op()
        with work.use(op) as use:
            work.write(use, write, op)
            uses = [(write.table, work.table(use, write.table).version)]
            self._log.write("holding", op=op, transaction=use.number, session=bound(use).session.id)
            while not commit.exists() and not self._stopping.wait(SESSION_SECONDS):
                pass
            work.commit(use, op, CatalogUse.commit, uses=uses, writes=[write])


def settings_of(arguments: argparse.Namespace) -> Settings:
    return Settings(
        DEFINITIONS,
        {
            LIVENESS_TTL: arguments.ttl,
            LIVENESS_HEARTBEAT: arguments.heartbeat,
            LEASE_HOLDER_GRACE: arguments.grace,
            WATCH_POLL_INTERVAL: arguments.poll,
        },
    )


def _lose_notifications() -> None:
    for engine in (SqliteEngine, PostgresEngine):
        engine.subscribe = lambda self, wake, spans=(): lambda: None  # type: ignore[method-assign]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--name", required=True, help="process.incarnation, such as p0.3")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--tables", required=True, help="ids, separated by commas")
    parser.add_argument("--ttl", type=float, required=True)
    parser.add_argument("--heartbeat", type=float, required=True)
    parser.add_argument("--grace", type=float, required=True)
    parser.add_argument("--poll", type=float, required=True)
    parser.add_argument("--threads", type=int, default=0, help="that write and read rows")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds a transaction stays open, at most")
    parser.add_argument("--ddl-seconds", type=float, default=0.0, help="between changes; 0: makes none")
    parser.add_argument("--holds", action="store_true", help="opens a long transaction when told to")
    parser.add_argument("--ignore-end", action="store_true")
    parser.add_argument("--deaf", action="store_true")
    arguments = parser.parse_args()
    if arguments.deaf:
        _lose_notifications()
    logging.basicConfig(stream=sys.stderr, format=f"%(asctime)s {arguments.name} %(name)s %(message)s")
    SchemaWorker(arguments).run()


if __name__ == "__main__":
    main()
