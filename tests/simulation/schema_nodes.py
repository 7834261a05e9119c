"""Nodes that change the schema they use: machines, the nemesis's further faults, and the verdict.

Walk: `cluster.run` makes a `SchemaCluster`; each `SchemaNode` runs one `SchemaProcess` after the other.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from tenure.base.errors import TenureError
from tenure.base.settings import (
    JOBS_ADOPT_INTERVAL,
    LEASE_DURATION,
    LEASE_HOLDER_GRACE,
    LEASE_POLL_INTERVAL,
    LIVENESS_HEARTBEAT,
    LIVENESS_TTL,
)
from tenure.cluster.jobs import attempts, execution, job_holders
from tenure.cluster.sessions import deaths
from tenure.schema_change import changer, stage_locks
from tenure.table import backfill
from tenure.version_one import descriptor_leases
from tests.simulation import schema_predicates
from tests.simulation.expiring_watch import ExpiringWatch
from tests.simulation.knobs import Knobs
from tests.simulation.lease_watch import LeaseWatch
from tests.simulation.nodes import Cluster, Node
from tests.simulation.predicates import Violation
from tests.simulation.schema_client import SchemaClient
from tests.simulation.schema_knobs import SCHEMA_NEMESIS_FAULTS, SchemaKnobs
from tests.simulation.schema_processes import Log, SchemaProcess
from tests.simulation.schema_trace import SchemaTrace
from tests.simulation.tape import Tape
from tests.simulation.trace import Txn


class SchemaNode(Node):
    """A machine that runs one process after the other."""

    cluster: "SchemaCluster"

    def __init__(self, cluster: "SchemaCluster", number: int) -> None:
        super().__init__(cluster, number)
        self.process: SchemaProcess | None = None
        cluster.schema_trace.machines[self.machine.name] = self.machine

    def start(self) -> None:
        self.machine.is_up = True
        self.process, self.clients = None, []
        self.env.spawn("boot", self._boot)

    def _boot(self) -> None:
        knobs, tape = self.cluster.knobs, self.cluster.tape
        if knobs.is_sparse and self.number > 1:
            share = tape.draw(f"{self.machine.name}.late")
            self.env.sleep(share * max(0.0, knobs.faults_end - self.cluster.hub.t))
        while self.process is None:
            try:
                process = SchemaProcess(self)
            except TenureError:
                self.cluster.trace.seen["start failed"] += 1
                self.env.sleep(0.5)
                continue
            self.process = process
            self.lanes = process.engine.lanes
        for n in range(knobs.clients):
            client = SchemaClient(self.process, f"{self.machine.name}.c{n}", self.cluster.weights)
            self.clients.append((client, self.env.spawn(f"c{n}", client.run)))

    def cut_power(self, *, restart_after: float | None) -> None:
        self.process = None
        super().cut_power(restart_after=restart_after)

    def drain(self) -> None:
        """Stops in good order, as on SIGTERM, and comes back a little later."""
        process = self.process
        if process is not None:
            self.env.spawn("drain", lambda: self._drain(process))

    def _drain(self, process: SchemaProcess) -> None:
        for client, task in self.clients:
            cast(SchemaClient, client).is_leaving = True
            task.join()
        process.stop()
        self.cluster.trace.seen["drain"] += 1
        self.cut_power(restart_after=self.cluster.soon(f"{self.machine.name}.restart"))

    def die(self) -> None:
        super().die()
        self.process = None

    def _restart(self) -> None:
        if not self.machine.is_up:
            self.cluster.trace.seen["restart"] += 1
            self.start()

    def stuck(self, clock_at: int) -> Iterator[str]:
        for client, task in self.clients:
            if client.operation and not task.is_over:
                yield f"{client.name}: {client.operation} since {client.since_t:.3f}, waits at {task.site}"


class SchemaCluster(Cluster):
    nemesis_faults = SCHEMA_NEMESIS_FAULTS
    knobs: SchemaKnobs

    def __init__(self, tape: Tape, knobs: SchemaKnobs, weights: Mapping[str, float]) -> None:
        self.schema_trace = SchemaTrace()
        self.log = Log()
        super().__init__(tape, knobs, weights, self.schema_trace)
        self.settings = (
            self.settings.with_value(LIVENESS_TTL, knobs.ttl_seconds)
            .with_value(LIVENESS_HEARTBEAT, knobs.heartbeat_seconds)
            .with_value(JOBS_ADOPT_INTERVAL, knobs.adopt_seconds)
            .with_value(LEASE_POLL_INTERVAL, knobs.lease_poll_seconds)
            .with_value(LEASE_HOLDER_GRACE, knobs.grace_seconds)
            .with_value(LEASE_DURATION, knobs.duration_seconds)
        )
        self.wire.signal_seconds = knobs.signal_seconds
        self.watches = ExpiringWatch(self.schema_trace), LeaseWatch(self.schema_trace)
        self.schema_trace.landed = self._landed
        cast(_RunnerLog, execution._log).attach(self.log)

    def _landed(self, txn: Txn) -> None:
        for watch in self.watches:
            watch.landed(txn)

    @property
    def schema_nodes(self) -> list[SchemaNode]:
        return cast(list[SchemaNode], self.nodes)

    def make_node(self, number: int) -> Node:
        return SchemaNode(self, number)

    def strike(self, kind: str, node: Node) -> None:
        assert isinstance(node, SchemaNode)
        if not node.machine.is_up:
            return
        process = node.process
        match kind:
            case "long pause":
                seconds = self.knobs.ttl_seconds * (0.9 + 1.5 * self.tape.draw("nemesis.long"))
                node.machine.paused_until = min(self.hub.t + seconds, self.knobs.faults_end + 1.0)
            case "heartbeat stalled" if process is not None:
                process.engine.stalled_until = self.hub.t + self.soon("nemesis.stall")
            case "leases stalled" | "holders stalled" if process is not None:
                process.stalled_until[kind.split()[0]] = self.hub.t + self.soon("nemesis.stall")
            case "session frozen" if process is not None:
                self._freeze(node, process)
            case "drain":
                node.drain()
            case _:
                super().strike(kind, node)

    def _freeze(self, node: SchemaNode, process: SchemaProcess) -> None:
        """One node freezes the session of any, as after a wait that was too long."""
        others = [each.process.liveness._session for each in self.schema_nodes if each.process is not None]
        chosen = others[self.tape.pick("nemesis.session", len(others))]
        if chosen is None:
            return

        def freeze() -> None:
            try:
                process.store.transact(lambda txn: process.sessions.freeze(txn, chosen.id, "by the nemesis"))
            except TenureError:
                self.trace.seen["freezing failed"] += 1

        node.env.spawn("freeze", freeze)

    def _cancel(self, node: Node) -> None:
        """Not while a commit is under way: nobody can break that off, and its pins last until it is over."""
        if not any(cast(SchemaClient, client).is_committing for client, _ in node.clients):
            super()._cancel(node)

    def judge(self, *, is_whole: bool) -> list[Violation]:
        found = [*self.schema_trace.found, *super().judge(is_whole=is_whole)]
        found += schema_predicates.check(
            self.schema_trace, self.wire.engine, is_whole=is_whole, ttl_seconds=self.knobs.ttl_seconds
        )
        return found + [Violation("crash", message, self.trace.step) for message in self.log.broken]


class _RunnerLog:
    """The runner's logger is one per program; here it is that of the run under way."""

    def __init__(self) -> None:
        self._log = Log()

    def attach(self, log: Log) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


