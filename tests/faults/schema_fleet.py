"""Nodes that write rows and change the schema, as processes to be killed and stopped.

    with SchemaFleet(run, "kill") as fleet:
        fleet.start_nodes() ... fleet.kill_node("p0"), fleet.halt_node("p0", factor=5)
        fleet.settle(result)       no more load; every change comes to an end, then the processes
        fleet.judge(result)        the whole history, and the state that is left

Walk: the scenarios (`schema_kills`, `schema_stops`, `long_transactions`, `lost_notifications`) use
this; this uses `schema_worker` (as processes), `schema_history` and `schema_checker`.
"""

import logging
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from itertools import count
from types import TracebackType
from uuid import uuid4

from tenure.base.env import SystemEnv
from tenure.base.errors import TenureError
from tenure.base.timestamp import micros_of
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import (
    DEFAULT_DATABASE,
    AnyDescriptor,
    Schema,
    Table,
    is_dropped,
    place_of,
)
from tenure.catalog.descriptors.elements import is_finished
from tenure.catalog.leases.lease_rows import LeaseRow, LeaseRows
from tenure.expr.functions.function import Context
from tenure.kv.snapshot import Snapshot
from tenure.node import Node, NodeOptions
from tenure.table.consistency import check_indexes
from tenure.table.rows import Layout, Layouts
from tests.faults.checker import Verdict
from tests.faults.harness import Result, Run, integrity, wait_for
from tests.faults.job_checker import Halt
from tests.faults.job_fleet import NODES, JobFleet, distribution
from tests.faults.log import Event, Log
from tests.faults.schema_checker import Op, check, ops_of
from tests.faults.schema_history import SchemaHistory, read_history
from tests.faults.schema_work import ChangeWork, create_tables
from tests.faults.schema_worker import settings_of

TTL_SECONDS, HEARTBEAT_SECONDS = 1.2, 0.2
GRACE_SECONDS = 5.0
"""Longer than any transaction of the load; scenarios about long ones set their own."""

POLL_SECONDS = 1.0
WAIT_SLACK_SECONDS = 1.0
"""How long after one ttl a change may still wait for a node that is dead."""

LOAD = ("--threads", "2", "--ddl-seconds", "0.3", "--pause", "0.02")
ACK = b'{"e":"ack"'
SETTLE_SECONDS_MAX = 30.0
CONTEXT = Context(0, 0, uuid4, lambda: 0)


