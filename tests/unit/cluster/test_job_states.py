"""The table of legal steps between a job's states, written out a second time and compared."""

from itertools import product

import pytest

from tenure.base.errors import IllegalStep
from tenure.cluster.jobs.job_states import CLAIMABLE, STEPS, TERMINAL, JobState, check_step

LEGAL = {
    "pending": "running pause-requested cancel-requested",
    "running": "pending pause-requested cancel-requested reverting succeeded",
    "pause-requested": "paused pending cancel-requested",
    "paused": "pending cancel-requested",
    "cancel-requested": "reverting",
    "reverting": "canceled failed revert-failed",
    "succeeded": "",
    "failed": "",
    "canceled": "",
    "revert-failed": "",
}


@pytest.mark.invariant("I25")
@pytest.mark.parametrize(
    ("former", "state"), list(product(JobState, JobState)), ids=lambda state: state.value
)
def test_a_step_is_taken_if_and_only_if_it_is_in_the_table(former: JobState, state: JobState) -> None:
    if state.value in LEGAL[former.value].split():
        check_step(1, former, state)
    else:
        with pytest.raises(IllegalStep, match=f"job 1 is {former.value}"):
            check_step(1, former, state)


@pytest.mark.invariant("I25")
def test_terminal_states_lead_nowhere_and_are_not_claimed() -> None:
    assert {state.value for state in TERMINAL} == {"succeeded", "failed", "canceled", "revert-failed"}
    assert TERMINAL.isdisjoint(CLAIMABLE)


def test_a_paused_job_gives_nobody_anything_to_do() -> None:
    assert set(JobState) - CLAIMABLE - TERMINAL == {JobState.PAUSED}


def test_every_state_can_be_reached_and_can_end() -> None:
    reached = _closure({JobState.PENDING})
    assert reached == set(JobState)
    assert all(_closure({state}) & TERMINAL for state in JobState)


def _closure(states: set[JobState]) -> set[JobState]:
    following = states | {state for former in states for state in STEPS[former]}
    return states if following == states else _closure(following)
