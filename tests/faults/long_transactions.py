"""A transaction that stays open: whom it holds up, and for how long.

    p0      opens a transaction on table a
    p1      the same, and never ends one when it is asked to; it runs no jobs, so that it is another
            node that waits for it
    here    a node changes b meanwhile, then a

    b       nothing waits for a transaction that uses a
    a       the second version waits; `describe` names the blocker; after the grace its own node
            ends it, and one whose node does not is cut off: its session is frozen and dies

Walk: `__main__` and `test_schema_smoke` call `long_transaction` with a `Run`; `schema_fleet` does the
rest.
"""

import time
from threading import Thread

from tenure.catalog.descriptors.definitions import Table
from tenure.catalog.leases.lease_waits import describe
from tenure.catalog.leases.wait_records import AwaitedDescriptor
from tenure.node import Node
from tests.faults.harness import Result, Run, wait_for
from tests.faults.job_fleet import distribution
from tests.faults.log import Event
from tests.faults.schema_fleet import SchemaFleet

TTL_SECONDS, HEARTBEAT_SECONDS, GRACE_SECONDS = 1.0, 0.15, 0.6
HOLD_SECONDS_MAX = 10.0
CHANGE_SECONDS_MAX = 0.9
"""Of table b: it has nobody to wait for, so it takes less than anything that would wait for a ttl."""

SLACK_SECONDS = 1.0
"""For noticing, for the stages themselves, and for a machine that is busy."""


def long_transaction(run: Run) -> Result:
    result = Result()
    times = {"ttl": TTL_SECONDS, "heartbeat": HEARTBEAT_SECONDS, "grace": GRACE_SECONDS}
    with SchemaFleet(run, "long", **times) as fleet:
        fleet.start_node("p0", "--holds")
        fleet.start_node("p1", "--holds", "--ignore-end")
        fleet.await_ready()
        node = fleet.open_node()
        try:
            _change_others(fleet, node, result, min(run.seconds / 2, HOLD_SECONDS_MAX))
            bound = GRACE_SECONDS + SLACK_SECONDS
            _change_held(fleet, node, result, "p0", bound, "ended s")
            bound = GRACE_SECONDS + 2 * TTL_SECONDS + SLACK_SECONDS
            _change_held(fleet, node, result, "p1", bound, "cut off s")
            _require_renewed(fleet, result)
        finally:
            node.stop()
        fleet.settle(result)
        fleet.judge(result)
    return result


def _change_others(fleet: SchemaFleet, node: Node, result: Result, seconds: float) -> None:
    """Changes of b, while a transaction of p0 uses a."""
    _hold(fleet, "p0")
    work = fleet.changes_of(node)
    kinds = ("index", "column", "rename", "with_rows", "unique")
    took: list[float] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until or len(took) < len(kinds):
        began = time.monotonic()
        outcome = work.change(kinds[len(took) % len(kinds)], fleet.tables[1])
        took.append(time.monotonic() - began)
        result.require(outcome == "ack", f"a change of b: {outcome}")
        time.sleep(0.05)
    result.counts["b s"] = distribution(sorted(took))
    late = [f"{each:.2f}" for each in took if each > CHANGE_SECONDS_MAX]
    result.require(not late, f"changes of b took {late} s while a transaction used a")


def _change_held(
    fleet: SchemaFleet, node: Node, result: Result, name: str, bound: float, counted: str
) -> None:
    """A change of a, which a transaction of this process uses and does not give up by itself."""
    if name != "p0":
        _hold(fleet, name)
    held = _holding(fleet, name)
    work = fleet.changes_of(node)
    outcomes: list[str] = []
    change = Thread(target=lambda: outcomes.append(work.change("index", fleet.tables[0])))
    began = time.monotonic()
    change.start()
    expected = f"instance {held['session'][0]}, transaction {held['transaction']}: {held['op']}"
    named = wait_for(lambda: expected in _blockers(fleet, node), GRACE_SECONDS)
    result.require(named, f"nobody names {expected!r}: {_blockers(fleet, node)!r}")
    change.join(30)
    seconds = time.monotonic() - began
    result.counts[counted] = f"{seconds:.2f}"
    result.require(outcomes == ["ack"], f"a change of a: {outcomes}")
    result.require(GRACE_SECONDS < seconds < bound, f"a change of a took {seconds:.2f} s for {name}")
    fleet.command(f"commit-{name}")
    refused = wait_for(lambda: bool(_refusals(fleet, held["op"])), 5)
    result.require(refused, f"the transaction of {name} was not refused")


def _blockers(fleet: SchemaFleet, node: Node) -> str:
    table = node.catalog.get(node.store.snapshot(), fleet.tables[0])
    assert isinstance(table, Table)
    return describe(node.lease_waits.blockers([AwaitedDescriptor(table.id, table.modified_at)]))


def _hold(fleet: SchemaFleet, name: str) -> None:
    fleet.command(f"hold-{name}")
    assert wait_for(lambda: bool(_of(fleet, name, "holding")), 10), f"{name} opened no transaction"


def _holding(fleet: SchemaFleet, name: str) -> Event:
    return _of(fleet, name, "holding")[-1]


def _refusals(fleet: SchemaFleet, op: str) -> list[Event]:
    return [
        event
        for _, events in fleet.events()
        for event in events
        if event.get("op") == op and event["e"] == "failed" and event["state"] in ("40001", "57P01")
    ]


def _require_renewed(fleet: SchemaFleet, result: Result) -> None:
    """The node that was cut off comes back by itself, under a new session."""
    renewed = wait_for(lambda: bool(_of(fleet, "p1", "session")), 10)
    result.require(renewed, "the node that was cut off has no new session")


def _of(fleet: SchemaFleet, name: str, kind: str) -> list[Event]:
    process = fleet.process(name)
    events = next((events for each, events in fleet.events() if each == process), [])
    return [event for event in events if event["e"] == kind]
