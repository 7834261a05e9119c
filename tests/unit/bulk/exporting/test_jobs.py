"""The job of an EXPORT that is canceled, killed or run again: which files stay."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.base.errors import FenceLost, StoreError
from tenure.bulk.exporting import job as export_job
from tenure.bulk.exporting.kind import KIND
from tenure.bulk.exporting.records import ExportPayload, ExportProgress, Rows
from tenure.bulk.upkeep import Upkeep
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.cluster.jobs.job_records import JobProgress
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import Job
from tenure.cluster.jobs.runs import Run
from tenure.kv.records import pack, unpack
from tenure.node import Node
from tenure.pipeline import scan
from tenure.pipeline.writing.formats import CSV, OutColumn, Writing
from tests.pipeline.waiting import await_true
from tests.unit.bulk.exporting.exported_files import ROWS, exported, files
from tests.unit.sql.sessions import Talk


@pytest.mark.timeout(60)
def test_a_canceled_job_ends_while_its_query_sleeps(talk: Talk, directory: Path) -> None:
    said = talk.say(
        "EXPORT INTO CSV 'sleeps' WITH detached "
        "FROM SELECT id FROM t WHERE (CASE WHEN id > 0 THEN pg_sleep(600) END) IS NOT NULL"
    )
    ((id,),) = said.rows
    status = f"SELECT status FROM tenure_internal.jobs WHERE job_id = {id}"
    while talk.say(status).rows != (("running",),):
        assert talk.say("SELECT pg_sleep(0.01)").sqlstate == ""
    assert talk.say(f"CANCEL JOB {id} AND WAIT").sqlstate == ""
    assert talk.say(status).rows == (("canceled",),)
    assert not files(directory, "sleeps")


def test_a_canceled_job_takes_its_files_away(
    node: Node, talk: Talk, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "TASK_ROWS", 10)
    monkeypatch.setattr(scan, "CUT_ROWS", 10)
    kept = export_job.export_range

    def export_some(task: export_job.ExportTask, attempt: object) -> object:
        if task.number == 2:
            assert len(files(directory, "canceled")) == 2
            node.store.transact(lambda txn: node.jobs.request_cancel(txn, _newest(node)))
        return kept(task, attempt)  # type: ignore[arg-type]

    monkeypatch.setattr(export_job, "export_range", export_some)
    assert talk.say("EXPORT INTO CSV 'canceled' FROM TABLE t").sqlstate == "57014"
    assert not files(directory, "canceled")


def test_a_run_that_does_not_hear_of_the_cancel_takes_away_what_it_writes_after_it(
    node: Node, talk: Talk, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "TASK_ROWS", 10)
    monkeypatch.setattr(scan, "CUT_ROWS", 10)
    kept, left = export_job.export_range, []

    def export_late(task: export_job.ExportTask, attempt: object) -> object:
        if task.number == 2:
            _cancel_elsewhere(node, _newest(node))
            left.append(len(files(directory, "unheard")))
        return kept(task, attempt)  # type: ignore[arg-type]

    monkeypatch.setattr(export_job, "export_range", export_late)
    assert talk.say("EXPORT INTO CSV 'unheard' FROM TABLE t").sqlstate == "57014"
    await_true(node.runner.is_idle)
    assert left == [0]
    assert not files(directory, "unheard")


def _cancel_elsewhere(node: Node, id: int) -> None:
    """As another process would: the job has ended, and the run that was under way does not know."""
    jobs, store, session = node.jobs, node.store, node.liveness.session().id
    store.transact(lambda txn: jobs.request_cancel(txn, id))
    fence = store.transact(lambda txn: jobs.claim(txn, id, session))
    assert fence is not None and node.lake is not None
    job, progress = jobs.get(store.snapshot(), id), jobs.progress(store.snapshot(), id)
    assert job is not None
    run = Run(store, jobs, job, progress, fence)
    reverting = store.transact(lambda txn: jobs.step(txn, run.fence, JobState.REVERTING))
    assert reverting is not None
    run.fence = reverting
    export_job.Export(node.lake, node.locations, run).revert()
    store.transact(lambda txn: jobs.step(txn, run.fence, JobState.CANCELED))


def _query_by_hand(node: Node, location: str) -> Job:
    """The job of an export that only the test runs."""
    store, jobs = node.store, node.jobs
    writing = Writing(CSV, (OutColumn("a", TypeRef("int8")),))
    payload = pack(ExportPayload(location, writing, store.snapshot().at, "query", query="SELECT 1"))
    job = store.transact(lambda txn: jobs.create(txn, kind=KIND, payload=payload, needs=["what nobody has"]))
    node.runner.reserve(job.id)  # to revert it, nothing is needed
    return job


def test_a_query_that_does_not_hear_of_the_cancel_takes_away_what_it_has_written(
    node: Node, directory: Path
) -> None:
    job = _query_by_hand(node, "unheard query")
    fence = node.store.transact(lambda txn: node.jobs.claim(txn, job.id, node.liveness.session().id))
    assert fence is not None and node.lake is not None
    run = Run(node.store, node.jobs, job, JobProgress(job.id), fence)

    def rows(*_: object) -> Iterator[Rows]:
        _cancel_elsewhere(node, job.id)
        yield [(1,)]

    with pytest.raises(FenceLost):
        export_job.Export(node.lake, node.locations, run).run(rows)
    assert not files(directory, "unheard query")


def test_a_run_of_a_query_that_comes_late_leaves_files_of_later_ones(node: Node, directory: Path) -> None:
    store, jobs = node.store, node.jobs
    job = _query_by_hand(node, "later")
    place = directory / "files" / "later"
    place.mkdir()
    for number in (1, 3):
        (place / f"query-{job.id}-{number}.0.csv").touch()
    for _ in range(2):
        fence = store.transact(lambda txn: jobs.claim(txn, job.id, node.liveness.session().id))
    assert fence is not None and node.lake is not None
    run = Run(store, jobs, job, JobProgress(job.id, data=pack(ExportProgress())), fence)
    export_job.Export(node.lake, node.locations, run).run(
        lambda payload, protected, check, by_rows: iter([[(1,)]])
    )
    store.transact(lambda txn: jobs.step(txn, run.fence, JobState.SUCCEEDED))
    found = sorted(path.name for path in place.glob("*.csv"))
    assert found == [f"query-{job.id}-{number}.0.csv" for number in (2, 3)]


def test_what_a_killed_export_was_writing_goes_after_a_day(node: Node, directory: Path) -> None:
    assert node.lake is not None
    young, old = (directory / "files" / ".unfinished" / name for name in ("young", "old"))
    young.parent.mkdir(exist_ok=True)
    for path in (young, old):
        path.touch()
    os.utime(old, times=(0, 0))
    Upkeep(node.lake, node.locations).delete_strays()
    assert young.exists() and not old.exists()


def _newest(node: Node) -> int:
    return max(control.id for control in node.jobs.open(node.store.snapshot()) if control.kind == "export")


def test_a_run_that_comes_after_another_finds_its_files_and_leaves_them(
    node: Node, talk: Talk, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "TASK_ROWS", 10)
    monkeypatch.setattr(scan, "CUT_ROWS", 10)
    kept, failures = export_job.export_range, [1]

    def fail_once(task: export_job.ExportTask, attempt: object) -> object:
        made = kept(task, attempt)  # type: ignore[arg-type]
        if task.number == 1 and failures:
            failures.pop()
            raise StoreError("the connection broke")
        return made

    monkeypatch.setattr(export_job, "export_range", fail_once)
    said = talk.say("EXPORT INTO CSV 'again' FROM TABLE t")
    lines = exported(directory, said, "again").decode().splitlines()
    assert [line.partition(",")[0] for line in lines] == [str(number) for number in range(1, ROWS + 1)]
    control = node.jobs.control(node.store.snapshot(), int(str(said.rows[0][0]).split("-")[1]))
    assert control is not None and control.state is JobState.SUCCEEDED and control.run > 1
    job = node.jobs.get(node.store.begin(), control.id)
    assert job is not None and unpack(job.payload, ExportPayload).name == "t"
