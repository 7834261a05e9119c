"""Failures of jobs: of the run, the input, and the processes and kernels that do the work.

Walk: `cluster.jobs`, `bulk`, `schema_change` and `pipeline` raise these; the statement that waits for a job
raises `JobFailed` with the job's error.
"""

from tenure.base.errors.roots import StoreError, TenureError, UserError


class FenceLost(TenureError):
    """The run may no longer write: its claim moved on, or its job was asked to stop."""

    sqlstate = "57P01"


class JobFailed(TenureError):
    """A job did not succeed; carries the SQLSTATE of the job's error."""

    def __init__(self, message: str, *, sqlstate: str, detail: str = "", hint: str = "") -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.sqlstate = sqlstate


class NoSuitableProcess(TenureError):
    """The job needs a resource that no process has, and no process that has it can be started."""

    sqlstate = "58000"


class KernelFailed(TenureError):
    """A bug in a kernel; the detail is the traceback from where it ran."""


class SparkFailed(TenureError):
    """Spark could not run the tasks: an executor died under one of them each time, for example."""


class NotCommitted(UserError):
    """The transaction that declared a schema change did not commit it."""

    sqlstate = "40000"


# Input


class InputFailed(UserError):
    """A location that cannot be read: the import fails and is not retried."""

    def __init__(self, error: StoreError) -> None:
        super().__init__(str(error), hint=error.hint)
        self.sqlstate = error.sqlstate


class RowsRefused(UserError):
    """More rows are bad than the statement tolerates; has the SQLSTATE of the first."""

    def __init__(self, message: str, *, sqlstate: str, detail: str) -> None:
        super().__init__(message, detail=detail)
        self.sqlstate = sqlstate


class BadFile(UserError):
    """PostgreSQL's bad_copy_file_format."""

    sqlstate = "22P04"


class BadInput(BadFile):
    """An import's file, or a row beyond the tolerated number, that cannot be read; 22P04 unless said
    otherwise.
    """

    def __init__(
        self, message: str, *, file: str, line: int = 0, column: str = "", sqlstate: str = "22P04"
    ) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.where = place_in_file(file, line) + (f", column {column}" if column else "")


class BadDump(BadFile):
    """A line of a dump that cannot be read; 22P04 unless said otherwise."""

    def __init__(
        self, message: str, file: str, line: int, sqlstate: str = "22P04", *, hint: str = ""
    ) -> None:
        super().__init__(message, detail=place_in_file(file, line), hint=hint)
        self.sqlstate = sqlstate


def place_in_file(file: str, line: int) -> str:
    return f'file "{file}"' + (f", line {line}" if line else "")
