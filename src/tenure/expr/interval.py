"""Spans of time: months, days and microseconds, which PostgreSQL keeps apart.

    '1 year 2 mons 3 days 04:05:06.789'   months 14   days 3   micros 14_706_789_000

Two intervals are equal, and ordered, by their length with a month of 30 days and a day of 24
hours: '1 mon' = '30 days'. Written in the style "postgres"; read in that style, the SQL
standard's ('1-2 3 4:05:06') and ISO 8601's ('P1Y2M3DT4H5M6S').

Infinite intervals are refused (0A000).

Walk: `expr.times` makes the type, `expr.time_functions` computes with the values.
"""

import re
from dataclasses import dataclass
from functools import total_ordering

from tenure.expr.errors import DatetimeOverflow, IntervalOverflow, InvalidDatetime, NotSupported
from tenure.expr.numbers import fits

MICROS_PER_SECOND, MICROS_PER_DAY = 1_000_000, 86_400_000_000


@total_ordering
@dataclass(frozen=True, eq=False, slots=True)
class Interval:
    months: int = 0
    days: int = 0
    micros: int = 0

    @property
    def span(self) -> int:
        """Its length in microseconds, by which intervals compare."""
        return (self.months * 30 + self.days) * MICROS_PER_DAY + self.micros

    @property
    def parts(self) -> tuple[int, int, int]:
        return self.months, self.days, self.micros

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Interval) and self.span == other.span

    def __lt__(self, other: "Interval") -> bool:
        return self.span < other.span

    def __hash__(self) -> int:
        return hash(self.span)


def checked(months: int, days: int, micros: int) -> Interval:
    if fits(months, 4) and fits(days, 4) and fits(micros, 8):
        return Interval(months, days, micros)
    raise DatetimeOverflow("interval out of range")


def render_interval(value: Interval) -> str:
    """The style "postgres": parts that are zero are left out; a + follows a negative part."""
    years, months = _split(value.months, 12)
    words: list[str] = []
    negative_before = False
    for amount, word in ((years, "year"), (months, "mon"), (value.days, "day")):
        if amount:
            sign = "+" if negative_before and amount > 0 else ""
            words.append(f"{sign}{amount} {word}{'' if amount == 1 else 's'}")
            negative_before = amount < 0
    if value.micros or not words:
        sign = "-" if value.micros < 0 else "+" if negative_before else ""
        words.append(sign + _clock(abs(value.micros)))
    return " ".join(words)


def _split(amount: int, unit: int) -> tuple[int, int]:
    """Divides towards zero: both parts have the sign of the amount."""
    whole, rest = divmod(abs(amount), unit)
    return (whole, rest) if amount >= 0 else (-whole, -rest)


def _clock(micros: int) -> str:
    seconds, fraction = divmod(micros, MICROS_PER_SECOND)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:06d}".rstrip("0") if fraction else text


# Reading: every unit adds to one of the three parts; fractions go down to the next ones.

