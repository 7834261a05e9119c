"""Flushes on Spark under blows, while clients change the rows: nothing is lost, doubled, or left lying about.

Walk: `__main__` calls `flush_kill` with a `Run`; `bulk_kills` strikes, `bulk_load` has the clients and what
they remember.
"""

from tenure.bulk import flush
from tenure.cluster.jobs.job_states import JobState
from tests.faults.bulk_fleet import WAIT_SECONDS, BulkFleet
from tests.faults.bulk_kills import Work, kills
from tests.faults.bulk_load import Load
from tests.faults.harness import Result, Run, wait_for

ROWS = 10_000
TASKS = 10
"""Of the first flush; those that come later have a file each, and as many ranges."""

QUICK_BLOWS = {"sqlite": ("python", "canceled unheard"), "postgres": ("driver at 90 %", "two drivers")}
"""For a short run: other ones on each engine, and what `spark_kills` does as well left out."""


def flush_kill(run: Run) -> Result:
    """A flush per blow; what clients remember is compared after each."""
    make = lambda fleet: Flushes(fleet, run.seed)  # noqa: E731
    return kills(run, "flush", ROWS // TASKS, make, quick=QUICK_BLOWS[run.engine])


class Flushes(Work):
    def __init__(self, fleet: BulkFleet, seed: int) -> None:
        super().__init__(fleet)
        self._load = Load(fleet.connect, ROWS, seed)
        self._load.start()
        self._load.remember()

    def start(self) -> int:
        self._load.remember()
        return self._start()

    def judge(self, job: int, state: JobState | None, result: Result) -> None:
        result.violations += self._load.wrong()
        self.fleet.judge(result)

    def end(self, result: Result) -> None:
        """A secondary index, and again the rows: nothing is in the way of further flushes."""
        result.violations += self._load.stop()
        for index in (2, 1):
            state = self.fleet.await_end(self._start(index))
            result.require(state is JobState.SUCCEEDED, f"a flush of index {index} ended as {state}")
        result.violations += self._load.wrong()
        result.counts |= {"rows": ROWS, "changes": self._load.changes}

    def _start(self, index: int = 1) -> int:
        """The job of a flush, once there is no other of that index."""
        jobs: list[int] = []
        assert wait_for(lambda: self._try_to_start(index, jobs), WAIT_SECONDS), "never free"
        is_twice = self._try_to_start(index, []) and self.fleet.is_open(jobs[0])
        assert not is_twice, "an index is merged twice at once"
        return jobs[0]

    def _try_to_start(self, index: int, jobs: list[int]) -> bool:
        lake, table = self.fleet.lake, self.fleet.table()
        job = self.fleet.node.store.transact(
            lambda txn: flush.start(txn, lake, table, index, rows=1 << 20, name="items")
        )
        if job is not None:
            jobs.append(job.id)
        return job is not None
