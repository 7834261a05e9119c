"""Every scenario for a few seconds; `make faults` runs them on each engine, and for longer."""

import pytest

from tests.faults import beats, clocks, crashes, cuts, disks, inputs
from tests.faults.harness import Result, Run
from tests.faults.smoke import both_engines, holds

SECONDS = 2.0

pytestmark = [
    pytest.mark.timeout(120),
]


@pytest.mark.invariant("I2")
@both_engines(scenario="processes")
def test_four_threads_in_three_processes_are_serializable(run: Run) -> None:
    holds(crashes.processes(run))


@pytest.mark.invariant("I5")
@both_engines(scenario="kill")
def test_acknowledged_commits_survive_kill_9(run: Run) -> None:
    holds(crashes.kill(run))


@pytest.mark.parametrize("engine", ["postgres"])
def test_acknowledged_commits_survive_an_immediate_stop_of_postgresql(run: Run) -> None:
    holds(crashes.pg_immediate(run))


@pytest.mark.parametrize("engine", ["postgres"])
def test_acknowledged_commits_survive_killed_backends(run: Run) -> None:
    holds(crashes.pg_backend_kill(run))


@pytest.mark.parametrize("engine", ["postgres"])
def test_a_connection_cut_inside_commit_is_settled(run: Run) -> None:
    holds(cuts.cut_by_proxy(run, ("cut_before", "cut_after", "cut_answer", "blackhole", "delay", "slice")))


@pytest.mark.parametrize("engine", ["postgres"])
def test_no_commit_lands_after_it_was_reported_as_failed(run: Run) -> None:
    holds(cuts.cut_by_proxy(run, ("late",)))


@pytest.mark.parametrize("engine", ["sqlite"])
def test_a_process_stopped_in_its_section_only_makes_others_wait(run: Run) -> None:
    holds(cuts.stop_in_section(run))


@pytest.mark.invariant("I6")
@both_engines(scenario="skew")
def test_clocks_250_ms_apart_keep_the_invariants(run: Run) -> None:
    holds(clocks.skew(run))


@pytest.mark.invariant("I6")
@both_engines(scenario="clock_ahead")
def test_a_clock_beyond_max_offset_refuses_to_commit_and_says_what_to_do(run: Run) -> None:
    holds(clocks.clock_ahead(run))


@both_engines(scenario="idle")
def test_an_idle_hour_changes_nothing(run: Run) -> None:
    holds(clocks.idle(run))


@both_engines(scenario="disk_full")
def test_a_full_disk_is_said_loses_nothing_and_is_over_once_there_is_space(run: Run) -> None:
    holds(disks.disk_full(run))


@pytest.mark.parametrize("engine", ["sqlite"])
def test_a_full_disk_by_quota_is_said_and_loses_nothing(run: Run) -> None:
    holds(disks.page_quota(run))


def case(run: Run, check: inputs.Case) -> None:
    result = Result()
    check(run, result)
    holds(result)


@pytest.mark.parametrize("engine", ["sqlite"])
@pytest.mark.parametrize("check", [inputs.not_a_database, inputs.foreign_database, inputs.damaged_pages])
def test_a_corrupt_file_is_refused_and_left_as_it_is(run: Run, check: inputs.Case) -> None:
    case(run, check)


@pytest.mark.parametrize(
    ("engine", "check"),
    [("sqlite", inputs.newer_file), ("postgres", inputs.newer_schema)],
    ids=["sqlite", "postgres"],
)
def test_a_store_of_a_newer_format_is_refused(run: Run, check: inputs.Case) -> None:
    case(run, check)


@pytest.mark.parametrize("engine", ["sqlite"])
def test_a_missing_directory_is_named(run: Run) -> None:
    case(run, inputs.missing_directory)


@pytest.mark.parametrize("engine", ["postgres"])
def test_a_wrong_password_is_refused_and_never_shown(run: Run) -> None:
    case(run, inputs.wrong_password)


@pytest.mark.parametrize("engine", ["postgres"])
@pytest.mark.parametrize("check", [inputs.unreachable_server, inputs.silent_server])
def test_an_unreachable_server_is_said_in_time(run: Run, check: inputs.Case) -> None:
    case(run, check)


@pytest.mark.parametrize("engine", ["postgres"])
def test_a_server_that_goes_away_is_said_and_service_goes_on(run: Run) -> None:
    case(run, inputs.server_goes_away)


@both_engines(scenario="heartbeat_load")
def test_heartbeats_are_not_starved_by_full_write_load(run: Run) -> None:
    holds(beats.heartbeat_load(run))
