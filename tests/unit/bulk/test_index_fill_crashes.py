"""The fill of an index that is interrupted anywhere is taken up again, or taken back, whole."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tenure.bulk import flush
from tenure.bulk.filling.job import SparkIndexFill
from tenure.catalog.descriptors.definitions import ElementState
from tenure.cluster.jobs.job_errors import JobError
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import Job
from tenure.kv.transaction import Transaction
from tenure.node import Node
from tenure.pipeline.tasks import SPARK
from tenure.schema_change.job import schema_change_kind
from tests.unit.bulk.crashes import NOBODY_HAS, ByHand
from tests.unit.bulk.fills import Filling, Statement, filling_node

ROWS = 40


@pytest.fixture(scope="module")
def node(directory: Path) -> Iterator[Node]:
    with filling_node(directory) as node:
        yield node


@pytest.fixture
def t(node: Node, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Filling]:
    monkeypatch.setattr("tenure.schema_change.changer.ALONE_ROWS_MAX", 0)
    made = Filling(node, directory)
    made.done("SET CLUSTER SETTING pipeline.spark_min_rows = 0")
    made.done("CREATE TABLE t (id int PRIMARY KEY, a int)")
    made.done(f"INSERT INTO t SELECT g, g * 7 FROM generate_series(1, {ROWS}) g")
    yield made
    made.talk.close()


@contextmanager
def _left_to_the_test(node: Node) -> Iterator[None]:
    """Changes that are made meanwhile are not run by the node."""
    create = node.jobs.create

    def left(txn: Transaction, *, kind: str, **given: Any) -> Job:
        job = create(txn, kind=kind, **given, needs=(NOBODY_HAS,))
        node.runner.reserve(job.id)  # to revert it, nothing is needed
        return job

    node.jobs.create = left  # type: ignore[method-assign]
    try:
        yield
    finally:
        node.jobs.create = create  # type: ignore[method-assign]


class Fill(ByHand):
    """Of a statement that waits for it."""

    def __init__(self, t: Filling, text: str = "CREATE UNIQUE INDEX i ON t (a)") -> None:
        node = t.node
        assert node.lake is not None
        fill = SparkIndexFill(node.lake, node.layouts, node.context)
        with _left_to_the_test(node):
            self.statement = Statement(t, text)
            t.until(lambda: t.table().job)
        job = node.jobs.get(node.store.snapshot(), t.table().job)
        assert job is not None
        super().__init__(node, schema_change_kind(node.changer.walk, fill), job, needs=(SPARK,))

    def finish(self) -> None:
        """Runs it to its end."""
        self.step(self.run(), JobState.SUCCEEDED)
        assert not self.statement.said().sqlstate

    def take_back(self) -> None:
        run = self.reverting(JobError("so it is", "23505"))
        self.kind.revert(run)
        self.step(run, JobState.FAILED)
        assert self.statement.said().sqlstate == "23505"

    def crash(self, commit: int, *, is_after: bool) -> bool:
        has_crashed = super().crash(commit, is_after=is_after)
        assert has_crashed or not self.statement.said().sqlstate
        return has_crashed


@pytest.mark.invariant("fill-whole")
@pytest.mark.parametrize("is_after", [False, True])
def test_a_fill_goes_on_after_a_crash_at_any_commit(t: Filling, is_after: bool) -> None:
    commit, has_crashed = 0, True
    while has_crashed:
        commit += 1
        by_hand = Fill(t)
        has_crashed = by_hand.crash(commit, is_after=is_after)
        if has_crashed:
            t.done(f"INSERT INTO t VALUES ({1000 + commit}, {1000 + commit})")
            t.done(f"DELETE FROM t WHERE id = {commit}")
            by_hand.finish()
        assert t.table().job == 0
        assert t.wrong() == [], f"after a crash at commit {commit}"
        assert max(t.filled_rows()) >= ROWS - 1
        t.done("DROP INDEX i")
    assert commit >= 6


@pytest.mark.parametrize("is_after", [False, True])
def test_a_crashed_fill_is_taken_back_whole(t: Filling, is_after: bool) -> None:
    commit = 0
    while True:
        commit += 1
        by_hand = Fill(t)
        if not by_hand.crash(commit, is_after=is_after):
            break
        table = t.table()
        if table.index(max(index.id for index in table.indexes)).state is ElementState.PUBLIC:
            by_hand.finish()
            break
        by_hand.take_back()
        assert [index.name for index in t.table().indexes] == ["t_pkey"]
        assert t.wrong() == [], f"after a crash at commit {commit}"
        assert sum(t.filled_rows()) == 0, "what was filled is given up"
        assert t.table().job == 0
    assert commit >= 6


def test_of_two_drivers_only_the_later_one_publishes(t: Filling) -> None:
    by_hand = Fill(t)
    later = by_hand.overtake(lambda: _claim(t), by_hand.run)
    by_hand.step(later, JobState.SUCCEEDED)
    assert not by_hand.statement.said().sqlstate
    assert t.wrong() == []
    assert t.filled_rows() == [ROWS]


def _claim(t: Filling) -> int:
    assert t.node.lake is not None
    table = t.table()
    return t.node.lake.merges.holder(t.node.store.snapshot(), table.id, table.next_index - 1)


@pytest.mark.parametrize("is_taken_back", [False, True])
def test_what_a_flush_has_made_of_a_new_index_goes(t: Filling, is_taken_back: bool) -> None:
    """One that began before the index was claimed."""
    lake = t.node.lake
    assert lake is not None
    by_hand = Fill(t)
    commit = 0
    while _state(t) is not ElementState.WRITE_ONLY:
        commit += 1
        assert by_hand.crash(commit, is_after=True)
    t.node.leases.renew()
    t.done("UPDATE t SET a = -a WHERE id = 1")
    t.done("INSERT INTO t VALUES (1000, 1000)")
    table = t.table()
    index = table.next_index - 1
    job = t.node.store.transact(lambda txn: flush.start(txn, lake, table.id, index, rows=0, name="t"))
    assert job is not None
    t.until(lambda: not t.is_open(job.id))
    assert t.filled_rows() == [2]
    t.done("UPDATE t SET a = -a WHERE id = 1")
    if is_taken_back:
        by_hand.take_back()
    else:
        by_hand.finish()
        assert t.filled_rows() == [ROWS + 1]
    assert t.wrong() == []


def _state(t: Filling) -> ElementState:
    table = t.table()
    return table.index(table.next_index - 1).state


def test_without_spark_the_job_waits_for_a_process_that_has_it(t: Filling) -> None:
    from tenure.cluster.jobs.runs import Lacking

    by_hand = Fill(t)
    run = by_hand.claim()
    run.needs = ()
    with pytest.raises(Lacking, match="spark"):
        by_hand.kind.run(run)
    by_hand.finish()
    assert t.wrong() == []
