"""Sums and differences of days, times, timestamps and intervals.

    timestamp + interval   months first (the day is cut to the month's last), then days, then the rest
    timestamp - timestamp  days and the rest, never months
    interval * factor      fractions of months go down to days (of 30 to a month), of days to hours

Results outside the years 1 to 9999 are out of range (22008); so are parts of an interval beyond
32 and 64 bits.

Walk: `expr.function_table` lists these; `expr.functions.time_making` uses `add_interval`.
"""

from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import partial
from math import inf, trunc
from typing import TypeVar

from tenure.base.errors import DatetimeOverflow, DivisionByZero, NotSupported
from tenure.expr.functions.function import Context, Function, Volatility, function
from tenure.expr.types.interval import MICROS_PER_DAY, Interval, checked
from tenure.expr.types.numbers import fits
from tenure.expr.types.time_types import beyond_dates, beyond_timestamps, micros_of, time_micros, time_of
from tenure.expr.types.zones import from_zone, local_in

D = TypeVar("D", bound=datetime)

_SECONDS_PER_DAY = 86_400


def functions() -> Iterator[Function]:
    yield function("+", "date, int4 -> date", add_days)
    yield function("+", "int4, date -> date", lambda days, day: add_days(day, days))
    yield function("-", "date, int4 -> date", lambda day, days: add_days(day, -days))
    yield function("-", "date, date -> int4", lambda a, b: a.toordinal() - b.toordinal())
    yield function("+", "date, time -> timestamp", datetime.combine)
    yield function("+", "time, date -> timestamp", lambda clock, day: datetime.combine(day, clock))
    yield function("+", "date, interval -> timestamp", lambda day, by: add_interval(_midnight(day), by))
    yield function("+", "interval, date -> timestamp", lambda by, day: add_interval(_midnight(day), by))
    yield function("-", "date, interval -> timestamp", lambda a, by: add_interval(_midnight(a), negated(by)))
    for kind in ("timestamp", "timestamptz"):
        yield function("-", f"{kind}, {kind} -> interval", difference)
    yield function("+", "timestamp, interval -> timestamp", add_interval)
    yield function("+", "interval, timestamp -> timestamp", lambda by, at: add_interval(at, by))
    yield function("-", "timestamp, interval -> timestamp", lambda at, by: add_interval(at, negated(by)))
    yield from _instants()
    yield function("+", "time, interval -> time", add_to_time)
    yield function("+", "interval, time -> time", lambda by, clock: add_to_time(clock, by))
    yield function("-", "time, interval -> time", lambda clock, by: add_to_time(clock, negated(by)))
    yield function(
        "-", "time, time -> interval", lambda a, b: Interval(0, 0, time_micros(a) - time_micros(b))
    )
    yield function("+", "interval, interval -> interval", add)
    yield function("-", "interval, interval -> interval", lambda a, b: add(a, negated(b)))
    yield function("-", "interval -> interval", negated)
    yield function("*", "interval, float8 -> interval", scaled)
    yield function("*", "float8, interval -> interval", lambda factor, value: scaled(value, factor))
    yield function("/", "interval, float8 -> interval", divided)


def _instants() -> Iterator[Function]:
    moving = partial(Function, result="timestamptz", volatility=Volatility.STABLE, wants_context=True)
    yield moving("+", ("timestamptz", "interval"), run=_later)
    yield moving("+", ("interval", "timestamptz"), run=lambda context, by, at: _later(context, at, by))
    yield moving(
        "-", ("timestamptz", "interval"), run=lambda context, at, by: _later(context, at, negated(by))
    )


def _later(context: Context, at: datetime, by: Interval) -> datetime:
    return add_interval_in(at, by, context.zone)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)


def add_days(day: date, days: int) -> date:
    try:
        return date.fromordinal(day.toordinal() + days)
    except (ValueError, OverflowError):
        raise beyond_dates(day.toordinal() + days) from None


def add_interval(at: D, by: Interval) -> D:
    try:
        moved = _add_months(at, by.months) if by.months else at
        return moved + timedelta(days=by.days, microseconds=by.micros)
    except (ValueError, OverflowError):
        months = at.year * 12 + at.month - 1 + by.months
        day = int(months * 30.436875) + by.days + by.micros // MICROS_PER_DAY
        raise beyond_timestamps(day) from None


def add_interval_in(at: datetime, by: Interval, zone: tzinfo) -> datetime:
    """To an instant: months and days by the zone's calendar and clocks, the rest as time that passes."""
    if zone is UTC or not (by.months or by.days):
        return add_interval(at, by)
    local = local_in(at, zone)
    if by.months:
        local = local_in(from_zone(add_interval(local, Interval(by.months)), zone), zone)
    moved = from_zone(add_interval(local, Interval(0, by.days)), zone) if by.days else from_zone(local, zone)
    return add_interval(moved, Interval(micros=by.micros))


def _add_months(at: D, months: int) -> D:
    year, month = divmod(at.year * 12 + at.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError
    return at.replace(year=year, month=month + 1, day=min(at.day, monthrange(year, month + 1)[1]))


def difference(a: datetime, b: datetime) -> Interval:
    micros = micros_of(a) - micros_of(b)
    days = trunc_divide(micros, MICROS_PER_DAY)
    return Interval(0, days, micros - days * MICROS_PER_DAY)


def trunc_divide(a: int, b: int) -> int:
    return a // b if a >= 0 else -(-a // b)


def add_to_time(clock: time, by: Interval) -> time:
    return time_of((time_micros(clock) + by.micros) % MICROS_PER_DAY)


def add(a: Interval, b: Interval) -> Interval:
    return checked(a.months + b.months, a.days + b.days, a.micros + b.micros)


def negated(value: Interval) -> Interval:
    return checked(-value.months, -value.days, -value.micros)


def scaled(value: Interval, factor: float) -> Interval:
    if abs(factor) == inf and value.span:
        raise NotSupported("infinite intervals are not supported")
    if factor != factor or abs(factor) == inf:
        raise DatetimeOverflow("interval out of range")
    return _cascade(value.months * factor, value.days * factor, value.micros * factor)


def divided(value: Interval, divisor: float) -> Interval:
    if divisor == 0:
        raise DivisionByZero
    if divisor != divisor:
        raise DatetimeOverflow("interval out of range")
    return _cascade(value.months / divisor, value.days / divisor, value.micros / divisor)


def _cascade(months: float, days: float, micros: float) -> Interval:
    """In floating point, step by step as PostgreSQL does it: the roundings must be the same."""
    if not (abs(months) < 2**31 and abs(days) < 2**31):
        raise DatetimeOverflow("interval out of range")
    whole_months, whole_days = trunc(months), trunc(days)
    spare_days = _to_micros((months - whole_months) * 30)
    spare_seconds = _to_micros((days - whole_days + spare_days - trunc(spare_days)) * _SECONDS_PER_DAY)
    if abs(spare_seconds) >= _SECONDS_PER_DAY:
        extra = trunc(spare_seconds / _SECONDS_PER_DAY)
        whole_days += extra
        spare_seconds -= extra * _SECONDS_PER_DAY
    whole_days += trunc(spare_days)
    total = micros + spare_seconds * 1_000_000
    if not abs(total) < 2**63 or not fits(whole_days, 4):
        raise DatetimeOverflow("interval out of range")
    return checked(whole_months, whole_days, round(total))


def _to_micros(value: float) -> float:
    """Rounds to six digits after the point (TSROUND)."""
    return round(value * 1_000_000.0) / 1_000_000.0
