"""Days, times of day, timestamps and intervals as types.

    type          value                     rows hold
    date          date                      days since 2000-01-01
    time          time                      microseconds since midnight
    timestamp     datetime, naive           microseconds since 2000-01-01
    timestamptz   datetime, aware, in UTC   microseconds since 2000-01-01 UTC
    interval      Interval                  microseconds, or months, days and microseconds

A precision (0 to 6) rounds half away from 2000-01-01. Years run from 1 to 9999, and a time of day
ends before 24:00:00; the session's time zone is UTC.

Walk: `expr.types.type_names` makes the types; `expr.functions.time_making` uses `micros_of` and
`timestamp_of`.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any

from tenure.base.errors import DatetimeOverflow, NotSupported, UserError
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.interval import MICROS_PER_DAY, Interval, render_interval
from tenure.expr.types.interval_text import parse_interval
from tenure.expr.types.time_decoding import JULIAN_OF_ORDINAL_0
from tenure.expr.types.time_text import read, read_iso
from tenure.expr.types.zones import in_zone, offset_text

_EPOCH = datetime(2000, 1, 1)
_EPOCH_UTC = datetime(2000, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(2000, 1, 1).toordinal()
_DATES_END, _TIMESTAMPS_END = 2_147_483_494, 109_203_528
"""Julian days at which PostgreSQL's own ranges end; they begin at day 0."""


