"""Days counted as PostgreSQL counts them: from any year, month and day, also of an interval.

    julian_day(2000, 1, 1)     2451545
    iso_day(2021, 1, 3)        the 371st day, in the 53rd week, of 2020

The steps are those of its date2j, with C's division: month -2 of year -1 has a number, too.

Walk: `expr.formats.time_format` asks these.
"""

from typing import NamedTuple

from tenure.expr.functions.time_arithmetic import trunc_divide


class IsoDay(NamedTuple):
    year: int
    week: int
    day: int
    """The day of the ISO year, counted from 1."""


def julian_day(year: int, month: int, day: int) -> int:
    if month > 2:
        month, year = month + 1, year + 4800
    else:
        month, year = month + 13, year + 4799
    century = trunc_divide(year, 100)
    number = year * 365 - 32167 + trunc_divide(year, 4) - century + trunc_divide(century, 4)
    return number + trunc_divide(7834 * month, 256) + day


def iso_day(year: int, month: int, day: int) -> IsoDay:
    number = julian_day(year, month, day)
    start = _start(year)
    if number < start:
        year -= 1
        start = _start(year)
    elif number >= _start(year + 1):
        year += 1
        start = _start(year)
    return IsoDay(year, trunc_divide(number - start, 7) + 1, number - start + 1)


def _start(year: int) -> int:
    """The Monday of the week with the fourth of January."""
    fourth = julian_day(year, 1, 4)
    return fourth - fourth % 7
