"""A client holds an advisory lock on a node that is stopped past its ttl; another one gets it elsewhere.

    n0   lock ── SIGSTOP ── a statement is sent ─────────────── SIGCONT ── what came of it?
    n1                         the lock is had after the ttl ── write ── look

Whatever the woken node does with the statement that was already sent, it must not be committed: the lock is
another's by then. Sent are single statements, blocks and a schema change.

On SQLite a process that is stopped inside the commit section holds everybody up until it goes on. Such a
round shows nothing, and is done again.

Walk: `__main__` and `test_sql_smoke` call `sql_advisory` with a `Run`.
"""

import signal
import time
from collections.abc import Sequence

import psycopg
from psycopg import pq

from tests.faults.harness import Result, Run
from tests.faults.sql_nodes import TTL_SECONDS, SqlNodes

HOLDER, OTHER = "n0", "n1"
ROUNDS_MIN = 3
LOCK_SECONDS = TTL_SECONDS * 8
"""How long the other one waits for the lock: a node's death is found within a ttl or two."""

ANSWER_SECONDS = 30.0
SENT = (
    "INSERT INTO writes VALUES ({round}, 'late')",
    "BEGIN; INSERT INTO writes VALUES ({round}, 'late'); COMMIT",
    "INSERT INTO writes SELECT {round}, 'late' FROM generate_series(1, 3)",
    "CREATE TABLE late_{round} AS SELECT 1 AS x",
)
LOST = ("57P01", "40001", "08006", "40003")
"""What the woken node may answer: the locks were lost, or the transaction with the session."""


def sql_advisory(run: Run) -> Result:
    result = Result()
    with SqlNodes(run, "sql_advisory") as nodes:
        nodes.start(HOLDER, OTHER)
        nodes.execute(OTHER, "CREATE TABLE writes (round int, who text)")
        until = time.monotonic() + run.seconds
        rounds = held_up = 0
        while rounds < ROUNDS_MIN or time.monotonic() < until:
            if _round(nodes, result, rounds + held_up, SENT[rounds % len(SENT)]):
                rounds += 1
            else:
                held_up += 1
        result.counts |= {"rounds": rounds, "held up by the section": held_up}
        nodes.stop(result)
    return result


def _round(nodes: SqlNodes, result: Result, number: int, sent: str) -> bool:
    """False if the stopped node stood in the section."""
    with nodes.connect(HOLDER) as holder, nodes.connect(OTHER) as other:
        holder.execute("SELECT pg_advisory_lock(1)")
        other.execute(f"SET statement_timeout = '{LOCK_SECONDS}s'")
        nodes.signal(HOLDER, signal.SIGSTOP)
        holder.pgconn.send_query(sent.format(round=number).encode())
        holder.pgconn.flush()
        try:
            other.execute("SELECT pg_advisory_lock(1)")
            other.execute("INSERT INTO writes VALUES (%s, 'owner')", (number,))
        except psycopg.errors.QueryCanceled:
            return False
        finally:
            nodes.signal(HOLDER, signal.SIGCONT)
        state = _answer(holder.pgconn)
        result.require(state in LOST, f"round {number}: {sent} was answered with {state or 'success'}")
        _judge(other, result, number, sent)
    return True


def _answer(connection: "pq.abc.PGconn") -> str:
    """The SQLSTATE of what was sent; 08006 if the connection ended without a word."""
    states: list[str] = []
    until = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < until:
        answered = connection.get_result()
        if answered is None:
            break
        states.append((answered.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode())
    return next((each for each in states if each), "" if states else "08006")


def _judge(other: "psycopg.Connection[tuple[object, ...]]", result: Result, number: int, sent: str) -> None:
    rows: Sequence[object] = other.execute("SELECT who FROM writes WHERE round = %s", (number,)).fetchall()
    result.require(rows == [("owner",)], f"round {number}: {sent}: the table has {rows}")
    late = other.execute("SELECT to_regclass(%s)", (f"late_{number}",)).fetchall()
    result.require(late == [(None,)], f"round {number}: {sent} made its table")
    other.execute("SELECT pg_advisory_unlock(1)")
