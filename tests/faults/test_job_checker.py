"""The checker of sessions and jobs is itself checked: one violation each, and a story without any."""

from typing import Any

from tenure.base.timestamp import add_seconds, from_micros
from tenure.cluster.jobs.job_records import NOBODY, JobControl
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.sessions.session_records import SessionId
from tests.faults.job_checker import Adoption, Halt, adoptions, check
from tests.faults.job_history import (
    ControlRow,
    EffectRow,
    InstanceRow,
    JobHistory,
    JobRow,
    ProgressRow,
    SessionRow,
)
from tests.faults.log import Event

A, B = SessionId(1, 10), SessionId(2, 12)
JOB = 7


class Story:
    """Two sessions, A and B, and a job of two steps, told commit by commit."""

    def __init__(self) -> None:
        self.history = JobHistory()
        self.events: list[Event] = []
        self.session(10, A, expires_at=50).session(12, B, expires_at=500)
        self.history.jobs.append(JobRow(20, JOB, steps=2))
        self.control(20, JobState.PENDING)

    def session(self, at: int, session: SessionId, **fields: Any) -> "Story":
        self.history.sessions.append(SessionRow(at, session, **({"part": "existence"} | fields)))
        return self

    def beat(self, at: int, session: SessionId, expires_at: int) -> "Story":
        return self.session(at, session, part="expiration", expires_at=expires_at)

    def control(self, at: int, state: JobState, claim: SessionId = NOBODY, run: int = 0) -> "Story":
        control = JobControl(JOB, "count", state, *claim, run=run)
        ends = state in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED, JobState.REVERT_FAILED)
        if ends:
            self.history.controls.append(ControlRow(at, JOB, None))
        self.history.controls.append(ControlRow(at, JOB, control, is_ended=ends))
        return self

    def effect(self, at: int, step: int, session: SessionId = A, run: int = 1, undo: bool = False) -> "Story":
        self.history.effects.append(EffectRow(at, JOB, step, session, run, "p0.0", undo))
        return self.progress(at, 0 if undo else step, step if undo else 0)

    def progress(self, at: int, done: int, undone: int = 0) -> "Story":
        self.history.progress.append(ProgressRow(at, JOB, done, undone))
        return self

    def claimed(self) -> "Story":
        return self.control(22, JobState.RUNNING, A, 1).effect(24, 1)

    def succeeded(self) -> "Story":
        return self.claimed().effect(26, 2).control(28, JobState.SUCCEEDED, run=1)

    def adopted(self) -> "Story":
        """A dies in the middle, B takes over and brings the job to its end."""
        self.claimed().session(60, A, is_deleted=True).control(62, JobState.RUNNING, B, 2)
        return self.effect(64, 2, B, 2).control(66, JobState.SUCCEEDED, run=2)

    def logged(self, kind: str, **fields: Any) -> "Story":
        self.events.append({"e": kind, "m": len(self.events), "job": JOB, **fields})
        return self


def kinds(story: Story) -> set[str]:
    return set(check(story.history, [("p0.0", story.events)]).kinds)


def test_a_story_without_violations_has_none() -> None:
    story = Story().adopted().logged("created").logged("effect", step=1, run=1, undo=False)
    verdict = check(story.history, [("p0.0", story.events)])
    assert verdict.violations == []
    assert verdict.counts["effects"] == 2
    assert verdict.counts["succeeded"] == 1


def test_a_session_written_after_its_deletion_is_caught() -> None:
    story = Story().succeeded().session(60, A, is_deleted=True)
    assert kinds(story.beat(61, A, 100)) == {"revived"}


def test_an_existence_written_again_is_caught() -> None:
    story = Story().succeeded().session(60, A, is_deleted=True)
    assert kinds(story.session(61, A, expires_at=100)) == {"revived"}


def test_a_session_made_twice_is_caught() -> None:
    assert kinds(Story().succeeded().session(40, A, expires_at=90)) == {"epoch"}


def test_an_epoch_that_is_not_the_time_of_the_insert_is_caught() -> None:
    assert kinds(Story().succeeded().session(40, SessionId(3, 39), expires_at=90)) == {"epoch"}


def test_two_sessions_with_one_instance_id_are_caught() -> None:
    assert kinds(Story().succeeded().session(40, SessionId(1, 40), expires_at=90)) == {"instance"}


