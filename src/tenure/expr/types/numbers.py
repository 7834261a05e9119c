"""Whole numbers and numeric, as PostgreSQL reads, rounds and writes them.

    type            value     out of range   rounding
    int2/4/8        int       22003          -
    numeric(p, s)   Decimal   22003          half away from zero, to s digits after the point

A Decimal keeps its scale (1.50 is not rendered as 1.5) and never has a positive exponent or a
negative zero.

Walk: `expr.types.type_names` makes the types; `expr.functions.arithmetic` uses `tidy` and `rounded`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from tenure.base.errors import InvalidText, OutOfRange
from tenure.expr.types.big_numbers import EXACT, decimal_of
from tenure.expr.types.datatype import Datum, Type

DIGITS_BEFORE_MAX, SCALE_MAX = 131_072, 16_383
"""The limits of PostgreSQL's numeric format, before and after the point."""

EXPONENT_MAX = 2**30 - 1
"""The greatest exponent that PostgreSQL reads."""

SPACE = " \t\n\v\f\r"
INT_NAMES = {2: "smallint", 4: "integer", 8: "bigint"}
_SURE_DIGITS = {2: 4, 4: 9, 8: 18}
"""By size in bytes: a number of so many digits always fits."""
_DIGITS = r"[0-9]++(?:_[0-9]++)*+"
_WHOLE = re.compile(
    r"0[xX](?:_?[0-9a-fA-F]++)++|0[oO](?:_?[0-7]++)++|0[bB](?:_?[01]++)++"
    rf"|{_DIGITS}"
)
WHOLE_DIGITS_MAX = 4_000
"""The digits of an integer that are read; no integer type holds so many."""
NUMERIC_DIGITS_MAX = {16: 110_000, 8: 146_000, 2: 436_000, 10: WHOLE_DIGITS_MAX}
"""The digits of a numeric that are read, by radix."""
UNDERSCORED_CHARS_MAX = 1 << 20
"""A number with underscores that is longer has more digits than any type."""
_LEADING = re.compile(rf"[+-]?(?:{_WHOLE.pattern})?")
_RADIX = {"x": 16, "o": 8, "b": 2}
_DECIMAL = re.compile(rf"[+-]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?")
SPECIAL = re.compile(r"([+-]?)(?:inf(?:inity)?)|nan", re.IGNORECASE)


@dataclass(frozen=True)
class IntType(Type):
    size: int

    category = "N"

    @property
    def sql_name(self) -> str:
        return INT_NAMES[self.size]

    def parse(self, text: str) -> int:
        if len(text) <= _SURE_DIGITS[self.size] and text.isdecimal() and text.isascii():
            return int(text)
        stripped = text.strip(SPACE)
        value = whole_number(stripped)
        if value is None and not self._overflows_first(stripped):
            raise InvalidText(f'invalid input syntax for type {self.sql_name}: "{text}"')
        if value is None or not fits(value, self.size):
            raise OutOfRange(f'value "{text}" is out of range for type {self.sql_name}')
        return value

    def parse_all(self, texts: Sequence[str]) -> list[int]:
        digits = "".join(texts)
        is_plain = digits.isdecimal() and digits.isascii() and all(texts)
        if is_plain and max(map(len, texts)) <= _SURE_DIGITS[self.size]:
            return list(map(int, texts))
        return list(map(self.parse, texts))

    def _overflows_first(self, text: str) -> bool:
        """Whether there are too many digits already before the first other character, as in 99999999999.5.

        Files with fractions are loaded into integer columns by mistake: as in PostgreSQL, a loader that sorts
        bad rows by SQLSTATE finds those that are out of range (22003) apart from those that are no numbers.
        """
        found = _LEADING.match(text)
        assert found is not None
        digits = found.group().lstrip("+-")
        read = whole_number(digits)
        if read is None:
            return False
        radix = _radix(digits)
        # PostgreSQL checks the range before it adds a digit: a last digit that is too many goes unnoticed.
        return read // radix > (1 << 8 * self.size - 1) // radix

    def _accept(self, value: Datum) -> int:
        if type(value) is not int:
            raise self._refuse(value)
        if not fits(value, self.size):
            raise OutOfRange(f"{self.sql_name} out of range")
        return value


def fits(value: int, size: int) -> bool:
    bound = 1 << 8 * size - 1
    return -bound <= value < bound


def whole_number(text: str, digits_max: int = WHOLE_DIGITS_MAX) -> int | None:
    """Reads decimal, 0x, 0o and 0b digits with single underscores between; None if it is none of these.

    What has more than `digits_max` digits is read as a number that is larger than all of that many.
    """
    digits = text[1:] if text[:1] in ("+", "-") else text
    if len(text) > UNDERSCORED_CHARS_MAX and "_" in text:
        return int(10**digits_max)
    if not _WHOLE.fullmatch(digits):
        return None
    digits = digits.replace("_", "")
    radix = _radix(digits)
    digits = (digits[2:] if radix != 10 else digits).lstrip("0")
    value = int(digits or "0", radix) if len(digits) <= digits_max else radix**digits_max
    return -value if text[0] == "-" else value


def _radix(digits: str) -> int:
    return _RADIX.get(digits[1:2].lower(), 10) if digits.startswith("0") else 10


