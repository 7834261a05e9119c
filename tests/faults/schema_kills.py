"""Nodes killed while they change the schema under load, and the store restarted under them.

Walk: `__main__` and `test_schema_smoke` call these with a `Run`; `schema_fleet` does the rest.
"""

import time

from tests import postgres_server
from tests.faults.harness import Result, Run
from tests.faults.job_fleet import NODES, distribution
from tests.faults.schema_fleet import LOAD, SchemaFleet


def schema_kill(run: Run) -> Result:
    """kill -9 of nodes in a loop: changes all or nothing, no row lost, no wait beyond ttl + 1 s."""
    result = Result()
    with SchemaFleet(run, "kill") as fleet:
        fleet.start_nodes()
        _kill_for(run, fleet)
        fleet.settle(result)
        fleet.judge(result)
        result.counts["kills"] = len(fleet.halts)
        fleet.require_waits(result, fleet.halts)
        fleet.require_adoption(result, fleet.halts)
        result.require("waited s" in result.counts, "no change met a killed node")
    return result


def _kill_for(run: Run, fleet: SchemaFleet) -> None:
    """Kills and restarts one node after the other."""
    rng = run.rng
    until = time.monotonic() + run.seconds
    while True:
        time.sleep(rng.uniform(0.2, min(2.0, run.seconds / 4)))
        victim = rng.choice(NODES)
        fleet.kill_node(victim)
        time.sleep(rng.uniform(0.0, min(2.0, run.seconds / 4)))
        fleet.start_node(victim, *LOAD)
        fleet.await_ready()
        if time.monotonic() > until:
            return


def schema_store_restart(run: Run) -> Result:
    """PostgreSQL stopped without a checkpoint under changes and load: nodes go on, nothing is lost."""
    if run.engine == "sqlite":
        return Result(skipped="SQLite has no server to restart")
    assert run.server is not None
    result = Result()
    rng = run.rng
    back_seconds: list[float] = []
    with SchemaFleet(run, "restart") as fleet:
        fleet.start_nodes()
        until = time.monotonic() + run.seconds
        while not back_seconds or time.monotonic() < until:
            time.sleep(rng.uniform(0.5, 1.5))
            postgres_server.stop(run.server.directory, immediate=True)
            time.sleep(rng.uniform(0.1, min(4.0, run.seconds / 2)))
            postgres_server.start(run.server.directory)
            started = time.monotonic()
            fleet.require_progress(result, "after an immediate stop")
            back_seconds.append(time.monotonic() - started)
        fleet.settle(result)
        fleet.judge(result)
    result.counts |= {"stops": len(back_seconds), "back s": distribution(sorted(back_seconds))}
    return result
