"""Blows that fall on bulk work while Spark does it.

    driver 10/50/90   kill -9 of the worker that runs the job: another takes it up and starts over
    java              kill -9 of the Java under it: the same worker tries again, with another Java
    python            kill -9 of the processes that run tasks: Spark runs those again
    executor          the same of an executor, where those are processes of their own
    two drivers       SIGSTOP for longer than the ttl: another worker does the job; then SIGCONT
    cancel 10/50/90   CANCEL JOB, which its driver hears of
    canceled unheard  SIGSTOP, and the job is canceled: its tasks go on writing files, which nobody wants

All the while tasks fail at random once they have written their files.

Walk: `flush_kills`, `import_kills`, `export_kills` and `fill_kills` call `strike`; `bulk_fleet` has the
processes.
"""

import os
import signal
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from typing import Any

import psycopg

from tenure.cluster.job_states import State
from tests.faults.bulk_fleet import WAIT_SECONDS, BulkFleet
from tests.faults.harness import Result, Run, wait_for
from tests.pipeline.clusters import Standalone
from tests.pipeline.waiting import children_of

Blow = Callable[[BulkFleet, int, Result], State]
"""Strikes a job that runs, and says how it must end."""

CHILDREN_SECONDS = 5.0


def strike(fleet: BulkFleet, job: int, blow: Blow, result: Result) -> State | None:
    """Lets a blow fall on a job; how that ended."""
    expected = blow(fleet, job, result)
    state = fleet.await_end(job)
    result.require(state is expected, f"job {job} ended as {state}, not as {expected}: {fleet.error(job)}")
    return state


def start_by_client(fleet: BulkFleet, statement: str, kind: str, *, dsn: str = "") -> int:
    """The job of a statement, which a client waits for whatever becomes of it."""
    before = set(fleet.jobs_of(kind))
    client = psycopg.connect(dsn, autocommit=True) if dsn else fleet.connect()
    threading.Thread(target=_execute, args=(client, statement), daemon=True).start()
    assert wait_for(lambda: set(fleet.jobs_of(kind)) > before, WAIT_SECONDS), "there is no job"
    (job,) = set(fleet.jobs_of(kind)) - before
    return job


def _execute(client: "psycopg.Connection[tuple[Any, ...]]", statement: str) -> None:
    with suppress(psycopg.Error), closing(client):
        client.execute(statement.encode())


def start_by_node(fleet: BulkFleet, statement: str, kind: str, share: float) -> int:
    """The job of a statement, whose node is killed, and its client with it, when so much is done."""
    name = f"n{len(fleet.names())}"
    job = start_by_client(fleet, statement, kind, dsn=fleet.start_node(name))
    fleet.await_share(job, share)
    fleet.kill(name)
    return job


def kill_driver(share: float, fleet: BulkFleet, job: int, result: Result) -> State:
    fleet.kill(fleet.await_share(job, share))
    fleet.start_worker()
    fleet.await_end(job)
    result.require(fleet.runs(job) > 1, "the driver was done before it was killed")
    return State.SUCCEEDED


def kill_java(fleet: BulkFleet, job: int, result: Result) -> State:
    _kill_all(fleet.java_of(fleet.await_share(job, 0.5)))
    fleet.await_end(job)
    result.require(fleet.runs(job) > 1, "Java was not needed any more when it was killed")
    return State.SUCCEEDED


def kill_pythons(fleet: BulkFleet, job: int, result: Result) -> State:
    driver = fleet.await_share(job, 0.3)
    killed = wait_for(lambda: bool(_kill_all(fleet.pythons_of(driver))), CHILDREN_SECONDS)
    result.require(killed, "there were no tasks to kill")
    return _in_one_run(fleet, job, result)


def kill_executor(executors: Callable[[str], list[int]], fleet: BulkFleet, job: int, result: Result) -> State:
    driver = fleet.await_share(job, 0.3)
    killed = wait_for(lambda: bool(_kill_all(executors(driver)[:1])), CHILDREN_SECONDS)
    result.require(killed, "there was no executor to kill")
    return _in_one_run(fleet, job, result)


def _in_one_run(fleet: BulkFleet, job: int, result: Result) -> State:
    state = fleet.await_end(job)
    result.require(fleet.runs(job) == 1, f"the job needed {fleet.runs(job)} runs; it ended as {state}")
    return State.SUCCEEDED


def stop_driver(fleet: BulkFleet, job: int, result: Result) -> State:
    """Stopped with most of its tasks done: what it has to publish comes after another's."""
    driver = fleet.await_share(job, 0.9)
    run = fleet.runs(job)
    fleet.freeze(driver)
    fleet.start_worker()
    taken = wait_for(lambda: fleet.runs(job) > run or not fleet.is_open(job), WAIT_SECONDS)
    result.require(taken, "nobody took the job of a stopped worker")
    fleet.await_end(job)
    fleet.signal(driver, signal.SIGCONT)
    return State.SUCCEEDED


def cancel(share: float, fleet: BulkFleet, job: int, result: Result) -> State:
    fleet.await_share(job, share)
    fleet.execute(f"CANCEL JOB {job}")
    return State.CANCELED


def cancel_unheard(fleet: BulkFleet, job: int, result: Result) -> State:
    """Canceled while its driver cannot hear of it: its tasks write files after the job has ended."""
    driver = fleet.await_share(job, 0.3)
    fleet.freeze(driver)
    fleet.execute(f"CANCEL JOB {job}")
    fleet.start_worker()
    fleet.await_end(job)
    fleet.judge(Result())  # deletes what is there by now; more is being written
    fleet.signal(driver, signal.SIGCONT)
    return State.CANCELED


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

LOCAL_CLUSTER = "local-cluster[2,1,1024]"
CLUSTER_BLOWS = ("driver at 50 %", "two drivers", "cancel at 50 %")

Strike = Callable[[str, Blow, Result], None]


def on_clusters(
    run: Run, name: str, range_rows: int, make: Callable[[BulkFleet], Strike], result: Result
) -> None:
    """The same where executors are processes of their own: of the driver, and of a standalone cluster."""
    with BulkFleet(run, name, range_rows=range_rows, master=LOCAL_CLUSTER) as fleet:
        _on_cluster(fleet, make, partial(_executors_of, fleet), result)
    directory = run.files / f"{name}-standalone"
    directory.mkdir()
    with (
        Standalone(directory) as cluster,
        BulkFleet(run, name, range_rows=range_rows, master=cluster.master) as fleet,
    ):
        _on_cluster(fleet, make, lambda driver: cluster.executors(), result)


def _on_cluster(
    fleet: BulkFleet,
    make: Callable[[BulkFleet], Strike],
    executors: Callable[[str], list[int]],
    result: Result,
) -> None:
    fleet.start_worker()
    strike_by = make(fleet)
    strike_by("executor", partial(kill_executor, executors), result)
    for name in CLUSTER_BLOWS:
        strike_by(f"{name}, {fleet.master}", BLOWS[name], result)
    fleet.judge_logs(result)


def _executors_of(fleet: BulkFleet, driver: str) -> list[int]:
    return [pid for java in fleet.java_of(driver) for pid in children_of(java)]
