"""A session, spoken to without a wire: what it tries again, what it answers when, what it takes back."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.base.errors import RetryError, TenureError, Terminated, UndefinedTable
from tenure.node import Node
from tenure.sql.execution import portals
from tenure.sql.session.answers import Answer, BlockStatus, NotShort
from tests.unit.sql.talking import Speaker, a_node, front_of


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with a_node(Path(tmp_path_factory.mktemp("session"))) as node:
        Speaker(node).run("CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT)")
        Speaker(node).run("CREATE TABLE numbered (id SERIAL PRIMARY KEY, a INT)")
        yield node


@pytest.fixture
def one(node: Node) -> Iterator[Speaker]:
    speaker = Speaker(node)
    speaker.run("DELETE FROM t")
    speaker.run("INSERT INTO t SELECT g, 0, 'b' FROM generate_series(1, 5) g")
    yield speaker
    speaker.close()


@pytest.fixture
def other(node: Node) -> Iterator[Speaker]:
    speaker = Speaker(node)
    yield speaker
    speaker.close()


def _sqlstate(speaker: Speaker, text: str) -> str:
    with pytest.raises(TenureError) as caught:
        speaker.run(text)
    return caught.value.sqlstate


# ── trying again ───────────────────────────────────────────────────────────────────────────────


def test_a_block_waits_for_its_node_to_have_a_lease(
    node: Node, one: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = iter([RetryError("this node has no schema lease just now")] * 3)
    bind = node.leases.bind

    def no_lease_at_first(*arguments: Any, **named: Any) -> Any:
        if (refusal := next(refusals, None)) is not None:
            raise refusal
        return bind(*arguments, **named)

    one.run("BEGIN")
    monkeypatch.setattr(node.leases, "bind", no_lease_at_first)
    with pytest.raises(NotShort):
        one.session.prepare("", "SELECT a FROM t WHERE id = 1", (), inline=True)
    one.session.prepare("", "SELECT a FROM t WHERE id = 1", ())
    assert next(refusals, None) is None
    one.run("COMMIT")


@pytest.mark.invariant("retry-unsent")
def test_an_implicit_statement_that_meets_a_rival_is_run_again(one: Speaker, other: Speaker) -> None:
    """Without a row to lock: the loop's try finds out at its commit, and a thread's succeeds."""
    session = one.session
    session.prepare("", "INSERT INTO t (id, a) VALUES (6, 1) ON CONFLICT DO NOTHING", ())
    session.bind("", "", ())
    pending = session.execute("", ends=True, inline=True)
    assert not isinstance(pending, Answer)
    other.run("INSERT INTO t (id, a) VALUES (6, 2)")
    with pytest.raises(NotShort):
        one.settled(pending)
    again = session.execute("", ends=True)
    assert isinstance(again, Answer)
    assert again.tag == "INSERT 0 0", "what it found when it was run again"


@pytest.mark.invariant("retry-unsent")
def test_an_implicit_statement_whose_commit_cannot_be_begun_is_run_again(node: Node, one: Speaker) -> None:
    session = one.session
    session.prepare("", "UPDATE t SET a = a + 1 WHERE id = 1", ())
    session.bind("", "", ())
    pending = session.execute("", ends=True, inline=True)
    assert not isinstance(pending, Answer) and session.state.block is not None
    assert node.leases.end(session.state.block.use, "somebody waits for its table")
    with pytest.raises(NotShort):
        one.settled(pending)
    again = session.execute("", ends=True)
    assert isinstance(again, Answer) and again.tag == "UPDATE 1"


@pytest.mark.invariant("retry-unsent")
def test_what_was_told_in_part_is_not_run_again(one: Speaker, other: Speaker) -> None:
    session = one.session
    session.prepare("", "SELECT g, (SELECT a FROM t WHERE id = 1) FROM generate_series(1, 1500) g", ())
    session.bind("", "", ())
    answer = session.execute("", ends=True)
    assert isinstance(answer, Answer) and not answer.is_done
    one.session.state.block.txn("x").put(_own_key(one), b"x")  # type: ignore[union-attr]
    other.run("UPDATE t SET a = 7 WHERE id = 1")
    with pytest.raises(RetryError):
        session.execute("", ends=True)
    session.failed()


def _own_key(speaker: Speaker) -> bytes:
    keyspace = speaker.session.state.services.store.keyspace
    return keyspace.table_span(999_999).lo + b"x"


@pytest.mark.invariant("retry-unsent")
def test_a_block_is_not_run_again_by_itself(one: Speaker, other: Speaker) -> None:
    one.run("BEGIN")
    one.run("SELECT a FROM t WHERE id = 1")
    other.run("UPDATE t SET a = 5 WHERE id = 1")
    assert _sqlstate(one, "UPDATE t SET a = 6 WHERE id = 2") == "40001"
    assert one.session.status is BlockStatus.FAILED
    assert one.tag("COMMIT") == "ROLLBACK"
    assert one.rows("SELECT a FROM t WHERE id = 2") == [(0,)]


@pytest.mark.invariant("answer-after-commit")
def test_the_answer_to_a_write_comes_with_its_commit(one: Speaker, other: Speaker) -> None:
    session = one.session
    session.prepare("", "UPDATE t SET a = 3 WHERE id = 1", ())
    session.bind("", "", ())
    pending = session.execute("", ends=True, inline=True)
    assert not isinstance(pending, Answer), "no answer before the commit"
    assert other.rows("SELECT a FROM t WHERE id = 1") == [(0,)]
    answer = one.settled(pending)
    assert answer is not None and answer.tag == "UPDATE 1"
    assert other.rows("SELECT a FROM t WHERE id = 1") == [(3,)]


@pytest.mark.invariant("answer-after-commit")
def test_the_last_of_several_statements_is_answered_after_the_commit_of_all(
    one: Speaker, other: Speaker
) -> None:
    session = one.session
    for number, text in enumerate(("UPDATE t SET a = 1 WHERE id = 1", "UPDATE t SET a = 1 WHERE id = 2")):
        session.prepare("", text, ())
        session.bind("", "", ())
        answer = session.execute("", ends=number == 1)
        assert isinstance(answer, Answer)
        assert other.rows("SELECT sum(a) FROM t") == [(2 if number else 0,)]


def test_notices_of_a_try_that_failed_are_not_told(one: Speaker, node: Node) -> None:
    session = one.session
    session.prepare("", "SELECT pg_advisory_unlock(id) FROM t WHERE id = 1", ())
    session.bind("", "", ())
    with pytest.raises(NotShort):
        session.execute("", ends=True, inline=True)
    assert session.notices == []
    session.execute("", ends=True)
    assert [each.message for each in session.notices] == ["you don't own a lock of type ExclusiveLock"]
    session.notices.clear()


# ── on the door's loop ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    [
        "SELECT pg_sleep(1) FROM t WHERE id = 1",
        "SELECT pg_advisory_lock(5) FROM t WHERE id = 1",
        "SELECT setval('numbered_id_seq', 500) FROM t WHERE id = 1",
    ],
)
def test_what_waits_is_not_short(one: Speaker, text: str) -> None:
    one.session.prepare("", text, ())
    one.session.bind("", "", ())
    with pytest.raises(NotShort):
        one.session.execute("", ends=True, inline=True)


def test_a_sequence_without_values_at_hand_is_not_asked_on_the_loop(one: Speaker, node: Node) -> None:
    Speaker(node).run("CREATE TABLE counted (id SERIAL PRIMARY KEY, a INT)")
    one.run("BEGIN")
    one.session.prepare("", "INSERT INTO counted (a) VALUES (1), (2)", ())
    one.session.bind("", "", ())
    with pytest.raises(NotShort):
        one.session.execute("", ends=False, inline=True)
    answer = one.session.execute("", ends=False)
    assert isinstance(answer, Answer) and answer.tag == "INSERT 0 2"
    one.run("COMMIT")
    assert one.rows("SELECT id FROM counted ORDER BY id") == [(1,), (2,)]


def test_rows_written_before_a_statement_turned_out_long_are_taken_back(one: Speaker, node: Node) -> None:
    """The block's 32 values do not suffice: the statement is begun on the loop, and run in a thread."""
    Speaker(node).run("CREATE TABLE many (id SERIAL PRIMARY KEY, a INT)")
    values = ", ".join(["(0)"] * 20)
    one.run(f"INSERT INTO many (a) VALUES {values}")
    one.run("BEGIN")
    one.run(f"INSERT INTO many (a) VALUES {values}", inline=True)
    one.run("COMMIT")
    assert one.rows("SELECT count(*) FROM many") == [(40,)]


