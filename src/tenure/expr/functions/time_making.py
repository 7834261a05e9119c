"""Times made of numbers, moved into bins, and compared as periods.

    make_date(2024, 2, 29)    make_interval(days => 3)    to_timestamp(1.5)    date_bin('15 min', t, origin)
    (a, b) OVERLAPS (c, d)

Walk: `expr.function_table` lists these.
"""

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from functools import partial
from itertools import product
from math import inf, isfinite
from typing import Any

from tenure.base.errors import DatetimeOverflow, InvalidParameter, NotSupported, OutOfRange
from tenure.expr.functions.function import Context, Function, Volatility, function
from tenure.expr.functions.time_arithmetic import add_interval, add_interval_in, add_to_time, negated
from tenure.expr.types.interval import MICROS_PER_DAY, MICROS_PER_SECOND, Interval, checked
from tenure.expr.types.numbers import fits
from tenure.expr.types.time_types import instant_of, micros_of, time_of, timestamp_of
from tenure.expr.types.zones import from_zone, zone_named

_PARTS = ("years", "months", "weeks", "days", "hours", "mins", "secs")


def functions() -> Iterator[Function]:
    stable = partial(Function, volatility=Volatility.STABLE, wants_context=True)
    yield function("make_date", "int4, int4, int4 -> date", make_date)
    yield function("make_time", "int4, int4, float8 -> time", _make_time)
    numbers = ("int4", "int4", "int4", "int4", "int4", "float8")
    yield Function("make_timestamp", numbers, "timestamp", _make_timestamp)
    yield stable("make_timestamptz", numbers, "timestamptz", _make_instant)
    zoned = partial(Function, result="timestamptz", wants_context=True)
    yield zoned("make_timestamptz", (*numbers, "text"), run=_make_instant_in)
    argument_types = ("int4", "int4", "int4", "int4", "int4", "int4", "float8")
    for count in range(len(argument_types) + 1):
        names, default = (_PARTS, "0") if count == len(argument_types) else ((), None)
        yield Function(
            "make_interval", argument_types[:count], "interval", _make_interval, names=names, default=default
        )
    yield function("to_timestamp", "float8 -> timestamptz", _to_timestamp)
    for kind in ("timestamp", "timestamptz"):
        yield function("date_bin", f"interval, {kind}, {kind} -> {kind}", _bin)
    for name, sign in (("date_add", _itself), ("date_subtract", negated)):
        yield stable(name, ("timestamptz", "interval"), "timestamptz", _moved(sign))
        yield zoned(name, ("timestamptz", "interval", "text"), run=_moved_in(sign))
    yield from _overlaps()


def make_date(year: int, month: int, day: int) -> date:
    if year < 0:
        raise NotSupported("years before 1 are not supported")
    try:
        return date(year, month, day)
    except (ValueError, OverflowError):
        if year > 9999 and 1 <= month <= 12 and 1 <= day <= 31:
            raise NotSupported("years after 9999 are not supported") from None
        raise DatetimeOverflow(f"date field value out of range: {year}-{month:02d}-{day:02d}") from None


def _clock_micros(hour: int, minute: int, seconds: float) -> int:
    is_right = 0 <= hour <= 24 and 0 <= minute <= 59 and 0 <= seconds <= 60 and isfinite(seconds)
    micros = round(seconds * MICROS_PER_SECOND) if is_right else 0
    total = (hour * 60 + minute) * 60 * MICROS_PER_SECOND + micros
    if not is_right or total > MICROS_PER_DAY:
        raise DatetimeOverflow(f"time field value out of range: {hour}:{minute:02d}:{seconds:02g}")
    return total


def _make_time(hour: int, minute: int, seconds: float) -> time:
    return time_of(_clock_micros(hour, minute, seconds))


def _make_timestamp(year: int, month: int, day: int, hour: int, minute: int, seconds: float) -> datetime:
    midnight = datetime.combine(make_date(year, month, day), time())
    return timestamp_of(micros_of(midnight) + _clock_micros(hour, minute, seconds))


def _make_instant(context: Context, *fields: Any) -> datetime:
    return from_zone(_make_timestamp(*fields), context.zone)


def _make_instant_in(context: Context, *fields: Any) -> datetime:
    return from_zone(_make_timestamp(*fields[:-1]), _zone_of_literal(fields[-1], context.zone))


_OFFSET = re.compile(r"([+-])(\d{1,2}?)(?::?(\d{2}))?(?::?(\d{2}))?")
_HOURS_MAX = 15


