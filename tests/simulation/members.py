"""Nodes with sessions and jobs, and what the nemesis does to them.

A machine runs one process after the other, of the version that its operator has installed last. One
that fails to start takes down what it has, and is started again a little later.

Walk: `cluster.run` makes a `JobCluster`; its `Member`s run a `Process` each; `operators` upgrade them.
"""

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, cast

from tenure.base.errors import NewerFormat, TenureError
from tenure.base.settings import (
    DEFINITIONS,
    JOBS_ADOPT_INTERVAL,
    JOBS_RETENTION,
    LIVENESS_HEARTBEAT,
    LIVENESS_TTL,
    WATCH_POLL_INTERVAL,
    Settings,
)
from tenure.cluster import settings
from tenure.cluster.jobs import attempts, execution, job_holders, job_retention
from tenure.cluster.sessions import deaths
from tenure.cluster.sessions.versions import OLDEST, PROGRAM
from tests.simulation import job_predicates, operators
from tests.simulation.hub import Machine, SimEnv
from tests.simulation.job_history import JobIndex
from tests.simulation.job_knobs import JOB_NEMESIS_FAULTS, JobKnobs
from tests.simulation.job_trace import JobFailure, JobTrace, Panic
from tests.simulation.knobs import Knobs
from tests.simulation.nodes import Cluster, Node
from tests.simulation.operators import Operator
from tests.simulation.predicates import Violation
from tests.simulation.processes import Process
from tests.simulation.steering import JobClient
from tests.simulation.tape import Tape

SHORT_RETENTION = replace(JOBS_RETENTION, lower=1.0)
"""The product keeps ended jobs for a minute at least, which is all a run has."""

_DEFINITIONS = tuple(SHORT_RETENTION if each is JOBS_RETENTION else each for each in DEFINITIONS)

TWIN_SECONDS = 12.0
"""How long a process that was started twice runs at most."""


class Member(Node):
    """A machine that runs one process after the other."""

    cluster: "JobCluster"

    def __init__(
        self, cluster: "JobCluster", number: int, *, suffix: str = "", wanted: int | None = None
    ) -> None:
        super().__init__(cluster, number)
        self.machine = Machine(cluster.hub, f"n{number}{suffix}")
        self.env = SimEnv(cluster.hub, self.machine)
        self.process: Process | None = None
        self.version = OLDEST if cluster.knobs.upgrades else PROGRAM
        """What is installed: the next process is of this version."""
        self.tenant = 2 if cluster.knobs.tenants == 2 and number == 2 else 1
        self.is_dead = False
        self.wanted = wanted
        """The instance id that the next process asks for; None for any."""
        cluster.job_trace.machines[self.machine.name] = self.machine

    def start(self) -> None:
        if self.is_dead:
            return  # a fault has struck it once more
        self.machine.is_up = True
        self.process, self.clients = None, []
        self.env.spawn("boot", self._boot)

    def _boot(self) -> None:
        while self.process is None:
            try:
                process = Process(self, self.wanted)
            except TenureError as error:
                is_older = isinstance(error, NewerFormat)
                self.cluster.trace.seen["older node refused" if is_older else "start failed"] += 1
                self.env.sleep(1.0)
                continue
            self.process = process
            self.lanes = process.engine.lanes
        for n in range(self.cluster.knobs.clients):
            client = JobClient(self.process, f"{self.machine.name}.c{n}", self.cluster.weights)
            self.clients.append((client, self.env.spawn(f"c{n}", client.run)))

    def cut_power(self, *, restart_after: float | None) -> None:
        process, self.process = self.process, None
        session = process.liveness._session if process is not None else None
        if session is not None and self.cluster.tape.chance(f"{self.machine.name}.wanted", 0.4):
            self.wanted = session.id.instance
        super().cut_power(restart_after=restart_after)

    def drain(self) -> None:
        """Stops in good order, as on SIGTERM, and comes back a little later."""
        process = self.process
        if process is not None:
            self.env.spawn("drain", lambda: self._drain(process))

    def _drain(self, process: Process) -> None:
        for client, task in self.clients:
            client.is_leaving = True  # type: ignore[attr-defined]
            task.join()
        process.stop()
        self.cluster.trace.seen["drain"] += 1
        self.cut_power(restart_after=self.cluster.soon(f"{self.machine.name}.restart"))

    def die(self) -> None:
        self.is_dead = True
        super().die()
        self.process = None

    def _restart(self) -> None:
        if not self.machine.is_up:
            self.cluster.trace.seen["restart"] += 1
            self.start()


