"""Runners on real threads: watches, stops, drains, takeovers; and never two that have effects."""

import logging
import threading
from collections.abc import Callable, Iterator

import pytest

from tenure.base.env import SystemEnv
from tenure.base.errors import FenceLost
from tenure.base.loops import Loop
from tenure.base.settings import DEFINITIONS, JOBS_ADOPT_INTERVAL, LIVENESS_HEARTBEAT, LIVENESS_TTL, Settings
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import NOBODY, Job, JobControl
from tenure.cluster.jobs.runs import JobKind, Run, Stopped
from tenure.cluster.sessions.session_records import SessionId
from tenure.kv.keys import JOB_CONTROL, JOBS_ENDED
from tenure.kv.transaction import Transaction
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.cluster.members import Member, make_session
from tests.unit.kv.waiting import PATIENCE_SECONDS

QUICK = Settings(DEFINITIONS).with_value(LIVENESS_TTL, 0.5).with_value(LIVENESS_HEARTBEAT, 0.05)
_log = logging.getLogger("test")


class Cluster:
    """Members over one engine; `run` has loops drive one, as a node would."""

    def __init__(self) -> None:
        self.env = SystemEnv()
        self.engine = SqliteEngine(MEMORY, self.env)
        self._running: list[tuple[Member, list[Loop]]] = []

    def member(self, work: Callable[[Run], None], revert: Callable[[Run], None] = lambda run: None) -> Member:
        member = Member(self.engine, self.env, settings=QUICK)
        member.start()
        member.make_runner({"work": JobKind(work, revert)})
        return member

    def run(self, member: Member) -> Member:
        loops = [
            Loop(name, step, self.env, interval_seconds=1.0, backoff_max_seconds=0.1, log=_log)
            for name, step in (("heartbeat", member.liveness.step), ("jobs", member.runner.step))
        ]
        for loop in loops:
            loop.start()
        self._running.append((member, loops))
        return member

    def stop(self) -> None:
        for member, (heartbeat, jobs) in self._running:
            jobs.request_stop()
            member.runner.wake()
            jobs.stop()
            member.runner.drain(timeout=PATIENCE_SECONDS)
            heartbeat.stop()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    yield cluster
    cluster.stop()
    cluster.engine.close()


def await_control(member: Member, job: Job, is_there: Callable[[JobControl], bool]) -> JobControl:
    keyspace = member.store.keyspace
    spans = [keyspace.table_span(JOB_CONTROL), keyspace.table_span(JOBS_ENDED)]
    watch = member.store.watch(spans, since_at=member.store.snapshot().at)
    deadline = member.store.env.monotonic() + PATIENCE_SECONDS
    try:
        while not is_there(control := member.control(job)):
            left = deadline - member.store.env.monotonic()
            assert left > 0, f"the job is still {control.state.value}"
            watch.next(left, changes_only=True)
        return control
    finally:
        watch.close()


def await_state(member: Member, job: Job, state: JobState) -> JobControl:
    return await_control(member, job, lambda control: control.state is state)


def ask(member: Member, name: str, job: Job) -> None:
    member.transact(lambda txn: getattr(member.jobs, name)(txn, job.id))


def release(member: Member, session: SessionId) -> None:
    member.transact(lambda txn: member.sessions.release(txn, session))


def wait(event: threading.Event) -> None:
    assert event.wait(PATIENCE_SECONDS), "it did not happen"


def add_one(member: Member, txn: Transaction, name: str) -> None:
    key = member.store.keyspace.key(100, [name])
    txn.put(key, b"%d" % (int(txn.get(key) or b"0") + 1))


def count(member: Member, name: str) -> int:
    return int(member.store.snapshot().get(member.store.keyspace.key(100, [name])) or b"0")


class Sleeper:
    """What a long job does: it waits until it is stopped, and its later runs end at once."""

    def __init__(self) -> None:
        self.runs: list[int] = []
        self.began = threading.Event()
        self.stopped = threading.Event()

    def __call__(self, run: Run) -> None:
        self.runs.append(run.fence.run)
        if len(self.runs) > 1:
            return
        self.began.set()
        try:
            run.sleep(PATIENCE_SECONDS)
        except Stopped:
            self.stopped.set()
            raise


def test_a_job_is_adopted_by_the_watch_long_before_the_poll(cluster: Cluster) -> None:
    member = cluster.run(cluster.member(lambda run: None))
    assert member.settings[JOBS_ADOPT_INTERVAL] >= PATIENCE_SECONDS
    for _ in range(3):
        await_state(member, member.create_job(), JobState.SUCCEEDED)


def test_a_pause_stops_the_run_and_a_resume_starts_the_next(cluster: Cluster) -> None:
    work = Sleeper()
    member = cluster.run(cluster.member(work))
    job = member.create_job()
    wait(work.began)
    ask(member, "request_pause", job)
    wait(work.stopped)
    paused = await_state(member, job, JobState.PAUSED)
    assert paused.claim == NOBODY
    ask(member, "resume", job)
    ended = await_state(member, job, JobState.SUCCEEDED)
    assert work.runs == [1, ended.run]
    assert ended.run > paused.run


