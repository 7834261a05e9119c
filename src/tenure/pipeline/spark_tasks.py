"""Tasks on Spark: one Spark task for each, with retries, speculation and cancelling.

    run        parallelize ──► kernel in a Python worker of an executor ──► collect, in the order of the tasks
    frame      a DataFrame of the kernels' batches: see `frames`

A failure is retried up to `executor.FAILURES_MAX` times, on another executor if there is one. A failure that
would only repeat is not: a `UserError` means that the input is wrong. It comes back as a value, beside the
results, and ends the whole at once. The last attempt returns any error in the same way, so that the caller
gets the error itself and not Java's account of it.

The thread that calls `run` watches the job: it calls `check` and `on_done`, and cancels. Another thread
collects the results, because that one waits inside Java.

Invariant (attempts): two attempts of a task never have the same name, also if they run at once.

Walk: `pipeline.lazy_spark` hands one of these to the jobs of a worker; they call `run`. Spark calls `_Body`
in the executors.
"""

import logging
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark import RDD, Accumulator, AccumulatorParam, SparkContext
from pyspark.sql import DataFrame, SparkSession

from tenure.base.env import Env, Event
from tenure.base.errors import SparkFailed, SparkLost, TenureError, UserError
from tenure.pipeline.executor import attempt_here, is_last_attempt, spare_modules
from tenure.pipeline.failures import Failure, said_by
from tenure.pipeline.frames import frame
from tenure.pipeline.tasks import LABEL, SPARK, TASK_BYTES, Check, Kernel, OnDone, attempt_name

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

T = TypeVar("T")
R = TypeVar("R")

LOOK_SECONDS = 0.2
"""The time between two looks at the progress, and at whether to go on."""

CANCEL_SECONDS = 10.0
"""How long cancelled tasks are waited for. A task that runs on after that writes to names that are never
published.
"""

DETAIL_CHARS_MAX = 4_000

_log = logging.getLogger(__name__)


class SparkTasks:
    engine = SPARK
    task_bytes = TASK_BYTES

    def __init__(self, session: SparkSession, env: Env) -> None:
        self._session = session
        self._context: SparkContext = session.sparkContext
        self._env = env

    def executors(self) -> int:
        try:
            found = self._context.statusTracker().getExecutorInfos()
        except Exception as error:  # a failed progress report must not fail the job
            raise _translated(error) from error
        # The driver counts among them; it works itself only where there are no others.
        return max(1, len(found) - 1)

    def run(
        self,
        kernel: Kernel[T, R],
        tasks: Sequence[T],
        *,
        on_done: OnDone,
        check: Check,
        label: str = LABEL,
    ) -> list[R]:
        check()
        if not tasks:
            return []
        collect = _Collect(self._context, kernel, tasks, label=label, group=attempt_name(label, self._env))
        ended = self._env.event()
        self._env.spawn(collect.group, lambda: collect.run(ended))
        told = 0
        try:
            while not ended.wait(LOOK_SECONDS):
                check()
                collect.raise_failure()
                done = collect.done()
                if told < done < len(tasks):
                    on_done(done, len(tasks))
                    told = done
            results = collect.results()
        except BaseException:
            self._cancel(collect, ended)
            raise
        on_done(len(tasks), len(tasks))
        return results

    def _cancel(self, collect: "_Collect[Any, Any]", ended: Event) -> None:
        """Also if the job has failed: Spark ends it before its running tasks have ended."""
        deadline = self._env.monotonic() + CANCEL_SECONDS
        while self._env.monotonic() < deadline:
            collect.cancel()  # repeatedly: a job that does not exist yet is not cancelled
            if ended.wait(LOOK_SECONDS):
                if not collect.is_under_way():
                    return
                self._env.sleep(LOOK_SECONDS)
        _log.warning("tasks of %s did not end within %.0f s", collect.group, CANCEL_SECONDS)

    def frame(
        self,
        kernel: "Kernel[T, Iterator[pa.RecordBatch]]",
        tasks: Sequence[T],
        schema: "StructType | str",
        *,
        label: str = LABEL,
    ) -> DataFrame:
        """The kernel's batches for these tasks; computed when the rows are read.

        Errors of kernels are raised as themselves inside `with frames.as_raised()`.
        """
        return frame(self._session, kernel, tasks, schema, label=label)


