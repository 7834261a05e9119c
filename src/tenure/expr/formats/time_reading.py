"""Times read by a pattern: to_date('24 Feb 2024', 'DD Mon YYYY'), to_timestamp.

Pattern and text are read in step, as PostgreSQL does:

    a keyword      takes as many digits as it has letters; as many as there are before what is no digit, and
                   at the end. A sign counts as a digit: '-0' is month 0
    a separator    passes over one separator or space of the text, if there is one
    other text     skips one character of any kind; none if more spaces were skipped than the pattern has

What the pattern does not name, or what is 0, is as in January, the first, midnight, of the year 1 BC.

Walk: `expr.formats.format_functions` lists the functions; `expr.formats.time_format` cuts the patterns.
"""

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone, tzinfo

from tenure.base.errors import DatetimeOverflow, InvalidDatetime, InvalidZoneOffset, NotSupported
from tenure.expr.formats.time_format import DAYS, MONTHS, ROMANS, FormatField, fields
from tenure.expr.types.time_decoding import JULIAN_OF_ORDINAL_0
from tenure.expr.types.time_types import timestamp_of
from tenure.expr.types.zones import from_zone

_DIGITS = {
    **{
        key: len(key) for key in ("YYYY", "YYY", "YY", "Y", "MM", "DD", "DDD", "MI", "SS", "J", "D", "Q", "W")
    },
    **{"HH24": 2, "HH12": 2, "HH": 2, "MS": 3, "US": 6, "SSSS": 4, "SSSSS": 5, "WW": 2, "CC": 2, "TZM": 2},
    **{f"FF{n}": n for n in range(1, 7)},
}
"""The number of digits that a keyword takes if digits follow it."""
_OTHER_NUMBERS = ("Y,YYY", "IYYY", "IYY", "IY", "I", "IDDD", "ID", "IW")
_WORDS = ("MONTH", "MON", "DAY", "DY", "AM", "PM", "A.M.", "P.M.", "AD", "BC", "A.D.", "B.C.", "RM", "TZH")
_SPACE = re.compile(r"[ \t\n\r\v\f]")
_SPACES = re.compile(r"[ \t\n\r\v\f]*")
_NUMBER = re.compile(r"[+-]?[0-9]+")
_YEAR_WITH_COMMA = re.compile(r"\s*([+-]?[0-9]+),\s*([+-]?[0-9]{1,3})")
_YEAR_MAX, _TIMESTAMP_YEAR_MAX = 5_874_897, 294_276
"""The last years of PostgreSQL's dates and timestamps."""
_ZONE_HOURS_MAX = 15


def read_date(text: str, pattern: str) -> date:
    reader = _Reader(text, pattern)
    reader.settle_hour()
    day = reader.day()
    reader.micros()  # these are checked, and left out
    reader.zone()
    return day


def read_instant(text: str, pattern: str, zone: tzinfo) -> datetime:
    reader = _Reader(text, pattern)
    reader.settle_hour()
    day, micros = reader.day(year_max=_TIMESTAMP_YEAR_MAX), reader.micros()
    ordinal = (day - date(2000, 1, 1)).days
    local = timestamp_of(ordinal * 86_400_000_000 + micros)
    return from_zone(local, reader.zone() or zone)


