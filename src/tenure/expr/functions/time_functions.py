"""The current time and ages: now() and its variants, age, time zones.

The time comes from the Context: now() is the transaction's, the same in all its statements.

Walk: `expr.function_table` lists these.
"""

from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from functools import partial

from tenure.base.errors import InvalidParameter, NotSupported
from tenure.expr.functions.function import Context, Function, Volatility, function
from tenure.expr.functions.time_arithmetic import negated, trunc_divide
from tenure.expr.types.interval import MICROS_PER_DAY, Interval, checked
from tenure.expr.types.time_types import time_micros
from tenure.expr.types.zones import from_zone, in_zone, local_in, zone_named

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND, _HOUR = 1_000_000, 3_600_000_000


def functions() -> Iterator[Function]:
    yield from _clocks()
    yield function("age", "timestamp, timestamp -> interval", age)
    stable = partial(Function, volatility=Volatility.STABLE, wants_context=True)
    yield stable("age", ("timestamptz", "timestamptz"), "interval", _age_of_instants)
    yield Function("timezone", ("text", "timestamptz"), "timestamp", _in_zone, wants_context=True)
    yield Function("timezone", ("text", "timestamp"), "timestamptz", _from_zone, wants_context=True)
    yield function("timezone", "interval, timestamptz -> timestamp", _in_offset)
    yield function("timezone", "interval, timestamp -> timestamptz", _from_offset)
    for kind in ("date", "timestamp", "timestamptz", "interval"):
        yield function("isfinite", f"{kind} -> bool", lambda value: True)
    yield function("justify_days", "interval -> interval", _justify_days)
    yield function("justify_hours", "interval -> interval", _justify_hours)
    yield function("justify_interval", "interval -> interval", _justify_interval)


# The clock


def _clocks() -> Iterator[Function]:
    stable = partial(Function, arguments=(), volatility=Volatility.STABLE, wants_context=True)
    for name in ("now", "current_timestamp", "transaction_timestamp"):
        yield stable(name, result="timestamptz", run=lambda context: _instant(context.now_micros))
    yield stable(
        "statement_timestamp", result="timestamptz", run=lambda context: _instant(context.statement_micros)
    )
    yield stable("current_date", result="date", run=lambda context: _local(context).date())
    yield stable("localtimestamp", result="timestamp", run=_local)
    yield stable("localtime", result="time", run=lambda context: _local(context).time())
    yield Function("clock_timestamp", (), "timestamptz", _right_now, Volatility.VOLATILE, wants_context=True)
    yield Function("timeofday", (), "text", _time_of_day, Volatility.VOLATILE, wants_context=True)
    for name, kind in (("age", "timestamp"), ("age", "timestamptz")):
        yield Function(name, (kind,), "interval", _age_today, Volatility.STABLE, wants_context=True)


def _instant(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def _local(context: Context) -> datetime:
    return local_in(_instant(context.now_micros), context.zone)


def _right_now(context: Context) -> datetime:
    micros = context.clock_micros() if context.clock_micros else context.statement_micros
    return _instant(micros)


def _time_of_day(context: Context) -> str:
    local = in_zone(_right_now(context), context.zone)
    return f"{local:%a %b %d %H:%M:%S.%f %Y} {local.tzname()}"


def _age_today(context: Context, value: datetime) -> Interval:
    local = value if value.tzinfo is None else local_in(value, context.zone)
    return age(datetime.combine(_local(context).date(), time()), local)


def _age_of_instants(context: Context, a: datetime, b: datetime) -> Interval:
    # The instants decide which one is later: a clock that was set back may show the later one as earlier.
    local_a, local_b = local_in(a, context.zone), local_in(b, context.zone)
    return _years_between(local_b, local_a) if a >= b else negated(_years_between(local_a, local_b))


def age(a: datetime, b: datetime) -> Interval:
    """Years, months, days and time as on a calendar; a borrowed month has the earlier one's days."""
    return _years_between(b, a) if a >= b else negated(_years_between(a, b))


def _years_between(earlier: datetime, later: datetime) -> Interval:
    micros = time_micros(later.time()) - time_micros(earlier.time())
    days = later.day - earlier.day
    months = (later.year - earlier.year) * 12 + later.month - earlier.month
    if micros < 0:
        micros += MICROS_PER_DAY
        days -= 1
    while days < 0:
        days += monthrange(earlier.year, earlier.month)[1]
        months -= 1
    return Interval(months, days, micros)


# Zones and making


def _in_zone(context: Context, zone: str, at: datetime) -> datetime:
    return local_in(at, zone_named(zone, context.zone))


def _from_zone(context: Context, zone: str, at: datetime) -> datetime:
    return from_zone(at, zone_named(zone, context.zone))


def _in_offset(by: Interval, at: datetime) -> datetime:
    return local_in(at, _offset(by))


def _from_offset(by: Interval, at: datetime) -> datetime:
    return from_zone(at, _offset(by))


def _offset(by: Interval) -> tzinfo:
    if by.months or by.days:
        raise InvalidParameter("interval time zone must not include months or days")
    try:
        return timezone(timedelta(seconds=trunc_divide(by.micros, _SECOND)))
    except ValueError:
        raise NotSupported("a time zone a day or more from UTC is not supported") from None


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


def _justify_interval(value: Interval) -> Interval:
    """Months, days and time of one sign; a day has 24 hours, a month 30 days."""
    whole_days = trunc_divide(value.micros, MICROS_PER_DAY)
    days, micros = value.days + whole_days, value.micros - whole_days * MICROS_PER_DAY
    whole_months = trunc_divide(days, 30)
    months, days = value.months + whole_months, days - whole_months * 30
    if months > 0 and (days < 0 or (days == 0 and micros < 0)):
        months, days = months - 1, days + 30
    elif months < 0 and (days > 0 or (days == 0 and micros > 0)):
        months, days = months + 1, days - 30
    if days > 0 > micros:
        days, micros = days - 1, micros + MICROS_PER_DAY
    elif days < 0 < micros:
        days, micros = days + 1, micros - MICROS_PER_DAY
    return checked(months, days, micros)
