"""The error tree: each class carries a SQLSTATE and says who must act.

    TenureError
    ├── RetryError            40001  run the transaction again; nothing was changed
    │   ├── BelowMark         40001  its read time was collected or cleaned meanwhile
    │   ├── BaseMoved         40001  revisions moved to the lake: start over with its newest manifest
    │   ├── DeadlinePassed    40001  the commit timestamp reached the transaction's deadline
    │   └── DeadlockDetected  40P01  transactions wait for each other, and this one gave way
    ├── TooEarly              55000  the commit timestamp is not after "not before": wait
    ├── OutcomeUnknown        40003  it may have committed; ask before doing it again
    ├── SessionLost           57P01  this node must stop what it does under that session
    ├── UserError                    tell the client; the statement was wrong or impossible
    │   ├── InvalidParameter  22023
    │   ├── CommitTooLarge    54000
    │   ├── LockNotAvailable  55P03  somebody else has it, and waiting was not wanted or took too long
    │   └── SnapshotTooOld    72000  reads below a threshold: the history is gone
    ├── StoreError                   the operator or the machine must act; nothing was changed
    │   ├── Unavailable       08006  the store cannot be reached just now
    │   │   └── Disconnected  08006  the connection broke while an answer was awaited
    │   │       └── Abandoned 08006  it was given up, because whoever waited was told to stop
    │   ├── AccessDenied      28P01  wrong password or missing rights
    │   ├── DiskFull          53100
    │   ├── InputOutput       58030
    │   ├── FileMissing       58P01  a file or directory that was named is not there
    │   ├── FileExists        58P02  files are written once: the name is taken
    │   ├── NoPermission      42501  the system or the object store does not let this node do it
    │   ├── ClockAhead        58000  this node's clock is too far ahead to commit
    │   ├── WrongLake         55000  the lake is not the one that belongs to the store
    │   ├── NewerFormat       0A000  written by a newer Tenure
    │   └── UnfitEngine       0A000  the engine fails the start-up probe
    └── CorruptData           XX001  stop, never repair silently

Messages name the object in quotes and, where there is one, say what to do in `hint`. Message, detail and hint
may reach clients, who need not know where the store is or whose it is: what names its host, its user or its
path is `private`, for the log alone (`for_operator`). Errors of
other libraries are translated once, in the file that owns the library, with `raise ... from`.
`assert` is for our own bugs.
"""


class TenureError(Exception):
    sqlstate = "XX000"
    detail: str = ""
    position: int = 0
    """Where in the statement's text, counted in characters from 1; 0: nowhere in particular."""
    where: str = ""
    """What was being done: "COPY t, line 3, column a"."""
    private: str = ""
    """What only the operator may read."""

    def __init__(
        self, message: str, *, hint: str = "", detail: str = "", position: int = 0, private: str = ""
    ) -> None:
        super().__init__(message)
        self.hint = hint
        if private:
            self.private = private
        if detail:
            self.detail = detail
        if position:
            self.position = position


class RetryError(TenureError):
    sqlstate = "40001"


class BelowMark(RetryError):
    """A transaction's `read_at` lies below a threshold or cleaned mark: it cannot be validated."""


class BaseMoved(RetryError):
    """Revisions that were asked for have been cleaned from the store: the lake has them."""


class DeadlinePassed(RetryError):
    """The final commit timestamp was not below the deadline; a fresh attempt gets a fresh one."""


class DeadlockDetected(RetryError):
    sqlstate = "40P01"


class TooEarly(TenureError):
    sqlstate = "55000"


class OutcomeUnknown(TenureError):
    sqlstate = "40003"


class SessionLost(TenureError):
    sqlstate = "57P01"


class UserError(TenureError):
    sqlstate = "22000"


class InvalidParameter(UserError):
    sqlstate = "22023"


class CommitTooLarge(UserError):
    sqlstate = "54000"


class LockNotAvailable(UserError):
    sqlstate = "55P03"


class SnapshotTooOld(UserError):
    sqlstate = "72000"


class StoreError(TenureError):
    sqlstate = "58000"


class Unavailable(StoreError):
    sqlstate = "08006"


class Disconnected(Unavailable):
    """The connection broke while an answer was awaited: a commit may have landed, or may yet."""


class Abandoned(Disconnected):
    """Whoever waited for the answer was told to stop."""

    was_sent = True
    """Else nothing had been asked yet."""


class AccessDenied(StoreError):
    sqlstate = "28P01"


class DiskFull(StoreError):
    sqlstate = "53100"


class InputOutput(StoreError):
    sqlstate = "58030"


class FileMissing(StoreError):
    """Of the lake: a merge has replaced the file meanwhile, so whoever reads plans again."""

    sqlstate = "58P01"


class FileExists(StoreError):
    sqlstate = "58P02"


class NoPermission(StoreError):
    sqlstate = "42501"


class ClockAhead(StoreError):
    sqlstate = "58000"


class WrongLake(StoreError):
    sqlstate = "55000"


class NewerFormat(StoreError):
    sqlstate = "0A000"


class UnfitEngine(StoreError):
    sqlstate = "0A000"


class CorruptData(TenureError):
    sqlstate = "XX001"


def for_operator(error: BaseException) -> str:
    """The message with what is private of it and its causes: for the log, not for clients."""
    private: list[str] = []
    cause: BaseException | None = error
    while isinstance(cause, TenureError):
        if cause.private and cause.private not in private:
            private.append(cause.private)
        cause = cause.__cause__
    return f"{error} [{'; '.join(private)}]" if private else str(error)
