"""A failing script is shrunk to the steps that it fails with."""

from tests.differential.sides import Statement
from tests.differential.transactions.shrinking import shrunk
from tests.differential.transactions.steps import Step

STEPS = [Step(0, Statement(f"SELECT {each}")) for each in range(20)]


def test_a_script_is_shrunk_to_what_it_fails_with() -> None:
    needed = {STEPS[3], STEPS[11], STEPS[17]}
    assert shrunk(STEPS, lambda steps: needed <= set(steps)) == [STEPS[3], STEPS[11], STEPS[17]]


def test_a_script_that_needs_all_its_steps_stays_whole() -> None:
    assert shrunk(STEPS[:5], lambda steps: len(steps) == 5) == STEPS[:5]
