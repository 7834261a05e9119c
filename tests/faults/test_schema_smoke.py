"""Leases and schema changes on real processes, a few seconds; `make faults`: longer, on both engines."""

import pytest

from tests.faults import long_transactions, lost_notifications, schema_kills, schema_stops, schema_upgrade
from tests.faults.harness import Run
from tests.faults.smoke import holds, longer_run, one_engine

SECONDS = 2.0

pytestmark = [
    pytest.mark.timeout(180),
]


@pytest.mark.invariant("I15")
@pytest.mark.invariant("ddl-atomic")
@one_engine("sqlite", scenario="schema_kill")
def test_kill_9_under_changes_loses_no_row_and_leaves_nothing_half_way(run: Run) -> None:
    holds(schema_kills.schema_kill(run))


@pytest.mark.invariant("I10")
@pytest.mark.invariant("I13")
@longer_run("sqlite", scenario="schema_stop")
def test_sigstop_for_half_1_1_and_5_ttls_lets_no_transaction_commit_past_its_lease(run: Run) -> None:
    holds(schema_stops.schema_stop(run))


@pytest.mark.invariant("I12")
@longer_run("postgres", scenario="schema_store_restart")
def test_a_store_restarted_under_changes_loses_no_row_and_leaves_nothing_half_way(run: Run) -> None:
    holds(schema_kills.schema_store_restart(run))


@pytest.mark.invariant("I19")
@longer_run("sqlite", scenario="long_transaction")
def test_a_long_transaction_delays_only_changes_of_what_it_uses_and_not_for_ever(run: Run) -> None:
    holds(long_transactions.long_transaction(run))


@longer_run("postgres", scenario="lost_notifications")
def test_a_node_that_hears_of_nothing_costs_changes_the_poll_interval(run: Run) -> None:
    holds(lost_notifications.lost_notifications(run))


@pytest.mark.invariant("I10")
@pytest.mark.invariant("I12")
@longer_run("sqlite", scenario="schema_upgrade")
def test_a_rolling_upgrade_under_schema_changes_keeps_to_two_versions_and_loses_no_change(run: Run) -> None:
    holds(schema_upgrade.schema_upgrade(run))
