"""Days and times in text: what PostgreSQL accepts, with DateStyle "ISO, MDY" and the session's TimeZone.

    2024-02-29 12:34:56.789+02:00   20240229T123456Z   Feb 29, 2024 1 pm   2/29/2024   29-Feb-2024

Text is cut into pieces, each of which fills fields; a field that is filled twice, or a piece that
is none of these, is an error (22007), a field out of its range another (22008). Years before 1 and
after 9999 and the infinities exist in PostgreSQL but not in Python: they are refused (0A000), and so
are "now", "today" and the like, whose meaning depends on when they are read.

Walk: `expr.times` calls `read`; this calls nothing above `base`.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo

from tenure.expr.errors import DatetimeOverflow, InvalidDatetime, NotSupported
from tenure.expr.zones import HOURS_AHEAD, from_zone, zone_named

YEAR_MAX = 9999
LENGTH_MAX = 150
"""As much as PostgreSQL takes apart."""

_MONTHS = {
    name: number
    for number, names in enumerate(
        [
            "jan january",
            "feb february",
            "mar march",
            "apr april",
            "may",
            "jun june",
            "jul july",
            "aug august",
            "sep sept september",
            "oct october",
            "nov november",
            "dec december",
        ],
        start=1,
    )
    for name in names.split()
}
_WEEKDAYS = (
    " sun sunday mon monday tue tues tuesday wed weds wednesday "
    " thu thur thurs thursday fri friday sat saturday "
)
_MOVING = {"now", "today", "tomorrow", "yesterday", "allballs"}
_BETWEEN = r"\s!\"#$%&'()*,;<=>?@\[\\\]^`{|}~"
"""What stands between the parts, and means nothing."""
_PIECE = re.compile(
    rf"""[{_BETWEEN}]*(?:
      (?P<ymd>\d{{3,6}}(?P<dash>[-/.])\d{{1,2}}(?P=dash)\d{{1,2}})(?=$|[{_BETWEEN}]|t\d)
    | (?P<named>
        \d{{1,2}}-[a-z]{{3,9}}-\d{{2,6}} | \d{{4,6}}-[a-z]{{3,9}}-\d{{1,2}} | [a-z]{{3,9}}-\d{{1,2}}-\d{{2,6}}
      )(?![\w-])
    | (?P<mdy>\d{{1,2}}(?P<slash>[-/.])\d{{1,2}}(?P=slash)\d{{2,6}})(?=$|[{_BETWEEN}])
    | t?(?P<clock>\d{{1,2}}:\d{{1,2}}(?::\d{{1,2}}(?:\.\d*)?|\.\d+)?)(?=$|[{_BETWEEN}+-]|am|pm|z)
    | (?P<compact>\d{{8}}t(?:\d{{6}}(?:\.\d+)?|\d{{4}}))(?=$|[{_BETWEEN}+-]|z)
    | (?P<offset>[+-](?:\d{{3,}}|\d{{1,2}}(?::\d{{2}}(?::\d{{2}})?)?))(?=$|[{_BETWEEN}])
    | (?P<zone>[a-z_]+/[a-z_/+0-9-]+)(?=$|[{_BETWEEN}])
    | (?P<number>\d+(?:\.\d+)?)(?=$|[{_BETWEEN}])
    | (?P<word>[a-z]+)(?=$|[{_BETWEEN}])
    )[{_BETWEEN}]*""",
    re.VERBOSE | re.IGNORECASE,
)
_GROUPS = ("ymd", "named", "mdy", "clock", "compact", "offset", "zone", "number", "word")


@dataclass
class Fields:
    """What was read. `micros` are those since midnight; 24:00:00 is the whole day."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    micros: int | None = None
    zone: tzinfo | None = None

    def calendar_day(self, text: str) -> date:
        if self.year is None or self.month is None or self.day is None:
            raise _invalid(text)
        if self.year > YEAR_MAX or self.year < 1:
            raise NotSupported(f'the year of "{text}" is outside the years 1 to {YEAR_MAX}')
        try:
            return date(self.year, self.month, self.day)
        except ValueError:
            raise _overflow(text) from None

    def timestamp(self, text: str) -> datetime:
        day = self.calendar_day(text)
        try:
            return datetime(day.year, day.month, day.day) + timedelta(microseconds=self.micros or 0)
        except OverflowError:
            raise NotSupported(f'"{text}" is outside the years 1 to {YEAR_MAX}') from None

    def instant(self, text: str, session_zone: tzinfo = UTC) -> datetime:
        return from_zone(self.timestamp(text), self.zone or session_zone)


