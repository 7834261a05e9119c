"""Submitted commits: nobody waits, everybody is told, and groups are shared with those who do wait."""

import gc
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tenure.base.env import ManualEnv, SystemEnv, Task
from tenure.base.errors import (
    DeadlinePassed,
    DiskFull,
    OutcomeUnknown,
    QueryCanceled,
    RetryError,
    SessionLost,
)
from tenure.kv.scope import ReadAhead, TransactionState
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.engine import Group, Outcome, Write
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.kv.breaking import BreakingEngine, Deliver, cut_after_landing, cut_before_landing
from tests.unit.kv.rows import row, write
from tests.unit.kv.waiting import PATIENCE_SECONDS, Call


class CountedTasks(SystemEnv):
    def __init__(self) -> None:
        super().__init__()
        self.tasks: list[Task] = []

    def spawn(self, name: str, run: object) -> Task:
        task = super().spawn(name, run)  # type: ignore[arg-type]
        self.tasks.append(task)
        return task


class Desk:
    """A store over real threads whose next groups can be held up."""

    def __init__(self) -> None:
        self.env = CountedTasks()
        self.engine = BreakingEngine(SqliteEngine(MEMORY, self.env))
        self.store = Store(self.engine, self.env)
        self.gate = threading.Event()
        self.gate.set()
        self.held = threading.Event()
        self.engine.on_commit = self._pass_the_gate

    def _pass_the_gate(self, group: Group, deliver: Deliver) -> list[Outcome]:
        self.held.set()
        assert self.gate.wait(PATIENCE_SECONDS)
        return deliver(group)

    def writing(self, name: str, *, reading: str | None = None) -> Transaction:
        txn = self.store.begin()
        if reading is not None:
            txn.get(row(reading))
        txn.put(row(name), b"1")
        return txn

    def sizes(self) -> list[int]:
        return [len(group.members) for group in self.engine.groups]


class Submit:
    """A transaction on its way."""

    def __init__(self, txn: Transaction) -> None:
        self.txn = txn
        self.is_done = threading.Event()
        txn.submit(self.is_done.set)

    def finish(self) -> int:
        assert self.is_done.wait(PATIENCE_SECONDS), "nobody told what became of it"
        return self.txn.finish()


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()
    yield desk
    desk.gate.set()
    desk.engine.close()


def test_a_submitted_commit_lands_and_says_when(desk: Desk) -> None:
    submit = Submit(desk.writing("a"))
    assert submit.finish() == desk.engine.clock_at() == submit.txn.commit_at
    assert desk.store.begin().get(row("a")) == b"1"


def test_submitting_does_not_wait_for_the_engine(desk: Desk) -> None:
    desk.gate.clear()
    submits = [Submit(desk.writing(name)) for name in "abc"]
    assert not any(submit.is_done.is_set() for submit in submits)
    desk.gate.set()
    assert sorted(submit.finish() for submit in submits) == [submit.txn.commit_at for submit in submits]


def test_what_is_submitted_during_a_group_shares_the_next(desk: Desk) -> None:
    desk.gate.clear()
    first = Submit(desk.writing("first"))
    assert desk.held.wait(PATIENCE_SECONDS)
    submits = [Submit(desk.writing(name)) for name in "abcde"]
    desk.gate.set()
    for submit in [first, *submits]:
        submit.finish()
    assert desk.sizes() == [1, 5]


def test_submitted_and_blocking_commits_all_get_their_outcomes(desk: Desk) -> None:
    calls, submits = [], []
    for number in range(40):
        calls.append(Call(desk.writing(f"call {number}").commit))
        submits.append(Submit(desk.writing(f"submit {number}")))
    ats = [call.result() for call in calls] + [submit.finish() for submit in submits]
    assert len({*ats}) == 80


def test_a_submit_behind_a_blocking_commit_gets_its_turn(desk: Desk) -> None:
    desk.gate.clear()
    blocking = Call(desk.writing("a").commit)
    assert desk.held.wait(PATIENCE_SECONDS)
    submit = Submit(desk.writing("b"))
    desk.gate.set()
    assert blocking.result() < submit.finish()


def test_a_blocking_commit_behind_a_submit_gets_its_turn(desk: Desk) -> None:
    desk.gate.clear()
    submit = Submit(desk.writing("a"))
    assert desk.held.wait(PATIENCE_SECONDS)
    blocking = Call(desk.writing("b").commit)
    desk.gate.set()
    assert submit.finish() < blocking.result()


@pytest.mark.invariant("I2")
def test_a_submit_that_read_what_has_changed_is_refused(desk: Desk) -> None:
    txn = desk.writing("b", reading="a")
    write(desk.store, a=b"2")
    submit = Submit(txn)
    with pytest.raises(RetryError):
        submit.finish()
    assert txn.state is TransactionState.ENDED
    assert desk.store.begin().get(row("b")) is None


@pytest.mark.invariant("I4")
def test_a_submit_keeps_its_deadline(desk: Desk) -> None:
    txn = desk.writing("a")
    txn.deadline_at = desk.engine.clock_at()
    submit = Submit(txn)
    with pytest.raises(DeadlinePassed):
        submit.finish()


@pytest.mark.invariant("I5")
def test_a_submit_whose_connection_broke_is_settled(desk: Desk) -> None:
    desk.engine.on_commit = cut_after_landing
    assert Submit(desk.writing("a")).finish() == desk.engine.clock_at()
    desk.engine.on_commit = cut_before_landing
    with pytest.raises(RetryError):
        Submit(desk.writing("b")).finish()


