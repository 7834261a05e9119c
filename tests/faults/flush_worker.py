"""`tenure worker`, with flushes cut into many tasks that take a while and fail at random.

    python -m tests.faults.flush_worker worker --store ADDRESS --lake PATH ...

What the product does is not changed: the ranges are smaller, and around the kernel there is one that waits
and, once its files are written, may raise. Executors know by the environment, which they inherit.

Walk: `flush_fleet` starts it; it calls `tenure.cli.main`.
"""

import os
import random
import sys
import time

from pyspark import TaskContext

from tenure import cli
from tenure.pipeline import merge
from tenure.pipeline.merge import MergedRange, MergeTask, merge_range
from tenure.pipeline.tasks import Attempt
from tenure.storage.engine import HEAD_BYTES

RANGE_ROWS_VARIABLE = "TENURE_FAULTS_RANGE_ROWS"
PACE_VARIABLE = "TENURE_FAULTS_PACE"
FAILURES_VARIABLE = "TENURE_FAULTS_FAILURES"


LAST_TAKES = 10
"""So many times as long takes the last range: there is a while in which all others are done."""


def merge_range_with_trouble(task: MergeTask, attempt: Attempt) -> MergedRange:
    is_last = not task.range.hi.startswith(task.range.lo[:HEAD_BYTES])
    time.sleep(float(os.environ[PACE_VARIABLE]) * (LAST_TAKES if is_last else 1))
    made = merge_range(task, attempt)
    if _is_first_attempt() and random.SystemRandom().random() < float(os.environ[FAILURES_VARIABLE]):
        raise ConnectionResetError("by chance, after its files were written")
    return made


def _is_first_attempt() -> bool:
    """The others are left to the blows: a task that fails for other reasons each time fails its job."""
    context = TaskContext.get()
    return context is not None and context.attemptNumber() == 0


def main() -> int:
    merge.RANGE_ROWS = int(os.environ[RANGE_ROWS_VARIABLE])
    merge.merge_range = merge_range_with_trouble
    return cli.main(sys.argv[1:])


if __name__ == "__main__":
    # By its full name: executors cannot import what is called __main__.
    from tests.faults import flush_worker

    sys.exit(flush_worker.main())
