"""SET, RESET and SHOW CLUSTER SETTING, and what some of them do to statements."""

import select
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tenure.base.settings import DEFINITIONS
from tests.unit.sql.served import Served, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("settings")) as made:
        yield made


def test_a_setting_is_set_shown_and_reset(served: Served) -> None:
    assert served.tag("SET CLUSTER SETTING lease.holder_grace = '7m'") == "SET CLUSTER SETTING"
    assert served.rows("SHOW CLUSTER SETTING lease.holder_grace") == [("7m",)]
    assert served.rows("SELECT value FROM system.settings WHERE name = 'lease.holder_grace'") == [("7m",)]
    assert served.tag("RESET CLUSTER SETTING lease.holder_grace") == "RESET CLUSTER SETTING"
    assert served.rows("SHOW CLUSTER SETTING lease.holder_grace") == [("5m",)]


def test_the_column_is_named_by_the_setting(served: Served) -> None:
    answer = served.root.execute("SHOW CLUSTER SETTING liveness.ttl")
    assert [each.name for each in answer.description or ()] == ["liveness.ttl"]


def test_a_setting_counts_here_when_the_statement_is_over(served: Served) -> None:
    served.tag("SET CLUSTER SETTING kv.transaction.attempts TO 33")
    assert served.node.settings.current().text("kv.transaction.attempts") == "33"
    served.tag("SET CLUSTER SETTING kv.transaction.attempts = DEFAULT")
    assert served.node.settings.current().text("kv.transaction.attempts") == "20"


@pytest.mark.parametrize("statement", ["SHOW ALL CLUSTER SETTINGS", "SHOW CLUSTER SETTINGS"])
def test_all_settings_are_listed(served: Served, statement: str) -> None:
    assert [row[0] for row in served.rows(statement)] == sorted(each.name for each in DEFINITIONS)


@pytest.mark.setting("version")
def test_the_version_is_finalized_by_setting_it(served: Served) -> None:
    served.tag("SET CLUSTER SETTING version = 2")
    assert served.refusal("SET CLUSTER SETTING version = 1").sqlstate == "55000"
    assert served.refusal("SET CLUSTER SETTING version = 3").sqlstate == "55000"
    assert served.refusal("RESET CLUSTER SETTING version").sqlstate == "22023"


def test_an_unknown_setting_is_refused_with_a_guess(served: Served) -> None:
    refusal = served.refusal("SET CLUSTER SETTING livenes.ttl = '1s'")
    assert refusal.sqlstate == "42704"
    assert refusal.message_hint == 'Perhaps you meant "liveness.ttl".'


@pytest.mark.parametrize("value", ["'1ms'", "'x'", "-1", "true", "''"])
def test_a_value_out_of_its_limits_is_refused(served: Served, value: str) -> None:
    assert served.refusal(f"SET CLUSTER SETTING liveness.ttl = {value}").sqlstate == "22023"


@pytest.mark.parametrize(
    "statement",
    [
        "SET CLUSTER SETTING",
        "SET CLUSTER SETTING liveness.ttl",
        "SET CLUSTER SETTING liveness.ttl '1s'",
        "SET CLUSTER SETTING liveness.ttl = '1s' '2s'",
        "RESET CLUSTER SETTING liveness.ttl now",
    ],
)
def test_half_a_statement_is_a_syntax_error(served: Served, statement: str) -> None:
    assert served.refusal(statement).sqlstate == "42601"


def test_settings_are_not_set_inside_a_transaction_block(served: Served) -> None:
    with served.connect() as other:
        other.execute("BEGIN")
        with pytest.raises(psycopg.errors.ActiveSqlTransaction):
            other.execute("SET CLUSTER SETTING liveness.ttl = '41s'")


def test_only_superusers_set_them(served: Served) -> None:
    served.tag("CREATE USER ann")
    with served.connect("ann") as ann:
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
            ann.execute("SET CLUSTER SETTING liveness.ttl = '41s'")
        assert ann.execute("SHOW CLUSTER SETTING liveness.ttl").fetchall() == [("40s",)]


@pytest.mark.setting("sql.statement_timeout")
def test_the_clusters_statement_timeout_is_the_default(served: Served) -> None:
    served.tag("SET CLUSTER SETTING sql.statement_timeout = '50ms'")
    try:
        with served.connect() as other:
            with pytest.raises(psycopg.errors.QueryCanceled):
                other.execute("SELECT pg_sleep(5)")
            other.execute("SET statement_timeout = 0")
            other.execute("SELECT pg_sleep(0.06)")
    finally:
        served.root.execute("SET statement_timeout = 0")
        served.tag("RESET CLUSTER SETTING sql.statement_timeout")


@pytest.mark.invariant("S28")
@pytest.mark.setting("sql.result_bytes_max")
def test_a_result_that_is_too_large_is_ended(served: Served) -> None:
    served.tag("SET CLUSTER SETTING sql.result_bytes_max = 1048576")
    try:
        assert served.rows("SELECT count(*) FROM (SELECT repeat('x', 1000) FROM generate_series(1, 3000)) s")
        refusal = served.refusal("SELECT repeat('x', 1000) FROM generate_series(1, 3000)")
        assert refusal.sqlstate == "54000"
    finally:
        served.tag("RESET CLUSTER SETTING sql.result_bytes_max")


@pytest.mark.setting("sql.idle_in_transaction_session_timeout")
def test_the_clusters_idle_in_transaction_timeout_is_the_default(served: Served) -> None:
    """Also for who is idle already when it is set; a session that says otherwise is left alone."""
    with served.connect() as idle, served.connect() as patient, served.connect() as outside:
        patient.execute("SET idle_in_transaction_session_timeout = 0")
        for each in (idle, patient):
            each.execute("BEGIN")
            each.execute("SELECT 1")
        served.tag("SET CLUSTER SETTING sql.idle_in_transaction_session_timeout = '50ms'")
        try:
            with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
                _wait_for_its_end(idle)
            assert patient.execute("SELECT 2").fetchall() == [(2,)]
            assert outside.execute("SELECT 3").fetchall() == [(3,)]
        finally:
            served.tag("RESET CLUSTER SETTING sql.idle_in_transaction_session_timeout")


def _wait_for_its_end(idle: psycopg.Connection[Any]) -> None:
    """The server's last word wakes the socket."""
    readable, _, _ = select.select([idle.fileno()], [], [], 30)
    assert readable, "the session was not ended"
    idle.execute("SELECT 1")
