"""A kernel's surroundings inside a task of Spark: the name of its attempt, and garbage collection.

Walk: `spark_tasks` and `frames` call these in the executors' Python workers.
"""

import gc

from pyspark import TaskContext

from tenure.base.env import SystemEnv
from tenure.pipeline.tasks import Attempt, attempt_name

FAILURES_MAX = 4
"""Attempts of one task before the whole work fails; Spark's own default on clusters."""


def attempt_here(label: str) -> Attempt:
    """This attempt's name: random, with the task and the number of the attempt, for operators."""
    task = _context()
    return Attempt(f"{attempt_name(label, SystemEnv())}-{task.partitionId()}-{task.attemptNumber()}")


def spare_modules() -> None:
    """Objects that the process keeps between tasks, its modules above all, are not collected again.

    Spark runs a collection after every task, which took 30 ms of CPU each. Garbage of tasks is still found.
    """
    gc.freeze()


def is_last_attempt() -> bool:
    return _context().attemptNumber() >= FAILURES_MAX - 1


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "not inside a task of Spark"
    return context
