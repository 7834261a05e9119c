"""An import that is interrupted anywhere, or run by two at once, brings every row once or none."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenure.bulk.importing.job import TooLate, import_kind, summary_of
from tenure.bulk.importing.records import CSV, KIND, Payload, TableInput
from tenure.catalog.descriptors import State as TableState
from tenure.catalog.descriptors import Table
from tenure.cluster.job_states import State
from tenure.cluster.jobs import FenceLost, Job
from tenure.cluster.runs import Kind
from tenure.kv.records import pack
from tenure.node import Node
from tests.unit.bulk.crashes import NOBODY_HAS, Crash, CrashingRun
from tests.unit.bulk.gates import held
from tests.unit.bulk.imports import Importing


class ByHand:
    """An import that the test runs itself."""

    def __init__(self, t: Importing, text: str = "2,new\n3,newer\n") -> None:
        node = t.node
        assert node.lake is not None
        self._node = node
        self.kind: Kind = import_kind(node.lake, node.publisher, node.locations)
        self.table = self._table_id(t)
        location = t.file("a.csv", text)
        payload = Payload((TableInput(self.table, (1, 2), (location,), CSV),), user="root")
        self.job: Job = node.store.transact(
            lambda txn: node.jobs.create(txn, kind=KIND, payload=pack(payload), needs=(NOBODY_HAS,))
        )
        node.runner.leave(self.job.id)  # to revert it, nothing is needed

    def _table_id(self, t: Importing) -> int:
        ((id,),) = t.rows(f"SELECT '{t.name}.t'::regclass::oid::text")
        assert id is not None
        return int(id)

    def claim(self) -> CrashingRun:
        jobs, store = self._node.jobs, self._node.store
        session = self._node.liveness.session().id
        fence = store.transact(lambda txn: jobs.claim(txn, self.job.id, session))
        assert fence is not None
        progress = jobs.progress(store.snapshot(), self.job.id)
        run = CrashingRun(store, jobs, self.job, progress, fence)
        run.crash_at(0, is_after=False)
        return run

    def end(self, state: State) -> None:
        run = self.claim()
        jobs, store = self._node.jobs, self._node.store
        if state is not State.SUCCEEDED:
            fence = store.transact(lambda txn: jobs.step(txn, run.fence, State.REVERTING))
            assert fence is not None
            run.fence = fence
        store.transact(lambda txn: jobs.step(txn, run.fence, state))

    def reverting(self) -> CrashingRun:
        run = self.claim()
        jobs = self._node.jobs
        fence = self._node.store.transact(lambda txn: jobs.step(txn, run.fence, State.REVERTING))
        assert fence is not None
        run.fence = fence
        return run

    def stored(self) -> Table:
        found = self._node.catalog.get(self._node.store.snapshot(), self.table)
        assert isinstance(found, Table)
        return found


@pytest.fixture
def t(importing: Importing) -> Importing:
    importing.done("CREATE TABLE t (id int PRIMARY KEY, a text UNIQUE)")
    importing.done("INSERT INTO t VALUES (1, 'old')")
    return importing


@pytest.mark.invariant("I40")
@pytest.mark.parametrize("is_after", [False, True])
def test_an_import_goes_on_after_a_crash_at_any_commit(t: Importing, is_after: bool) -> None:
    crashes = 0
    while _import_with_crash(t, crashes + 1, is_after=is_after):
        crashes += 1
    assert crashes >= 4


def _import_with_crash(t: Importing, commit: int, *, is_after: bool) -> bool:
    t.done("DELETE FROM t WHERE id > 1")
    by_hand = ByHand(t)
    run = by_hand.claim()
    run.crash_at(commit, is_after=is_after)
    try:
        by_hand.kind.run(run)
        has_crashed = False
    except Crash:
        has_crashed = True
        again = by_hand.claim()
        by_hand.kind.run(again)
        assert summary_of(t.node.jobs.progress(t.node.store.snapshot(), by_hand.job.id).data).rows == 2
    by_hand.end(State.SUCCEEDED)
    assert by_hand.stored().state is TableState.PUBLIC
    t.node.leases.renew()
    assert t.rows() == [("1", "old"), ("2", "new"), ("3", "newer")]
    assert t.rows("SELECT id FROM t WHERE a = 'newer'") == [("3",)]
    return has_crashed


@pytest.mark.invariant("offline")
@pytest.mark.parametrize("is_after", [False, True])
def test_a_crashed_import_is_taken_back_whole(t: Importing, is_after: bool) -> None:
    commit = 0
    while True:
        commit += 1
        by_hand = ByHand(t)
        run = by_hand.claim()
        run.crash_at(commit, is_after=is_after)
        try:
            by_hand.kind.run(run)
            break
        except Crash:
            pass
        try:
            by_hand.kind.revert(by_hand.reverting())
        except TooLate:
            break
        by_hand_state = by_hand.stored()
        assert (by_hand_state.state, by_hand_state.job) == (TableState.PUBLIC, 0)
        t.node.leases.renew()
        assert t.rows() == [("1", "old")]
        t.done("UPDATE t SET a = 'old'")
    assert commit >= 4


def test_of_two_drivers_only_the_later_one_publishes(t: Importing) -> None:
    by_hand = ByHand(t)
    former = by_hand.claim()
    later: list[CrashingRun] = []

    def overtake(commit: Callable[[], Any]) -> Any:
        if not later and by_hand.stored().job == by_hand.job.id:
            later.append(by_hand.claim())
            by_hand.kind.run(later[0])
        return commit()

    former._counted = overtake  # type: ignore[method-assign]
    with pytest.raises(FenceLost):
        by_hand.kind.run(former)
    assert later
    t.node.leases.renew()
    assert t.rows() == [("1", "old"), ("2", "new"), ("3", "newer")]


def test_what_an_import_wrote_and_nobody_names_is_deleted_later(t: Importing, directory: Path) -> None:
    from tenure.bulk.upkeep import Upkeep

    assert t.node.lake is not None
    by_hand = ByHand(t, "2,new\n2,newer\n")
    with pytest.raises(Exception, match="duplicate key"):
        by_hand.kind.run(by_hand.claim())
    strays = list((directory / "lake").rglob(f"*j{by_hand.job.id}-*"))
    assert strays
    upkeep = Upkeep(t.node.lake)
    upkeep.delete_strays()
    assert all(stray.exists() for stray in strays), "its job has not ended"
    by_hand.reverting()
    t.node.runner.take(by_hand.job.id)
    t.done(f"SHOW JOB WHEN COMPLETE {by_hand.job.id}")
    upkeep.delete_strays()
    assert not any(stray.exists() for stray in strays)


def test_a_node_that_stops_leaves_the_import_to_the_next(tmp_path: Path) -> None:
    from tests.unit.bulk.imports import lake_node

    with lake_node(tmp_path) as node:
        t = Importing(node, tmp_path)
        t.done("CREATE TABLE t (id int PRIMARY KEY)")
        location = t.file("a.csv", "1\n2\n")
        with held(node, "merge_runs") as gate:
            ((job,),) = t.done(f"IMPORT INTO t CSV DATA ('{location}') WITH detached").rows
            gate.wait()
            node.stop()
    with lake_node(tmp_path) as node:
        _finish(node, job, t.name)


def _finish(node: Node, job: str | None, schema: str) -> None:
    from tests.unit.sql.sessions import Talk

    talk = Talk(node)
    (row,) = talk.say(f"SHOW JOB WHEN COMPLETE {job}").rows
    assert row[4] == "succeeded"
    assert talk.say(f"SELECT * FROM {schema}.t ORDER BY 1").rows == (("1",), ("2",))
    talk.close()
