"""One plain user asks for more memory than there is, in every way, many times at once; then disconnects.

    for each kind of statement:  64 clients at once ──► an answer, or 53200 and its like
                                 meanwhile others' statements go on
                                 the process stays under the node's limit
                                 10 s after the last has gone it has what it had before, and 200 MB at most

A short run has fewer clients and lower limits.

Walk: `__main__` calls `memory` with a `Run`.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from tests.faults.harness import Result, Run
from tests.faults.sql_nodes import SqlNodes

MIB = 1 << 20
LEFT_BYTES_MAX = 200 * MIB
GOES_WITHIN_SECONDS = 10.0
STATEMENT_SECONDS = 20
MEETING_SECONDS = 15.0
"""So long clients wait for each other, so that all hold what they have at the same time."""

FLUSHES = "SELECT count(*) FROM system.jobs WHERE job_type = 'flush' AND state = 'succeeded'"
FLUSH_SECONDS_MAX = 60.0

EXPECTED = {"53200", "54000", "57014", "22P04", "53300"}
"""No memory, too long, time-out, bad COPY data, too many at once."""

DISCONNECTED = "a message that does not end"
"""Who sends what finds no room is disconnected (53200), and may not come to read why."""

Ask = Callable[["psycopg.Connection[Any]"], None]


class Size(NamedTuple):
    clients: int
    node_bytes: int
    statement_bytes: int
    rows: int
    """Of lists of constants."""


QUICK = Size(clients=8, node_bytes=700 * MIB, statement_bytes=64 * MIB, rows=10_000)
LONG = Size(clients=64, node_bytes=2_048 * MIB, statement_bytes=256 * MIB, rows=100_000)


def memory(run: Run) -> Result:
    size = QUICK if run.is_quick else LONG
    with SqlNodes(run, "memory") as nodes:
        nodes.start("n0")
        _set_up(nodes, size)
        with _Neighbour(nodes.dsn("n0")) as neighbour:
            attack = _Attack(nodes, size)
            for name, ask in _kinds(size).items():
                attack.run(name, ask)
        violations = [*attack.violations, *neighbour.violations]
        counts: dict[str, object] = {
            "refused": attack.codes.total() - attack.codes[""],
            "answered": attack.codes[""],
        }
        counts |= {"neighbour": neighbour.answers, "peak_mb": attack.peak_bytes // MIB}
        return Result(violations=violations, counts=counts)


def _set_up(nodes: SqlNodes, size: Size) -> None:
    with nodes.connect("n0") as root:
        # As nodes have them: commits of 60 MB may keep the store's one writer for seconds on a busy disk.
        root.execute("RESET CLUSTER SETTING liveness.ttl")
        root.execute("RESET CLUSTER SETTING liveness.heartbeat")
        root.execute("CREATE USER ann")
        root.execute("CREATE TABLE things (id int PRIMARY KEY, name text)")
        root.execute("SET CLUSTER SETTING lake.flush_bytes = 1024")
        root.execute("INSERT INTO things SELECT g, 'thing ' || g FROM generate_series(1, 1000) g")
        root.execute("CREATE TABLE copied (id int PRIMARY KEY, data bytea)")
        root.execute("GRANT ALL ON things, copied TO ann")
        root.execute("GRANT CREATE ON SCHEMA public TO ann")
        _await_flush(root)
        root.execute("RESET CLUSTER SETTING lake.flush_bytes")
        root.execute(f"SET CLUSTER SETTING sql.node_memory = {size.node_bytes}".encode())
        root.execute(f"SET CLUSTER SETTING sql.query_memory = {size.statement_bytes}".encode())
        root.execute("SELECT count(*), max(length(name)) FROM things").fetchall()


def _await_flush(root: "psycopg.Connection[Any]") -> None:
    """The first flush of a node loads Arrow, which stays: it is there before the attack."""
    until = time.monotonic() + FLUSH_SECONDS_MAX
    while root.execute(FLUSHES).fetchone() == (0,):
        assert time.monotonic() < until, "no flush has ended"
        time.sleep(0.1)


def _kinds(size: Size) -> dict[str, Ask]:
    numbers = ",".join(map(str, range(size.rows)))
    rows = ",".join(f"({number},'x')" for number in range(size.rows))
    return {
        "scroll cursors": _cursors("SCROLL CURSOR", "MOVE FORWARD ALL IN c{n}"),
        "held cursors": _cursors("CURSOR WITH HOLD", "SELECT 1"),
        "string_agg": _query(
            "SELECT length(string_agg(repeat('x', 5000), '')) FROM generate_series(1, 40000)"
        ),
        "array_agg": _query("SELECT cardinality(array_agg(g::text)) FROM generate_series(1, 2000000) g"),
        "jsonb_agg": _query("SELECT length(jsonb_agg(g)::text) FROM generate_series(1, 500000) g"),
        "repeat": _query("SELECT length(repeat('x', 60000000) || 'x'), repeat('y', 60000000) < 'z'"),
        "too long": _query("SELECT repeat('x', 100000000)"),
        "json": _query("SELECT jsonb_array_length(('[' || repeat('1.5,', 3000000) || '1]')::jsonb)"),
        "array": _query(
            "SELECT cardinality(ARRAY(SELECT repeat('x', 500) || g FROM generate_series(1, 300000) g))"
        ),
        "split": _query("SELECT cardinality(string_to_array(repeat('ab,', 5000000), ','))"),
        "sort": _query("SELECT g FROM generate_series(1, 3000000) g ORDER BY g DESC OFFSET 2999999"),
        "hash join": _query(
            "SELECT count(*) FROM generate_series(1, 1000000) a JOIN generate_series(1, 1000000) b ON a = b"
        ),
        "groups": _query("SELECT count(*) FROM (SELECT g FROM generate_series(1, 1000000) g GROUP BY g) t"),
        "IN": _query(f"SELECT 1 WHERE 1 IN ({numbers})"),
        "VALUES": _query(f"SELECT count(*) FROM (VALUES {rows}) v"),
        "prepared": _prepared(f"SELECT count(*) FROM (VALUES {rows}) v"),
        "binary COPY": _copy_binary,
        "a long row of COPY": _copy_text,
        DISCONNECTED: _half_message,
        "a client that does not read": _not_reading,
        "open transactions": _open_transaction,
        "savepoints": _savepoints,
    }


def _query(text: str) -> Ask:
    def ask(client: "psycopg.Connection[Any]") -> None:
        client.execute(text.encode())

    return ask


def _cursors(kind: str, then: str) -> Ask:
    """77 in all of 64 clients would take 10 GB: each opens some."""

    def ask(client: "psycopg.Connection[Any]") -> None:
        client.execute("BEGIN")
        for number in range(3):
            client.execute(
                f"DECLARE c{number} {kind} FOR SELECT g, repeat('x', 2000) || g "
                "FROM generate_series(1, 60000) g".encode()
            )
            client.execute(then.format(n=number).encode())

    return ask


def _prepared(text: str) -> Ask:
    def ask(client: "psycopg.Connection[Any]") -> None:
        for number in range(20):
            client.execute(f"PREPARE p{number} AS {text}".encode())

    return ask


def _open_transaction(client: "psycopg.Connection[Any]") -> None:
    """As much as one may write, not committed."""
    client.execute("BEGIN")
    for _ in range(12):
        client.execute(
            "INSERT INTO copied SELECT g + (random() * 1000000000)::int, repeat('x', 1000000)::bytea "
            "FROM generate_series(1, 5) g"
        )


def _savepoints(client: "psycopg.Connection[Any]") -> None:
    """Each keeps a large row as it was."""
    client.execute("BEGIN")
    row = client.execute("INSERT INTO copied SELECT (random() * 1000000000)::int, '' RETURNING id").fetchone()
    assert row is not None
    for number in range(200):
        client.execute(f"SAVEPOINT s{number}".encode())
        client.execute("UPDATE copied SET data = repeat('x', 1000000)::bytea WHERE id = %s", (row[0],))


def _copy_binary(client: "psycopg.Connection[Any]") -> None:
    """A field that is said to be as long as can be."""
    head = b"PGCOPY\n\xff\r\n\0" + bytes(8) + (2).to_bytes(2, "big")
    with client.cursor().copy("COPY copied FROM STDIN BINARY") as stream:
        stream.write(head + (4).to_bytes(4, "big") + bytes(4) + (2**31 - 1).to_bytes(4, "big"))
        for _ in range(200):
            stream.write(bytes(MIB))


def _copy_text(client: "psycopg.Connection[Any]") -> None:
    with client.cursor().copy("COPY copied FROM STDIN") as stream:
        stream.write(b"1\t")
        for _ in range(200):
            stream.write(b"x" * MIB)


def _half_message(client: "psycopg.Connection[Any]") -> None:
    """60 MB of a Bind are sent, and the rest is not."""
    connection = client.pgconn
    connection.nonblocking = 1
    connection.send_query_params(b"SELECT length($1)", [b"x" * 60_000_000])
    until = time.monotonic() + 1.0
    while connection.flush() and time.monotonic() < until:
        time.sleep(0.01)


def _not_reading(client: "psycopg.Connection[Any]") -> None:
    client.pgconn.send_query(b"SELECT repeat('x', 20000000) FROM generate_series(1, 100)")
    client.pgconn.flush()
    time.sleep(1.0)


class _Attack:
    def __init__(self, nodes: SqlNodes, size: Size) -> None:
        self._dsn = nodes.dsn("n0").replace("user=root", "user=ann")
        self._pid = nodes.process("n0").pid
        self._size = size
        self.violations: list[str] = []
        self.codes: Counter[str] = Counter()
        self.peak_bytes = 0
        self._before_bytes = self._resident("VmRSS")

    def run(self, name: str, ask: Ask) -> None:
        Path(f"/proc/{self._pid}/clear_refs").write_text("5")  # the peak counts from here on
        meeting = threading.Barrier(self._size.clients)
        threads = [
            threading.Thread(target=self._work, args=(name, ask, meeting)) for _ in range(meeting.parties)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        peak = self._resident("VmHWM")
        self.peak_bytes = max(self.peak_bytes, peak)
        if peak > self._size.node_bytes:
            self.violations.append(f"{name}: the process had {peak // MIB} MB, above the node's limit")
        self._await_return(name)

    def _work(self, name: str, ask: Ask, meeting: threading.Barrier) -> None:
        code = ""
        try:
            with psycopg.connect(self._dsn, autocommit=True) as client:
                client.execute(f"SET statement_timeout = '{STATEMENT_SECONDS}s'".encode())
                try:
                    ask(client)
                except psycopg.Error as error:
                    code = error.sqlstate or "gone"
                    if error.sqlstate not in EXPECTED and not (
                        error.sqlstate is None and name == DISCONNECTED
                    ):
                        self.violations.append(f"{name}: {error.sqlstate} {error}")
                with suppress(threading.BrokenBarrierError):
                    meeting.wait(MEETING_SECONDS)
        except psycopg.Error as error:
            code = error.sqlstate or "gone"
        self.codes[code] += 1

    def _await_return(self, name: str) -> None:
        until = time.monotonic() + GOES_WITHIN_SECONDS
        while (left := self._resident("VmRSS") - self._before_bytes) > LEFT_BYTES_MAX:
            if time.monotonic() > until:
                self.violations.append(f"{name}: {left // MIB} MB more than before are left")
                return
            time.sleep(0.2)

    def _resident(self, field: str) -> int:
        lines = Path(f"/proc/{self._pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


class _Neighbour:
    """Another user: reads rows, and sorts a few."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self.answers = 0
        self.violations: list[str] = []

    def __enter__(self) -> "_Neighbour":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        if not self.answers:
            self.violations.append("the neighbour got no answer")

    def _work(self) -> None:
        try:
            with psycopg.connect(self._dsn, autocommit=True) as client:
                while not self._is_over.wait(0.02):
                    client.execute("SELECT name FROM things WHERE id = 7")
                    client.execute("SELECT g FROM generate_series(1, 2000) g ORDER BY g DESC LIMIT 3")
                    self.answers += 1
        except psycopg.Error as error:
            self.violations.append(f"the neighbour: {error}")
