"""Heartbeats under full write load: urgent commits of each of three loaded processes.

Walk: `__main__` and `test_faults_smoke` call `heartbeat_load` with a `Run`.
"""

import time

from tests.faults.crashes import PROCESSES
from tests.faults.harness import Fleet, Result, Run

P99_MS_MAX = 1_500.0
"""Far above what is aimed at, which a benchmark measures: here only that none is starved."""


def heartbeat_load(run: Run) -> Result:
    result = Result()
    with Fleet(run.place("beats"), run.seed) as fleet:
        for name in PROCESSES:
            fleet.start(name, more=("--beats",))
        fleet.await_ready()
        time.sleep(run.seconds)
        fleet.stop()
        beats = sorted(fleet.verdict(result).beats_ms)
    result.require(bool(beats), "no heartbeat was acknowledged")
    if beats:
        p50, p99 = (beats[int(len(beats) * part)] for part in (0.5, 0.99))
        result.counts |= {"beats": len(beats), "p50 ms": round(p50, 1), "p99 ms": round(p99, 1)}
        result.counts["max ms"] = round(beats[-1], 1)
        result.require(p99 < P99_MS_MAX, f"heartbeats take {p99:.0f} ms (p99)")
    return result
