"""Fields of dates and times: date_trunc, extract and date_part.

extract gives numeric (seconds with six digits after the point), date_part the same as float8. A
unit that the type does not have is refused (0A000), a word that is no unit is wrong (22023).

Walk: `expr.function_table` lists these.
"""

from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import partial
from typing import Any

from tenure.base.errors import InvalidParameter, NotSupported, UserError
from tenure.expr.functions.arithmetic import numeric_add, numeric_divide
from tenure.expr.functions.function import Context, Function, Volatility, function
from tenure.expr.functions.time_arithmetic import trunc_divide
from tenure.expr.types.interval import Interval
from tenure.expr.types.time_decoding import JULIAN_OF_ORDINAL_0
from tenure.expr.types.time_types import micros_of, time_micros
from tenure.expr.types.time_words import span_unit
from tenure.expr.types.zones import from_zone, in_zone, zone_named

_SECOND, _HOUR = 1_000_000, 3_600_000_000


def functions() -> Iterator[Function]:
    yield function("date_trunc", "text, timestamp -> timestamp", _truncate)
    stable = partial(Function, volatility=Volatility.STABLE, wants_context=True)
    yield stable("date_trunc", ("text", "timestamptz"), "timestamptz", _truncate_instant)
    zoned = ("text", "timestamptz", "text")
    yield Function("date_trunc", zoned, "timestamptz", _truncate_in_zone, wants_context=True)
    yield function("date_trunc", "text, interval -> interval", _truncate_interval)
    yield stable("extract", ("text", "timestamptz"), "numeric", _extract_instant)
    yield stable("date_part", ("text", "timestamptz"), "float8", _instant_part)
    for kind, part in _PARTS.items():
        yield function("extract", f"text, {kind} -> numeric", partial(_extract, part, kind))
        yield function("date_part", f"text, {kind} -> float8", partial(_date_part, part, kind))


# date_trunc

