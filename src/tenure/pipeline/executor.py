"""Where a kernel finds itself inside a task of Spark: which attempt this is, and what to spare the process.

Walk: `spark_tasks` and `frames` ask in the executors' Python workers.
"""

import gc

from pyspark import TaskContext

from tenure.base.env import SystemEnv
from tenure.pipeline.tasks import Attempt, attempt_name

FAILURES_MAX = 4
"""Attempts of one task before the whole work fails; Spark's own default on clusters."""


def attempt_here(label: str) -> Attempt:
    """This attempt's name: random, and with it which task and which attempt of it, for operators."""
    task = _context()
    return Attempt(f"{attempt_name(label, SystemEnv())}-{task.partitionId()}-{task.attemptNumber()}")


def spare_modules() -> None:
    """What the process holds between tasks, its modules above all, is not looked through for garbage again.

    Spark has that done after every task, which took 30 ms of CPU each. What tasks leave is still found.
    """
    gc.freeze()


def is_last_attempt() -> bool:
    return _context().attemptNumber() >= FAILURES_MAX - 1


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "not inside a task of Spark"
    return context
