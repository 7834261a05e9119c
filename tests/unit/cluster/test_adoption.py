"""Adopting: several free jobs at a time, few reads, rivals that part, and never a spin."""

from collections.abc import Callable

import pytest

from tenure.base.env import ManualEnv, Task
from tenure.base.errors import InputOutput, NewerFormat, RetryError, SessionLost
from tenure.cluster.jobs.adoption import ADOPTED_MAX, UNCONTESTED
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import Job
from tenure.cluster.jobs.runner import SPACING_SECONDS
from tenure.cluster.jobs.runs import JobKind, Run
from tenure.kv.keys import EXPIRATIONS, JOB_CONTROL, SESSIONS
from tenure.storage.engine import Group, Outcome
from tests.unit.cluster.members import TTL_SECONDS, Member
from tests.unit.cluster.works import Work
from tests.unit.kv.breaking import BreakingEngine, Deliver


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture(autouse=True)
def _started(member: Member, other: Member, work: Work) -> None:
    for each in (member, other):
        each.start()
        each.make_runner(work.kinds())


def create(member: Member, count: int) -> list[Job]:
    return [member.create_job() for _ in range(count)]


def gets_of(engine: BreakingEngine, member: Member, table: int) -> int:
    head = member.store.keyspace.head(table)
    return sum(key.startswith(head) for key in engine.gets)


# ── several at a time ──────────────────────────────────────────────────────────────────────────


def test_free_jobs_are_claimed_in_one_commit(member: Member, work: Work, engine: BreakingEngine) -> None:
    create(member, 5)
    engine.groups.clear()
    member.runner.step()
    assert len(work.runs) == 5
    assert [len(group.members[0].writes) for group in engine.groups] == [5, 2, 2, 2, 2, 2]


def test_neither_claims_nor_ends_read_a_control_record(member: Member, engine: BreakingEngine) -> None:
    create(member, 5)
    engine.gets.clear()
    member.runner.step()
    assert gets_of(engine, member, JOB_CONTROL) == 0
    assert gets_of(engine, member, SESSIONS) == 1


def test_a_job_that_was_forgotten_meanwhile_is_passed_over(member: Member, work: Work) -> None:
    first, gone, last = create(member, 3)
    member.transact(lambda txn: member.jobs._jobs.delete(txn, gone.id))
    member.runner.step()
    assert [id for id, _ in work.runs] == [first.id, last.id]


def test_jobs_far_apart_are_found_too(member: Member) -> None:
    jobs = create(member, 40)
    ids = [jobs[0].id, jobs[20].id, jobs[39].id]
    found = member.jobs.among(member.store.snapshot(), [*ids, jobs[39].id + 1])
    assert list(found) == ids
    assert member.jobs.among(member.store.snapshot(), []) == {}


def test_a_job_that_ran_before_goes_on_from_its_progress(member: Member, other: Member) -> None:
    job = other.create_job()
    fence = other.claim(job)

    def save_and_leave(run: Run) -> None:
        run.checkpoint(fraction=0.5, data=b"half")

    save_and_leave(
        Run(other.store, other.jobs, job, other.jobs.progress(other.store.snapshot(), job.id), fence)
    )
    other.transact(lambda txn: other.jobs.release(txn, fence))
    found: list[bytes] = []
    member.make_runner({"work": JobKind(lambda run: found.append(run.progress.data))}).step()
    assert found == [b"half"]


# ── rivals ─────────────────────────────────────────────────────────────────────────────────────


def beaten_to(member: Member, other: Member, job: Job, engine: BreakingEngine) -> None:
    """Has another node claim a job while this one's claim is on its way."""

    def other_first(group: Group, deliver: Deliver) -> list[Outcome]:
        engine.on_commit = None
        other.claim(job)
        return deliver(group)

    engine.on_commit = other_first
    member.runner.step()


@pytest.mark.invariant("I22")
def test_of_claims_made_together_none_is_made_if_another_node_was_first_with_one(
    member: Member, other: Member, work: Work, engine: BreakingEngine
) -> None:
    jobs = create(member, ADOPTED_MAX)
    beaten_to(member, other, jobs[3], engine)
    assert work.runs == []
    assert member.control(jobs[3]).claim == other.liveness.session().id


def test_after_a_conflict_half_as_many_are_tried_and_all_get_done(
    member: Member, other: Member, work: Work, env: ManualEnv, engine: BreakingEngine
) -> None:
    jobs = create(member, ADOPTED_MAX)
    beaten_to(member, other, jobs[3], engine)
    member.runner.step()
    assert len(work.runs) == ADOPTED_MAX // 2
    member.runner.step()
    assert {id for id, _ in work.runs} == {job.id for job in jobs} - {jobs[3].id}
    assert env.monotonic() <= 3 * SPACING_SECONDS


