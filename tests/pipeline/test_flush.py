"""Flushes on Spark and in this process: the same rows in the same order, wherever the tasks run."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tenure.base.env import SystemEnv
from tenure.bulk import flush
from tenure.bulk.lakes import Lake
from tenure.cluster.jobs.job_states import JobState
from tenure.front import Listen
from tenure.node import Node, NodeOptions
from tenure.pipeline import merge as merging
from tenure.pipeline.merge import MergeRequest, merge
from tenure.pipeline.merge_tasks import MergedRange, merge_range
from tenure.pipeline.tasks import Kernel, ProcessTasks, Tasks
from tenure.storage.engine import REVISION_BYTES
from tenure.table.lake.manifests import Manifest, WrittenFile, no_base
from tenure.table.lake.publishing import ManifestEdit, publish
from tests.pipeline import kernels
from tests.pipeline.clusters import Standalone
from tests.pipeline.test_clusters import LOCAL_CLUSTER
from tests.pipeline.waiting import await_true, go_on, ignore
from tests.spark_sessions import LOCAL, SparkSessions

ROWS = 1_600
RANGE_BYTES = 300 * (REVISION_BYTES + 40)
"""Of delta per task, so that there are many of them."""

WAIT_SECONDS = 240.0

COLUMNS = """
    id int PRIMARY KEY, n numeric(12, 3), t text UNIQUE, b boolean, f float8, d date,
    s timestamptz, j jsonb, a int[], u uuid, e mood
"""
VALUES = """
    g, CASE WHEN g % 50 = 0 THEN 'NaN' ELSE g * 1.5 END, 't' || g, g % 3 = 0, g / 7.0,
    date '2024-01-01' + g % 900, timestamptz '2024-01-01 00:00+00' + g * interval '1 minute',
    jsonb_build_object('g', g), ARRAY[g, NULL, g % 7], md5(g::text)::uuid,
    CASE WHEN g % 5 = 0 THEN NULL WHEN g % 2 = 0 THEN 'well' ELSE 'ill' END::mood
