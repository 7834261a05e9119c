"""Locks of three nodes under faults: they exclude, they end, and while all is well nobody is refused."""

import pytest

from tests.simulation.knobs import Knobs
from tests.simulation.lock_world import run

SEEDS = range(24)


@pytest.mark.invariant("lock-exclusion")
@pytest.mark.invariant("lock-death")
@pytest.mark.invariant("I9")
def test_seeds_run_without_a_violation() -> None:
    violations = {seed: run(seed).violations for seed in SEEDS}
    assert {seed: found[:3] for seed, found in violations.items() if found} == {}


def calm(knobs: Knobs) -> None:
    knobs.rates, knobs.skew, knobs.is_liveness = {}, "none", False


def test_while_all_is_well_no_writer_of_a_hot_row_is_refused() -> None:
    for seed in range(6):
        outcome = run(seed, calm)
        assert outcome.violations == []
        assert outcome.seen["refused"] == outcome.seen["RetryError"] == 0, outcome.seen
        assert sum(outcome.acked.values()) > 50
