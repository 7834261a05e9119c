"""Days and times in text: what PostgreSQL accepts, with DateStyle "ISO, MDY" and the session's TimeZone.

    2024-02-29 12:34:56.789+02:00   20240229T123456Z   Feb 29, 2024 1 pm   2/29/2024   29-Feb-2024

Text is cut into fields, each of which fills parts; a part that is filled twice, or a field that is
none of these, is an error (22007), a part out of its range another (22008). Years before 1 and
after 9999 and the infinities exist in PostgreSQL but not in Python: they are refused (0A000), and so
are "now", "today" and similar words, whose meaning depends on when they are read.

Walk: `expr.types.time_types` calls `read`; fields come from `expr.types.time_fields`, and fill an
`expr.types.time_decoding.Moment`.
"""

import re
from datetime import UTC, date, datetime, timedelta, tzinfo

from tenure.base.errors import (
    DatetimeOverflow,
    InvalidDatetime,
    InvalidParameter,
    InvalidZoneOffset,
    NotSupported,
)
from tenure.expr.types import time_words
from tenure.expr.types.time_decoding import (
    A_DAY,
    CLOCK,
    DAY,
    ERA,
    HALF,
    MONTH,
    SHIFT,
    SUMMER,
    WEEKDAY,
    ZONE,
    ClockTime,
    Moment,
    check_clock,
    clock,
    offset,
    whole,
)
from tenure.expr.types.time_fields import (
    DATE,
    NUMBER,
    TIME,
    BadField,
    BadFormat,
    BadZoneOffset,
    TimeField,
    cut,
)
from tenure.expr.types.time_fields import ZONE as ZONE_FIELD
from tenure.expr.types.time_words import MOVING, WORDS
from tenure.expr.types.zone_words import SUMMER as SUMMER_WORDS
from tenure.expr.types.zones import abbreviated, from_spoken, from_zone, zone_of

YEAR_MAX = 9999
ROOM = 129
"""The longest text that PostgreSQL takes apart."""

HOUR_MAX = 2**31 - 1

_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d:\d\d(?:\.(?:\d{3}){1,2})?)(Z|\+(?:0\d|1[0-5])(?::[0-5]\d)?|)?)?",
    re.ASCII,
)


class Reading(Moment):
    """A day, a time or both, as read from a text."""

    def __init__(self, text: str, kind: str, session_zone: tzinfo) -> None:
        super().__init__()
        self.text = text
        self.kind = kind
        self.session_zone = session_zone
        self.prefix = ""
        self.reserved = ""
        self.abbreviation = ""

    def calendar_day(self) -> date:
        if self.reserved == "epoch":
            return date(1970, 1, 1)
        if self.reserved:
            raise NotSupported(f'"{self.reserved}" is not supported as a value of type {self.kind}')
        if not 1 <= self.year <= YEAR_MAX:
            raise NotSupported(f'the year of "{self.text}" is outside the years 1 to {YEAR_MAX}')
        return date(self.year, self.month, self.day)

    def timestamp(self) -> datetime:
        day = self.calendar_day()
        try:
            return datetime(day.year, day.month, day.day) + timedelta(microseconds=self.clock.total)
        except OverflowError:
            raise NotSupported(f'"{self.text}" is outside the years 1 to {YEAR_MAX}') from None

    def instant(self) -> datetime:
        if self.reserved == "epoch":
            return datetime(1970, 1, 1, tzinfo=UTC)
        zone = self.offset_zone or self.session_zone
        if self.abbreviation:
            return from_spoken(self.timestamp(), zone, self.abbreviation)
        return from_zone(self.timestamp(), zone)

    def time_of_day(self) -> int:
        """Microseconds since midnight."""
        if self.reserved:
            raise NotSupported(f'"{self.reserved}" is not supported as a value of type {self.kind}')
        return self.clock.total


def read_iso(text: str) -> datetime | None:
    """Reads ISO 8601, which nearly all programs write; None if the text is anything else."""
    if not _ISO.fullmatch(text) or text.startswith(("0001", "9999")):
        # Near the ends of the calendar, an offset may lead out of it.
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def read(text: str, *, kind: str, zone: tzinfo = UTC) -> Reading:
    """Reads text of a type named `kind`; raises InvalidDatetime, DatetimeOverflow or InvalidZoneOffset."""
    reading = Reading(text, kind, zone)
    try:
        fields = cut(text, ROOM)
        if kind == "time":
            _TimeReader(reading, fields).read()
        else:
            _DayReader(reading, fields).read()
    except BadFormat:
        raise InvalidDatetime(f'invalid input syntax for type {kind}: "{text}"') from None
    except BadField:
        raise DatetimeOverflow(f'date/time field value out of range: "{text}"') from None
    except BadZoneOffset:
        raise InvalidZoneOffset(f'time zone displacement out of range: "{text}"') from None
    return reading


