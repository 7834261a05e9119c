"""Spans of time: months, days and microseconds, which PostgreSQL keeps apart.

    '1 year 2 mons 3 days 04:05:06.789'   months 14   days 3   micros 14_706_789_000

Two intervals are equal, and ordered, by their length with a month of 30 days and a day of 24
hours: '1 mon' = '30 days'. Written in the style "postgres".

Walk: `expr.types.time_types` makes the type, `expr.types.interval_text` reads texts,
`expr.functions.time_functions` computes with the values.
"""

from dataclasses import dataclass
from functools import total_ordering

from tenure.base.errors import DatetimeOverflow
from tenure.expr.types.numbers import fits

MICROS_PER_SECOND, MICROS_PER_DAY = 1_000_000, 86_400_000_000


@total_ordering
@dataclass(frozen=True, eq=False, slots=True)
class Interval:
    months: int = 0
    days: int = 0
    micros: int = 0

    @property
    def span(self) -> int:
        """Its length in microseconds, by which intervals compare."""
        return (self.months * 30 + self.days) * MICROS_PER_DAY + self.micros

    @property
    def parts(self) -> tuple[int, int, int]:
        return self.months, self.days, self.micros

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Interval) and self.span == other.span

    def __lt__(self, other: "Interval") -> bool:
        return self.span < other.span

    def __hash__(self) -> int:
        return hash(self.span)


def checked(months: int, days: int, micros: int) -> Interval:
    if fits(months, 4) and fits(days, 4) and fits(micros, 8):
        return Interval(months, days, micros)
    raise DatetimeOverflow("interval out of range")


def render_interval(value: Interval) -> str:
    """The style "postgres": parts that are zero are left out; a + follows a negative part."""
    years, months = _split(value.months, 12)
    words: list[str] = []
    negative_before = False
    for amount, word in ((years, "year"), (months, "mon"), (value.days, "day")):
        if amount:
            sign = "+" if negative_before and amount > 0 else ""
            words.append(f"{sign}{amount} {word}{'' if amount == 1 else 's'}")
            negative_before = amount < 0
    if value.micros or not words:
        sign = "-" if value.micros < 0 else "+" if negative_before else ""
        words.append(sign + _clock(abs(value.micros)))
    return " ".join(words)


def _split(amount: int, unit: int) -> tuple[int, int]:
    """Divides towards zero: both parts have the sign of the amount."""
    whole, rest = divmod(abs(amount), unit)
    return (whole, rest) if amount >= 0 else (-whole, -rest)


def _clock(micros: int) -> str:
    seconds, fraction = divmod(micros, MICROS_PER_SECOND)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:06d}".rstrip("0") if fraction else text