# ── transactions ───────────────────────────────────────────────────────────────────────────────


def test_going_back_to_a_savepoint_undoes_what_came_after(one: Speaker) -> None:
    one.run("BEGIN")
    one.run("UPDATE t SET a = 1 WHERE id = 1")
    one.run("SAVEPOINT s")
    one.run("SET LOCAL work_mem = '1MB'")
    one.run("UPDATE t SET a = 2 WHERE id = 1")
    one.run("ROLLBACK TO SAVEPOINT s")
    assert one.rows("SHOW work_mem") == [("4MB",)]
    assert one.rows("SELECT a FROM t WHERE id = 1") == [(1,)]
    one.run("RELEASE s")
    assert _sqlstate(one, "ROLLBACK TO s") == "3B001"
    one.run("ROLLBACK")


def test_going_back_to_a_savepoint_gives_up_the_locks_taken_since(one: Speaker, other: Speaker) -> None:
    one.run("BEGIN")
    one.run("SELECT 1 FROM t WHERE id = 1 FOR UPDATE")
    one.run("SAVEPOINT s")
    one.run("SELECT 1 FROM t WHERE id = 2 FOR UPDATE")
    one.run("SELECT pg_advisory_xact_lock(7)")
    assert other.rows("SELECT pg_try_advisory_lock(7)") == [(False,)]
    one.run("ROLLBACK TO s")
    assert other.rows("SELECT id FROM t WHERE id = 2 FOR UPDATE NOWAIT") == [(2,)]
    assert other.rows("SELECT pg_try_advisory_lock(7)") == [(True,)]
    assert _sqlstate(other, "SELECT id FROM t WHERE id = 1 FOR UPDATE NOWAIT") == "55P03"
    one.run("COMMIT")
    assert other.rows("SELECT id FROM t WHERE id = 1 FOR UPDATE NOWAIT") == [(1,)]


