"""What a runner remembers of open jobs: by holder, and by when they are to be tried again."""

from tenure.cluster.jobs.job_records import JobControl
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.open_jobs import FREE, JobHolder, OpenJobs
from tenure.cluster.sessions.session_records import SessionId
from tenure.kv.records import replace

SESSION = SessionId(3, 1000)
HOLDER = JobHolder(SESSION, 0)


def job(id: int, **named: object) -> JobControl:
    return replace(JobControl(id, "work"), **named)


def claimed(id: int) -> JobControl:
    return job(id, state=JobState.RUNNING, claim_instance=3, claim_epoch_at=1000)


def free_ids(jobs: OpenJobs, *, first: int = 0, window: int = 100) -> list[int]:
    return [control.id for control in jobs.free(first=first, window=window)]


def test_jobs_that_nobody_holds_are_free_the_oldest_first() -> None:
    jobs = OpenJobs({"work"}, map(job, (1, 2, 3)))
    assert free_ids(jobs) == [1, 2, 3]
    assert jobs.holders() == []


def test_one_can_begin_anywhere_among_the_oldest_and_comes_round() -> None:
    jobs = OpenJobs({"work"}, map(job, range(6)))
    assert free_ids(jobs, first=2, window=4) == [2, 3, 0, 1]


def test_a_job_moves_to_its_holder_and_back() -> None:
    jobs = OpenJobs({"work"}, map(job, (1, 2)))
    jobs.note(1, claimed(1))
    assert (free_ids(jobs), jobs.holders(), list(jobs.of(HOLDER))) == ([2], [HOLDER], [1])
    jobs.note(1, job(1))
    assert (free_ids(jobs), jobs.holders()) == ([2, 1], [])


def test_a_job_that_is_over_is_forgotten() -> None:
    jobs = OpenJobs({"work"}, [claimed(1), job(2)])
    jobs.note(1, None)
    jobs.note(2, None)
    jobs.note(3, None)
    assert (jobs.get(1), jobs.holders(), free_ids(jobs)) == (None, [], [])


def test_what_this_process_cannot_run_is_known_but_not_offered() -> None:
    jobs = OpenJobs({"work"}, [JobControl(1, "unheard of"), job(2, state=JobState.PAUSED)])
    assert jobs.get(1) is not None and jobs.get(2) is not None
    assert (free_ids(jobs), jobs.holders()) == ([], [])


def test_a_retry_is_offered_when_it_is_due() -> None:
    jobs = OpenJobs({"work"}, [job(1, retry_at=500)])
    jobs.take_due(499)
    assert (free_ids(jobs), jobs.next_retry_at()) == ([], 500)
    jobs.take_due(500)
    assert (free_ids(jobs), jobs.next_retry_at()) == ([1], None)


def test_a_retry_that_was_noted_again_goes_by_what_it_says_now() -> None:
    jobs = OpenJobs({"work"}, [job(1, retry_at=500), job(2, retry_at=500), job(3, retry_at=500)])
    jobs.note(1, job(1, retry_at=900))
    jobs.note(2, job(2, retry_at=500, state=JobState.PAUSED))
    jobs.note(3, None)
    jobs.take_due(600)
    assert (free_ids(jobs), jobs.next_retry_at()) == ([], 900)
    jobs.take_due(900)
    assert list(jobs.of(FREE)) == [1]


def test_what_this_process_lacks_is_known_as_long_as_a_job_needs_it() -> None:
    jobs = OpenJobs({"work"}, [job(1, needs=("spark",)), job(2)])
    assert (free_ids(jobs), jobs.lack("spark"), jobs.lack("gpu")) == ([2], True, False)
    jobs.note(1, None)
    assert not jobs.lack("spark")


def test_a_job_is_wanted_where_its_needs_are_met() -> None:
    jobs = OpenJobs({"work"}, [job(1, needs=("spark",))], has=frozenset({"spark"}))
    assert (free_ids(jobs), jobs.lack("spark")) == ([1], False)


def test_to_end_a_job_takes_nothing() -> None:
    asked = [
        job(1, needs=("spark",), state=JobState.CANCEL_REQUESTED),
        job(2, needs=("spark",), state=JobState.PAUSED),
    ]
    jobs = OpenJobs({"work"}, asked)
    assert (free_ids(jobs), jobs.lack("spark")) == ([1], False)
