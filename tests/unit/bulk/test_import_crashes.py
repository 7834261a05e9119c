"""An import that is interrupted anywhere, or run by two at once, brings every row once or none."""

from pathlib import Path
from typing import Any

import pytest

from tenure.base.errors import WrongState
from tenure.bulk.importing.job import import_kind, summary_of
from tenure.bulk.importing.records import CSV, KIND, ImportPayload, TableInput
from tenure.catalog.descriptors.definitions import DescriptorState as TableState
from tenure.catalog.descriptors.definitions import Table
from tenure.cluster.jobs.job_states import JobState
from tenure.kv.records import pack
from tenure.node import Node
from tests.unit.bulk.crashes import NOBODY_HAS, ByHand
from tests.unit.bulk.gates import held
from tests.unit.bulk.imports import Importing


class Import(ByHand):
    def __init__(self, t: Importing, text: str = "2,new\n3,newer\n", **given: Any) -> None:
        node = t.node
        assert node.lake is not None
        self.table = self._table_id(t)
        location = t.file("a.csv", text)
        payload = ImportPayload((TableInput(self.table, (1, 2), (location,), CSV),), user="root", **given)
        job = node.store.transact(
            lambda txn: node.jobs.create(
                txn, kind=KIND, payload=pack(payload), owner="root", needs=(NOBODY_HAS,)
            )
        )
        node.runner.reserve(job.id)  # to revert it, nothing is needed
        super().__init__(node, import_kind(node.lake, node.publisher, node.locations), job)

    def _table_id(self, t: Importing) -> int:
        ((id,),) = t.rows(f"SELECT '{t.name}.t'::regclass::oid::text")
        assert id is not None
        return int(id)

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
    by_hand = Import(t)
    has_crashed = by_hand.crash(commit, is_after=is_after)
    if has_crashed:
        again = by_hand.run()
        assert summary_of(t.node.jobs.progress(t.node.store.snapshot(), by_hand.job.id).data).rows == 2
        by_hand.step(again, JobState.SUCCEEDED)
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
        by_hand = Import(t)
        if not by_hand.crash(commit, is_after=is_after):
            break
        try:
            by_hand.kind.revert(by_hand.reverting())
        except WrongState:
            break
        by_hand_state = by_hand.stored()
        assert (by_hand_state.state, by_hand_state.job) == (TableState.PUBLIC, 0)
        t.node.leases.renew()
        assert t.rows() == [("1", "old")]
        t.done("UPDATE t SET a = 'old'")
    assert commit >= 4


def test_of_two_drivers_only_the_later_one_publishes(t: Importing) -> None:
    by_hand = Import(t)
    by_hand.overtake(lambda: by_hand.stored().job == by_hand.job.id, by_hand.run)
    t.node.leases.renew()
    assert t.rows() == [("1", "old"), ("2", "new"), ("3", "newer")]


def _with_a_bad_row(t: Importing) -> tuple[Import, Path]:
    """An import, and where its rejects go."""
    by_hand = Import(t, "2,new\nno,x\n", bad_rows_max=1, rejects=f"{t.name}/out")
    return by_hand, t.files / "out" / f"import-{by_hand.job.id}.rejects.ndjson"


def test_an_import_that_cannot_publish_leaves_no_rejects(t: Importing) -> None:
    commit, is_written = 0, False
    while not is_written:
        commit += 1
        by_hand, rejects = _with_a_bad_row(t)
        assert by_hand.crash(commit, is_after=False)
        is_written = rejects.exists()
        by_hand.kind.revert(by_hand.reverting())
        t.node.leases.renew()
    assert not rejects.exists()


def test_rejects_that_are_written_after_the_import_was_taken_back_go(t: Importing) -> None:
    by_hand, rejects = _with_a_bad_row(t)

    def take_back() -> None:
        by_hand.kind.revert(by_hand.reverting())
        assert not rejects.exists()
        rejects.write_text("late")

    by_hand.overtake(rejects.exists, take_back)
    assert not rejects.exists()


def test_a_driver_that_was_overtaken_leaves_the_rejects_of_the_later_one(t: Importing) -> None:
    by_hand, rejects = _with_a_bad_row(t)
    by_hand.overtake(rejects.exists, by_hand.run)
    assert rejects.exists()


def test_what_an_import_wrote_and_nobody_names_is_deleted_later(t: Importing, directory: Path) -> None:
    from tenure.bulk.upkeep import Upkeep

    assert t.node.lake is not None
    by_hand = Import(t, "2,new\n2,newer\n")
    with pytest.raises(Exception, match="duplicate key"):
        by_hand.kind.run(by_hand.claim())
    strays = list((directory / "lake").rglob(f"*j{by_hand.job.id}-*"))
    assert strays
    upkeep = Upkeep(t.node.lake)
    upkeep.delete_strays()
    assert all(stray.exists() for stray in strays), "its job has not ended"
    by_hand.reverting()
    t.node.runner.unreserve(by_hand.job.id)
    t.done(f"SHOW JOB WHEN COMPLETE {by_hand.job.id}")
    upkeep.delete_strays()
    assert not any(stray.exists() for stray in strays)


def test_a_node_that_stops_leaves_the_import_to_the_next(tmp_path: Path) -> None:
    from tests.unit.lake_nodes import lake_node

    with lake_node(tmp_path) as node:
        t = Importing(node, tmp_path)
        t.done("CREATE TABLE t (id int PRIMARY KEY)")
        location = t.file("a.csv", "1\n2\n")
        with held(node, "merge_range") as gate:
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
