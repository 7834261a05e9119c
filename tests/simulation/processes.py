"""One running program, built part by part as `tenure.node` does it: of either version, for one tenant.

    start    store -> settings -> session -> deaths -> runner -> heartbeat, deaths, reaper, retention -> jobs
    drain    jobs -> heartbeat ... -> session -> settings -> store

What a seed has no use for is left out for speed: following settings that never change, forgetting
what is never old enough, reaping instances of version 1 where there is none.

A fault may add a second runner to it for a while: two registries of one session, which adopt the
same jobs and know nothing of each other.

Walk: `members.Member` starts one after the other; `labour` gives its runners kinds of jobs.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, cast

from tenure.base.errors import TenureError
from tenure.base.loops import Loop, Loops, Step
from tenure.base.settings import LIVENESS_TTL, VERSION
from tenure.cluster.jobs.claims import Claims, SessionClaims
from tenure.cluster.jobs.job_retention import JobRetention
from tenure.cluster.jobs.runner import JobRunner
from tenure.cluster.sessions.liveness import Liveness, NodeSession
from tenure.cluster.sessions.session_records import Sessions
from tenure.cluster.sessions.versions import OLDEST, PROGRAM, Versions
from tenure.cluster.settings import ClusterSettings
from tenure.kv.transaction import Transaction
from tenure.version_one.old_claims import MixedClaims, OldClaims
from tenure.version_one.old_heartbeats import OldHeartbeats
from tenure.version_one.old_liveness import OldLiveness, reap_old
from tests.simulation.job_trace import TracingDeaths, TracingJobs
from tests.simulation.labour import Labour
from tests.simulation.tracing import TracingStore
from tests.simulation.wire import SimEngine

if TYPE_CHECKING:
    from tests.simulation.members import Member

DRAIN_SECONDS = 3.0
REST_SECONDS = 0.05


class Process:
    """What is in memory between a start and a crash or drain."""

    def __init__(self, member: "Member", wanted: int | None) -> None:
        self.cluster = member.cluster
        self.machine = member.machine
        self.env = member.env
        self.version = member.version
        self.tenant = member.tenant
        self.name = self.cluster.job_trace.process(self.machine.name)
        self.cluster.job_trace.tenants[self.name] = self.tenant
        self.engine = SimEngine(self.cluster.wire, self.machine)
        self.deaths_stalled_until = 0.0
        self._runners = 1
        self.seconds: list[tuple[JobRunner, Loop]] = []
        """Further runners, while the fault lasts that has started them."""
        with ExitStack() as undo:
            settings = self.cluster.settings
            self.store = TracingStore(self.engine, self.env, tenant=self.tenant, settings=settings)
            undo.callback(close, self.store.close)
            self._start_settings(undo)
            self._start_session(undo, wanted)
            self._make_jobs()
            self._start_loops(undo)
            self._undo = undo.pop_all()

    def _start_settings(self, undo: ExitStack) -> None:
        self.sessions = Sessions(self.store.keyspace)
        self._heartbeats = OldHeartbeats(self.store.keyspace)
        self._versions = Versions(self.store.keyspace, self.sessions)
        self.settings = ClusterSettings(self.store, self.cluster.settings, self._versions.finalize)
        undo.callback(self.settings.close)
        if self.cluster.knobs.follows_settings:
            follow = self._loop("settings", self.settings.follow, interrupt=self.settings.wake)
            self._run_loops(undo, [follow])

    def _start_session(self, undo: ExitStack, wanted: int | None) -> None:
        self.liveness = self._old_liveness() if self.version == OLDEST else self._liveness()
        self.cluster.job_trace.current[self.name] = lambda: self.liveness._session
        if wanted is None or isinstance(self.liveness, OldLiveness):
            self.liveness.step()
        else:
            self.liveness._session = self.liveness._create(wanted)
        undo.callback(close, self._release)
        self.settings.load()  # the first node has just given the cluster its version
        self.deaths = TracingDeaths(self.store, self.sessions)
        undo.callback(self.deaths.close)

    def _liveness(self) -> Liveness:
        return Liveness(
            self.store,
            self.sessions,
            self.settings.current,
            address="",
            version=self.version,
            join=lambda txn: self._versions.join(txn, self.version),
            beside=self._beat_the_old_way,
            on_lost=self._lost,
        )

    def _old_liveness(self) -> OldLiveness:
        return OldLiveness(
            self.store,
            self.sessions,
            self._heartbeats,
            self._versions,
            self.settings.current,
            address="",
            on_lost=self._lost,
        )

    def _beat_the_old_way(self, txn: Transaction, instance: int) -> None:
        if not self._is_finalized():
            ttl_seconds = self.settings.current()[LIVENESS_TTL]
            self._heartbeats.beat(txn, instance, ttl_seconds=ttl_seconds)

    def _is_finalized(self) -> bool:
        return self.settings.current()[VERSION] >= PROGRAM

    def _reap(self) -> None:
        if self.version == OLDEST:
            return
        self.deaths.reap()
        if self.cluster.knobs.upgrades:
            reap_old(self.store, self.sessions, self._heartbeats)

    def _make_jobs(self) -> None:
        by_session = SessionClaims(self.sessions)
        mixed = MixedClaims(self.sessions, self._heartbeats)
        old = OldClaims(self.sessions, self._heartbeats)

        def claims() -> Claims:
            if self.version == OLDEST:
                return old
            return by_session if self._is_finalized() else mixed

        self.jobs = TracingJobs(self.store, self.sessions, claims)
        self.jobs.panic_when(self._panics)
        self.runner = self._make_runner(self.name)
        self.deaths.on_death = self.runner.wake
        self._retention = JobRetention(self.store, self.jobs, self.settings.current)

    def _make_runner(self, registry: str) -> JobRunner:
        kinds = Labour(self, registry).kinds()
        return JobRunner(
            self.store, self.liveness.session, self.deaths, self.jobs, kinds, self.settings.current
        )

    def _start_loops(self, undo: ExitStack) -> None:
        heartbeat = self._loop("heartbeat", self.liveness.step)
        deaths = self._loop("deaths", self._follow_deaths, interrupt=self.deaths.wake)
        loops = [heartbeat, deaths, self._loop("reaper", self._reap)]
        if self.cluster.knobs.forgets:
            loops.append(self._loop("retention", self._retention.step))
        self._run_loops(undo, loops)
        undo.callback(self._drain_jobs)
        self._run_loops(undo, [self._loop("jobs", self.runner.step, interrupt=self.runner.wake)])
        undo.callback(close, self.liveness.drain)

    def _loop(self, name: str, step: Step, interrupt: Callable[[], None] = lambda: None) -> Loop:
        ttl_seconds = self.settings.current()[LIVENESS_TTL]
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

    def _lost(self, session: NodeSession) -> None:
        for runner in (self.runner, *(second for second, _ in self.seconds)):
            runner.end_session(session)
        seen = self.cluster.trace.seen
        if self.version == OLDEST:
            seen["older instance found its row gone"] += 1
            return
        key = self.sessions._existence.key(*session.id)
        is_gone = self.cluster.trace.versions[key][-1].value is None
        seen["heartbeat found its row gone" if is_gone else "session given up alive"] += 1

    def _panics(self) -> bool:
        knobs, tape = self.cluster.knobs, self.cluster.tape
        return self.cluster.wire.is_faulty() and tape.chance(f"{self.machine.name}.panic", knobs.panic_rate)

    # ── two runners at once ────────────────────────────────────────────────────────────────────

    def run_second(self, seconds: float) -> None:
        """A second runner adopts beside the first, under the same session, for so long."""
        self._runners += 1
        runner = self._make_runner(f"{self.name}, runner {self._runners}")
        second = runner, self._loop("second jobs", runner.step, interrupt=runner.wake)
        self.seconds.append(second)
        second[1].start()
        self.env.sleep(seconds)
        if second in self.seconds:
            self.seconds.remove(second)
            self._drain_second(second)

    def _drain_second(self, second: tuple[JobRunner, Loop]) -> None:
        runner, loop = second
        loop.stop()
        runner.drain(timeout=DRAIN_SECONDS)

    # ── ending ─────────────────────────────────────────────────────────────────────────────────

    def stop(self) -> None:
        self._undo.close()

    def _drain_jobs(self) -> None:
        while self.seconds:
            self._drain_second(self.seconds.pop())
        if not self.runner.drain(timeout=DRAIN_SECONDS):
            self.cluster.trace.seen["drain without the end of all runs"] += 1

    def _release(self) -> None:
        session = self.liveness._session
        if session is not None:
            self.cluster.job_trace.releases[session.id] = self.name
        self.liveness.release()


def close(step: Callable[[], None]) -> None:
    """A store that is away must not keep a node from stopping."""
    try:
        step()
    except TenureError:
        pass
