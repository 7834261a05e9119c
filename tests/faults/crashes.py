"""Scenarios in which nothing fails, a process is killed, or PostgreSQL crashes.

Walk: `__main__` and `test_faults_smoke` call these with a `Run`; `harness` does the rest.
"""

import os
import signal
import time

import psycopg

from tests import postgres_server
from tests.faults.harness import ACK, Fleet, Result, Run, wait_for

PROCESSES = ("p0", "p1", "p2")


def processes(run: Run) -> Result:
    """Three processes of four threads on one store, undisturbed: serializable, none starved."""
    result = Result()
    place = run.place("processes")
    with Fleet(place, run.seed) as fleet:
        for name in PROCESSES:
            fleet.start(name)
        fleet.await_ready()
        began = time.monotonic()
        time.sleep(run.seconds)
        fleet.stop()
        elapsed = time.monotonic() - began
        verdict = fleet.verdict(result)
    result.counts["txn/s"] = round((verdict.counts["ack"] + verdict.counts["read"]) / elapsed)
    shares = {name: sum(event["e"] == "ack" for event in events) for name, events in fleet.events()}
    result.counts["per process"] = "/".join(str(share) for share in shares.values())
    result.require(min(shares.values()) > 0, f"a process was starved: {shares}")
    unexpected = {kind: n for kind, n in verdict.counts.items() if kind.startswith("trouble ")}
    unexpected |= {
        kind: n for kind, n in verdict.counts.items() if kind.startswith("failed ") and "40001" not in kind
    }
    result.require(not unexpected, f"errors without a fault: {unexpected}")
    return result


def kill(run: Run) -> Result:
    """kill -9 of committing processes in a loop, each restarted; operations are seen through."""
    result = Result()
    rng = run.rng
    kills = 0
    with Fleet(run.place("kill"), run.seed) as fleet:
        for name in PROCESSES:
            fleet.start(name)
        fleet.await_ready()
        until = time.monotonic() + run.seconds
        while time.monotonic() < until:
            time.sleep(rng.uniform(0.05, 0.6))
            victim = rng.choice(PROCESSES)
            fleet.kill(victim)
            kills += 1
            fleet.start(victim)
            if rng.random() < 0.7:  # else it is killed again while it starts
                fleet.await_ready()
        fleet.await_ready()
        time.sleep(0.5)
        fleet.stop()
        fleet.verdict(result)
    result.counts["kills"] = kills
    return result


def pg_immediate(run: Run) -> Result:
    """PostgreSQL stopped without a checkpoint in a loop under load; nodes go on by themselves."""
    result = Result()
    rng = run.rng
    server = run.server
    assert server is not None
    stops = 0
    with Fleet(run.place("immediate"), run.seed) as fleet:
        for name in PROCESSES:
            fleet.start(name)
        fleet.await_ready()
        until = time.monotonic() + run.seconds
        while time.monotonic() < until:
            time.sleep(rng.uniform(0.3, 2.0))
            postgres_server.stop(server.directory, immediate=True)
            time.sleep(rng.uniform(0.1, 1.0) if run.seconds < 20 else rng.uniform(0.5, 3.0))
            postgres_server.start(server.directory)
            stops += 1
            require_going_on(fleet, result, "after an immediate stop")
        fleet.stop()
        fleet.verdict(result)
    result.counts["stops"] = stops
    return result


def pg_backend_kill(run: Run) -> Result:
    """Backends terminated, and now and then killed with -9, which restarts the whole server."""
    result = Result()
    rng = run.rng
    assert run.server is not None
    terminated = killed = 0
    with Fleet(run.place("backend"), run.seed) as fleet:
        for name in PROCESSES:
            fleet.start(name)
        fleet.await_ready()
        until = time.monotonic() + run.seconds
        while time.monotonic() < until:
            time.sleep(rng.uniform(0.02, 0.3))
            pids = _backends(run.server)
            if not pids:
                continue
            if rng.random() < 0.06 or (killed == 0 and terminated > 5):
                os.kill(rng.choice(pids), signal.SIGKILL)
                killed += 1
                require_going_on(fleet, result, "after kill -9 of a backend")
            else:
                _terminate(run.server, rng.sample(pids, min(len(pids), rng.randint(1, 4))))
                terminated += 1
        require_going_on(fleet, result, "after backends were terminated")
        fleet.stop()
        fleet.verdict(result)
    result.counts |= {"terminations": terminated, "kill -9": killed}
    return result


def require_going_on(fleet: Fleet, result: Result, when: str) -> None:
    """Each process must acknowledge commits again without being restarted."""
    before = fleet.lengths()
    going_on = wait_for(lambda: all(fleet.count(ACK, before, name) for name in PROCESSES), 30)
    result.require(going_on, f"not every process commits again {when}")


def _backends(server: postgres_server.Server) -> list[int]:
    query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'tenure'"
    try:
        with psycopg.connect(server.dsn, connect_timeout=5) as connection:
            return [pid for (pid,) in connection.execute(query).fetchall()]
    except psycopg.Error:
        return []  # it is recovering


def _terminate(server: postgres_server.Server, pids: list[int]) -> None:
    try:
        with psycopg.connect(server.dsn, connect_timeout=5) as connection:
            connection.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS p(pid)", [pids])
    except psycopg.Error:
        pass
