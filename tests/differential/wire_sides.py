"""Two connections that get the same messages, byte for byte: one to Tenure, one to PostgreSQL.

Ours has no socket, but where a cancel is tested: the protocol's state machine stands over the sessions of a
real node, and is given the messages in the pieces that a script has. So a piece that ends between Execute and
Sync is always one. What it waits for is done at once, in this thread.

Answers are shown as text, with all that a client can see but numbers of tables and sources' files and lines.

Walk: `test_conversations` and `__main__` compare what `conversations` and `wire_scripts` say, by `two_sides`.
"""

import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from select import select
from tempfile import TemporaryDirectory
from threading import Event
from uuid import uuid4

import psycopg

from tenure.front import Front
from tenure.pgwire.connection_slots import ConnectionSlots
from tenure.pgwire.login.startup import Service
from tenure.pgwire.waits import CommitWait
from tests.postgres_server import Server
from tests.unit.pgwire.toy import LetIn
from tests.unit.pgwire.wire import SYNC, TERMINATE, Heard, Talk, cancel_request, heard, query, startup
from tests.unit.sql.talking import a_node, front_of

COMMIT_SECONDS = 30
CANCEL_SECONDS = 0.1
TABLES = ("CREATE TABLE w (id int PRIMARY KEY, v text)",)
SETUP = query("DELETE FROM w; INSERT INTO w SELECT n, 'v' || n FROM generate_series(1, 6) AS g (n)")
MARK = "the end of this"
END = query(f"ROLLBACK; SELECT '{MARK}'")
"""Both answer this last, whatever came before."""

NOT_OURS = "skipping cleanup for portal"
"""PostgreSQL's word about its own bookkeeping."""

NO_ROWS = "unsupported portal strategy"
"""FETCH from a portal that has no rows: PostgreSQL says XX000, as if it were its own mistake."""

STALE = "RevalidateCachedQuery"
"""The routine by which clients know that a plan is stale: the only one of the server's that is ours, too."""


class OurSide(Talk):
    def __init__(self, front: Front) -> None:
        super().__init__(service=Service(front.sessions, LetIn(), ConnectionSlots(lambda: 1)))
        self.raw(startup(database="defaultdb"))

    def attend(self) -> None:
        wait = self.connection.wait
        if not isinstance(wait, CommitWait):
            return super().attend()
        done = Event()
        wait.pending.submit(done.set)
        assert done.wait(COMMIT_SECONDS)
        return self.connection.resume()

    def talk(self, pieces: Sequence[bytes]) -> list[str]:
        return _shown(heard(b"".join(self.raw(each) for each in [*pieces, END])))

    def close(self) -> None:
        if self.connection.client is not None:
            self.connection.client.close()
        self.connection.close()


class SocketSide:
    def __init__(self, port: int, database: str, user: str = "postgres") -> None:
        self._port = port
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=COMMIT_SECONDS)
        self._file = self._socket.makefile("rb")
        self._socket.sendall(startup(user=user, database=database) + END)
        (self._key,) = (each.body for each in self._up_to_mark() if each.kind == "K")

    def talk(self, pieces: Sequence[bytes]) -> list[str]:
        self._socket.sendall(b"".join([*pieces, END]))
        return _shown(self._up_to_mark())

    def ask(self, *messages: bytes) -> list[str]:
        """What is answered up to ReadyForQuery."""
        self._socket.sendall(b"".join(messages))
        return _shown(self._up_to_ready())

    def _up_to_ready(self) -> Iterator[Heard]:
        for each in self._heard():
            yield each
            if each.kind == "Z":
                return

    def _heard(self) -> Iterator[Heard]:
        while head := self._file.read(5):
            yield from heard(head + self._file.read(struct.unpack_from(">I", head, 1)[0] - 4))

    def ask_and_cancel(self, asked: bytes) -> list[str]:
        """Something that takes its time, and says nothing before it is canceled."""
        self._socket.sendall(asked)
        pid, secret = struct.unpack_from(">i", self._key)[0], self._key[4:]
        while not select([self._socket], [], [], CANCEL_SECONDS)[0]:
            with socket.create_connection(("127.0.0.1", self._port)) as another:
                another.sendall(cancel_request(pid, secret))
        return self.ask(SYNC)

    def _up_to_mark(self) -> Iterator[Heard]:
        is_last = False
        for each in self._heard():
            yield each
            is_last = is_last or (each.kind == "D" and each.values == [MARK.encode()])
            if is_last and each.kind == "Z":
                return

    def close(self) -> None:
        self._socket.sendall(TERMINATE)
        self._file.close()
        self._socket.close()


def _shown(answers: Iterator[Heard]) -> list[str]:
    found: list[str] = []
    for each in answers:
        if each.kind == "N" and each.fields["M"].startswith(NOT_OURS):
            continue
        shown = _answer(each)
        while each.kind == "E" and found and found[-1][:2] in _passed_over(shown):
            found.pop()  # how much was on its way says nothing
        found.append(shown)
    return found


def _passed_over(error: str) -> tuple[str, ...]:
    """A plan is looked at again at Bind there, and at Execute here."""
    return ("D ", "T ", "2") if error.endswith(STALE) else ("D ", "T ")


def _answer(each: Heard) -> str:
    match each.kind:
        case "T":
            return f"T {', '.join(_columns(each.body))}"
        case "t":
            return f"t {[*struct.iter_unpack('>I', each.body[2:])]}"
        case "D":
            return f"D {each.values}"
        case "E" | "N":
            fields = each.fields
            routine = STALE if fields.get("R") == STALE else ""
            named = [f"{code}={fields[code]}" for code in "stcdn" if code in fields]
            code = "0A000" if fields["M"] == NO_ROWS else fields["C"]
            head = f"{each.kind} {fields['S']}/{fields['V']} {code} {fields['M']}"
            return " ".join([head, *named, routine]).rstrip()
        case "S":
            return f"S {each.body!r}"
        case "d" | "G" | "H":
            return f"{each.kind} {each.body!r}"
    return str(each)


def _columns(body: bytes) -> Iterator[str]:
    at = 2
    while at < len(body):
        end = body.index(0, at)
        _, _, oid, size, modifier, code = struct.unpack_from(">IhIhih", body, end + 1)
        yield f"{body[at:end].decode()}:{oid}/{size}/{modifier}/{code}"
        at = end + 19


@contextmanager
def two_sides(server: Server) -> Iterator["TwoSides"]:
    """A node, and a database of its own on the server."""
    name = f"conversations_{uuid4().hex[:12]}"
    with TemporaryDirectory() as directory, a_node(Path(directory)) as node:
        _ask(server, f"CREATE DATABASE {name}")
        try:
            yield TwoSides(front_of(node), server.port, name)
        finally:
            _ask(server, f"DROP DATABASE {name} WITH (FORCE)")


class TwoSides:
    def __init__(self, front: Front, port: int, database: str) -> None:
        self._front = front
        self._port, self._database = port, database
        self.compare([query(each) for each in TABLES])

    def by_socket(self) -> tuple[SocketSide, SocketSide]:
        return (
            SocketSide(self._front.port, "defaultdb", user="root"),
            SocketSide(self._port, self._database),
        )

    def compare(self, pieces: Sequence[bytes]) -> tuple[list[str], list[str]]:
        """What each side answers, on a connection of its own."""
        ours, theirs = OurSide(self._front), SocketSide(self._port, self._database)
        try:
            ours.talk([SETUP])
            theirs.talk([SETUP])
            return ours.talk(pieces), theirs.talk(pieces)
        finally:
            ours.close()
            theirs.close()


def _ask(server: Server, text: str) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(text.encode())
