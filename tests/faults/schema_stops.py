"""Nodes stopped in the middle of transactions and changes, for a part of the ttl and for many, then woken.

    half a ttl    changes wait until it is woken, at most
    1.1 ttls      declared dead, or just not
    5 ttls        dead and long forgotten when its transactions, begun under the old lease, go on

On SQLite a process may be stopped inside the commit section, or first in the queue for it: then nobody
else can commit before it goes on. Such a stop is told by the history: no other node wrote meanwhile.

Walk: `__main__` and `test_schema_smoke` call `schema_stop` with a `Run`; `schema_fleet` does the rest.
"""

import time
from collections import Counter
from threading import Thread

from tenure.base.timestamp import micros_of
from tests.faults.harness import Result, Run
from tests.faults.job_checker import Halt, Presence
from tests.faults.job_fleet import NODES
from tests.faults.job_stops import BARELY, GRACE_MICROS, LONG, PAUSE_TTLS, SHORT
from tests.faults.schema_checker import ops_of
from tests.faults.schema_fleet import SchemaFleet

TTL_SECONDS, HEARTBEAT_SECONDS = 1.0, 0.15
"""Shorter than elsewhere: a round lasts longer than five ttls."""

LOAD = ("--threads", "3", "--ddl-seconds", "0.3", "--pause", "0.4")
"""Transactions stay open for a while, so that every stop meets some."""


def schema_stop(run: Run) -> Result:
    result = Result()
    rng = run.rng
    with SchemaFleet(run, "stop", ttl=TTL_SECONDS, heartbeat=HEARTBEAT_SECONDS) as fleet:
        fleet.start_nodes(*LOAD)
        until = time.monotonic() + run.seconds
        while True:
            time.sleep(rng.uniform(0.3, 0.6))
            _round(fleet, result, rng.sample(NODES, len(NODES)))
            if time.monotonic() > until:
                break
        fleet.settle(result)
        fleet.judge(result)
        _judge_halts(run, fleet, result)
    return result


def _round(fleet: SchemaFleet, result: Result, victims: list[str]) -> None:
    """One long stop, and during it the two short ones, one after the other."""
    long = Thread(target=fleet.halt_node, args=(victims[0],), kwargs={"factor": LONG})
    long.start()
    time.sleep(PAUSE_TTLS * fleet.ttl_seconds)
    fleet.halt_node(victims[1], factor=SHORT)
    time.sleep(0.3)
    fleet.halt_node(victims[2], factor=BARELY)
    long.join()
    fleet.require_progress(result, "after being stopped and woken")


def _judge_halts(run: Run, fleet: SchemaFleet, result: Result) -> None:
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
        outside.append(halt)
        if is_dead:
            ops = (op for op in ops_of(fleet.events()).values() if op.session == held)
            ended = sum(_is_ended(op.end) for op in ops)
            result.require(halt.factor != LONG or ended > 0, f"nothing of {halt.process} was ended")
            counts["ended"] += ended
            renewed = any(each.epoch_at > halt.at for each in mine)
            result.require(renewed, f"{halt.process} died and never had another session")
    result.counts |= counts
    fleet.require_waits(result, outside)


def _is_ended(end: dict[str, object] | None) -> bool:
    """Whether a transaction that was begun under a session that has died since was refused at its commit."""
    return end is not None and end["e"] == "failed" and end["state"] in ("40001", "57P01")


def _others_went_on(fleet: SchemaFleet, halt: Halt) -> bool:
    began, ended = halt.micros + GRACE_MICROS, halt.woken_micros - GRACE_MICROS
    mine = set(fleet.sessions_of(halt.process))
    others = {name for name, op in ops_of(fleet.events()).items() if op.session not in mine}
    written = (row for row in fleet.schema.rows if row.tag.split("#")[0] in others)
    return any(began < micros_of(row.at) < ended for row in written)
