"""Runs of a job that end at a commit, as if their process had."""

from collections.abc import Callable
from typing import Any, TypeVar

from tenure.cluster.runs import Run
from tenure.kv.transaction import Transaction

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
