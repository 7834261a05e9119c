"""One run of a job, as its function sees it, and the definition of a kind of job.

Walk: `cluster.jobs.runner` makes a `Run` for each claim and hands it to the kind's function.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from tenure.cluster.jobs.job_table import Fence, Job, JobProgress, Jobs
from tenure.kv.scope import ReadAhead
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction

T = TypeVar("T")

SQL = "sql"
"""The resource of a process with a door for SQL: jobs that run queries need it, and jobs that run as long as
nodes do.
"""


class Stopped(Exception):
    """Raised inside a run that was told to stop."""


class Lacking(Exception):
    """Raised by a run that needs more resources than its job was created with: another process takes it
    up.
    """

    def __init__(self, *needs: str) -> None:
        super().__init__(", ".join(needs))
        self.needs = needs


class JobKind(NamedTuple):
    """The functions of a kind of job. Each job says by itself which resources it needs."""

    run: Callable[["Run"], None]
    revert: Callable[["Run"], None] = lambda run: None
    attempts_max: int | None = None
    """After so many attempts in a row that met a conflict the job fails; None: never."""
    blocked_attempts_max: int | None = None
    """The same for attempts that found no space, or no permission: time alone does not help there."""


class Run:
    """One run of a job, as its function sees it: restartable from `progress` at any point."""

    def __init__(
        self,
        store: Store,
        jobs: Jobs,
        job: Job,
        progress: JobProgress,
        fence: Fence,
        *,
        needs: tuple[str, ...] = (),
        attempts: int = 0,
        read_ahead: ReadAhead | None = None,
    ) -> None:
        self.needs = needs
        """The resources that its job needs, which this process has."""
        self.attempts = attempts
        """How many attempts before it made no progress."""
        self.read_ahead = read_ahead
        """Values as of the commit of its claim, for the first step it takes."""
        self._store = store
        self._jobs = jobs
        self._stop = store.env.event()
        self.fence = fence
        self.job = job
        self.progress = progress

    def transact(self, work: Callable[[Transaction], T]) -> T:
        """Runs a transaction that commits only while this run may write."""

        def fenced(txn: Transaction) -> T:
            self._jobs.fenced(txn, self.fence)
            return work(txn)

        self.check()
        return self._store.transact(fenced)

    def checkpoint(
        self,
        *,
        fraction: float,
        status: str = "",
        data: bytes = b"",
        also: Callable[[Transaction], object] = lambda txn: None,
    ) -> None:
        """Saves progress, and the writes of `also`, in one fenced transaction: both or neither."""

        def save(txn: Transaction) -> JobProgress:
            progress = self.save(txn, fraction=fraction, status=status, data=data)
            also(txn)
            return progress

        self.check()
        self.progress = self._store.transact(save)

    def save(self, txn: Transaction, *, fraction: float, status: str = "", data: bytes = b"") -> JobProgress:
        """Saves progress in a transaction with other effects, if the run may still write."""
        progress = JobProgress(self.job.id, fraction, status, data)
        self._jobs.checkpoint(txn, self.fence, progress)
        return progress

    def check(self) -> None:
        """Raises Stopped if the run was told to stop: for long work without a transaction."""
        if self._stop.is_set():
            raise Stopped

    def sleep(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise Stopped

    def stop(self) -> None:
        self._stop.set()

    def is_stopped(self) -> bool:
        return self._stop.is_set()
