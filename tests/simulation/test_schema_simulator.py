"""The world of schema changes: nothing is wrong where nothing is, and what is wrong is found."""

import pytest

from tests.simulation import cluster, mutants, schema_mistakes, shrink
from tests.simulation.schema_knobs import SchemaKnobs
from tests.simulation.schema_trace import SchemaTrace

SEEDS = range(8)


@pytest.mark.invariant("I9")
@pytest.mark.invariant("I10")
@pytest.mark.invariant("I11")
@pytest.mark.invariant("I12")
@pytest.mark.invariant("I13")
@pytest.mark.invariant("I15")
@pytest.mark.invariant("I16")
@pytest.mark.invariant("I17")
@pytest.mark.invariant("I18")
@pytest.mark.invariant("I19")
@pytest.mark.invariant("I38")
@pytest.mark.invariant("I39")
@pytest.mark.invariant("ddl-atomic")
@pytest.mark.invariant("element-steps")
def test_seeds_run_without_a_violation() -> None:
    results = [cluster.run(seed, profile="schema") for seed in SEEDS]
    assert {result.seed: result.violations[0] for result in results if result.violations} == {}
    traces = [result.trace for result in results]
    assert any(isinstance(trace, SchemaTrace) and trace.declared for trace in traces)
    assert any(trace.seen["two versions leased at once"] for trace in traces)
    assert any(trace.seen["went on after a wait"] for trace in traces)


@pytest.mark.invariant("emptied-alone")
def test_seeds_that_empty_tables_run_without_a_violation() -> None:
    results = [cluster.run(seed, profile="emptying") for seed in range(4)]
    assert {result.seed: result.violations[0] for result in results if result.violations} == {}
    emptied = [
        declared
        for result in results
        if isinstance(result.trace, SchemaTrace)
        for declared in result.trace.declared
        if declared.kind == "truncate" and declared.outcome == "done"
    ]
    assert emptied


@pytest.mark.invariant("I38")
@pytest.mark.invariant("I39")
@pytest.mark.invariant("needs-newest")
@pytest.mark.invariant("role-objects")
@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("rights", ("statement by right", "statement without a right")),
        ("conversions", ("database converted", "table of a database that is converted written")),
    ],
)
def test_seeds_of_rights_and_conversions_run_without_a_violation(
    profile: str, expected: tuple[str, ...]
) -> None:
    results = [cluster.run(seed, profile=profile) for seed in SEEDS]
    assert {result.seed: result.violations[0] for result in results if result.violations} == {}
    assert all(any(result.trace.seen[each] for result in results) for each in expected)


@pytest.mark.invariant("I33")
@pytest.mark.invariant("I34")
def test_seeds_of_locked_tables_run_without_a_violation() -> None:
    results = [cluster.run(seed, profile="locks") for seed in SEEDS]
    assert {result.seed: result.violations[0] for result in results if result.violations} == {}
    for each in ("table locked", "table opened for a change", "row by the fast path", "row by the slow path"):
        assert any(result.trace.seen[each] for result in results), each


@pytest.mark.invariant("I10")
@pytest.mark.invariant("I12")
def test_seeds_of_the_expiring_scheme_run_without_a_violation() -> None:
    results = [cluster.run(seed, profile="expiring") for seed in range(3)]
    assert {result.seed: result.violations[0] for result in results if result.violations} == {}


@pytest.mark.parametrize("profile", ["schema", "expiring"])
def test_a_seed_runs_the_same_way_twice(profile: str) -> None:
    once, again = (cluster.run(4, profile=profile) for _ in range(2))
    assert once.trace_hash == again.trace_hash


def test_a_full_tape_replays_the_run() -> None:
    recorded = cluster.run(3, profile="schema")
    again = cluster.run(3, profile="schema", kept=recorded.tape.deviations())
    assert again.trace_hash == recorded.trace_hash


def test_a_quiet_run_has_leases_and_no_faults() -> None:
    result = cluster.run(0, profile="schema", kept={})
    assert result.violations == []
    assert result.faults.total() == 0
    assert isinstance(result.knobs, SchemaKnobs)
    assert isinstance(result.trace, SchemaTrace)
    assert all(leases.newest_at() for leases in result.trace.leases.values())
    assert result.trace.declared == []


FIRST_SEEDS = {"rights by the oldest lease in use": 220}
"""Mutants that are met rarely: the seeds before do not meet them."""


@pytest.mark.parametrize(
    ("name", "predicate"),
    [
        ("published without a wait", "I11"),
        ("lease narrowed in the renewal's transaction", "I16"),
        ("cache diff without tombstones", "I17"),
        pytest.param("pins not taken again after a wait", "I16", marks=pytest.mark.longer),
        ("expiring lease deleted early", "I16"),
        ("table emptied while others write it", "I12"),
        ("REVOKE returns before other nodes know", "rights"),
        pytest.param("rights by the oldest lease in use", "rights", marks=pytest.mark.longer),
        ("names of roles stay as they were", "rights"),
        ("names of a converted database do not drain", "I39"),
        ("a locked table is changed without being unlocked", "I33"),
        ("lock and change in one version", "I33"),
        ("a table is locked again without a look at the mark", "I33"),
        pytest.param("closed table used all the same", "rows", marks=pytest.mark.longer),
    ],
)
def test_a_mutant_is_killed(name: str, predicate: str) -> None:
    first = FIRST_SEEDS.get(name, 0)
    _, result = mutants.hunt(mutants.named(name), seeds=range(first, first + 40))
    assert result is not None
    assert predicate in {violation.predicate for violation in result.violations}


@pytest.mark.longer
def test_a_failure_is_shrunk() -> None:
    mutant = mutants.named("cache diff without tombstones")
    _, result = mutants.hunt(mutant, seeds=range(15))
    assert result is not None
    case = shrink.case_of(result, seconds=60.0, nodes=3, profile=mutant.profile, mutant=mutant.name)
    with mutant.applied():
        smaller = shrink.shrink(case, replays_max=60)
        assert smaller.violation() is not None
    assert sum(map(len, smaller.draws.values())) < sum(map(len, case.draws.values()))


def test_every_mistake_has_a_name_of_its_own() -> None:
    names = [mutant.name for mutant in mutants.MUTANTS]
    assert len(names) == len(set(names))
    assert {each[0] for each in schema_mistakes.ALL} < set(names)
