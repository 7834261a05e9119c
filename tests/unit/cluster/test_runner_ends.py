"""How the runner takes a job to its end: success, failure, requests, and failures that pass."""

from itertools import pairwise

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import (
    DiskFull,
    NoPermission,
    OutcomeUnknown,
    RetryError,
    SnapshotTooOld,
    TenureError,
    Unavailable,
)
from tenure.cluster.jobs.attempts import RETRY_SECONDS, RETRY_SECONDS_MAX, retry_seconds
from tenure.cluster.jobs.job_states import TERMINAL, JobState
from tenure.cluster.jobs.job_table import NOBODY, Job
from tenure.cluster.jobs.runner import SPACING_SECONDS
from tenure.kv.keys import JOBS_ENDED
from tenure.storage.engine import Group, Outcome
from tests.unit.cluster.members import Member
from tests.unit.cluster.works import Work
from tests.unit.kv.breaking import BreakingEngine, Deliver, cut_after_landing


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture(autouse=True)
def _started(member: Member, work: Work) -> None:
    member.start()
    member.make_runner(work.kinds())


def ask(member: Member, name: str, job: Job) -> None:
    member.transact(lambda txn: getattr(member.jobs, name)(txn, job.id))


def writes(group: Group, member: Member, table: int) -> bool:
    span = member.store.keyspace.table_span(table)
    return any(span.lo <= write.key < span.hi for commit in group.members for write in commit.writes)


# ── ending ─────────────────────────────────────────────────────────────────────────────────────


def test_a_job_that_fails_is_reverted_in_the_same_run(member: Member, work: Work) -> None:
    job = member.create_job()
    work.errors.append(ValueError("no such file"))
    member.runner.step()
    control = member.control(job)
    assert (control.state, control.error_text) == (JobState.FAILED, "XX000 ValueError: no such file")
    assert (work.runs, work.reverts) == ([(job.id, 1)], [(job.id, 1)])


def test_a_run_is_not_stopped_by_its_own_step(member: Member, work: Work, engine: BreakingEngine) -> None:
    job = member.create_job()
    member.runner.step()
    work.errors.append(ValueError("no such file"))
    job = member.create_job()

    def step_seen_first(group: Group, deliver: Deliver) -> list[Outcome]:
        outcomes = deliver(group)
        engine.on_commit = None
        member.runner.step()  # sees the claim, or the step to reverting, before the run knows of it
        return outcomes

    def after_claim(group: Group, deliver: Deliver) -> list[Outcome]:
        engine.on_commit = step_seen_first
        return deliver(group)

    engine.on_commit = after_claim
    member.runner.step()
    assert member.state(job) is JobState.FAILED
    assert work.reverts == [(job.id, 1)]


def test_a_revert_that_fails_ends_the_job_as_such(member: Member, work: Work) -> None:
    job = member.create_job()
    work.errors.append(ValueError("first"))
    work.revert_errors.append(ValueError("second"))
    member.runner.step()
    control = member.control(job)
    assert control.state is JobState.REVERT_FAILED
    assert tuple(each.text for each in control.errors) == (
        "XX000 ValueError: first",
        "XX000 ValueError: second",
    )


def test_a_canceled_job_is_reverted_without_being_run(member: Member, work: Work) -> None:
    job = member.create_job()
    ask(member, "request_cancel", job)
    member.runner.step()
    assert member.state(job) is JobState.CANCELED
    assert (work.runs, work.reverts) == ([], [(job.id, 1)])


def test_a_paused_job_can_be_canceled(member: Member, work: Work) -> None:
    job = member.create_job()
    ask(member, "request_pause", job)
    member.runner.step()
    ask(member, "request_cancel", job)
    member.runner.step()
    assert member.state(job) is JobState.CANCELED
    assert work.runs == []


def test_a_job_paused_before_it_ran_waits_for_its_resume(member: Member, work: Work) -> None:
    job = member.create_job()
    ask(member, "request_pause", job)
    member.runner.step()
    assert (member.state(job), member.control(job).claim) == (JobState.PAUSED, NOBODY)
    member.runner.step()
    assert work.runs == []
    ask(member, "resume", job)
    member.runner.step()
    assert work.runs == [(job.id, 2)]
    assert member.state(job) is JobState.SUCCEEDED


# ── failing for a passing reason ───────────────────────────────────────────────────────────────


def test_an_attempt_that_the_store_failed_is_repeated_later(
    member: Member, work: Work, env: ManualEnv
) -> None:
    job = member.create_job()
    work.errors += [Unavailable("away"), Unavailable("still away")]
    member.runner.step()
    control = member.control(job)
    assert (control.state, control.attempts, control.error_text) == (JobState.PENDING, 1, "away")
    assert control.claim == NOBODY
    times = [env.monotonic()]
    while member.state(job) is not JobState.SUCCEEDED:
        runs = len(work.runs)
        member.runner.step()
        if len(work.runs) > runs:
            times.append(env.monotonic())
    assert [later - time for time, later in pairwise(times)] == [
        pytest.approx(RETRY_SECONDS, abs=2 * SPACING_SECONDS),
        pytest.approx(2 * RETRY_SECONDS, abs=2 * SPACING_SECONDS),
    ]
    assert work.reverts == []


