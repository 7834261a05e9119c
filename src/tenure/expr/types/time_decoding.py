"""The fields of a day and a time: each field fills parts of a moment, and no part may be filled twice.

    2024-02-29    year, month, day           20240229   the same
    2/29/24       month, day, short year     2024.060   year, day of the year
    12:34:56.7    the time                   123456.7   the same, where a day is known

The meaning of a number follows from its length and from the parts that are filled already, in PostgreSQL's
order "MDY". Whether the parts make a valid day is checked at the end.

Walk: `expr.types.time_text` fills a `Moment` field by field; `expr.types.interval_text` asks `clock` and
`fraction`.
"""

import re
from calendar import isleap
from datetime import date, timedelta, timezone, tzinfo
from typing import NamedTuple

from tenure.expr.types.time_fields import BadField, BadFormat, BadZoneOffset
from tenure.expr.types.time_words import MONTH as MONTH_WORD
from tenure.expr.types.time_words import WORDS

YEAR, MONTH, DAY, DAY_OF_YEAR, CLOCK, ZONE = 1, 2, 4, 8, 16, 32
SUMMER, SHIFT, WEEKDAY, HALF, ERA = 64, 128, 256, 512, 1024
"""The parts of a moment."""
A_DAY = YEAR | MONTH | DAY

HOURS_AHEAD_MAX = 15
JULIAN_OF_ORDINAL_0 = 1_721_425
_INT_MAX = 2**31 - 1
_PIECE = re.compile(r"(\d+|[a-z]+).?", re.DOTALL)
_LEADING = re.compile(r"[+-]?\d+|", re.ASCII)
_DIGITS = re.compile(r"[\d.]+", re.ASCII)
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class ClockTime(NamedTuple):
    hour: int = 0
    minute: int = 0
    second: int = 0
    micros: int = 0

    @property
    def total(self) -> int:
        """Microseconds since midnight."""
        return ((self.hour * 60 + self.minute) * 60 + self.second) * 1_000_000 + self.micros


def whole(text: str) -> tuple[int, str]:
    """The number that text begins with, 0 if with none, and what follows it."""
    found = _LEADING.match(text)
    assert found is not None
    value = int(found[0] or 0)
    if not -_INT_MAX - 1 <= value <= _INT_MAX:
        raise BadField
    return value, text[found.end() :]


def fraction(text: str) -> float:
    """The fraction of "." and digits, or of "." alone."""
    digits = text[1:]
    if digits and not (digits.isascii() and digits.isdigit()):
        raise BadFormat
    return float(f"0.{digits or 0}")


def micros(text: str) -> int:
    return round(fraction(text) * 1_000_000)


def clock(text: str) -> ClockTime:
    """hh:mm, hh:mm:ss.f or mm:ss.f; the caller checks the range of the hours."""
    hours, _, rest = text.partition(":")
    if not hours.isdigit():
        raise BadFormat
    if len(hours.lstrip("0")) > 19 or (hour := int(hours)) >= 2**63:
        raise BadField
    minute, rest = whole(rest)
    found = ClockTime(hour, minute)
    if rest[:1] == ".":
        found = ClockTime(0, hour, minute, micros(rest))
    elif rest[:1] == ":":
        second, rest = whole(rest[1:])
        if rest and rest[0] != ".":
            raise BadFormat
        found = ClockTime(hour, minute, second, micros(rest) if rest else 0)
    elif rest:
        raise BadFormat
    if not (0 <= found.minute <= 59 and 0 <= found.second <= 60):
        raise BadField
    return found


def offset(text: str) -> int:
    """+hh, +hhmm, +hh:mm or +hh:mm:ss as seconds ahead of UTC."""
    if text[:1] not in ("+", "-"):
        raise BadFormat
    try:
        hours, rest = whole(text[1:])
        minutes = seconds = 0
        if rest[:1] == ":":
            minutes, rest = whole(rest[1:])
            if rest[:1] == ":":
                seconds, rest = whole(rest[1:])
        elif not rest and len(text) > 3:
            hours, minutes = divmod(hours, 100)
    except BadField:
        raise BadZoneOffset from None
    if not (0 <= hours <= HOURS_AHEAD_MAX and 0 <= minutes <= 59 and 0 <= seconds <= 59):
        raise BadZoneOffset
    if rest:
        raise BadFormat
    ahead = (hours * 60 + minutes) * 60 + seconds
    return -ahead if text[0] == "-" else ahead


