"""Times by a pattern: to_char(now(), 'YYYY-MM-DD HH24:MI:SS').

    YYYY YY IYYY Q MM MON Month DD DDD D ID DY Day W WW IW CC J RM   HH24 HH12 MI SS MS US FF3 SSSS AM
    TZ TZH TZM OF      FM before: no padding      TH after: ordinal

Walk: `expr.formats.format_functions` lists the functions; `expr.formats.time_reading` reads by the same
patterns.
"""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import NamedTuple

from tenure.base.errors import InvalidDatetime
from tenure.base.interruptible import paced
from tenure.expr.formats.format_pattern import kept, ordinal, pieces
from tenure.expr.functions.julian_days import IsoDay, iso_day, julian_day
from tenure.expr.functions.time_arithmetic import trunc_divide
from tenure.expr.types.interval import Interval

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
ROMANS = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")
_PLAIN = (
    *(
        "HH24",
        "HH12",
        "HH",
        "MI",
        "SS",
        "MS",
        "US",
        "FF1",
        "FF2",
        "FF3",
        "FF4",
        "FF5",
        "FF6",
        "SSSSS",
        "SSSS",
    ),
    *("Y,YYY", "YYYY", "YYY", "YY", "Y", "IYYY", "IYY", "IY", "I", "MM", "DDD", "DD", "D", "IDDD", "ID"),
    *("W", "WW", "IW", "CC", "J", "Q", "TZH", "TZM", "OF", "TZ", "RM", "FX"),
    *("AM", "PM", "A.M.", "P.M.", "AD", "BC", "A.D.", "B.C.", "MONTH", "MON", "DAY", "DY"),
)
_PREFIXES, _SUFFIXES = ("FM", "fm", "TM", "tm"), ("TH", "th", "SP")
_KEYWORDS = (*_PLAIN, *(each.lower() for each in _PLAIN), "Month", "Mon", "Day", "Dy")


class FormatField(NamedTuple):
    """One keyword with its modifiers, or plain text."""

    text: str
    key: str = ""
    is_filling: bool = False
    """FM: without padding."""
    suffix: str = ""
    """TH or th."""
    is_quoted: bool = False
    is_translated: bool = False
    """TM: names without padding, in the language of the session, which is English."""


@kept
def fields(pattern: str) -> tuple[FormatField, ...]:
    found: list[FormatField] = []
    for piece in pieces(pattern, _KEYWORDS, _PREFIXES, _SUFFIXES):
        prefix, suffix = piece.prefix.upper(), piece.suffix if piece.suffix != "SP" else ""
        if not piece.keyword:
            found.append(FormatField(piece.text, is_quoted=piece.is_quoted))
        else:
            key = piece.keyword.upper()
            found.append(FormatField(piece.text, key, prefix == "FM", suffix, is_translated=prefix == "TM"))
    return tuple(found)


class FormattedTime(NamedTuple):
    """The fields that a pattern can write: of a timestamp, of an instant in its zone, or of an interval."""

    year: int
    month: int
    day: int
    micros: int
    date: date | None
    offset: timedelta | None = None
    zone: str = ""
    day_of_year: int = 0


def clock_of(value: datetime) -> FormattedTime:
    micros = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    day = value.date()
    year_day = day.timetuple().tm_yday
    return FormattedTime(
        day.year, day.month, day.day, micros, day, value.utcoffset(), value.tzname() or "", year_day
    )


def clock_of_interval(value: Interval) -> FormattedTime:
    years = trunc_divide(value.months, 12)
    days = years * 360 + (value.months - years * 12) * 30 + value.days
    return FormattedTime(years, value.months - years * 12, value.days, value.micros, None, day_of_year=days)


def format_time(value: FormattedTime, pattern: str) -> str:
    return "".join([_written(value, each) if each.key else each.text for each in paced(fields(pattern))])


