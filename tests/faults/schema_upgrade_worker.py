"""One node under test: a real `Node` that writes rows of one table and changes its indexes meanwhile.

    python -m tests.faults.schema_upgrade_worker --store sqlite:PATH --log DIRECTORY --name p0.1 --seed 7 ...

Logged: start; used (a commit of rows, with the version of the table that it used and its timestamp),
created and dropped (a change of indexes that was acknowledged), dropping (before one), trouble.
A file "quiet" beside the logs ends the load.

Walk: `schema_upgrade` starts it; it builds `tenure.node.Node`.
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
from tenure.base.errors import OutcomeUnknown, RetryError, TenureError, Unavailable
from tenure.base.settings import DEFINITIONS, LEASE_DURATION, LIVENESS_HEARTBEAT, LIVENESS_TTL, Settings
from tenure.catalog.descriptors.definitions import ElementState, Goal, Index, KeyPart, Table, replace
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.cluster.sessions.versions import PROGRAM
from tenure.node import Node, NodeOptions
from tenure.table.read import get
from tenure.table.write import TableWriter
from tests.faults.log import Log
from tests.unit.table.tables import A, B

TABLE = 200
KEYS = 60
"""So few that the writers meet."""

LONG_RATE = 0.002
"""Of transactions that take as long as a lease lasts, or longer."""

WRITERS = 2
WRITE_SECONDS, CHANGE_SECONDS = 0.005, 0.1
OPEN_SECONDS_MAX = 60.0
ATTEMPTS = 50


class SchemaWorker:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._stopping = threading.Event()
        self._rng = random.Random(f"{arguments.seed}.{arguments.name}")
        self._log = Log(arguments.log / f"{arguments.name}.jsonl")
        self._quiet = arguments.log.parent / "quiet"
        self._numbers = 0
        self._made: list[str] = []
        signal.signal(signal.SIGTERM, lambda *_: self._stopping.set())

    def run(self) -> None:
        self._node = self._open()
        self._log.write("start", version=self._arguments.compat_version)
        loops = [partial(self._repeat, WRITE_SECONDS, self._write)] * WRITERS
        loops.append(partial(self._repeat, CHANGE_SECONDS, self._change))
        threads = [threading.Thread(target=loop, daemon=True) for loop in loops]
        for thread in threads:
            thread.start()
        self._stopping.wait()
        for thread in threads:
            thread.join()
        self._node.stop()
        self._log.write("end")

    def _open(self) -> Node:
        arguments = self._arguments
        given = {
            LIVENESS_TTL: arguments.ttl,
            LIVENESS_HEARTBEAT: arguments.heartbeat,
            LEASE_DURATION: arguments.duration,
        }
        give_up = time.monotonic() + OPEN_SECONDS_MAX
        while True:
            try:
                settings = Settings(DEFINITIONS, given)
                return Node(
                    NodeOptions(arguments.store, settings=settings, version=arguments.compat_version),
                    SystemEnv(),
                )
            except (Unavailable, OutcomeUnknown):
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.1)

    def _repeat(self, seconds: float, step: Callable[[], None]) -> None:
        while not self._stopping.wait(seconds * self._rng.uniform(0.5, 1.5)):
            if self._quiet.exists():
                continue
            try:
                step()
            except TenureError as error:
                self._log.write("trouble", state=error.sqlstate, why=str(error))

    # ── rows ───────────────────────────────────────────────────────────────────────────────────

    def _write(self) -> None:
        use = self._node.leases.bind(self._node.store.begin())
        try:
            table = _table(use)
            if table is None:
                return
            self._write_row(use, table)
            if self._rng.random() < LONG_RATE:
                time.sleep(self._rng.uniform(0, 1.5 * self._arguments.duration))
            self._log.write("used", version=table.version, at=use.commit())
        except RetryError:
            pass
        finally:
            use.close()

    def _write_row(self, use: CatalogUse, table: Table) -> None:
        layout = self._node.layouts.of(table)
        writer = TableWriter(layout, lambda id: layout, self._node.context())
        key, value = self._rng.randrange(KEYS), self._rng.randrange(1_000)
        row = get(use.txn, layout, (key,))
        if row is None:
            writer.insert(use.txn, {1: key, A: value, B: value})
        elif self._rng.random() < 0.3:
            writer.delete(use.txn, row)
        else:
            writer.update(use.txn, row, {self._rng.choice((A, B)): value})
        writer.finish(use.txn)

    # ── indexes ────────────────────────────────────────────────────────────────────────────────

    def _change(self) -> None:
        if len(self._made) < 2:
            self._numbers += 1
            name = f"{self._arguments.name.replace('.', '_')}_{self._numbers}"
            self._commit(partial(_add, name, self._rng.choice((A, B))))
            self._made.append(name)
            self._log.write("created", index=name)
        else:
            name = self._made.pop(0)
            self._log.write("dropping", index=name)
            self._commit(partial(_drop, name))
            self._log.write("dropped", index=name)

    def _commit(self, declare: Callable[[Table], Table]) -> None:
        for _ in range(ATTEMPTS):
            use = self._node.leases.bind(self._node.store.begin())
            try:
                table = _table(use)
                if table is None:
                    raise RetryError("the table is not there yet")
                use.draft.declare(declare(table), made_from=table.version)
                self._node.changer.commit(use)
                return
            except RetryError as error:
                last = error
                self._stopping.wait(0.01)
            finally:
                use.close()
        raise last


def _table(use: CatalogUse) -> Table | None:
    found = use.descriptor(TABLE)
    assert found is None or isinstance(found, Table)
    return found


def _add(name: str, column: int, table: Table) -> Table:
    if any(each.name == name for each in table.indexes):
        return table  # an earlier attempt's outcome was lost
    id = table.next_index
    index = Index(id, name, (KeyPart(column),), False, ElementState.DELETE_ONLY, primary=1)
    return replace(table, indexes=(*table.indexes, index), next_index=id + 1)


def _drop(name: str, table: Table) -> Table:
    indexes = tuple(replace(each, goal=Goal.ABSENT) if each.name == name else each for each in table.indexes)
    return replace(table, indexes=indexes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--name", required=True, help="process.incarnation, such as p0.3")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--ttl", type=float, required=True)
    parser.add_argument("--heartbeat", type=float, required=True)
    parser.add_argument("--duration", type=float, required=True, help="of expiring leases, in seconds")
    parser.add_argument("--compat-version", type=int, default=PROGRAM)
    arguments = parser.parse_args()
    logging.basicConfig(stream=sys.stderr, format=f"%(asctime)s {arguments.name} %(name)s %(message)s")
    SchemaWorker(arguments).run()


if __name__ == "__main__":
    main()