@dataclass(frozen=True)
class NumericType(Type):
    precision: int | None = None
    scale: int = 0

    category = "N"
    compares_natively = False

    @property
    def sql_name(self) -> str:
        return "numeric" if self.precision is None else f"numeric({self.precision},{self.scale})"

    @property
    def key_is_exact(self) -> bool:
        """A key has no trailing zeros; a fixed scale says how many there were."""
        return self.precision is not None

    def comparable(self, value: Decimal) -> Any:
        return (1, 0) if value.is_nan() else (0, value)

    def parse(self, text: str) -> Decimal:
        value = _decimal(text)
        if self.precision is None or not value.is_finite():
            return self.fit(tidy(value))
        # Rounded before it is held to the format's limits.
        if value and value.adjusted() >= self.precision - self.scale + 1:
            raise self._too_large()
        return self.fit(value if value.adjusted() >= -self.scale - 1 else Decimal(0))

    def render(self, value: Decimal) -> str:
        return numeric_text(value)

    def fit(self, value: Decimal) -> Decimal:
        """Rounds to the scale and checks the precision."""
        if self.precision is None or value.is_nan():
            return value
        if value.is_infinite():
            raise self._overflow("cannot hold an infinite value")
        fitted = rounded(value, self.scale)
        if fitted and fitted.adjusted() >= self.precision - self.scale:
            raise self._too_large()
        return fitted

    def _too_large(self) -> OutOfRange:
        digits = (self.precision or 0) - self.scale
        bound = f"10^{digits}" if digits else "1"
        return self._overflow(f"must round to an absolute value less than {bound}")

    def _overflow(self, reason: str) -> OutOfRange:
        field = f"A field with precision {self.precision}, scale {self.scale}"
        return OutOfRange("numeric field overflow", detail=f"{field} {reason}.")

    def _accept(self, value: Datum) -> Decimal:
        if type(value) is int:
            value = Decimal(value)
        if type(value) is not Decimal:
            raise self._refuse(value)
        return self.fit(tidy(value))

    def _from_key(self, key: Decimal) -> Decimal:
        if self.precision is None or not key.is_finite():
            return tidy(key)
        return rounded(key, self.scale)

    def _pack(self, value: Decimal) -> Any:
        if not value.is_finite():
            return str(value)
        exponent = int(value.as_tuple().exponent)
        if value.adjusted() - exponent >= 18:
            return str(value)
        unscaled = int(value.scaleb(-exponent, EXACT))
        return [-exponent, unscaled] if exponent else unscaled

    def _unpack(self, packed: Any) -> Decimal:
        if type(packed) is int:
            return Decimal(packed)
        if type(packed) is str:
            return EXACT.create_decimal(packed)
        scale, unscaled = packed
        return Decimal(unscaled).scaleb(-scale, EXACT)


def parse_numeric(text: str) -> Decimal:
    return tidy(_decimal(text))


def _decimal(text: str) -> Decimal:
    stripped = text.strip(SPACE)
    if len(stripped) > UNDERSCORED_CHARS_MAX and "_" in stripped:
        raise OutOfRange("value overflows numeric format")
    if special := SPECIAL.fullmatch(stripped):
        return Decimal(special.group())
    if _DECIMAL.fullmatch(stripped):
        mantissa, _, exponent = stripped.replace("_", "").lower().partition("e")
        if _has_endless_exponent(stripped):
            raise OutOfRange("value overflows numeric format")
        power = int(exponent.lstrip("+-").lstrip("0") or 0)
        return EXACT.create_decimal(mantissa).scaleb(-power if exponent[:1] == "-" else power, EXACT)
    value = whole_number(stripped, NUMERIC_DIGITS_MAX[_radix(stripped.lstrip("+-"))])
    if value is None:
        if (begun := _DECIMAL.match(stripped)) and _has_endless_exponent(begun.group()):
            raise OutOfRange("value overflows numeric format")
        raise InvalidText(f'invalid input syntax for type numeric: "{text}"')
    return decimal_of(value)


def _has_endless_exponent(text: str) -> bool:
    """Whether the exponent is out of range already by its digits: the text behind them does not matter
    then."""
    exponent = text.lower().partition("e")[2].lstrip("+-").replace("_", "").lstrip("0")
    return len(exponent) > 10 or int(exponent or 0) > EXPONENT_MAX


def numeric_text(value: Decimal) -> str:
    return format(value, "f") if value.is_finite() else str(value)


def tidy(value: Decimal) -> Decimal:
    """Returns the value as PostgreSQL keeps it: no negative scale, no negative zero, within the format's
    range."""
    if not value.is_finite():
        return Decimal("NaN") if value.is_nan() else value
    exponent = int(value.as_tuple().exponent)
    if (value and value.adjusted() >= DIGITS_BEFORE_MAX) or exponent < -SCALE_MAX:
        raise OutOfRange("value overflows numeric format")
    if not value:
        value = value.copy_abs()
    return value.quantize(Decimal(1), context=EXACT) if exponent > 0 else value


def rounded(value: Decimal, scale: int) -> Decimal:
    """Rounds half away from zero; a negative scale rounds before the point and gives scale 0."""
    return tidy(value.quantize(Decimal((0, (1,), -scale)), rounding=ROUND_HALF_UP, context=EXACT))
