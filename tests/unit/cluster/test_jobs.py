"""Jobs as records: created with what they belong to, asked to pause, resume and cancel, forgotten."""

from collections.abc import Callable

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import IllegalStep, UnknownJob
from tenure.cluster.jobs.job_errors import JobError
from tenure.cluster.jobs.job_states import TERMINAL, JobState
from tenure.cluster.jobs.job_table import (
    ERROR_CHARS_MAX,
    ERRORS_MAX,
    PAST_ERROR_CHARS_MAX,
    Fence,
    Job,
    JobControl,
)
from tenure.kv.keys import JOB_CONTROL, JOB_PROGRESS, JOBS, JOBS_ENDED
from tenure.kv.transaction import Transaction
from tests.unit.cluster.members import Member
from tests.unit.kv.breaking import BreakingEngine


@pytest.fixture(autouse=True)
def _session(member: Member) -> None:
    member.start()


def step(member: Member, fence: Fence, state: JobState) -> Fence | None:
    return member.transact(lambda txn: member.jobs.step(txn, fence, state))


def end(member: Member, job: Job, state: JobState = JobState.SUCCEEDED) -> None:
    fence = member.claim(job)
    if state is not JobState.SUCCEEDED:
        reverting = step(member, fence, JobState.REVERTING)
        assert reverting is not None
        fence = reverting
    assert step(member, fence, state) is None


def bring(member: Member, state: JobState) -> Job:
    """Makes a job and takes it to a state by legal steps."""
    job = member.create_job()
    if state in TERMINAL:
        end(member, job, state)
    if state in (JobState.RUNNING, JobState.REVERTING):
        fence = member.claim(job)
        if state is JobState.REVERTING:
            step(member, fence, JobState.REVERTING)
    if state in (JobState.PAUSE_REQUESTED, JobState.PAUSED):
        member.transact(lambda txn: member.jobs.request_pause(txn, job.id))
        if state is JobState.PAUSED:
            step(member, member.claim(job), JobState.PAUSED)
    if state is JobState.CANCEL_REQUESTED:
        member.transact(lambda txn: member.jobs.request_cancel(txn, job.id))
    assert member.state(job) is state
    return job


# ── creating ───────────────────────────────────────────────────────────────────────────────────


def test_a_job_has_what_it_was_given(member: Member) -> None:
    job = member.transact(
        lambda txn: member.jobs.create(txn, kind="backup", payload=b"p", owner="ann", description="BACKUP")
    )
    assert member.jobs.get(member.store.snapshot(), job.id) == job
    assert (job.kind, job.payload, job.owner, job.description) == ("backup", b"p", "ann", "BACKUP")
    assert member.control(job) == JobControl(job.id, "backup", JobState.PENDING)
    assert member.jobs.progress(member.store.snapshot(), job.id).fraction == 0.0


def test_a_job_is_created_with_the_transaction_that_wants_it_or_not_at_all(member: Member) -> None:
    txn = member.store.begin()
    job = member.jobs.create(txn, kind="work")
    assert member.jobs.get(txn, job.id) == job
    txn.rollback()
    assert list(member.jobs.list(member.store.snapshot())) == []
    assert list(member.jobs.open(member.store.snapshot())) == []


def test_jobs_are_listed_in_the_order_of_their_creation(member: Member) -> None:
    created = [member.create_job() for _ in range(3)]
    end(member, created[1])
    listed = list(member.jobs.list(member.store.snapshot()))
    assert [job.id for job, _, _ in listed] == [job.id for job in created]
    assert [control.state for _, control, _ in listed] == [
        JobState.PENDING,
        JobState.SUCCEEDED,
        JobState.PENDING,
    ]