def test_a_failed_block_takes_only_its_end(one: Speaker) -> None:
    one.run("BEGIN")
    one.run("SAVEPOINT s")
    assert _sqlstate(one, "SELECT 1/0") == "22012"
    assert one.session.status is BlockStatus.FAILED
    assert _sqlstate(one, "SELECT 1") == "25P02"
    assert _sqlstate(one, "BEGIN") == "25P02"
    one.run("/* why */ ROLLBACK TO s")
    assert one.rows("SELECT 1") == [(1,)]
    assert one.tag("COMMIT") == "COMMIT"


def test_commit_of_a_failed_block_is_a_rollback(one: Speaker) -> None:
    one.run("BEGIN")
    assert _sqlstate(one, "SELECT 1/0") == "22012"
    assert one.tag("COMMIT") == "ROLLBACK"


def test_a_chained_transaction_is_as_the_one_before(one: Speaker) -> None:
    one.run("BEGIN READ ONLY")
    assert one.tag("COMMIT AND CHAIN") == "COMMIT"
    assert one.session.status is BlockStatus.IN_TRANSACTION
    assert _sqlstate(one, "UPDATE t SET a = 1") == "25006"
    one.run("ROLLBACK")
    assert _sqlstate(one, "ROLLBACK AND CHAIN") == "25P01"


def test_several_statements_are_one_transaction(one: Speaker, other: Speaker) -> None:
    assert _sqlstate(one, "UPDATE t SET a = 9 WHERE id = 1; SELECT 1/0") == "22012"
    assert other.rows("SELECT a FROM t WHERE id = 1") == [(0,)]


