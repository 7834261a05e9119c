"""What a session keeps from statement to statement: settings, prepared statements, cursors, its end."""

from typing import Any

import pytest

from tenure.base.errors import TenureError, Terminated, UndefinedTable
from tenure.node import Node
from tenure.sql.execution import portals
from tenure.sql.session.answers import Answer
from tests.unit.sql.talking import Speaker, front_of

# ── settings ───────────────────────────────────────────────────────────────────────────────────


def test_set_local_ends_with_its_transaction_and_set_does_not(one: Speaker) -> None:
    one.run("BEGIN")
    one.run("SET LOCAL work_mem = '1MB'")
    one.run("SET application_name = 'me'")
    one.run("COMMIT")
    assert one.rows("SHOW work_mem") == [("4MB",)]
    assert one.rows("SHOW application_name") == [("me",)]


def test_set_after_set_local_stays(one: Speaker) -> None:
    one.run("BEGIN")
    one.run("SET LOCAL application_name = 'mine'")
    one.run("SET application_name = 'ours'")
    one.run("COMMIT")
    assert one.rows("SHOW application_name") == [("ours",)]


def test_a_rollback_takes_settings_back_and_tells_the_client(one: Speaker) -> None:
    one.run("SET application_name = 'before'")
    one.session.changed.clear()
    one.run("BEGIN")
    one.run("SET application_name = 'within'")
    one.run("ROLLBACK")
    assert one.rows("SHOW application_name") == [("before",)]
    assert one.session.changed == {"application_name": "before"}


@pytest.mark.parametrize(
    ("name", "sqlstate"),
    [("server_version", "55P02"), ("is_superuser", "55P02"), ("session_authorization", "0A000")],
)
def test_a_client_cannot_open_a_session_with_what_the_node_says_of_itself(
    node: Node, name: str, sqlstate: str
) -> None:
    with pytest.raises(TenureError) as caught:
        Speaker(node, **{name: "x"})
    assert caught.value.sqlstate == sqlstate


# ── prepared statements and cursors ────────────────────────────────────────────────────────────


def test_constants_of_a_prepared_statement_are_its_own(one: Speaker) -> None:
    one.run("PREPARE p AS SELECT id FROM t WHERE id = 3 AND a + 1 = 1")
    assert one.rows("EXECUTE p") == [(3,)]
    one.run("PREPARE q (int) AS SELECT id + 10 FROM t WHERE id = $1")
    assert one.rows("EXECUTE q(4)") == [(14,)]
    one.run("DEALLOCATE p")
    assert one.refused("EXECUTE p") == "26000"


def test_a_session_has_only_so_many_prepared_statements(
    one: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portals, "PREPARED_MAX", 3)
    one.run("PREPARE a AS SELECT 1")
    one.run("PREPARE b AS SELECT 1")
    assert one.refused("PREPARE c AS SELECT 1") == "53400"
    assert one.rows("EXECUTE a") == [(1,)]


def test_a_session_has_only_so_many_cursors(one: Speaker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portals, "PORTALS_MAX", 2)
    one.run("BEGIN")
    one.run("DECLARE c CURSOR FOR SELECT 1")
    assert one.refused("DECLARE d CURSOR FOR SELECT 1") == "53400"
    one.run("ROLLBACK")


def test_a_cursor_reads_on_where_it_is(one: Speaker) -> None:
    one.run("BEGIN")
    one.run("DECLARE c SCROLL CURSOR FOR SELECT id FROM t WHERE id > 1 ORDER BY id")
    assert one.rows("FETCH 2 FROM c") == [(2,), (3,)]
    assert one.rows("FETCH BACKWARD 1 FROM c") == [(2,)]
    assert one.tag("MOVE 1 FROM c") == "MOVE 1"
    assert one.rows("FETCH ALL FROM c") == [(4,), (5,)]
    assert one.rows("FETCH FIRST FROM c") == [(2,)]
    one.run("CLOSE c")
    assert one.refused("FETCH c") == "34000"
    one.run("ROLLBACK")


