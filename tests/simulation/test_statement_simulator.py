"""READ COMMITTED transactions of three nodes under faults; and mistakes of it that are found."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tenure.kv.commit_proof import CommitProof
from tenure.kv.statement_proofs import StatementProofs
from tests.simulation.knobs import Knobs
from tests.simulation.statement_world import run

SEEDS = (range(4), pytest.param(range(4, 20), marks=pytest.mark.longer))
HUNTED = range(12)
"""Seeds among which a mistake must show."""


def calm(knobs: Knobs) -> None:
    knobs.rates, knobs.skew, knobs.is_liveness = {}, "none", False


def stalls(knobs: Knobs) -> None:
    """Nodes are stopped often, some of them past their ttl: locks are lost."""
    knobs.rates, knobs.skew, knobs.is_liveness, knobs.think_seconds = {"pause": 0.9}, "none", False, 0.05


@pytest.mark.invariant("statement-proofs")
@pytest.mark.invariant("I2")
@pytest.mark.invariant("I9")
@pytest.mark.parametrize("seeds", SEEDS)
def test_seeds_run_without_a_violation(seeds: range) -> None:
    seen = Counter[str]()
    for seed in seeds:
        judged = run(seed)
        assert judged.violations[:3] == [], seed
        seen += judged.seen
    assert seen["committed"] > 100 and seen["found again"] > 0 and seen["Violated"] > 0, seen


@pytest.mark.invariant("statement-proofs")
def test_locks_that_are_lost_cost_no_update() -> None:
    for seed in range(3):
        assert run(seed, stalls).violations[:3] == [], seed


def test_while_all_is_well_nobody_is_refused() -> None:
    for seed in range(3):
        judged = run(seed, calm)
        assert judged.violations[:3] == []
        assert judged.seen["refused"] == judged.seen["RetryError"] == 0, judged.seen
        assert judged.seen["committed"] > 30


def test_a_seed_runs_the_same_way_twice() -> None:
    assert run(5).seen == run(5).seen


# ── mistakes are found ─────────────────────────────────────────────────────────────────────────


def finds(part: str, change: Callable[[Knobs], None]) -> bool:
    return any(part in violation for seed in HUNTED for violation in run(seed, change).violations)


def test_who_looks_at_no_constraint_again_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StatementProofs, "changed_constraints", lambda *values: [])
    assert finds("orphan", calm)


def test_who_forgets_the_proofs_of_earlier_statements_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StatementProofs, "set_aside", lambda self, at, reads: reads.clear())
    assert finds("lost update", stalls)


def test_who_proves_from_the_last_statement_on_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CommitProof, "settle_statements", lambda self, looks_again=False: True)
    assert finds("taken", calm)


def test_who_gives_up_all_proofs_with_a_savepoint_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(self: StatementProofs, since: Any, current: Any) -> None:
        self.rows.clear()
        self.constraints.clear()

    monkeypatch.setattr(StatementProofs, "forget", forget)
    assert finds("orphan", calm) or finds("taken", calm)


def test_who_does_not_find_rows_again_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """And writes what it found before it had the locks."""
    monkeypatch.setattr(CommitProof, "are_unchanged", lambda *values: True)
    monkeypatch.setattr(CommitProof, "hold", lambda *values: None)
    assert finds("lost update", calm)
