"""What time it is, and how long ago: now() and its like, age, time zones.

The time comes from the Context: now() is the transaction's, the same in all its statements.

Walk: `expr.functions` lists these.
"""

from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import partial

from tenure.expr.errors import DatetimeOverflow, NotSupported
from tenure.expr.function import Context, Function, Volatility, function
from tenure.expr.interval import MICROS_PER_DAY, Interval, checked
from tenure.expr.time_arithmetic import trunc_divide
from tenure.expr.times import time_micros
from tenure.expr.zones import from_zone, local_in, zone_named

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND, _HOUR = 1_000_000, 3_600_000_000


def functions() -> Iterator[Function]:
    yield from _clocks()
    for kind in ("timestamp", "timestamptz"):
        yield function("age", f"{kind}, {kind} -> interval", age)
    yield function("timezone", "text, timestamptz -> timestamp", _in_zone)
    yield function("timezone", "text, timestamp -> timestamptz", _from_zone)
    yield function("make_date", "int4, int4, int4 -> date", _make_date)
    yield function("justify_days", "interval -> interval", _justify_days)
    yield function("justify_hours", "interval -> interval", _justify_hours)


# The clock


def _clocks() -> Iterator[Function]:
    stable = partial(Function, arguments=(), volatility=Volatility.STABLE, wants_context=True)
    for name in ("now", "current_timestamp", "transaction_timestamp"):
        yield stable(name, result="timestamptz", run=lambda context: _instant(context.now_micros))
    yield stable(
        "statement_timestamp", result="timestamptz", run=lambda context: _instant(context.statement_micros)
    )
    yield stable("current_date", result="date", run=lambda context: _instant(context.now_micros).date())
    yield stable("localtimestamp", result="timestamp", run=_local)
    yield stable("localtime", result="time", run=lambda context: _local(context).time())
    yield Function("clock_timestamp", (), "timestamptz", _right_now, Volatility.VOLATILE, wants_context=True)
    for name, kind in (("age", "timestamp"), ("age", "timestamptz")):
        yield Function(name, (kind,), "interval", _age_today, Volatility.STABLE, wants_context=True)


def _instant(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def _local(context: Context) -> datetime:
    return _instant(context.now_micros).replace(tzinfo=None)


def _right_now(context: Context) -> datetime:
    micros = context.clock_micros() if context.clock_micros else context.statement_micros
    return _instant(micros)


def _age_today(context: Context, value: datetime | None) -> Interval | None:
    if value is None:
        return None
    midnight = datetime.combine(_instant(context.now_micros).date(), time(), tzinfo=value.tzinfo)
    return age(midnight, value)


def age(a: datetime, b: datetime) -> Interval:
    """Years, months, days and time as on a calendar; a borrowed month has the earlier one's days."""
    later, earlier = max(a, b), min(a, b)
    micros = time_micros(later.time()) - time_micros(earlier.time())
    days = later.day - earlier.day
    months = (later.year - earlier.year) * 12 + later.month - earlier.month
    if micros < 0:
        micros += MICROS_PER_DAY
        days -= 1
    while days < 0:
        days += monthrange(earlier.year, earlier.month)[1]
        months -= 1
    return Interval(months, days, micros) if a >= b else Interval(-months, -days, -micros)


# Zones and making


def _in_zone(zone: str, at: datetime) -> datetime:
    return local_in(at, zone_named(zone))


def _from_zone(zone: str, at: datetime) -> datetime:
    return from_zone(at, zone_named(zone))


def _make_date(year: int, month: int, day: int) -> date:
    if year < 0:
        raise NotSupported("years before 1 are not supported")
    try:
        return date(year, month, day)
    except (ValueError, OverflowError):
        raise DatetimeOverflow(f"date field value out of range: {year}-{month:02d}-{day:02d}") from None


def _justify_days(value: Interval) -> Interval:
    whole = trunc_divide(value.days, 30)
    months, days = value.months + whole, value.days - whole * 30
    if months > 0 > days:
        months, days = months - 1, days + 30
    elif months < 0 < days:
        months, days = months + 1, days - 30
    return checked(months, days, value.micros)


def _justify_hours(value: Interval) -> Interval:
    whole = trunc_divide(value.micros, MICROS_PER_DAY)
    days, micros = value.days + whole, value.micros - whole * MICROS_PER_DAY
    if days > 0 > micros:
        days, micros = days - 1, micros + MICROS_PER_DAY
    elif days < 0 < micros:
        days, micros = days + 1, micros - MICROS_PER_DAY
    return checked(value.months, days, micros)