class _Reader:
    """The common part of reading days and times of day."""

    assumed = 0
    """Parts that count as filled when a number is read."""

    def __init__(self, reading: Reading, fields: list[TimeField]) -> None:
        self.reading = reading
        self.fields = fields

    def read(self) -> None:
        for at, field in enumerate(self.fields):
            self.reading.learn(self._take(at, field))
        if self.reading.prefix:
            raise BadFormat
        self._settle()

    def _take(self, at: int, field: TimeField) -> int:
        reading = self.reading
        if field.kind == DATE:
            return self._date(at, field.text)
        if field.kind == TIME:
            self._end_prefix()
            reading.clock = clock(field.text)
            if reading.clock.hour > HOUR_MAX:
                raise BadField
            return CLOCK
        if field.kind == ZONE_FIELD:
            reading.ahead = offset(field.text)
            return ZONE
        if field.kind == NUMBER:
            return self._prefixed(field.text) if reading.prefix else self._number(at, field.text)
        return self._word(field.text)

    def _date(self, at: int, text: str) -> int:
        raise NotImplementedError

    def _number(self, at: int, text: str) -> int:
        raise NotImplementedError

    def _reserved(self, word: str) -> int:
        raise NotImplementedError

    def _settle(self) -> None:
        raise NotImplementedError

    def _end_prefix(self) -> None:
        """A time may follow a "t", and nothing else."""
        if self.reading.prefix not in ("", "t"):
            raise BadFormat
        self.reading.prefix = ""

    def _prefixed(self, text: str) -> int:
        """A number whose meaning the word before it gives."""
        reading, prefix = self.reading, self.reading.prefix
        _, rest = whole(text)
        if rest and rest[0] != ".":
            raise BadFormat
        reading.prefix = ""
        if prefix == "julian":
            return reading.take_julian(text)
        if prefix != "t" or reading.take_digits(text, reading.fields | A_DAY) != CLOCK:
            raise BadFormat
        return CLOCK

    def _clock_and_offset(self, text: str) -> int:
        """hhmmss-zz"""
        digits, sign, rest = text.partition("-")
        if self.reading.fields & CLOCK or not sign:
            raise BadFormat
        self.reading.ahead = offset(sign + rest)
        return self.reading.take_digits(digits, self.reading.fields | self.assumed) | ZONE

    def _named_zone(self, name: str) -> int:
        self.reading.zone = zone_of(name)
        if self.reading.zone is None:
            raise InvalidParameter(f'time zone "{name}" not recognized')
        return ZONE

    def _word(self, word: str) -> int:
        reading = self.reading
        if zone := abbreviated(word, reading.session_zone):
            return self._abbreviation(word, zone)
        kind, value = WORDS.get(word, ("", word))
        if kind == time_words.IGNORED:
            return 0
        if kind == time_words.RESERVED:
            return self._reserved(word)
        if kind == time_words.HALF:
            reading.half = word
            return HALF
        if kind == time_words.ERA:
            reading.is_before_christ = word == "bc"
            return ERA
        if kind == time_words.SUMMER_TIME:
            reading.ahead += 3600
            return SHIFT | SUMMER
        if kind in (time_words.UNIT, time_words.CLOCK):
            if reading.prefix:
                raise BadFormat
            reading.prefix = value
            return 0
        if not kind and (place := zone_of(word)):
            reading.zone = place
            return ZONE
        return self._day_word(kind, value)

    def _day_word(self, kind: str, value: str) -> int:
        raise BadFormat

    def _abbreviation(self, word: str, zone: tzinfo) -> int:
        ahead = zone.utcoffset(None)
        if ahead is None:
            self.reading.zone, self.reading.abbreviation = zone, word
            return ZONE
        self.reading.ahead = round(ahead.total_seconds())
        return ZONE | SUMMER if word in SUMMER_WORDS else ZONE

    def _check_zone(self) -> None:
        """DST adds an hour to an abbreviation or an offset, but not to a place."""
        fields = self.reading.fields
        if fields & SHIFT and (self.reading.zone is not None or not fields & ZONE):
            raise BadFormat


