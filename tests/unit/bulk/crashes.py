"""Jobs that a test runs by hand, by runs that end at a commit, as if their process had."""

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from tenure.base.errors import FenceLost
from tenure.cluster.jobs.job_errors import JobError
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import Job
from tenure.cluster.jobs.runs import JobKind, Run
from tenure.kv.transaction import Transaction
from tenure.node import Node

T = TypeVar("T")

NOBODY_HAS = "nothing that anybody has"
"""So that only the test runs the job."""


class Crash(BaseException):
    """The process ends here."""


class CrashingRun(Run):
    """Ends before or after its n-th commit."""

    def crash_at(self, commit: int, *, is_after: bool) -> None:
        self.left, self.is_after = commit, is_after

    def transact(self, work: Callable[[Transaction], T]) -> T:
        return self._counted(lambda: super(CrashingRun, self).transact(work))

    def checkpoint(self, **given: Any) -> None:
        self._counted(lambda: super(CrashingRun, self).checkpoint(**given))

    def _counted(self, commit: Callable[[], T]) -> T:
        self.left -= 1
        if self.left == 0 and not self.is_after:
            raise Crash
        result = commit()
        if self.left == 0:
            raise Crash
        return result


class ByHand:
    """A job that nobody but the test runs."""

    def __init__(self, node: Node, kind: JobKind, job: Job, *, needs: tuple[str, ...] = ()) -> None:
        self._node = node
        self.kind = kind
        self.job = job
        self._needs = needs

    def claim(self) -> CrashingRun:
        jobs, store = self._node.jobs, self._node.store
        session = self._node.liveness.session().id
        fence = store.transact(lambda txn: jobs.claim(txn, self.job.id, session))
        assert fence is not None
        progress = jobs.progress(store.snapshot(), self.job.id)
        run = CrashingRun(store, jobs, self.job, progress, fence, needs=self._needs)
        run.crash_at(0, is_after=False)
        return run

    def step(self, run: CrashingRun, state: JobState, error: JobError | None = None) -> None:
        jobs = self._node.jobs
        fence = self._node.store.transact(lambda txn: jobs.step(txn, run.fence, state, error=error))
        if fence is not None:
            run.fence = fence

    def reverting(self, error: JobError | None = None) -> CrashingRun:
        run = self.claim()
        self.step(run, JobState.REVERTING, error)
        return run

    def crash(self, commit: int, *, is_after: bool) -> bool:
        """Whether it came to that, or else has run to its end."""
        run = self.claim()
        run.crash_at(commit, is_after=is_after)
        try:
            self.kind.run(run)
        except Crash:
            return True
        self.step(run, JobState.SUCCEEDED)
        return False

    def overtake(self, is_time: Callable[[], object], overtake: Callable[[], T]) -> T:
        """Lets something happen under a run before a commit; the run must find that it lost the job."""
        former = self.claim()
        made: list[T] = []

        def counted(commit: Callable[[], Any]) -> Any:
            if not made and is_time():
                made.append(overtake())
            return commit()

        former._counted = counted  # type: ignore[method-assign]
        with pytest.raises(FenceLost):
            self.kind.run(former)
        (result,) = made
        return result

    def run(self) -> CrashingRun:
        """All of it."""
        run = self.claim()
        self.kind.run(run)
        return run
