"""to_char, to_number, to_date and to_timestamp: values to text and back by a pattern.

Walk: `expr.function_table` lists these.
"""

from collections.abc import Iterator
from datetime import date, datetime
from functools import partial

from tenure.expr.formats.number_format import format_float, format_int4, format_int8, format_number
from tenure.expr.formats.number_reading import parse_number
from tenure.expr.formats.time_format import clock_of, clock_of_interval, format_time
from tenure.expr.formats.time_reading import read_date, read_instant
from tenure.expr.functions.function import Context, Function, Volatility, function
from tenure.expr.types.interval import Interval
from tenure.expr.types.zones import in_zone


def functions() -> Iterator[Function]:
    yield function("to_char", "int4, text -> text", format_int4)
    yield function("to_char", "int8, text -> text", format_int8)
    yield function("to_char", "numeric, text -> text", format_number)
    yield function("to_char", "float8, text -> text", lambda value, to: format_float(value, to, 15))
    yield function("to_char", "float4, text -> text", lambda value, to: format_float(value, to, 6))
    yield function("to_number", "text, text -> numeric", parse_number)
    yield function("to_char", "timestamp, text -> text", _timestamp)
    yield function("to_char", "interval, text -> text", _interval)
    stable = partial(Function, volatility=Volatility.STABLE, wants_context=True)
    yield stable("to_char", ("timestamptz", "text"), "text", _instant)
    yield function("to_date", "text, text -> date", _to_date)
    yield stable("to_timestamp", ("text", "text"), "timestamptz", _to_timestamp)


def _timestamp(value: datetime, pattern: str) -> str | None:
    return format_time(clock_of(value), pattern) if pattern else None


def _interval(value: Interval, pattern: str) -> str | None:
    return format_time(clock_of_interval(value), pattern) if pattern else None


def _instant(context: Context, value: datetime, pattern: str) -> str | None:
    return format_time(clock_of(in_zone(value, context.zone)), pattern) if pattern else None


def _to_date(text: str, pattern: str) -> date:
    return read_date(text, pattern)


def _to_timestamp(context: Context, text: str, pattern: str) -> datetime:
    return read_instant(text, pattern, context.zone)
