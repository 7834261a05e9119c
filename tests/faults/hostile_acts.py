"""What one hostile user does, many times at once: a list to add to.

    Statements(name, text)             each connection runs it again and again
    Statements(..., first=, holder=)   `first` on each connection; `holder` on one more, which stays idle
    StalledLogins(name, packet)        connections that say so much, and no more

Walk: `hostile_user` begins each act in turn, looks at how others fare, and ends it without a farewell.
"""

import os
import select
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import psycopg

CONNECTIONS = 64
LOOK_SECONDS = 0.05
FLOOD_SOCKETS = 600
"""Held at a time: more than a node lets log in at once."""

Connect = Callable[[], "psycopg.Connection[tuple[Any, ...]]"]
"""Of the hostile user."""


class Act(Protocol):
    @property
    def name(self) -> str: ...

    def begin(self, connect: Connect, address: tuple[str, int]) -> "Running": ...


class Running(Protocol):
    answers: int
    """How many of its statements have ended, or how many connections it has made."""

    def end(self) -> None:
        """All at once, and without a word."""


@dataclass(frozen=True)
class Statements:
    name: str
    text: str
    first: str = ""
    holder: str = ""

    def begin(self, connect: Connect, address: tuple[str, int]) -> "Running":
        return _RunningStatements(self, connect)


class _RunningStatements:
    def __init__(self, act: Statements, connect: Connect) -> None:
        self.answers = 0
        self._act = act
        self._is_over = threading.Event()
        self._holder = connect() if act.holder else None
        if self._holder is not None:
            self._holder.execute(act.holder.encode())
        self._clients = [connect() for _ in range(CONNECTIONS)]
        if act.first:
            for client in self._clients:  # before any of them keeps the others of its user waiting
                client.execute(act.first.encode())
        for client in self._clients:
            client.pgconn.send_query(act.text.encode())
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        """Whoever has an answer, or an error, asks again."""
        by_socket = {client.pgconn.socket: client.pgconn for client in self._clients}
        while not self._is_over.is_set() and by_socket:
            for number in select.select(list(by_socket), [], [], LOOK_SECONDS)[0]:
                try:
                    self._answered(by_socket[number])
                except psycopg.Error:
                    del by_socket[number]  # the node has ended it

    def _answered(self, pgconn: psycopg.pq.abc.PGconn) -> None:
        pgconn.consume_input()
        while not pgconn.is_busy():
            if pgconn.get_result() is None:
                self.answers += 1
                pgconn.send_query(self._act.text.encode())
                return

    def end(self) -> None:
        self._is_over.set()
        self._thread.join()
        for client in (*self._clients, *([self._holder] if self._holder else [])):
            with suppress(OSError, psycopg.Error):
                _reset(client.pgconn.socket)
            client.close()


@dataclass(frozen=True)
class StalledLogins:
    name: str
    packet: bytes

    def begin(self, connect: Connect, address: tuple[str, int]) -> "Running":
        return _RunningLogins(self, address)


class _RunningLogins:
    """As many new connections as can be made, one after the other; the oldest are dropped."""

    def __init__(self, act: StalledLogins, address: tuple[str, int]) -> None:
        self.answers = 0
        self._packet = act.packet
        self._address = address
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        sockets: list[socket.socket] = []
        while not self._is_over.is_set():
            with suppress(OSError):
                one = socket.create_connection(self._address, timeout=1)
                sockets.append(one)
                one.sendall(self._packet)
                self.answers += 1
            if len(sockets) > FLOOD_SOCKETS:
                sockets.pop(0).close()
        for one in sockets:
            one.close()

    def end(self) -> None:
        self._is_over.set()
        self._thread.join()


def _reset(number: int) -> None:
    """Ends a connection as a machine does that has crashed: the other side gets RST, without FIN."""
    with socket.socket(fileno=os.dup(number)) as twin:
        twin.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        twin.shutdown(socket.SHUT_RDWR)


def _startup(user: str) -> bytes:
    body = struct.pack(">I", 3 << 16) + f"user\0{user}\0database\0defaultdb\0\0".encode()
    return struct.pack(">I", len(body) + 4) + body


def _doubled(levels: int) -> str:
    """Each level refers to the one before it twice."""
    steps = [f"c{n} AS (SELECT * FROM c{n - 1} UNION ALL SELECT * FROM c{n - 1})" for n in range(1, levels)]
    return f"WITH c0 AS (SELECT 1), {', '.join(steps)} SELECT count(*) FROM c{levels - 1}"


NUMBERS = "generate_series(1, 100000000) n"

ACTS: tuple[Act, ...] = (
    Statements("sleepers", "SELECT pg_sleep(600)"),
    Statements(
        "waiters for a row",
        "UPDATE hostile SET v = v + 1 WHERE id = 1",
        holder="BEGIN; UPDATE hostile SET v = 0 WHERE id = 1",
    ),
    Statements(
        "waiters for a number",
        "SELECT pg_advisory_lock(1)",
        holder="SELECT pg_advisory_lock(1)",
    ),
    Statements("waiters in transactions", "SELECT pg_sleep(600)", first="BEGIN"),
    Statements("computing in Python", f"SELECT count(*) FROM {NUMBERS} WHERE to_char(n, '999') = 'x'"),
    Statements("computing in DuckDB", "SELECT count(*) FROM big a, big b, big c WHERE a.v <> b.v"),
    Statements("computing in transactions", f"SELECT max(md5(n::text)) FROM {NUMBERS}", first="BEGIN"),
    Statements(
        "sleeping, then computing", f"SELECT pg_sleep(0.5), (SELECT max(md5(n::text)) FROM {NUMBERS})"
    ),
    Statements("plans that double", _doubled(14)),
    Statements(
        "lookups with a long pattern",
        "SELECT id FROM t WHERE id = 7 AND repeat('a', 60000) LIKE repeat('%a', 200) || 'b'",
    ),
    Statements(
        "replacing everywhere", "SELECT length(regexp_replace(repeat('ab', 5000000), 'a(b)', 'x', 'g'))"
    ),
    Statements("large JSON", "SELECT jsonb_array_length(('[' || repeat('1.5,', 3000000) || '1]')::jsonb)"),
    StalledLogins("silent logins", b""),
    StalledLogins("logins that stop half-way", _startup("mallory")),
)
