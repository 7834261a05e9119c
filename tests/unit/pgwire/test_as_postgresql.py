"""The same messages to a real PostgreSQL: the same kinds of answers, tags, SQLSTATEs and statuses.

Two things differ on purpose and are not here: where another message interrupts a COPY, PostgreSQL ends the
connection and we do not; where a length is impossible, it ends it without a word and we say why.
"""

import socket
import struct
from collections.abc import Iterator

import pytest

from tests.postgres_server import Server
from tests.unit.pgwire.wire import (
    FLUSH,
    SYNC,
    VERSION_3_0,
    Heard,
    bind,
    close,
    describe,
    execute,
    heard,
    message,
    opened,
    parse,
    query,
    startup,
)

SELECT = "select $1"
"""Three columns of the toy's; here it is one."""
COPY_IN, COPY_OUT = query("copy t from stdin"), query("copy t to stdout")
ROW, DONE, FAIL = message("d", b"4\td\n"), message("c"), message("f", b"no\0")
END = query("select 1")
"""Both answer this last, whatever came before."""

SCRIPTS: dict[str, list[bytes]] = {
    "a query": [query("select 1")],
    "several statements": [query("begin; select 1; commit")],
    "a block": [query("begin"), query("select 1"), query("rollback")],
    "nothing": [query("")],
    "only semicolons": [query(" ; ; ")],
    "prepared": [parse(SELECT, "s", [23]), bind(b"41", statement="s"), describe("P"), execute(), SYNC],
    "described": [parse(SELECT, "s", [23]), describe("S", "s"), SYNC],
    "without rows": [parse("begin"), describe("S"), bind(), describe("P"), execute(), SYNC, query("commit")],
    "prepared twice": [parse("select 1", "s"), parse("select 1", "s"), SYNC],
    "nothing prepared": [parse(""), bind(), describe("P"), execute(), SYNC],
    "a pipeline": [parse(SELECT, "s", [23]), *[bind(b"1", statement="s"), execute()] * 3, SYNC],
    "several syncs": [SYNC, SYNC],
    "flushed": [parse("select 1"), FLUSH, bind(), FLUSH, execute(), FLUSH, SYNC],
    "no such statement": [bind(statement="none"), execute(), SYNC],
    "no such portal": [execute(portal="none"), SYNC],
    "no such statement to describe": [describe("S", "none"), SYNC],
    "no such portal to describe": [describe("P", "none"), SYNC],
    "nothing to close": [close("S", "none"), close("P", "none"), SYNC],
    "closed": [parse("select 1", "s"), close("S", "s"), bind(statement="s"), SYNC],
    "too few values": [parse(SELECT, types=[23]), bind(), execute(), SYNC],
    "too many values": [parse(SELECT, types=[23]), bind(b"1", b"2"), execute(), SYNC],
    "too many formats": [parse(SELECT, types=[23]), bind(b"1", formats=[0, 0]), SYNC],
    "no such format": [parse(SELECT, types=[23]), bind(b"1", formats=[7]), SYNC],
    "no number": [parse(SELECT, types=[23]), bind(b"x"), SYNC],
    "no binary number": [parse(SELECT, types=[23]), bind(b"xyz", formats=[1]), SYNC],
    "bind is cut off": [parse(SELECT, types=[23]), message("B", b"\0\0\0\0\0\1\0\0"), SYNC],
    "execute is cut off": [message("E", b"\0"), SYNC],
    "describe of nothing": [message("D", b"X\0"), SYNC],
    "no UTF-8": [message("Q", b"select '\xff'\0")],
    "skips to sync": [execute(portal="none"), parse("select 1"), query("select 1"), SYNC],
    "an error in a block": [query("begin"), execute(portal="none"), SYNC, query("commit")],
    "copy out": [COPY_OUT],
    "copy out, extended": [parse("copy t to stdout"), bind(), execute(), SYNC],
    "copy in": [COPY_IN, ROW, ROW, DONE],
    "copy in, extended": [parse("copy t from stdin"), bind(), execute(), SYNC, ROW, FLUSH, DONE, SYNC],
    "copy in given up": [COPY_IN, ROW, FAIL],
    "copy in given up, extended": [parse("copy t from stdin"), bind(), execute(), ROW, FAIL, ROW, SYNC],
    "copy in and more": [query("copy t from stdin; select 1"), ROW, DONE],
    "copy data without a copy": [ROW, DONE, FAIL],
    "an unknown message": [message("?")],
}


class Peer:
    """A raw connection to PostgreSQL."""

    def __init__(self, server: Server) -> None:
        self._socket = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        self._file = self._socket.makefile("rb")
        self.say(startup(VERSION_3_0, user="postgres", database="postgres"))
        self.answers()
        self.say(query("create temp table t (a int, b text); insert into t values (1,'a'), (2,'b'), (3,'c')"))
        self.answers()

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def say(self, *messages: bytes) -> None:
        self._socket.sendall(b"".join(messages))

    def answers(self, ready: int = 1) -> list[Heard]:
        """Up to so many ReadyForQuery, or to the end."""
        found: list[Heard] = []
        while sum(each.kind == "Z" for each in found) < ready:
            head = self._file.read(5)
            if len(head) < 5:
                break
            found += heard(head + self._file.read(struct.unpack_from(">I", head, 1)[0] - 4))
        return found


@pytest.fixture
def peer(postgres: Server) -> Iterator[Peer]:
    peer = Peer(postgres)
    yield peer
    peer.close()


@pytest.mark.parametrize("name", SCRIPTS)
def test_answers_are_those_of_postgresql(peer: Peer, name: str) -> None:
    talk = opened()
    ours = list(heard(talk.raw(*SCRIPTS[name], END)))
    peer.say(*SCRIPTS[name], END)
    theirs = peer.answers(ready=sum(each.kind == "Z" for each in ours) or 1)
    assert [str(each) for each in ours] == [str(each) for each in theirs]
