"""Arrays in binary.

    dimensions (4) | has NULLs (4) | element's oid (4) | per dimension: length (4), lower bound (4)
    | per element: length (4), -1 for NULL; bytes

The header's claims are checked against the data before anything is allocated.

Walk: `pgwire.values.codecs` makes one encoder or decoder per array type, from its element's.
"""

import struct
from collections.abc import Callable
from math import prod

from tenure.base.errors import (
    BytesLeft,
    DatatypeMismatch,
    InvalidBinary,
    LimitExceeded,
    NotSupported,
    ProtocolViolation,
    UndefinedObject,
    UserError,
)
from tenure.expr.types.array_text import DIMENSIONS_MAX, fold
from tenure.expr.types.arrays import dimensions, flatten
from tenure.expr.types.datatype import Datum, Type
from tenure.pgwire.values.binary_numeric import expanded_digits
from tenure.pgwire.values.oids import oid_of, type_with_oid

OIDS_FIXED = 10_000
"""Oids below this mean the same type everywhere; others are the sender's own, and ignored."""

ELEMENTS_MAX = 134_217_727
"""PostgreSQL's MaxArraySize."""

NUMERIC_DIGITS_MAX = 16_000_000
"""The most decimal digits of all numbers of one array: ten bytes can request 147,000 digits each."""

_HEADER, _DIMENSION, _LENGTH = struct.Struct("!iiI"), struct.Struct("!ii"), struct.Struct("!i")
_NULL = _LENGTH.pack(-1)


def array_encoder(element: Type, encode: Callable[[Datum], bytes]) -> Callable[[Datum], bytes]:
    oid, pack = oid_of(element).oid, _LENGTH.pack

    def encode_array(value: Datum) -> bytes:
        sides = dimensions(value)
        flat = list(flatten(value))
        parts = [_HEADER.pack(len(sides), None in flat, oid)]
        parts += [_DIMENSION.pack(side, 1) for side in sides]
        for each in flat:
            if each is None:
                parts.append(_NULL)
            else:
                data = encode(each)
                parts += (pack(len(data)), data)
        return b"".join(parts)

    return encode_array


def array_decoder(element: Type, decode: Callable[[bytes], Datum]) -> Callable[[bytes], Datum]:
    def decode_array(data: bytes) -> Datum:
        sides, at = _shape(data, element)
        if not sides:
            _require_end(data, at)
            return ()
        members, fault = _members(data, at, prod(sides))
        if element.ref.name == "numeric":
            _check_digits(members)
        values = _decoded(members, decode)
        if fault is not None:
            raise fault
        return fold(values, sides)

    return decode_array


def _decoded(members: list[bytes | None], decode: Callable[[bytes], Datum]) -> tuple[Datum, ...]:
    values: list[Datum] = []
    try:
        for each in members:
            values.append(None if each is None else decode(each))
    except BytesLeft:
        raise InvalidBinary(f"improper binary format in array element {len(values) + 1}") from None
    return tuple(values)


def _shape(data: bytes, element: Type) -> tuple[tuple[int, ...], int]:
    """Reads the lengths of the dimensions, () if there is no element; and where the elements begin."""
    # Faults of present bytes are reported before missing ones.
    count, flags, oid = _HEADER.unpack_from(data.ljust(_HEADER.size, b"\0"))
    if len(data) < _LENGTH.size:
        raise _too_short()
    if count < 0:
        raise InvalidBinary(f"invalid number of dimensions: {count}")
    if count > DIMENSIONS_MAX:
        raise LimitExceeded(
            f"number of array dimensions ({count}) exceeds the maximum allowed ({DIMENSIONS_MAX})"
        )
    if flags not in (0, 1) and len(data) >= 2 * _LENGTH.size:
        raise InvalidBinary("invalid array flags")
    if len(data) < _HEADER.size:
        raise _too_short()
    expected = oid_of(element).oid
    if oid != expected and oid < OIDS_FIXED and expected < OIDS_FIXED:
        raise DatatypeMismatch(
            f"binary data has array element type {oid} ({_name_of(oid)}) "
            f"instead of expected {expected} ({element.sql_name})"
        )
    at = _HEADER.size + count * _DIMENSION.size
    if len(data) < at:
        raise _too_short()
    pairs = [_DIMENSION.unpack_from(data, _HEADER.size + n * _DIMENSION.size) for n in range(count)]
    return _checked_sides(pairs), at


def _name_of(oid: int) -> str:
    try:
        kind = type_with_oid(oid)
    except UndefinedObject:
        return "???"
    return "-" if kind is None else kind.sql_name


def _checked_sides(pairs: list[tuple[int, int]]) -> tuple[int, ...]:
    sides = tuple(side for side, _ in pairs)
    if any(side < 0 for side in sides) or prod(sides) > ELEMENTS_MAX:
        raise LimitExceeded(f"array size exceeds the maximum allowed ({ELEMENTS_MAX})")
    if not sides or prod(sides) == 0:
        return ()
    if any(lower != 1 for _, lower in pairs):
        raise NotSupported("arrays with lower bounds of their own are not supported")
    return sides


def _members(data: bytes, at: int, count: int) -> tuple[list[bytes | None], UserError | None]:
    """The elements, and the fault behind the last of them: faults within come first."""
    members: list[bytes | None] = []
    for _ in range(count):
        if len(data) - at < _LENGTH.size:
            return members, _too_short()
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if length < -1 or length > len(data) - at:
            return members, InvalidBinary("insufficient data left in message")
        members.append(None if length < 0 else data[at : at + length])
        at += max(length, 0)
    return members, None if at == len(data) else BytesLeft()


def _check_digits(members: list[bytes | None]) -> None:
    if sum(expanded_digits(each) for each in members if each is not None) > NUMERIC_DIGITS_MAX:
        raise LimitExceeded(f"the numbers of an array may have {NUMERIC_DIGITS_MAX} digits in all")


def _require_end(data: bytes, at: int) -> None:
    if at != len(data):
        raise BytesLeft


def _too_short() -> ProtocolViolation:
    return ProtocolViolation("insufficient data left in message")