@contextmanager
def sizes(knobs: Knobs) -> Iterator[None]:
    """Batches so small that few rows fill them, pauses so short that a run has many; and no log lines."""
    if not isinstance(knobs, SchemaKnobs):
        yield
        return
    changed: list[tuple[Any, str, Any]] = [
        (descriptor_leases, "LOOK", 0.25),
        (deaths, "PAUSE_SECONDS", 0.25),
        (deaths, "FOLLOW_SECONDS", 4.0),
        (job_holders, "BURY_SECONDS", 0.25),
        (attempts, "RETRY_SECONDS", 0.3),
        (attempts, "RETRY_SECONDS_MAX", 1.0),
        (execution, "_log", _RunnerLog()),
        (changer, "ALONE_ROWS_MAX", knobs.alone_rows),
        (stage_locks, "LONG_ROWS", knobs.alone_rows),
        (backfill, "BATCH_ROWS", knobs.fill_rows),
        (backfill, "BATCH_ROWS_MIN", 1),
        (backfill, "BATCH_ROWS_MAX", max(knobs.fill_rows, 1)),
    ]
    former = [(module, name, getattr(module, name)) for module, name, _ in changed]
    logging.disable(logging.CRITICAL)
    try:
        for module, name, value in changed:
            setattr(module, name, value)
        yield
    finally:
        logging.disable(logging.NOTSET)
        for module, name, value in former:
            setattr(module, name, value)
