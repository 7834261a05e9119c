"""Bulk work is a list of tasks and a kernel; `Tasks` runs them, in this process or on Spark.

    tasks    small picklable values: what to read, from where to where, under which name to write
    kernel   a top-level function, task -> result; reads, computes and writes files, and nothing else
    driver   calls `run`, gets the results in the order of the tasks, and publishes them in one transaction

A kernel may run more than once for one task: after a failure, when its executor was lost, or beside a twin
that Spark started because it was slow. So all its output goes under a name that contains the *attempt's*,
which no other attempt has, and only the results of `run` count: a file that is not published does not exist.

`check` is called a few times a second and raises when the job was told to stop. Then running tasks are
cancelled, and its exception goes on to the caller.

Invariant (attempts): two attempts of a task never have the same name.

Walk: the jobs of `bulk` call `run`; it is that of `ProcessTasks` for little work, of `spark_tasks.SparkTasks`
for much. This module imports nothing of Spark.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from tenure.base.env import Env
from tenure.base.errors import TenureError
from tenure.pipeline.failures import failed

T = TypeVar("T")
R = TypeVar("R")

ATTEMPT_BITS = 64
"""So many random bits distinguish attempts: with a million of them, one chance in 10**7 that two agree."""

LABEL = "task"

TASK_BYTES = 512 << 20
"""The memory that a task may take in a process that has no other work."""

SPARK = "spark"
"""The resource of jobs whose tasks run on Spark, and of processes that have it."""


class Attempt(NamedTuple):
    """One attempt of one task."""

    name: str
    """Suitable as part of a file's name."""


Kernel: TypeAlias = Callable[[T, Attempt], R]
OnDone: TypeAlias = Callable[[int, int], None]
Check: TypeAlias = Callable[[], None]


class Tasks(Protocol):
    @property
    def engine(self) -> str:
        """ "process" or "spark"."""
        ...

    @property
    def task_bytes(self) -> int:
        """The memory that one task may take."""
        ...

    def executors(self) -> int:
        """How many processes share the tasks now."""
        ...

    def run(
        self,
        kernel: Kernel[T, R],
        tasks: Sequence[T],
        *,
        on_done: OnDone,
        check: Check,
        label: str = LABEL,
    ) -> list[R]:
        """Returns the results in the order of the tasks; `on_done` receives the number done, and the total.

        Attempts are named after `label`, such as "j12-r3" for run 3 of job 12.
        """
        ...


class Reserve(Protocol):
    """The memory of tasks in a process that serves statements as well: `base.task_memory`."""

    @property
    def task_bytes(self) -> int: ...

    def reserved(self, check: Check) -> AbstractContextManager[object]:
        """Has the memory of a task charged while it runs; calls `check` while it waits for room."""
        ...


class ProcessTasks:
    """Runs tasks here, one after the other: for work that is not worth starting Spark."""

    engine = "process"

    def __init__(self, env: Env, reserve: Reserve | None = None) -> None:
        self._env = env
        self._reserve = reserve

    @property
    def task_bytes(self) -> int:
        return TASK_BYTES if self._reserve is None else self._reserve.task_bytes

    def executors(self) -> int:
        return 1

    def run(
        self,
        kernel: Kernel[T, R],
        tasks: Sequence[T],
        *,
        on_done: OnDone,
        check: Check,
        label: str = LABEL,
    ) -> list[R]:
        results: list[R] = []
        for task in tasks:
            check()
            with nullcontext() if self._reserve is None else self._reserve.reserved(check):
                results.append(_attempted(kernel, task, Attempt(attempt_name(label, self._env))))
            on_done(len(results), len(tasks))
        return results


def _attempted(kernel: Kernel[T, R], task: T, attempt: Attempt) -> R:
    try:
        return kernel(task, attempt)
    except TenureError:
        raise
    except Exception as error:
        raise failed(error, kernel) from error


def attempt_name(label: str, env: Env) -> str:
    return f"{label}-{env.rng.getrandbits(ATTEMPT_BITS):016x}"


def status(tasks: Tasks, done: int, total: int) -> str:
    """The progress as SHOW JOBS shows it: "spark: 5 of 12 tasks, 2 executors"."""
    text = f"{tasks.engine}: {done} of {total} tasks"
    if tasks.engine == ProcessTasks.engine:
        return text
    executors = tasks.executors()
    return f"{text}, {executors} executor{'' if executors == 1 else 's'}"
