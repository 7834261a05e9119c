"""The binary format of scalars: fixed sizes, big-endian, as PostgreSQL's send and receive functions.

    type                      bytes
    bool, int2/4/8, float4/8  1, 2/4/8, 4/8
    date                      4: days since 2000-01-01
    time                      8: microseconds since midnight
    timestamp, timestamptz    8: microseconds since 2000-01-01 (UTC)
    interval                  16: microseconds, days, months
    uuid                      16
    text, varchar, char(n), json, enums   UTF-8
    jsonb                     a version, 1, then its text
    bytea                     itself

Invariant (binary-hostile): bytes of any kind give a value or a UserError, and cost no more memory than
a fixed multiple of their length and of the limits named here.

Walk: `pgwire.values.codecs` looks types up in `ENCODERS` and `DECODERS`; `binary_numeric` holds what is
longer.
"""

import struct
from collections.abc import Callable
from datetime import date, datetime, time
from uuid import UUID

from tenure.base.errors import (
    BytesLeft,
    DatetimeOverflow,
    InvalidBinary,
    NotSupported,
    ProtocolViolation,
)
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.encodings import no_utf8
from tenure.expr.types.interval import MICROS_PER_DAY, Interval
from tenure.expr.types.json_values import Json, Jsonb
from tenure.expr.types.system_types import REGS, letter_of_byte
from tenure.expr.types.time_types import (
    beyond_dates,
    instant_of,
    micros_of,
    time_micros,
    time_of,
    timestamp_of,
)
from tenure.pgwire.values.binary_numeric import decode_numeric, encode_numeric

Encode = Callable[[Datum], bytes]
Decode = Callable[[bytes], Datum]

JSONB_VERSION = 1
_EPOCH_DAY = date(2000, 1, 1).toordinal()
_DAY_ENDS = (-(2**31), 2**31 - 1)
_MICRO_ENDS = (-(2**63), 2**63 - 1)
"""The wire values of -infinity and infinity."""

_INTERVAL = struct.Struct("!qii")
_DAYS, _MICROS = struct.Struct("!i"), struct.Struct("!q")