def test_a_job_that_always_finds_somebody_in_the_way_fails_after_so_many_attempts(
    member: Member, work: Work
) -> None:
    member.make_runner(work.kinds(attempts_max=3))
    job = member.create_job()
    work.errors += [RetryError("in the way")] * 5
    while member.state(job) is not JobState.FAILED:
        member.runner.step()
    assert member.control(job).error_text == "40001 in the way"
    assert [run for _, run in work.runs] == [1, 2, 3]
    assert work.reverts == [(job.id, 3)]


@pytest.mark.parametrize("error", [DiskFull("no space left"), NoPermission("not allowed")])
def test_a_job_that_an_operator_has_to_unblock_fails_after_so_many_attempts(
    member: Member, work: Work, error: TenureError
) -> None:
    member.make_runner(work.kinds(blocked_attempts_max=3))
    job = member.create_job()
    work.errors += [Unavailable("away"), *[error] * 5]
    while member.state(job) is not JobState.FAILED:
        member.runner.step()
    assert member.control(job).error_text == f"{error.sqlstate} {error}"
    assert len(work.runs) == 3
    assert work.reverts == [(job.id, 3)]


def test_a_revert_without_space_is_repeated_until_there_is_some(member: Member, work: Work) -> None:
    member.make_runner(work.kinds(blocked_attempts_max=1))
    job = member.create_job()
    work.errors.append(DiskFull("no space left"))
    work.revert_errors += [DiskFull("no space left")] * 3
    while member.state(job) is not JobState.FAILED:
        member.runner.step()
    assert len(work.reverts) == 4


def test_a_store_that_is_away_is_waited_for_however_often(member: Member, work: Work) -> None:
    member.make_runner(work.kinds(attempts_max=2))
    job = member.create_job()
    work.errors += [Unavailable("away")] * 4
    while member.state(job) is not JobState.SUCCEEDED:
        member.runner.step()
    assert len(work.runs) == 5


def test_the_pause_between_attempts_doubles_up_to_its_bound() -> None:
    assert [retry_seconds(attempts) for attempts in (0, 1, 2)] == [1.0, 2.0, 4.0]
    assert retry_seconds(10_000) == RETRY_SECONDS_MAX


@pytest.mark.parametrize(("times", "state"), [(2, JobState.SUCCEEDED), (9, JobState.FAILED)])
def test_a_job_that_finds_history_gone_reads_anew_a_few_times(
    member: Member, work: Work, times: int, state: JobState
) -> None:
    """Its process may have stood still between two reads."""
    job = member.create_job()
    work.errors += [SnapshotTooOld("history is gone")] * times
    while member.state(job) not in TERMINAL:
        member.runner.step()
    assert (member.state(job), len(work.runs)) == (state, 3)


def test_a_revert_that_finds_history_gone_reads_anew(member: Member, work: Work) -> None:
    job = member.create_job()
    work.errors.append(ValueError("wrong"))
    work.revert_errors += [SnapshotTooOld("history is gone")] * 5
    while member.state(job) not in TERMINAL:
        member.runner.step()
    assert (member.state(job), len(work.reverts)) == (JobState.FAILED, 6)


def test_a_revert_that_the_store_failed_is_repeated_as_a_revert(member: Member, work: Work) -> None:
    job = member.create_job()
    work.errors.append(ValueError("wrong"))
    work.revert_errors.append(Unavailable("away"))
    member.runner.step()
    assert member.state(job) is JobState.REVERTING
    while member.state(job) is JobState.REVERTING:
        member.runner.step()
    assert member.state(job) is JobState.FAILED
    assert (work.runs, work.reverts) == ([(job.id, 1)], [(job.id, 1), (job.id, 2)])


def test_a_panic_inside_the_terminal_step_is_repeated_later(
    member: Member, work: Work, env: ManualEnv, engine: BreakingEngine
) -> None:
    def panic_once(group: Group, deliver: Deliver) -> list[Outcome]:
        if not writes(group, member, JOBS_ENDED):
            return deliver(group)
        engine.on_commit = None
        raise ZeroDivisionError("a bug")

    job = member.create_job()
    engine.on_commit = panic_once
    member.runner.step()
    assert (member.state(job), member.control(job).error_text) == (JobState.PENDING, "a bug")
    while member.state(job) is not JobState.SUCCEEDED:
        member.runner.step()
    assert env.monotonic() >= RETRY_SECONDS
    assert work.runs == [(job.id, 1), (job.id, 2)]


@pytest.mark.invariant("I25")
def test_a_terminal_step_that_landed_unnoticed_is_final(
    member: Member, work: Work, engine: BreakingEngine
) -> None:
    def cut_the_end(group: Group, deliver: Deliver) -> list[Outcome]:
        if not writes(group, member, JOBS_ENDED):
            return deliver(group)
        engine.on_commit = None
        return cut_after_landing(group, deliver)

    job = member.create_job()
    engine.on_commit = cut_the_end
    engine.settle_errors.append(OutcomeUnknown("nobody can tell"))
    for _ in range(3):
        member.runner.step()
    assert member.state(job) is JobState.SUCCEEDED
    assert work.runs == [(job.id, 1)]
