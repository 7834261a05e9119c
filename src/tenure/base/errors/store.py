"""Errors of the store, the lake's files and the machine below them (08, 40, 53, 58), and of reads.

Walk: `storage` translates its libraries' errors into these; `kv`, `table.lake` and `pipeline` raise the
others.
"""

from tenure.base.errors.roots import RetryError, StoreError

# Run the transaction again


class BelowMark(RetryError):
    """A transaction's `read_at` lies below a threshold or cleaned mark: it cannot be validated."""


class BaseMoved(RetryError):
    """The requested revisions were cleaned from the store: the lake has them."""


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
    """The connection broke before the answer came: a commit may have landed, or may still land."""


class Abandoned(Disconnected):
    """The thread that waited for the answer was told to stop."""

    was_sent = True
    """False if no request had been sent yet."""


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
    """A file of the lake is missing: a merge has replaced it meanwhile, so the reader plans again."""

    sqlstate = "58P01"


class FileExists(StoreError):
    sqlstate = "58P02"


class NoPermission(StoreError):
    sqlstate = "42501"


# The Java below Spark


class NoJava(StoreError):
    """Bulk work waits until Java is installed."""


class SparkRefused(StoreError):
    """No Spark session could be opened; the log has Java's messages."""


class JavaRefused(SparkRefused):
    """Java ended before it listened."""


class MasterUnreachable(StoreError):
    """Spark's master may come back: jobs that need it are tried again, and say why they wait."""


class SparkLost(StoreError):
    """Spark itself has ended. The work is not at fault: another process may do it."""