"""
CHANGES = (
    "UPDATE {} SET n = n + 1, b = NOT b WHERE id % 7 = 0",
    "UPDATE {} SET t = 'x' || id, e = 'well' WHERE id BETWEEN 1000 AND 1500",
    "DELETE FROM {} WHERE id % 11 = 0",
    "INSERT INTO {} (id, t) SELECT g, 'again' || g FROM generate_series(11, 1100, 11) g",
)


class Served:
    """A node with a lake and Spark, and a client of it."""

    def __init__(self, directory: Path, spark: SparkSessions) -> None:
        self.env = SystemEnv()
        self.node = Node(
            NodeOptions(
                f"sqlite:{directory}/store.db",
                listen=Listen(port=0),
                lake=str(directory / "lake"),
                spark=spark.tasks,
            ),
            self.env,
        )
        assert self.node.front is not None and self.node.lake is not None
        self.lake: Lake = self.node.lake
        self.process_tasks = ProcessTasks(self.env)
        door = self.node.front
        self.client = psycopg.connect(
            host=door.host, port=door.port, user="root", dbname="defaultdb", autocommit=True
        )

    def close(self) -> None:
        self.client.close()
        self.node.stop()

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        cursor = self.client.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []

    def make_table(self, name: str) -> int:
        self.run(f"CREATE TABLE {name} ({COLUMNS})")
        self.run(f"CREATE INDEX ON {name} (d, n)")
        self.run(f"INSERT INTO {name} SELECT {VALUES} FROM generate_series(1, {ROWS}) g")
        return self.id_of(name)

    def change(self, name: str) -> None:
        for statement in CHANGES:
            self.run(statement.format(name))

    def id_of(self, name: str) -> int:
        ((id,),) = self.run(f"SELECT '{name}'::regclass::oid::int8")
        return int(id)

    def indexes(self, table: int) -> list[int]:
        version = self.lake.version(self.node.store.snapshot(), table)
        assert version is not None
        return [index.id for index in version.table.indexes]

    def manifest(self, table: int, index: int) -> Manifest:
        found = self.lake.manifests.get(self.node.store.snapshot(), table, index)
        return found or no_base(table, index)

    # ── flushing without a job ─────────────────────────────────────────────────────────────────

    def merged(
        self, table: int, index: int, tasks: Tasks, at: int, kernel: Any = merge_range
    ) -> ManifestEdit:
        """What a merge up to a time makes of an index; it is not published."""
        version = self.lake.version(self.node.store.snapshot(), table)
        assert version is not None
        run: Kernel[Any, MergedRange] = kernel
        (merged,) = merge(
            self.node.store,
            self.lake.place,
            [MergeRequest(version, self.manifest(table, index), at)],
            lambda _, merges: tasks.run(run, merges, on_done=ignore, check=go_on, label="j1-r1"),
        )
        return merged.edit

    def publish(self, table: int, index: int, made: ManifestEdit, at: int) -> None:
        began_with, keyspace = self.manifest(table, index), self.node.store.keyspace
        self.node.store.transact(
            lambda txn: publish(txn, keyspace, self.lake.manifests, began_with, made, at)
        )

    def contents(self, made: ManifestEdit) -> tuple[list[Any], list[Any]]:
        """All live and all past rows, in order."""
        return self._rows(made.live), self._rows(made.past)

    def _rows(self, written: tuple[WrittenFile, ...]) -> list[Any]:
        rows = []
        for each in sorted(written, key=lambda each: each.file.first):
            checked = self.lake.bases.checked
            table = checked.read_groups(each.file, range(len(checked.footer(each.file).firsts)))
            rows += [str(row) for row in table.to_pylist()]  # NaN is not equal to itself
        return rows

    # ── flushing by a job ──────────────────────────────────────────────────────────────────────

    def flush(self, name: str, *, rows: int) -> str:
        """Flushes the primary index by a job and says where its tasks ran."""
        table, store, jobs = self.id_of(name), self.node.store, self.node.jobs
        job = store.transact(lambda txn: flush.start(txn, self.lake, table, 1, rows=rows, name=name))
        assert job is not None
        await_true(lambda: not jobs.is_open(store.snapshot(), job.id), seconds=WAIT_SECONDS)
        control = jobs.control(store.snapshot(), job.id)
        assert control is not None and control.state is JobState.SUCCEEDED
        return jobs.progress(store.snapshot(), job.id).status.split(":")[0]


@pytest.fixture
def served(
    spark_sessions: SparkSessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Served]:
    monkeypatch.setattr(merging, "RANGE_BYTES", RANGE_BYTES)
    served = Served(tmp_path, spark_sessions)
    served.run("CREATE TYPE mood AS ENUM ('ill', 'well')")
    yield served
    served.close()


def agree(served: Served, tasks: Tasks, kernel: Any = merge_range) -> None:
    """A first flush and one on top of it make of every index what they make in this process."""
    table = served.make_table("t")
    for changed in (False, True):
        if changed:
            served.change("t")
        for index in served.indexes(table):
            at = served.node.store.snapshot().at
            here = served.merged(table, index, served.process_tasks, at)
            there = served.merged(table, index, tasks, at, kernel)
            assert here.gone == there.gone
            assert served.contents(here) == served.contents(there)
            assert len(here.live) > 3, "one task is not enough"
            assert bool(here.past) == changed
            served.publish(table, index, there, at)
    assert served.run("SELECT count(*), count(DISTINCT t) FROM t") == [(ROWS - ROWS // 11 + 100,) * 2]


def test_a_flush_by_spark_in_this_process_is_that_without_spark(
    served: Served, spark_sessions: SparkSessions
) -> None:
    agree(served, spark_sessions.tasks(LOCAL))


def test_both_sides_of_the_least_rows_for_spark_give_the_same_base(
    served: Served, spark_sessions: SparkSessions
) -> None:
    served.run("SET CLUSTER SETTING pipeline.spark_min_rows = 1000")
    await_true(lambda: served.run("SHOW CLUSTER SETTING pipeline.spark_min_rows") == [("1000",)])
    engines = {}
    for name, rows in (("small", 1_000), ("large", 1_001)):
        served.make_table(name)
        engines[name] = [served.flush(name, rows=rows)]
        served.change(name)
        engines[name].append(served.flush(name, rows=rows))
    assert engines == {"small": ["process"] * 2, "large": ["spark"] * 2}
    manifests = [served.manifest(served.id_of(name), 1) for name in ("small", "large")]
    for part in ("live", "past"):
        small, large = ([(f.first, f.last, f.rows) for f in getattr(m, part)] for m in manifests)
        assert sorted(small) == sorted(large)
    served.run("SET CLUSTER SETTING lake.clean_after = '0s'")
    select = partial("SELECT * FROM {} ORDER BY id".format)
    assert str(served.run(select("small"))) == str(served.run(select("large")))


def test_tasks_that_fail_at_random_lose_and_double_no_row(
    served: Served, spark_sessions: SparkSessions
) -> None:
    agree(served, spark_sessions.tasks(LOCAL), kernels.merge_or_fail)
    named = {
        file.name
        for manifest in served.lake.manifests.all(served.node.store.snapshot())
        for file in manifest.files
    }
    written = {entry.name for page in served.lake.files.list(str(served.lake.place.tenant)) for entry in page}
    assert named < written, "no attempt has failed after it had written"


@pytest.mark.longer
def test_a_flush_by_executors_of_a_local_cluster_is_that_without_spark(
    served: Served, spark_sessions: SparkSessions
) -> None:
    tasks = spark_sessions.tasks(LOCAL_CLUSTER)
    await_true(lambda: tasks.executors() == 2)
    agree(served, tasks)


@pytest.mark.longer
def test_a_flush_with_twins_of_slow_tasks_on_two_workers_is_that_without_spark(
    served: Served, spark_sessions: SparkSessions, tmp_path: Path
) -> None:
    with Standalone(tmp_path) as standalone:
        tasks = spark_sessions.tasks(standalone.master, {"spark.executor.memory": "512m"})
        await_true(lambda: tasks.executors() == 2)
        agree(served, tasks, kernels.merge_slowly_at_times)
        spark_sessions.close()
    written = [entry.name for page in served.lake.files.list(str(served.lake.place.tenant)) for entry in page]
    assert any("-1-live-" in name for name in written), "no slow task had a twin"
