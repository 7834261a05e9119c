"""The runner, step by step on a manual clock, where a run is over before its step is."""

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import OutcomeUnknown, SessionLost
from tenure.base.settings import JOBS_ADOPT_INTERVAL
from tenure.cluster.jobs.adoption import ADOPTED_MAX
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import NOBODY
from tenure.cluster.jobs.runner import SPACING_SECONDS
from tenure.cluster.jobs.runs import Lacking
from tenure.kv.keys import JOB_CONTROL
from tenure.kv.thresholds import publish_threshold
from tenure.storage.engine import Group, Outcome
from tests.unit.cluster.members import TTL_SECONDS, Member, expire, make_session
from tests.unit.cluster.works import Work
from tests.unit.kv.breaking import BreakingEngine, Deliver, cut_after_landing, cut_before_landing


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture(autouse=True)
def _started(member: Member, work: Work) -> None:
    member.start()
    member.make_runner(work.kinds())


# ── adopting ───────────────────────────────────────────────────────────────────────────────────


def test_a_job_made_while_no_runner_was_there_is_found_at_the_start(member: Member, work: Work) -> None:
    job = member.create_job()
    member.runner.step()
    assert work.runs == [(job.id, 1)]
    assert member.state(job) is JobState.SUCCEEDED


def test_a_job_made_later_is_found_by_the_watch(member: Member, work: Work, env: ManualEnv) -> None:
    member.runner.step()
    job = member.create_job()
    member.runner.step()
    assert member.state(job) is JobState.SUCCEEDED
    assert env.monotonic() <= 3 * SPACING_SECONDS


def test_a_job_that_succeeded_is_not_run_again(member: Member, work: Work) -> None:
    member.create_job()
    for _ in range(5):
        member.runner.step()
    assert len(work.runs) == 1


def test_one_step_adopts_a_bounded_number_and_the_next_comes_at_once(
    member: Member, work: Work, env: ManualEnv
) -> None:
    for _ in range(ADOPTED_MAX + 4):
        member.create_job()
    member.runner.step()
    assert len(work.runs) == ADOPTED_MAX
    member.runner.step()
    assert len(work.runs) == ADOPTED_MAX + 4
    assert env.monotonic() <= 3 * SPACING_SECONDS


def test_a_job_that_needs_what_the_process_lacks_is_left_alone(member: Member, other: Member) -> None:
    job = member.create_job(needs=["spark"])
    member.runner.step()
    assert (member.state(job), member.control(job).claim) == (JobState.PENDING, NOBODY)
    assert member.runner.lacks("spark")
    heavy = Work()
    other.start()
    other.make_runner(heavy.kinds(), has=["spark"]).step()
    assert other.state(job) is JobState.SUCCEEDED
    assert len(heavy.runs) == 1
    member.runner.step()
    assert not member.runner.lacks("spark")


def test_a_run_that_turns_out_to_need_more_leaves_its_job_to_others(
    member: Member, other: Member, work: Work
) -> None:
    work.errors = [Lacking("spark")]
    job = member.create_job()
    member.runner.step()
    assert (member.state(job), member.control(job).needs) == (JobState.PENDING, ("spark",))
    member.runner.step()
    assert len(work.runs) == 1
    other.start()
    other.make_runner(work.kinds(), has=["spark"]).step()
    assert other.state(job) is JobState.SUCCEEDED


def test_a_job_is_canceled_also_by_who_could_not_run_it(member: Member, work: Work) -> None:
    job = member.create_job(needs=["spark"])
    member.runner.step()
    member.transact(lambda txn: member.jobs.request_cancel(txn, job.id))
    member.runner.step()
    assert member.state(job) is JobState.CANCELED
    assert (work.runs, len(work.reverts)) == ([], 1)


def test_a_kind_that_nobody_knows_here_is_left_alone(member: Member) -> None:
    job = member.create_job("unheard of")
    member.runner.step()
    assert member.state(job) is JobState.PENDING


def test_without_a_session_nothing_is_adopted(other: Member, work: Work) -> None:
    other.make_runner(work.kinds())
    job = other.create_job()
    with pytest.raises(SessionLost):
        other.runner.step()
    other.start()
    other.runner.step()
    assert other.state(job) is JobState.SUCCEEDED


def test_two_runners_run_a_job_once(member: Member, other: Member, work: Work) -> None:
    other.start()
    other.make_runner(work.kinds())
    member.create_job()
    for _ in range(3):
        member.runner.step()
        other.runner.step()
    assert len(work.runs) == 1