_TRUNCATED: dict[str, Callable[[datetime], datetime]] = {
    "microsecond": lambda at: at,
    "millisecond": lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000),
    "second": lambda at: at.replace(microsecond=0),
    "minute": lambda at: at.replace(second=0, microsecond=0),
    "hour": lambda at: at.replace(minute=0, second=0, microsecond=0),
    "day": lambda at: at.replace(hour=0, minute=0, second=0, microsecond=0),
    "week": lambda at: _TRUNCATED["day"](at) - timedelta(days=at.weekday()),
    "month": lambda at: _TRUNCATED["day"](at).replace(day=1),
    "quarter": lambda at: _TRUNCATED["month"](at).replace(month=(at.month - 1) // 3 * 3 + 1),
    "year": lambda at: _TRUNCATED["month"](at).replace(month=1),
    "decade": lambda at: _to_year(at, at.year // 10 * 10),
    "century": lambda at: _to_year(at, (at.year - 1) // 100 * 100 + 1),
    "millennium": lambda at: _to_year(at, (at.year - 1) // 1000 * 1000 + 1),
}


def _to_year(at: datetime, year: int) -> datetime:
    if year < 1:
        raise NotSupported("the result lies before the year 1")
    return _TRUNCATED["year"](at).replace(year=year)


def _truncate(unit: str, at: datetime) -> datetime:
    field = _unit(unit, "timestamp with time zone" if at.tzinfo else "timestamp without time zone")
    if field not in _TRUNCATED:
        raise _not_truncated(
            unit, field, "timestamp with time zone" if at.tzinfo else "timestamp without time zone"
        )
    try:
        return _TRUNCATED[field](at)
    except OverflowError:
        raise NotSupported("the result lies before the year 1") from None


_CLOCK_UNITS = ("microsecond", "millisecond", "second", "minute", "hour")


def _truncate_instant(context: Context, unit: str, at: datetime) -> datetime:
    return _truncated_in(unit, at, context.zone)


def _truncate_in_zone(context: Context, unit: str, at: datetime, zone: str) -> datetime:
    return _truncated_in(unit, at, zone_named(zone, context.zone))


def _truncated_in(unit: str, at: datetime, zone: tzinfo) -> datetime:
    """Truncates by the zone's local time; units up to the hour keep the offset of the instant itself."""
    local = in_zone(at, zone)
    truncated = _truncate(unit, local).replace(tzinfo=None, fold=0)
    if _unit(unit, "timestamp with time zone") in _CLOCK_UNITS:
        return from_zone(truncated, timezone(local.utcoffset() or timedelta()))
    return from_zone(truncated, zone)


def _truncate_interval(unit: str, value: Interval) -> Interval:
    field = _unit(unit, "interval")
    months = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200, "millennium": 12_000}
    if field in months:
        step = months[field]
        return Interval(trunc_divide(value.months, step) * step)
    if field == "day":
        return Interval(value.months, value.days)
    steps = {"microsecond": 1, "millisecond": 1000, "second": _SECOND, "minute": 60 * _SECOND, "hour": _HOUR}
    if field not in steps:
        raise _not_truncated(unit, field, "interval")
    step = steps[field]
    return Interval(value.months, value.days, trunc_divide(value.micros, step) * step)


UNIT_CHARACTERS_MAX = 63
"""PostgreSQL reads a unit as it reads an identifier: no more of it counts."""


def _unit(word: str, kind: str) -> str:
    word = word[:UNIT_CHARACTERS_MAX]
    field = _FIELDS.get(word.lower()) or span_unit(word.lower())
    if field is None:
        raise InvalidParameter(f'unit "{word}" not recognized for type {kind}')
    return field


_ONLY_EXTRACTED = ("isoyear", "epoch", "dow", "isodow", "doy", "julian")


def _not_truncated(word: str, field: str, kind: str) -> UserError:
    """Units that PostgreSQL accepts in extract only."""
    if field in _ONLY_EXTRACTED:
        return InvalidParameter(f'unit "{word}" not recognized for type {kind}')
    return _unsupported(word, kind)


def _unsupported(word: str, kind: str) -> NotSupported:
    return NotSupported(f'unit "{word}" not supported for type {kind}')


# extract

_FIELDS = {word: word for word in ("epoch", "dow", "isodow", "doy", "isoyear", "julian", "timezone")} | {
    "timezone_h": "timezone_hour",
    "timezone_hour": "timezone_hour",
    "timezone_minute": "timezone_minute",
}


def _scaled(units: int, scale: int) -> Decimal:
    return Decimal(units).scaleb(-scale)


def _clock_part(unit: str, micros: int) -> Decimal | None:
    """A field of the microseconds since midnight, or of an interval's microseconds."""
    if unit == "hour":
        return Decimal(trunc_divide(micros, _HOUR))
    rest = micros - trunc_divide(micros, 60 * _SECOND) * 60 * _SECOND
    if unit == "minute":
        return Decimal(trunc_divide(micros, 60 * _SECOND) - trunc_divide(micros, _HOUR) * 60)
    if unit == "second":
        return _scaled(rest, 6)
    if unit == "millisecond":
        return _scaled(rest, 3)
    return Decimal(rest) if unit == "microsecond" else None


def _day_part(unit: str, day: date) -> Decimal | None:
    iso = day.isocalendar()
    fields = {
        "day": day.day,
        "month": day.month,
        "quarter": (day.month - 1) // 3 + 1,
        "year": day.year,
        "decade": day.year // 10,
        "century": (day.year + 99) // 100,
        "millennium": (day.year + 999) // 1000,
        "week": iso.week,
        "isoyear": iso.year,
        "isodow": iso.weekday,
        "dow": iso.weekday % 7,
        "doy": day.timetuple().tm_yday,
    }
    return Decimal(fields[unit]) if unit in fields else None


def _date_field(unit: str, value: date) -> Decimal | None:
    if unit == "epoch":
        return Decimal((value - date(1970, 1, 1)).days * 86_400)
    return Decimal(value.toordinal() + JULIAN_OF_ORDINAL_0) if unit == "julian" else _day_part(unit, value)


def _time_field(unit: str, value: time) -> Decimal | None:
    return _scaled(time_micros(value), 6) if unit == "epoch" else _clock_part(unit, time_micros(value))


def _timestamp_field(unit: str, value: datetime) -> Decimal | None:
    if unit == "epoch":
        return _scaled(micros_of(value) + 946_684_800 * _SECOND, 6)
    if unit == "julian":
        share = numeric_divide(Decimal(time_micros(value.time())), Decimal(86_400 * _SECOND))
        return numeric_add(Decimal(value.toordinal() + JULIAN_OF_ORDINAL_0), share)
    if value.tzinfo is not None and unit.startswith("timezone"):
        return _offset_part(unit, round((value.utcoffset() or timedelta()).total_seconds()))
    part = _clock_part(unit, time_micros(value.time()))
    return _day_part(unit, value.date()) if part is None else part


def _offset_part(unit: str, seconds: int) -> Decimal:
    hours, minutes = trunc_divide(seconds, 3600), trunc_divide(seconds, 60)
    fields = {"timezone_hour": hours, "timezone_minute": minutes - hours * 60}
    return Decimal(fields.get(unit, seconds))


def _interval_field(unit: str, value: Interval) -> Decimal | None:
    years = trunc_divide(value.months, 12)
    months = value.months - years * 12
    if unit == "epoch":
        quarter_days = years * 1461 + months * 120 + value.days * 4
        return _scaled(quarter_days * 21_600 * _SECOND + value.micros, 6)
    fields = {
        "day": value.days,
        "month": months,
        "quarter": months // 3 + 1 if value.months >= 0 else -(-months // 3) - 1,
        "year": years,
        "decade": trunc_divide(years, 10),
        "century": trunc_divide(years, 100),
        "millennium": trunc_divide(years, 1000),
        "week": trunc_divide(value.days, 7),
    }
    return Decimal(fields[unit]) if unit in fields else _clock_part(unit, value.micros)


_PARTS: dict[str, Callable[[str, Any], Decimal | None]] = {
    "date": _date_field,
    "time": _time_field,
    "timestamp": _timestamp_field,
    "interval": _interval_field,
}
_SHOWN = {"time": "time without time zone", "timestamp": "timestamp without time zone"}


def _extract_instant(context: Context, word: str, value: datetime) -> Decimal:
    return _extract(_timestamp_field, "timestamptz", word, in_zone(value, context.zone))


def _instant_part(context: Context, word: str, value: datetime) -> float:
    return float(_extract_instant(context, word, value))


def _extract(part: Callable[[str, Any], Decimal | None], kind: str, word: str, value: Any) -> Decimal:
    shown = _SHOWN.get(kind, "timestamp with time zone" if kind == "timestamptz" else kind)
    found = part(_unit(word, shown), value)
    if found is None:
        raise _unsupported(word, shown)
    return found


def _date_part(part: Callable[[str, Any], Decimal | None], kind: str, word: str, value: Any) -> float:
    found = _extract(part, kind, word, value)
    if kind == "interval" and _unit(word, kind) == "epoch":
        return _float_epoch(value)
    return float(found)


def _float_epoch(value: Interval) -> float:
    """Summed up in floating point in PostgreSQL's order: the last digit depends on it."""
    years = trunc_divide(value.months, 12)
    seconds = value.micros / 1_000_000.0
    seconds += 365.25 * 86_400 * years
    seconds += 30.0 * 86_400 * (value.months - years * 12)
    return seconds + 86_400.0 * value.days
