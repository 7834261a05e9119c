"""Aggregates of sorted rows: percentile_cont, percentile_disc and mode, WITHIN GROUP (ORDER BY ...).

The rows come sorted as the call says, without NULLs; the fraction is a direct argument.

Walk: `expr.aggregates.aggregate_table` lists these.
"""

from collections.abc import Callable, Iterator
from math import ceil, floor
from typing import Any

from tenure.base.errors import OutOfRange
from tenure.base.interruptible import paced
from tenure.expr.aggregates.aggregate import AggregateFunction, Steps
from tenure.expr.functions.time_arithmetic import add, negated, scaled
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.interval import Interval

Pick = Callable[[list[Datum], float], Datum]


def aggregates() -> Iterator[AggregateFunction]:
    for family, between in (("float8", _between_floats), ("interval", _between_intervals)):
        yield from _percentile("percentile_cont", family, family, _continuous(between))
    yield from _percentile("percentile_disc", "anyelement", "anyelement", _discrete)
    yield AggregateFunction("mode", ("anyelement",), "anyelement", _mode)


def _percentile(name: str, family: str, result: str, pick: Pick) -> Iterator[AggregateFunction]:
    def one(fraction: Type, kind: Type) -> Steps:
        return Steps(list, _gather, lambda rows, at: _at_fraction(pick, rows, at))

    def many(fraction: Type, kind: Type) -> Steps:
        return Steps(list, _gather, lambda rows, wanted: _at_fractions(pick, rows, wanted))

    results = "anyarray" if result == "anyelement" else f"{result}[]"
    yield AggregateFunction(name, ("float8", family), result, one, direct_count=1)
    yield AggregateFunction(name, ("float8[]", family), results, many, direct_count=1)


def _gather(rows: list[Datum], value: Datum) -> list[Datum]:
    rows.append(value)
    return rows


def _at_fraction(pick: Pick, rows: list[Datum], fraction: float | None) -> Datum:
    if fraction is None:
        return None
    if not 0 <= fraction <= 1:
        raise OutOfRange(f"percentile value {fraction:g} is not between 0 and 1")
    return pick(rows, fraction) if rows else None


def _at_fractions(pick: Pick, rows: list[Datum], wanted: Any) -> Datum:
    if wanted is None or not rows:
        return None
    return tuple(
        _at_fractions(pick, rows, each) if isinstance(each, tuple) else _at_fraction(pick, rows, each)
        for each in paced(wanted)
    )


def _continuous(between: Callable[[Any, Any, float], Any]) -> Pick:
    def pick(rows: list[Datum], fraction: float) -> Datum:
        place = fraction * (len(rows) - 1)
        first, second = floor(place), ceil(place)
        return rows[first] if first == second else between(rows[first], rows[second], place - first)

    return pick


def _between_floats(low: float, high: float, share: float) -> float:
    return low + share * (high - low)


def _between_intervals(low: Interval, high: Interval, share: float) -> Interval:
    return add(low, scaled(add(high, negated(low)), share))


def _discrete(rows: list[Datum], fraction: float) -> Datum:
    return rows[max(ceil(fraction * len(rows)), 1) - 1]


def _mode(kind: Type) -> Steps:
    """The value that comes most often; of several the first in order."""
    of = kind.comparable

    def finish(rows: list[Datum]) -> Datum:
        best, best_count, count, last = None, 0, 0, None
        for each in rows:
            key = of(each)
            count = count + 1 if count and key == last else 1
            last = key
            if count > best_count:
                best, best_count = each, count
        return best

    return Steps(list, _gather, finish)
