"""Messages of PostgreSQL's protocol 3, as bytes: the frontend's are read, the backend's are written.

    a message    type (1 byte), length (4 bytes, counts itself), body
    a packet     the same without a type: start-up, SSLRequest, GSSENCRequest, CancelRequest

Nothing here waits or keeps state. Any fault of a body is a `ProtocolViolation` (08P01) or, for text that is
not UTF-8, `UnknownCharacter` (22021).

Walk: `pgwire.connection` reads and writes messages with this; `pgwire.values.row_format` writes those of
rows.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from typing import Final, NamedTuple

from tenure.base.errors import InvalidParameter, ProtocolViolation
from tenure.expr.types.encodings import UTF8, Encoding
from tenure.pgwire.values.binary import text_of

SSL_REQUEST = 80877103
GSSENC_REQUEST = 80877104
CANCEL_REQUEST = 80877102
PROTOCOL_MAJOR = 3
MINOR_MAX = 2
"""3.2, of PostgreSQL 18: cancel keys may be longer than four bytes."""

INT2: Final = Struct(">h")
INT4: Final = Struct(">i")
UINT2: Final = Struct(">H")
UINT4: Final = Struct(">I")
HEAD: Final = Struct(">cI")

_int4, _uint2 = INT4.unpack_from, UINT2.unpack_from

SYNC = b"S\0\0\0\4"
"""A whole Sync, as it stands in the input."""

PARSE_COMPLETE = b"1\0\0\0\4"
BIND_COMPLETE = b"2\0\0\0\4"
CLOSE_COMPLETE = b"3\0\0\0\4"
NO_DATA = b"n\0\0\0\4"
EMPTY_QUERY = b"I\0\0\0\4"
PORTAL_SUSPENDED = b"s\0\0\0\4"
COPY_DONE = b"c\0\0\0\4"
READY_IDLE = b"Z\0\0\0\5I"
READY_IN_TRANSACTION = b"Z\0\0\0\5T"
READY_FAILED = b"Z\0\0\0\5E"
AUTHENTICATION_OK = b"R\0\0\0\x08\0\0\0\0"

_SASL, _SASL_CONTINUE, _SASL_FINAL = 10, 11, 12


# What the frontend sends.


ReadText = Callable[[bytes], str]
"""Reads text in the client's encoding."""


class Body:
    """Reads a message's body from front to back; `end` insists that nothing is left."""

    __slots__ = ("_at", "_data", "_stop", "_text")

    def __init__(self, data: bytes, at: int = 0, stop: int | None = None, text: ReadText = text_of) -> None:
        self._text = text
        self._data = data
        self._at = at
        self._stop = len(data) if stop is None else stop

    def string(self) -> str:
        end = self._data.find(b"\0", self._at, self._stop)
        if end < 0:
            raise ProtocolViolation("invalid string in message")
        raw = self._data[self._at : end]
        self._at = end + 1
        return self._text(raw)

    def byte(self) -> int:
        return self.take(1)[0]

    def number(self, form: Struct = INT4) -> int:
        value: int = form.unpack(self.take(form.size))[0]
        return value

    def take(self, length: int) -> bytes:
        if length < 0 or self._at + length > self._stop:
            raise ProtocolViolation("insufficient data left in message")
        raw = self._data[self._at : self._at + length]
        self._at += length
        return raw

    def rest(self) -> bytes:
        return self.take(self._stop - self._at)

    def end(self) -> None:
        if self._at != self._stop:
            raise ProtocolViolation("invalid message format")


class Startup(NamedTuple):
    minor: int
    parameters: dict[str, str]


def read_startup(packet: bytes) -> Startup:
    """Reads a start-up packet of protocol 3. `packet` begins with the version."""
    body = Body(packet)
    version = body.number(UINT4)
    if version >> 16 != PROTOCOL_MAJOR:
        raise ProtocolViolation(
            f"unsupported frontend protocol {version >> 16}.{version & 0xFFFF}: "
            f"server supports {PROTOCOL_MAJOR}.0 to {PROTOCOL_MAJOR}.{MINOR_MAX}"
        )
    parameters: dict[str, str] = {}
    while name := body.string():
        parameters[name] = body.string()
    body.end()
    return Startup(version & 0xFFFF, parameters)


class Parse(NamedTuple):
    name: str
    text: str
    types: tuple[int, ...]


def read_parse(data: bytes, at: int, stop: int, read_text: ReadText = text_of) -> Parse:
    body = Body(data, at, stop, read_text)
    name, text = body.string(), body.string()
    count = body.number(UINT2)
    types = _numbers(body.take(4 * count), "I")
    body.end()
    return Parse(name, text, types)


