"""Claims and the fence: one claimant, moved only from the dead, and no write without all three."""

from typing import Any

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import FenceLost, IllegalStep, RetryError, SessionLost
from tenure.cluster.jobs.job_errors import JobError
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import NOBODY, Fence, Job, JobProgress
from tenure.kv.transaction import Transaction
from tests.unit.cluster.members import Member, expire, make_session


@pytest.fixture(autouse=True)
def _sessions(member: Member, other: Member) -> None:
    member.start()
    other.start()


@pytest.fixture
def job(member: Member) -> Job:
    return member.create_job()


def try_claim(member: Member, job: Job) -> Fence | None:
    session = member.liveness.session().id
    return member.transact(lambda txn: member.jobs.claim(txn, job.id, session))


def effect(member: Member, fence: Fence, name: str = "effect") -> None:
    """An effect of a run, under its fence."""

    def work(txn: Transaction) -> None:
        member.jobs.fenced(txn, fence)
        txn.put(member.store.keyspace.key(100, [name]), b"1")

    member.transact(work)


def has_effect(member: Member, name: str = "effect") -> bool:
    return member.store.snapshot().get(member.store.keyspace.key(100, [name])) is not None


# ── claims ─────────────────────────────────────────────────────────────────────────────────────


def test_a_claim_makes_a_pending_job_run_under_its_session(member: Member, job: Job) -> None:
    fence = member.claim(job)
    session = member.liveness.session().id
    assert fence == Fence(job.id, session, 1, JobState.RUNNING)
    control = member.control(job)
    assert (control.claim, control.claim_instance) == (session, session.instance)
    assert control.started_at > 0


def test_of_two_that_claim_at_once_one_gets_the_job(member: Member, other: Member, job: Job) -> None:
    txns = [each.store.begin() for each in (member, other)]
    for each, txn in zip((member, other), txns, strict=True):
        assert each.jobs.claim(txn, job.id, each.liveness.session().id) is not None
    txns[0].commit()
    with pytest.raises(RetryError):
        txns[1].commit()
    assert member.control(job).claim == member.liveness.session().id


@pytest.mark.invariant("I22")
def test_the_job_of_a_live_session_is_not_to_be_had(member: Member, other: Member, job: Job) -> None:
    fence = member.claim(job)
    assert try_claim(other, job) is None
    effect(member, fence)


@pytest.mark.invariant("I22")
def test_an_expired_session_that_is_still_there_keeps_its_claims(
    member: Member, other: Member, job: Job, env: ManualEnv
) -> None:
    fence = member.claim(job)
    expire(env)
    assert try_claim(other, job) is None
    effect(member, fence)


@pytest.mark.invariant("I22")
def test_the_job_of_a_dead_session_is_taken_over_as_the_next_run(
    member: Member, other: Member, job: Job, env: ManualEnv
) -> None:
    former = member.claim(job)
    expire(env)
    assert other.deaths.bury(former.session)
    fence = other.claim(job)
    assert (fence.session, fence.run) == (other.liveness.session().id, former.run + 1)
    assert other.control(job).claim_instance == fence.session.instance


@pytest.mark.invariant("I22")
def test_a_takeover_that_lost_to_a_change_of_the_claim_is_refused(
    member: Member, other: Member, job: Job, env: ManualEnv
) -> None:
    former = member.claim(job)
    expire(env)
    assert other.deaths.bury(former.session)
    txn = other.store.begin()
    assert other.jobs.claim(txn, job.id, other.liveness.session().id) is not None
    third = make_session(other)
    assert other.transact(lambda each: other.jobs.claim(each, job.id, third)) is not None
    with pytest.raises(RetryError):
        txn.commit()
    assert other.control(job).claim == third


@pytest.mark.invariant("I22")
def test_a_session_that_is_gone_claims_nothing(member: Member, other: Member, job: Job) -> None:
    session = member.liveness.session().id
    member.liveness.release()
    with pytest.raises(SessionLost):
        other.transact(lambda txn: other.jobs.claim(txn, job.id, session))
    assert other.control(job).claim == NOBODY


@pytest.mark.invariant("I22")
def test_a_claim_whose_session_is_deleted_before_it_commits_does_not_land(
    member: Member, other: Member, job: Job
) -> None:
    session = make_session(other)
    txn = other.store.begin()
    assert other.jobs.claim(txn, job.id, session) is not None
    member.transact(lambda each: member.sessions.release(each, session))
    with pytest.raises(RetryError):
        txn.commit()
    assert member.control(job).claim == NOBODY


def test_a_released_claim_is_to_be_had_at_once(member: Member, other: Member, job: Job) -> None:
    fence = member.claim(job)
    member.transact(lambda txn: member.jobs.release(txn, fence))
    assert (member.state(job), member.control(job).claim) == (JobState.PENDING, NOBODY)
    assert other.claim(job).run == 2


def test_a_paused_job_is_not_claimed(member: Member, job: Job) -> None:
    member.transact(lambda txn: member.jobs.request_pause(txn, job.id))
    fence = member.claim(job)
    assert fence.state is JobState.PAUSE_REQUESTED
    member.transact(lambda txn: member.jobs.step(txn, fence, JobState.PAUSED))
    assert member.control(job).claim == NOBODY
    assert try_claim(member, job) is None


# ── the fence ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("I23")
@pytest.mark.parametrize("wrong", ["session", "run", "state"])
def test_each_part_of_the_fence_counts(member: Member, other: Member, job: Job, wrong: str) -> None:
    fence = member.claim(job)
    parts: dict[str, Any] = {
        "session": other.liveness.session().id,
        "run": fence.run + 1,
        "state": JobState.REVERTING,
    }
    with pytest.raises(FenceLost):
        effect(member, fence._replace(**{wrong: parts[wrong]}))
    assert not has_effect(member)
    effect(member, fence)
    assert has_effect(member)


