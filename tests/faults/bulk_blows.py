"""Blows that fall on bulk work while Spark does it.

    driver 10/50/90   kill -9 of the worker that runs the job: another takes it up and starts over
    java              kill -9 of the Java under it: the same worker tries again, with another Java
    python            kill -9 of the processes that run tasks: Spark runs those again
    executor          the same of an executor, where those are processes of their own
    node              kill -9 of the node that a client gave the statement to: the worker goes on
    two drivers       SIGSTOP for longer than the ttl: another worker does the job; then SIGCONT
    cancel 10/50/90   CANCEL JOB, which its driver hears of
    canceled unheard  SIGSTOP, and the job is canceled: its tasks go on writing files, which nobody wants

All the while tasks fail at random once they have written their files.

Walk: `bulk_kills` lets them fall, one job for each; `bulk_fleet` has the processes.
"""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from tenure.cluster.jobs.job_states import JobState
from tests.faults.bulk_fleet import WAIT_SECONDS, BulkFleet, Missed
from tests.faults.harness import Result, wait_for

Blow = Callable[[BulkFleet, int, Result], JobState]
"""Strikes a job that runs, and says how it must end."""

Below = Callable[[str], list[int]]
"""The processes that do what a driver tells them."""

CHILDREN_SECONDS = 5.0


def strike(fleet: BulkFleet, job: int, blow: Blow, result: Result) -> JobState | None:
    """Lets a blow fall on a job; how that ended."""
    expected = blow(fleet, job, result)
    state = fleet.await_end(job)
    result.require(state is expected, f"job {job} ended as {state}, not as {expected}: {fleet.error(job)}")
    return state


def kill_driver(share: float, fleet: BulkFleet, job: int, result: Result) -> JobState:
    driver = fleet.await_share(job, share)
    run = fleet.runs(job)
    fleet.kill(driver)
    fleet.start_worker()
    fleet.await_end(job)
    _require_another_run(fleet, job, run)
    return JobState.SUCCEEDED


def kill_java(fleet: BulkFleet, job: int, result: Result) -> JobState:
    driver = fleet.await_share(job, 0.5)
    run = fleet.runs(job)
    _kill_all(fleet.java_of(driver))
    fleet.await_end(job)
    _require_another_run(fleet, job, run)
    return JobState.SUCCEEDED


def kill_pythons(fleet: BulkFleet, job: int, result: Result) -> JobState:
    return _kill_below(fleet.pythons_of, fleet, job, result)


def kill_executor(executors: Below, fleet: BulkFleet, job: int, result: Result) -> JobState:
    return _kill_below(lambda driver: executors(driver)[:1], fleet, job, result)


def _kill_below(below: Below, fleet: BulkFleet, job: int, result: Result) -> JobState:
    """Kills what runs tasks for a driver, which must notice nothing: it stays the same run."""
    driver = fleet.await_share(job, 0.3)
    run = fleet.runs(job)
    if not wait_for(lambda: bool(_kill_all(below(driver))), CHILDREN_SECONDS):
        raise Missed(f"job {job} had no process that ran tasks")
    state = fleet.await_end(job)
    more = fleet.runs(job) - run
    result.require(not more, f"the job needed {more} more runs; it ended as {state}")
    return JobState.SUCCEEDED


def stop_driver(fleet: BulkFleet, job: int, result: Result) -> JobState:
    """Stopped with most of its tasks done: what it has to publish comes after another's."""
    driver = fleet.await_share(job, 0.9)
    run = fleet.runs(job)
    fleet.freeze(driver)
    fleet.start_worker()
    taken = wait_for(lambda: fleet.runs(job) > run or not fleet.is_open(job), WAIT_SECONDS)
    result.require(taken, "nobody took the job of a stopped worker")
    fleet.await_end(job)
    fleet.signal(driver, signal.SIGCONT)
    _require_another_run(fleet, job, run)
    return JobState.SUCCEEDED


def _require_another_run(fleet: BulkFleet, job: int, run: int) -> None:
    """The blow fell too late if the run that it was for has ended the job."""
    if fleet.runs(job) == run and fleet.state(job) is JobState.SUCCEEDED:
        raise Missed(f"job {job} was done before the blow fell")


def cancel(share: float, fleet: BulkFleet, job: int, result: Result) -> JobState:
    fleet.await_share(job, share)
    fleet.execute(f"CANCEL JOB {job}")
    return JobState.CANCELED


def cancel_unheard(fleet: BulkFleet, job: int, result: Result) -> JobState:
    """Canceled while its driver cannot hear of it: its tasks write files after the job has ended."""
    driver = fleet.await_share(job, 0.3)
    fleet.freeze(driver)
    fleet.execute(f"CANCEL JOB {job}")
    fleet.start_worker()
    fleet.await_end(job)
    fleet.judge(Result())  # deletes what is there by now; more is being written
    fleet.signal(driver, signal.SIGCONT)
    return JobState.CANCELED


def _kill_all(pids: list[int]) -> list[int]:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return pids


BLOWS: dict[str, Blow] = {
    "driver at 10 %": partial(kill_driver, 0.1),
    "driver at 50 %": partial(kill_driver, 0.5),
    "driver at 90 %": partial(kill_driver, 0.9),
    "java": kill_java,
    "python": kill_pythons,
    "two drivers": stop_driver,
    "cancel at 10 %": partial(cancel, 0.1),
    "cancel at 50 %": partial(cancel, 0.5),
    "cancel at 90 %": partial(cancel, 0.9),
    "canceled unheard": cancel_unheard,
}
