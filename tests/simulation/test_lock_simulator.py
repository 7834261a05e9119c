"""Locks of three nodes under faults: they exclude, they end, and while all is well nobody is refused."""

from collections import Counter
from typing import Any

import pytest

from tenure.cluster.locks import stored_locks, table_holds
from tenure.cluster.locks.advisory_locks import AdvisoryLocks
from tenure.cluster.locks.stored_locks import StoredLocks
from tenure.cluster.locks.table_holds import TableHolds
from tenure.cluster.sessions.session_records import SessionId
from tests.simulation.knobs import Knobs
from tests.simulation.lock_world import run

SEEDS = (range(4), pytest.param(range(4, 12), marks=pytest.mark.longer))
HUNTED = range(40)
"""Seeds among which a mistake must show."""


@pytest.mark.invariant("lock-exclusion")
@pytest.mark.invariant("lock-death")
@pytest.mark.invariant("I9")
@pytest.mark.parametrize("seeds", SEEDS)
def test_seeds_run_without_a_violation(seeds: range) -> None:
    violations = {seed: run(seed).violations for seed in seeds}
    assert {seed: found[:3] for seed, found in violations.items() if found} == {}


def calm(knobs: Knobs) -> None:
    knobs.rates, knobs.skew, knobs.is_liveness = {}, "none", False


def stalls(knobs: Knobs) -> None:
    """Nodes are stopped often, some of them past their ttl, and nothing else happens."""
    knobs.rates, knobs.skew, knobs.is_liveness, knobs.think_seconds = {"pause": 0.9}, "none", False, 0.05


def test_while_all_is_well_no_writer_of_a_hot_row_is_refused() -> None:
    for seed in range(4):
        outcome = run(seed, calm)
        assert outcome.violations == []
        assert outcome.seen["refused"] == outcome.seen["RetryError"] == 0, outcome.seen
        assert sum(outcome.acked.values()) > 50


def test_a_seed_runs_the_same_way_twice() -> None:
    assert run(5).seen == run(5).seen


@pytest.mark.invariant("lock-fence")
def test_clients_write_under_locks_that_are_lost() -> None:
    seen = Counter[str]()
    for seed in range(6):
        outcome = run(seed, stalls, guarded=0.8)
        assert outcome.violations == []
        seen += outcome.seen
    assert seen["guarded"] > 50 and seen["SessionLost"] > 0, seen


@pytest.mark.invariant("hold-bounded")
def test_holds_of_tables_run_without_a_violation() -> None:
    seen = Counter[str]()
    for seed in range(8):
        outcome = run(seed, holding=0.2)
        assert outcome.violations == [], seed
        seen += outcome.seen
    assert seen["sum, held"] > 20 and seen["writer meets a hold"] > 20, seen


def share_lost_with_a_hold() -> float:
    """While all is well, of the tries that hold the table."""
    seen = Counter[str]()
    for seed in range(4):
        outcome = run(seed, calm, guarded=0.0, holding=0.2)
        assert outcome.violations == []
        seen += outcome.seen
    assert seen["sum lost, at once"] > 50, "there is something to be held against"
    return seen["sum lost, held"] / (seen["sum, held"] + seen["sum lost, held"])


def test_who_holds_the_table_seldom_loses() -> None:
    assert share_lost_with_a_hold() < 0.25


# ── mistakes are found ─────────────────────────────────────────────────────────────────────────


def finds(part: str) -> bool:
    return any(part in violation for seed in HUNTED for violation in run(seed).violations)


def test_who_tries_again_without_asking_for_its_locks_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AdvisoryLocks, "fence", lambda *values: None)
    assert any(
        "wrote after" in each for seed in range(6) for each in run(seed, stalls, guarded=0.8).violations
    )


def test_who_looks_at_nobody_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_locks, "in_the_way", lambda *values: [])
    assert finds("though")


def test_who_takes_the_expired_for_dead_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_expired(self: StoredLocks, session: SessionId) -> bool:
        expires_at = self._deaths.expiry(session)
        return expires_at is None or expires_at < self.store.clock.now()

    monkeypatch.setattr(StoredLocks, "is_gone", is_expired)
    assert finds("though")


def test_who_forgets_records_that_may_have_landed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(self: StoredLocks, *values: Any) -> None:
        return None

    monkeypatch.setattr(StoredLocks, "_leave", forget)
    assert finds("waits at")


def test_who_looks_for_no_cycle_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_locks, "must_give_way", lambda *values: False)
    assert finds("waits at")


@pytest.mark.longer
def test_a_hold_that_holds_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TableHolds, "hold", lambda *values: True)
    assert share_lost_with_a_hold() > 0.4


@pytest.mark.longer
def test_who_does_not_hear_of_holds_elsewhere_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TableHolds, "_look", lambda *values: None)
    assert share_lost_with_a_hold() > 0.3


def test_who_waits_for_a_hold_for_ever_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_holds, "seconds_between", lambda *values: 1000.0)
    runs = (run(seed, calm, guarded=0.0, holding=0.2) for seed in range(8))
    assert any("waited for a hold" in each for outcome in runs for each in outcome.violations)
