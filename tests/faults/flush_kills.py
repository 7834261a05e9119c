"""Flushes on Spark under blows, while clients change the rows: nothing is lost, doubled, or left lying about.

Walk: `__main__` calls `flush_kill` with a `Run`; `bulk_blows` are the blows, `bulk_fleet` has the processes,
`bulk_load` the clients and what they remember.
"""

import time

from tenure.bulk import flush
from tenure.cluster.job_states import State
from tests.faults.bulk_blows import BLOWS, strike
from tests.faults.bulk_fleet import WAIT_SECONDS, BulkFleet
from tests.faults.bulk_load import Load
from tests.faults.harness import Result, Run, wait_for

QUICK_ROWS, ROWS = 10_000, 200_000
TASKS = 10
"""Of the first flush; those that come later have a file each, and as many ranges."""


QUICK_BLOWS = {"sqlite": ("python", "canceled unheard"), "postgres": ("driver at 90 %", "two drivers")}
"""For a short run: other ones on each engine, and what `spark_kills` does as well left out."""


def flush_kill(run: Run) -> Result:
    """A flush per blow; what clients remember is compared after each."""
    result = Result()
    rows = QUICK_ROWS if run.is_quick else ROWS
    blows = QUICK_BLOWS[run.engine] if run.is_quick else tuple(BLOWS)
    until = time.monotonic() + run.seconds
    with BulkFleet(run, "flush", range_rows=rows // TASKS) as fleet:
        worker = fleet.launch_worker()
        load = Load(fleet.connect, rows, run.seed)
        load.start()
        load.remember()
        fleet.await_worker(worker)
        struck = 0
        while not struck or time.monotonic() < until:
            for name in blows:
                _strike(fleet, load, name, result)
                struck += 1
        result.violations += load.stop()
        _flush_entries(fleet, result)
        result.violations += load.wrong()
        fleet.judge_publishers(result)
        fleet.judge_logs(result)
    result.counts |= {"rows": rows, "blows": struck, "changes": load.changes}
    return result


def _strike(fleet: BulkFleet, load: Load, name: str, result: Result) -> None:
    load.remember()
    with result.naming(name):
        strike(fleet, _start(fleet), BLOWS[name], result)
        result.violations += load.wrong()
        fleet.judge(result)


def _flush_entries(fleet: BulkFleet, result: Result) -> None:
    """A secondary index, and again the rows: nothing is in the way of further flushes."""
    for index in (2, 1):
        state = fleet.await_end(_start(fleet, index))
        result.require(state is State.SUCCEEDED, f"a flush of index {index} ended as {state}")
    fleet.judge(result)


def _start(fleet: BulkFleet, index: int = 1) -> int:
    """The job of a flush, once there is no other of that index."""
    jobs: list[int] = []
    assert wait_for(lambda: _try_to_start(fleet, index, jobs), WAIT_SECONDS), "never free"
    is_twice = _try_to_start(fleet, index, []) and fleet.is_open(jobs[0])
    assert not is_twice, "an index is merged twice at once"
    return jobs[0]


def _try_to_start(fleet: BulkFleet, index: int, jobs: list[int]) -> bool:
    table = fleet.table()
    job = fleet.node.store.transact(
        lambda txn: flush.start(txn, fleet.lake, table, index, rows=1 << 20, name="items")
    )
    if job is not None:
        jobs.append(job.id)
    return job is not None
