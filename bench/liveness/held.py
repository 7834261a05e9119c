"""What it costs to hold things under a session, and to ask whether a session is dead.

    10,000 jobs claimed under one session      nothing is written but heartbeats
    `Deaths.is_dead` of a session known dead   at most 2 microseconds

The first is counted in the store's history: every revision of the tenant in a few seconds, while one
node holds the claims and another one, which would run the jobs, waits for the first to die. Nothing
of this has a peer: the bars are absolute.

Walk: `bench.__main__` -> `run`.
"""

import time
from timeit import timeit

from bench.ratio import Bar, Ratio, compare
from bench.store.places import sqlite_store, store_path
from bench.store.rounds import note
from tenure.base.env import SystemEnv
from tenure.base.settings import DEFINITIONS, LIVENESS_HEARTBEAT, LIVENESS_TTL, Settings
from tenure.cluster.jobs.runs import JobKind, Run
from tenure.cluster.sessions.deaths import Deaths
from tenure.cluster.sessions.session_records import SessionId, Sessions
from tenure.kv.keys import EXPIRATIONS
from tenure.kv.transaction import Transaction
from tenure.node import Node, NodeOptions
from tenure.storage.addresses import SQLITE_PREFIX

KIND = "bench"
JOBS, JOBS_PER_CLAIM = 10_000, 1_000
SETTINGS = Settings(DEFINITIONS).with_value(LIVENESS_TTL, 2.0).with_value(LIVENESS_HEARTBEAT, 0.25)
"""Heartbeats that are frequent enough to be counted, and several expiries that did not come about."""
IS_DEAD_MICROS = 2.0


def run(quick: bool) -> list[Ratio]:
    jobs, seconds = (100, 1.0) if quick else (JOBS, 10.0)
    return [_held(jobs, seconds), _is_dead(1_000 if quick else 1_000_000)]


def _held(jobs: int, seconds: float) -> Ratio:
    with store_path() as path:
        address, env = SQLITE_PREFIX + path, SystemEnv()
        holder = Node(NodeOptions(address, settings=SETTINGS), env)  # it runs nothing: its claims just stand
        try:
            _claim(holder, jobs)
            waiting = Node(NodeOptions(address, settings=SETTINGS, kinds={KIND: JobKind(_must_not_run)}), env)
            try:
                beats, others = _count_writes(holder, seconds)
            finally:
                waiting.stop()
            _verify(holder, jobs)
        finally:
            holder.stop()
    name = "liveness.held.writes"
    note(f"{name}: {jobs:,} claims, 2 nodes: {beats:.1f} heartbeats/s, {others:.1f} other writes/s")
    return compare(name, ours=others, peer=beats, unit="writes/s", bar=Bar.AT_MOST, limit=0.0)


def _claim(node: Node, jobs: int) -> None:
    session = node.liveness.session().id

    def claim(txn: Transaction) -> None:
        for _ in range(min(jobs, JOBS_PER_CLAIM)):
            job = node.jobs.create(txn, kind=KIND)
            assert node.jobs.claim(txn, job.id, session) is not None

    for _ in range(max(1, jobs // JOBS_PER_CLAIM)):
        node.store.transact(claim)


def _count_writes(node: Node, seconds: float) -> tuple[float, float]:
    """Revisions per second, from any node: of expirations, and of all else."""
    time.sleep(1.0)  # the other node has read what is open
    store = node.store
    began_at, began = store.snapshot().at, time.monotonic()
    time.sleep(seconds)
    revisions = store.history(store.keyspace.all(), since_at=began_at).revisions
    passed = time.monotonic() - began
    expirations = store.keyspace.index_span(EXPIRATIONS)
    beats = sum(1 for each in revisions if expirations.lo <= each.key < expirations.hi)
    assert beats > 0, "no heartbeat was seen"
    return beats / passed, (len(revisions) - beats) / passed


def _verify(node: Node, jobs: int) -> None:
    session = node.liveness.session().id
    held = sum(1 for control in node.jobs.open(node.store.snapshot()) if control.claim == session)
    assert held == jobs, f"of {jobs} claims {held} are held"


def _must_not_run(run: Run) -> None:
    raise AssertionError(f"job {run.job.id} was taken from a session that lives")


def _is_dead(times: int) -> Ratio:
    with store_path() as path, sqlite_store(path) as store:
        deaths = Deaths(store, Sessions(store.keyspace))
        session = SessionId(1, store.clock.now())
        assert not deaths.is_dead(session) and not deaths.is_alive(session)
        assert deaths.is_dead(session), "a session that was found absent is not remembered"
        same = SessionId(*session)  # as it comes from a record: equal, but another object
        micros = min(timeit(lambda: deaths.is_dead(same), number=times) / times * 1e6 for _ in range(5))
        deaths.close()
    name = "liveness.held.is_dead"
    return compare(name, ours=micros, peer=IS_DEAD_MICROS, unit="us", bar=Bar.AT_MOST, limit=1.0)
