"""A run as its function sees it: progress, fenced transactions, and being told to stop."""

from collections.abc import Callable

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import FenceLost, Unavailable
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import NOBODY
from tenure.cluster.jobs.runs import JobKind, Run, Stopped
from tenure.kv import watch
from tenure.kv.transaction import Transaction
from tenure.storage.engine import Group, Outcome
from tests.unit.cluster.members import Member, expire
from tests.unit.kv.breaking import BreakingEngine, Deliver


@pytest.fixture(autouse=True)
def _started(member: Member, other: Member) -> None:
    member.start()
    other.start()


def run_once(member: Member, work: Callable[[Run], None]) -> None:
    """Lets a runner adopt whatever there is, with this as what a job does."""
    member.make_runner({"work": JobKind(work)}).step()


def count(member: Member, name: str = "count") -> int:
    value = member.store.snapshot().get(member.store.keyspace.key(100, [name]))
    return int(value or b"0")


def add_one(member: Member, txn: Transaction, name: str = "count") -> None:
    key = member.store.keyspace.key(100, [name])
    txn.put(key, b"%d" % (int(txn.get(key) or b"0") + 1))


def test_a_run_starts_from_what_the_former_one_saved(member: Member) -> None:
    job = member.create_job(payload=b"what to do")
    seen: list[tuple[bytes, float, bytes]] = []

    def work(run: Run) -> None:
        seen.append((run.job.payload, run.progress.fraction, run.progress.data))
        if len(seen) == 1:
            run.checkpoint(fraction=0.5, status="half", data=b"at row 5")
            raise Unavailable("away")

    run_once(member, work)
    while member.state(job) is not JobState.SUCCEEDED:
        member.runner.step()
    assert seen == [(b"what to do", 0.0, b""), (b"what to do", 0.5, b"at row 5")]
    assert member.jobs.progress(member.store.snapshot(), job.id).status == "half"


def test_progress_and_effects_of_a_checkpoint_are_one(member: Member) -> None:
    job = member.create_job()

    def fail(txn: Transaction) -> None:
        add_one(member, txn)
        raise Unavailable("away")

    def work(run: Run) -> None:
        if run.progress.fraction == 0.0:
            run.checkpoint(fraction=0.5, also=lambda txn: add_one(member, txn))
            run.checkpoint(fraction=0.9, also=fail)
        assert run.progress.fraction == 0.5

    run_once(member, work)
    while member.state(job) is not JobState.SUCCEEDED:
        member.runner.step()
    assert count(member) == 1


@pytest.mark.invariant("I23")
def test_a_run_that_outlived_its_session_writes_nothing(
    member: Member, other: Member, env: ManualEnv
) -> None:
    job = member.create_job()
    refused: list[FenceLost] = []

    def work(run: Run) -> None:
        run.transact(lambda txn: add_one(member, txn))
        expire(env)
        assert other.deaths.bury(run.fence.session)
        with pytest.raises(FenceLost) as caught:
            run.transact(lambda txn: add_one(member, txn))
        refused.append(caught.value)
        raise caught.value

    run_once(member, work)
    assert len(refused) == 1
    assert count(member) == 1
    assert other.control(job).state is JobState.RUNNING


@pytest.mark.invariant("I24")
def test_a_run_that_was_taken_over_has_no_effect_after_its_successor(
    member: Member, other: Member, env: ManualEnv
) -> None:
    job = member.create_job()

    def successor(run: Run) -> None:
        assert run.fence.run == 2
        run.transact(lambda txn: add_one(other, txn))

    def work(run: Run) -> None:
        expire(env)
        other.liveness.step()
        assert other.deaths.bury(run.fence.session)
        run_once(other, successor)
        run.transact(lambda txn: add_one(member, txn))

    run_once(member, work)
    assert count(other) == 1
    assert other.state(job) is JobState.SUCCEEDED


@pytest.mark.parametrize("act", ["check", "sleep", "transact", "checkpoint"])
def test_a_run_that_was_told_to_stop_stops_at_whatever_it_does_next(member: Member, act: str) -> None:
    acts: dict[str, Callable[[Run], object]] = {
        "check": lambda run: run.check(),
        "sleep": lambda run: run.sleep(1),
        "transact": lambda run: run.transact(lambda txn: add_one(member, txn)),
        "checkpoint": lambda run: run.checkpoint(fraction=1.0),
    }
    stopped: list[str] = []

    def work(run: Run) -> None:
        if run.fence.run > 1:
            return
        run.stop()
        try:
            acts[act](run)
        except Stopped:
            stopped.append(act)
            raise

    job = member.create_job()
    run_once(member, work)
    assert stopped == [act]
    assert (member.state(job), count(member)) == (JobState.RUNNING, 0)
    member.runner.step()
    assert member.control(job).run == 2
    assert member.state(job) is JobState.SUCCEEDED


def test_losing_the_session_stops_its_runs(member: Member, other: Member, env: ManualEnv) -> None:
    member.create_job()
    stopped: list[bool] = []

    def work(run: Run) -> None:
        expire(env)
        assert other.deaths.bury(run.fence.session)
        run.check()
        member.liveness.step()
        try:
            run.check()
        except Stopped:
            stopped.append(True)
            raise

    run_once(member, work)
    assert stopped == [True]
    assert len(member.lost) == 1


def test_a_run_that_begins_after_its_session_was_lost_is_stopped(
    member: Member, engine: BreakingEngine
) -> None:
    member.create_job()
    session = member.liveness.session()
    reached: list[bool] = []

    def work(run: Run) -> None:
        run.check()
        reached.append(True)

    def lost_after_the_claim(group: Group, deliver: Deliver) -> list[Outcome]:
        outcomes = deliver(group)
        engine.on_commit = None
        session.done.set()
        member.runner.end_session(session)
        return outcomes

    engine.on_commit = lost_after_the_claim
    run_once(member, work)
    assert reached == []


def test_a_run_is_not_stopped_by_news_from_before_its_claim(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "BATCH_ROWS", 1)
    checked: list[int] = []

    def work(run: Run) -> None:
        member.runner.step()  # takes in the next job's creation, not yet the claim of this one
        run.check()
        checked.append(run.fence.run)

    member.make_runner({"work": JobKind(work)}).step()
    job = member.create_job()
    member.create_job("unheard of")
    member.runner.step()
    assert checked == [1]
    assert member.state(job) is JobState.SUCCEEDED


def test_a_drain_gives_the_claim_to_the_next_node_at_once(member: Member, other: Member) -> None:
    job = member.create_job()

    def work(run: Run) -> None:
        member.runner.drain(timeout=0)
        run.check()

    run_once(member, work)
    assert (member.state(job), member.control(job).claim) == (JobState.PENDING, NOBODY)
    run_once(other, lambda run: None)
    assert other.state(job) is JobState.SUCCEEDED


def test_a_runner_that_drains_adopts_nothing(member: Member) -> None:
    runner = member.make_runner({"work": JobKind(lambda run: None)})
    assert runner.drain(timeout=0)
    job = member.create_job()
    runner.step()
    assert member.state(job) is JobState.PENDING
