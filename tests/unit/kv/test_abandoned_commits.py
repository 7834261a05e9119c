"""A leader that is told to stop while the store hangs: it goes, and its group is settled without it."""

from collections.abc import Iterator

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import Abandoned, Disconnected, OutcomeUnknown, Unavailable, UserError
from tenure.base.interruptible import checked_by
from tenure.kv.store import Store
from tenure.storage.engine import Group, Outcome
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.kv.breaking import BreakingEngine, Deliver
from tests.unit.kv.rows import row, write


class Canceled(UserError):
    sqlstate = "57014"


@pytest.fixture
def engine() -> Iterator[BreakingEngine]:
    engine = BreakingEngine(SqliteEngine(MEMORY, ManualEnv()))
    yield engine
    engine.close()


def abandoned(*, was_sent: bool) -> Abandoned:
    error = Abandoned("not waited for")
    error.was_sent = was_sent
    error.__cause__ = Canceled("canceled")
    return error


def store_of(engine: BreakingEngine) -> Store:
    return Store(engine, ManualEnv())


@pytest.mark.invariant("I5")
@pytest.mark.parametrize("lands", [True, False])
def test_the_outcome_of_a_commit_that_was_sent_is_not_known(engine: BreakingEngine, lands: bool) -> None:
    store = store_of(engine)

    def hang(group: Group, deliver: Deliver) -> list[Outcome]:
        engine.on_commit = None
        if lands:
            deliver(group)
        raise abandoned(was_sent=True)

    engine.on_commit = hang
    with pytest.raises(OutcomeUnknown) as caught:
        write(store, a=b"1")
    assert isinstance(caught.value.__cause__, Canceled)
    write(store, b=b"1")  # the lane was settled, and goes on
    assert [store.begin().get(row(name)) for name in "ab"] == [b"1" if lands else None, b"1"]


def test_what_was_not_sent_is_taken_back(engine: BreakingEngine) -> None:
    store = store_of(engine)

    def refuse(group: Group, deliver: Deliver) -> list[Outcome]:
        engine.on_commit = None
        raise abandoned(was_sent=False)

    engine.on_commit = refuse
    with pytest.raises(Canceled):
        write(store, a=b"1")
    write(store, b=b"1")
    assert [store.begin().get(row(name)) for name in "ab"] == [None, b"1"]


def test_settling_ends_for_a_leader_that_is_told_to_stop(engine: BreakingEngine) -> None:
    store = store_of(engine)

    def cut(group: Group, deliver: Deliver) -> list[Outcome]:
        engine.on_commit = None
        raise Disconnected("cut")

    def check() -> None:
        raise Canceled("canceled")

    engine.on_commit = cut
    engine.settle_errors = [Unavailable("away")]
    txn = store.begin()
    txn.put(row("a"), b"1")
    with checked_by(check), pytest.raises(OutcomeUnknown):
        txn.commit(lambda: None)
    write(store, b=b"1")
    assert [store.begin().get(row(name)) for name in "ab"] == [None, b"1"]


def test_who_was_canceled_can_still_clean_up(engine: BreakingEngine) -> None:
    """To request a job's cancel, or to give a lock back, is a commit as well."""

    def canceled() -> None:
        raise Canceled("canceled")

    store = store_of(engine)
    with checked_by(canceled):
        write(store, a=b"1")
        txn = store.begin()
        txn.put(row("b"), b"1")
        with pytest.raises(Canceled):
            txn.commit(canceled)
    assert [store.begin().get(row(name)) for name in "ab"] == [b"1", None]