def test_tenants_see_none_of_each_others_jobs(engine: BreakingEngine, env: ManualEnv) -> None:
    first, second = (Member(engine, env, tenant=number) for number in (3, 4))
    second.start()
    job = first.create_job()
    assert list(second.jobs.list(second.store.snapshot())) == []
    assert second.jobs.control(second.store.snapshot(), job.id) is None
    session = second.liveness.session().id
    assert second.transact(lambda txn: second.jobs.claim(txn, job.id, session)) is None
    with pytest.raises(UnknownJob):
        second.transact(lambda txn: second.jobs.request_cancel(txn, job.id))


# ── requests ───────────────────────────────────────────────────────────────────────────────────

PAUSES = {JobState.PENDING, JobState.RUNNING, JobState.PAUSE_REQUESTED}
CANCELS = {
    JobState.PENDING,
    JobState.RUNNING,
    JobState.PAUSE_REQUESTED,
    JobState.PAUSED,
    JobState.CANCEL_REQUESTED,
}
RESUMES = {JobState.PENDING, JobState.RUNNING, JobState.PAUSE_REQUESTED, JobState.PAUSED}


def ask(member: Member, request: Callable[[Transaction, int], None], state: JobState) -> JobState | None:
    """The state that a request leads to from a given one; None if it is refused."""
    job = bring(member, state)
    try:
        member.transact(lambda txn: request(txn, job.id))
    except IllegalStep:
        assert member.state(job) is state
        return None
    return member.state(job)


@pytest.mark.invariant("I25")
@pytest.mark.parametrize("state", JobState)
def test_a_pause_is_only_requested_and_only_of_what_has_not_ended(member: Member, state: JobState) -> None:
    asked = ask(member, member.jobs.request_pause, state)
    assert asked is (JobState.PAUSE_REQUESTED if state in PAUSES else None)


@pytest.mark.invariant("I25")
@pytest.mark.parametrize("state", JobState)
def test_a_cancel_is_only_requested_and_only_of_what_does_not_revert(member: Member, state: JobState) -> None:
    asked = ask(member, member.jobs.request_cancel, state)
    assert asked is (JobState.CANCEL_REQUESTED if state in CANCELS else None)


@pytest.mark.invariant("I25")
@pytest.mark.parametrize("state", JobState)
def test_a_resume_takes_back_a_pause_and_nothing_else(member: Member, state: JobState) -> None:
    expected = {JobState.RUNNING: JobState.RUNNING}.get(state, JobState.PENDING)
    asked = ask(member, member.jobs.resume, state)
    assert asked is (expected if state in RESUMES else None)


@pytest.mark.parametrize("request_name", ["request_pause", "request_cancel", "resume"])
def test_a_job_that_is_not_there_cannot_be_asked(member: Member, request_name: str) -> None:
    with pytest.raises(UnknownJob, match="job 5 does not exist"):
        member.transact(lambda txn: getattr(member.jobs, request_name)(txn, 5))


def test_a_resume_gives_the_next_run_a_number_of_its_own(member: Member) -> None:
    job = member.create_job()
    first = member.claim(job)
    member.transact(lambda txn: member.jobs.request_pause(txn, job.id))
    member.transact(lambda txn: member.jobs.resume(txn, job.id))
    second = member.claim(job)
    assert (first.run, second.run) == (1, 2)
    assert (first.session, first.state) == (second.session, second.state)


# ── ending ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("I25")
@pytest.mark.parametrize("state", [state for state in JobState if state in TERMINAL])
def test_a_job_that_has_ended_is_neither_claimed_nor_open(member: Member, state: JobState) -> None:
    job = bring(member, state)
    session = member.liveness.session().id
    assert member.transact(lambda txn: member.jobs.claim(txn, job.id, session)) is None
    assert list(member.jobs.open(member.store.snapshot())) == []
    assert member.control(job).finished_at > 0


