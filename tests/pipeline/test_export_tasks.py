"""An export's tasks on Spark: each writes its own files."""

from pathlib import Path

import pytest

from tenure.bulk.exporting.job import ExportTask, export_range
from tenure.pipeline import scan
from tenure.pipeline.spark_tasks import SparkTasks
from tenure.pipeline.writing.formats import OutColumn, Writing
from tenure.storage.locations import Locations
from tests.pipeline.waiting import go_on, ignore
from tests.unit.pipeline.histories import History, first_version
from tests.unit.pipeline.lakes import Lake
from tests.unit.pipeline.test_scan import planned


def test_tasks_write_all_rows_once_however_often_they_run(
    tmp_path: Path, spark_tasks: SparkTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "TASK_ROWS", 20)
    monkeypatch.setattr(scan, "CUT_ROWS", 9)
    lake = Lake(tmp_path, first_version())
    history = History(lake, 3)
    for step in range(6):
        history.write(20)
        if step == 3:
            lake.flush()
    at = history.times[-1]
    writing = Writing("csv", tuple(OutColumn(each.name, each.type) for each in history.version(at).columns))
    locations = Locations(str(tmp_path / "files"))
    locations.make_directory()
    location = locations.resolve("out")
    work = [
        ExportTask(task, location, writing, "t-1", number)
        for number, task in enumerate(planned(lake, history, at))
    ]
    first = spark_tasks.run(export_range, work, on_done=ignore, check=go_on)
    again = spark_tasks.run(export_range, work, on_done=ignore, check=go_on)
    lake.close()
    assert first == again and len(work) > 1
    names = [file.name for files in first for file in files]
    found = tmp_path / "files" / "out"
    assert sorted(names) == sorted(path.name for path in found.iterdir())
    ids = [line.partition(",")[0] for name in names for line in (found / name).read_text().splitlines()]
    assert ids == [str(id) for id in sorted(history.now)]