class _DayReader(_Reader):
    def _date(self, at: int, text: str) -> int:
        reading = self.reading
        if reading.prefix == "julian":
            digits = str(whole(text)[0])
            fields = reading.take_julian(digits)
            reading.ahead = offset(text[len(text) - len(whole(text)[1]) :])
            reading.prefix = ""
            return fields | CLOCK | ZONE
        if not reading.prefix and reading.fields & (MONTH | DAY) != MONTH | DAY:
            return reading.take_date(text)
        if text[0].isdigit() or reading.prefix:
            self._end_prefix()
            return self._clock_and_offset(text)
        return self._named_zone(text)

    def _take(self, at: int, field: TimeField) -> int:
        fields = super()._take(at, field)
        if field.kind == TIME:
            check_clock(self.reading.clock)
        return fields

    def _number(self, at: int, text: str) -> int:
        reading = self.reading
        before, point, _ = text.partition(".")
        if point and not reading.fields & A_DAY:
            return reading.take_date(text)
        is_long = len(before) > 2 if point else len(text) >= 6
        if is_long and (point or not reading.fields & A_DAY or not reading.fields & CLOCK):
            return reading.take_digits(text, reading.fields)
        return reading.take_number(text, reading.fields, has_named_month=reading.has_named_month)

    def _reserved(self, word: str) -> int:
        reading = self.reading
        if word == "allballs":
            reading.clock, reading.ahead = ClockTime(), 0
            return CLOCK | ZONE
        reading.reserved = word
        return A_DAY if word in MOVING and word != "now" else A_DAY | CLOCK | ZONE

    def _day_word(self, kind: str, value: str) -> int:
        reading = self.reading
        if kind == time_words.WEEKDAY:
            return WEEKDAY
        if kind != time_words.MONTH:
            raise BadFormat
        part = MONTH
        if (
            reading.fields & MONTH
            and not reading.has_named_month
            and not reading.fields & DAY
            and 1 <= reading.month <= 31
        ):
            # The number before it was the day.
            reading.day, part = reading.month, DAY
        reading.has_named_month, reading.month = True, int(value)
        return part

    def _word(self, word: str) -> int:
        if word == "t" and self.reading.fields & A_DAY != A_DAY:
            raise BadFormat
        return super()._word(word)

    def _settle(self) -> None:
        reading = self.reading
        if reading.reserved and reading.reserved not in MOVING:
            return
        if not reading.reserved:
            reading.settle_day()
        reading.settle_half()
        if reading.fields & A_DAY != A_DAY:
            raise BadFormat
        self._check_zone()


class _TimeReader(_Reader):
    assumed = A_DAY

    def _date(self, at: int, text: str) -> int:
        if at == 0 and self._may_begin_with_day(with_time=True):
            return self.reading.take_date(text)
        if text[0].isdigit():
            return self._clock_and_offset(text)
        return self._named_zone(text)

    def _may_begin_with_day(self, *, with_time: bool) -> bool:
        fields = self.fields
        is_followed = len(fields) > 1 and fields[1].kind == TIME
        return len(fields) > 1 and (fields[-1].kind == DATE or (with_time and is_followed))

    def _number(self, at: int, text: str) -> int:
        reading = self.reading
        before, point, _ = text.partition(".")
        if point and at == 0 and self._may_begin_with_day(with_time=False):
            return reading.take_date(text)
        if point and len(before) <= 2:
            raise BadFormat
        if point or len(text) > 4:
            return reading.take_digits(text, reading.fields | A_DAY)
        return reading.take_number(text, reading.fields | A_DAY, has_named_month=False)

    def _reserved(self, word: str) -> int:
        if word == "allballs":
            self.reading.clock = ClockTime()
            return CLOCK | ZONE
        if word != "now":
            raise BadFormat
        self.reading.reserved = word
        return CLOCK

    def _settle(self) -> None:
        reading = self.reading
        reading.settle_day()
        reading.settle_half()
        check_clock(reading.clock)
        if not reading.fields & CLOCK:
            raise BadFormat
        self._check_zone()
        needs_day = (
            reading.zone is not None and reading.zone.utcoffset(None) is None and not reading.abbreviation
        )
        if reading.fields & A_DAY != A_DAY and (needs_day or reading.fields & A_DAY):
            raise BadFormat
