"""A client without a socket: writes messages, reads answers, and does what a connection waits for.

    talk = Talk(toys)               a connection that has logged in
    talk.say(query("select 1"))     "T D C:SELECT 1 Z:I": the answers by their letters, with what matters

Walk: the tests of `pgwire`, and `tests.fuzz_wire`.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tenure.pgwire.connection import Connection
from tenure.pgwire.connection_slots import ConnectionSlots
from tenure.pgwire.login.startup import Authenticator, Service
from tenure.pgwire.waits import CommitWait, InThread
from tenure.sql.session.answers import Endpoints
from tests.unit.pgwire.toy import LetIn, Toys

VERSION_3_0, VERSION_3_2 = 3 << 16, 3 << 16 | 2
SSL_REQUEST = struct.pack(">II", 8, 80877103)
GSSENC_REQUEST = struct.pack(">II", 8, 80877104)


def message(kind: str, body: bytes = b"") -> bytes:
    return kind.encode() + struct.pack(">I", len(body) + 4) + body


def startup(version: int = VERSION_3_0, **parameters: str) -> bytes:
    named = {"user": "root", "database": "db", **parameters}
    body = struct.pack(">I", version)
    body += b"".join(f"{name}\0{value}\0".encode() for name, value in named.items()) + b"\0"
    return struct.pack(">I", len(body) + 4) + body


def cancel_request(pid: int, secret: bytes) -> bytes:
    return struct.pack(">IIi", 12 + len(secret), 80877102, pid) + secret


def query(text: str) -> bytes:
    return message("Q", text.encode() + b"\0")


def parse(text: str, name: str = "", types: Sequence[int] = ()) -> bytes:
    oids = b"".join(struct.pack(">I", oid) for oid in types)
    return message("P", f"{name}\0{text}\0".encode() + struct.pack(">H", len(types)) + oids)


def bind(
    *values: bytes | None,
    statement: str = "",
    portal: str = "",
    formats: Sequence[int] = (),
    results: Sequence[int] = (),
) -> bytes:
    sent = b"".join(
        struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value for value in values
    )
    body = f"{portal}\0{statement}\0".encode() + _shorts(formats)
    return message("B", body + struct.pack(">H", len(values)) + sent + _shorts(results))


def describe(kind: str, name: str = "") -> bytes:
    return message("D", f"{kind}{name}\0".encode())


def close(kind: str, name: str = "") -> bytes:
    return message("C", f"{kind}{name}\0".encode())


def execute(limit: int = 0, portal: str = "") -> bytes:
    return message("E", f"{portal}\0".encode() + struct.pack(">i", limit))


SYNC, FLUSH, TERMINATE = message("S"), message("H"), message("X")


def _shorts(values: Sequence[int]) -> bytes:
    return struct.pack(f">H{len(values)}H", len(values), *values)


class Heard(NamedTuple):
    kind: str
    body: bytes

    @property
    def fields(self) -> dict[str, str]:
        """Of an error or a notice."""
        parts = self.body.rstrip(b"\0").split(b"\0")
        return {part[:1].decode(): part[1:].decode() for part in parts}

    @property
    def values(self) -> list[bytes | None]:
        """Of a row."""
        at, values = 2, list[bytes | None]()
        while at < len(self.body):
            (length,) = struct.unpack_from(">i", self.body, at)
            values.append(None if length < 0 else self.body[at + 4 : at + 4 + length])
            at += 4 + max(0, length)
        return values

    def __str__(self) -> str:
        match self.kind:
            case "C":
                return f"C:{self.body[:-1].decode()}"
            case "Z":
                return f"Z:{self.body.decode()}"
            case "E" | "N":
                return f"{self.kind}:{self.fields['C']}"
        return self.kind


def heard(data: bytes) -> Iterator[Heard]:
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at + 1)
        yield Heard(chr(data[at]), data[at + 5 : at + 1 + length])
        at += 1 + length
    assert at == len(data), "the last answer is not whole"


class Talk:
    """A connection and all it has ever said."""

    def __init__(self, toys: Toys | None = None, *, service: Service | None = None) -> None:
        self.toys = toys or Toys()
        self.connection = Connection(service or service_of(self.toys), Endpoints("127.0.0.1", 5555))
        self.last: list[Heard] = []

    def say(self, *messages: bytes) -> str:
        """The answers in short, rows told once."""
        self.last = list(heard(self.raw(*messages)))
        shown: list[str] = []
        for each in map(str, self.last):
            if each != "D" or shown[-1:] != ["D"]:
                shown.append(each)
        return " ".join(shown)

    def raw(self, *messages: bytes) -> bytes:
        said = bytearray()
        self.connection.receive(b"".join(messages))
        said += self.connection.take_output()
        while self.connection.is_blocked:
            self.attend()
            said += self.connection.take_output()
        return bytes(said)

    def attend(self) -> None:
        """Does what the connection waits for, right here."""
        match self.connection.wait:
            case InThread(call):
                try:
                    value = call()
                except Exception as error:
                    return self.connection.resume(None, error)
                return self.connection.resume(value)
            case CommitWait(pending):
                pending.submit(lambda: None)
        return self.connection.resume()

    @property
    def error(self) -> dict[str, str]:
        return next(each.fields for each in self.last if each.kind == "E")

    @property
    def rows(self) -> list[list[bytes | None]]:
        return [each.values for each in self.last if each.kind == "D"]


def service_of(toys: Toys, authenticator: Authenticator | None = None, **more: object) -> Service:
    return Service(toys, authenticator or LetIn(), ConnectionSlots(lambda: 1), **more)  # type: ignore[arg-type]


def opened(toys: Toys | None = None) -> Talk:
    talk = Talk(toys)
    assert talk.say(startup()).endswith("K Z:I")
    return talk
