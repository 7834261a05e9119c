"""Nodes with sessions and jobs: each process is built part by part, as `tenure.node` does it.

    start    store -> session -> deaths -> runner -> heartbeat, deaths, reaper -> jobs -> clients
    drain    clients -> jobs -> heartbeat ... -> session -> store

A process that fails to start takes down what it has, and is started again a little later.

Walk: `cluster.run` makes a `JobCluster`; its `Member`s run a `Process` each, with `labour` to do.
"""

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, cast

from tenure.base.errors import TenureError
from tenure.base.loops import Loop, Loops, Step
from tenure.base.settings import JOBS_ADOPT_INTERVAL, LIVENESS_HEARTBEAT, LIVENESS_TTL, Settings
from tenure.cluster import deaths, runner
from tenure.cluster.liveness import Liveness, Session
from tenure.cluster.runner import Runner
from tenure.cluster.sessions import Sessions
from tests.simulation import job_predicates
from tests.simulation.hub import Machine, SimEnv
from tests.simulation.job_knobs import JOB_NEMESIS_FAULTS, TTLS, JobKnobs
from tests.simulation.job_trace import JobFailure, JobTrace, Panic, TracingDeaths, TracingJobs
from tests.simulation.knobs import Knobs
from tests.simulation.labour import Labour
from tests.simulation.nodes import Cluster, Node
from tests.simulation.predicates import Violation
from tests.simulation.steering import JobClient
from tests.simulation.tape import Tape
from tests.simulation.tracing import TracingStore
from tests.simulation.wire import SimEngine

DRAIN_SECONDS = 3.0
VERSION = 1

TWIN_SECONDS = 12.0
"""How long a process that was started twice runs at most."""


class Process:
    """One running program: what is in memory between a start and a crash or drain."""

    def __init__(self, member: "Member", wanted: int | None) -> None:
        self.cluster = member.cluster
        self.machine = member.machine
        self.env = member.env
        self.name = self.cluster.job_trace.process(self.machine.name)
        self.engine = SimEngine(self.cluster.wire, self.machine)
        self.deaths_stalled_until = 0.0
        with ExitStack() as undo:
            self.store = TracingStore(self.engine, self.env, settings=self.cluster.settings)
            undo.callback(_close, self.store.close)
            self._start_session(undo, wanted)
            self._make_jobs()
            self._start_loops(undo)
            self._undo = undo.pop_all()

    def _settings(self) -> Settings:
        return self.cluster.settings

    def _start_session(self, undo: ExitStack, wanted: int | None) -> None:
        self.sessions = Sessions(self.store.keyspace)
        self.liveness = Liveness(
            self.store, self.sessions, self._settings, address="", version=VERSION, on_lost=self._lost
        )
        self.cluster.job_trace.current[self.name] = lambda: self.liveness._session
        if wanted is None:
            self.liveness.step()
        else:
            self.liveness._session = self.liveness._create(wanted)
        undo.callback(_close, self._release)
        self.deaths = TracingDeaths(self.store, self.sessions)
        undo.callback(self.deaths.close)

    def _make_jobs(self) -> None:
        self.jobs = TracingJobs(self.store, self.sessions)
        self.jobs.panic_when(self._panics)
        kinds = Labour(self).kinds()
        self.runner = Runner(self.store, self.liveness, self.deaths, self.jobs, kinds, self._settings)
        self.deaths.on_death = self.runner.wake

    def _start_loops(self, undo: ExitStack) -> None:
        heartbeat = self._loop("heartbeat", self.liveness.step)
        deaths = self._loop("deaths", self._follow_deaths, interrupt=self.deaths.wake)
        self._run_loops(undo, [heartbeat, deaths, self._loop("reaper", self.deaths.reap)])
        undo.callback(self._drain_jobs)
        self._run_loops(undo, [self._loop("jobs", self.runner.step, interrupt=self.runner.wake)])
        undo.callback(_close, self.liveness.drain)

    def _loop(self, name: str, step: Step, interrupt: Callable[[], None] = lambda: None) -> Loop:
        ttl_seconds = self._settings()[LIVENESS_TTL]
        return Loop(
            name,
            step,
            self.env,
            interval_seconds=ttl_seconds,
            backoff_max_seconds=ttl_seconds / 8,
            log=cast(logging.Logger, self.cluster.log),
            interrupt=interrupt,
        )

    def _run_loops(self, undo: ExitStack, members: Sequence[Loop]) -> None:
        loops = Loops(members)
        undo.callback(loops.stop)
        loops.start()

    def _follow_deaths(self) -> float | None:
        if self.deaths_stalled_until > self.cluster.hub.t:
            self.env.sleep(self.deaths_stalled_until - self.cluster.hub.t)
        return self.deaths.follow()

    def _lost(self, session: Session) -> None:
        key = self.sessions._existence.key(*session.id)
        is_gone = self.cluster.trace.versions[key][-1].value is None
        self.cluster.trace.seen["heartbeat found its row gone" if is_gone else "session given up alive"] += 1
        self.runner.lost(session)

    def _panics(self) -> bool:
        knobs, tape = self.cluster.knobs, self.cluster.tape
        return self.cluster.wire.is_faulty() and tape.chance(f"{self.machine.name}.panic", knobs.panic_rate)

    # ── ending ─────────────────────────────────────────────────────────────────────────────────

    def stop(self) -> None:
        self._undo.close()

    def _drain_jobs(self) -> None:
        if not self.runner.drain(timeout=DRAIN_SECONDS):
            self.cluster.trace.seen["drain without the end of all runs"] += 1

    def _release(self) -> None:
        session = self.liveness._session
        if session is not None:
            self.cluster.job_trace.releases[session.id] = self.name
        self.liveness.release()


