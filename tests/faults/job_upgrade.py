"""A rolling upgrade under load: nodes of version 1 are replaced one by one, then it is finalized.

Until then a job is held in both ways (see `version_one.old_claims`), and taken over across
versions: some nodes are drained, some are killed. What sessions alone would show does not hold for version 1,
so this judges by effects, states and run numbers.

Walk: `__main__` and `test_jobs_smoke` call `jobs_upgrade` with a `Run`; `job_fleet` does the rest.
"""

import signal
import time

from tenure.base.errors import OlderInstances, RetryError
from tenure.cluster.sessions.versions import Versions
from tests.faults.checker import Verdict
from tests.faults.harness import Result, Run, wait_for
from tests.faults.job_checker import Controls, check_effects, check_logs, check_steps
from tests.faults.job_fleet import LOAD, NODES, JobFleet
from tests.faults.job_history import read_history

OLD = ("--compat-version", "1")
FINALIZE_SECONDS_MAX = 20.0


def jobs_upgrade(run: Run) -> Result:
    """Version 1 to 2 under load: every job ends, each effect once, and then version 1 stays out."""
    result = Result()
    with JobFleet(run, "upgrade") as fleet:
        versions = Versions(fleet.store.keyspace, fleet.sessions)
        for name in NODES:
            fleet.start_node(name, *LOAD, *OLD)
        fleet.await_ready()
        for number, name in enumerate(NODES):
            time.sleep(run.seconds / len(NODES))
            result.require(not finalize(fleet, versions), "finalized while version 1 was there")
            replace_node(fleet, name, *LOAD, is_drained=number % 2 == 0)
            fleet.require_effects(result, (name,), f"after {name} was upgraded")
        finalized = wait_for(lambda: finalize(fleet, versions), FINALIZE_SECONDS_MAX)
        result.require(finalized, "no older node is left, and still it cannot be finalized")
        fleet.require_effects(result, NODES, "after the upgrade was finalized")
        fleet.settle(result)
        _judge(fleet, result)
    return result


def replace_node(fleet: JobFleet, name: str, *load: str, is_drained: bool) -> None:
    """Ends a node of version 1, and starts one of version 2 in its place."""
    if is_drained:
        fleet.signal(name, signal.SIGTERM)
        assert wait_for(lambda: not fleet.is_running(name), 30), f"{name} does not drain"
    else:
        fleet.kill(name)
    fleet.start_node(name, *load)
    fleet.await_ready()


def finalize(fleet: JobFleet, versions: Versions) -> bool:
    try:
        fleet.store.transact(lambda txn: versions.finalize(txn, 2))
    except (OlderInstances, RetryError):
        return False
    return True


def _judge(fleet: JobFleet, result: Result) -> None:
    history, logs = read_history(fleet.store), fleet.events()
    verdict = Verdict()
    controls = Controls(history)
    for job, rows in controls.of.items():
        check_steps(job, rows, verdict)
    check_effects(history, controls, verdict)
    check_logs(history, logs, verdict)
    result.violations += verdict.violations
    result.counts |= {"jobs": len(history.jobs), "effects": len(history.effects)}
    result.require(len(history.effects) > 0, "no job had any effect")
