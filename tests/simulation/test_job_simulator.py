"""The world of sessions and jobs: nothing is wrong where nothing is, and what is wrong is found."""

import pytest

from tests.simulation import cluster, job_mistakes, mutants, shrink, upgrade_mistakes
from tests.simulation.__main__ import BOTH, profile_of
from tests.simulation.job_knobs import JobKnobs
from tests.simulation.job_trace import JobTrace

SEEDS = range(15)


@pytest.mark.invariant("I5")
@pytest.mark.invariant("I13")
@pytest.mark.invariant("I14")
@pytest.mark.invariant("I20")
@pytest.mark.invariant("I21")
@pytest.mark.invariant("I22")
@pytest.mark.invariant("I23")
@pytest.mark.invariant("I24")
@pytest.mark.invariant("I25")
@pytest.mark.invariant("I26")
def test_seeds_run_without_a_violation() -> None:
    results = [cluster.run(seed, profile="jobs") for seed in SEEDS]
    assert {result.seed: result.violations[0] for result in results if result.violations} == {}
    assert any(isinstance(result.trace, JobTrace) and result.trace.running for result in results)


@pytest.mark.invariant("I22")
@pytest.mark.invariant("old-lease")
@pytest.mark.invariant("version-join")
def test_upgrades_run_without_a_violation() -> None:
    results = [cluster.run(seed, profile="jobs", change=upgrade_mistakes.upgrading) for seed in range(6)]
    assert {result.seed: result.violations[0] for result in results if result.violations} == {}
    assert all(result.trace.seen["version finalized"] for result in results)


@pytest.mark.invariant("settings-watched")
def test_changed_settings_reach_every_node() -> None:
    changes = [cluster.run(seed, profile="jobs", change=job_mistakes.changing_settings) for seed in range(4)]
    assert {result.seed: result.violations[0] for result in changes if result.violations} == {}
    assert any(result.trace.seen["setting changed"] for result in changes)


def test_two_tenants_share_a_store() -> None:
    results = [cluster.run(seed, profile="jobs", change=upgrade_mistakes.sharing) for seed in range(4)]
    assert {result.seed: result.violations[0] for result in results if result.violations} == {}
    assert any(result.trace.seen["both tenants have jobs"] for result in results)


def test_a_seed_runs_the_same_way_twice() -> None:
    once, again = (cluster.run(4, profile="jobs") for _ in range(2))
    assert once.trace_hash == again.trace_hash


def test_a_full_tape_replays_the_run() -> None:
    recorded = cluster.run(5, profile="jobs")
    again = cluster.run(5, profile="jobs", kept=recorded.tape.deviations())
    assert again.trace_hash == recorded.trace_hash


def test_a_quiet_run_has_heartbeats_and_no_faults() -> None:
    result = cluster.run(0, profile="jobs", kept={})
    assert result.violations == []
    assert result.faults.total() == 0
    assert isinstance(result.trace, JobTrace)
    assert len(result.trace.sessions[1]) == 3
    assert result.trace.jobs == {1: [], 2: []}


def test_the_worlds_take_turns() -> None:
    profiles = [profile_of(seed, BOTH) for seed in range(7)]
    assert profiles == ["all", "schema", "jobs", "bases", "retention", "all", "schema"]
    assert isinstance(cluster.run(2, profile="jobs").knobs, JobKnobs)


@pytest.mark.parametrize(
    ("name", "predicate"),
    [
        ("frontier extended before the ack", "I13"),
        ("frozen mark ignored", "I14"),
        ("claim taken from the living", "I22"),
        ("effect before checkpoint", "effects"),
        ("retry keeps the claim of the dead", "I23"),
        ("mixed claim ignores the old lease", "I22"),
        ("finalized beside older nodes", "version-join"),
        ("settings never read again", "settings-watched"),
        ("retention counts from the start", "retention"),
    ],
)
def test_a_mutant_is_killed(name: str, predicate: str) -> None:
    _, result = mutants.hunt(mutants.named(name), seeds=range(30))
    assert result is not None
    assert predicate in {violation.predicate for violation in result.violations}


def test_a_follower_that_steps_over_a_gap_is_found() -> None:
    """Which predicate it violates depends on what it has missed: a claim, a session, a setting."""
    _, result = mutants.hunt(mutants.named("a follower steps over a gap"), seeds=range(30))
    assert result is not None


@pytest.mark.longer
def test_a_failure_is_shrunk() -> None:
    mutant = mutants.named("claim taken from the living")
    _, result = mutants.hunt(mutant, seeds=range(30))
    assert result is not None
    case = shrink.case_of(result, seconds=60.0, nodes=3, profile=mutant.profile, mutant=mutant.name)
    with mutant.applied():
        smaller = shrink.shrink(case, replays_max=25)
        assert smaller.violation() is not None
    assert sum(map(len, smaller.draws.values())) < sum(map(len, case.draws.values()))


def test_every_mistake_has_a_name_of_its_own() -> None:
    names = [mutant.name for mutant in mutants.MUTANTS]
    assert len(names) == len(set(names))
    assert {each[0] for each in (*job_mistakes.ALL, *upgrade_mistakes.ALL)} < set(names)