class _Collect(Generic[T, R]):
    """One job of Spark, from its start in a thread of its own to its result."""

    def __init__(
        self, context: SparkContext, kernel: Kernel[T, R], tasks: Sequence[T], *, label: str, group: str
    ) -> None:
        self.group = group
        self._context = context
        self._tasks = list(tasks)
        self._done: Accumulator[int] = context.accumulator(0)
        self._failures: Accumulator[list[Failure]] = context.accumulator([], _Listed())
        self._body = _Body(kernel, label, self._done, self._failures)
        self._results: list[R] = []
        self._error: Exception | None = None

    def run(self, ended: Event) -> None:
        try:
            self._context.setJobGroup(self.group, self.group, interruptOnCancel=True)
            self._results = self._handed_over().mapPartitions(self._body).collect()
        except Exception as error:  # raised in the thread that waits
            self._error = error
        finally:
            ended.set()

    def _handed_over(self) -> RDD[T]:
        # By a socket (see `encryption`), whose closing pyspark leaves to Python, which would warn of that.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            return self._context.parallelize(self._tasks, len(self._tasks))

    def done(self) -> int:
        return self._done.value

    def results(self) -> list[R]:
        self.raise_failure()
        if self._error is not None:
            raise _translated(self._error) from self._error
        return self._results

    def raise_failure(self) -> None:
        """Raises a kernel's error, as soon as it is known here."""
        for failure in self._failures.value[:1]:
            raise failure.error()

    def is_under_way(self) -> bool:
        """Whether some task of it still runs, also of a stage that has ended."""
        try:
            tracker = self._context.statusTracker()
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self.group)]
            stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        except Exception as error:  # Spark may have ended
            _log.info("asking for the tasks of %s: %s", self.group, error)
            return False
        return any(stage.numActiveTasks for stage in stages if stage)

    def cancel(self) -> None:
        try:
            self._context.cancelJobGroup(self.group)
        except Exception as error:  # Spark may have ended
            _log.info("cancelling %s: %s", self.group, error)


class _Body(Generic[T, R]):
    """The body of a Spark task: runs in a Python worker of an executor, on a partition of one task."""

    def __init__(
        self, kernel: Kernel[T, R], label: str, done: Accumulator[int], failures: Accumulator[list[Failure]]
    ) -> None:
        self._kernel = kernel
        self._label = label
        self._done = done
        self._failures = failures

    def __call__(self, tasks: Iterable[T]) -> Iterator[R]:
        spare_modules()
        for task in tasks:
            try:
                yield self._kernel(task, attempt_here(self._label))
                self._done.add(1)
            except Exception as error:
                if not isinstance(error, UserError) and not is_last_attempt():
                    raise
                self._failures.add([Failure.of(error, self._kernel)])


class _Listed(AccumulatorParam[list[Failure]]):
    def zero(self, value: list[Failure]) -> list[Failure]:
        return []

    def addInPlace(self, value1: list[Failure], value2: list[Failure]) -> list[Failure]:  # noqa: N802
        return [*value1, *value2]


def _translated(error: Exception) -> TenureError:
    if not isinstance(error, Py4JJavaError):
        # The connection to Java, or its other end, is gone.
        return SparkLost(f"Spark has ended: {said_by(error)}")
    first, *rest = said_by(error).splitlines()
    if "SparkContext was shut down" in first or "stopped SparkContext" in first:
        return SparkLost(f"Spark has ended: {first}")
    return SparkFailed(f"Spark could not run the tasks: {first}", detail="\n".join(rest)[:DETAIL_CHARS_MAX])
