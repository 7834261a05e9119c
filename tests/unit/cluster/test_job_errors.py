"""What a job's record says of an error, and what the statement raises that waited for the job."""

import msgspec
import pytest

from tenure.base.errors import InvalidText, JobFailed, NewerFormat, QueryCanceled, Unavailable, UserError
from tenure.cluster.jobs.job_errors import JobError
from tenure.cluster.jobs.job_records import JobControl, control_records
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_waits import failure_of
from tenure.kv.keys import JOB_CONTROL, Keyspace

RECORDS = control_records(Keyspace(1), JOB_CONTROL)
BAD_TEXT = InvalidText('invalid input syntax for type bigint: "z"', detail="line 3", hint="Use digits.")


def failed(*errors: JobError) -> JobControl:
    return JobControl(7, "import", JobState.FAILED, error=errors[-1], errors=errors)


def test_the_client_is_told_every_part_of_what_the_job_failed_with() -> None:
    raised = failure_of(7, failed(JobError.of(BAD_TEXT)))
    assert isinstance(raised, JobFailed)
    assert (raised.sqlstate, str(raised)) == (BAD_TEXT.sqlstate, str(BAD_TEXT))
    assert (raised.detail, raised.hint) == (BAD_TEXT.detail, BAD_TEXT.hint)


def test_a_bug_is_told_by_the_name_of_its_class() -> None:
    raised = failure_of(7, failed(JobError.of(ZeroDivisionError("a bug"))))
    assert (raised.sqlstate, str(raised)) == ("XX000", "ZeroDivisionError: a bug")


def test_what_was_wrong_with_the_job_comes_before_what_was_wrong_with_its_revert() -> None:
    errors = (JobError.passing(Unavailable("away")), JobError.of(BAD_TEXT), JobError.of(ValueError("revert")))
    assert str(failure_of(7, failed(*errors))) == str(BAD_TEXT)


def test_a_canceled_job_is_a_canceled_statement() -> None:
    canceled = JobControl(7, "import", JobState.CANCELED, canceled=True)
    assert isinstance(failure_of(7, canceled), QueryCanceled)


def test_of_a_forgotten_job_nothing_is_known() -> None:
    assert type(failure_of(7, None)) is UserError


def test_errors_are_shown_with_their_sqlstate_and_detail_passing_ones_by_their_message() -> None:
    assert failed(JobError.of(BAD_TEXT)).error_text == f"22P02 {BAD_TEXT}\nDETAIL:  line 3"
    assert failed(JobError.passing(Unavailable("away"))).error_text == "away"
    assert JobControl(7, "import").error_text == ""


def test_a_record_of_format_1_which_kept_texts_is_read() -> None:
    texts = ("away", "22P02 bad text\nDETAIL:  line 3")
    former = [7, "import", "failed", 0, 0, 3, 0, 0, 0, 0, texts[-1], texts, False, 0, []]
    control = RECORDS.decode(b"\x01" + msgspec.msgpack.encode(former))
    assert control.error == JobError("bad text", "22P02", "line 3")
    assert control.errors == (JobError("away", is_passing=True), control.error)
    assert tuple(each.text for each in control.errors) == texts
    assert RECORDS.decode(RECORDS.encode(control)) == control


def test_a_record_of_format_1_without_an_error_is_read() -> None:
    former = [7, "import", "running", 1, 2, 3, 0, 0, 0, 0, "", [], False, 0, ["spark"]]
    control = RECORDS.decode(b"\x01" + msgspec.msgpack.encode(former))
    assert (control.error, control.errors, control.needs) == (None, (), ("spark",))


def test_a_record_of_a_newer_format_is_refused() -> None:
    with pytest.raises(NewerFormat):
        RECORDS.decode(b"\x03" + msgspec.msgpack.encode([]))