def test_an_instance_id_may_be_taken_again_once_its_session_is_gone() -> None:
    story = Story().succeeded().session(60, A, is_deleted=True)
    assert kinds(story.session(61, SessionId(1, 61), expires_at=110)) == set()


def test_an_expiration_that_falls_is_caught() -> None:
    assert kinds(Story().succeeded().beat(30, A, 80).beat(31, A, 79)) == {"expiry"}


def test_a_session_deleted_before_its_expiration_is_caught() -> None:
    story = Story().succeeded().beat(30, A, 80)
    assert kinds(story.session(80, A, is_deleted=True)) == {"expiry"}


def test_a_node_that_drains_may_delete_its_session_early() -> None:
    story = Story().succeeded()
    story.history.instances.append(InstanceRow(30, A, is_draining=True))
    assert kinds(story.session(31, A, is_deleted=True)) == set()


def test_a_node_that_was_told_to_stop_may_delete_its_session_early() -> None:
    story = Story().succeeded().session(31, A, is_deleted=True)
    assert kinds(story) == {"expiry"}
    assert kinds(story.logged("start", session=list(A)).logged("stopping")) == set()


def test_the_session_of_a_killed_node_may_be_ended_from_then_on() -> None:
    story = Story().succeeded().logged("start", session=list(A)).session(31, A, is_deleted=True)
    logs = [("p0.0", story.events)]
    assert set(check(story.history, logs, [Halt("p0.0", 0)]).kinds) == set()
    assert set(check(story.history, logs, [Halt("p0.0", 1)]).kinds) == {"expiry"}
    assert set(check(story.history, logs, [Halt("p1.0", 0)]).kinds) == {"expiry"}


def test_the_session_of_a_node_that_was_killed_before_it_logged_may_be_ended_from_then_on() -> None:
    story = Story().succeeded().beat(30, A, 100 << 10).session(31 << 10, A, is_deleted=True)
    assert set(check(story.history, [], [Halt("p0.0", 1)]).kinds) == set()
    assert set(check(story.history, [], [Halt("p0.0", 40)]).kinds) == {"expiry"}


def test_a_claim_taken_from_a_session_that_is_there_is_caught() -> None:
    story = Story().claimed().control(62, JobState.RUNNING, B, 2)
    assert kinds(story.effect(64, 2, B, 2).control(66, JobState.SUCCEEDED, run=2)) == {"claim"}


def test_a_claim_by_a_session_that_is_not_there_is_caught() -> None:
    story = Story().control(22, JobState.RUNNING, SessionId(9, 9), 1)
    assert "claim" in kinds(story.control(23, JobState.REVERTING, SessionId(9, 9), 1))


def test_a_claim_given_up_in_the_name_of_the_dead_is_caught() -> None:
    story = Story().claimed().session(60, A, is_deleted=True).control(61, JobState.PENDING, run=1)
    story.control(62, JobState.RUNNING, B, 2).effect(64, 2, B, 2)
    assert kinds(story.control(66, JobState.SUCCEEDED, run=2)) == {"claim"}


def test_a_claim_that_takes_no_new_run_is_caught() -> None:
    story = Story().claimed().session(60, A, is_deleted=True).control(62, JobState.RUNNING, B, 1)
    assert kinds(story.effect(64, 2, B, 1).control(66, JobState.SUCCEEDED, run=1)) == {"run"}


def test_an_illegal_step_is_caught() -> None:
    story = Story().claimed().effect(26, 2).control(27, JobState.PAUSED, run=1)
    story.control(28, JobState.PENDING, run=1).control(30, JobState.RUNNING, A, 2)
    assert kinds(story.control(32, JobState.SUCCEEDED, run=2)) == {"step"}


def test_a_job_that_begins_anywhere_but_pending_is_caught() -> None:
    story = Story().succeeded()
    del story.history.controls[0]
    assert kinds(story) == {"step", "run"}


def test_a_write_after_the_end_is_caught() -> None:
    assert "step" in kinds(Story().succeeded().control(30, JobState.RUNNING, A, 2))


def test_an_ended_job_that_is_written_again_in_the_same_state_is_caught() -> None:
    assert kinds(Story().succeeded().control(30, JobState.SUCCEEDED, run=1)) == {"step"}