def _close(close: Callable[[], None]) -> None:
    """A store that is away must not keep a node from stopping."""
    try:
        close()
    except TenureError:
        pass


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
        self.wanted = wanted
        """The instance id that the next process asks for; None for any."""
        cluster.job_trace.machines[self.machine.name] = self.machine

    def start(self) -> None:
        self.machine.is_up = True
        self.process, self.clients = None, []
        self.env.spawn("boot", self._boot)

    def _boot(self) -> None:
        while self.process is None:
            try:
                process = Process(self, self.wanted)
            except TenureError:
                self.cluster.trace.seen["start failed"] += 1
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
        self.settings = (
            self.settings.with_value(LIVENESS_TTL, knobs.ttl_seconds)
            .with_value(LIVENESS_HEARTBEAT, knobs.heartbeat_seconds)
            .with_value(JOBS_ADOPT_INTERVAL, knobs.adopt_seconds)
        )
        self.wire.signal_seconds = knobs.signal_seconds
        cast(_RunnerLog, runner._log).attach(self.log)

    @property
    def members(self) -> list[Member]:
        return cast(list[Member], self.nodes)

    def make_node(self, number: int) -> Node:
        return Member(self, number)

    def strike(self, kind: str, node: Node) -> None:
        assert isinstance(node, Member)
        if not node.machine.is_up:
            return
        process = node.process
        match kind:
            case "long pause":
                ttl_seconds = self.settings[LIVENESS_TTL]
                seconds = ttl_seconds * (0.9 + 1.5 * self.tape.draw("nemesis.long"))
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
                self.nodes.append(twin)
                twin.start()
                self.hub.call_later(TWIN_SECONDS, twin.die)
            case "ttl changed":
                ttl_seconds = self.tape.choose("nemesis.ttl", TTLS)
                self.settings = self.settings.with_value(LIVENESS_TTL, ttl_seconds).with_value(
                    LIVENESS_HEARTBEAT, ttl_seconds / self.knobs.beats
                )
            case _:
                super().strike(kind, node)

    def _freeze(self, node: Member) -> None:
        """One node freezes the session of any."""
        process, sessions = node.process, self.job_trace.sessions[-4:]
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
        self.hub.call_later(2.5, self._resume_all)

    def _resume_all(self) -> None:
        """Lets most of the paused jobs go on, so that they can be seen to end."""
        member = next((each for each in self.members if each.process is not None), None)
        if member is not None and member.process is not None:
            process = member.process
            member.env.spawn("resume", lambda: self._resume(process))

    def _resume(self, process: Process) -> None:
        for job in self.job_trace.jobs:
            if self.tape.chance("calm.resume", 0.7):
                try:
                    process.store.transact(lambda txn, job=job: process.jobs.resume(txn, job))  # type: ignore[misc]
                except TenureError:
                    self.trace.seen["resume: not possible"] += 1

    def judge(self, *, is_whole: bool) -> list[Violation]:
        found = super().judge(is_whole=is_whole)
        living = {
            each.process.name: each.process.liveness._session
            for each in self.members
            if each.process is not None and each.machine.is_up
        }
        open_lanes = {lane for (lane,) in self.wire.engine._writer.execute("SELECT id FROM lane", ())}
        found += job_predicates.check(self.job_trace, self.knobs, living, open_lanes, is_whole=is_whole)
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
        (runner, "BURY_SECONDS", 0.25),
        (runner, "RETRY_SECONDS", 0.3),
        (runner, "RETRY_SECONDS_MAX", 2.0),
        (runner, "_log", _RunnerLog()),
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