def test_a_cursor_declared_after_a_savepoint_goes_with_it(one: Speaker) -> None:
    one.run("BEGIN")
    one.run("DECLARE early CURSOR FOR SELECT id FROM t ORDER BY id")
    one.run("SAVEPOINT s")
    one.run("DECLARE late CURSOR FOR SELECT 1")
    one.run("ROLLBACK TO s")
    assert one.rows("FETCH early") == [(1,)]
    assert one.refused("FETCH late") == "34000"
    one.run("ROLLBACK")


def test_a_held_cursor_outlives_a_commit_and_no_rollback(one: Speaker) -> None:
    one.run("BEGIN")
    one.run("DECLARE kept CURSOR WITH HOLD FOR SELECT id FROM t ORDER BY id")
    one.run("COMMIT")
    one.run("BEGIN")
    one.run("DECLARE lost CURSOR WITH HOLD FOR SELECT 1")
    one.run("ROLLBACK")
    assert one.rows("FETCH 2 FROM kept") == [(1,), (2,)]
    assert one.refused("FETCH lost") == "34000"


def test_discard_all_leaves_a_session_as_it_was_opened(one: Speaker, other: Speaker) -> None:
    one.run("SET work_mem = '7MB'")
    one.run("PREPARE p AS SELECT 1")
    one.run("SELECT pg_advisory_lock(77)")
    one.run("INSERT INTO numbered (a) VALUES (1)")
    one.run("DISCARD ALL")
    assert one.rows("SHOW work_mem") == [("4MB",)]
    assert one.refused("EXECUTE p") == "26000"
    assert one.refused("SELECT lastval()") == "55000"
    assert other.rows("SELECT pg_try_advisory_lock(77)") == [(True,)]


# ── reading the past ───────────────────────────────────────────────────────────────────────────


def _now(speaker: Speaker) -> str:
    return str(speaker.rows("SELECT cluster_logical_timestamp()")[0][0])


def test_a_query_reads_as_of_a_moment(one: Speaker) -> None:
    at = _now(one)
    one.run("DELETE FROM t WHERE id > 2")
    assert one.rows(f"SELECT count(*) FROM t AS OF SYSTEM TIME '{at}'") == [(5,)]
    assert one.rows("SELECT count(*) FROM t") == [(2,)]


@pytest.mark.parametrize(
    "begin", ["BEGIN AS OF SYSTEM TIME '{}'", "BEGIN; SET TRANSACTION AS OF SYSTEM TIME '{}'"]
)
def test_a_transaction_reads_as_of_a_moment_and_writes_nothing(one: Speaker, begin: str) -> None:
    at = _now(one)
    one.run("DELETE FROM t WHERE id > 2")
    one.run(begin.format(at))
    assert one.rows("SELECT count(*) FROM t") == [(5,)]
    assert one.refused("DELETE FROM t") == "25006"
    one.run("ROLLBACK")


def test_the_first_query_of_a_block_may_say_when(one: Speaker) -> None:
    at = _now(one)
    one.run("DELETE FROM t WHERE id > 2")
    one.run("BEGIN")
    assert one.rows(f"SELECT count(*) FROM t AS OF SYSTEM TIME '{at}'") == [(5,)]
    one.run("ROLLBACK")


def test_prepared_statements_and_cursors_read_as_of_a_moment(one: Speaker) -> None:
    at = _now(one)
    one.run("DELETE FROM t WHERE id > 2")
    one.run(f"PREPARE past AS SELECT count(*) FROM t AS OF SYSTEM TIME '{at}'")
    assert one.rows("EXECUTE past") == [(5,)]
    one.run("BEGIN")
    one.run(f"DECLARE c CURSOR FOR SELECT count(*) FROM t AS OF SYSTEM TIME '{at}'")
    assert one.rows("FETCH c") == [(5,)]
    one.run("ROLLBACK")


def test_what_cannot_heed_the_moment_is_refused(one: Speaker) -> None:
    assert one.refused("DELETE FROM t AS OF SYSTEM TIME '-1s'") == "0A000"
    assert one.refused("SELECT 1 FROM t AS OF SYSTEM TIME '2100-01-01'") == "22023"
    assert one.refused("SELECT 1 FROM t AS OF SYSTEM TIME '1 hour'") == "22023"


# ── writing ────────────────────────────────────────────────────────────────────────────────────