def _written(value: FormattedTime, field: FormatField) -> str:
    if field.key == "FX":
        return ""
    if field.key in _WORDS:
        return _WORDS[field.key](value, field)
    if field.key == "Q" and not value.month:
        return ""
    width, number = _NUMBERS[field.key](value)
    if number is None:
        raise InvalidDatetime("invalid format specification for an interval value")
    is_negative = value.year < 0 if field.key in _ISO_YEARS else number < 0
    width += is_negative and field.key not in _NOT_WIDENED
    is_bare = field.is_filling and field.key not in _FRACTIONS
    text = str(number) if is_bare else f"{number:0{width}d}"
    return text + (ordinal(text, is_upper=field.suffix.isupper()) if field.suffix else "")


_FRACTIONS = ("MS", "US", *(f"FF{n}" for n in range(1, 7)))
_ISO_YEARS = ("IYYY", "IYY", "IY", "I")
_NOT_WIDENED = ("DD", "DDD", "IDDD", "W", "WW", "IW")
"""Fields that do not become one character wider for the sign of a negative number."""

Number = tuple[int, int | None]


def _hour(value: FormattedTime) -> int:
    return trunc_divide(value.micros, 3_600_000_000)


def _hour12(value: FormattedTime) -> int:
    hour = abs(_hour(value)) % 12 or 12
    return hour if _hour(value) >= 0 or hour == 12 else -hour


def _part(value: FormattedTime, unit: int, size: int) -> int:
    whole = trunc_divide(value.micros, unit)
    return whole - trunc_divide(whole, size) * size


def _fraction(digits: int) -> Callable[[FormattedTime], int]:
    return lambda value: _part(value, 10 ** (6 - digits), 10**digits)


def _of_date(run: Callable[[date], int]) -> Callable[[FormattedTime], int | None]:
    return lambda value: None if value.date is None else run(value.date)


def _last_digits(count: int, of: Callable[[FormattedTime], int]) -> Callable[[FormattedTime], int]:
    """The last decimal digits, with the sign of the number, as C's remainder has it."""

    size: int = 10**count

    def last(value: FormattedTime) -> int:
        number = of(value)
        return number - trunc_divide(number, size) * size

    return last


def _iso(value: FormattedTime) -> IsoDay:
    return iso_day(value.year, value.month, value.day)