Bind = tuple[str, str, bytes, list[bytes | None], bytes]
"""Portal, statement, formats of the parameters, their values, formats of the results; formats as they
came, a count and as many int2. No NamedTuple: this is made for every query.
"""


def read_bind(data: bytes, at: int, stop: int, read_text: ReadText = text_of) -> Bind:
    """Straight-line code for the same reason; all lengths are checked at the end."""
    try:
        portal_end = data.index(0, at, stop)
        name_end = data.index(0, portal_end + 1, stop)
        formats_at = name_end + 1
        at_count = formats_at + 2 + 2 * _uint2(data, formats_at)[0]
        count = _uint2(data, at_count)[0]
        here = at_count + 2
        values: list[bytes | None] = []
        for _ in range(count):
            length = _int4(data, here)[0]
            here += 4
            if length < 0:
                values.append(None)
            else:
                values.append(data[here : here + length])
                here += length
        end = here + 2 + 2 * _uint2(data, here)[0]
    except (ValueError, struct.error):
        raise ProtocolViolation("insufficient data left in message") from None
    if end != stop:
        raise ProtocolViolation("invalid message format")
    return (
        read_text(data[at:portal_end]) if portal_end > at else "",
        read_text(data[portal_end + 1 : name_end]),
        data[formats_at:at_count],
        values,
        data[here:stop],
    )


def format_codes(raw: bytes, count: int, what: str) -> tuple[int, ...]:
    """One format for each of `count` columns or parameters, from a count and as many codes."""
    codes = _numbers(raw[2:], "H")
    if any(code > 1 for code in codes):
        raise InvalidParameter(f"unsupported format code: {next(code for code in codes if code > 1)}")
    if len(codes) <= 1:
        return (codes[0] if codes else 0,) * count
    if len(codes) != count:
        raise ProtocolViolation(f"bind message has {len(codes)} {what}")
    return codes


def read_sasl_initial(body: Body) -> tuple[str, bytes | None]:
    """The mechanism that the client chose, and its first message."""
    mechanism = body.string()
    length = body.number()
    first = None if length == -1 else body.take(length)
    body.end()
    return mechanism, first


def _numbers(raw: bytes, form: str) -> tuple[int, ...]:
    return Struct(f">{len(raw) // (4 if form == 'I' else 2)}{form}").unpack(raw)


# What the backend sends.


def message(kind: bytes, body: bytes) -> bytes:
    return HEAD.pack(kind, len(body) + 4) + body


def string(text: str, encoding: Encoding = UTF8) -> bytes:
    """A NUL would end the string early, and the rest would be read as something else. Characters that the
    client's encoding lacks become question marks.
    """
    return text.replace("\0", "").encode(encoding.codec, "replace") + b"\0"


def authentication_sasl(mechanisms: Sequence[str]) -> bytes:
    return message(b"R", INT4.pack(_SASL) + b"".join(map(string, mechanisms)) + b"\0")


def authentication_sasl_continue(data: bytes) -> bytes:
    return message(b"R", INT4.pack(_SASL_CONTINUE) + data)


def authentication_sasl_final(data: bytes) -> bytes:
    return message(b"R", INT4.pack(_SASL_FINAL) + data)


def negotiate_version(minor: int, unknown_options: Sequence[str]) -> bytes:
    newest = PROTOCOL_MAJOR << 16 | min(minor, MINOR_MAX)
    names = b"".join(map(string, unknown_options))
    return message(b"v", INT4.pack(newest) + INT4.pack(len(unknown_options)) + names)


def backend_key(pid: int, secret: bytes) -> bytes:
    return message(b"K", INT4.pack(pid) + secret)


def parameter_statuses(parameters: Mapping[str, str], encoding: Encoding = UTF8) -> bytes:
    return b"".join(
        message(b"S", string(name) + string(value, encoding)) for name, value in parameters.items()
    )


def parameter_description(oids: Sequence[int]) -> bytes:
    return message(b"t", UINT2.pack(len(oids)) + b"".join(map(UINT4.pack, oids)))


def command_complete(tag: str) -> bytes:
    raw = tag.encode()
    return HEAD.pack(b"C", len(raw) + 5) + raw + b"\0"


def notification_response(pid: int, channel: str, payload: str, encoding: Encoding = UTF8) -> bytes:
    return message(b"A", INT4.pack(pid) + string(channel, encoding) + string(payload, encoding))


def copy_response(kind: bytes, *, columns: int, is_binary: bool) -> bytes:
    """`kind`: G for in, H for out; all columns have the format of the whole."""
    code = UINT2.pack(is_binary)
    return message(kind, bytes([is_binary]) + UINT2.pack(columns) + code * columns)


def copy_data(data: bytes) -> bytes:
    return HEAD.pack(b"d", len(data) + 4) + data
