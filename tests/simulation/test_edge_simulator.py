"""Shapes at the edges: nothing is wrong where nothing is, they happen, and their mistakes are found."""

from collections import Counter

import pytest

from tests.simulation import cluster, edge_mistakes, mutants

SEEDS_TO_KILL = 100
"""Within so many seeds each of these mistakes is found; most within ten, the rarest within about forty."""

SELDOM = "ON CONFLICT looks at public indexes alone"
"""A mistake that shows in few seeds."""


@pytest.mark.invariant("I2")
@pytest.mark.invariant("I30")
@pytest.mark.parametrize("profile", ["edges", "times", "imports"])
def test_spans_and_times_at_their_edges_are_right(profile: str) -> None:
    results = [cluster.run(seed, profile=profile) for seed in range(10)]
    assert {each.seed: each.violations[0] for each in results if each.violations} == {}
    seen = sum((each.trace.seen for each in results), Counter[str]())
    happens = {"edges": "reads forgotten", "times": "read refused below threshold", "imports": "imported"}
    assert seen[happens[profile]] > 0


@pytest.mark.invariant("I10")
@pytest.mark.invariant("I23")
@pytest.mark.parametrize("profile", ["kept plans", "glances", "inserts"])
def test_kept_plans_glances_and_inserts_are_right_while_tables_change(profile: str) -> None:
    results = [cluster.run(seed, profile=profile) for seed in range(6)]
    assert {each.seed: each.violations[0] for each in results if each.violations} == {}
    seen = sum((each.trace.seen for each in results), Counter[str]())
    happens = {
        "kept plans": "kept plan used",
        "glances": "glance believed",
        "inserts": "insert left what was there",
    }
    assert seen[happens[profile]] > 0


@pytest.mark.parametrize("name", [name for name, *_ in edge_mistakes.ALL if name != SELDOM])
def test_a_small_mistake_is_found(name: str) -> None:
    _, result = mutants.hunt(mutants.named(name), seeds=range(SEEDS_TO_KILL))
    assert result is not None


@pytest.mark.longer
def test_a_small_mistake_that_seldom_shows_is_found() -> None:
    _, result = mutants.hunt(mutants.named(SELDOM), seeds=range(2 * SEEDS_TO_KILL))
    assert result is not None
