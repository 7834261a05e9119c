"""A node that the store's notifications never reach: a change costs it and others the poll interval.

    p0      deaf for ever; changes the schema itself, writes and reads rows
    p1, p2  hear; p1 changes the schema too

Every version that a change publishes may wait once for the deaf node, or the deaf node for the others,
and whoever asked for the change may hear of its end late: (versions + 1) polls, and the work itself.

Walk: `__main__` and `test_schema_smoke` call `lost_notifications` with a `Run`; `schema_fleet` does the
rest.
"""

import time

from tenure.base.timestamp import micros_of
from tests.faults.harness import Result, Run
from tests.faults.job_fleet import distribution
from tests.faults.schema_checker import Op, ops_of
from tests.faults.schema_fleet import SchemaFleet, wall_micros_of

POLL_SECONDS = 0.3
WORK_SECONDS = 1.0
"""For the stages themselves, other changes of the same table, and a machine that is busy."""

ROWS = ("--threads", "1", "--pause", "0.02")
CHANGES = (*ROWS, "--ddl-seconds", "0.3")


def lost_notifications(run: Run) -> Result:
    result = Result()
    with SchemaFleet(run, "deaf", poll=POLL_SECONDS) as fleet:
        fleet.start_node("p0", *CHANGES, "--deaf")
        fleet.start_node("p1", *CHANGES)
        fleet.start_node("p2", *ROWS)
        fleet.await_ready()
        time.sleep(run.seconds)
        fleet.settle(result)
        fleet.judge(result)
        _require_polls(fleet, result)
    return result


def _require_polls(fleet: SchemaFleet, result: Result) -> None:
    done = [op for op in ops_of(fleet.events()).values() if "change" in op.intent and op.outcome == "ack"]
    for process in ("p0", "p1"):
        mine = [op for op in done if op.process == fleet.process(process)]
        result.require(bool(mine), f"{process} has changed nothing")
        for op in mine:
            bound = (_versions(fleet, op) + 1) * POLL_SECONDS + WORK_SECONDS
            why = f"{op.name} ({op.intent['change']}) took {op.seconds:.2f} s, more than {bound:.2f}"
            result.require(op.seconds <= bound, why)
        if mine:
            name = "deaf s" if process == "p0" else "others s"
            result.counts[name] = distribution(sorted(op.seconds for op in mine))


def _versions(fleet: SchemaFleet, op: Op) -> int:
    """How many versions of anything were published while a change was under way."""
    assert op.end is not None
    began, ended = wall_micros_of(op.intent), wall_micros_of(op.end)
    return sum(
        began <= micros_of(each.modified_at) <= ended
        for versions in fleet.schema.versions.values()
        for each in versions
    )
