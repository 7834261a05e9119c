"""The table of legal steps between a job's states, written out a second time and compared."""

from itertools import product

import pytest

from tenure.cluster.job_states import CLAIMABLE, STEPS, TERMINAL, IllegalStep, State, check_step

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
@pytest.mark.parametrize(("former", "state"), list(product(State, State)), ids=lambda state: state.value)
def test_a_step_is_taken_if_and_only_if_it_is_in_the_table(former: State, state: State) -> None:
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
    assert set(State) - CLAIMABLE - TERMINAL == {State.PAUSED}


def test_every_state_can_be_reached_and_can_end() -> None:
    reached = _closure({State.PENDING})
    assert reached == set(State)
    assert all(_closure({state}) & TERMINAL for state in State)


def _closure(states: set[State]) -> set[State]:
    following = states | {state for former in states for state in STEPS[former]}
    return states if following == states else _closure(following)