class Moment:
    """The fields that were read so far."""

    def __init__(self) -> None:
        self.year = self.month = self.day = self.day_of_year = 0
        self.clock = ClockTime()
        self.ahead = 0
        self.zone: tzinfo | None = None
        self.fields = 0
        self.has_named_month = self.has_short_year = self.is_julian = self.is_before_christ = False
        self.half = ""

    def learn(self, fields: int) -> None:
        if fields & self.fields:
            raise BadFormat
        self.fields |= fields

    @property
    def offset_zone(self) -> tzinfo | None:
        """The zone that was given, by name or as an offset."""
        if self.zone is not None or not self.fields & ZONE:
            return self.zone
        return timezone(timedelta(seconds=self.ahead))

    def take_date(self, text: str) -> int:
        """Numbers, and perhaps a month's name, between separators."""
        fields, fields_before = 0, self.fields
        pieces = _pieces(text)
        for piece in pieces:
            if piece.isalpha():
                kind, value = WORDS.get(piece, ("", ""))
                if kind != MONTH_WORD or fields_before & MONTH:
                    raise BadFormat
                self.month, self.has_named_month = int(value), True
                fields, fields_before = fields | MONTH, fields_before | MONTH
        has_named_month = bool(fields & MONTH)
        for piece in pieces:
            if not piece.isalpha():
                found = self.take_number(piece, fields_before, has_named_month=has_named_month)
                if found & fields_before:
                    raise BadFormat
                fields, fields_before = fields | found, fields_before | found
        if fields_before & ~(DAY_OF_YEAR | ZONE) != A_DAY:
            raise BadFormat
        return fields

    def take_number(self, text: str, fields_before: int, *, has_named_month: bool) -> int:
        """One number; which part it is follows from what is known."""
        value, rest = whole(text)
        if len(rest) == len(text):
            raise BadFormat
        if rest[:1] == ".":
            if len(text) - len(rest) > 2:
                return self.take_digits(text, fields_before | A_DAY)
            self.clock = self.clock._replace(micros=micros(rest))
        elif rest:
            raise BadFormat
        if len(text) == 3 and fields_before & A_DAY == YEAR and 1 <= value <= 366:
            self.day_of_year = value
            return DAY_OF_YEAR | MONTH | DAY
        part = _part(text, fields_before & A_DAY, has_named_month)
        if part == YEAR:
            self.year, self.has_short_year = value, len(text) <= 2
        elif part == MONTH:
            self.month = value
        elif part == DAY:
            self.day = value
        else:
            return self.take_digits(text, fields_before)
        return part

    def take_digits(self, text: str, fields_before: int) -> int:
        """A day or a time without separators."""
        if not _DIGITS.fullmatch(text):
            raise BadFormat
        digits, point, decimals = text.partition(".")
        if point:
            self.clock = self.clock._replace(micros=micros("." + decimals))
        elif fields_before & A_DAY != A_DAY and len(digits) >= 6:
            self.year, self.month, self.day = int(digits[:-4]), int(digits[-4:-2]), int(digits[-2:])
            if len(digits) == 6:
                self.has_short_year = True
            return A_DAY
        if fields_before & CLOCK or len(digits) not in (4, 6):
            raise BadFormat
        second = int(digits[4:]) if len(digits) == 6 else 0
        self.clock = ClockTime(int(digits[:2]), int(digits[2:4]), second, self.clock.micros)
        return CLOCK

    def take_julian(self, text: str) -> int:
        """A day's number since 4714 BC, with a fraction for the time."""
        value, rest = whole(text)
        if value < 0:
            raise BadField
        self.is_julian = True
        ordinal = value - JULIAN_OF_ORDINAL_0
        # Days that Python's date cannot hold get a year out of range, which is refused later.
        day = date.fromordinal(ordinal) if 0 < ordinal <= date.max.toordinal() else None
        self.year, self.month, self.day = (
            (day.year, day.month, day.day) if day else (0 if ordinal <= 0 else 10_000, 1, 1)
        )
        if rest[:1] != ".":
            return A_DAY
        total = int(fraction(rest) * 86_400_000_000)
        seconds, left = divmod(total, 1_000_000)
        self.clock = ClockTime(seconds // 3600, seconds // 60 % 60, seconds % 60, left)
        return A_DAY | CLOCK

    def settle_day(self) -> None:
        """Completes the year, and checks whether there is such a day."""
        if self.fields & YEAR and not self.is_julian:
            if self.has_short_year and not self.is_before_christ:
                self.year += 2000 if self.year < 70 else 1900 if self.year < 100 else 0
            elif self.year <= 0:
                raise BadField
            elif self.is_before_christ:
                self.year = 1 - self.year
        if self.fields & DAY_OF_YEAR:
            self._count_days()
        if self.fields & MONTH and not 1 <= self.month <= 12:
            raise BadField
        if self.fields & DAY and not 1 <= self.day <= 31:
            raise BadField
        if self.fields & A_DAY == A_DAY:
            has_leap_day = self.month == 2 and isleap(self.year)
            if self.day > _DAYS[self.month - 1] + has_leap_day:
                raise BadField

    def _count_days(self) -> None:
        day, self.month = self.day_of_year, 1
        for length in _DAYS:
            length += self.month == 2 and isleap(self.year)
            if day <= length:
                break
            day, self.month = day - length, self.month + 1
        if self.month > 12:
            self.year, self.month = self.year + 1, 1
        self.day = day

    def settle_half(self) -> None:
        if self.half and self.clock.hour > 12:
            raise BadField
        if self.half == "am" and self.clock.hour == 12:
            self.clock = self.clock._replace(hour=0)
        elif self.half == "pm" and self.clock.hour != 12:
            self.clock = self.clock._replace(hour=self.clock.hour + 12)


def _part(text: str, fields_before: int, has_named_month: bool) -> int:
    """0 if the whole day is known: then it is a time."""
    if fields_before == 0:
        return YEAR if len(text) >= 3 else MONTH
    if fields_before == MONTH and has_named_month:
        return YEAR if len(text) >= 3 else DAY
    return {YEAR: MONTH, MONTH: DAY, YEAR | MONTH: DAY, DAY: MONTH, MONTH | DAY: YEAR}.get(fields_before, 0)


def check_clock(value: ClockTime) -> None:
    """A day has 24 hours, the end included."""
    if value.hour > 24 or value.minute > 59 or value.second > 60 or value.total > 86_400_000_000:
        raise BadField


def _pieces(text: str) -> list[str]:
    pieces = []
    while text:
        text = text.lstrip("-/.+_:")
        found = _PIECE.match(text)
        if found is None:
            raise BadFormat
        pieces.append(found[1])
        text = text[found.end() :]
    return pieces
