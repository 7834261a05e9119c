"""Sessions and jobs on real processes, a few seconds; `make faults`: longer, on both engines."""

import pytest

from tests.faults import dead_sessions, job_kills, job_stops, job_upgrade, many_nodes
from tests.faults.harness import Run
from tests.faults.smoke import both_engines, holds, longer_run, one_engine

SECONDS = 1.5

pytestmark = [
    pytest.mark.timeout(120),
]


@pytest.mark.invariant("I26")
@one_engine("sqlite", scenario="jobs_kill")
def test_kill_9_repeats_and_loses_no_effect_and_jobs_are_adopted_within_ttl_and_two_seconds(run: Run) -> None:
    holds(job_kills.jobs_kill(run))


@pytest.mark.invariant("I20")
@longer_run("sqlite", scenario="jobs_stop")
def test_sigstop_for_half_1_1_and_5_ttls_repeats_no_effect_and_revives_no_session(run: Run) -> None:
    holds(job_stops.jobs_stop(run))


@pytest.mark.invariant("I23")
@longer_run("postgres", scenario="jobs_store_restart")
def test_a_store_restarted_under_load_repeats_and_loses_no_effect(run: Run) -> None:
    holds(job_kills.jobs_store_restart(run))


@pytest.mark.invariant("I25")
@longer_run("sqlite", scenario="jobs_control")
def test_pause_resume_and_cancel_under_kills_make_legal_steps_and_revert_the_canceled(run: Run) -> None:
    holds(job_kills.jobs_control(run))


@pytest.mark.invariant("I21")
@longer_run("sqlite", scenario="dead_sessions")
def test_a_wait_and_an_adoption_do_not_depend_on_5000_dead_sessions_being_remembered(run: Run) -> None:
    holds(dead_sessions.outlive_many(run))


@both_engines(scenario="dead_sessions")
def test_an_observing_transaction_longer_than_several_heartbeats_commits(run: Run) -> None:
    holds(dead_sessions.observe_for_long(run))


@pytest.mark.parametrize("engine", ["sqlite"])
def test_300_nodes_write_their_heartbeats_and_nothing_else(run: Run) -> None:
    holds(many_nodes.liveness_writes(run))


@pytest.mark.parametrize("engine", ["sqlite"])
def test_10000_claims_under_one_session_write_nothing(run: Run) -> None:
    holds(many_nodes.claims_cost_nothing(run))


@longer_run("sqlite", scenario="jobs_upgrade")
def test_a_rolling_upgrade_under_load_repeats_and_loses_no_effect(run: Run) -> None:
    holds(job_upgrade.jobs_upgrade(run))
