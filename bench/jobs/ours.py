"""Our side: a worker is a whole node, as `tenure.node` builds it, with one kind of job.

Each claim and each end of a job is a durable commit; so is each heartbeat. An effect is a row that
the run writes through its fence.

Walk: `bench.jobs.crew` runs `serve` in a process; the benchmarks make an `Ours` to create and check.
"""

import logging
from multiprocessing.connection import Connection
from typing import Any

import psycopg

from bench.jobs.crew import Duty, Report, Work
from bench.store.places import TABLE
from tenure.base.env import SystemEnv
from tenure.base.settings import DEFINITIONS, LIVENESS_HEARTBEAT, LIVENESS_TTL, Settings
from tenure.cluster.jobs.job_table import Jobs
from tenure.cluster.jobs.runs import JobKind, Run
from tenure.cluster.sessions.session_records import Sessions
from tenure.kv.encoding import decode
from tenure.kv.keys import Keyspace
from tenure.kv.store import DEFAULT_TENANT, Store
from tenure.kv.transaction import Transaction
from tenure.node import Node, NodeOptions
from tenure.storage.engine import HEAD_BYTES
from tenure.storage.postgres.postgres_engine import PostgresEngine

KIND = "bench"
HOLD_SECONDS = 3_600.0


class Ours:
    name = "ours"

    def __init__(self, address: str) -> None:
        env = SystemEnv()
        self._address = address
        self._engine = PostgresEngine(address, env)
        self._store = Store(self._engine, env)
        self._jobs = Jobs(self._store.keyspace, Sessions(self._store.keyspace), self._store.clock)

    def create(self, count: int) -> None:
        def create(txn: Transaction) -> None:
            for _ in range(count):
                self._jobs.create(txn, kind=KIND)

        self._store.transact(create)

    def tidy(self) -> None:
        with psycopg.connect(self._address, autocommit=True) as connection:
            connection.execute("VACUUM (ANALYZE)")

    def unfinished(self) -> int:
        return sum(1 for _ in self._jobs.open(self._store.snapshot()))

    def effects(self) -> list[int]:
        """Counted in the history: an effect that overwrote another would be seen."""
        revisions = self._store.history(self._store.keyspace.index_span(TABLE), since_at=0).revisions
        ids = [decode(revision.key[HEAD_BYTES:])[0] for revision in revisions]
        return [id for id in ids if isinstance(id, int)]

    def close(self) -> None:
        self._store.close()
        self._engine.close()


def serve(duty: Duty, pipe: "Connection[Any, Any]", counter: Any) -> None:
    settings = (
        Settings(DEFINITIONS)
        .with_value(LIVENESS_TTL, duty.ttl_seconds)
        .with_value(LIVENESS_HEARTBEAT, duty.heartbeat_seconds)
    )
    logging.disable(logging.CRITICAL)  # as the peer: a lost claim is expected here, and counted
    report = Report(pipe, counter)
    kinds = {KIND: JobKind(lambda run: _work(run, duty, report))}
    node = Node(NodeOptions(duty.address, settings=settings, kinds=kinds), SystemEnv())
    report.ready()
    report.await_stop()
    node.stop()


def _work(run: Run, duty: Duty, report: Report) -> None:
    if duty.work is Work.COUNT:
        report.count()
        return
    report.claimed(run.job.id)
    if duty.work is Work.EFFECT:
        run.sleep(duty.ttl_seconds / 2)
        run.transact(lambda txn: _effect(txn, run))
    elif run.fence.run == 1:
        run.sleep(HOLD_SECONDS)


def _effect(txn: Transaction, run: Run) -> None:
    txn.put(Keyspace(DEFAULT_TENANT).key(TABLE, (run.job.id, run.fence.run)), b"")