def read(text: str, *, kind: str) -> Fields:
    """Reads text of a type named `kind`; raises InvalidDatetime and its like."""
    word = text.strip().lower()
    if word == "epoch" and kind != "time":
        return Fields(1970, 1, 1, 0)
    if word.lstrip("+-") in ("infinity", "inf") and kind != "time":
        raise NotSupported(f'"{word}" is not supported as a value of type {kind}')
    return _Reader(text, kind).read()


class _Reader:
    def __init__(self, text: str, kind: str) -> None:
        self.text = text
        self.kind = kind
        self.fields = Fields()
        self.numbers: list[str] = []
        self.has_zone = False
        self.half: str | None = None

    def read(self) -> Fields:
        position, stripped = 0, self.text.strip()
        if not stripped or len(stripped) > LENGTH_MAX:
            raise _invalid(self.text, self.kind)
        while position < len(stripped):
            found = _PIECE.match(stripped, position)
            if not found:
                raise _invalid(self.text, self.kind)
            group = next(name for name in _GROUPS if found.group(name) is not None)
            getattr(self, f"_{group}")(found.group(group).lower())
            position = found.end()
        self._place_numbers()
        self._apply_half()
        self._check()
        return self.fields

    def _ymd(self, piece: str) -> None:
        year, month, day = re.split("[-/.]", piece)
        self._date(int(year), int(month), int(day))

    def _mdy(self, piece: str) -> None:
        month, day, year = re.split("[-/.]", piece)
        self._date(_full_year(year), int(month), int(day))

    def _named(self, piece: str) -> None:
        parts = piece.split("-")
        name = next(part for part in parts if part.isalpha())
        if name not in _MONTHS:
            raise _invalid(self.text, self.kind)
        first, second = (part for part in parts if part != name)
        year, day = (first, second) if len(first) > 2 else (second, first)
        self._date(_full_year(year), _MONTHS[name], int(day))

    def _clock(self, piece: str) -> None:
        hour, minute, *rest = piece.split(":")
        if not rest and "." in minute:
            hour, minute, rest = "0", hour, [minute]
        self._time(int(hour), int(minute), rest[0] if rest else "0")

    def _compact(self, piece: str) -> None:
        day, clock = piece.split("t")
        self._date(int(day[:4]), int(day[4:6]), int(day[6:]))
        self._time(int(clock[:2]), int(clock[2:4]), clock[4:] or "0")

    def _offset(self, piece: str) -> None:
        if ":" in piece or len(piece) <= 3:
            hours, minutes, seconds = (int(each) for each in (*piece[1:].split(":"), "0", "0")[:3])
        else:
            hours, minutes, seconds = int(piece[1:-2]), int(piece[-2:]), 0
        if hours > 15 or minutes > 59 or seconds > 59:
            raise _ZoneOverflow(f'time zone displacement out of range: "{self.text}"')
        ahead = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        self._set_zone(timezone(-ahead if piece[0] == "-" else ahead))

    def _zone(self, piece: str) -> None:
        self._set_zone(zone_named(piece))

    def _number(self, piece: str) -> None:
        whole, _, fraction = piece.partition(".")
        if len(whole) > 6 and not fraction and self.fields.year is None and self.kind != "time":
            self._date(int(whole[:-4]), int(whole[-4:-2]), int(whole[-2:]))
        elif len(whole) == 6 and (self.fields.year is not None or self.kind == "time"):
            self._time(int(whole[:2]), int(whole[2:4]), piece[4:])
        elif len(whole) == 6 and not fraction:
            self._date(_full_year(whole[:2]), int(whole[2:4]), int(whole[4:]))
        elif len(whole) == 4 and self.kind == "time" and not fraction:
            self._time(int(whole[:2]), int(whole[2:]), "0")
        elif fraction or len(whole) > 6:
            raise _invalid(self.text, self.kind)
        else:
            self.numbers.append(whole)

    def _word(self, piece: str) -> None:
        if piece in _MONTHS and self.fields.month is None:
            self.fields.month = _MONTHS[piece]
        elif piece in ("am", "pm") and self.half is None:
            self.half = piece
        elif piece == "bc":
            raise NotSupported(f'the year of "{self.text}" is outside the years 1 to {YEAR_MAX}')
        elif piece in _MOVING:
            raise NotSupported(f'"{piece}" is not supported as a value of type {self.kind}')
        elif piece in HOURS_AHEAD:
            self._set_zone(zone_named(piece))
        elif f" {piece} " not in _WEEKDAYS and piece not in ("ad", "at"):
            raise _invalid(self.text, self.kind)

    def _place_numbers(self) -> None:
        """Numbers beside a month's name: the day, and the year, which has more than two digits or is last."""
        if not self.numbers:
            return
        if self.fields.month is None or self.fields.year is not None or len(self.numbers) != 2:
            # A short number alone is taken for a month.
            is_month = len(self.numbers) == 1 and len(self.numbers[0]) <= 2 and self.fields.month is None
            is_wrong = is_month and self.kind != "time" and not 1 <= int(self.numbers[0]) <= 12
            raise _overflow(self.text) if is_wrong else _invalid(self.text, self.kind)
        first, second = self.numbers
        year, day = (first, second) if len(first) > 2 else (second, first)
        self.fields.year, self.fields.day = _full_year(year), int(day)

    def _apply_half(self) -> None:
        if self.half is None:
            return
        if self.fields.micros is None:
            raise _invalid(self.text, self.kind)
        hour, rest = divmod(self.fields.micros, 3_600_000_000)
        if not 1 <= hour <= 12 and not (hour == 0 and rest >= 0):
            raise _overflow(self.text)
        self.fields.micros = (hour % 12 + (12 if self.half == "pm" else 0)) * 3_600_000_000 + rest

    def _check(self) -> None:
        fields = self.fields
        if self.kind == "time" and fields.micros is None:
            raise _invalid(self.text, self.kind)
        if fields.year is None or fields.month is None or fields.day is None:
            if self.kind != "time" or (fields.year, fields.month, fields.day) != (None, None, None):
                raise _invalid(self.text, self.kind)
        elif not (1 <= fields.month <= 12 and 1 <= fields.day <= 31):
            raise _overflow(self.text)

    def _date(self, year: int, month: int, day: int) -> None:
        if self.fields.year is not None:
            raise _invalid(self.text, self.kind)
        self.fields.year, self.fields.month, self.fields.day = year, month, day
        if not year:
            raise _overflow(self.text)

    def _time(self, hour: int, minute: int, seconds: str) -> None:
        if self.fields.micros is not None:
            raise _invalid(self.text, self.kind)
        whole, _, fraction = seconds.partition(".")
        second = int(whole or 0)
        micros = round(float("0." + (fraction or "0")) * 1_000_000)
        is_midnight_after = hour == 24 and minute == second == micros == 0
        if (hour > 23 and not is_midnight_after) or minute > 59 or second > 60 or (second == 60 and micros):
            raise _overflow(self.text)
        self.fields.micros = ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros

    def _set_zone(self, zone: tzinfo) -> None:
        if self.has_zone:
            raise _invalid(self.text, self.kind)
        self.has_zone = True
        self.fields.zone = zone


class _ZoneOverflow(DatetimeOverflow):
    sqlstate = "22009"


def _full_year(digits: str) -> int:
    year = int(digits)
    if len(digits) > 2:
        return year
    return year + (2000 if year < 70 else 1900)


def _invalid(text: str, kind: str = "date/time") -> InvalidDatetime:
    return InvalidDatetime(f'invalid input syntax for type {kind}: "{text}"')


def _overflow(text: str) -> DatetimeOverflow:
    return DatetimeOverflow(f'date/time field value out of range: "{text}"')
