"""A statement that writes ends when its client gives up, until its commit is the store's to decide."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tenure.kv.commits import Committer
from tenure.kv.transaction import Transaction
from tenure.node import Node
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.portal_runs import PortalRuns
from tenure.sql.execution.statement import Control
from tenure.sql.session.answers import Answer
from tenure.sql.session.block import Block
from tenure.storage.engine import Commit, Outcome
from tenure.table.write import TableWriter
from tests.unit.sql.sessions import Talk

ROWS = 600


@pytest.fixture
def talk(node: Node) -> Iterator[Talk]:
    talk = Talk(node)
    talk.say("CREATE TABLE t (id int PRIMARY KEY, of int REFERENCES t)")
    assert not talk.say(f"INSERT INTO t SELECT i, i FROM generate_series(1, {ROWS}) i").sqlstate
    yield talk
    talk.say("DROP TABLE t")
    talk.close()


@pytest.fixture
def canceled_by(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> Callable[[type, str], None]:
    """The client cancels when a method is called for the first time from now on."""

    def arm(owner: type, name: str) -> None:
        method = getattr(owner, name)

        def cancel_first(*given: Any, **named: Any) -> Any:
            monkeypatch.undo()
            talk.session.cancel()
            return method(*given, **named)

        monkeypatch.setattr(owner, name, cancel_first)

    return arm


@pytest.mark.parametrize(
    ("statement", "owner", "method"),
    [
        ("DELETE FROM t", TableWriter, "delete"),
        ("UPDATE t SET of = 1", TableWriter, "update"),
        ("UPDATE t SET of = id - id % 2 + 1", Transaction, "present"),
        (f"INSERT INTO t SELECT i FROM generate_series({ROWS + 1}, {3 * ROWS}) i", TableWriter, "_add"),
        ("DELETE FROM t", Transaction, "_settle_reads"),
    ],
)
def test_a_write_that_is_canceled_ends_and_leaves_nothing(
    talk: Talk, canceled_by: Callable[[type, str], None], statement: str, owner: type, method: str
) -> None:
    canceled_by(owner, method)
    assert talk.say(statement).sqlstate == "57014"
    assert talk.say("SELECT count(*), sum(of) FROM t").rows == ((str(ROWS), str(ROWS * (ROWS + 1) // 2)),)


def test_a_commit_of_a_block_that_is_canceled_takes_it_back(
    talk: Talk, canceled_by: Callable[[type, str], None]
) -> None:
    talk.say("BEGIN")
    talk.say("SAVEPOINT s")
    talk.say("DELETE FROM t")
    canceled_by(Transaction, "_settle_reads")
    assert talk.say("COMMIT").sqlstate == "57014"
    assert talk.say("SELECT count(*) FROM t").rows == ((str(ROWS),),)


def test_a_cancel_that_comes_after_the_commit_was_sent_is_told_as_committed(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    send, was_sent = Committer._send, []

    def send_and_cancel(self: Committer, lane: Any, members: tuple[Commit, ...]) -> list[Outcome]:
        if any(len(member.writes) >= ROWS for member in members):  # not of a lock or a heartbeat
            talk.session.cancel()
            was_sent.append(True)
        return send(self, lane, members)

    monkeypatch.setattr(Committer, "_send", send_and_cancel)
    assert not talk.say("DELETE FROM t").sqlstate
    assert was_sent
    assert talk.say("SELECT count(*) FROM t").rows == (("0",),)


class _CanceledLate(Control):
    """A statement whose client cancels it when its work is done."""

    def control(self, execution: Execution) -> Answer:
        execution.session.interrupts.cancel()
        return Answer([(1,)], "DONE")


def test_a_cancel_that_comes_when_the_work_of_a_job_is_done_is_told_as_done(node: Node) -> None:
    talk = Talk(node)
    session = talk.session
    session.prepare("", "SELECT 1", ())
    portal = session.bind("", "", ())
    state = session.state
    state.interrupts.start()
    runs = PortalRuns(state, session.portals, session.preparing)
    execution = Execution(state, Block(state.services), ())
    answer = runs.control(execution, _CanceledLate(), portal, 0)
    assert isinstance(answer, Answer)
    assert (list(answer.rows), answer.tag) == ([(1,)], "DONE")
    talk.close()
