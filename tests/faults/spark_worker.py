"""A worker under test: a real `Node` with Spark, and a kind of job whose outcome can be checked.

    python -m tests.faults.spark_worker --store sqlite:PATH --log DIRECTORY --name w0.0 --ttl 2 ...

A job adds up numbers in rounds. Each round is done by tasks on Spark; what it comes to is added to a total in
the store, in the fenced transaction that saves the round as progress. A round that is lost or counted twice
shows in the total.

Walk: `spark_kills` and `tests/pipeline/test_workers.py` start it; it builds `tenure.node.Node`.
"""

import argparse
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

from tenure.base.env import SystemEnv
from tenure.base.settings import DEFINITIONS, LIVENESS_HEARTBEAT, LIVENESS_TTL, Settings
from tenure.cluster.jobs.job_table import Job, Jobs
from tenure.cluster.jobs.runs import JobKind, Run
from tenure.kv.keys import Keyspace
from tenure.kv.records import Record, pack, unpack
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import DEFAULT_TENANT, Store
from tenure.kv.transaction import Transaction
from tenure.node import Node, NodeOptions
from tenure.pipeline.lazy_spark import LazySpark
from tenure.pipeline.tasks import SPARK, Attempt, status
from tenure.worker import cache_directory
from tests.faults.log import Log

KIND = "add up"
TOTALS = 9_000
"""A table's id that nothing else has."""

TASKS = 4
"""Of one round."""


class Order(Record, frozen=True):
    rounds: int
    pace_seconds: float

    def total(self) -> int:
        return sum(range(self.rounds * TASKS))


class Part(NamedTuple):
    number: int
    pace_seconds: float


def add_up(part: Part, attempt: Attempt) -> int:
    time.sleep(part.pace_seconds)
    return part.number


def create(store: Store, jobs: Jobs, order: Order) -> Job:
    return store.transact(lambda txn: jobs.create(txn, kind=KIND, payload=pack(order), needs=[SPARK]))


def total_of(txn: Transaction | Snapshot, job: int) -> int:
    value = txn.get(_key(job))
    return 0 if value is None else int(value)


def _key(job: int) -> bytes:
    return Keyspace(DEFAULT_TENANT).key(TOTALS, (job,))


def kinds(spark: LazySpark, log: Log) -> dict[str, JobKind]:
    def run(run: Run) -> None:
        log.write("run", job=run.job.id, run=run.fence.run)
        order = unpack(run.job.payload, Order)
        for number in range(int(run.progress.data or b"0"), order.rounds):
            _round(run, order, number, spark)

    return {KIND: JobKind(run)}


def _round(run: Run, order: Order, number: int, spark: LazySpark) -> None:
    tasks = spark.tasks()
    parts = [Part(number * TASKS + each, order.pace_seconds) for each in range(TASKS)]
    label = f"j{run.job.id}-r{run.fence.run}"
    results = tasks.run(add_up, parts, on_done=lambda done, total: None, check=run.check, label=label)

    def add(txn: Transaction) -> None:
        txn.put(_key(run.job.id), str(total_of(txn, run.job.id) + sum(results)).encode())

    run.checkpoint(
        fraction=(number + 1) / order.rounds,
        status=status(tasks, (number + 1) * TASKS, order.rounds * TASKS),
        data=str(number + 1).encode(),
        also=add,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--name", required=True, help="process.incarnation, such as w0.3")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--ttl", type=float, required=True)
    parser.add_argument("--heartbeat", type=float, required=True)
    parser.add_argument("--master", default="local[2]")
    arguments = parser.parse_args()
    logging.basicConfig(stream=sys.stderr, format=f"%(asctime)s {arguments.name} %(name)s %(message)s")
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    log = Log(arguments.log / f"{arguments.name}.jsonl")
    env = SystemEnv()
    spark = LazySpark(
        env, master=arguments.master, cache_directory=cache_directory(os.environ), python_path=sys.path[:1]
    )
    settings = Settings(DEFINITIONS, {LIVENESS_TTL: arguments.ttl, LIVENESS_HEARTBEAT: arguments.heartbeat})
    node = Node(
        NodeOptions(arguments.store, settings=settings, kinds=kinds(spark, log), spark=spark.tasks), env
    )
    log.write("start", session=node.liveness.session().id)
    stopping.wait()
    node.stop()
    spark.close()
    log.write("end")


if __name__ == "__main__":
    # By its full name: executors cannot import what is called __main__.
    from tests.faults import spark_worker

    spark_worker.main()
