"""Scans on Spark: the same rows, one partition per task."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tenure.pipeline import scan
from tenure.pipeline.spark_tasks import SparkTasks
from tests.unit.pipeline.histories import History, first_version
from tests.unit.pipeline.lakes import Lake
from tests.unit.pipeline.test_scan import planned, shown


@pytest.mark.invariant("scan-exact")
def test_a_frame_has_the_rows_that_the_model_has(
    tmp_path: Path, spark_tasks: SparkTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "TASK_ROWS", 20)
    monkeypatch.setattr(scan, "CUT_ROWS", 9)
    lake = Lake(tmp_path, first_version())
    history = History(lake, 7)
    for step in range(9):
        history.write(15)
        if step == 2:
            history.add_column()
        if step in (3, 6):
            lake.flush()
            lake.clean()
    for at in (history.times[2], history.times[-1]):
        since_at = history.times[1]
        expected = [
            history.visible(at),
            history.changed(since_at, at),
            history.revisions(since_at, at),
        ]
        asked: list[dict[str, Any]] = [{}, {"since_at": since_at}, {"since_at": since_at, "revisions": "all"}]
        for each, rows in zip(asked, expected, strict=True):
            tasks = planned(lake, history, at, **each)
            frame = scan.frame(spark_tasks, tasks)
            assert frame.rdd.getNumPartitions() == len(tasks)
            assert shown(history, at, _batches(frame.toArrow())) == rows
    lake.close()


def _batches(table: pa.Table) -> list[pa.RecordBatch]:
    return list(table.combine_chunks().to_batches())