class _Reader:
    def __init__(self, text: str, pattern: str) -> None:
        self.text = text
        self.at = 0
        self.skipped = 0
        """How many more spaces were passed over than the pattern has."""
        self.numbers: dict[str, int] = {}
        self.year_digits = 4
        self.is_exact = False
        """After FX: the text has one character for each of the pattern's."""
        self.is_12_hours = False
        self.zone_sign = 0
        self.hour = 0
        self.is_exact = False
        """FX: every character of the pattern is one of the text."""
        pattern_fields = fields(pattern)
        for place, field in enumerate(pattern_fields):
            if self.at >= len(text):
                break
            if (field.key or place == 0) and not self.is_exact:
                self._skip_spaces()
            if field.key == "FX":
                self.is_exact = True
            elif field.key:
                self._field(field, self._slurps(field, pattern_fields[place + 1 :]))
                self.skipped = 0
                if not self.is_exact:
                    self._skip_spaces()
            elif self.is_exact:
                self.at += 1
            else:
                self._plain(field)

    def _skip_spaces(self) -> None:
        while not self.is_exact and self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
            self.skipped += 1

    def _plain(self, field: FormatField) -> None:
        if self.is_exact:
            self.at += 1
        elif not field.is_quoted and (field.text.isspace() or _is_separator(field.text)):
            self.skipped -= 1
            here = self.text[self.at : self.at + 1]
            if here.isspace() or _is_separator(here):
                self.at += 1
                self.skipped += 1
        elif self.skipped > 0:
            self.skipped -= 1
        else:
            self.at += 1

    @staticmethod
    def _slurps(field: FormatField, rest: tuple[FormatField, ...]) -> bool:
        """Whether a number may have any length: the pattern goes on with something that is no digit."""
        if field.is_filling or field.suffix or not rest:
            return True
        following = rest[0]
        if following.key:
            return following.key not in _DIGITS and following.key not in _OTHER_NUMBERS
        return not (following.text.isascii() and following.text.isdigit())

    # Fields

    def _field(self, field: FormatField, slurps: bool) -> None:
        key = field.key
        if key in _DIGITS:
            self._numeric(key, field, slurps)
            if field.suffix:
                self.at = min(self.at + 2, len(self.text))
        elif key == "Y,YYY":
            self._year_with_comma(field)
        elif key in _WORDS:
            self._word(key, field, slurps)
        else:
            raise NotSupported(f'formatting field "{field.text}" is not supported for reading a time')

    def _numeric(self, key: str, field: FormatField, slurps: bool) -> None:
        start = self.at
        value = self._integer(field, _DIGITS[key], slurps=slurps)
        length = self.at - start
        if key in ("MS", "US") or key.startswith("FF"):
            value *= 10 ** max((3 if key == "MS" else 6) - length, 0)
            self._set("MS" if key == "MS" else "US", value, field)
        elif key in ("YYYY", "YYY", "YY", "Y"):
            self.year_digits = len(key)
            self._set("YYYY", _near(value) if len(key) < 4 and length < 4 else value, field)
        elif key in ("HH", "HH12", "HH24"):
            self.is_12_hours |= key != "HH24"
            self._set("HH", value, field)
        elif key != "Q":
            self._set("SSSS" if key == "SSSSS" else key, value, field)
        if key == "TZM":
            self.zone_sign = self.zone_sign or 1

    def _integer(self, field: FormatField, digits: int, *, slurps: bool) -> int:
        start = self.at
        self.at = _SPACES.match(self.text, start).end()  # type: ignore[union-attr]
        shown = self.text[self.at : self.at + digits]
        if not slurps and len(shown) < digits:
            raise InvalidDatetime(f'source string too short for "{field.text}" formatting field')
        found = _NUMBER.match(self.text[self.at :] if slurps else shown)
        if found and not slurps and found.end() < digits:
            raise self._invalid(shown, field)
        if not found and (slurps or self.at == start):
            raise self._invalid(shown, field)
        if not found:  # PostgreSQL accepts the spaces alone
            return 0
        self.at += found.end()
        value = int(found.group())
        if not -(2**31) <= value < 2**31:
            raise DatetimeOverflow(f'value for "{field.text}" in source string is out of range')
        return value

    def _year_with_comma(self, field: FormatField) -> None:
        found = _YEAR_WITH_COMMA.match(self.text, self.at)
        if not found:
            raise self._invalid(self.text[self.at :], field)
        self.at = found.end()
        self._set("YYYY", int(found.group(2)) + int(found.group(1)) * 1000, field)

    def _word(self, key: str, field: FormatField, slurps: bool) -> None:
        match key:
            case "MONTH" | "MON":
                months = [each if key == "MONTH" else each[:3] for each in MONTHS]
                self._set("MM", self._one_of(months, field) + 1, field)
            case "RM":
                longest_first = sorted(ROMANS, key=len, reverse=True)
                found = longest_first[self._one_of(longest_first, field)]
                self._set("MM", ROMANS.index(found) + 1, field)
            case "DAY" | "DY":
                days = [each if key == "DAY" else each[:3] for each in DAYS]
                self._set("D", self._one_of(days, field) + 1, field)
            case "AD" | "BC" | "A.D." | "B.C.":
                self._set(
                    "BC", 1 - self._one_of(["b.c.", "a.d."] if "." in key else ["bc", "ad"], field), field
                )
            case "TZH":
                self._zone_hours(field, slurps)
            case _:
                self._set("PM", self._one_of(["a.m.", "p.m."] if "." in key else ["am", "pm"], field), field)
                self.is_12_hours = True

    def _one_of(self, names: list[str], field: FormatField) -> int:
        rest = self.text[self.at : self.at + 12].lower()
        for number, name in enumerate(names):
            if rest.startswith(name.lower()):
                self.at += len(name)
                return number
        raise self._invalid(_SPACE.split(self.text[self.at :], maxsplit=1)[0], field)

    def _zone_hours(self, field: FormatField, slurps: bool) -> None:
        here = self.text[self.at]
        if here in "+- ":
            self.zone_sign = -1 if here == "-" else 1
            self.at += 1
        else:
            is_behind = self.skipped > 0 and self.text[self.at - 1] == "-"
            self.zone_sign = -1 if is_behind else 1
        self._set("TZH", self._integer(field, 2, slurps=slurps), field)

    def _set(self, key: str, value: int, field: FormatField) -> None:
        former = self.numbers.get(key, 0)
        if former not in (0, value):
            raise InvalidDatetime(f'conflicting values for "{field.text}" field in formatting string')
        self.numbers[key] = value

    def _invalid(self, text: str, field: FormatField) -> InvalidDatetime:
        return InvalidDatetime(f'invalid value "{text}" for "{field.text}"')

    # The fields put together

    def day(self, *, year_max: int = _YEAR_MAX) -> date:
        number_of = self.numbers.get
        year, month, day = self._year(), number_of("MM", 0), number_of("DD", 0)
        is_given = {
            "year": bool(number_of("YYYY") or number_of("CC")),
            "month": bool(month),
            "day": bool(day),
        }
        if number_of("J", 0):
            return self._julian(number_of("J", 0) - JULIAN_OF_ORDINAL_0)
        if number_of("W", 0):
            day, is_given["day"] = (number_of("W", 0) - 1) * 7 + 1, True
        ordinal = (number_of("WW", 0) - 1) * 7 + 1 if number_of("WW", 0) else number_of("DDD", 0)
        if ordinal and (month <= 1 or day <= 1):
            if not year:
                raise InvalidDatetime("cannot calculate day of year without year information")
            if not 1 <= year <= 9999:
                raise self._beyond()
            first = date(year, 1, 1)
            if not 1 <= ordinal <= 366:
                raise self._out_of_range()
            found = self._checked(lambda: first + timedelta(days=ordinal - 1))
            if found.year != year:
                raise self._out_of_range()
            month, day = (month if month > 1 else found.month), (day if day > 1 else found.day)
            is_given["month"] = is_given["day"] = True
        if (is_given["month"] and not 1 <= month <= 12) or (is_given["day"] and not 1 <= day <= 31):
            raise self._out_of_range()
        if year > year_max or year < -4713:
            is_date = year_max == _YEAR_MAX
            raise DatetimeOverflow(
                f'date out of range: "{self.text}"' if is_date else "timestamp out of range"
            )
        if not 1 <= year <= 9999:
            raise self._beyond()
        return self._checked(lambda: date(year, month or 1, day or 1))

    def _julian(self, ordinal: int) -> date:
        if not 1 <= ordinal <= date.max.toordinal():
            raise self._beyond()
        return date.fromordinal(ordinal)

    def _beyond(self) -> NotSupported:
        return NotSupported(f'"{self.text}" is outside the years 1 to 9999')

    def _checked(self, make: Callable[[], date]) -> date:
        try:
            return make()
        except (ValueError, OverflowError):
            raise self._out_of_range() from None

    def _year(self) -> int:
        year, century = self.numbers.get("YYYY", 0), self.numbers.get("CC", 0)
        if year and century and self.year_digits <= 2:
            year %= 100
            return (century - 1) * 100 + year if year else century * 100
        if year:
            return 1 - year if self.numbers.get("BC") else year
        return (century - 1) * 100 + 1 if century > 0 else 0

    def settle_hour(self) -> None:
        """Called before the day is checked: PostgreSQL reports a wrong hour first."""
        self.hour = self.numbers.get("HH", 0) or self.numbers.get("SSSS", 0) // 3600
        if self.is_12_hours:
            if not 1 <= self.hour <= 12:
                raise InvalidDatetime(
                    f'hour "{self.hour}" is invalid for the 12-hour clock',
                    hint="Use the 24-hour clock, or give an hour between 1 and 12.",
                )
            self.hour = self.hour % 12 + 12 * self.numbers.get("PM", 0)

    def micros(self) -> int:
        number_of = self.numbers.get
        whole, hour = number_of("SSSS", 0), self.hour
        minute, second = (
            number_of(key, 0) or default for key, default in (("MI", whole // 60 % 60), ("SS", whole % 60))
        )
        fraction = number_of("MS", 0) * 1000 + number_of("US", 0)
        is_right = 0 <= hour <= 23 and 0 <= minute <= 59 and 0 <= second <= 59 and 0 <= fraction < 1_000_000
        if not is_right:
            raise self._out_of_range()
        return ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction

    def zone(self) -> tzinfo | None:
        if not self.zone_sign:
            return None
        hours, minutes = self.numbers.get("TZH", 0), self.numbers.get("TZM", 0)
        if not 0 <= hours <= _ZONE_HOURS_MAX or not 0 <= minutes < 60:
            raise InvalidZoneOffset(f'time zone displacement out of range: "{self.text}"')
        return timezone(self.zone_sign * timedelta(hours=hours, minutes=minutes))

    def _out_of_range(self) -> DatetimeOverflow:
        return DatetimeOverflow(f'date/time field value out of range: "{self.text}"')


def _is_separator(text: str) -> bool:
    return len(text) == 1 and "!" <= text <= "~" and not text.isalnum()


def _near(year: int) -> int:
    """The years 1970 to 2069 for two digits; three are as near to 2020 as they can be."""
    if year < 70:
        return year + 2000
    if year < 100:
        return year + 1900
    if year < 520:
        return year + 2000
    return year + 1000 if year < 1000 else year
