"""SIGTERM under load: who is in a transaction finishes it, the others are told, the node exits in time.

Walk: `__main__` and `test_sql_smoke` call `sql_drain` with a `Run`.
"""

import signal
import time
from contextlib import closing

import psycopg

from tenure.front import DRAIN_SECONDS
from tests.faults.harness import Result, Run
from tests.faults.sql_bank import LONG_SECONDS
from tests.faults.sql_checker import check
from tests.faults.sql_load import ACCOUNTS, START, Load
from tests.faults.sql_nodes import SqlNodes

SLACK_SECONDS = 8.0
"""Beyond the drain's own time: leases, the session and the store are closed after it."""

TOLD_SECONDS = 5.0
"""Within which a client that is idle hears of the drain: on a busy machine a signal takes its time."""

ALLOWED = {"40001", "40P01", "57P01", "connect:", ""}
"""A statement that is sent just as the node closes meets a reset, which may overtake the reason it was given:
that client sees a cut connection (""), and what it did is there whole or not at all."""


def sql_drain(run: Run) -> Result:
    """Nothing in flight is lost or left unknown when a node is told to end."""
    result = Result()
    drains, until = 0, time.monotonic() + run.seconds
    with SqlNodes(run, "sql_drain") as nodes:
        nodes.start("n0", "n1")
        load = Load(nodes, run.seed, clients=6)
        load.set_up("n0")
        nodes.execute("n0", "CREATE TABLE seen (id int PRIMARY KEY)")
        load.start()
        time.sleep(1.0)
        while not drains or time.monotonic() < until:
            victim, other = ("n0", "n1") if drains % 2 == 0 else ("n1", "n0")
            # Waiting for the one that never ends takes the whole drain: once is enough if in a hurry.
            has_laggard = run.engine == "sqlite" if run.seconds < LONG_SECONDS else drains % 2 == 0
            _drain(nodes, victim, result, drains, has_laggard=has_laggard)
            result.violations += load.standstill(10.0)
            seen = nodes.execute(other, "SELECT id FROM seen ORDER BY id")
            drains += 1
            result.require(seen == [(n,) for n in range(drains)], f"in flight: {seen} of {drains} are there")
            if time.monotonic() < until:
                nodes.start(victim)
        victim_is_down = nodes.process(victim).poll() is not None
        result.violations += load.stop()
        final = load.final(other)
        result.violations += check(load.history, final, start=START, accounts=ACCOUNTS, allowed=ALLOWED)
        nodes.stop(result)
    result.counts |= load.history.counts() | {"drains": drains, "last one down": victim_is_down}
    return result


def _drain(nodes: SqlNodes, victim: str, result: Result, number: int, *, has_laggard: bool) -> None:
    idle, finisher, laggard = (nodes.connect(victim) for _ in range(3))
    with closing(idle), closing(finisher), closing(laggard):
        finisher.execute("BEGIN")
        finisher.execute("SELECT count(*) FROM seen")
        if has_laggard:
            laggard.execute("BEGIN")
            laggard.execute("INSERT INTO seen VALUES (1000)")
        began = time.monotonic()
        nodes.signal(victim, signal.SIGTERM)
        told = _refusal(idle, "SELECT 1", wait=TOLD_SECONDS)
        result.require(told == "57P01", f"an idle client was not told 57P01, but {told}")
        longest = max(time.monotonic() - began, float(str(result.counts.get("told within", 0.0))))
        result.counts["told within"] = round(longest, 2)
        finisher.execute("INSERT INTO seen VALUES (%s)", (number,))
        result.require(finisher.execute("COMMIT").statusmessage == "COMMIT", "in flight: no COMMIT")
        result.require(
            _refusal(finisher, "SELECT 1", wait=0.5) == "57P01",
            "a client was let go on after its transaction",
        )
        code = nodes.exit_of(victim, DRAIN_SECONDS + SLACK_SECONDS)
        took = time.monotonic() - began
        result.require(code == 0, f"{victim} exited with {code} after {took:.1f} s")
        if has_laggard:
            result.require(_refusal(laggard, "COMMIT") == "57P01", "who never ended was not told 57P01")
        else:
            result.require(took < DRAIN_SECONDS, f"the drain took {took:.1f} s though nobody held it up")


def _refusal(client: "psycopg.Connection[tuple[object, ...]]", statement: str, *, wait: float = 0.0) -> str:
    """The SQLSTATE that a statement gets; it is repeated for a while if it succeeds."""
    until = time.monotonic() + wait
    while True:
        try:
            client.execute(statement.encode())
        except psycopg.Error as error:
            return error.sqlstate or f"cut: {error}"
        if time.monotonic() > until:
            return "none"
        time.sleep(0.02)
