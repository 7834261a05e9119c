"""The lake's protocol in the simulator: rows move under readers, and every mistake in it is found."""

import pytest

from tests.simulation import cluster, lake_mistakes, mutants

SEEDS = range(15)


@pytest.mark.invariant("base-exact")
@pytest.mark.invariant("merge-exact")
@pytest.mark.invariant("keep-exact")
@pytest.mark.invariant("one-merge")
@pytest.mark.invariant("I2")
@pytest.mark.invariant("I37")
@pytest.mark.invariant("lake-id")
def test_reads_and_watches_are_right_while_rows_are_flushed_cleaned_and_imported() -> None:
    results = [cluster.run(seed, profile="bases") for seed in SEEDS]
    assert {each.seed: each.violations[0] for each in results if each.violations} == {}
    for seen in (
        "flushed",
        "past files merged",
        "threshold published",
        "imported",
        "cleaning removed something",
        "commit refused below a mark",
        "watch fell below a mark",
        "another lake mounted",
        "mount another: WrongLake",
    ):
        assert sum(each.trace.seen[seen] for each in results), f"it never happened: {seen}"


@pytest.mark.parametrize("name", [name for name, *_ in lake_mistakes.ALL])
def test_a_mistake_in_the_protocol_is_found(name: str) -> None:
    _, result = mutants.hunt(mutants.named(name), seeds=range(60))
    assert result is not None
