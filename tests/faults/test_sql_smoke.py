"""SQL on real nodes that are broken, a few seconds; `make faults`: longer, on both engines."""

import pytest

from tests.faults import (
    feed_kills,
    kafka_kills,
    sql_advisory,
    sql_bank,
    sql_clients,
    sql_contention,
    sql_ddl,
    sql_drain,
    sql_processes,
    sql_short_history,
    webhook_kills,
)
from tests.faults.harness import Run
from tests.faults.smoke import both_engines, holds, longer_run, one_engine

SECONDS = 2.0

pytestmark = [
    pytest.mark.timeout(240),
]


@longer_run("postgres", scenario="sql_bank")
def test_no_money_is_made_or_lost_when_nodes_clients_and_stores_go_away(run: Run) -> None:
    holds(sql_bank.sql_bank(run))


@one_engine("sqlite", scenario="sql_ddl")
def test_clients_go_on_while_tables_change_and_nodes_die(run: Run) -> None:
    holds(sql_ddl.sql_ddl(run))


@one_engine("sqlite", scenario="feed_kill")
def test_a_changefeed_whose_nodes_are_killed_loses_and_repeats_nothing(run: Run) -> None:
    holds(feed_kills.feed_kill(run))


@longer_run("sqlite", scenario="kafka_kill")
def test_kafka_has_everything_when_nodes_are_killed(run: Run) -> None:
    holds(kafka_kills.kafka_kill(run))


@longer_run("postgres", scenario="webhook_kill")
def test_a_webhook_has_everything_when_nodes_are_killed_and_it_fails_itself(run: Run) -> None:
    holds(webhook_kills.webhook_kill(run))


@longer_run("sqlite", scenario="sql_drain")
def test_a_drain_finishes_what_is_in_flight_and_ends_in_time(run: Run) -> None:
    holds(sql_drain.sql_drain(run))


@longer_run("sqlite", scenario="sql_processes")
def test_a_process_that_is_killed_comes_back_and_harms_nobody_else(run: Run) -> None:
    holds(sql_processes.sql_processes(run))


@both_engines(scenario="sql_clients")
def test_clients_that_vanish_leave_nothing_behind(run: Run) -> None:
    holds(sql_clients.sql_clients(run))


@both_engines(scenario="sql_contention")
def test_clients_at_the_same_rows_of_two_nodes_do_not_fail_each_other(run: Run) -> None:
    holds(sql_contention.sql_contention(run))


@both_engines(scenario="sql_advisory")
def test_a_lock_that_was_lost_while_its_node_was_stopped_guards_nothing(run: Run) -> None:
    holds(sql_advisory.sql_advisory(run))


@longer_run("sqlite", scenario="sql_short_history")
def test_work_that_lasts_longer_than_the_ttl_ends_with_the_right_answer(run: Run) -> None:
    holds(sql_short_history.sql_short_history(run))
