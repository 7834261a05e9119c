"""A session, spoken to without a wire: what it tries again, what it answers when, what it takes back."""

from typing import Any

import pytest

from tenure.base.errors import RetryError
from tenure.node import Node
from tenure.sql.session.answers import Answer, BlockStatus, NotShort
from tests.unit.sql.talking import Speaker

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
    assert one.refused("UPDATE t SET a = 6 WHERE id = 2") == "40001"
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
    assert one.refused("ROLLBACK TO s") == "3B001"
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
    assert other.refused("SELECT id FROM t WHERE id = 1 FOR UPDATE NOWAIT") == "55P03"
    one.run("COMMIT")
    assert other.rows("SELECT id FROM t WHERE id = 1 FOR UPDATE NOWAIT") == [(1,)]


def test_a_failed_block_takes_only_its_end(one: Speaker) -> None:
    one.run("BEGIN")
    one.run("SAVEPOINT s")
    assert one.refused("SELECT 1/0") == "22012"
    assert one.session.status is BlockStatus.FAILED
    assert one.refused("SELECT 1") == "25P02"
    assert one.refused("BEGIN") == "25P02"
    one.run("/* why */ ROLLBACK TO s")
    assert one.rows("SELECT 1") == [(1,)]
    assert one.tag("COMMIT") == "COMMIT"


def test_commit_of_a_failed_block_is_a_rollback(one: Speaker) -> None:
    one.run("BEGIN")
    assert one.refused("SELECT 1/0") == "22012"
    assert one.tag("COMMIT") == "ROLLBACK"


def test_a_chained_transaction_is_as_the_one_before(one: Speaker) -> None:
    one.run("BEGIN READ ONLY")
    assert one.tag("COMMIT AND CHAIN") == "COMMIT"
    assert one.session.status is BlockStatus.IN_TRANSACTION
    assert one.refused("UPDATE t SET a = 1") == "25006"
    one.run("ROLLBACK")
    assert one.refused("ROLLBACK AND CHAIN") == "25P01"


def test_several_statements_are_one_transaction(one: Speaker, other: Speaker) -> None:
    assert one.refused("UPDATE t SET a = 9 WHERE id = 1; SELECT 1/0") == "22012"
    assert other.rows("SELECT a FROM t WHERE id = 1") == [(0,)]


def test_a_schema_change_that_fails_takes_back_the_statements_before_it(one: Speaker) -> None:
    assert one.refused("CREATE TABLE u (a INT); INSERT INTO u VALUES (1); CREATE TABLE t (a INT)") == "42P07"
    assert one.refused("SELECT * FROM u") == "42P01"


@pytest.mark.parametrize("level", ["READ COMMITTED", "READ UNCOMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def test_every_isolation_level_is_accepted(one: Speaker, level: str) -> None:
    one.run("BEGIN")
    one.run(f"SET TRANSACTION ISOLATION LEVEL {level}")
    assert one.rows("SHOW transaction_isolation") == [(level.lower(),)]
    one.run("COMMIT")
    assert one.rows("SHOW transaction_isolation") == [("serializable",)]