class SchemaFleet(JobFleet):
    def __init__(
        self,
        run: Run,
        name: str,
        *,
        ttl: float = TTL_SECONDS,
        heartbeat: float = HEARTBEAT_SECONDS,
        grace: float = GRACE_SECONDS,
        poll: float = POLL_SECONDS,
    ) -> None:
        self._times = {"ttl": ttl, "heartbeat": heartbeat, "grace": grace, "poll": poll}
        self._rng = run.rng
        self._own_numbers = count(1)
        self.schema = SchemaHistory()
        super().__init__(run, f"schema_{name}", ttl=ttl, heartbeat=heartbeat)

    def _set_up(self) -> None:
        super()._set_up()
        self._handler = logging.FileHandler(self.place.directory / "errors")
        logging.getLogger("tenure").addHandler(self._handler)  # of the nodes in this process
        self.catalog = Catalog(self.store.keyspace)
        node = self.open_node()
        self.tables = create_tables(node)
        node.stop()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        logging.getLogger("tenure").removeHandler(self._handler)
        self._handler.close()

    def open_node(self) -> Node:
        """A node in this very process."""
        return Node(
            NodeOptions(self.place.address, settings=settings_of(Namespace(**self._times))), SystemEnv()
        )

    def changes_of(self, node: Node) -> ChangeWork:
        """Changes that a node in this process makes; they are logged and judged like the others'."""
        number = next(self._own_numbers)
        name = f"p9.{number}"
        log = Log(self.logs / f"{name}.jsonl")
        first_id = -number << 40  # below zero: no process has such ids
        return ChangeWork(node, log, name, self._rng, tables=self.tables, first_id=first_id)

    # ── processes ──────────────────────────────────────────────────────────────────────────────

    def start_nodes(self, *more: str) -> None:
        for name in NODES:
            self.start_node(name, *(more or LOAD))
        self.await_ready()

    def start_node(self, name: str, *more: str) -> None:
        arguments = ["--tables", ",".join(map(str, self.tables))]
        for option, value in self._times.items():
            arguments += [f"--{option}", str(value)]
        self._launch("tests.faults.schema_worker", name, "", (*arguments, *more))

    def command(self, name: str) -> None:
        """Tells a process something by a file, see `schema_worker`."""
        (self.place.directory / name).touch()

    def require_progress(self, result: Result, when: str) -> None:
        """Each process must commit again without being restarted."""
        before = self.lengths()
        goes_on = wait_for(lambda: all(self.count(ACK, before, name) for name in NODES), 30)
        result.require(goes_on, f"not every node commits again {when}")

    # ── the end ────────────────────────────────────────────────────────────────────────────────

    def settle(self, result: Result) -> None:
        """Ends the load, changes everything once more so that nothing of the dead is left, and stops."""
        self.command("quiet")
        ended = wait_for(self._is_settled, SETTLE_SECONDS_MAX)
        result.require(ended, f"not every change has ended: {self._open_jobs()[:5]}")
        node = self.open_node()
        try:
            self._change_all(node, result)
        finally:
            node.stop()
        for row in self._abandoned():
            result.violations.append(f"a lease row of a dead session is left: {row}")
        self.stop()

    def _is_settled(self) -> bool:
        try:
            return super()._is_settled() and not [*self._unanswered()]
        except TenureError:
            return False

    def _unanswered(self) -> Iterator[Op]:
        """Transactions of running processes that have not been answered yet."""
        running = {self.process(name) for name in self._processes if self.is_running(name)}
        return (op for op in ops_of(self.events()).values() if op.end is None and op.process in running)

    def _change_all(self, node: Node, result: Result) -> None:
        """Every table and the database get new versions: whoever still leased an older one is gone."""
        work = self.changes_of(node)
        for table in self.tables:
            done = wait_for(lambda table=table: _try(work, "index", table), 10)  # type: ignore[misc]
            result.require(done, f"a change of table {table} is impossible in the end")
        result.require(wait_for(lambda: _try(work, "schema", self.tables[0]), 10), "no schema can be made")

    def _abandoned(self) -> list[LeaseRow]:
        snapshot = self.store.snapshot()
        there = {present.id for present in self.sessions.list(snapshot)}
        rows = LeaseRows(self.store.keyspace, self.sessions).list(snapshot)
        return [row for row in rows if row.session not in there]

    def judge(self, result: Result) -> Verdict:
        snapshot = self.store.snapshot()
        layouts = dict(self._layouts(snapshot))
        self.schema = read_history(self.store, layouts)
        self.history = self.schema.jobs
        verdict = check(self.schema, self.events(), self.halts)
        if self.place.engine == "sqlite":
            self._troubles += integrity(self.place.path)
        result.violations += [*self._troubles, *verdict.violations, *self._wrong(snapshot, layouts)]
        if self._troubles:
            result.violations.append((self.place.directory / "errors").read_text()[-2000:])
        for name in ("rows acked", "read", "changes", "changes failed", "versions", "sessions"):
            result.counts[name] = verdict.counts[name]
        changes = sorted(op.seconds for op in ops_of(self.events()).values() if _is_done_change(op))
        if changes:
            result.counts["change s"] = distribution(changes)
        for name in ("unknown", "landed after an error"):
            if verdict.counts[name]:
                result.counts[name] = verdict.counts[name]
        self._require_no_bugs(result)
        return verdict

    def _layouts(self, snapshot: Snapshot) -> Iterator[tuple[int, Layout]]:
        for id in self.tables:
            table = self.catalog.get(snapshot, id)
            assert isinstance(table, Table)
            yield id, Layouts(self.store.keyspace).of(table)

    def _wrong(self, snapshot: Snapshot, layouts: dict[int, Layout]) -> Iterator[str]:
        """What is wrong with the state in the end."""
        for id, layout in layouts.items():
            for what in check_indexes(snapshot, layout, CONTEXT):
                yield f"table {id}: {what}"
        yield from (f"job {id} is {state.value}" for id, state in self._open_jobs())
        yield from (f"a lease row is left: {row}" for row in self._leases(snapshot))
        descriptors = list(self.catalog.list(snapshot))
        for each in descriptors:
            if not is_finished(each) or (isinstance(each, Table) and each.job):
                yield f"half way: {each}"
        yield from _wrong_names(self.catalog, snapshot, descriptors)

    def _leases(self, snapshot: Snapshot) -> Iterator[LeaseRow]:
        return LeaseRows(self.store.keyspace, self.sessions).list(snapshot)

    # ── how long changes waited ────────────────────────────────────────────────────────────────

    def require_waits(self, result: Result, halts: Sequence[Halt]) -> None:
        """No change waited for the leases of a dead node longer than ttl + slack."""
        bound = self.ttl_seconds + WAIT_SLACK_SECONDS
        waits = sorted((wait for halt in halts for wait in self._waits(halt)), key=lambda wait: wait[0])
        for seconds, op in waits:
            why = f"{op.name} ({op.intent['change']}) waited {seconds:.2f} s for a node that was gone"
            result.require(seconds <= bound, why)
        if waits:
            result.counts["waited s"] = distribution([seconds for seconds, _ in waits])

    def _waits(self, halt: Halt) -> Iterator[tuple[float, Op]]:
        """How long the changes took, from the halt on, during which the node's last lease row went."""
        mine = {each for each in self.sessions_of(halt.process) if each.epoch_at < halt.at}
        gone_at = max(
            (each.at for each in self.schema.leases if each.session in mine and each.row is None), default=0
        )
        gone_micros = micros_of(gone_at)
        if gone_micros < halt.micros:
            return
        for op in ops_of(self.events()).values():
            if "change" not in op.intent or op.end is None or op.process == halt.process:
                continue
            began_micros, ended_micros = wall_micros_of(op.intent), wall_micros_of(op.end)
            is_stopped = any(
                each.process == op.process and began_micros < each.woken_micros and each.micros < ended_micros
                for each in self.halts
            )
            if began_micros < gone_micros < ended_micros and not is_stopped:
                yield (gone_micros - max(halt.micros, began_micros)) / 1e6, op