def _zone_of_literal(name: str, session_zone: tzinfo) -> tzinfo:
    """Reads a zone as after a timestamp: +02 is east of Greenwich. (In AT TIME ZONE, '+02' is west of it.)"""
    if name[:1].isdecimal():
        raise InvalidParameter(f'invalid input syntax for type numeric time zone: "{name}"')
    found = _OFFSET.fullmatch(name)
    if found is None:
        return zone_named(name, session_zone)
    hours, minutes, seconds = (int(each or 0) for each in found.groups()[1:])
    if hours > _HOURS_MAX or max(minutes, seconds) > 59:
        raise InvalidParameter(f'numeric time zone "{name}" out of range')
    east = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return timezone(east if found[1] == "+" else -east)


def _make_interval(
    years: int = 0,
    months: int = 0,
    weeks: int = 0,
    days: int = 0,
    hours: int = 0,
    minutes: int = 0,
    seconds: float = 0.0,
) -> Interval:
    whole = checked(years * 12 + months, weeks * 7 + days, 0)
    spare = seconds * MICROS_PER_SECOND
    if abs(spare) == inf and isfinite(seconds):
        raise OutOfRange("value out of range: overflow")
    if not isfinite(spare) or not fits(round(spare), 8):
        raise DatetimeOverflow("interval out of range")
    micros = (hours * 60 + minutes) * 60 * MICROS_PER_SECOND + round(spare)
    return checked(whole.months, whole.days, micros)


def _to_timestamp(seconds: float) -> datetime:
    if seconds != seconds:
        raise DatetimeOverflow("timestamp cannot be NaN")
    if abs(seconds) == inf:
        raise NotSupported("infinite timestamps are not supported")
    if not -210_866_803_200 <= seconds < 9_224_318_016_000:
        raise DatetimeOverflow(f'timestamp out of range: "{seconds:g}"')
    return instant_of(round((seconds - 946_684_800) * MICROS_PER_SECOND))


def _bin(width: Interval, at: datetime, origin: datetime) -> datetime:
    """The start of the bin that holds `at`, where one starts at `origin`."""
    if width.months:
        raise NotSupported("timestamps cannot be binned into intervals containing months or years")
    step = width.days * MICROS_PER_DAY + width.micros
    if step <= 0:
        raise DatetimeOverflow("stride must be greater than zero")
    first, since = micros_of(origin), micros_of(at) - micros_of(origin)
    start = first + since // step * step
    return timestamp_of(start) if at.tzinfo is None else instant_of(start)


def _itself(by: Interval) -> Interval:
    return by


def _moved(sign: Callable[[Interval], Interval]) -> Callable[[Context, datetime, Interval], datetime]:
    return lambda context, at, by: add_interval_in(at, sign(by), context.zone)


def _moved_in(
    sign: Callable[[Interval], Interval],
) -> Callable[[Context, datetime, Interval, str], datetime]:
    return lambda context, at, by, zone: add_interval_in(at, sign(by), zone_named(zone, context.zone))


# OVERLAPS


def _overlaps() -> Iterator[Function]:
    adds: dict[str, Callable[..., Any]] = {"timestamp": add_interval, "time": add_to_time}
    for kind, add in adds.items():
        for ends in product((kind, "interval"), repeat=2):
            arguments = (kind, ends[0], kind, ends[1])
            yield Function("overlaps", arguments, "bool", _overlap(add, ends), is_strict=False)
    for ends in product(("timestamptz", "interval"), repeat=2):
        arguments = ("timestamptz", ends[0], "timestamptz", ends[1])
        yield Function("overlaps", arguments, "bool", _overlap_in(ends), is_strict=False, wants_context=True)


def _overlap(add: Callable[..., Any], ends: tuple[str, ...]) -> Callable[..., bool | None]:
    def run(a: Any, b: Any, c: Any, d: Any) -> bool | None:
        first, second = (_end(add, a, b, ends[0]), _end(add, c, d, ends[1]))
        return _do_overlap(a, first, c, second)

    return run


def _overlap_in(ends: tuple[str, ...]) -> Callable[..., bool | None]:
    def run(context: Context, *times: Any) -> bool | None:
        return _overlap(lambda at, by: add_interval_in(at, by, context.zone), ends)(*times)

    return run


def _end(add: Callable[..., Any], start: Any, end: Any, kind: str) -> Any:
    if kind != "interval":
        return end
    return None if start is None or end is None else add(start, end)


def _do_overlap(a: Any, b: Any, c: Any, d: Any) -> bool | None:
    """Half-open periods by the standard's rules: NULL if an unknown end decides."""
    first, second = _ordered(a, b), _ordered(c, d)
    if first is None or second is None:
        return None
    if first[0] == second[0]:
        return None if first[1] is None or second[1] is None else True
    earlier, later = (first, second) if first[0] < second[0] else (second, first)
    if earlier[1] is None:
        return None
    if later[0] < earlier[1]:
        return True
    return None if later[1] is None else False


def _ordered(start: Any, end: Any) -> tuple[Any, Any] | None:
    if start is None:
        return None if end is None else (end, None)
    return (end, start) if end is not None and start > end else (start, end)
