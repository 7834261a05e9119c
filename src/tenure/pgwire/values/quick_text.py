"""Shorter paths to the same text, for the most frequent values.

The types of `expr` parse and render everything. The functions here handle only the common shape of a value,
and leave the rest to them: thousands of digits, odd dates, and all errors.

Invariant (quick-text): a shorter path gives the result of the type's own `parse` and `render`.

Walk: `pgwire.values.codecs` asks for these first.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime

from tenure.expr.types.arrays import ArrayOf
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.enums import EnumOf
from tenure.expr.types.floats import float_text
from tenure.expr.types.numbers import IntType, fits
from tenure.pgwire.values.binary import Decode, Encode, text_of

_DAY = rb"(?!0000)\d{4}-\d\d-\d\d"
_CLOCK = rb"\d\d:\d\d:\d\d(?:\.\d{1,6})?"
_DATE = re.compile(_DAY)
_TIMESTAMP = re.compile(_DAY + rb"[ T]" + _CLOCK)
# With its offset, so that the session's time zone does not matter.
_INSTANT = re.compile(_DAY + rb"[ T]" + _CLOCK + rb"[+-](?:0\d|1[0-5])(?::[0-5]\d)?")


def type_name(type: Type) -> str:
    """The name by which it is found here: "" if it never is."""
    if isinstance(type, ArrayOf):
        return ""
    return "enum" if isinstance(type, EnumOf) else type.ref.name


def _bool_text(value: bool) -> bytes:
    return b"t" if value else b"f"


def _float8_text(value: float) -> bytes:
    # Between these, Python and PostgreSQL write the same digits, and neither writes an exponent.
    if 1e-4 <= value < 1e15 or -1e15 < value <= -1e-4:
        return repr(value).removesuffix(".0").encode()
    return float_text(value, 8).encode()


def _timestamp_text(value: datetime) -> bytes:
    text = value.isoformat(" ")
    return (text.rstrip("0") if value.microsecond else text).encode()


def _instant_text(value: datetime) -> bytes:
    text = value.isoformat(" ")[:-6]  # the zone is UTC, "+00:00"
    return (text.rstrip("0") + "+00" if value.microsecond else text + "+00").encode()


QUICK_ENCODERS: dict[str, Encode] = {
    **dict.fromkeys(("text", "varchar", "char", "name", "unknown", "enum"), str.encode),
    **dict.fromkeys(("int2", "int4", "int8"), b"%d".__mod__),
    "bool": _bool_text,
    "float8": _float8_text,
    "timestamp": _timestamp_text,
    "timestamptz": _instant_text,
}


Parse = Callable[[str], Datum]


def _int_decoder(type: Type, parse: Parse) -> Decode:
    assert isinstance(type, IntType)
    size = type.size

    def decode(data: bytes) -> Datum:
        try:
            value = int(data)
        except ValueError:  # 0x1F, thousands of digits, or no number
            return parse(text_of(data))
        return value if fits(value, size) else parse(text_of(data))

    return decode


def _string_decoder(type: Type, parse: Parse) -> Decode:
    return text_of


def _iso_decoder(shape: re.Pattern[bytes], read: Callable[[str], Datum]) -> Callable[[Type, Parse], Decode]:
    def decoder(type: Type, parse: Parse) -> Decode:
        def decode(data: bytes) -> Datum:
            if shape.fullmatch(data):
                try:
                    return read(data.decode())
                except (ValueError, OverflowError):  # February 30, 24:00:00, a leap second
                    pass
            return parse(text_of(data))

        return decode if not type.ref.modifiers else lambda data: parse(text_of(data))

    return decoder


def _read_instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


# Made with the type's parse, in the session's time zone, for the rest.
QUICK_DECODERS: dict[str, Callable[[Type, Parse], Decode]] = {
    **dict.fromkeys(("text", "unknown"), _string_decoder),
    **dict.fromkeys(("int2", "int4", "int8"), _int_decoder),
    "date": _iso_decoder(_DATE, date.fromisoformat),
    "timestamp": _iso_decoder(_TIMESTAMP, datetime.fromisoformat),
    "timestamptz": _iso_decoder(_INSTANT, _read_instant),
}
