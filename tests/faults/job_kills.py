"""Nodes killed while jobs run, the store restarted under them, jobs asked to stop at random.

Walk: `__main__` and `test_jobs_smoke` call these with a `Run`; `job_fleet` does the rest.
"""

import time

from tenure.base.settings import LIVENESS_HEARTBEAT, LIVENESS_TTL
from tests import postgres_server
from tests.faults.harness import Result, Run
from tests.faults.job_fleet import ADOPTION_SLACK_SECONDS, LOAD, NODES, JobFleet, distribution

LONG_SECONDS = 60.0
"""From this length on, the default ttl has its turn too."""


def jobs_kill(run: Run) -> Result:
    """kill -9 of nodes in a loop: every job ends, each effect once, and adopted in time."""
    result = Result()
    with JobFleet(run, "kill") as fleet:
        _kill_for(run, fleet, LOAD)
        fleet.settle(result)
        fleet.judge(result)
        result.counts["kills"] = len(fleet.halts)
        fleet.require_adoption(result, fleet.halts)
        result.require("adopted s" in result.counts, "no killed node held a job")
    if run.seconds >= LONG_SECONDS:
        _kill_at_default_ttl(run, result)
    return result


def _kill_for(run: Run, fleet: JobFleet, more: tuple[str, ...]) -> None:
    """Kills and restarts one node after the other; at least two are always up, but for seconds."""
    rng = run.rng
    for name in NODES:
        fleet.start_node(name, *more)
    fleet.await_ready()
    time.sleep(0.5)
    until = time.monotonic() + run.seconds
    while True:
        victim = rng.choice(NODES)
        fleet.kill_node(victim)
        time.sleep(rng.uniform(0.0, min(2.0, run.seconds / 4)))
        fleet.start_node(victim, *more)
        if time.monotonic() > until:
            break
        if rng.random() < 0.8:  # else another one goes while it starts
            fleet.await_ready()
        time.sleep(rng.uniform(0.1, min(2.0, run.seconds / 4)))
    fleet.await_ready()


def _kill_at_default_ttl(run: Run, result: Result) -> None:
    ttl, heartbeat = LIVENESS_TTL.default, LIVENESS_HEARTBEAT.default
    default = Result()
    with JobFleet(run, "default_ttl", ttl=ttl, heartbeat=heartbeat) as fleet:
        for name in NODES:
            fleet.start_node(name, *LOAD)
        fleet.await_ready()
        time.sleep(2 * heartbeat)
        fleet.kill_node("p0")
        time.sleep(ttl + ADOPTION_SLACK_SECONDS)
        fleet.start_node("p0", *LOAD)
        fleet.await_ready()
        fleet.settle(default)
        fleet.judge(default)
        fleet.require_adoption(default, fleet.halts)
    result.violations += default.violations
    result.counts |= {f"ttl {ttl:g}: {name}": value for name, value in default.counts.items()}
    result.require("adopted s" in default.counts, "no node killed at the default ttl held a job")


def jobs_store_restart(run: Run) -> Result:
    """PostgreSQL stopped without a checkpoint under load: nodes go on, nothing is done twice."""
    if run.engine == "sqlite":
        return Result(skipped="SQLite has no server to restart")
    assert run.server is not None
    result = Result()
    rng = run.rng
    back_seconds: list[float] = []
    with JobFleet(run, "restart") as fleet:
        for name in NODES:
            fleet.start_node(name, *LOAD)
        fleet.await_ready()
        until = time.monotonic() + run.seconds
        while not back_seconds or time.monotonic() < until:
            time.sleep(rng.uniform(0.3, 1.5))
            postgres_server.stop(run.server.directory, immediate=True)
            time.sleep(rng.uniform(0.1, min(4.0, run.seconds / 2)))
            postgres_server.start(run.server.directory)
            started = time.monotonic()
            fleet.require_effects(result, NODES, "after an immediate stop")
            back_seconds.append(time.monotonic() - started)
        fleet.settle(result)
        fleet.judge(result)
    result.counts |= {"stops": len(back_seconds), "back s": distribution(sorted(back_seconds))}
    return result


def jobs_control(run: Run) -> Result:
    """PAUSE, RESUME and CANCEL at random under kills: legal steps alone, and the canceled reverted."""
    result = Result()
    with JobFleet(run, "control") as fleet:
        _kill_for(run, fleet, (*LOAD, "--ask-seconds", "0.03", "--fail-rate", "0.2"))
        fleet.settle(result)
        verdict = fleet.judge(result)
        fleet.require_adoption(result, fleet.halts)
    result.counts |= {"requests": verdict.counts["asked"], "kills": len(fleet.halts)}
    for state in ("succeeded", "canceled", "failed"):
        result.require(verdict.counts[state] > 0, f"no job {state}")
    result.require(verdict.counts["revert-failed"] == 0, "a revert failed that never should")
    return result
