"""A job's tasks, phase by phase, with progress for SHOW JOBS.

Walk: the jobs of `bulk` -> `Phases.do` -> `pipeline.tasks.Tasks.run`.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from tenure.base.interruptible import Check, abandonable, checked_by
from tenure.bulk.lakes import Lake, label
from tenure.cluster.jobs.runs import Run
from tenure.pipeline.tasks import Kernel, status

TELL_SECONDS = 1.0
"""The time between two reports."""

START_SECONDS = 2.0
"""A wait for Spark's start that is longer than this is reported: with its archive of classes it takes some 3
s.
"""

A = TypeVar("A")
B = TypeVar("B")
Tell = Callable[[float, str], None]
Part = tuple[float, float]
"""The fractions of the job at the start and end of a phase."""


class Phases:
    """`tell` receives the reports; without it they go to the run's progress."""

    def __init__(self, lake: Lake, run: Run, tell: Tell | None = None) -> None:
        self._run = run
        self._files = lake.files
        self._env = lake.store.env
        self._tell = tell or (lambda fraction, text: run.checkpoint(fraction=fraction, status=text))
        self._told_at = -TELL_SECONDS
        with checked_by(self._check_start()):
            self._tasks = abandonable(self._env, "tasks", lambda: lake.tasks_for(run))

    def _check_start(self) -> Check:
        """Spark may have to be started first, and its master may hang: then the job can be canceled, and
        reports what it waits for.
        """
        began, has_told = self._env.monotonic(), False

        def check() -> None:
            nonlocal has_told
            self._run.check()
            if not has_told and self._env.monotonic() >= began + START_SECONDS:
                has_told = True
                self._tell(self._run.progress.fraction, "waits for Spark to start")

        return check

    @property
    def engine(self) -> str:
        """Where the tasks run."""
        return self._tasks.engine

    @property
    def task_bytes(self) -> int:
        """The memory that a task may take."""
        return self._tasks.task_bytes

    def do(self, kernel: Kernel[A, B], tasks: Sequence[A], part: Part, what: str = "") -> list[B]:
        """The result of each task."""
        start, end = part

        def on_done(done: int, total: int) -> None:
            now = self._env.monotonic()
            if now - self._told_at < TELL_SECONDS and done < total:
                return
            self._told_at = now
            text = status(self._tasks, done, total)
            fraction = start + (end - start) * done / max(1, total)
            self._tell(fraction, f"{what}, {text}" if what else text)

        run = self._run
        # Before and after: files written below a mount point without its disk are lost with the next mount.
        self._files.confirm()
        results = self._tasks.run(kernel, tasks, on_done=on_done, check=run.check, label=label(run))
        self._files.confirm()
        return results


def part_of(whole: Part, number: int, count: int) -> Part:
    """One of so many equal pieces of a phase."""
    start, end = whole
    piece = (end - start) / count
    return start + number * piece, start + (number + 1) * piece