@pytest.mark.invariant("I23")
def test_a_run_whose_session_is_gone_writes_nothing_though_nobody_took_its_claim(
    member: Member, other: Member, job: Job
) -> None:
    session = make_session(other)
    fence = other.transact(lambda txn: other.jobs.claim(txn, job.id, session))
    assert fence is not None
    other.transact(lambda txn: other.sessions.release(txn, session))
    with pytest.raises(FenceLost):
        effect(other, fence)
    assert other.control(job).claim == session


@pytest.mark.invariant("I23")
@pytest.mark.parametrize("request_name", ["request_pause", "request_cancel"])
def test_a_write_in_flight_when_the_job_is_asked_to_stop_does_not_land(
    member: Member, job: Job, request_name: str
) -> None:
    fence = member.claim(job)
    txn = member.store.begin()
    member.jobs.fenced(txn, fence)
    txn.put(member.store.keyspace.key(100, ["effect"]), b"1")
    member.transact(lambda each: getattr(member.jobs, request_name)(each, job.id))
    with pytest.raises(RetryError):
        txn.commit()
    with pytest.raises(FenceLost):
        effect(member, fence)
    assert not has_effect(member)


@pytest.mark.invariant("I24")
def test_a_former_run_in_the_same_session_has_no_effect_once_the_next_has_begun(
    member: Member, job: Job
) -> None:
    former = member.claim(job)
    member.transact(lambda txn: member.jobs.request_pause(txn, job.id))
    member.transact(lambda txn: member.jobs.resume(txn, job.id))
    fence = member.claim(job)
    assert former._replace(run=fence.run) == fence
    with pytest.raises(FenceLost):
        effect(member, former, "former")
    effect(member, fence)
    assert (has_effect(member, "former"), has_effect(member)) == (False, True)


@pytest.mark.invariant("I24")
def test_between_a_resume_and_the_next_claim_nobody_writes(member: Member, job: Job) -> None:
    former = member.claim(job)
    member.transact(lambda txn: member.jobs.request_pause(txn, job.id))
    member.transact(lambda txn: member.jobs.resume(txn, job.id))
    with pytest.raises(FenceLost):
        effect(member, former)


def test_a_checkpoint_does_not_conflict_with_a_request(member: Member, job: Job) -> None:
    fence = member.claim(job)
    txn = member.store.begin()
    member.jobs.request_pause(txn, job.id)
    member.transact(lambda each: member.jobs.checkpoint(each, fence, JobProgress(job.id, 0.5)))
    txn.commit()
    assert member.state(job) is JobState.PAUSE_REQUESTED


def test_a_checkpoint_and_its_effects_land_together_or_not_at_all(member: Member, job: Job) -> None:
    fence = member.claim(job)

    def save(txn: Transaction, name: str, fraction: float, fence: Fence) -> None:
        txn.put(member.store.keyspace.key(100, [name]), b"1")
        member.jobs.checkpoint(txn, fence, JobProgress(job.id, fraction, "half", b"state"))

    member.transact(lambda txn: save(txn, "first", 0.5, fence))
    with pytest.raises(FenceLost):
        member.transact(lambda txn: save(txn, "second", 0.9, fence._replace(run=9)))
    progress = member.jobs.progress(member.store.snapshot(), job.id)
    assert progress == JobProgress(job.id, 0.5, "half", b"state")
    assert (has_effect(member, "first"), has_effect(member, "second")) == (True, False)


def test_a_checkpoint_ends_a_series_of_failed_attempts(member: Member, job: Job) -> None:
    fence = member.claim(job)
    member.transact(lambda txn: member.jobs.retry(txn, fence, error=JobError("away"), retry_at=0))
    assert member.control(job).attempts == 1
    fence = member.claim(job)
    member.transact(lambda txn: member.jobs.checkpoint(txn, fence, JobProgress(job.id, 0.5, data=b"half")))
    assert member.control(job).attempts == 0
    effect(member, fence)


def test_a_job_that_starts_over_each_time_has_got_nowhere_by_its_checkpoints(
    member: Member, job: Job
) -> None:
    for attempts in (1, 2, 3):
        fence = member.claim(job)
        save = JobProgress(job.id, 0.9, "almost")
        member.transact(lambda txn, fence=fence, save=save: member.jobs.checkpoint(txn, fence, save))
        member.transact(
            lambda txn, fence=fence: member.jobs.retry(txn, fence, error=JobError("in the way"), retry_at=0)
        )
        assert member.control(job).attempts == attempts


@pytest.mark.invariant("I25")
def test_a_run_takes_only_legal_steps(member: Member, job: Job) -> None:
    fence = member.claim(job)
    with pytest.raises(IllegalStep):
        member.transact(lambda txn: member.jobs.step(txn, fence, JobState.CANCELED))
    assert member.state(job) is JobState.RUNNING


@pytest.mark.invariant("I25")
def test_a_run_that_has_ended_its_job_writes_no_more(member: Member, job: Job) -> None:
    fence = member.claim(job)
    assert member.transact(lambda txn: member.jobs.step(txn, fence, JobState.SUCCEEDED)) is None
    for state in JobState:
        with pytest.raises(FenceLost):
            effect(member, fence._replace(state=state))
    with pytest.raises(FenceLost):
        member.transact(lambda txn: member.jobs.retry(txn, fence, error=JobError(""), retry_at=0))
    assert member.state(job) is JobState.SUCCEEDED
