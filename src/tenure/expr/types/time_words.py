"""The words of days, times and intervals, in small letters.

Walk: `expr.types.time_fields`, `expr.types.time_text`, `expr.types.interval_text` and
`expr.functions.time_parts` look them up.
"""

MONTH, WEEKDAY, ERA, HALF, IGNORED, RESERVED, UNIT, CLOCK, SUMMER_TIME = (
    "month",
    "weekday",
    "era",
    "half",
    "ignored",
    "reserved",
    "unit",
    "clock",
    "summer time",
)

_MONTHS = """jan january, feb february, mar march, apr april, may, jun june, jul july, aug august,
    sep sept september, oct october, nov november, dec december"""
_WEEKDAYS = """sun sunday mon monday tue tues tuesday wed weds wednesday thu thur thurs thursday fri friday
    sat saturday"""
_UNITS = {
    **{"d": "day", "h": "hour", "m": "month", "mm": "minute", "s": "second", "y": "year"},
    **{"j": "julian", "jd": "julian", "julian": "julian"},
    **{each: each for each in ("dow", "doy", "isodow", "isoyear")},
}
MOVING = ("now", "today", "tomorrow", "yesterday")
ENDLESS = ("infinity", "+infinity", "-infinity")

WORDS: dict[str, tuple[str, str]] = {
    **{word: (MONTH, str(at)) for at, each in enumerate(_MONTHS.split(","), 1) for word in each.split()},
    **{word: (WEEKDAY, word) for word in _WEEKDAYS.split()},
    **{word: (ERA, word) for word in ("ad", "bc")},
    **{word: (HALF, word) for word in ("am", "pm")},
    **{word: (IGNORED, word) for word in ("at", "on")},
    **{word: (RESERVED, word) for word in ("allballs", "epoch", *MOVING, *ENDLESS)},
    **{word: (UNIT, unit) for word, unit in _UNITS.items()},
    "t": (CLOCK, "t"),
    "dst": (SUMMER_TIME, "dst"),
}
"""By word: its kind and its value."""

_SPAN_WORDS = {
    "microsecond": "usecond us usec useconds usecs microsecon",
    "millisecond": "msecond ms msec mseconds msecs millisecon",
    "second": "second s sec seconds secs",
    "minute": "minute m min mins minutes",
    "hour": "hour h hours hr hrs",
    "day": "day d days",
    "week": "week w weeks",
    "month": "month mon mons months",
    "quarter": "quarter qtr",
    "year": "year y years yr yrs",
    "decade": "decade dec decades decs",
    "century": "century c cent centuries",
    "millennium": "millennium mil mils millennia",
    "timezone": "timezone timezone_h timezone_m",
}
_SPANS = {word: unit for unit, words in _SPAN_WORDS.items() for word in words.split()}
_LENGTH = 10
"""Only so many letters of a word of an interval are compared."""


def span_unit(word: str) -> str | None:
    return _SPANS.get(word[:_LENGTH])
