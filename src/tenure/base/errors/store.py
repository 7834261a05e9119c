"""What the store, the lake's files and the machine below them answer (08, 40, 53, 58), and what reads meet.

Walk: `storage` translates what its libraries raise into these; `kv`, `table.lake` and `pipeline`
raise the others.
"""

from tenure.base.errors.roots import RetryError, StoreError

# Run the transaction again


class BelowMark(RetryError):
    """A transaction's `read_at` lies below a threshold or cleaned mark: it cannot be validated."""


class BaseMoved(RetryError):
    """Revisions that were asked for have been cleaned from the store: the lake has them."""


class DeadlinePassed(RetryError):
    """The final commit timestamp was not below the deadline; a fresh attempt gets a fresh one."""


class DeadlockDetected(RetryError):
    sqlstate = "40P01"


class DescriptorChanged(RetryError):
    """A descriptor is leased in a version that came after the transaction began."""

    def __init__(self, name: str, *, at: int) -> None:
        super().__init__(f'"{name}" has changed since the transaction began')
        self.at = at


class ClusterFinalized(RetryError):
    """The cluster was finalized meanwhile: a fresh attempt needs no expiring lease."""


# The store


class Unavailable(StoreError):
    sqlstate = "08006"


class Disconnected(Unavailable):
    """The connection broke while an answer was awaited: a commit may have landed, or may yet."""


class Abandoned(Disconnected):
    """The thread that waited for the answer was told to stop."""

    was_sent = True
    """Else nothing had been asked yet."""


class AccessDenied(StoreError):
    """The store refuses this node's password or rights."""

    sqlstate = "28P01"


class ClockAhead(StoreError):
    sqlstate = "58000"


class WrongLake(StoreError):
    sqlstate = "55000"


class NewerFormat(StoreError):
    sqlstate = "0A000"


class UnfitEngine(StoreError):
    sqlstate = "0A000"


# Files


class DiskFull(StoreError):
    sqlstate = "53100"


class InputOutput(StoreError):
    sqlstate = "58030"


class FileMissing(StoreError):
    """Of the lake: a merge has replaced the file meanwhile, so the reader plans again."""

    sqlstate = "58P01"


class FileExists(StoreError):
    sqlstate = "58P02"


class NoPermission(StoreError):
    sqlstate = "42501"


# The Java below Spark


class NoJava(StoreError):
    """Bulk work has to wait until somebody has installed Java."""


class SparkRefused(StoreError):
    """A Spark session could not be had; the log says what Java said."""


class JavaRefused(SparkRefused):
    """Java ended before it listened."""


class MasterUnreachable(StoreError):
    """Spark's master may come back: jobs that need it are tried again, and say why they wait."""


class SparkLost(StoreError):
    """Spark itself has ended. That says nothing about the work: another process may do it."""