def test_overriding_says_what_becomes_of_given_identities(one: Speaker, node: Node) -> None:
    one.run("CREATE TABLE who (id INT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a INT)")
    assert one.refused("INSERT INTO who VALUES (50, 1)") == "428C9"
    assert one.rows("INSERT INTO who OVERRIDING SYSTEM VALUE VALUES (50, 1) RETURNING id") == [(50,)]
    assert one.rows("INSERT INTO who OVERRIDING USER VALUE VALUES (60, 1) RETURNING id") == [(1,)]
    assert one.rows("INSERT INTO who OVERRIDING USER VALUE SELECT 70, 2 RETURNING id, a") == [(2, 2)]
    assert one.rows("INSERT INTO who OVERRIDING SYSTEM VALUE SELECT 71, 2 RETURNING id") == [(71,)]
    assert one.rows("INSERT INTO who VALUES (DEFAULT, 3) RETURNING id") == [(3,)]


def test_several_columns_are_set_from_a_subquery(one: Speaker) -> None:
    one.run("UPDATE t SET (a, b) = (SELECT u.id * 10, u.b || '!' FROM t u WHERE u.id = t.id) WHERE id < 3")
    assert one.rows("SELECT a, b FROM t WHERE id < 3 ORDER BY id") == [(10, "b!"), (20, "b!")]
    one.run("UPDATE t SET (a, b) = (SELECT 1, 'x' WHERE false) WHERE id = 1")
    assert one.rows("SELECT a, b FROM t WHERE id = 1") == [(None, None)]


# ── ending ─────────────────────────────────────────────────────────────────────────────────────


def test_a_session_that_lost_its_advisory_locks_ends(node: Node, one: Speaker) -> None:
    one.run("SELECT pg_advisory_lock(1)")
    advisory = front_of(node).services.advisory
    owned: Any = advisory._owners[one.session.state.locks.owner()]
    lost = type("Lost", (), {"done": node.store.env.event()})()
    lost.done.set()
    owned.sessions[lost] = None
    with pytest.raises(Terminated) as caught:
        one.run("SELECT a FROM t WHERE id = 1")
    assert caught.value.sqlstate == "57P01"


def test_transaction_timeout_ends_the_session(one: Speaker) -> None:
    one.run("SET transaction_timeout = '50ms'")
    one.run("BEGIN")
    with pytest.raises(Terminated) as caught:
        one.run("SELECT pg_sleep(5)")
    assert caught.value.sqlstate == "25P04"


def test_a_session_that_is_closed_gives_up_its_locks(node: Node, other: Speaker) -> None:
    gone = Speaker(node)
    gone.run("BEGIN")
    gone.run("SELECT 1 FROM t WHERE id = 1 FOR UPDATE")
    gone.run("SELECT pg_advisory_lock(3)")
    gone.close()
    assert other.rows("SELECT pg_try_advisory_lock(3)") == [(True,)]
    assert other.session.state.services.locks.held(gone.session.state.locks.owner()) == 0


def test_the_time_limit_of_a_portal_begins_anew_with_each_execute(node: Node) -> None:
    one = Speaker(node)
    one.run("SET statement_timeout = '200ms'")
    one.run("BEGIN")
    session = one.session
    session.prepare("q", "SELECT n FROM generate_series(1, 9) AS g (n)", ())
    session.bind("p", "q", ())
    assert isinstance(first := session.execute("p", 2, ends=False), Answer)
    assert not first.is_done
    one.env.sleep(0.3)
    assert isinstance(second := session.execute("p", 2, ends=False), Answer)
    assert [tuple(row) for row in second.rows] == [(3,), (4,)]
    one.run("ROLLBACK")
    one.close()


# ── names ──────────────────────────────────────────────────────────────────────────────────────


def test_a_with_query_that_is_named_before_it_is_in_sight_is_pointed_at(one: Speaker) -> None:
    with pytest.raises(UndefinedTable, match='relation "later" does not exist') as caught:
        one.run("WITH first AS (SELECT * FROM later), later AS (SELECT 1) SELECT * FROM first")
    assert 'There is a WITH item named "later"' in caught.value.detail
    assert caught.value.hint.startswith("Use WITH RECURSIVE")
