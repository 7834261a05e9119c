"""numeric in binary: digits to the base of 10,000, as PostgreSQL keeps them.

    count (2) | weight (2) | sign (2) | scale (2) | digits (2 each)

    12345.6   count 3   weight 1   digits 1, 2345, 6000   scale 1

The first digit stands for 10,000 ** weight; the scale says how many decimal digits after the point
are shown. NaN and the infinities are signs of their own.

Walk: `pgwire.values.binary` and `pgwire.values.binary_arrays` call it.
"""

import struct
from decimal import ROUND_DOWN, Decimal

from tenure.base.errors import BytesLeft, InvalidBinary, ProtocolViolation
from tenure.expr.types.big_numbers import EXACT
from tenure.expr.types.numbers import tidy

_HEADER = struct.Struct("!HhHH")
_POSITIVE, _NEGATIVE = 0x0000, 0x4000
_SPECIAL = {0xC000: "NaN", 0xD000: "Infinity", 0xF000: "-Infinity"}
_SIGNS = {text: sign for sign, text in _SPECIAL.items()}
_ALL_SIGNS = frozenset((_POSITIVE, _NEGATIVE, *_SPECIAL))
_SIGN = slice(4, 6)
"""Where the sign stands: as in PostgreSQL, it is checked before the rest of the header is read."""
_SCALE_MASK = 0x3FFF
_INFINITE_SCALE = 0x20
"""The value that PostgreSQL happens to send with an infinity; clients ignore it."""
_BASE, _BASE_DIGITS = 10_000, 4


def encode_numeric(value: Decimal) -> bytes:
    if not value.is_finite():
        return _HEADER.pack(0, 0, _SIGNS[str(value)], 0 if value.is_nan() else _INFINITE_SCALE)
    whole, _, fraction = format(value.copy_abs(), "f").partition(".")
    weight = (len(whole) + _BASE_DIGITS - 1) // _BASE_DIGITS
    tail = -len(fraction) % _BASE_DIGITS
    figures = whole.zfill(weight * _BASE_DIGITS) + fraction + "0" * tail
    digits = [int(figures[at : at + _BASE_DIGITS]) for at in range(0, len(figures), _BASE_DIGITS)]
    first = next((n for n, digit in enumerate(digits) if digit), len(digits))
    last = next((n for n in range(len(digits), first, -1) if digits[n - 1]), first)
    kept = digits[first:last]
    sign = _NEGATIVE if value.is_signed() and kept else _POSITIVE
    header = _HEADER.pack(len(kept), weight - 1 - first if kept else 0, sign, len(fraction))
    return header + struct.pack(f"!{len(kept)}H", *kept)


def decode_numeric(data: bytes) -> Decimal:
    if len(data) >= _SIGN.stop and int.from_bytes(data[_SIGN], "big") not in _ALL_SIGNS:
        raise InvalidBinary('invalid sign in external "numeric" value')
    if len(data) < _HEADER.size:
        raise ProtocolViolation("insufficient data left in message")
    count, weight, sign, scale = _HEADER.unpack_from(data)
    if scale & _SCALE_MASK != scale:
        raise InvalidBinary('invalid scale in external "numeric" value')
    digits = _digits(data, count)
    if sign in _SPECIAL:
        return Decimal(_SPECIAL[sign])
    return _number(digits, weight, scale, is_negative=sign == _NEGATIVE)


def expanded_digits(data: bytes) -> int:
    """The number of decimal digits of the value when it is written out: a few bytes can request 147,000."""
    if len(data) < _HEADER.size:
        return 0
    _, weight, _, scale = _HEADER.unpack_from(data)
    return max(int(weight) + 1, 0) * _BASE_DIGITS + int(scale)


def _digits(data: bytes, count: int) -> tuple[int, ...]:
    end = _HEADER.size + 2 * count
    there = min(count, (len(data) - _HEADER.size) // 2)
    digits = struct.unpack_from(f"!{there}H", data, _HEADER.size)
    if any(digit >= _BASE for digit in digits):
        raise InvalidBinary('invalid digit in external "numeric" value')
    if there < count:
        raise ProtocolViolation("insufficient data left in message")
    if len(data) > end:
        raise BytesLeft
    return digits


def _number(digits: tuple[int, ...], weight: int, scale: int, *, is_negative: bool) -> Decimal:
    """Digits beyond the scale are cut off, as in PostgreSQL."""
    figures = "".join([f"{digit:04d}" for digit in digits]).lstrip("0") or "0"
    exponent = _BASE_DIGITS * (weight - len(digits) + 1)
    number = EXACT.create_decimal(f"{'-' if is_negative else ''}{figures}e{exponent}")
    unit = Decimal((0, (1,), -scale))
    return tidy(number.quantize(unit, rounding=ROUND_DOWN, context=EXACT))
