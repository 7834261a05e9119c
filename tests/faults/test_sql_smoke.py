"""SQL on real nodes that are broken, a few seconds; `make faults`: longer, on both engines."""

import pytest

from tests.faults import (
    sql_advisory,
    sql_bank,
    sql_clients,
    sql_contention,
    sql_ddl,
    sql_drain,
    sql_processes,
)
from tests.faults.harness import Run
from tests.faults.smoke import both_engines, holds, one_engine

SECONDS = 2.0

pytestmark = [
    pytest.mark.timeout(240),
]


@one_engine("postgres", scenario="sql_bank")
def test_no_money_is_made_or_lost_when_nodes_clients_and_stores_go_away(run: Run) -> None:
    holds(sql_bank.sql_bank(run))


@one_engine("sqlite", scenario="sql_ddl")
def test_clients_go_on_while_tables_change_and_nodes_die(run: Run) -> None:
    holds(sql_ddl.sql_ddl(run))


@one_engine("sqlite", scenario="sql_drain")
def test_a_drain_finishes_what_is_in_flight_and_ends_in_time(run: Run) -> None:
    holds(sql_drain.sql_drain(run))


@one_engine("sqlite", scenario="sql_processes")
def test_a_process_that_is_killed_comes_back_and_harms_nobody_else(run: Run) -> None:
    holds(sql_processes.sql_processes(run))


@both_engines
def test_clients_that_vanish_leave_nothing_behind(run: Run) -> None:
    holds(sql_clients.sql_clients(run))


@both_engines
def test_clients_at_the_same_rows_of_two_nodes_do_not_fail_each_other(run: Run) -> None:
    holds(sql_contention.sql_contention(run))


@both_engines
def test_a_lock_that_was_lost_while_its_node_was_stopped_guards_nothing(run: Run) -> None:
    holds(sql_advisory.sql_advisory(run))