def test_a_cancel_stops_the_run_and_reverts(cluster: Cluster) -> None:
    work = Sleeper()
    reverts: list[int] = []
    member = cluster.run(cluster.member(work, lambda run: reverts.append(run.fence.run)))
    job = member.create_job()
    wait(work.began)
    ask(member, "request_cancel", job)
    await_state(member, job, JobState.CANCELED)
    assert work.stopped.is_set()
    assert (work.runs, reverts) == ([1], [2])


@pytest.mark.invariant("I24")
def test_a_run_that_ignores_its_stop_cannot_write_and_its_successor_waits_for_it(cluster: Cluster) -> None:
    began, go_on, refused, second = (threading.Event() for _ in range(4))

    def work(run: Run) -> None:
        if run.fence.run > 1:
            assert refused.is_set(), "two runs of one job at a time"
            second.set()
            return
        began.set()
        wait(go_on)
        try:
            member.transact(lambda txn: member.jobs.fenced(txn, run.fence))
        except FenceLost:
            refused.set()

    member = cluster.member(work)
    job = member.create_job()
    member.runner.step()
    wait(began)
    ask(member, "request_pause", job)
    ask(member, "resume", job)
    for _ in range(5):
        member.runner.wake()
        member.runner.step()
    assert not second.is_set()
    assert member.control(job).run == 1
    go_on.set()
    cluster.run(member)
    await_state(member, job, JobState.SUCCEEDED)
    assert second.is_set()


def test_losing_the_session_stops_its_runs_and_the_node_takes_the_job_up_anew(cluster: Cluster) -> None:
    work = Sleeper()
    member = cluster.run(cluster.member(work))
    former = member.liveness.session()
    job = member.create_job()
    wait(work.began)
    release(member, former.id)
    wait(work.stopped)
    control = await_state(member, job, JobState.SUCCEEDED)
    assert former.done.is_set()
    assert (work.runs, control.run) == ([1, 2], 2)


@pytest.mark.invariant("I26")
def test_the_job_of_a_dead_node_is_adopted_within_its_ttl_and_two_seconds(cluster: Cluster) -> None:
    member = cluster.member(lambda run: None)
    dead = make_session(member, ttl_seconds=member.settings[LIVENESS_TTL])
    job = member.create_job()
    assert member.transact(lambda txn: member.jobs.claim(txn, job.id, dead)) is not None
    began = cluster.env.monotonic()
    cluster.run(member)
    await_state(member, job, JobState.SUCCEEDED)
    assert cluster.env.monotonic() - began < member.settings[LIVENESS_TTL] + 2


def test_a_drain_stops_the_runs_and_leaves_their_jobs_to_others(cluster: Cluster) -> None:
    work = Sleeper()
    member = cluster.member(work)
    job = member.create_job()
    member.runner.step()
    wait(work.began)
    assert member.runner.drain(timeout=PATIENCE_SECONDS)
    assert (member.state(job), member.control(job).claim) == (JobState.PENDING, NOBODY)
    other = cluster.run(cluster.member(work))
    assert await_state(other, job, JobState.SUCCEEDED).run == 2


def test_a_drain_says_if_a_run_does_not_stop(cluster: Cluster) -> None:
    began, go_on = threading.Event(), threading.Event()

    def work(run: Run) -> None:
        began.set()
        wait(go_on)

    member = cluster.member(work)
    job = member.create_job()
    member.runner.step()
    wait(began)
    assert not member.runner.drain(timeout=0.05)
    go_on.set()
    assert member.runner.drain(timeout=PATIENCE_SECONDS)
    assert member.state(job) is JobState.SUCCEEDED


@pytest.mark.invariant("I24")
def test_runners_that_lose_their_sessions_again_and_again_have_each_effect_once(cluster: Cluster) -> None:
    outside = Member(cluster.engine, cluster.env)  # has no session, so nobody can declare it dead
    losses_over = threading.Event()

    def work(run: Run) -> None:
        while run.progress.fraction < 3:
            run.checkpoint(
                fraction=run.progress.fraction + 1,
                also=lambda txn: add_one(outside, txn, f"job {run.job.id}"),
            )
            while not losses_over.is_set():
                run.sleep(0.01)

    jobs = [outside.create_job() for _ in range(30)]
    members = [cluster.run(cluster.member(work)) for _ in range(3)]
    for job in jobs[:10]:
        await_control(outside, job, lambda control: control.run > 0)
        for present in list(outside.sessions.list(outside.store.snapshot())):
            if present.id.instance % len(members) == job.id % len(members):
                release(outside, present.id)
    losses_over.set()
    for job in jobs:
        await_state(outside, job, JobState.SUCCEEDED)
    assert max(outside.control(job).run for job in jobs) > 1, "no job was ever taken over"
    assert [count(outside, f"job {job.id}") for job in jobs] == [3] * len(jobs)