def micros_of(value: datetime) -> int:
    """Microseconds since 2000-01-01, in UTC if it is aware."""
    since = value - (_EPOCH if value.tzinfo is None else _EPOCH_UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def timestamp_of(micros: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise beyond_timestamps(micros // MICROS_PER_DAY + _EPOCH_DAY) from None


def beyond_dates(ordinal: int) -> UserError:
    """The error for a day outside the years 1 to 9999: PostgreSQL has some of them."""
    if 0 <= ordinal + JULIAN_OF_ORDINAL_0 < _DATES_END:
        return NotSupported("a date outside the years 1 to 9999 is not supported")
    return DatetimeOverflow("date out of range")


def beyond_timestamps(ordinal: int) -> UserError:
    if 0 <= ordinal + JULIAN_OF_ORDINAL_0 < _TIMESTAMPS_END:
        return NotSupported("a timestamp outside the years 1 to 9999 is not supported")
    return DatetimeOverflow("timestamp out of range")


def instant_of(micros: int) -> datetime:
    return timestamp_of(micros).replace(tzinfo=UTC)


def iso_text(value: datetime) -> str:
    """As JSON has it: with a T, and the offset of an aware one."""
    text = f"{value.date().isoformat()}T{_clock_text(value)}"
    return text if value.tzinfo is None else text + offset_text(value, has_minutes=True)


def time_micros(value: time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def time_of(micros: int) -> time:
    if micros >= MICROS_PER_DAY:
        raise NotSupported("24:00:00 is not supported as a time of day")
    return timestamp_of(micros).time()


def _round(micros: int, precision: int | None) -> int:
    if precision is None or precision >= 6:
        return micros
    unit: int = 10 ** (6 - precision)
    whole = (abs(micros) + unit // 2) // unit * unit
    return whole if micros >= 0 else -whole


def _clock_text(value: time | datetime) -> str:
    text = f"{value.hour:02d}:{value.minute:02d}:{value.second:02d}"
    return f"{text}.{value.microsecond:06d}".rstrip("0") if value.microsecond else text


@dataclass(frozen=True)
class DateType(Type):
    category = "D"

    def parse(self, text: str) -> date:
        if len(text) == 10 and (plain := read_iso(text)):
            return plain.date()
        return read(text, kind="date").calendar_day()

    def render(self, value: date) -> str:
        return value.isoformat()

    def _accept(self, value: Datum) -> date:
        if type(value) is not date:
            raise self._refuse(value)
        return value

    def _pack(self, value: date) -> int:
        return value.toordinal() - _EPOCH_DAY

    def _unpack(self, packed: int) -> date:
        return date.fromordinal(packed + _EPOCH_DAY)


@dataclass(frozen=True)
class TimeType(Type):
    precision: int | None = None

    category = "D"

    @property
    def sql_name(self) -> str:
        return f"time{_shown(self.precision)} without time zone"

    def parse(self, text: str) -> time:
        return time_of(_round(read(text, kind="time").time_of_day(), self.precision))

    def render(self, value: time) -> str:
        return _clock_text(value)

    def _accept(self, value: Datum) -> time:
        if type(value) is not time or value.tzinfo is not None:
            raise self._refuse(value)
        return value if self.precision is None else time_of(_round(time_micros(value), self.precision))

    def _pack(self, value: time) -> int:
        return time_micros(value)

    def _unpack(self, packed: int) -> time:
        return time_of(packed)


@dataclass(frozen=True)
class TimestampType(Type):
    precision: int | None = None

    category = "D"

    @property
    def sql_name(self) -> str:
        return f"timestamp{_shown(self.precision)} without time zone"

    def parse(self, text: str) -> datetime:
        if plain := read_iso(text):
            return self._accept(plain.replace(tzinfo=None))
        return self._accept(read(text, kind="timestamp").timestamp())

    def render(self, value: datetime) -> str:
        return f"{value.date().isoformat()} {_clock_text(value)}"

    def _accept(self, value: Datum) -> datetime:
        if not isinstance(value, datetime) or value.tzinfo is not None:
            raise self._refuse(value)
        return value if self.precision is None else timestamp_of(_round(micros_of(value), self.precision))

    def _pack(self, value: datetime) -> int:
        return micros_of(value)

    def _unpack(self, packed: int) -> datetime:
        return timestamp_of(packed)


@dataclass(frozen=True)
class InstantType(Type):
    """timestamptz."""

    precision: int | None = None

    category = "D"
    is_preferred = True

    @property
    def sql_name(self) -> str:
        return f"timestamp{_shown(self.precision)} with time zone"

    @property
    def follows_zone(self) -> bool:
        return True

    def parse(self, text: str) -> datetime:
        return self.parse_in(text, UTC)

    def render(self, value: datetime) -> str:
        return f"{value.date().isoformat()} {_clock_text(value)}+00"

    def parse_in(self, text: str, zone: tzinfo) -> datetime:
        if (plain := read_iso(text)) and plain.tzinfo is not None:
            return self._accept(plain)
        return self._accept(read(text, kind="timestamp with time zone", zone=zone).instant())

    def render_in(self, value: datetime, zone: tzinfo) -> str:
        if zone is UTC:
            return self.render(value)
        local = in_zone(value, zone)
        return f"{local.date().isoformat()} {_clock_text(local)}{offset_text(local)}"

    def _accept(self, value: Datum) -> datetime:
        if not isinstance(value, datetime) or value.tzinfo is None:
            raise self._refuse(value)
        if value.tzinfo is not UTC:
            value = value.astimezone(UTC)
        return value if self.precision is None else instant_of(_round(micros_of(value), self.precision))

    def _pack(self, value: datetime) -> int:
        return micros_of(value)

    def _unpack(self, packed: int) -> datetime:
        return instant_of(packed)


@dataclass(frozen=True)
class IntervalType(Type):
    precision: int | None = None

    category = "T"
    is_preferred = True

    @property
    def sql_name(self) -> str:
        return f"interval{_shown(self.precision)}"

    @property
    def key_is_exact(self) -> bool:
        """A key is the length alone: one month and thirty days are equal."""
        return False

    def parse(self, text: str) -> Interval:
        return self._accept(parse_interval(text))

    def render(self, value: Interval) -> str:
        return render_interval(value)

    def _accept(self, value: Datum) -> Interval:
        if not isinstance(value, Interval):
            raise self._refuse(value)
        if self.precision is None:
            return value
        return Interval(value.months, value.days, _round(value.micros, self.precision))

    def _key(self, value: Interval) -> int:
        return value.span

    def _from_key(self, key: int) -> Interval:
        days, micros = divmod(key, MICROS_PER_DAY)
        months, days = divmod(days, 30)
        return Interval(months, days, micros)

    def _pack(self, value: Interval) -> Any:
        return list(value.parts) if value.months or value.days else value.micros

    def _unpack(self, packed: Any) -> Interval:
        return Interval(micros=packed) if type(packed) is int else Interval(*packed)


def _shown(precision: int | None) -> str:
    return "" if precision is None else f"({precision})"
