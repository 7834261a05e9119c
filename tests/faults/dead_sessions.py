"""Thousands of dead sessions, and memories of the dead that hold a few of them.

A forgotten death must cost a read and nothing else: whoever waits for one, or for the jobs that a
dead session claims, must not depend on finding it in memory.

Walk: `__main__` and `test_jobs_smoke` call these with a `Run`; `job_fleet` does the rest.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Thread
from unittest.mock import patch

from tenure.base.env import SystemEnv
from tenure.base.loops import Loop
from tenure.base.settings import DEFINITIONS, LIVENESS_HEARTBEAT, LIVENESS_TTL, Settings
from tenure.cluster.sessions import deaths
from tenure.cluster.sessions.liveness import Liveness
from tenure.cluster.sessions.session_records import SessionId, Sessions
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tests.faults.harness import Result, Run, merged, wait_for
from tests.faults.job_fleet import (
    ADOPTION_SLACK_SECONDS,
    EFFECT,
    HEARTBEAT_SECONDS,
    LOAD,
    TTL_SECONDS,
    JobFleet,
)
from tests.faults.job_history import NOTES, read_history

DEAD = 5_200
DEAD_PER_COMMIT = 25
DEATHS_MAX = 64
DEAD_TTL_SECONDS = 0.001
INSTANCES = range(10_000, 10_000 + DEAD_PER_COMMIT)
"""Instance ids of the dead, far from those of nodes."""

HEARTBEATS = 8
"""How many of them an observing transaction outlasts."""

_log = logging.getLogger(__name__)


def dead_sessions(run: Run) -> Result:
    return merged(outlive_many(run), observe_for_long(run))


def outlive_many(run: Run) -> Result:
    """More deaths than memories hold: waits end and jobs are adopted all the same."""
    result = Result()
    with patch.object(deaths, "DEATHS_MAX", DEATHS_MAX), JobFleet(run, "dead") as fleet:
        _waits(fleet, result)
        fleet.settle(result)
        fleet.judge(result)
        result.require("p0.0" in {row.process for row in fleet.history.effects}, "p0 ran nothing")
        fleet.require_adoption(result, fleet.halts)
        result.require("adopted s" in result.counts, "the killed node held no job")
    return result


def _waits(fleet: JobFleet, result: Result) -> None:
    """Deaths go by while a node dies that others wait for; then more than memories can hold."""
    for name in ("p0", "p1"):
        fleet.start_node(name, *LOAD, "--deaths-max", str(DEATHS_MAX))
    fleet.await_ready()
    wait_for(lambda: bool(fleet.count(EFFECT, {}, "p0")), 20)
    with closing(deaths.Deaths(fleet.store, fleet.sessions)) as memory:
        (session,) = fleet.sessions_of("p0.0")
        dead = list(_bury_many(fleet, DEAD // 2))
        fleet.kill_node("p0")
        waited: list[float] = []
        waiter = Thread(target=lambda: waited.append(_await_death(memory, session)))
        waiter.start()
        dead += _bury_many(fleet, DEAD - DEAD // 2)
        waiter.join()
        while memory.is_dead(dead[-1]) is False:
            memory.follow()
        result.require(not memory.is_dead(dead[0]), "the first death is still remembered")
        again = [_await_death(memory, each) for each in (dead[0], dead[DEAD // 2], dead[-1], session)]
        # Started after all these deaths: its memory never held a single one of them.
        fleet.start_node("p0", *LOAD, "--deaths-max", str(DEATHS_MAX))
        fleet.await_ready()
        fleet.require_effects(result, ("p0", "p1"), f"after {DEAD} deaths")
    bound = fleet.ttl_seconds + ADOPTION_SLACK_SECONDS
    result.require(waited[0] < bound, f"waiting for a death took {waited[0]:.2f} s")
    result.require(max(again) < 1.0, f"waiting for forgotten deaths took {again} s")
    result.counts |= {"dead": len(dead), "wait s": round(waited[0], 2)}
    result.counts["forgotten ms"] = round(1000 * max(again), 1)


def _await_death(memory: deaths.Deaths, session: SessionId) -> float:
    began = time.monotonic()
    is_gone = memory.await_death(session, timeout=30)
    return time.monotonic() - began if is_gone else float("inf")


def _bury_many(fleet: JobFleet, count: int) -> Iterator[SessionId]:
    """Makes sessions that expire at once, and deletes them as expired, many in a commit."""
    for _ in range(count // DEAD_PER_COMMIT):
        made = fleet.store.transact(lambda txn: _make_many(fleet, txn))
        epoch_at = made.commit_at
        assert epoch_at is not None, "sessions were made without a commit"
        time.sleep(2 * DEAD_TTL_SECONDS)
        dead = [SessionId(instance, epoch_at) for instance in INSTANCES]
        fleet.store.transact(lambda txn, dead=dead: _delete_many(fleet, txn, dead))  # type: ignore[misc]
        yield from dead


def _make_many(fleet: JobFleet, txn: Transaction) -> Transaction:
    for instance in INSTANCES:
        given = fleet.sessions.create(
            txn, ttl_seconds=DEAD_TTL_SECONDS, lanes=(), address="", started_at=1, version=1, wanted=instance
        )
        assert given == instance, "an instance id of the dead is taken"
    return txn


def _delete_many(fleet: JobFleet, txn: Transaction, dead: list[SessionId]) -> None:
    for session in dead:
        fleet.sessions.delete_expired(txn, session)


def observe_for_long(run: Run) -> Result:
    """A transaction that observes its session commits, however many heartbeats went by."""
    result = Result()
    with JobFleet(run, "observe") as fleet, _living(fleet.store) as liveness:
        session = liveness.session()
        txn = fleet.store.begin()
        session.observe(txn)
        txn.put(fleet.store.keyspace.key(NOTES, (1,)), b"observed")
        began_at = txn.read_at
        time.sleep(HEARTBEATS * HEARTBEAT_SECONDS)
        committed_at = txn.commit()
        rows = [row for row in read_history(fleet.store).sessions if row.part == "expiration"]
        beats = sum(row.session == session.id and began_at < row.at < committed_at for row in rows)
    result.counts["heartbeats observed over"] = beats
    result.require(beats >= HEARTBEATS // 2, f"only {beats} heartbeats while the transaction was open")
    return result


@contextmanager
def _living(store: Store) -> Iterator[Liveness]:
    """A session of this process, kept alive by a loop."""
    settings = Settings(DEFINITIONS, {LIVENESS_TTL: TTL_SECONDS, LIVENESS_HEARTBEAT: HEARTBEAT_SECONDS})
    liveness = Liveness(store, Sessions(store.keyspace), lambda: settings, address="", version=1)
    liveness.step()
    loop = Loop("heartbeat", liveness.step, SystemEnv(), interval_seconds=HEARTBEAT_SECONDS, log=_log)
    loop.start()
    try:
        yield liveness
    finally:
        loop.stop()
        liveness.release()