_UNIT_WORDS = {
    "microsecond": "microseconds microsecond us usec usecs usecond useconds microsecon",
    "millisecond": "milliseconds millisecond ms msec msecs msecond mseconds millisecon",
    "second": "seconds second s sec secs",
    "minute": "minutes minute m min mins",
    "hour": "hours hour h hr hrs",
    "day": "days day d",
    "week": "weeks week w",
    "month": "months month mon mons",
    "year": "years year y yr yrs",
    "decade": "decades decade dec decs",
    "century": "centuries century c cent",
    "millennium": "millennia millennium mil mils",
}
UNITS = {word: unit for unit, words in _UNIT_WORDS.items() for word in words.split()}
_MICROS = {"microsecond": 1, "millisecond": 1000, "second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6}
_MONTHS = {"month": 1, "year": 12, "decade": 120, "century": 1200, "millennium": 12_000}
_ISO_DATE = {"Y": "year", "M": "month", "W": "week", "D": "day"}
_ISO_TIME = {"H": "hour", "M": "minute", "S": "second"}

_TOKEN = re.compile(
    r"""[\s!"#$%&'()*,;<=>?@\[\\\]^_`{|}~]*(?:
      (?P<clock>[+-]?\d+:\d*(?::\d*(?:\.\d*)?|\.\d*)?)(?![\d:.+\-/a-z])
    | (?P<years>[+-]?\d+-\d+)(?![\d:.+\-/a-z])
    | (?P<number>[+-]?\s*\d+(?:\.\d+|\.(?![a-z]))?|\.\d+)(?![\d:.+\-/])
    | (?P<word>[a-z]+)(?![\d:.+\-/])
    | $)""",
    re.VERBOSE | re.IGNORECASE,
)
_DATE = re.compile(r"\s*[+-]?\d+-(\d+)-")
_ENDLESS = re.compile(r"(?<![.\d])\d{25}")
"""More digits than any part can have; Python refuses to read thousands of them."""
_AMOUNT = r"(?:[+-]?\d+(?:\.\d*)?|\.\d+)"
_ISO = re.compile(rf"P(?=.)((?:{_AMOUNT}[YMWD])*)(?:T((?:{_AMOUNT}[HMS])+))?")
_ISO_PART = re.compile(rf"({_AMOUNT})([A-Z])")


class _Sum:
    """Adds up the parts of an interval as they are read."""

    def __init__(self) -> None:
        self.months = self.days = self.micros = 0

    def add(self, amount: str, unit: str) -> None:
        """Whole amounts count exactly; fractions in floating point, as PostgreSQL takes them."""
        digits, _, decimals = amount.partition(".")
        whole = int(digits or 0)
        fraction = float(f"{'-' if amount.startswith('-') else ''}0.{decimals or 0}")
        if unit in _MICROS:
            self.micros += whole * _MICROS[unit] + _to_micros(fraction * _MICROS[unit])
        elif unit in ("day", "week"):
            scale = 7 if unit == "week" else 1
            self.days += whole * scale
            self._add_days(fraction * scale)
        else:
            self.months += whole * _MONTHS[unit]
            if unit == "month":
                self._add_days(fraction * 30)
            else:
                self.months += round(fraction * _MONTHS[unit])

    def _add_days(self, days: float) -> None:
        whole = int(days)
        self.days += whole
        self.micros += _to_micros((days - whole) * MICROS_PER_DAY)

    def result(self, text: str) -> Interval:
        if fits(self.months, 4) and fits(self.days, 4) and fits(self.micros, 8):
            return Interval(self.months, self.days, self.micros)
        raise _overflow(text)


def _to_micros(value: float) -> int:
    """Rounds half towards zero."""
    whole = int(value)
    rest = value - whole
    return whole + (rest > 0.5) - (rest < -0.5)


def parse_interval(text: str) -> Interval:
    stripped = text.strip()
    if stripped.lower().lstrip("+-") in ("infinity", "inf"):
        raise NotSupported("infinite intervals are not supported")
    if _ENDLESS.search(stripped):
        raise IntervalOverflow("interval field value out of range: too many digits")
    if iso := _ISO.fullmatch(stripped):
        return _parse_iso(text, iso)
    tokens = _tokens(text, stripped)
    total = _Sum()
    is_ago = tokens[-1:] == [("word", "ago")]
    if is_ago:
        tokens.pop()
    if not tokens or (is_ago and tokens[-1][0] == "number"):
        raise _invalid(text)
    _add_tokens(total, tokens, text)
    if is_ago:
        total.months, total.days, total.micros = -total.months, -total.days, -total.micros
    return total.result(text)


def _tokens(text: str, stripped: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    position = 0
    while position < len(stripped):
        found = _TOKEN.match(stripped, position)
        if not found:
            # Of a date, the first two parts are taken for years and months.
            date = _DATE.match(stripped, position)
            raise _overflow(text) if date and int(date.group(1)) >= 12 else _invalid(text)
        if found.lastgroup:
            tokens.append((found.lastgroup, "".join(found.group(found.lastgroup).lower().split())))
        position = found.end()
    return tokens


def _add_tokens(total: _Sum, tokens: list[tuple[str, str]], text: str) -> None:
    """Reads from right to left, as a number without a unit gets its unit from what follows."""
    unit, has_unit, seen = "second", False, set[str]()
    for kind, word in reversed(tokens):
        if kind == "word":
            if word not in UNITS or has_unit:
                raise _invalid(text)
            unit, has_unit = UNITS[word], True
            continue
        if kind == "clock":
            total.micros += _clock_micros(word, text)
            fields = set(_MICROS)
        elif kind == "years":
            total.months += _year_months(word, text)
            unit, fields = "", {"year", "month"}
        elif not unit:
            raise _invalid(text)
        else:
            total.add(word, unit)
            fields = {unit}
        if seen & fields or (kind != "number" and has_unit):
            raise _invalid(text)
        seen |= fields
        has_unit = False
        if kind == "clock" or unit == "hour":
            unit = "day"
    if has_unit:
        raise _invalid(text)


def _year_months(word: str, text: str) -> int:
    years, months = word.lstrip("+-").split("-")
    if int(months) >= 12:
        raise _overflow(text)
    count = int(years) * 12 + int(months)
    return -count if word[0] == "-" else count


def _clock_micros(word: str, text: str) -> int:
    sign = -1 if word[0] == "-" else 1
    hour, minute, *rest = word.lstrip("+-").split(":")
    if not rest and "." in minute:
        hour, minute, rest = "0", hour, [minute]
    if not hour or not minute:
        raise _invalid(text)
    whole, _, decimals = (rest[0] if rest else "0").partition(".")
    second, micros = int(whole or 0), round(float(f"0.{decimals or 0}") * MICROS_PER_SECOND)
    if int(minute) > 59 or second > 60 or (second == 60 and micros):
        raise _overflow(text)
    return sign * (((int(hour) * 60 + int(minute)) * 60 + second) * MICROS_PER_SECOND + micros)


def _parse_iso(text: str, iso: re.Match[str]) -> Interval:
    total = _Sum()
    for part, units in ((iso.group(1), _ISO_DATE), (iso.group(2) or "", _ISO_TIME)):
        for amount, letter in _ISO_PART.findall(part):
            total.add(amount, units[letter])
    return total.result(text)


def _overflow(text: str) -> IntervalOverflow:
    return IntervalOverflow(f'interval field value out of range: "{text}"')


def _invalid(text: str) -> InvalidDatetime:
    return InvalidDatetime(f'invalid input syntax for type interval: "{text}"')