def text_of(data: bytes) -> str:
    """Raises UnknownCharacter for invalid UTF-8 or a zero byte."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise no_utf8(data, error.start) from None
    if "\0" in text:
        raise no_utf8(data, data.index(0))
    return text


def unpack(layout: struct.Struct, data: bytes) -> tuple[Datum, ...]:
    """Too few bytes are 08P01, too many 22P03, as in PostgreSQL."""
    try:
        return layout.unpack(data)
    except struct.error:
        if len(data) < layout.size:
            raise ProtocolViolation("insufficient data left in message") from None
        raise BytesLeft from None


def _fixed(layout: struct.Struct, make: Callable[..., Datum]) -> Decode:
    """As `unpack`; a fault of the value is reported before surplus bytes."""

    def decode(data: bytes) -> Datum:
        value = make(*unpack(layout, data[: layout.size]))
        if len(data) > layout.size:
            raise BytesLeft
        return value

    return decode


def _packed(format: str) -> tuple[Encode, Decode]:
    layout = struct.Struct(format)
    return layout.pack, lambda data: unpack(layout, data)[0]


def _encode_bool(value: bool) -> bytes:
    return b"\1" if value else b"\0"


def _decode_bool(data: bytes) -> bool:
    if not data:
        raise ProtocolViolation("no data left in message")
    if len(data) > 1:
        raise BytesLeft
    return data != b"\0"


def _decode_letter(data: bytes) -> str:
    if not data:
        raise ProtocolViolation("no data left in message")
    if len(data) > 1:
        raise BytesLeft
    return letter_of_byte(data[0])


def _decode_uuid(data: bytes) -> UUID:
    return UUID(bytes=unpack(_UUID, data)[0])


_UUID = struct.Struct("!16s")


def _encode_date(value: date) -> bytes:
    return _DAYS.pack(value.toordinal() - _EPOCH_DAY)


def _date_of(days: int) -> date:
    if days in _DAY_ENDS:
        raise NotSupported("infinite dates are not supported")
    try:
        return date.fromordinal(days + _EPOCH_DAY)
    except (ValueError, OverflowError):
        raise beyond_dates(days + _EPOCH_DAY) from None


def _encode_time(value: time) -> bytes:
    return _MICROS.pack(time_micros(value))


def _time_of(micros: int) -> time:
    if not 0 <= micros <= MICROS_PER_DAY:
        raise DatetimeOverflow("time out of range")
    return time_of(micros)


def _encode_timestamp(value: datetime) -> bytes:
    return _MICROS.pack(micros_of(value))


def _timestamp_of(micros: int) -> datetime:
    return timestamp_of(_finite(micros))


def _instant_of(micros: int) -> datetime:
    return instant_of(_finite(micros))


def _finite(micros: int) -> int:
    if micros in _MICRO_ENDS:
        raise NotSupported("infinite timestamps are not supported")
    return micros


def _encode_interval(value: Interval) -> bytes:
    return _INTERVAL.pack(value.micros, value.days, value.months)


def _interval_of(micros: int, days: int, months: int) -> Interval:
    if any((micros, days, months) == (_MICRO_ENDS[n], _DAY_ENDS[n], _DAY_ENDS[n]) for n in (0, 1)):
        raise NotSupported("infinite intervals are not supported")
    return Interval(months, days, micros)


def _encode_json(value: Json) -> bytes:
    return value.text.encode()


def decode_jsonb(type: Type) -> Decode:
    def decode(data: bytes) -> Jsonb:
        if not data:
            raise ProtocolViolation("insufficient data left in message")
        if data[0] != JSONB_VERSION:
            raise InvalidBinary(f"unsupported jsonb version number {data[0]}")
        value: Jsonb = type.parse(text_of(data[1:]))
        return value

    return decode


def encode_jsonb(type: Type) -> Encode:
    return lambda value: b"\1" + type.render(value).encode()


def decode_as_text(type: Type) -> Decode:
    return lambda data: type.parse(text_of(data))


ENCODERS: dict[str, Encode] = {
    "bool": _encode_bool,
    "text": str.encode,
    "varchar": str.encode,
    "char": str.encode,
    "name": str.encode,
    '"char"': lambda value: value.encode("latin-1") or b"\0",
    **dict.fromkeys(REGS, lambda reg: struct.pack("!I", reg.oid)),
    **dict.fromkeys(("unknown", "aclitem", "pg_node_tree"), str.encode),
    "bytea": bytes,
    "uuid": lambda value: bytes(value.bytes),
    "numeric": encode_numeric,
    "date": _encode_date,
    "time": _encode_time,
    "timestamp": _encode_timestamp,
    "timestamptz": _encode_timestamp,
    "interval": _encode_interval,
    "json": _encode_json,
    "void": lambda value: b"",
}
DECODERS: dict[str, Decode] = {
    "bytea": bytes,
    '"char"': _decode_letter,
    "uuid": _decode_uuid,
    "numeric": decode_numeric,
    "date": _fixed(_DAYS, _date_of),
    "time": _fixed(_MICROS, _time_of),
    "timestamp": _fixed(_MICROS, _timestamp_of),
    "timestamptz": _fixed(_MICROS, _instant_of),
    "interval": _fixed(_INTERVAL, _interval_of),
    "unknown": text_of,
    "text": text_of,
}
DECODERS["bool"] = _decode_bool
for _name, _format in (
    ("int2", "!h"),
    ("int4", "!i"),
    ("int8", "!q"),
    ("oid", "!I"),
    ("xid", "!I"),
    ("float4", "!f"),
    ("float8", "!d"),
):
    ENCODERS[_name], DECODERS[_name] = _packed(_format)