def test_after_a_conflict_a_node_begins_anywhere_and_later_with_the_oldest_again(
    member: Member, other: Member, work: Work, env: ManualEnv, engine: BreakingEngine
) -> None:
    env.rng.random = lambda: 0.5  # type: ignore[method-assign]
    jobs = create(member, ADOPTED_MAX)
    beaten_to(member, other, jobs[0], engine)
    member.runner.step()
    assert work.runs[0][0] == jobs[8].id
    for _ in range(UNCONTESTED):
        member.create_job()
        member.runner.step()
    oldest, *_ = create(member, 4)
    work.runs.clear()
    member.runner.step()
    assert work.runs[0][0] == oldest.id


# ── what is known is proved ────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("I23")
def test_a_run_whose_session_was_deleted_does_not_end_its_job(member: Member, other: Member) -> None:
    job = member.create_job()

    def lose_session(run: Run) -> None:
        other.transact(lambda txn: other.sessions.release(txn, run.fence.session))

    member.make_runner({"work": JobKind(lose_session)}).step()
    assert member.state(job) is JobState.RUNNING


@pytest.mark.invariant("I23")
def test_a_run_that_was_asked_to_pause_does_not_end_its_job(member: Member, other: Member) -> None:
    job = member.create_job()

    def pause(run: Run) -> None:
        other.transact(lambda txn: other.jobs.request_pause(txn, run.job.id))

    member.make_runner({"work": JobKind(pause)}).step()
    assert member.state(job) is JobState.PAUSE_REQUESTED
    member.runner.step()
    assert member.state(job) is JobState.PAUSED


def test_a_session_younger_than_the_last_look_is_not_taken_for_lost(
    member: Member, other: Member, work: Work, engine: BreakingEngine, env: ManualEnv
) -> None:
    late = Member(engine, env)
    late.make_runner(work.kinds())
    job = member.create_job()
    with pytest.raises(SessionLost):
        late.runner.step()  # it has looked, and has no session yet
    late.start()
    runner = late.runner
    candidates = runner._candidates(late.liveness.session(), frozenset())
    assert (candidates.held, [control.id for control in candidates.free]) == ([], [job.id])
    runner._adopt(late.liveness.session(), candidates)
    assert work.runs == [(job.id, 1)]


def test_news_that_could_not_all_be_taken_in_are_not_lost(member: Member, work: Work) -> None:
    member.runner.step()
    first, second = create(member, 2)
    key, value = member.jobs.encode_control(member.control(first))
    member.transact(lambda txn: txn.put(key, b"\xff" + value[1:]))
    for _ in range(2):
        with pytest.raises(NewerFormat):
            member.runner.step()
    member.transact(lambda txn: txn.put(key, value))
    member.runner.step()
    assert [id for id, _ in work.runs] == [first.id, second.id]


# ── never a spin ───────────────────────────────────────────────────────────────────────────────


def test_claims_that_are_always_refused_keep_no_runner_busy(
    member: Member, env: ManualEnv, engine: BreakingEngine
) -> None:
    create(member, 3)

    def refuse(group: Group, deliver: Deliver) -> list[Outcome]:
        raise RetryError("somebody is always first")

    engine.on_commit = refuse
    for _ in range(102):  # the first loads, each later one waits
        member.runner.step()
    assert env.monotonic() >= 100 * SPACING_SECONDS - 1e-6


def test_runs_that_end_without_a_word_keep_no_runner_busy(member: Member, env: ManualEnv) -> None:
    def give_up(run: Run) -> None:
        raise SessionLost("so it thinks")

    job = member.create_job()
    member.make_runner({"work": JobKind(give_up)})
    for _ in range(102):  # the first loads, each later one waits
        member.runner.step()
    assert env.monotonic() >= 100 * SPACING_SECONDS - 1e-6
    assert member.control(job).run > 1


# ── waiting for others ─────────────────────────────────────────────────────────────────────────


def test_the_expiry_of_a_session_is_read_once_until_it_is_due(
    member: Member, other: Member, env: ManualEnv, engine: BreakingEngine
) -> None:
    other.claim(other.create_job())
    engine.gets.clear()
    for _ in range(10):
        other.create_job("heavy")  # news, and nothing to do
        member.runner.step()
    assert gets_of(engine, member, EXPIRATIONS) == 1
    while env.monotonic() < TTL_SECONDS + 1:
        member.runner.step()
    assert gets_of(engine, member, EXPIRATIONS) > 1


# ── tasks that cannot be started ───────────────────────────────────────────────────────────────


def test_a_run_that_could_not_be_started_is_taken_up_again(
    member: Member, work: Work, env: ManualEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = create(member, 2)

    def no_thread(name: str, run: Callable[[], None]) -> Task:
        raise InputOutput("no more threads")

    with monkeypatch.context() as patched:
        patched.setattr(env, "spawn", no_thread)
        with pytest.raises(InputOutput):
            member.runner.step()
    member.runner.step()
    assert sorted(work.runs) == [(job.id, 2) for job in jobs]
    assert all(member.state(job) is JobState.SUCCEEDED for job in jobs)
