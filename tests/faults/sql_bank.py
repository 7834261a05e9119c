"""Money through SQL while nodes are killed and stopped, clients cut off and the store restarted.

Walk: `__main__` and `test_sql_smoke` call `sql_bank` with a `Run`.
"""

import signal
import time
from collections import Counter

import psycopg

from tests import postgres_server
from tests.faults.harness import Result, Run
from tests.faults.sql_checker import check
from tests.faults.sql_load import ACCOUNTS, START, Load
from tests.faults.sql_nodes import TTL_SECONDS, SqlNodes

SLACK_SECONDS = 5.0
"""Beyond the ttl: the reaper's pace, and a machine that is busy."""

LONG_SECONDS = 20.0


def sql_bank(run: Run) -> Result:
    """No money is made or lost, nothing acknowledged is undone, whatever goes away."""
    result = Result()
    names = ("n0", "n1", "n2") if run.seconds >= LONG_SECONDS else ("n0", "n1")
    with SqlNodes(run, "sql_bank") as nodes:
        nodes.start(*names)
        load = Load(nodes, run.seed, clients=3 * len(names))
        load.set_up(names[0])
        load.start()
        faults = _break(run, nodes, load, names, result)
        result.violations += load.standstill(TTL_SECONDS + SLACK_SECONDS)
        result.violations += load.stop()
        finals = [load.final(name) for name in names]
        result.require(all(each == finals[0] for each in finals), "nodes see different tables")
        result.violations += check(load.history, finals[0], start=START, accounts=ACCOUNTS)
        nodes.stop(result)
    result.counts |= load.history.counts() | dict(faults)
    return result


def _break(run: Run, nodes: SqlNodes, load: Load, names: tuple[str, ...], result: Result) -> Counter[str]:
    rng, faults = run.rng, Counter[str]()
    until = time.monotonic() + run.seconds
    while not faults or time.monotonic() < until:
        for kind in ("cut", "kill", "cut", "stop", "cut", "store"):
            if kind == "cut":
                faults[kind] += sum(rng.choice(load.clients).cut() for _ in range(4))
            elif kind == "kill":
                _kill(nodes, rng.choice(names), names, result)
                faults[kind] += 1
            elif kind == "stop":
                victim = rng.choice(names)
                nodes.signal(victim, signal.SIGSTOP)
                time.sleep(TTL_SECONDS * rng.choice((0.5, 1.3)))
                nodes.signal(victim, signal.SIGCONT)
                faults[kind] += 1
            elif run.engine == "postgres":
                assert nodes.server is not None
                postgres_server.restart(nodes.server.directory, immediate=rng.random() < 0.5)
                faults[kind] += 1
            time.sleep(rng.uniform(0.1, 0.4))
    return faults


def _kill(nodes: SqlNodes, victim: str, names: tuple[str, ...], result: Result) -> None:
    """Kills a node that has locked a row; another one's client waits for it no longer than the ttl."""
    other = next(name for name in names if name != victim)
    try:
        holder = nodes.connect(victim)
        holder.execute("BEGIN")
        holder.execute("SELECT * FROM counters WHERE id = 0 FOR UPDATE")
        holder.execute("INSERT INTO counters VALUES (0, 0)")
        holder.execute("SELECT * FROM accounts WHERE id = 1 FOR UPDATE")
    except psycopg.Error:
        holder = None  # a store that has just been restarted: then there is no lock to wait for
    nodes.kill(victim)
    began = time.monotonic()
    nodes.launch(victim)
    while True:
        try:
            nodes.execute(other, "SELECT * FROM accounts WHERE id = 1 FOR UPDATE")
            break
        except psycopg.Error as error:
            if error.sqlstate not in ("40001", "40P01", "57P01", "08006", None):
                raise
            if time.monotonic() - began > 2 * (TTL_SECONDS + SLACK_SECONDS):
                break
    waited = time.monotonic() - began
    result.require(
        waited < TTL_SECONDS + SLACK_SECONDS, f"lock: a dead node's row lock was waited for {waited:.1f} s"
    )
    nodes.await_ready(victim)
    if holder is not None:
        holder.close()
