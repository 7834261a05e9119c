"""What runs on all nodes: sessions, transactions and locks of the others are shown too."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.unit.sql.served import Served, serving


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Served, Served]]:
    with serving(tmp_path) as one, serving(tmp_path) as another:
        yield one, another


def test_sessions_of_the_other_node_are_shown(two: tuple[Served, Served]) -> None:
    one, another = two
    another.tag("SET application_name = 'over there'")
    rows = one.rows("SELECT node_id, session_id, application_name, statement FROM tenure_internal.sessions")
    there = (2, another.root.info.backend_pid, "over there", "SET application_name = 'over there'")
    assert there in rows
    assert [row[:2] for row in rows if row[0] == 1] == [(1, one.root.info.backend_pid)]


def test_locks_and_transactions_of_the_other_node_are_shown(two: tuple[Served, Served]) -> None:
    one, another = two
    one.tag("CREATE TABLE t (id int PRIMARY KEY)")
    one.tag("INSERT INTO t VALUES (7)")
    another.tag("BEGIN")
    another.tag("SELECT * FROM t FOR UPDATE")
    pid = another.root.info.backend_pid
    locks = one.rows("SELECT node_id, session_id, table_name, key FROM tenure_internal.locks")
    assert locks == [(2, pid, "defaultdb.public.t", "(id)=(7)")]
    rows = one.rows("SELECT node_id, session_id, statement FROM tenure_internal.transactions")
    assert (2, pid, "SELECT * FROM t FOR UPDATE") in rows


def test_all_of_it_is_shown_within_a_transaction_too(two: tuple[Served, Served]) -> None:
    one, another = two
    one.tag("BEGIN READ ONLY")
    one.tag("SAVEPOINT s")
    pids = [row[0] for row in one.rows("SELECT session_id FROM tenure_internal.sessions ORDER BY 1")]
    assert pids == [one.root.info.backend_pid, another.root.info.backend_pid]


def test_users_see_their_own_sessions_on_the_other_node_alone(two: tuple[Served, Served]) -> None:
    one, another = two
    one.tag("CREATE USER plain")
    with one.connect("plain") as here, another.connect("plain") as there:
        rows = here.execute("SELECT user_name, session_id FROM tenure_internal.sessions").fetchall()
        assert sorted(rows) == [("plain", here.info.backend_pid), ("plain", there.info.backend_pid)]


def test_a_node_that_does_not_answer_is_listed(
    two: tuple[Served, Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = two
    monkeypatch.setattr("tenure.cluster.inquiries.Inquiries._reply", lambda self, inquiry: None)
    heard: list[str] = []
    one.root.add_notice_handler(lambda notice: heard.append(notice.message_primary or ""))
    rows = one.rows("SELECT node_id, session_id, state FROM tenure_internal.sessions ORDER BY 1")
    assert rows[-1] == (2, 0, "not answering")
    assert heard == ["node 2 does not answer: its sessions are missing"]


def test_waiting_for_an_answer_can_be_canceled(
    two: tuple[Served, Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = two
    monkeypatch.setattr("tenure.cluster.inquiries.ANSWER_SECONDS", 600.0)
    monkeypatch.setattr("tenure.cluster.inquiries.Inquiries._reply", lambda self, inquiry: None)
    one.tag("SET statement_timeout = '200ms'")
    with pytest.raises(psycopg.errors.QueryCanceled):
        one.rows("SHOW SESSIONS")
