"""Key values as bytes whose order is the order of the values.

A key is a sequence of elements, each a tag byte and the bytes of the type, one after the other:

    tag        type        after the tag
    02, 03     bool        nothing: false, true
    08 .. 28   int         18 + n: n bytes big-endian; 18 - n: the same of a negative, plus 2^8n - 1
    30         float       8 bytes: sign bit flipped, of a negative all bits; -0.0 is 0.0, one NaN
    31         Decimal     class, then for finite ones exponent (an int) and digits in pairs, 00
    38, 39     str, bytes  the (UTF-8) bytes with 00 written as 00 FF, then 00 01
    3A         UUID        16 bytes
    40         date        3 bytes: days since the year 1
    41         time        5 bytes: microseconds since midnight
    42, 43     datetime    8 bytes: microseconds since the year 1; 43 of an aware one, in UTC
    44         timedelta   microseconds, as an int
    48         At          8 bytes: a timestamp
    50         array       its elements, then 00
    7F         None        nothing: NULL sorts last
    80 .. FD   Descending  the complement of all bytes of the element: NULL sorts first

Tags are part of what is stored: they may be added, never changed. 00 and FF are no tags, which
the ends of strings and arrays and the end of a span rely on.

Invariant (key-order): within a type, encode(a) < encode(b) exactly when a < b, and equal values
have equal bytes; None and NaN are greatest; under Descending all of it is the other way round.
It holds for tuples too, as no element's bytes are a prefix of another's.
Invariant (key-prefix): encode(a + b) == encode(a) + encode(b), so keys are put together piece by
piece, and the rows below a prefix are the span [p, prefix_end(p)).
Invariant (key-canonical): bytes that decode are the very bytes that encode makes of the values;
all others raise CorruptData. One row therefore never has two keys.

Simplifications: a Decimal comes back without its trailing zeros (1.00 as 1), an aware datetime
in UTC, an array as a tuple; a time with a time zone is refused.

Walk: `kv.keys` calls `encode`; records and the row encoding above it call `decode` as well; this calls only
`base`.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import MAX_EMAX, MIN_ETINY, Decimal
from typing import Any, TypeAlias
from uuid import UUID

from tenure.base.errors import CorruptData, InvalidParameter
from tenure.base.timestamp import MAX_AT, Timestamp


class At(int):
    """A timestamp as a key element, always nine bytes; otherwise an int like every timestamp."""

    __slots__ = ()


_Scalar: TypeAlias = bool | int | float | Decimal | str | bytes | UUID | date | time | datetime | timedelta
Value: TypeAlias = _Scalar | Sequence["Value"] | None


@dataclass(frozen=True, slots=True)
class Descending:
    """A value that sorts the other way round; not inside an array or another Descending."""

    value: Value


KeyValue: TypeAlias = Value | Descending

AT_OFFSET = 1
"""Where the eight bytes of a timestamp lie in its element: a commit timestamp is put in there."""

ARRAY_DEPTH_MAX = 32
"""Arrays within arrays; PostgreSQL knows six dimensions. Keeps bad bytes from exhausting the stack."""

INT_BYTES_MAX = 16
"""An int's magnitude; SQL's largest has eight bytes, and greater numbers are Decimals."""

_FALSE, _TRUE, INT_TAG, _FLOAT, _DECIMAL = 0x02, 0x03, 0x18, 0x30, 0x31
_STR, _BYTES, _UUID, _DATE, _TIME, _DATETIME, _INSTANT = 0x38, 0x39, 0x3A, 0x40, 0x41, 0x42, 0x43
_TIMEDELTA, _AT, _ARRAY, _NULL, _FIRST_DESCENDING = 0x44, 0x48, 0x50, 0x7F, 0x80

_COMPLEMENT = bytes(range(255, -1, -1))


def encode(values: Iterable[KeyValue]) -> bytes:
    return b"".join([_ENCODERS[type(value)](value) for value in values])


def encode_timestamp(at: Timestamp) -> bytes:
    """Returns the element of `At(at)`; its eight bytes start at AT_OFFSET."""
    if not 0 <= at <= MAX_AT:
        raise InvalidParameter(f"{at} is outside the range of timestamps")
    return b"\x48" + at.to_bytes(8, "big")


def decode(data: bytes) -> tuple[KeyValue, ...]:
    values: list[KeyValue] = []
    position, end = 0, len(data)
    while position < end:
        value, position = DECODERS[data[position]](data, position + 1)
        values.append(value)
    return tuple(values)


def prefix_end(data: bytes) -> bytes:
    """Returns the smallest key above every key that starts with `data`. Raises ValueError if none is."""
    stem = data.rstrip(b"\xff")
    if not stem:
        raise ValueError("no key lies above all keys with an empty prefix or one of FF bytes only")
    return stem[:-1] + bytes((stem[-1] + 1,))


# A decoder gets the data and the position after the tag; it returns the value and the next position.
_Decoder: TypeAlias = Callable[[bytes, int], tuple[Any, int]]


def _take(data: bytes, position: int, size: int) -> bytes:
    piece = data[position : position + size]
    if len(piece) != size:
        raise CorruptData("key: the data ends inside an element")
    return piece


def _constant(value: bool | None) -> _Decoder:
    return lambda data, position: (value, position)


def _decode_unknown(data: bytes, position: int) -> tuple[None, int]:
    raise CorruptData(f"key: unknown tag {data[position - 1]:02x}")


# int

# A tag, shifted to stand before n bytes; a negative's with the 2^8n - 1 that makes its bytes positive.
_POSITIVE_TAGS = [(INT_TAG + n) << 8 * n for n in range(INT_BYTES_MAX + 1)]
_NEGATIVE_TAGS = [((INT_TAG - n + 1) << 8 * n) - 1 for n in range(INT_BYTES_MAX + 1)]


def _encode_int(value: int) -> bytes:
    size = (value.bit_length() + 7) >> 3
    if size > INT_BYTES_MAX:
        raise InvalidParameter(f"an integer of {size} bytes is too great for a key (at most {INT_BYTES_MAX})")
    if value >= 0:
        return (_POSITIVE_TAGS[size] + value).to_bytes(size + 1, "big")
    return (_NEGATIVE_TAGS[size] + value).to_bytes(size + 1, "big")


def _positive_int(size: int) -> _Decoder:
    def read(data: bytes, position: int) -> tuple[int, int]:
        end = position + size
        value = int.from_bytes(data[position:end], "big")
        if end > len(data) or (value.bit_length() + 7) >> 3 != size:
            raise CorruptData("key: an integer is cut off or longer than needed")
        return value, end

    return read


def _negative_int(size: int) -> _Decoder:
    top = (1 << (size << 3)) - 1

    def read(data: bytes, position: int) -> tuple[int, int]:
        end = position + size
        value = int.from_bytes(data[position:end], "big") - top
        if end > len(data) or (value.bit_length() + 7) >> 3 != size:
            raise CorruptData("key: an integer is cut off or longer than needed")
        return value, end

    return read


def _decode_inner_int(data: bytes, position: int) -> tuple[int, int]:
    """Reads an int, tag included, that is part of another element."""
    tag = data[position] if position < len(data) else 0
    if abs(tag - INT_TAG) > INT_BYTES_MAX:
        raise CorruptData("key: an integer is missing inside an element")
    value, position = DECODERS[tag](data, position + 1)
    return int(value), position


# float

_SIGN = 1 << 63
_DOUBLE, _UNSIGNED = struct.Struct(">d"), struct.Struct(">Q")
_NAN_BITS = 0x7FF8 << 48


def _encode_float(value: float) -> bytes:
    if value != value:
        bits = _NAN_BITS
    else:
        (bits,) = _UNSIGNED.unpack(_DOUBLE.pack(value + 0.0))  # -0.0 + 0.0 is 0.0
    flipped = ~bits & (1 << 64) - 1 if bits & _SIGN else bits | _SIGN
    return b"\x30" + _UNSIGNED.pack(flipped)


def _decode_float(data: bytes, position: int) -> tuple[float, int]:
    raw = _take(data, position, 8)
    (flipped,) = _UNSIGNED.unpack(raw)
    bits = flipped ^ _SIGN if flipped & _SIGN else ~flipped & (1 << 64) - 1
    (value,) = _DOUBLE.unpack(_UNSIGNED.pack(bits))
    if _encode_float(value)[1:] != raw:
        raise CorruptData("key: a float that is no canonical zero or NaN")
    return value, position + 8


# Decimal: value = ± d.ddd × 10^exponent, the digits in pairs as 01 .. 64 (hexadecimal), then 00

_MINUS_INFINITY, _NEGATIVE, _ZERO, _POSITIVE, _PLUS_INFINITY, _NAN = range(1, 7)
_WITHOUT_DIGITS = {
    _MINUS_INFINITY: Decimal("-Infinity"),
    _ZERO: Decimal(0),
    _PLUS_INFINITY: Decimal("Infinity"),
    _NAN: Decimal("NaN"),
}


def _encode_decimal(value: Decimal) -> bytes:
    if value.is_nan():
        return bytes((_DECIMAL, _NAN))
    if value.is_infinite():
        return bytes((_DECIMAL, _PLUS_INFINITY if value > 0 else _MINUS_INFINITY))
    if not value:
        return bytes((_DECIMAL, _ZERO))
    magnitude = _encode_int(value.adjusted()) + _pairs(value.as_tuple().digits)
    if value > 0:
        return bytes((_DECIMAL, _POSITIVE)) + magnitude
    return bytes((_DECIMAL, _NEGATIVE)) + magnitude.translate(_COMPLEMENT)


def _pairs(digits: tuple[int, ...]) -> bytes:
    padded = (*digits, 0)
    pairs = bytes(10 * padded[i] + padded[i + 1] + 1 for i in range(0, len(digits), 2))
    return pairs.rstrip(b"\x01") + b"\x00"


def _decode_decimal(data: bytes, position: int) -> tuple[Decimal, int]:
    sort = _take(data, position, 1)[0]
    position += 1
    if sort in _WITHOUT_DIGITS:
        return _WITHOUT_DIGITS[sort], position
    if sort == _POSITIVE:
        return _decode_magnitude(data, position)
    if sort == _NEGATIVE:
        value, length = _decode_magnitude(data[position:].translate(_COMPLEMENT), 0)
        return value.copy_negate(), position + length
    raise CorruptData(f"key: unknown class {sort:02x} of a decimal")


def _decode_magnitude(data: bytes, position: int) -> tuple[Decimal, int]:
    adjusted, position = _decode_inner_int(data, position)
    end = data.find(b"\x00", position)
    pairs = data[position:end] if end >= 0 else b""
    if not pairs or pairs[0] < 11 or pairs[-1] == 1 or max(pairs) > 100:
        raise CorruptData("key: bad digits of a decimal")
    digits = [digit for pair in pairs for digit in divmod(pair - 1, 10)]
    if digits[-1] == 0:
        digits.pop()
    exponent = adjusted - len(digits) + 1
    if adjusted > MAX_EMAX or exponent < MIN_ETINY:
        raise CorruptData("key: the exponent of a decimal is out of range")
    return Decimal((0, tuple(digits), exponent)), end + 1


# str, bytes, UUID


def _encode_str(value: str) -> bytes:
    try:
        raw = value.encode()
    except UnicodeEncodeError as error:
        code_point = ord(value[error.start])
        raise InvalidParameter(
            f"a key cannot hold text with a lone surrogate (U+{code_point:04X} at character {error.start})"
        ) from error
    return b"\x38" + raw.replace(b"\x00", b"\x00\xff") + b"\x00\x01"


def _encode_bytes(value: bytes) -> bytes:
    return b"\x39" + value.replace(b"\x00", b"\x00\xff") + b"\x00\x01"


def _decode_str(data: bytes, position: int) -> tuple[str, int]:
    raw, position = _decode_bytes(data, position)
    try:
        return raw.decode(), position
    except UnicodeDecodeError as error:
        raise CorruptData("key: text that is not UTF-8") from error


def _decode_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    end = data.find(0, position)
    if data[end : end + 2] == b"\x00\x01":
        return data[position:end], end + 2
    return _decode_escaped(data, position)


def _decode_escaped(data: bytes, position: int) -> tuple[bytes, int]:
    # Inside, FF follows every 00; so the first 00 01 is the end.
    end = data.find(b"\x00\x01", position)
    if end < 0:
        raise CorruptData("key: the data ends inside a string")
    raw = data[position:end]
    if raw.count(b"\x00") != raw.count(b"\x00\xff"):
        raise CorruptData("key: a stray zero byte in a string")
    return raw.replace(b"\x00\xff", b"\x00"), end + 2


def _encode_uuid(value: UUID) -> bytes:
    return b"\x3a" + value.bytes


def _decode_uuid(data: bytes, position: int) -> tuple[UUID, int]:
    return UUID(bytes=_take(data, position, 16)), position + 16


# Days and times

_MICROSECOND = timedelta(microseconds=1)
_DAY_MICROS = 86_400_000_000
_MAX_MICROS = (datetime.max - datetime.min) // _MICROSECOND


def _micros(value: timedelta) -> int:
    return (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds


def _encode_date(value: date) -> bytes:
    return b"\x40" + value.toordinal().to_bytes(3, "big")


def _decode_date(data: bytes, position: int) -> tuple[date, int]:
    ordinal = int.from_bytes(_take(data, position, 3), "big")
    if not 1 <= ordinal <= date.max.toordinal():
        raise CorruptData("key: a date out of range")
    return date.fromordinal(ordinal), position + 3


def _encode_time(value: time) -> bytes:
    if value.tzinfo is not None:
        raise InvalidParameter("a time with a time zone cannot be part of a key")
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return b"\x41" + (seconds * 1_000_000 + value.microsecond).to_bytes(5, "big")


def _decode_time(data: bytes, position: int) -> tuple[time, int]:
    micros = int.from_bytes(_take(data, position, 5), "big")
    if micros >= _DAY_MICROS:
        raise CorruptData("key: a time out of range")
    return (datetime.min + timedelta(microseconds=micros)).time(), position + 5


def _encode_datetime(value: datetime) -> bytes:
    offset = value.utcoffset()
    hours = (value.toordinal() - 1) * 24 + value.hour
    seconds = (hours * 60 + value.minute) * 60 + value.second
    micros = seconds * 1_000_000 + value.microsecond
    if offset is None:
        return b"\x42" + micros.to_bytes(8, "big")
    micros -= _micros(offset)
    if not 0 <= micros <= _MAX_MICROS:
        raise InvalidParameter(f'"{value.isoformat()}" is out of range in UTC')
    return b"\x43" + micros.to_bytes(8, "big")


def _decode_datetime(data: bytes, position: int) -> tuple[datetime, int]:
    micros = int.from_bytes(_take(data, position, 8), "big")
    if micros > _MAX_MICROS:
        raise CorruptData("key: a datetime out of range")
    return datetime.min + timedelta(microseconds=micros), position + 8


def _decode_instant(data: bytes, position: int) -> tuple[datetime, int]:
    value, position = _decode_datetime(data, position)
    return value.replace(tzinfo=UTC), position


def _encode_timedelta(value: timedelta) -> bytes:
    return b"\x44" + _encode_int(_micros(value))


def _decode_timedelta(data: bytes, position: int) -> tuple[timedelta, int]:
    micros, position = _decode_inner_int(data, position)
    try:
        return timedelta(microseconds=micros), position
    except OverflowError as error:
        raise CorruptData("key: a timedelta out of range") from error


def _decode_at(data: bytes, position: int) -> tuple[At, int]:
    at = At.from_bytes(_take(data, position, 8), "big")
    if at > MAX_AT:
        raise CorruptData("key: a timestamp out of range")
    return at, position + 8


# Arrays and the order of things


def _encode_array(values: Sequence[Value], depth: int = 1) -> bytes:
    if depth > ARRAY_DEPTH_MAX:
        raise InvalidParameter(f"arrays are nested more than {ARRAY_DEPTH_MAX} deep")
    return b"\x50" + b"".join([_encode_member(value, depth) for value in values]) + b"\x00"


def _encode_member(value: Value, depth: int) -> bytes:
    if isinstance(value, tuple | list):
        return _encode_array(value, depth + 1)
    if isinstance(value, Descending):
        raise InvalidParameter("an element of an array cannot be descending")
    return _ENCODERS[type(value)](value)


def _decode_array(data: bytes, position: int, depth: int = 1) -> tuple[tuple[Value, ...], int]:
    if depth > ARRAY_DEPTH_MAX:
        raise CorruptData(f"key: arrays are nested more than {ARRAY_DEPTH_MAX} deep")
    values: list[Value] = []
    while tag := _take(data, position, 1)[0]:
        if tag == _ARRAY:
            value, position = _decode_array(data, position + 1, depth + 1)
        elif tag < _FIRST_DESCENDING:
            value, position = DECODERS[tag](data, position + 1)
        else:
            raise CorruptData("key: a descending element in an array")
        values.append(value)
    return tuple(values), position + 1


def _encode_descending(value: Descending) -> bytes:
    if isinstance(value.value, Descending):
        raise InvalidParameter("a descending value cannot be made descending again")
    return _ENCODERS[type(value.value)](value.value).translate(_COMPLEMENT)


def _decode_descending(data: bytes, position: int) -> tuple[Descending, int]:
    plain = data[position - 1 :].translate(_COMPLEMENT)
    value, length = DECODERS[plain[0]](plain, 1)
    return Descending(value), position - 1 + length


class _Encoders(dict[type, Callable[[Any], bytes]]):
    """Encoders by exact type; a subclass is encoded as its nearest base."""

    def __missing__(self, kind: type) -> Callable[[Any], bytes]:
        for base in kind.__mro__:
            if base in self:
                return self[base]
        raise InvalidParameter(f'a value of type "{kind.__name__}" cannot be part of a key')


_ENCODERS = _Encoders(
    {
        int: _encode_int,
        str: _encode_str,
        type(None): lambda value: b"\x7f",
        bool: lambda value: b"\x03" if value else b"\x02",
        float: _encode_float,
        Decimal: _encode_decimal,
        bytes: _encode_bytes,
        UUID: _encode_uuid,
        date: _encode_date,
        time: _encode_time,
        datetime: _encode_datetime,
        timedelta: _encode_timedelta,
        At: encode_timestamp,
        tuple: _encode_array,
        list: _encode_array,
        Descending: _encode_descending,
    }
)

_BY_TAG: dict[int, _Decoder] = {
    **{INT_TAG + size: _positive_int(size) for size in range(INT_BYTES_MAX + 1)},
    **{INT_TAG - size: _negative_int(size) for size in range(1, INT_BYTES_MAX + 1)},
    _FALSE: _constant(False),
    _TRUE: _constant(True),
    _FLOAT: _decode_float,
    _DECIMAL: _decode_decimal,
    _STR: _decode_str,
    _BYTES: _decode_bytes,
    _UUID: _decode_uuid,
    _DATE: _decode_date,
    _TIME: _decode_time,
    _DATETIME: _decode_datetime,
    _INSTANT: _decode_instant,
    _TIMEDELTA: _decode_timedelta,
    _AT: _decode_at,
    _ARRAY: _decode_array,
    _NULL: _constant(None),
    **dict.fromkeys(range(_FIRST_DESCENDING, 0x100), _decode_descending),
}

DECODERS = [_BY_TAG.get(tag, _decode_unknown) for tag in range(0x100)]
