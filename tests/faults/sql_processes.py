"""`--processes 2`: one is killed and comes back, the other's clients notice nothing, cancels find their way.

Walk: `__main__` and `test_sql_smoke` call `sql_processes` with a `Run`.
"""

import os
import signal
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg

from tests.faults.harness import Result, Run, wait_for
from tests.faults.sql_checker import check
from tests.faults.sql_load import ACCOUNTS, START, Connection, Load
from tests.faults.sql_nodes import SqlNodes

PARENT = "parent"
PIDS = 1 << 16
"""A session's number is its instance times this, and a number of its own."""

CLIENTS = 12
"""Enough for the kernel to spread them over both processes."""

BACK_SECONDS_MAX = 40.0
CANCEL_SECONDS_MAX = 8.0
CANCELS = 6


def sql_processes(run: Run) -> Result:
    """What happens to one process happens to its clients alone."""
    result = Result()
    kills, until = 0, time.monotonic() + run.seconds
    with SqlNodes(run, "sql_processes", more=("--processes", "2")) as nodes, ExitStack() as orphans:
        nodes.start(PARENT)
        # Children outlive a parent that is killed: whatever happens, end those that there are.
        orphans.callback(_kill_all, nodes)
        load = Load(nodes, run.seed, clients=4)
        load.set_up(PARENT)
        load.start()
        routed = _cancel(nodes, result)
        while not kills or time.monotonic() < until:
            _kill_one(nodes, result, kills)
            kills += 1
        routed += _cancel(nodes, result)
        result.violations += load.standstill(10.0)
        result.violations += load.stop()
        final = load.final(PARENT)
        result.violations += check(load.history, final, start=START, accounts=ACCOUNTS)
        nodes.stop(result)
        result.require(wait_for(lambda: not _children(nodes), 5.0), "processes are left behind")
    result.counts |= load.history.counts() | {"kills": kills, "cancels": 2 * CANCELS, "routed": routed}
    return result


def _kill_one(nodes: SqlNodes, result: Result, number: int) -> None:
    children = _children(nodes)
    result.require(len(children) == 2, f"there are {len(children)} processes")
    with ExitStack() as clients:
        connections = [clients.enter_context(closing(nodes.connect(PARENT))) for _ in range(CLIENTS)]
        instances = [_instance(each) for each in connections]
        result.require(len(set(instances)) == 2, f"all connections went to one process: {instances}")
        for each in connections:
            each.execute("BEGIN")
            each.execute("SELECT count(*) FROM counters WHERE id < 0")
        _kill(children[number % 2])
        goes_on = [_goes_on(each) for each in connections]
        kept = {instance for instance, is_well in zip(instances, goes_on, strict=True) if is_well}
        lost = {instance for instance, is_well in zip(instances, goes_on, strict=True) if not is_well}
        result.require(len(lost) == 1, f"clients of processes {lost} were cut")
        result.require(not lost & kept, f"some clients of {lost} were cut, others not")
    result.require(
        wait_for(lambda: len(_children(nodes)) == 2 and _reached(nodes) == 2, BACK_SECONDS_MAX),
        "a process that was killed does not come back",
    )


def _goes_on(client: Connection) -> bool:
    try:
        client.execute("SELECT count(*) FROM counters")
        return client.execute("COMMIT").statusmessage == "COMMIT"
    except psycopg.OperationalError:
        return False


def _reached(nodes: SqlNodes) -> int:
    """How many processes new connections come to."""
    with ExitStack() as clients:
        try:
            connections = [clients.enter_context(closing(nodes.connect(PARENT))) for _ in range(CLIENTS)]
            return len({_instance(each) for each in connections})
        except psycopg.Error:
            return 0


def _cancel(nodes: SqlNodes, result: Result) -> int:
    """Cancels sleeping statements; a request comes to either process. Returns how many it was told of."""
    done = 0
    for _ in range(CANCELS):
        with closing(nodes.connect(PARENT)) as client:
            outcome: list[str] = []
            thread = threading.Thread(target=_sleep, args=(client, outcome), daemon=True)
            thread.start()
            time.sleep(0.1)
            began = time.monotonic()
            client.cancel_safe()
            thread.join(CANCEL_SECONDS_MAX)
            took = time.monotonic() - began
            result.require(outcome == ["57014"], f"cancel: after {took:.1f} s a sleeper has seen {outcome}")
            done += outcome == ["57014"]
    return done


def _sleep(client: Connection, outcome: list[str]) -> None:
    try:
        client.execute("SELECT pg_sleep(30)")
    except psycopg.Error as error:
        outcome.append(error.sqlstate or str(error))


def _instance(client: Connection) -> int:
    return client.pgconn.backend_pid // PIDS


def _children(nodes: SqlNodes) -> list[int]:
    parent = nodes.process(PARENT).pid
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return sorted(found)


def _kill_all(nodes: SqlNodes) -> None:
    for pid in _children(nodes):
        _kill(pid)


def _kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
