"""`tenure worker`, with bulk work cut into many tasks that take a while and fail at random.

    python -m tests.faults.bulk_worker worker --store ADDRESS --lake PATH ...

What the product does is not changed: the ranges are smaller, and around each kernel there is one that waits
and, once its files are written, may raise.

Walk: `bulk_fleet` starts it; it calls `tenure.cli.main`.
"""

import os
import random
import sys
import time
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

from pyspark import TaskContext

from tenure import cli
from tenure.bulk import phases
from tenure.bulk.exporting import job as exporting
from tenure.bulk.filling import entries
from tenure.bulk.importing import sorting
from tenure.bulk.ingest import references
from tenure.pipeline import lazy_spark, merge, merge_tasks, runs, scan
from tenure.pipeline.lazy_spark import LazySpark
from tenure.pipeline.merge_tasks import RangeTask
from tenure.pipeline.reading import splits
from tenure.pipeline.scan import ScanTask
from tenure.pipeline.tasks import Attempt, Kernel
from tenure.storage.engine import HEAD_BYTES, REVISION_BYTES
from tests.faults.harness import ROOT
from tests.pipeline.clusters import HOSTS

RANGE_ROWS_VARIABLE = "TENURE_FAULTS_RANGE_ROWS"
PACE_VARIABLE = "TENURE_FAULTS_PACE"
FAILURES_VARIABLE = "TENURE_FAULTS_FAILURES"

EXECUTOR_MEMORY = "512m"
ROW_BYTES = 16
"""Of a text file, at least: a split has about so many rows as a range."""

LAST_TAKES = 10
"""So many times as long takes the last range: there is a while in which all others are done."""


KERNELS: "dict[tuple[ModuleType, str], Kernel[Any, Any]]" = {
    (merge, "merge_range"): merge_tasks.merge_range,
    (sorting, "sort_split"): sorting.sort_split,
    (references, "check_references"): references.check_references,
    (exporting, "export_range"): exporting.export_range,
    (entries, "project_range"): entries.project_range,
}
"""As they are in the product, whatever stands in their place."""


class Troubled(NamedTuple):
    """A kernel that waits, and fails by chance. It is told by its name: executors have it, too."""

    name: str
    pace_seconds: float
    failures: float

    def __call__(self, task: Any, attempt: Attempt) -> Any:
        time.sleep(self.pace_seconds * (LAST_TAKES if _is_last(task) else 1))
        (kernel,) = (each for (_, name), each in KERNELS.items() if name == self.name)
        made = kernel(task, attempt)
        if _is_first_attempt() and random.SystemRandom().random() < self.failures:
            raise ConnectionResetError("by chance, after its files were written")
        return made


def _is_last(task: Any) -> bool:
    """Whether it is the last range of the last index."""
    if isinstance(task, exporting.ExportTask):
        return _is_last(task.scan)
    if isinstance(task, RangeTask):
        return _is_last_index(task) and not task.range.hi.startswith(task.range.lo[:HEAD_BYTES])
    return isinstance(task, ScanTask) and not task.hi.startswith(task.lo[:HEAD_BYTES])


def _is_last_index(task: RangeTask) -> bool:
    """A flush and a backfill are of one index; an import is of all of its table's."""
    indexes = task.target.version.table.indexes
    return task.rules is None or task.target.index_id == max(index.id for index in indexes)


def _is_first_attempt() -> bool:
    """The others are left to the blows: a task that fails for other reasons each time fails its job."""
    context = TaskContext.get()
    return context is not None and context.attemptNumber() == 0


def main() -> int:
    rows = int(os.environ[RANGE_ROWS_VARIABLE])
    merge.RUN_ROWS = references.RANGE_KEYS = rows
    merge.RANGE_BYTES = rows * (REVISION_BYTES + ROW_BYTES)
    scan.TASK_ROWS = scan.CUT_ROWS = rows
    splits.SPLIT_BYTES = rows * ROW_BYTES
    runs.BATCH_ROWS = min(runs.BATCH_ROWS, rows)
    phases.TELL_SECONDS = 0.0
    for module, name in KERNELS:
        setattr(module, name, _troubled(name))
    # Executors that are processes of their own find this file, and fit beside each other. A driver that is
    # stopped keeps those it has: another one must find room in the cluster.
    options = {"spark.executor.memory": EXECUTOR_MEMORY, "spark.cores.max": str(len(HOSTS))}
    lazy_spark.LazySpark = partial(LazySpark, python_path=[str(ROOT)], options=options)  # type: ignore[misc,assignment]
    return cli.main(sys.argv[1:])


def _troubled(name: str) -> Troubled:
    return Troubled(name, float(os.environ[PACE_VARIABLE]), float(os.environ[FAILURES_VARIABLE]))


if __name__ == "__main__":
    # By its full name: executors cannot import what is called __main__.
    from tests.faults import bulk_worker

    sys.exit(bulk_worker.main())