def wall_micros_of(event: Event) -> int:
    """When something was logged, on the clock of the store."""
    since_boot_ns: int = event["m"]
    return (since_boot_ns + time.time_ns() - time.monotonic_ns()) // 1000


def _is_done_change(op: Op) -> bool:
    return "change" in op.intent and op.outcome == "ack"


def _try(work: ChangeWork, kind: str, table: int) -> bool:
    try:
        return work.change(kind, table) == "ack"
    except TenureError:
        return False


def _wrong_names(catalog: Catalog, snapshot: Snapshot, descriptors: list[AnyDescriptor]) -> Iterator[str]:
    there = [each for each in descriptors if not is_dropped(each)]
    names = {(entry.database, entry.schema, entry.name): entry.id for entry in catalog.names(snapshot)}
    wanted = {
        (place.database, place.schema, place.name): each.id for each in there if (place := place_of(each))
    }
    if names != wanted:
        yield f"names are {names}, not {wanted}"
    entries = {entry.name: entry.id for entry in catalog.schema_map(snapshot, DEFAULT_DATABASE)}
    schemas = {
        each.name: each.id for each in there if isinstance(each, Schema) and each.database == DEFAULT_DATABASE
    }
    if entries != schemas:
        yield f"the map of schemas is {entries}, not {schemas}"
