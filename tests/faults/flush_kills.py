"""Flushes on Spark under blows, while clients change the rows: nothing is lost, doubled, or left lying about.

    driver 10/50/90   kill -9 of the worker that runs the job: another takes it up and starts over
    java              kill -9 of the Java under it: the same worker tries again, with another Java
    python            kill -9 of the processes that run tasks: Spark runs those again
    two drivers       SIGSTOP for longer than the ttl: another worker does the job; then SIGCONT
    cancel            SIGSTOP, and the job is canceled: its tasks go on writing files, which nobody wants

All the while tasks fail at random once they have written their files.

Walk: `__main__` calls `flush_kill` with a `Run`; `flush_fleet` has the processes,
`flush_load` the clients and what they remember.
"""

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial

from tenure.cluster.job_states import State
from tests.faults.flush_fleet import WAIT_SECONDS, FlushFleet
from tests.faults.flush_load import Load
from tests.faults.harness import Result, Run, wait_for

QUICK_ROWS, ROWS = 10_000, 200_000
TASKS = 10
"""Of the first flush; those that come later have a file each, and as many ranges."""

LONG_SECONDS = 20.0

Blow = Callable[[FlushFleet, int, Result], State]
"""Strikes a job that runs, and says how it must end."""


def flush_kill(run: Run) -> Result:
    """A flush per blow; what clients remember is compared after each."""
    result = Result()
    is_quick = run.seconds < LONG_SECONDS
    rows = QUICK_ROWS if is_quick else ROWS
    blows = _some(run) if is_quick else BLOWS
    until = time.monotonic() + run.seconds
    with FlushFleet(run, "flush", range_rows=rows // TASKS) as fleet:
        fleet.launch("w0")
        load = Load(fleet.connect, rows, run.seed)
        load.start()
        load.remember()
        fleet.await_ready("w0")
        struck = 0
        while not struck or time.monotonic() < until:
            for name, blow in blows:
                _strike(fleet, load, name, blow, result)
                struck += 1
        result.violations += load.stop()
        _flush_entries(fleet, result)
        result.violations += load.wrong()
        fleet.judge_publishers(result)
        for name in fleet.names():
            text = fleet.log(name).read_text()
            result.require("AssertionError" not in text, f"{name}'s log: {text[-2000:]}")
    result.counts |= {"rows": rows, "blows": struck, "changes": load.changes}
    return result


def _some(run: Run) -> "Sequence[tuple[str, Blow]]":
    """For a short run: other ones on each engine, and what `spark_kills` does as well left out."""
    return [BLOWS[number] for number in ((4, 6) if run.engine == "sqlite" else (2, 5))]


def _strike(fleet: FlushFleet, load: Load, name: str, blow: Blow, result: Result) -> None:
    load.remember()
    job = fleet.start_flush()
    expected = blow(fleet, job, result)
    state = fleet.await_end(job)
    result.require(state is expected, f"{name}: job {job} ended as {state}, not as {expected}")
    result.violations += [f"{name}: {wrong}" for wrong in load.wrong()]
    before = len(result.violations)
    fleet.judge(result)
    result.violations[before:] = [f"{name}: {wrong}" for wrong in result.violations[before:]]


def _flush_entries(fleet: FlushFleet, result: Result) -> None:
    """A secondary index, and again the rows: nothing is in the way of further flushes."""
    for index in (2, 1):
        state = fleet.await_end(fleet.start_flush(index))
        result.require(state is State.SUCCEEDED, f"a flush of index {index} ended as {state}")
    fleet.judge(result)


# ── blows ──────────────────────────────────────────────────────────────────────────────────────


def _kill_driver(share: float, fleet: FlushFleet, job: int, result: Result) -> State:
    fleet.kill(fleet.await_share(job, share))
    _launch_next(fleet)
    fleet.await_end(job)
    result.require(fleet.runs(job) > 1, "the driver was done before it was killed")
    return State.SUCCEEDED


def _kill_java(fleet: FlushFleet, job: int, result: Result) -> State:
    _kill_all(fleet.java_of(fleet.await_share(job, 0.5)))
    fleet.await_end(job)
    result.require(fleet.runs(job) > 1, "Java was not needed any more when it was killed")
    return State.SUCCEEDED


def _kill_pythons(fleet: FlushFleet, job: int, result: Result) -> State:
    driver = fleet.await_share(job, 0.3)
    killed = wait_for(lambda: bool(_kill_all(fleet.pythons_of(driver))), 5.0)
    result.require(killed, "there were no tasks to kill")
    state = fleet.await_end(job)
    result.require(fleet.runs(job) == 1, f"the job needed {fleet.runs(job)} runs; it ended as {state}")
    return State.SUCCEEDED


def _stop_driver(fleet: FlushFleet, job: int, result: Result) -> State:
    """Stopped with most of its tasks done: what it has to publish comes after another's."""
    driver = fleet.await_share(job, 0.9)
    run = fleet.runs(job)
    fleet.freeze(driver)
    _launch_next(fleet)
    taken = wait_for(lambda: fleet.runs(job) > run or not fleet.is_open(job), WAIT_SECONDS)
    result.require(taken, "nobody took the job of a stopped worker")
    fleet.await_end(job)
    fleet.signal(driver, signal.SIGCONT)
    return State.SUCCEEDED


def _cancel(fleet: FlushFleet, job: int, result: Result) -> State:
    """Canceled while its driver cannot hear of it: its tasks write files after the job has ended."""
    driver = fleet.await_share(job, 0.3)
    fleet.freeze(driver)
    with closing(fleet.connect()) as client:
        client.execute(f"CANCEL JOB {job}".encode())
    _launch_next(fleet)
    fleet.await_end(job)
    fleet.judge(Result())  # deletes what is there by now; more is being written
    fleet.signal(driver, signal.SIGCONT)
    return State.CANCELED


def _launch_next(fleet: FlushFleet) -> None:
    """Another worker, waited for."""
    name = f"w{len(fleet.names())}"
    fleet.launch(name)
    fleet.await_ready(name)


def _kill_all(pids: list[int]) -> list[int]:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return pids


BLOWS: tuple[tuple[str, Blow], ...] = (
    ("driver at 10 %", partial(_kill_driver, 0.1)),
    ("driver at 50 %", partial(_kill_driver, 0.5)),
    ("driver at 90 %", partial(_kill_driver, 0.9)),
    ("java", _kill_java),
    ("python", _kill_pythons),
    ("two drivers", _stop_driver),
    ("cancel", _cancel),
)
