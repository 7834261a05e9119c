"""The world of retention: nothing that somebody needs is lost, what may go goes, mistakes are found."""

import pytest

from tests.simulation import cluster, mutants, retention_client, retention_mistakes
from tests.simulation.retention_trace import RetentionTrace

SEEDS = (*range(4), 14, 16)
"""The last two meet a protection that a threshold refuses, which one seed in three does."""

QUICK = (
    "tombstone swept above a base",
    "targets covered by today's place",
    "a zone changed without the meta record",
    "newest revision below the threshold dropped",
    "head clock not moved by an import",
    "a tracker keeps its list at a new version",
    "an ended job leaves its protection",
)
"""Mistakes that show in the first seeds; the others are left to `make longer`."""


@pytest.mark.invariant("I27")
@pytest.mark.invariant("I28")
@pytest.mark.invariant("I29")
@pytest.mark.invariant("I30")
@pytest.mark.invariant("I31")
@pytest.mark.invariant("I32")
def test_history_is_kept_as_long_as_it_is_needed_and_no_longer() -> None:
    results = [cluster.run(seed, profile="retention") for seed in SEEDS]
    assert {each.seed: each.violations[0] for each in results if each.violations} == {}
    assert all(isinstance(each.trace, RetentionTrace) and each.trace.closed for each in results)
    for seen in (
        "protect refused for the ttl",
        "protect refused for a threshold",
        "sweep held back by a protection",
        "sweep kept a point",
        "sweep removed something",
        "sweep from an old state",
        "read in the name of a protection",
        "imported",
        "flushed",
    ):
        assert sum(each.trace.seen[seen] for each in results), f"it never happened: {seen}"


def test_a_seed_runs_the_same_way_twice() -> None:
    once, again = (cluster.run(3, profile="retention") for _ in range(2))
    assert once.trace_hash == again.trace_hash


@pytest.mark.longer
@pytest.mark.parametrize("profile", retention_client.PROFILES)
def test_each_mix_of_operations_runs_without_a_violation(profile: str) -> None:
    results = [cluster.run(seed, profile=profile) for seed in range(20, 40)]
    assert {each.seed: each.violations[0] for each in results if each.violations} == {}


@pytest.mark.parametrize("name", QUICK)
def test_a_mistake_is_found(name: str) -> None:
    _, result = mutants.hunt(mutants.named(name), seeds=range(30))
    assert result is not None


@pytest.mark.longer
@pytest.mark.parametrize("name", [name for name, *_ in retention_mistakes.ALL if name not in QUICK])
def test_a_mistake_that_seldom_shows_is_found(name: str) -> None:
    _, result = mutants.hunt(mutants.named(name), seeds=range(200))
    assert result is not None
