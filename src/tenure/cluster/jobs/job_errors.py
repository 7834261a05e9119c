"""An error in a job's record: the fields that the client of a waiting statement is told.

    a run fails ──► JobError.of(error) ──► the job's record ──► SHOW JOBS: `text`
                                                          └──► the waiting statement raises `failed()`

A passing failure says nothing about the job: it is shown until the next attempt, and never raised.

Walk: `cluster.jobs.attempts` and `cluster.jobs.execution` -> `JobError.of`, `JobError.passing`;
`cluster.jobs.job_waits` -> `JobError.failed`; `cluster.jobs.job_records` -> `from_text`, for older records.
"""

import re

from tenure.base.errors import JobFailed, TenureError
from tenure.kv.records import Record, replace

_DETAIL = "\nDETAIL:  "
_TEXT = re.compile(r"([0-9A-Z]{5}) (.*)", re.DOTALL)


class JobError(Record, frozen=True):
    message: str
    sqlstate: str = TenureError.sqlstate
    detail: str = ""
    hint: str = ""
    is_passing: bool = False

    @classmethod
    def of(cls, error: Exception) -> "JobError":
        if isinstance(error, TenureError):
            return cls(str(error), error.sqlstate, error.detail, error.hint)
        return cls(f"{type(error).__name__}: {error}")

    @classmethod
    def passing(cls, error: Exception) -> "JobError":
        sqlstate = error.sqlstate if isinstance(error, TenureError) else TenureError.sqlstate
        return cls(str(error), sqlstate, is_passing=True)

    @property
    def text(self) -> str:
        """The text that SHOW JOBS shows."""
        if self.is_passing:
            return self.message
        return f"{self.sqlstate} {self.message}" + (f"{_DETAIL}{self.detail}" if self.detail else "")

    def failed(self) -> JobFailed:
        return JobFailed(self.message, sqlstate=self.sqlstate, detail=self.detail, hint=self.hint)

    def cut(self, chars_max: int) -> "JobError":
        """The same error with no field longer than that."""
        return replace(
            self,
            message=_cut(self.message, chars_max),
            detail=_cut(self.detail, chars_max),
            hint=_cut(self.hint, chars_max),
        )


def from_text(text: str) -> JobError:
    """Reads an error of format 1, which stored `text` alone."""
    found = _TEXT.fullmatch(text)
    message, _, detail = (found[2] if found else text).partition(_DETAIL)
    if found is None:
        return JobError(message, detail=detail, is_passing=True)
    return JobError(message, found[1], detail)


def _cut(text: str, chars_max: int) -> str:
    return text if len(text) <= chars_max else f"{text[: chars_max - 1]}…"
