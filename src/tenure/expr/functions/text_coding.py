"""Text and bytes in other notations: encode and decode, digests, code points, bytes by number.

Walk: `expr.function_table` lists these.
"""

import base64
import binascii
import re
import zlib
from collections.abc import Callable, Iterator
from hashlib import md5, sha224, sha256, sha384, sha512

from tenure.base.errors import InvalidParameter, LimitExceeded, SubscriptError, SyntaxFault
from tenure.base.interruptible import paced
from tenure.expr.functions import normal_forms
from tenure.expr.functions.function import Function, function
from tenure.expr.types.strings import bytes_escaped, bytes_from_hex, bytes_unescaped, check_characters
from tenure.expr.types.text_slices import mapped, slices, substituted
from tenure.expr.types.value_lengths import check_length

CODE_POINT_MAX = 0x10FFFF
_NO_SPACE = str.maketrans("", "", " \t\n\r")
_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_LINE_BYTES = 57
"""They make a line of 76 characters of base64, the most that RFC 2045 allows."""

_FORMAT_LENGTH_MAX = len("base64")
"""A longer name is that of no format; 64 Mi characters are not made lower-case to find that out."""


def functions() -> Iterator[Function]:
    yield function("encode", "bytea, text -> text", _encode)
    yield function("decode", "text, text -> bytea", _decode)
    yield function("md5", "text -> text", lambda text: _md5(text.encode()))
    yield function("md5", "bytea -> text", _md5)
    for name, digest in (("sha224", sha224), ("sha256", sha256), ("sha384", sha384), ("sha512", sha512)):
        yield function(name, "bytea -> bytea", lambda data, digest=digest: digest(data).digest())
    yield function("crc32", "bytea -> int8", zlib.crc32)
    yield function("ascii", "text -> int4", lambda text: ord(text[0]) if text else 0)
    yield function("chr", "int4 -> text", _chr)
    for family, size in (("int4", 32), ("int8", 64)):
        for name, digits in (("to_hex", "x"), ("to_bin", "b"), ("to_oct", "o")):
            yield function(name, f"{family} -> text", _in_digits(digits, size))
    yield function("get_byte", "bytea, int4 -> int4", _byte_at)
    yield function("get_bit", "bytea, int8 -> int4", _get_bit)
    yield function("set_byte", "bytea, int4, int4 -> bytea", _set_byte)
    yield function("set_bit", "bytea, int8, int4 -> bytea", _set_bit)
    yield function("bit_count", "bytea -> int8", _bit_count)
    yield function("unistr", "text -> text", _unistr)
    yield from normal_forms.functions()


# encode and decode


def _encode(data: bytes, format: str) -> str:
    match format[: _FORMAT_LENGTH_MAX + 1].lower():
        case "hex":
            check_length(2 * len(data))
            return data.hex()
        case "base64":
            check_length(4 * len(data) // 3)
            return "\n".join([_base64_line(data, at) for at in paced(range(0, len(data), _LINE_BYTES))])
        case "escape":
            return bytes_escaped(data)
    raise InvalidParameter(f'unrecognized encoding: "{format}"')


def _base64_line(data: bytes, at: int) -> str:
    return base64.b64encode(data[at : at + _LINE_BYTES]).decode()


def _decode(text: str, format: str) -> bytes:
    match format[: _FORMAT_LENGTH_MAX + 1].lower():
        case "hex":
            return bytes_from_hex(text)
        case "base64":
            return _from_base64(text)
        case "escape":
            return bytes_unescaped(text)
    raise InvalidParameter(f'unrecognized encoding: "{format}"')


def _from_base64(text: str) -> bytes:
    packed = mapped(text, lambda part: part.translate(_NO_SPACE))
    try:
        return base64.b64decode(packed.encode(), validate=True)
    except (ValueError, binascii.Error):
        return _from_odd_base64(packed)


def _from_odd_base64(text: str) -> bytes:
    """Decodes text with a '=' before its end: from the first one on, groups of four letters give fewer
    bytes."""
    kept, found = 3, bytearray()
    for start in paced(range(0, len(text), 4)):
        four = text[start : start + 4]
        place = four.find("=")
        if kept == 3 and place >= 0:
            kept = place - 1
        digits = [0 if each == "=" else _BASE64.find(each) for each in four]
        if len(four) < 4 or kept < 1 or min(digits) < 0:
            raise InvalidParameter("invalid base64 data")
        number = (digits[0] << 18) + (digits[1] << 12) + (digits[2] << 6) + digits[3]
        found += number.to_bytes(3, "big")[:kept]
    return bytes(found)


def _md5(data: bytes) -> str:
    return md5(data, usedforsecurity=False).hexdigest()


# Numbers and letters


def _chr(code: int) -> str:
    if code < 0:
        raise InvalidParameter("character number must be positive")
    if code == 0:
        raise LimitExceeded("null character not permitted")
    if code > CODE_POINT_MAX:
        raise LimitExceeded(f"requested character too large for encoding: {code}")
    if 0xD800 <= code <= 0xDFFF:
        raise LimitExceeded(f"requested character not valid for encoding: {code}")
    return chr(code)


def _in_digits(digits: str, bits: int) -> Callable[[int], str]:
    """Negative numbers are written in two's complement."""
    return lambda value: format(value & (1 << bits) - 1, digits)


def _byte_at(data: bytes, at: int) -> int:
    if not 0 <= at < len(data):
        raise SubscriptError(f"index {at} out of valid range, 0..{len(data) - 1}")
    return data[at]


def _get_bit(data: bytes, at: int) -> int:
    if not 0 <= at < 8 * len(data):
        raise SubscriptError(f"index {at} out of valid range, 0..{8 * len(data) - 1}")
    return data[at // 8] >> at % 8 & 1


def _bit_count(data: bytes) -> int:
    return sum(int.from_bytes(part, "big").bit_count() for part in slices(data))


def _set_byte(data: bytes, at: int, value: int) -> bytes:
    _byte_at(data, at)
    return data[:at] + bytes([value & 0xFF]) + data[at + 1 :]


def _set_bit(data: bytes, at: int, value: int) -> bytes:
    _get_bit(data, at)
    if value not in (0, 1):
        raise InvalidParameter("new bit must be 0 or 1")
    byte, mask = data[at // 8], 1 << at % 8
    return data[: at // 8] + bytes([byte | mask if value else byte & ~mask]) + data[at // 8 + 1 :]


# Escapes

_UNICODE = re.compile(r"\\(?:(\\)|([0-9a-fA-F]{4})|u([0-9a-fA-F]{4})|\+([0-9a-fA-F]{6})|U([0-9a-fA-F]{8})|)")


def _unistr(text: str) -> str:
    """Backslash and a code point in hexadecimal; pairs of surrogates become one character."""

    def character(found: re.Match[str]) -> str:
        if found.group(1):
            return "\\"
        digits = next((each for each in found.groups()[1:] if each), None)
        if digits is None or int(digits, 16) > CODE_POINT_MAX:
            raise SyntaxFault("invalid Unicode escape")
        return chr(int(digits, 16))

    raw = substituted(_UNICODE, character, text)
    try:
        return check_characters(raw.encode("utf-16", "surrogatepass").decode("utf-16"))
    except UnicodeDecodeError:
        raise SyntaxFault("invalid Unicode surrogate pair") from None