class JobCluster(Cluster):
    nemesis_faults = JOB_NEMESIS_FAULTS
    knobs: JobKnobs

    def __init__(self, tape: Tape, knobs: JobKnobs, weights: Mapping[str, float]) -> None:
        self.job_trace = JobTrace()
        self.log = Log()
        super().__init__(tape, knobs, weights, self.job_trace)
        self.settings = Settings(
            _DEFINITIONS,
            {
                WATCH_POLL_INTERVAL: knobs.poll_seconds,
                LIVENESS_TTL: knobs.ttl_seconds,
                LIVENESS_HEARTBEAT: knobs.heartbeat_seconds,
                JOBS_ADOPT_INTERVAL: knobs.adopt_seconds,
                SHORT_RETENTION: knobs.retention_seconds,
            },
        )
        self.operators = [Operator(self, tenant) for tenant in range(1, knobs.tenants + 1)]
        self.wire.signal_seconds = knobs.signal_seconds
        cast(_RunnerLog, execution._log).attach(self.log)

    @property
    def members(self) -> list[Member]:
        return cast(list[Member], self.nodes)

    def make_node(self, number: int) -> Node:
        return Member(self, number)

    def start(self) -> None:
        super().start()
        if self.knobs.upgrades:
            for operator in self.operators:
                operator.upgrade()

    def members_of(self, tenant: int) -> list[Member]:
        return [member for member in self.members if member.tenant == tenant]

    def strike(self, kind: str, node: Node) -> None:
        assert isinstance(node, Member)
        if not node.machine.is_up:
            return
        process = node.process
        match kind:
            case "long pause":
                seconds = self.knobs.ttl_seconds * (0.9 + 1.5 * self.tape.draw("nemesis.long"))
                node.machine.paused_until = min(self.hub.t + seconds, self.knobs.faults_end + 1.0)
            case "heartbeat stalled" if process is not None:
                process.engine.stalled_until = self.hub.t + self.soon("nemesis.stall")
            case "deaths stalled" if process is not None:
                process.deaths_stalled_until = self.hub.t + self.soon("nemesis.stall")
            case "session frozen":
                self._freeze(node)
            case "drain":
                node.drain()
            case "started twice" if process is not None and len(self.nodes) == self.knobs.nodes:
                session = process.liveness._session
                wanted = session.id.instance if session is not None else None
                twin = Member(self, node.number, suffix="t", wanted=wanted)
                twin.version = process.version
                self.nodes.append(twin)
                twin.start()
                left = self.knobs.faults_end + 1.0 - self.hub.t
                self.hub.call_later(min(left, TWIN_SECONDS), twin.die)
            case "second runner" if process is not None:
                seconds = self.soon("nemesis.second")
                node.env.spawn("second", lambda: process.run_second(seconds))
            case "setting changed" if process is not None:
                operators.change_setting(self, process)
            case "heads swept" if process is not None:
                operators.sweep_heads(self, process)
            case _:
                super().strike(kind, node)

    def _freeze(self, node: Member) -> None:
        """One node freezes the session of any."""
        process, sessions = node.process, self.job_trace.sessions[node.tenant][-4:]
        if process is None or not sessions:
            return
        session = sessions[self.tape.pick("nemesis.session", len(sessions))]

        def freeze() -> None:
            try:
                process.store.transact(lambda txn: process.sessions.freeze(txn, session, "by the nemesis"))
            except TenureError:
                self.trace.seen["freezing failed"] += 1

        node.env.spawn("freeze", freeze)

    def calm_down(self) -> None:
        super().calm_down()
        self.wire.signal_seconds = max(1.0, self.wire.signal_seconds)  # nobody is in a hurry any more
        self.hub.call_later(2.5, self._resume_all)

    def _resume_all(self) -> None:
        """Lets most of the paused jobs go on, so that they can be seen to end."""
        for tenant in range(1, self.knobs.tenants + 1):
            member = next((each for each in self.members_of(tenant) if each.process is not None), None)
            if member is not None and member.process is not None:
                member.env.spawn("resume", partial(self._resume, member.process))

    def _resume(self, process: Process) -> None:
        for job in self.job_trace.jobs[process.tenant]:
            if self.tape.chance("calm.resume", 0.7):
                try:
                    process.store.transact(lambda txn, job=job: process.jobs.resume(txn, job))  # type: ignore[misc]
                except TenureError:
                    self.trace.seen["resume: not possible"] += 1

    def judge(self, *, is_whole: bool) -> list[Violation]:
        found = super().judge(is_whole=is_whole)
        living = [each.process for each in self.members if each.process is not None and each.machine.is_up]
        open_lanes = {lane for (lane,) in self.wire.engine._writer.execute("SELECT id FROM lane", ())}
        for tenant in range(1, self.knobs.tenants + 1):
            index = JobIndex(self.job_trace, tenant)
            processes = [process for process in living if process.tenant == tenant]
            found += job_predicates.check(index, self.knobs, processes, open_lanes, is_whole=is_whole)
        return found + [Violation("crash", message, self.trace.step) for message in self.log.broken]


class Log:
    """Stands for the loops' and the runner's loggers: an error nobody expects is a violation."""

    def __init__(self) -> None:
        self.broken: list[str] = []

    def info(self, *_: object, **__: object) -> None:
        return None

    warning = info

    def error(self, message: str, *values: object, exc_info: bool = False) -> None:
        if exc_info:
            self.broken.append(message % values)

    def critical(self, message: str, *values: object, exc_info: bool = False) -> None:
        self.broken.append(message % values)

    def exception(self, message: str, *values: object) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, JobFailure | Panic):
            self.broken.append(f"{message % values}: {error!r}")


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
    """Memories so small that they overflow, pauses so short that a run has many; and no log lines."""
    if not isinstance(knobs, JobKnobs):
        yield
        return
    changed = (
        (deaths, "DEATHS_MAX", knobs.deaths_max),
        (deaths, "PAUSE_SECONDS", 0.25),
        (deaths, "FOLLOW_SECONDS", 4.0),
        (settings, "FOLLOW_SECONDS", 4.0),
        (job_retention, "BATCH_JOBS", 4),
        (job_retention, "JOBS_RETENTION", SHORT_RETENTION),
        (job_holders, "BURY_SECONDS", 0.25),
        (attempts, "RETRY_SECONDS", 0.3),
        (attempts, "RETRY_SECONDS_MAX", 2.0),
        (execution, "_log", _RunnerLog()),
    )
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
