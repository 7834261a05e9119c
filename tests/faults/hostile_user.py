"""One plain user does what it can to stop a node; others must not notice.

    mallory    64 connections: each act of `hostile_acts` in turn, and then gone without a word
    alice      reads one row by its key, again and again; and logs in anew, as root does

While an act goes on, reads and logins stay quick and the node's session is extended in time. After it, memory
and threads come back, and what mallory had under way is over.

Walk: `__main__` and `test_hostile_smoke` call `hostile_user` with a `Run`.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from tests.faults.harness import Result, Run
from tests.faults.hostile_acts import ACTS, Act
from tests.faults.sql_nodes import SqlNodes

NODE, PASSWORD = "n0", "not a secret"
READ_P99_SECONDS_MAX, LOGIN_SECONDS_MAX = 0.1, 1.0
QUICK_FACTOR = 10
"""A short run shares its processors with other tests: it shows that nobody is kept out."""

ACT_SECONDS_MIN = 2.0
RETURN_SECONDS_MAX = 10.0
GROWTH_BYTES_MAX = 200 * 2**20
THREADS_MORE_MAX = 20
PAUSE_SECONDS = 0.002
LOGIN_PAUSE_SECONDS = 0.1

SCHEMA = (
    "CREATE TABLE t (id int PRIMARY KEY, v int)",
    "INSERT INTO t SELECT n, n FROM generate_series(1, 1000) n",
    "CREATE TABLE hostile (id int PRIMARY KEY, v int)",
    "INSERT INTO hostile VALUES (1, 0)",
    "CREATE TABLE big (id int PRIMARY KEY, v int)",
    "INSERT INTO big SELECT n, n % 100 FROM generate_series(1, 20000) n",
    f"CREATE USER alice PASSWORD '{PASSWORD}'",
    f"CREATE USER mallory PASSWORD '{PASSWORD}'",
    "GRANT ALL ON t, hostile, big TO alice, mallory",
    "GRANT CREATE ON SCHEMA public TO alice, mallory",
)
EXPIRATION = "SELECT max(expiration) FROM system.sqlliveness"
SESSIONS_LEFT = "SELECT count(*) FROM tenure_internal.sessions WHERE user_name = 'mallory'"


def hostile_user(run: Run, acts: tuple[Act, ...] = ACTS) -> Result:
    result = Result()
    seconds = max(ACT_SECONDS_MIN, run.seconds / len(acts))
    factor = QUICK_FACTOR if run.is_quick else 1
    with SqlNodes(run, "hostile_user", has_passwords=True) as nodes:
        nodes.start(NODE)
        nodes.execute(NODE, *SCHEMA)
        for act in acts:
            with result.naming(act.name):
                before = _usage(nodes)
                _suffer(act, nodes, seconds).judge(result, act.name, factor)
                _require_peace(nodes, before, result)
        nodes.stop(result)
    return result


@dataclass
class Witness:
    """What others have seen of an act."""

    reads: list[float] = field(default_factory=list)
    logins: list[float] = field(default_factory=list)
    expirations: list[Any] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    answers: int = 0

    def judge(self, result: Result, name: str, factor: int) -> None:
        result.violations += self.errors[:3]
        result.require(len(self.reads) > 1 and len(self.logins) > 1, "nobody was served")
        result.require(self.answers > 0 or "login" not in name, "the flood did not come through")
        if self.reads and self.logins:
            p99, slowest = sorted(self.reads)[int(len(self.reads) * 0.99)], max(self.logins)
            result.counts[name] = f"{1000 * p99:.0f}/{1000 * slowest:.0f} ms"
            result.require(p99 <= factor * READ_P99_SECONDS_MAX, f"reads take {p99:.3f} s (p99)")
            result.require(slowest <= factor * LOGIN_SECONDS_MAX, f"a login took {slowest:.3f} s")
        result.require(len(set(self.expirations)) > 1, "the node's session was not extended")


def _suffer(act: Act, nodes: SqlNodes, seconds: float) -> Witness:
    witness, is_over = Witness(), threading.Event()
    running = act.begin(lambda: _connect(nodes, "mallory"), ("127.0.0.1", nodes.ports[NODE]))
    work = (_read, _log_in, _watch_session)
    threads = [threading.Thread(target=_noting, args=(each, nodes, witness, is_over)) for each in work]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    is_over.set()
    for thread in threads:
        thread.join()
    running.end()
    witness.answers = running.answers
    return witness


Work = Callable[[SqlNodes, Witness, threading.Event], None]


def _noting(work: Work, nodes: SqlNodes, witness: Witness, is_over: threading.Event) -> None:
    try:
        work(nodes, witness, is_over)
    except psycopg.Error as error:
        witness.errors.append(f"{work.__name__}: {error!r}")


def _read(nodes: SqlNodes, witness: Witness, is_over: threading.Event) -> None:
    with _connect(nodes, "alice") as client:
        while not is_over.wait(PAUSE_SECONDS):
            began = time.monotonic()
            client.execute("SELECT v FROM t WHERE id = 7", prepare=True).fetchone()
            witness.reads.append(time.monotonic() - began)


def _log_in(nodes: SqlNodes, witness: Witness, is_over: threading.Event) -> None:
    while not is_over.wait(LOGIN_PAUSE_SECONDS):
        for user in ("alice", "root"):
            began = time.monotonic()
            with _connect(nodes, user) as client:
                client.execute("SELECT count(*) FROM t" if user == "root" else "SELECT 1").fetchone()
            witness.logins.append(time.monotonic() - began)


def _watch_session(nodes: SqlNodes, witness: Witness, is_over: threading.Event) -> None:
    with _connect(nodes, "root") as client:
        while not is_over.wait(LOGIN_PAUSE_SECONDS):
            row = client.execute(EXPIRATION).fetchone()
            assert row is not None
            witness.expirations.append(row[0])


def _require_peace(nodes: SqlNodes, before: "_Usage", result: Result) -> None:
    """What mallory had is over, and its memory and threads are given back."""
    until, grown = time.monotonic() + RETURN_SECONDS_MAX, ["not looked at"]
    with _connect(nodes, "root") as root:
        while grown and time.monotonic() < until:
            time.sleep(LOGIN_PAUSE_SECONDS)
            row = root.execute(SESSIONS_LEFT).fetchone()
            assert row is not None
            grown = [f"{row[0]} sessions of mallory are left"] * bool(row[0]) + _usage(nodes).beyond(before)
    result.violations += grown


@dataclass(frozen=True)
class _Usage:
    resident_bytes: int
    threads: int

    def beyond(self, before: "_Usage") -> list[str]:
        grown = self.resident_bytes - before.resident_bytes
        return [f"{grown >> 20} MiB stay"] * (grown > GROWTH_BYTES_MAX) + [
            f"{self.threads} threads, {before.threads} before"
        ] * (self.threads > before.threads + THREADS_MORE_MAX)


def _usage(nodes: SqlNodes) -> _Usage:
    lines = Path(f"/proc/{nodes.process(NODE).pid}/status").read_text().splitlines()
    values = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    return _Usage(int(values["VmRSS"][0]) * 1024, int(values["Threads"][0]))


def _connect(nodes: SqlNodes, user: str) -> "psycopg.Connection[tuple[Any, ...]]":
    return nodes.connect(NODE, user=user, password=PASSWORD)