def test_an_effect_of_a_run_that_lost_its_claim_is_caught() -> None:
    story = Story().claimed().session(60, A, is_deleted=True).control(62, JobState.RUNNING, B, 2)
    assert kinds(story.effect(64, 2, A, 1).control(66, JobState.SUCCEEDED, run=2)) == {"fence"}


def test_an_effect_under_a_dead_session_is_caught() -> None:
    story = Story().claimed().session(60, A, is_deleted=True).effect(61, 2, A, 1)
    assert kinds(story.control(62, JobState.RUNNING, B, 2).control(66, JobState.SUCCEEDED, run=2)) == {
        "fence"
    }


def test_an_effect_after_a_request_to_stop_is_caught() -> None:
    story = Story().claimed().control(25, JobState.PAUSE_REQUESTED, A, 1).effect(26, 2)
    story.control(27, JobState.PENDING, A, 1).control(28, JobState.RUNNING, A, 2)
    assert kinds(story.control(29, JobState.SUCCEEDED, run=2)) == {"fence"}


def test_an_effect_applied_twice_is_caught() -> None:
    story = Story().claimed().session(60, A, is_deleted=True).control(62, JobState.RUNNING, B, 2)
    story.effect(63, 1, B, 2).effect(64, 2, B, 2)
    assert kinds(story.control(66, JobState.SUCCEEDED, run=2)) == {"twice"}


def test_an_effect_without_its_progress_is_caught() -> None:
    story = Story().succeeded()
    del story.history.progress[0]
    assert kinds(story) == {"half"}


def test_a_progress_without_its_effect_is_caught() -> None:
    story = Story().claimed().progress(25, 2).effect(26, 2)
    assert kinds(story.control(28, JobState.SUCCEEDED, run=1)) == {"half"}


def test_a_step_left_out_is_caught() -> None:
    assert kinds(Story().claimed().control(28, JobState.SUCCEEDED, run=1)) == {"lost"}


def test_a_job_that_does_not_end_is_caught() -> None:
    assert kinds(Story().claimed()) == {"open"}


def canceled(*, undone: bool) -> Story:
    story = (
        Story().claimed().control(25, JobState.CANCEL_REQUESTED, A, 1).control(26, JobState.REVERTING, A, 1)
    )
    return story.effect(27, 1, undo=True) if undone else story


def test_a_canceled_job_is_reverted() -> None:
    assert kinds(canceled(undone=True).control(30, JobState.CANCELED, run=1)) == set()


def test_a_canceled_job_that_is_not_reverted_is_caught() -> None:
    assert kinds(canceled(undone=False).control(30, JobState.CANCELED, run=1)) == {"unreverted"}


def test_a_canceled_job_that_ends_otherwise_is_caught() -> None:
    assert kinds(canceled(undone=True).control(30, JobState.FAILED, run=1)) == {"unreverted"}


def test_an_acknowledged_effect_that_is_missing_is_caught() -> None:
    story = Story().succeeded().logged("effect", step=2, run=2, undo=False)
    assert kinds(story) == {"lost"}


def test_an_acknowledged_job_that_is_missing_is_caught() -> None:
    assert kinds(Story().succeeded().logged("created", job=8)) == {"lost"}


def test_two_runs_of_a_job_in_one_process_are_caught() -> None:
    story = Story().succeeded().logged("run").logged("ran").logged("run")
    assert kinds(story) == set()
    assert kinds(story.logged("run")) == {"overlap"}


def test_adoption_is_measured_from_the_halt_to_the_next_claim() -> None:
    begun_at = from_micros(1_000_000)
    story = Story().claimed().control(add_seconds(begun_at, 1.5), JobState.RUNNING, B, 2)
    halt = Halt("p0.0", 1_000_000)
    assert adoptions(story.history, halt, [A]) == [Adoption(JOB, 1.5)]
    assert adoptions(story.history, halt, [B]) == []


def test_a_job_that_nobody_adopts_is_told() -> None:
    assert adoptions(Story().claimed().history, Halt("p0.0", 1_000_000), [A]) == [Adoption(JOB, None)]


def test_a_job_that_ended_by_itself_waits_for_nobody() -> None:
    story = Story().claimed().control(from_micros(1_000_001), JobState.SUCCEEDED, run=1)
    assert adoptions(story.history, Halt("p0.0", 1_000_000), [A]) == []