def test_an_error_of_the_group_is_told_to_each(desk: Desk) -> None:
    def refuse(group: Group, deliver: Deliver) -> list[Outcome]:
        raise DiskFull("no space")

    desk.engine.on_commit = refuse
    for submit in [Submit(desk.writing("a")), Submit(desk.writing("b"))]:
        with pytest.raises(DiskFull):
            submit.finish()


@pytest.mark.invariant("I5")
def test_an_unforeseen_failure_leaves_its_members_in_doubt_and_the_line_moving(desk: Desk) -> None:
    def fail(group: Group, deliver: Deliver) -> list[Outcome]:
        desk.engine.on_commit = None
        raise ZeroDivisionError

    desk.engine.on_commit = fail
    with pytest.raises(OutcomeUnknown):
        Submit(desk.writing("a")).finish()
    Submit(desk.writing("b")).finish()


def test_a_callback_that_fails_harms_nobody(desk: Desk) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    desk.writing("a").submit(fail)
    Submit(desk.writing("b")).finish()
    assert desk.store.begin().get(row("a")) == b"1"


def test_a_callback_may_submit(desk: Desk) -> None:
    second: list[Submit] = []
    is_done = threading.Event()

    def go_on() -> None:
        second.append(Submit(desk.writing("b")))
        is_done.set()

    desk.writing("a").submit(go_on)
    assert is_done.wait(PATIENCE_SECONDS)
    second[0].finish()


def test_what_only_read_is_done_before_submit_returns(desk: Desk) -> None:
    txn = desk.store.begin()
    txn.get(row("a"))
    submit = Submit(txn)
    assert submit.is_done.is_set() and submit.finish() == txn.read_at
    assert desk.env.tasks == [] and desk.engine.groups == []


def test_what_read_from_what_was_known_is_proved_before_submit_returns(desk: Desk) -> None:
    known = ReadAhead(write(desk.store, a=b"1"), {row("a"): b"1"})
    write(desk.store, a=b"2")
    txn = desk.store.begin(read_ahead=known)
    txn.get(row("a"))
    submit = Submit(txn)
    assert submit.is_done.is_set()
    with pytest.raises(RetryError):
        submit.finish()


def test_a_submitted_transaction_can_be_neither_used_nor_rolled_back(desk: Desk) -> None:
    desk.gate.clear()
    submit = Submit(desk.writing("a"))
    with pytest.raises(AssertionError):
        submit.txn.put(row("b"), b"1")
    with pytest.raises(AssertionError):
        submit.txn.finish()
    submit.txn.rollback()
    desk.gate.set()
    submit.finish()
    assert submit.txn.state is TransactionState.COMMITTED


def test_a_childs_submit_is_excused_to_its_parent(desk: Desk) -> None:
    parent = desk.writing("a", reading="b")
    child = parent.child()
    child.put(row("b"), b"1")
    Submit(child).finish()
    assert parent.get(row("b")) == b"1"
    parent.commit()


def test_the_thread_is_there_only_while_something_is_submitted(desk: Desk) -> None:
    write(desk.store, a=b"1")
    assert desk.env.tasks == []
    Submit(desk.writing("b")).finish()
    desk.env.tasks[0].join(PATIENCE_SECONDS)
    assert not desk.env.tasks[0].is_alive()
    Submit(desk.writing("c")).finish()
    assert len(desk.env.tasks) == 2


def test_closing_ends_the_thread(desk: Desk) -> None:
    Submit(desk.writing("a")).finish()
    desk.store.close()
    desk.env.tasks[0].join(PATIENCE_SECONDS)
    assert not desk.env.tasks[0].is_alive()
    with pytest.raises(SessionLost):
        Submit(desk.writing("b")).finish()


def test_closing_waits_for_what_was_submitted(desk: Desk) -> None:
    desk.gate.clear()
    submit = Submit(desk.writing("a"))
    assert desk.held.wait(PATIENCE_SECONDS)
    close = Call(desk.store.close)
    desk.gate.set()
    close.result()
    assert submit.is_done.is_set()


def test_with_time_that_stands_still_a_submit_is_done_at_once(store: Store, env: ManualEnv) -> None:
    txn = store.begin()
    txn.put(row("a"), b"1")
    submit = Submit(txn)
    assert submit.is_done.is_set()
    submit.finish()


@pytest.mark.parametrize("is_taken_back", [False, True])
def test_a_submitted_commit_that_is_decided_keeps_no_writes_in_memory(
    desk: Desk, is_taken_back: bool
) -> None:
    desk.gate.clear()
    first = Submit(desk.writing("first"))
    assert desk.held.wait(PATIENCE_SECONDS)
    submit = Submit(desk.writing("large"))
    assert _writes_in_memory("large") > 0
    if is_taken_back:
        assert submit.txn.take_back(QueryCanceled("canceled"))
    desk.gate.set()
    with suppress(QueryCanceled):
        submit.finish()
    first.finish()
    assert submit.txn.state in (TransactionState.COMMITTED, TransactionState.ENDED)
    Call(lambda: write(desk.store, last=b"1")).result()  # the leader of the group is done with it
    desk.engine.groups.clear()
    assert _writes_in_memory("large") == 0


def _writes_in_memory(name: str) -> int:
    return sum(1 for each in gc.get_objects() if isinstance(each, Write) and each.key == row(name))
