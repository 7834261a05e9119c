"""Bulk work under blows: a job for each, judged when it is over.

A scenario says what its work is: a statement that makes a job, and what must be there once that has ended.
All blows fall where Spark runs under the driver, and some where executors are processes of their own: of the
driver over SQLite, of a standalone cluster over PostgreSQL.

Walk: `flush_kills`, `import_kills`, `export_kills` and `fill_kills` call `kills` with their work;
`bulk_blows` are the blows, `bulk_fleet` has the processes.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Any

import psycopg

from tenure.cluster.jobs.job_states import JobState
from tests.faults.bulk_blows import BLOWS, Below, Blow, kill_executor, strike
from tests.faults.bulk_fleet import WAIT_SECONDS, BulkFleet, Missed
from tests.faults.harness import Result, Run, wait_for
from tests.pipeline.clusters import Standalone
from tests.pipeline.waiting import children_of

LOCAL_CLUSTER = "local-cluster[2,1,1024]"
TRIES_MAX = 5
"""Jobs for one blow: the last tasks of a job take fractions of a second, and the machine may be busy."""

CLUSTER_BLOWS = ("driver at 50 %", "two drivers", "cancel at 50 %")


class Work(ABC):
    """What is done again and again, with all that must hold."""

    def __init__(self, fleet: BulkFleet) -> None:
        self.fleet = fleet

    @abstractmethod
    def start(self) -> int:
        """Makes a job that no other is in the way of."""

    @abstractmethod
    def judge(self, job: int, state: JobState | None, result: Result) -> None:
        """Says what is wrong after a job, which is over."""

    @abstractmethod
    def end(self, result: Result) -> None:
        """Stops what goes on besides, and says what is wrong in the end."""


class Statements(Work):
    """Work that clients ask for."""

    kind: str
    """Of its jobs."""

    @abstractmethod
    def statement(self) -> str:
        """One that makes a job; another one each time."""

    def start(self, dsn: str = "") -> int:
        """The job of a statement, which a client waits for whatever becomes of it."""
        fleet, statement = self.fleet, self.statement()
        before = set(fleet.jobs_of(self.kind))
        client = psycopg.connect(dsn, autocommit=True) if dsn else fleet.connect()
        threading.Thread(target=_execute, args=(client, statement), daemon=True).start()
        assert wait_for(lambda: set(fleet.jobs_of(self.kind)) > before, WAIT_SECONDS), "there is no job"
        (job,) = set(fleet.jobs_of(self.kind)) - before
        return job


def _execute(client: "psycopg.Connection[tuple[Any, ...]]", statement: str) -> None:
    with suppress(psycopg.Error), closing(client):
        client.execute(statement.encode())


Make = Callable[[BulkFleet], Work]


def kills(run: Run, name: str, range_rows: int, make: Make, *, quick: Sequence[str]) -> Result:
    """A job per blow; in a short run only the quick ones."""
    result = Result()
    until, struck = time.monotonic() + run.seconds, 0
    with BulkFleet(run, name, range_rows=range_rows) as fleet, _working(fleet, make, result) as work:
        while not struck or time.monotonic() < until:
            for blow in quick if run.is_quick else BLOWS:
                _strike(work, blow, BLOWS[blow], result)
                struck += 1
            if isinstance(work, Statements) and not run.is_quick:
                _kill_node(work, result)
                struck += 1
    if not run.is_quick:
        with _cluster(run, name, range_rows) as (fleet, executors), _working(fleet, make, result) as work:
            _strike(work, f"executor, {fleet.master}", partial(kill_executor, executors), result)
            for blow in CLUSTER_BLOWS:
                _strike(work, f"{blow}, {fleet.master}", BLOWS[blow], result)
            struck += 1 + len(CLUSTER_BLOWS)
    result.counts["blows"] = struck
    return result


@contextmanager
def _working(fleet: BulkFleet, make: Make, result: Result) -> Iterator[Work]:
    worker = fleet.launch_worker()
    work = make(fleet)
    fleet.await_worker(worker)
    yield work
    work.end(result)
    fleet.judge(result)
    fleet.judge_publishers(result)
    fleet.judge_logs(result)


def _strike(work: Work, name: str, blow: Blow, result: Result) -> None:
    """A job may end before its blow falls: then it is judged like any other, and the next one is struck."""
    with result.naming(name):
        for _ in range(TRIES_MAX):
            job = work.start()
            try:
                state = strike(work.fleet, job, blow, result)
            except Missed:
                work.judge(job, work.fleet.await_end(job), result)
                continue
            return work.judge(job, state, result)
        raise AssertionError(f"{TRIES_MAX} jobs ended before the blow fell")


def _kill_node(work: Statements, result: Result) -> None:
    """The client goes with its node; the job does not."""
    with result.naming("node"):
        fleet, name = work.fleet, f"n{len(work.fleet.names())}"
        job = work.start(fleet.start_node(name))
        fleet.await_share(job, 0.5)
        fleet.kill(name)
        state = fleet.await_end(job)
        result.require(state is JobState.SUCCEEDED, f"job {job} ended as {state}: {fleet.error(job)}")
        work.judge(job, state, result)


@contextmanager
def _cluster(run: Run, name: str, range_rows: int) -> Iterator[tuple[BulkFleet, Below]]:
    """Workers whose executors are processes of their own, and how to find those."""
    if run.engine == "sqlite":
        with BulkFleet(run, name, range_rows=range_rows, master=LOCAL_CLUSTER) as fleet:
            yield fleet, lambda driver: [pid for java in fleet.java_of(driver) for pid in children_of(java)]
        return
    directory = run.files / f"{name}-standalone"
    directory.mkdir()
    with (
        Standalone(directory, drivers=2) as cluster,
        BulkFleet(run, name, range_rows=range_rows, master=cluster.master) as fleet,
    ):
        yield fleet, lambda driver: cluster.executors()