def _numbers() -> dict[str, Callable[[FormattedTime], Number]]:
    def at(width: int, run: Callable[[FormattedTime], int | None]) -> Callable[[FormattedTime], Number]:
        return lambda value: (width, run(value))

    simple: dict[str, tuple[int, Callable[[FormattedTime], int | None]]] = {
        "HH24": (2, _hour),
        "HH12": (2, _hour12),
        "HH": (2, _hour12),
        "MI": (2, lambda value: _part(value, 60_000_000, 60)),
        "SS": (2, lambda value: _part(value, 1_000_000, 60)),
        "MS": (3, lambda value: _part(value, 1000, 1000)),
        "US": (6, lambda value: _part(value, 1, 1_000_000)),
        **{f"FF{n}": (n, _fraction(n)) for n in range(1, 7)},
        "SSSS": (1, lambda value: trunc_divide(value.micros, 1_000_000)),
        "SSSSS": (1, lambda value: trunc_divide(value.micros, 1_000_000)),
        "YYYY": (4, lambda value: value.year),
        **{"Y" * n: (n, _last_digits(n, lambda value: value.year)) for n in (1, 2, 3)},
        "IYYY": (4, lambda value: _iso(value).year),
        **{"I" + "Y" * (n - 1): (n, _last_digits(n, lambda value: _iso(value).year)) for n in (1, 2, 3)},
        "MM": (2, lambda value: value.month),
        "DD": (2, lambda value: value.day),
        "DDD": (3, lambda value: value.day_of_year),
        "IDDD": (3, lambda value: _iso(value).day),
        "D": (1, _of_date(lambda day: day.isoweekday() % 7 + 1)),
        "ID": (1, _of_date(lambda day: day.isoweekday())),
        "W": (1, lambda value: trunc_divide(value.day - 1, 7) + 1),
        "WW": (2, lambda value: trunc_divide(value.day_of_year - 1, 7) + 1),
        "IW": (2, lambda value: _iso(value).week),
        "CC": (2, lambda value: (value.year - 1) // 100 + 1 if value.date else trunc_divide(value.year, 100)),
        "J": (1, lambda value: julian_day(value.year, value.month, value.day)),
        "Q": (1, lambda value: trunc_divide(value.month - 1, 3) + 1),
    }
    return {key: at(width, run) for key, (width, run) in simple.items()}


_NUMBERS = _numbers()


# Words


def _half(value: FormattedTime, field: FormatField) -> str:
    hour = _hour(value)
    word = "PM" if hour - trunc_divide(hour, 24) * 24 >= 12 else "AM"
    word = f"{word[0]}.{word[1]}." if "." in field.text else word
    return word if field.text.isupper() else word.lower()


def _era(value: FormattedTime, field: FormatField) -> str:
    if value.date is None:
        raise InvalidDatetime("invalid format specification for an interval value")
    word = "B.C." if value.year <= 0 else "A.D."
    word = word if "." in field.text else word.replace(".", "")
    return word if field.text.isupper() else word.lower()


def _cased(name: str, field: FormatField, width: int) -> str:
    if field.text.isupper():
        name = name.upper()
    elif field.text.islower():
        name = name.lower()
    is_short = field.is_filling or (field.is_translated and field.key != "RM")
    return name if is_short else name.ljust(width)


def _month(value: FormattedTime, field: FormatField) -> str:
    if value.date is None:
        raise InvalidDatetime("invalid format specification for an interval value")
    name = MONTHS[value.month - 1]
    return _cased(name[:3], field, 0) if field.key == "MON" else _cased(name, field, 9)


def _day(value: FormattedTime, field: FormatField) -> str:
    if value.date is None:
        raise InvalidDatetime("invalid format specification for an interval value")
    name = DAYS[value.date.isoweekday() % 7]
    return _cased(name[:3], field, 0) if field.key == "DY" else _cased(name, field, 9)


def _roman_month(value: FormattedTime, field: FormatField) -> str:
    """Of an interval, negative months count from December down; whole years are December's, or January's."""
    if not value.month and not value.year:
        return ""
    month = value.month or (12 if value.year >= 0 else 1)
    return _cased(ROMANS[month - 1 if month > 0 else month + 12], field, 4)


def _year_with_comma(value: FormattedTime, field: FormatField) -> str:
    thousands = trunc_divide(value.year, 1000)
    text = f"{thousands},{value.year - thousands * 1000:03d}"
    return text + (ordinal(text, is_upper=field.suffix.isupper()) if field.suffix else "")


def _offset_seconds(value: FormattedTime) -> int:
    if value.date is None:
        raise InvalidDatetime("invalid format specification for an interval value")
    return round((value.offset or timedelta()).total_seconds())


def _zone(value: FormattedTime, field: FormatField) -> str:
    seconds = _offset_seconds(value)
    sign, minutes = "-" if seconds < 0 else "+", abs(seconds) // 60
    match field.key:
        case "TZ":
            return value.zone if field.text.isupper() else value.zone.lower()
        case "TZH":
            return f"{sign}{minutes // 60:02d}"
        case "TZM":
            return f"{minutes % 60:02d}"
    hours = f"{minutes // 60:0{1 if field.is_filling else 2}d}"
    return sign + hours + (f":{minutes % 60:02d}" if minutes % 60 else "")


_WORDS: dict[str, Callable[[FormattedTime, FormatField], str]] = {
    **dict.fromkeys(("AM", "PM", "A.M.", "P.M."), _half),
    **dict.fromkeys(("AD", "BC", "A.D.", "B.C."), _era),
    **dict.fromkeys(("MONTH", "MON"), _month),
    **dict.fromkeys(("DAY", "DY"), _day),
    **dict.fromkeys(("TZ", "TZH", "TZM", "OF"), _zone),
    "RM": _roman_month,
    "Y,YYY": _year_with_comma,
}
