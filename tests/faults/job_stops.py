"""Nodes stopped for a part of the ttl and for many, then woken: SIGSTOP, SIGCONT.

    half a ttl    it should not even be noticed
    1.1 ttls      declared dead, or just not: whoever commits first decides
    5 ttls        dead and long replaced when it wakes in the middle of whatever it was doing

On SQLite a process may be stopped inside the commit section, or first in the queue for it: then
nobody else can commit (but for heartbeats, which skip the queue), all wait, and nothing is adopted
before it goes on. Such a stop is told by the history: no other node had an effect meanwhile.

Walk: `__main__` and `test_jobs_smoke` call `jobs_stop` with a `Run`; `job_fleet` does the rest.
"""

import time
from collections import Counter
from threading import Thread

from tenure.base.timestamp import micros_of
from tests.faults.harness import Result, Run
from tests.faults.job_checker import Halt, Presence
from tests.faults.job_fleet import LOAD, NODES, JobFleet

TTL_SECONDS, HEARTBEAT_SECONDS = 1.0, 0.15
"""Shorter than elsewhere: a round lasts longer than five ttls."""

SHORT, BARELY, LONG = 0.5, 1.1, 5.0
GRACE_MICROS = 300_000
"""At both ends of a stop, commits tell nothing: one that was under way may seem to come after its
begin, and one that waited for its end has a timestamp from when it was sent."""

PAUSE_TTLS = 1.5
"""The long stop has this for itself, before the short ones are made during it: one ttl to expire,
the rest to be adopted."""


def jobs_stop(run: Run) -> Result:
    result = Result()
    rng = run.rng
    with JobFleet(run, "stop", ttl=TTL_SECONDS, heartbeat=HEARTBEAT_SECONDS) as fleet:
        for name in NODES:
            fleet.start_node(name, *LOAD)
        fleet.await_ready()
        until = time.monotonic() + run.seconds
        while True:
            time.sleep(rng.uniform(0.5, 1.0))
            _round(fleet, result, rng.sample(NODES, len(NODES)))
            if time.monotonic() > until:
                break
        fleet.settle(result)
        fleet.judge(result)
        _judge_halts(run, fleet, result)
    return result


def _round(fleet: JobFleet, result: Result, victims: list[str]) -> None:
    """One long stop, and during it the two short ones, one after the other."""
    long = Thread(target=fleet.halt_node, args=(victims[0],), kwargs={"factor": LONG})
    long.start()
    time.sleep(PAUSE_TTLS * fleet.ttl_seconds)
    fleet.halt_node(victims[1], factor=SHORT)
    time.sleep(0.3)
    fleet.halt_node(victims[2], factor=BARELY)
    long.join()
    fleet.require_effects(result, NODES, "after being stopped and woken")


def _judge_halts(run: Run, fleet: JobFleet, result: Result) -> None:
    sessions = Presence(fleet.history)
    counts: Counter[str] = Counter()
    outside: list[Halt] = []
    for halt in sorted(fleet.halts, key=lambda halt: halt.micros):
        mine = fleet.sessions_of(halt.process)
        held = next((each for each in reversed(mine) if each.epoch_at < halt.at), None)
        died_at = None if held is None else sessions.deleted_at.get(held)
        is_dead = died_at is not None and micros_of(died_at) <= halt.woken_micros + GRACE_MICROS
        is_inside = run.engine == "sqlite" and halt.factor > SHORT and not _others_went_on(fleet, halt)
        kind = f"x{halt.factor:g}"
        counts.update([kind] + [f"{kind} dead"] * is_dead + [f"{kind} in section"] * is_inside)
        if is_inside:
            continue
        result.require(halt.factor != LONG or is_dead, f"{halt.process} was stopped for {kind} and not dead")
        if is_dead:
            outside.append(halt)
            renewed = any(each.epoch_at > halt.at for each in mine)
            result.require(renewed, f"{halt.process} died and never had another session")
    result.counts |= counts
    fleet.require_adoption(result, outside)


def _others_went_on(fleet: JobFleet, halt: Halt) -> bool:
    began, ended = halt.micros + GRACE_MICROS, halt.woken_micros - GRACE_MICROS
    others = (row for row in fleet.history.effects if row.process != halt.process)
    return any(began < micros_of(row.at) < ended for row in others)
