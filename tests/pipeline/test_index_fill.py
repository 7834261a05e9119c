"""CREATE INDEX of a large table on Spark for real: the same statement, the same index, the same errors."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark_sessions import SparkSessions
from tests.unit.bulk.fills import Filling
from tests.unit.lake_nodes import lake_node

ROWS = 3_000


@pytest.fixture
def t(spark_sessions: SparkSessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Filling]:
    monkeypatch.setattr("tenure.pipeline.scan.TASK_ROWS", ROWS // 4)
    monkeypatch.setattr("tenure.pipeline.scan.CUT_ROWS", ROWS // 8)
    with lake_node(tmp_path, spark=spark_sessions.tasks) as node:
        filling = Filling(node, tmp_path)
        filling.done("SET CLUSTER SETTING pipeline.spark_min_rows = 2000")
        filling.done("CREATE TABLE t (id int PRIMARY KEY, a int, b text)")
        filling.done(
            f"INSERT INTO t SELECT g, g * 7919 % {ROWS}, 'text ' || g % 10 FROM generate_series(1, {ROWS}) g"
        )
        yield filling
        filling.talk.close()


def test_indexes_are_filled_on_spark(t: Filling) -> None:
    t.done("CREATE UNIQUE INDEX ON t (a)")
    t.flush(cleans=True)
    t.done("DELETE FROM t WHERE id % 10 = 0")
    t.done("CREATE INDEX ON t (b, a) WHERE a > 100")
    assert t.filled_rows()[0] == ROWS
    assert t.wrong() == []
    ((status,),) = t.rows(f"SELECT running_status FROM tenure_internal.jobs WHERE job_id = {t.job()}")
    assert status is not None and status.startswith("fill index 3: spark: 1 files, 2")
    assert t.rows("SELECT id FROM t WHERE a = 7919 % 3000") == [("1",)]


def test_equal_rows_are_found_by_spark(t: Filling) -> None:
    t.done(f"INSERT INTO t VALUES ({ROWS + 1}, 17, '')")
    said = t.say("CREATE UNIQUE INDEX i ON t (a)")
    assert (said.sqlstate, said.message) == ("23505", 'could not create unique index "i"')
    assert said.detail == "Key (a)=(17) is duplicated."
    assert t.wrong() == []