def test_a_schema_change_that_fails_takes_back_the_statements_before_it(one: Speaker) -> None:
    assert (
        _sqlstate(one, "CREATE TABLE u (a INT); INSERT INTO u VALUES (1); CREATE TABLE t (a INT)") == "42P07"
    )
    assert _sqlstate(one, "SELECT * FROM u") == "42P01"


@pytest.mark.parametrize("level", ["READ COMMITTED", "READ UNCOMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def test_every_isolation_level_is_accepted(one: Speaker, level: str) -> None:
    one.run("BEGIN")
    one.run(f"SET TRANSACTION ISOLATION LEVEL {level}")
    assert one.rows("SHOW transaction_isolation") == [(level.lower(),)]
    one.run("COMMIT")
    assert one.rows("SHOW transaction_isolation") == [("serializable",)]


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
    assert _sqlstate(one, "EXECUTE p") == "26000"


def test_a_session_has_only_so_many_prepared_statements(
    one: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portals, "PREPARED_MAX", 3)
    one.run("PREPARE a AS SELECT 1")
    one.run("PREPARE b AS SELECT 1")
    assert _sqlstate(one, "PREPARE c AS SELECT 1") == "53400"
    assert one.rows("EXECUTE a") == [(1,)]


def test_a_session_has_only_so_many_cursors(one: Speaker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portals, "PORTALS_MAX", 2)
    one.run("BEGIN")
    one.run("DECLARE c CURSOR FOR SELECT 1")
    assert _sqlstate(one, "DECLARE d CURSOR FOR SELECT 1") == "53400"
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
    assert _sqlstate(one, "FETCH c") == "34000"
    one.run("ROLLBACK")


def test_a_cursor_declared_after_a_savepoint_goes_with_it(one: Speaker) -> None:
    one.run("BEGIN")
    one.run("DECLARE early CURSOR FOR SELECT id FROM t ORDER BY id")
    one.run("SAVEPOINT s")
    one.run("DECLARE late CURSOR FOR SELECT 1")
    one.run("ROLLBACK TO s")
    assert one.rows("FETCH early") == [(1,)]
    assert _sqlstate(one, "FETCH late") == "34000"
    one.run("ROLLBACK")


def test_a_held_cursor_outlives_a_commit_and_no_rollback(one: Speaker) -> None:
    one.run("BEGIN")
    one.run("DECLARE kept CURSOR WITH HOLD FOR SELECT id FROM t ORDER BY id")
    one.run("COMMIT")
    one.run("BEGIN")
    one.run("DECLARE lost CURSOR WITH HOLD FOR SELECT 1")
    one.run("ROLLBACK")
    assert one.rows("FETCH 2 FROM kept") == [(1,), (2,)]
    assert _sqlstate(one, "FETCH lost") == "34000"


def test_discard_all_leaves_a_session_as_it_was_opened(one: Speaker, other: Speaker) -> None:
    one.run("SET work_mem = '7MB'")
    one.run("PREPARE p AS SELECT 1")
    one.run("SELECT pg_advisory_lock(77)")
    one.run("INSERT INTO numbered (a) VALUES (1)")
    one.run("DISCARD ALL")
    assert one.rows("SHOW work_mem") == [("4MB",)]
    assert _sqlstate(one, "EXECUTE p") == "26000"
    assert _sqlstate(one, "SELECT lastval()") == "55000"
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
    assert _sqlstate(one, "DELETE FROM t") == "25006"
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
    assert _sqlstate(one, "DELETE FROM t AS OF SYSTEM TIME '-1s'") == "0A000"
    assert _sqlstate(one, "SELECT 1 FROM t AS OF SYSTEM TIME '2100-01-01'") == "22023"
    assert _sqlstate(one, "SELECT 1 FROM t AS OF SYSTEM TIME '1 hour'") == "22023"


# ── writing ────────────────────────────────────────────────────────────────────────────────────


def test_overriding_says_what_becomes_of_given_identities(one: Speaker, node: Node) -> None:
    one.run("CREATE TABLE who (id INT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a INT)")
    assert _sqlstate(one, "INSERT INTO who VALUES (50, 1)") == "428C9"
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
