"""What a job is doing, in words."""

from tenure.base.timestamp import from_micros
from tenure.cluster.jobs.job_errors import JobError
from tenure.cluster.jobs.job_records import JobControl, JobProgress
from tenure.cluster.jobs.job_states import JobState
from tenure.kv.records import replace
from tenure.sql.tables.job_status import fraction, running_status

PROGRESS = JobProgress(1, 0.5, "half way")


def test_of_one_that_runs_it_is_what_its_run_says() -> None:
    control = JobControl(1, "work", JobState.RUNNING, claim_instance=3, claim_epoch_at=7, needs=("spark",))
    assert running_status(control, PROGRESS, "no Java") == "half way"


def test_one_that_needs_what_nobody_has_says_what_and_why() -> None:
    control = JobControl(1, "work", needs=("spark",))
    assert running_status(control, PROGRESS, "") == "waits for a process with spark"
    assert running_status(control, PROGRESS, "no Java") == "waits for a process with spark: no Java"


def test_one_that_is_to_be_tried_again_says_when() -> None:
    control = JobControl(1, "work", attempts=2, retry_at=from_micros(3_723_000_000), needs=("spark",))
    said = "waits until 01:02:03 UTC to be tried again, after 2 attempts that failed"
    assert running_status(control, PROGRESS, "no Java") == said
    control = replace(
        control, errors=tuple(JobError(each, is_passing=True) for each in ("the first", "the last"))
    )
    assert running_status(control, PROGRESS, "no Java") == f"{said}: the last"


def test_one_that_has_ended_waits_for_nothing() -> None:
    control = JobControl(1, "work", JobState.CANCELED, attempts=2, retry_at=from_micros(1), needs=("spark",))
    assert running_status(control, PROGRESS, "no Java") == "half way"


def test_one_that_waits_for_transactions_names_what_they_use() -> None:
    control = JobControl(1, "work", JobState.RUNNING, claim_instance=3, claim_epoch_at=7)
    said = "waits for transactions that use the former version of t, u: see SHOW BLOCKERS"
    assert running_status(control, PROGRESS, "", ["t", "u"]) == said


def test_all_of_one_that_succeeded_is_done() -> None:
    assert fraction(JobControl(1, "work", JobState.SUCCEEDED), PROGRESS) == 1.0
    assert fraction(JobControl(1, "work", JobState.FAILED), PROGRESS) == 0.5


def test_one_that_has_said_nothing_yet_has_begun_or_waits() -> None:
    nothing = JobProgress(1)
    assert running_status(JobControl(1, "work"), nothing, "") == "waits for a node to adopt it"
    control = JobControl(1, "work", JobState.RUNNING, claim_instance=3, claim_epoch_at=7)
    assert running_status(control, nothing, "") == "has begun"