def test_adoption_looks_at_open_jobs_alone(member: Member, engine: BreakingEngine) -> None:
    for _ in range(5):
        end(member, member.create_job())
    job = member.create_job()
    engine.scans.clear()
    assert [control.id for control in member.jobs.open(member.store.snapshot())] == [job.id]
    ended = member.store.keyspace.table_span(JOBS_ENDED)
    assert not any(scan.lo < ended.hi and ended.lo < scan.hi for scan in engine.scans)


def test_a_failure_is_kept_with_those_before_it_up_to_a_bound(member: Member) -> None:
    job = member.create_job()
    for number in range(ERRORS_MAX + 5):
        fence = member.claim(job)

        def retry(txn: Transaction, fence: Fence = fence, error: str = f"error {number}") -> None:
            member.jobs.retry(txn, fence, error=JobError(error), retry_at=7)

        member.transact(retry)
    control = member.control(job)
    assert control.error == JobError("error 14")
    assert control.errors == tuple(JobError(f"error {number}") for number in range(5, 15))
    assert (control.state, control.attempts, control.retry_at) == (JobState.PENDING, 15, 7)


def test_an_endless_error_is_cut(member: Member) -> None:
    job = member.create_job()
    fence = member.claim(job)
    member.transact(lambda txn: member.jobs.retry(txn, fence, error=_error(1_000_000), retry_at=7))
    control = member.control(job)
    assert control.error == _error(ERROR_CHARS_MAX - 1, "…")
    assert control.errors == (_error(PAST_ERROR_CHARS_MAX - 1, "…"),)


def _error(chars: int, end: str = "") -> JobError:
    return JobError("m" * chars + end, detail="d" * chars + end, hint="h" * chars + end)


def test_a_job_that_reverts_remembers_whether_it_was_canceled(member: Member) -> None:
    job = bring(member, JobState.CANCEL_REQUESTED)
    step(member, member.claim(job), JobState.REVERTING)
    assert member.control(job).canceled
    failed = bring(member, JobState.REVERTING)
    assert not member.control(failed).canceled


# ── forgetting ─────────────────────────────────────────────────────────────────────────────────


def forget(member: Member, before_at: int, *, limit: int) -> list[int | None]:
    """Goes through all ended jobs, a bounded number a transaction; returns the places it stopped at."""
    stops: list[int | None] = [0]
    while (after := stops[-1]) is not None:

        def look(txn: Transaction, after: int = after) -> int | None:
            return member.jobs.forget_ended(txn, before_at, after=after, limit=limit)

        stops.append(member.transact(look))
    return stops[1:]


def test_jobs_that_ended_long_ago_are_forgotten_wholly(member: Member, env: ManualEnv) -> None:
    still_open, ended, later = (member.create_job() for _ in range(3))
    end(member, ended)
    env.advance(10)
    before_at = member.store.clock.now()
    end(member, later)
    forget(member, before_at, limit=10)
    assert [job.id for job, _, _ in member.jobs.list(member.store.snapshot())] == [still_open.id, later.id]
    keyspace, snapshot = member.store.keyspace, member.store.snapshot()
    kept = {table: len(list(snapshot.scan(keyspace.table_span(table)))) for table in (JOBS, JOBS_ENDED)}
    assert kept == {JOBS: 2, JOBS_ENDED: 1}
    assert len(list(snapshot.scan(keyspace.table_span(JOB_CONTROL)))) == 1
    assert len(list(snapshot.scan(keyspace.table_span(JOB_PROGRESS)))) == 0


def test_old_jobs_behind_many_young_ones_are_forgotten_too(member: Member, env: ManualEnv) -> None:
    young = [member.create_job() for _ in range(7)]
    old = member.create_job()
    end(member, old)
    env.advance(10)
    before_at = member.store.clock.now()
    for job in young:
        end(member, job)
    stops = forget(member, before_at, limit=3)
    assert member.jobs.get(member.store.snapshot(), old.id) is None
    assert stops == [young[2].id, young[5].id, None]
    assert all(member.state(job) is JobState.SUCCEEDED for job in young)
