"""Workers with Spark killed and stopped while they run a job: nothing is lost, nothing counted twice.

    at 10 %   kill -9 of the worker: its session expires, and the next one takes the job up
    at 50 %   SIGSTOP for several ttls, then SIGCONT: meanwhile another one runs the job, so there are two
    at 90 %   kill -9 of the Java under the worker: the same worker tries again, with another Java

Walk: `__main__` calls `spark_kill` with a `Run`; `spark_worker` is what it starts.
"""

import os
import signal
import time

from tenure.cluster.jobs.job_states import JobState
from tests.faults.harness import Result, Run, wait_for
from tests.faults.job_fleet import JobFleet
from tests.faults.spark_worker import Order, create, total_of
from tests.pipeline.waiting import children_of

TTL_SECONDS, HEARTBEAT_SECONDS = 2.0, 0.4
ROUNDS = 20
WAIT_SECONDS = 120.0


class SparkFleet(JobFleet):
    def start_worker(self, name: str) -> None:
        times = ("--ttl", str(self.ttl_seconds), "--heartbeat", str(self._heartbeat_seconds))
        self._launch("tests.faults.spark_worker", name, "", times)

    def kill_java(self, name: str) -> None:
        for pid in children_of(self._processes[name].pid):
            os.kill(pid, signal.SIGKILL)


def spark_kill(run: Run) -> Result:
    """One job under three blows, for as long as there is time."""
    result = Result()
    jobs, until = 0, time.monotonic() + run.seconds
    while not jobs or time.monotonic() < until:
        with SparkFleet(run, f"spark_{jobs}", ttl=TTL_SECONDS, heartbeat=HEARTBEAT_SECONDS) as fleet:
            _strike(fleet, result)
        jobs += 1
    result.counts |= {"jobs": jobs}
    return result


def _strike(fleet: SparkFleet, result: Result) -> None:
    order = Order(ROUNDS, 0.2)
    fleet.start_worker("w0")
    fleet.await_ready()
    job = create(fleet.store, fleet.jobs, order).id

    def await_share(share: float) -> None:
        is_so = wait_for(
            lambda: fleet.jobs.progress(fleet.store.snapshot(), job).fraction >= share, WAIT_SECONDS
        )
        result.require(is_so, f"the job did not come to {share:.0%}")

    def runs() -> int:
        control = fleet.jobs.control(fleet.store.snapshot(), job)
        return 0 if control is None else control.run

    await_share(0.1)
    fleet.kill("w0")
    fleet.start_worker("w1")
    await_share(0.5)
    before = runs()
    fleet.signal("w1", signal.SIGSTOP)
    fleet.start_worker("w2")
    result.require(wait_for(lambda: runs() > before, WAIT_SECONDS), "nobody took the job of a stopped worker")
    fleet.signal("w1", signal.SIGCONT)
    await_share(0.9)
    for name in ("w1", "w2"):
        fleet.kill_java(name)
    ended = wait_for(lambda: _state(fleet, job) is JobState.SUCCEEDED, WAIT_SECONDS)
    result.require(ended, f"the job did not end well: {fleet.jobs.control(fleet.store.snapshot(), job)}")
    total = total_of(fleet.store.snapshot(), job)
    result.require(total == order.total(), f"the total is {total}, not {order.total()}")
    result.require(runs() >= 3, "the blows did not hit the job")
    result.counts["runs"] = runs()


def _state(fleet: SparkFleet, job: int) -> JobState | None:
    control = fleet.jobs.control(fleet.store.snapshot(), job)
    return None if control is None else control.state
