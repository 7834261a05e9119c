"""The simulator itself: it repeats, it finds what is wrong, and finds nothing where nothing is."""

from collections import Counter
from pathlib import Path

import pytest

from tests.simulation import cluster, model, mutants, shrink, view_mistakes
from tests.simulation.mutants import Mutant
from tests.simulation.shrink import Case
from tests.simulation.trace import Trace

SEEDS = range(20)


@pytest.mark.invariant("I1")
@pytest.mark.invariant("I2")
@pytest.mark.invariant("I4")
@pytest.mark.invariant("I5")
@pytest.mark.invariant("I6")
@pytest.mark.invariant("I7")
@pytest.mark.invariant("I8")
@pytest.mark.invariant("I29")
@pytest.mark.invariant("I30")
@pytest.mark.invariant("I37")
def test_seeds_run_without_a_violation() -> None:
    violations = {seed: cluster.run(seed).violations for seed in SEEDS}
    assert {seed: found[0] for seed, found in violations.items() if found} == {}


@pytest.mark.invariant("absent")
def test_rows_that_must_be_new_are_inserted_without_a_violation() -> None:
    results = [cluster.run(seed, profile="insert") for seed in range(10)]
    assert [result.violations[0] for result in results if result.violations] == []
    seen = sum((result.trace.seen for result in results), Counter[str]())
    assert seen["insert: KeyTaken"] > 0


@pytest.mark.invariant("I2")
def test_rows_that_are_counted_on_are_there_without_a_violation() -> None:
    results = [cluster.run(seed, profile="refer") for seed in range(10)]
    assert [result.violations[0] for result in results if result.violations] == []
    seen = sum((result.trace.seen for result in results), Counter[str]())
    assert seen["rows counted on"] > 0


@pytest.mark.invariant("I2")
@pytest.mark.invariant("view")
@pytest.mark.parametrize(
    ("profile", "happened"),
    [
        ("savepoints", "went back to a savepoint"),
        ("cursors", "reads of a view proved from another time"),
    ],
)
def test_what_was_read_stays_read_without_a_violation(profile: str, happened: str) -> None:
    results = [cluster.run(seed, profile=profile) for seed in range(10)]
    assert [result.violations[0] for result in results if result.violations] == []
    seen = sum((result.trace.seen for result in results), Counter[str]())
    assert seen[happened] > 0


def test_a_seed_runs_the_same_way_twice() -> None:
    for seed in (3, 11):
        assert cluster.run(seed).trace_hash == cluster.run(seed).trace_hash


def test_different_seeds_run_differently() -> None:
    assert cluster.run(3).trace_hash != cluster.run(4).trace_hash


def test_an_empty_tape_is_a_quiet_run() -> None:
    result = cluster.run(0, kept={})
    assert result.violations == []
    assert result.faults.total() == 0
    assert result.trace.landings == []


def test_a_full_tape_replays_the_run() -> None:
    recorded = cluster.run(7)
    assert cluster.run(7, kept=recorded.tape.deviations()).trace_hash == recorded.trace_hash


@pytest.mark.parametrize(
    ("name", "predicate"),
    [
        ("point refresh skipped", "I2"),
        ("taken keys not looked for at commit", "I2"),
        ("absence proved without the lake", "I2"),
        ("unknown outcome reported as failed", "I5"),
        ("resolved is the node's now", "I37"),
    ],
)
def test_a_mutant_is_killed(name: str, predicate: str) -> None:
    _, result = mutants.hunt(mutants.named(name), seeds=range(60))
    assert result is not None
    assert predicate in {violation.predicate for violation in result.violations}


@pytest.mark.parametrize("name", [each[0] for each in view_mistakes.ALL])
def test_a_mutant_of_savepoints_or_cursors_is_killed(name: str) -> None:
    """By I2, or by I3 where a transaction that only reads is told of two times at once."""
    _, result = mutants.hunt(mutants.named(name), seeds=range(60))
    assert result is not None
    assert {violation.predicate for violation in result.violations} & {"I2", "I3"}


def test_every_mutant_swaps_something_that_exists() -> None:
    for mutant in mutants.MUTANTS:
        with mutant.applied():
            pass


def test_a_shrunk_tape_breaks_the_same_predicate_with_fewer_draws(tmp_path: Path) -> None:
    mutant = mutants.named("point refresh skipped")
    case = _failing_case(mutant)
    with mutant.applied():
        smaller = shrink.shrink(case, replays_max=60)
        assert _count(smaller) < _count(case) / 4
        assert smaller.predicate == case.predicate
        shrink.save(smaller, tmp_path / "tape.json")
        again = shrink.load(tmp_path / "tape.json")
        assert again == smaller
        assert again.violation() is not None
        assert any("LANDS" in line for line in shrink.describe(again))
    assert again.violation() is None  # the product is right: only the mutant fails


def test_the_final_state_is_compared_with_the_model() -> None:
    result = cluster.run(5)
    engine = model.Sequential(1).engine
    missing = list(model.compare(result.trace, engine))
    assert {violation.predicate for violation in missing} == {"I5"}
    assert list(model.compare(Trace(), engine)) == []


def test_random_transactions_agree_with_the_model() -> None:
    assert model.sequential(1, 2_000, per_store=1_000) == 2_000


def _failing_case(mutant: Mutant) -> Case:
    _, result = mutants.hunt(mutant, seeds=range(60))
    assert result is not None
    return shrink.case_of(result, seconds=60.0, nodes=3, profile=mutant.profile, mutant=mutant.name)


def _count(case: Case) -> int:
    return sum(len(values) for values in case.draws.values())
