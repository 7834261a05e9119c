"""Flushes by themselves, in a node that serves SQL meanwhile; and the ends of rows and files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tenure.base.settings import CLEAN_AFTER
from tenure.bulk import flush
from tenure.bulk.upkeep import Upkeep
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import Fence, JobProgress
from tenure.cluster.jobs.runs import Run
from tenure.pipeline import merge
from tests.unit.bulk.flushing import FlushingNode
from tests.unit.lake_nodes import lake_options


@pytest.fixture
def served(tmp_path: Path) -> Iterator[FlushingNode]:
    served = FlushingNode(lake_options(tmp_path))
    served.run("CREATE TABLE t (id int PRIMARY KEY, v text)")
    served.run("INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 500) g")
    yield served
    served.close()


@pytest.mark.setting("lake.flush_bytes")
def test_a_delta_that_is_large_enough_is_flushed_by_itself(served: FlushingNode) -> None:
    served.run("SET CLUSTER SETTING lake.flush_bytes = 2000")
    served.until(lambda: bool(served.lake.bases.bases()))
    assert served.lake.bases.bases()[0].manifest.rows == 500
    assert served.run("SELECT count(*), min(v) FROM t") == [(500, "v1")]


@pytest.mark.setting("lake.clean_after")
def test_answers_are_the_same_after_a_flush_and_after_cleaning(served: FlushingNode) -> None:
    ((before_at,),) = served.run("SELECT cluster_logical_timestamp()")
    served.run("UPDATE t SET v = 'new' WHERE id <= 10")
    served.run("DELETE FROM t WHERE id > 490")
    served.flush()
    served.run("SET CLUSTER SETTING lake.clean_after = '0s'")
    span = served.node.store.keyspace.index_span(served.manifest().table, 1)
    served.until(lambda: served.node.store.engine.spread(*span, 0, 1000).keys == 0)
    assert served.run("SELECT count(*), count(*) FILTER (WHERE v = 'new') FROM t") == [(490, 10)]
    assert served.run("SELECT v FROM t WHERE id = 7") == [("new",)]
    assert served.run(f"SELECT count(*) FROM t AS OF SYSTEM TIME {before_at} WHERE v = 'new'") == [(0,)]
    assert served.run(f"SELECT count(*) FROM t AS OF SYSTEM TIME {before_at}") == [(500,)]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_table_is_truncated_while_its_former_index_is_flushed(served: FlushingNode, is_first: bool) -> None:
    ((before_at,),) = served.run("SELECT cluster_logical_timestamp()")
    ((id,),) = served.run("SELECT 't'::regclass::oid::int8")
    if is_first:
        served.run("TRUNCATE t")
    job = served.node.store.transact(lambda txn: flush.start(txn, served.lake, id, 1, rows=500, name="t"))
    if not is_first:
        served.run("TRUNCATE t")
    assert job is not None
    served.run("INSERT INTO t VALUES (7, 'new')")
    served.until(lambda: not served.node.jobs.is_open(served.node.store.snapshot(), job.id))
    served.flush("t", 2)
    assert served.run("SELECT * FROM t") == [(7, "new")]
    assert served.run(f"SELECT count(*) FROM t AS OF SYSTEM TIME {before_at}") == [(500,)]
    control = served.node.jobs.control(served.node.store.snapshot(), job.id)
    assert control is not None and control.state is JobState.SUCCEEDED


def test_rows_of_the_base_are_written_like_any_other(served: FlushingNode) -> None:
    served.flush()
    served.run("SET CLUSTER SETTING lake.clean_after = '0s'")
    with pytest.raises(psycopg.errors.UniqueViolation):
        served.run("INSERT INTO t VALUES (5, 'again')")
    served.run("INSERT INTO t VALUES (5, 'kept') ON CONFLICT (id) DO UPDATE SET v = excluded.v || t.v")
    served.run("DELETE FROM t WHERE id = 6")
    assert served.run("SELECT * FROM t WHERE id BETWEEN 4 AND 7") == [(4, "v4"), (5, "keptv5"), (7, "v7")]


def test_an_index_that_is_being_merged_gets_no_second_merge(served: FlushingNode) -> None:
    ((id,),) = served.run("SELECT 't'::regclass::oid::int8")
    store = served.node.store

    def twice(txn: Any) -> tuple[object, object]:
        first = flush.start(txn, served.lake, id, 1, rows=1, name="t")
        return first, flush.start(txn, served.lake, id, 1, rows=1, name="t")

    first, second = store.transact(twice)
    assert first is not None and second is None


def test_a_flush_of_many_rows_is_left_to_a_process_that_has_spark(served: FlushingNode) -> None:
    ((id,),) = served.run("SELECT 't'::regclass::oid::int8")
    job = served.node.store.transact(lambda txn: flush.start(txn, served.lake, id, 1, rows=10**6, name="t"))
    assert job is not None
    control = served.node.jobs.control(served.node.store.snapshot(), job.id)
    assert control is not None and control.needs == ("spark",) and control.state is JobState.PENDING


def test_a_canceled_flush_leaves_the_index_to_others(served: FlushingNode) -> None:
    ((id,),) = served.run("SELECT 't'::regclass::oid::int8")
    job = served.node.store.transact(lambda txn: flush.start(txn, served.lake, id, 1, rows=10**6, name="t"))
    assert job is not None
    served.run(f"CANCEL JOB {job.id}")
    served.until(lambda: not served.node.jobs.is_open(served.node.store.snapshot(), job.id))
    served.flush()
    assert served.manifest().rows == 500


@pytest.mark.setting("lake.file_grace")
def test_files_are_deleted_some_time_after_newer_ones_took_their_place(served: FlushingNode) -> None:
    served.flush()
    former = served.files()
    served.run("UPDATE t SET v = 'x'")
    served.flush()
    assert former < served.files()
    served.run("SET CLUSTER SETTING lake.file_grace = '0s'")
    served.until(lambda: not (former & served.files()))
    assert served.run("SELECT count(*) FROM t WHERE v = 'x'") == [(500,)]
    assert list(served.lake.manifests.dropped(served.node.store.snapshot())) == []


@pytest.mark.invariant("strays")
def test_files_of_jobs_that_have_ended_are_deleted_unless_they_are_named(served: FlushingNode) -> None:
    ended = served.flush()
    named = served.files()
    ((id,),) = served.run("SELECT 't'::regclass::oid::int8")
    going_on = served.node.store.transact(
        lambda txn: flush.start(txn, served.lake, id, 1, rows=10**6, name="t")
    )
    assert going_on is not None
    stray, of_open_job, foreign = (
        f"1/{id}/1/j{ended}-r1-0123-live-0.parquet",
        f"1/{id}/1/j{going_on.id}-r1-0123-live-0.parquet",
        f"1/{id}/1/somebody-elses.parquet",
    )
    for name in (stray, of_open_job, foreign):
        with served.lake.files.create(name) as output:
            output.write(b"x")
    assert Upkeep(served.lake).delete_strays() == [stray]
    assert served.files() == named | {of_open_job, foreign}


def test_a_run_after_the_one_that_published_does_nothing_more(served: FlushingNode) -> None:
    """A worker that dies between publishing and saying so: the job is run again."""
    job = served.flush()
    before = served.manifest()
    served.run("UPDATE t SET v = 'new' WHERE id = 1")
    control = served.node.jobs.control(served.node.store.snapshot(), job)
    payload = served.node.jobs.get(served.node.store.snapshot(), job)
    assert control is not None and payload is not None
    run = Run(
        served.node.store,
        served.node.jobs,
        payload,
        JobProgress(job),
        Fence(job, control.claim, 2, JobState.RUNNING),
    )
    flush.flush(served.lake, run)
    assert served.manifest() == before


def test_a_node_that_has_not_heard_of_the_newest_base_leaves_cleaning_to_others(served: FlushingNode) -> None:
    served.flush()
    older = served.manifest()
    served.run("UPDATE t SET v = 'new'")
    served.flush()
    served.run("SET CLUSTER SETTING lake.clean_after = '0s'")
    served.until(lambda: served.lake.settings()[CLEAN_AFTER] == 0)
    Upkeep(served.lake)._clean(served.manifest())
    Upkeep(served.lake)._clean(older)
    assert served.run("SELECT count(*) FROM t WHERE v = 'new'") == [(500,)]


def test_wide_rows_are_flushed_in_ranges_of_so_many_bytes(
    served: FlushingNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "RANGE_BYTES", 1 << 20)
    served.run("CREATE TABLE wide (id int PRIMARY KEY, data text)")
    served.run("INSERT INTO wide SELECT g, repeat('x', 100000) FROM generate_series(1, 50) g")
    served.flush("wide")
    rows = [file.rows for file in served.manifest().live]
    assert sum(rows) == 50
    assert len(rows) > 3 and max(rows) <= 12
    assert served.run("SELECT count(*), sum(length(data)) FROM wide") == [(50, 5_000_000)]
