"""Intervals in text, as PostgreSQL reads them.

    '1 year 2 mons -3 days 04:05:06.789 ago'   '1-2 3 4:05:06'   'P1Y2M3DT4H5M6S'   'P0001-02-03T04:05:06'

Fields are read from right to left, as a number gets its unit from what follows. Whole amounts count
exactly; fractions in floating point, and go down to the next parts.

Infinite intervals are refused (0A000).

Walk: `expr.types.time_types` calls `parse_interval`; fields come from `expr.types.time_fields`.
"""

import re

from tenure.base.errors import DatetimeOverflow, IntervalOverflow, InvalidDatetime, NotSupported
from tenure.expr.types import time_words
from tenure.expr.types.interval import MICROS_PER_DAY, Interval
from tenure.expr.types.numbers import fits
from tenure.expr.types.time_decoding import clock, fraction, whole
from tenure.expr.types.time_fields import SPECIAL, TIME, WORD, ZONE, BadField, BadFormat, TimeField, cut
from tenure.expr.types.time_words import ENDLESS, WORDS, span_unit

ROOM = 256
"""The longest text that PostgreSQL takes apart."""
AMOUNT_MAX = 1e15
"""The greatest number in ISO 8601's style."""

_MICROS = {"microsecond": 1, "millisecond": 1000, "second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6}
_YEARS = {"year": 1, "decade": 10, "century": 100, "millennium": 1000}
_FINER = {"microsecond", "millisecond"}
_CLOCK = set(_MICROS)
_EVERYTHING = {*_CLOCK, "day", "month", "year"}
_ISO_DATE = {"Y": "year", "M": "month", "W": "week", "D": "day"}
_ISO_TIME = {"H": "hour", "M": "minute", "S": "second"}
_LONG = re.compile(r"[+-]?\d+|", re.ASCII)
_ISO_NUMBER = re.compile(
    r"-?(?:0x(?:[\da-f]+\.?[\da-f]*|\.[\da-f]+)(?:p[+-]?\d+)?|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)",
    re.ASCII | re.IGNORECASE,
)
_NO_NUMBER = re.compile(r"-(?:nan|inf)", re.IGNORECASE)


def parse_interval(text: str) -> Interval:
    try:
        try:
            total = _Fields(cut(text, ROOM)).read()
        except BadFormat:
            total = _read_iso(text)
        return total.result()
    except BadFormat:
        raise InvalidDatetime(f'invalid input syntax for type interval: "{text}"') from None
    except BadField:
        raise IntervalOverflow(f'interval field value out of range: "{text}"') from None


class _Sum:
    """Adds up the parts of an interval as they are read."""

    def __init__(self) -> None:
        self.years = self.months = self.days = self.micros = 0

    def add(self, amount: int, rest: float, unit: str) -> None:
        """An amount and its fraction. Raises BadField as soon as a part is too long."""
        if unit in _MICROS:
            self.micros += amount * _MICROS[unit]
            self._add_micros(rest * _MICROS[unit])
        elif unit in ("day", "week"):
            days = 7 if unit == "week" else 1
            self.days += _short(amount) * days
            if unit == "week":
                self._add_days(rest * days)
            else:
                self._add_micros(rest * MICROS_PER_DAY)
        elif unit == "month":
            self.months += _short(amount)
            self._add_days(rest * 30)
        elif unit in _YEARS:
            self.years += _short(amount) * _YEARS[unit]
            self.months += round(rest * _YEARS[unit] * 12)
        else:
            raise BadFormat
        self._check()

    def _add_days(self, days: float) -> None:
        self.days += int(days)
        self._add_micros((days - int(days)) * MICROS_PER_DAY)

    def _add_micros(self, micros: float) -> None:
        """Rounds half towards zero."""
        amount = int(micros)
        rest = micros - amount
        self.micros += amount + (rest > 0.5) - (rest < -0.5)

    def _check(self) -> None:
        if not (all(fits(each, 4) for each in (self.years, self.months, self.days)) and fits(self.micros, 8)):
            raise BadField

    def negate(self) -> None:
        self.years, self.months, self.days, self.micros = (
            -self.years,
            -self.months,
            -self.days,
            -self.micros,
        )
        self._check()

    def result(self) -> Interval:
        months = self.years * 12 + self.months
        if not fits(months, 4):
            raise DatetimeOverflow("interval out of range")
        return Interval(months, self.days, self.micros)


def _short(amount: int) -> int:
    if not fits(amount, 4):
        raise BadField
    return amount


class _Fields:
    """Reads the styles of PostgreSQL and of the SQL standard."""

    def __init__(self, fields: list[TimeField]) -> None:
        self.fields = fields
        self.total = _Sum()
        self.unit: str | None = None
        self.has_open_unit = self.is_ago = False
        self.endless = ""
        self.filled: set[str] = set()

    def read(self) -> _Sum:
        for at in reversed(range(len(self.fields))):
            field = self.fields[at]
            is_word = field.kind in (WORD, SPECIAL)
            fields = (
                self._word(field.text, is_last=at == len(self.fields) - 1) if is_word else self._value(field)
            )
            if fields & self.filled:
                raise BadFormat
            self.filled |= fields
        if not self.filled or self.has_open_unit:
            raise BadFormat
        if self.is_ago:
            self.total.negate()
        if self.endless:
            raise NotSupported("infinite intervals are not supported")
        return self.total

    def _word(self, word: str, *, is_last: bool) -> set[str]:
        if self.has_open_unit:
            raise BadFormat
        kind, value = WORDS.get(word, ("", ""))
        if unit := span_unit(word):
            self.unit, self.has_open_unit = unit, True
        elif word == "ago" and is_last:
            # A number right before it has no unit.
            self.unit, self.is_ago = "", True
        elif kind == time_words.UNIT:
            self.unit, self.has_open_unit = value, True
        elif kind == time_words.IGNORED:
            self.unit = None
        elif word in ENDLESS and is_last:
            self.unit, self.endless = "", word
            return _EVERYTHING
        else:
            raise BadFormat
        return set()

    def _value(self, field: TimeField) -> set[str]:
        sign = field.text[0]
        if field.kind == TIME or (field.kind == ZONE and _is_clock(field.text[1:])):
            micros = _clock_micros(field.text.lstrip("+-"))
            self.total.micros = -micros if sign == "-" else micros
            self.unit, self.has_open_unit = "day", False
            return _CLOCK
        amount, rest = _long(field.text)
        unit = "second" if self.unit is None else self.unit
        part = 0.0
        if rest[:1] == "-":
            months, rest = whole(rest[1:])
            if not 0 <= months < 12:
                raise BadField
            if rest:
                raise BadFormat
            self.unit = unit = "month"
            amount = amount * 12 + (-months if sign == "-" else months)
        elif rest[:1] == ".":
            part = -fraction(rest) if sign == "-" else fraction(rest)
        elif rest:
            raise BadFormat
        self.total.add(amount, part, unit)
        self.unit = "day" if unit == "hour" else unit
        self.has_open_unit = False
        return {unit} | _FINER if unit == "second" and part else {unit}


def _is_clock(text: str) -> bool:
    try:
        return ":" in text and _clock_micros(text) >= 0
    except (BadField, BadFormat):
        return False


def _clock_micros(text: str) -> int:
    micros = clock(text).total
    if not fits(micros, 8):
        raise BadField
    return micros


def _long(text: str) -> tuple[int, str]:
    """The number of 64 bits that text begins with, 0 if with none, and what follows it."""
    found = _LONG.match(text)
    assert found is not None
    if len(found[0].lstrip("+-0")) > 20 or not fits(amount := int(found[0] or 0), 8):
        raise BadField
    return amount, text[found.end() :]


# ISO 8601: "P", years to days, "T", hours to seconds; either with letters behind, or with separators between.


def _read_iso(text: str) -> _Sum:
    total = _Sum()
    if len(text) < 2 or text[0] != "P":
        raise BadFormat
    rest, is_date, has_field = text[1:], True, False
    while rest:
        if rest[0] == "T":
            rest, is_date, has_field = rest[1:], False, False
            continue
        start = rest
        amount, part, rest = _iso_number(rest)
        letter, rest = rest[:1], rest[1:]
        units = _ISO_DATE if is_date else _ISO_TIME
        if letter in units:
            total.add(amount, part, units[letter])
            has_field = True
            continue
        if letter not in (("", "T", "-") if is_date else ("", ":")):
            raise BadFormat
        width = len(start.removeprefix("-")) - len(start.removeprefix("-").lstrip("0123456789"))
        is_compact = letter != "-" and letter != ":" and not has_field and width == (8 if is_date else 6)
        if not is_compact and has_field:
            raise BadFormat
        if is_compact:
            _add_compact(total, amount, part, is_date=is_date)
        else:
            rest = _add_separated(total, amount, part, letter + rest, is_date=is_date)
            letter, rest = rest[:1], rest[1:]
        if not letter:
            break
        if letter != "T" or not is_date:
            raise BadFormat
        is_date = has_field = False
    return total


def _add_compact(total: _Sum, amount: int, part: float, *, is_date: bool) -> None:
    """yyyymmdd or hhmmss"""
    size = abs(amount)
    sizes = (size // 10_000, size // 100 % 100, size % 100)
    sign = -1 if amount < 0 else 1
    units = ("year", "month", "day") if is_date else ("hour", "minute", "second")
    for each, unit in zip(sizes, units, strict=True):
        total.add(sign * each, 0.0, unit)
    total.add(0, part, "day" if is_date else "microsecond")


def _add_separated(total: _Sum, amount: int, part: float, rest: str, *, is_date: bool) -> str:
    """yyyy-mm-dd or hh:mm:ss, of which the first number is read; returns what follows."""
    first, *more = ("year", "month", "day") if is_date else ("hour", "minute", "second")
    separator = "-" if is_date else ":"
    total.add(amount, part, first)
    for unit in more:
        if rest[:1] != separator:
            return rest
        amount, part, rest = _iso_number(rest[1:])
        total.add(amount, part, unit)
    return rest


def _iso_number(text: str) -> tuple[int, float, str]:
    found = _ISO_NUMBER.match(text)
    if found is None:
        raise BadField if _NO_NUMBER.match(text) else BadFormat
    value = float.fromhex(found[0]) if "x" in found[0].lower() else float(found[0])
    if abs(value) > AMOUNT_MAX:
        raise BadFormat if value in (float("inf"), float("-inf")) else BadField
    return int(value), value - int(value), text[found.end() :]