def test_a_claim_that_another_runner_won_is_let_go(
    member: Member, other: Member, work: Work, engine: BreakingEngine
) -> None:
    other.start()
    other.make_runner(work.kinds())
    job = member.create_job()

    def other_first(group: Group, deliver: Deliver) -> list[Outcome]:
        engine.on_commit = None
        other.runner.step()
        return deliver(group)

    engine.on_commit = other_first
    for _ in range(3):
        member.runner.step()
    assert work.runs == [(job.id, 1)]


def test_a_claim_that_was_cut_off_is_tried_again_at_once(
    member: Member, work: Work, env: ManualEnv, engine: BreakingEngine
) -> None:
    job = member.create_job()
    engine.on_commit = cut_before_landing
    member.runner.step()
    engine.on_commit = None
    assert work.runs == []
    member.runner.step()
    assert work.runs == [(job.id, 1)]
    assert env.monotonic() <= 3 * SPACING_SECONDS


def test_a_claim_that_landed_unnoticed_is_taken_up_as_the_next_run(
    member: Member, work: Work, engine: BreakingEngine
) -> None:
    job = member.create_job()
    engine.on_commit = cut_after_landing
    engine.settle_errors.append(OutcomeUnknown("nobody can tell"))
    with pytest.raises(OutcomeUnknown):
        member.runner.step()
    engine.on_commit = None
    assert member.control(job).claim == member.liveness.session().id
    member.runner.step()
    assert work.runs == [(job.id, 2)]


def test_a_runner_that_fell_behind_the_threshold_starts_over_at_once(
    member: Member, work: Work, env: ManualEnv
) -> None:
    member.runner.step()
    job = member.create_job()
    keyspace, at = member.store.keyspace, member.store.snapshot().at
    member.transact(lambda txn: publish_threshold(txn, keyspace, keyspace.head(JOB_CONTROL), at))
    member.runner.step()
    member.runner.step()
    assert work.runs == [(job.id, 1)]
    assert env.monotonic() <= 3 * SPACING_SECONDS


@pytest.mark.setting("jobs.adopt_interval")
def test_an_idle_runner_waits_for_its_slow_poll(member: Member, env: ManualEnv) -> None:
    member.runner.step()
    member.runner.step()
    assert env.monotonic() == pytest.approx(member.settings[JOBS_ADOPT_INTERVAL])


# ── the claims of others ───────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("I26")
@pytest.mark.parametrize("loses_signals", [False, True])
def test_the_job_of_a_dead_node_is_adopted_when_its_session_has_expired(
    engine: BreakingEngine, env: ManualEnv, other: Member, work: Work, loses_signals: bool
) -> None:
    other.start()
    job = other.create_job()
    other.claim(job)
    engine.loses_signals = loses_signals
    member = Member(engine, env)
    member.start()
    member.make_runner(work.kinds())
    while member.state(job) is not JobState.SUCCEEDED:
        assert env.monotonic() < TTL_SECONDS + 1, "not adopted in time"
        assert env.monotonic() >= TTL_SECONDS or work.runs == []
        member.liveness.step()
        member.runner.step()
    assert work.runs == [(job.id, 2)]
    assert not member.deaths.is_alive(other.liveness.session().id)


@pytest.mark.invariant("I22")
def test_the_job_of_a_node_that_lives_is_left_alone(
    member: Member, other: Member, work: Work, env: ManualEnv
) -> None:
    other.start()
    job = other.create_job()
    fence = other.claim(job)
    while env.monotonic() < 3 * TTL_SECONDS:
        other.liveness.step()
        member.liveness.step()
        member.runner.step()
    assert work.runs == []
    assert member.control(job).claim == fence.session


@pytest.mark.parametrize("kind", ["heavy", "unheard of"])
def test_what_the_dead_left_but_nobody_here_can_run_keeps_no_runner_busy(
    member: Member, env: ManualEnv, kind: str
) -> None:
    session = make_session(member)
    job = member.create_job(kind)
    member.transact(lambda txn: member.jobs.claim(txn, job.id, session))
    expire(env)
    member.liveness.step()
    member.deaths.reap()
    assert member.deaths.is_dead(session)
    before = env.monotonic()
    for _ in range(3):
        member.liveness.step()
        member.runner.step()
    assert env.monotonic() - before >= 2 * member.settings[JOBS_ADOPT_INTERVAL]
